//! The words that a user typed → a query. Pure; nothing that can be typed is an error.
//!
//! | typed | means |
//! |---|---|
//! | `refund deadline` | words; any of them, the more and the rarer the better |
//! | `"refund deadline"`, `“…”`, `「…」`, `『…』` | the phrase must occur |
//! | `-word`, `-"a phrase"` | no part of the resource has it |
//! | `server:NAME`, `mime:TYPE`, `uri:PREFIX` | filters; the values of one kind are alternatives, `uri:` takes globs too |
//!
//! What isn't whole (an unbalanced quote, a filter without value, an unknown prefix) is text.

/// A parsed query: what must, may and must not occur.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// Free text, in the user's order, without quotes, exclusions and filters.
    pub text: String,
    /// Quoted phrases; each must occur as it stands.
    pub phrases: Vec<String>,
    /// `-word` and `-"a phrase"`: must not occur.
    pub excluded: Vec<String>,
    /// `server:`, `mime:`, `uri:` filters, each kind's values as alternatives.
    pub servers: Vec<String>,
    pub mime_types: Vec<String>,
    pub uris: Vec<String>,
}

/// How much of what was typed is read; the rest is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes, cut at a character.
    pub bytes: usize,
    /// Words, phrases, exclusions and filters, all together.
    pub terms: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { bytes: 4 << 10, terms: 64 }
    }
}

impl Query {
    /// Whether it asks for nothing at all.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.phrases.is_empty() && !self.narrows()
    }

    /// All that is looked for as words, those of phrases too.
    pub fn words(&self) -> String {
        let mut text = self.text.clone();
        for phrase in &self.phrases {
            text.push('\n');
            text.push_str(phrase);
        }
        text
    }

    /// Whether it has filters or exclusions, which alone ask for all that they leave.
    pub fn narrows(&self) -> bool {
        [&self.excluded, &self.servers, &self.mime_types, &self.uris]
            .iter()
            .any(|values| !values.is_empty())
    }
}

/// Quotes that hold a phrase, by their opening one. Those of ASCII are also inch marks and code.
const QUOTES: [(char, char); 4] = [('"', '"'), ('“', '”'), ('「', '」'), ('『', '』')];

/// Parses what a user typed. What is beyond the bounds is left out.
pub fn parse(typed: &str, bounds: Bounds) -> Query {
    let mut query = Query::default();
    let mut rest = beginning(typed, bounds.bytes);
    let mut words: Vec<&str> = vec![];
    let mut terms = 0;
    while terms < bounds.terms {
        rest = rest.trim_start();
        if rest.is_empty() {
            break;
        }
        terms += 1;
        if let Some(after) = exclusion(rest, &mut query).or_else(|| filter(rest, &mut query)) {
            rest = after;
            continue;
        }
        if let Some((phrase, after)) = quoted(rest) {
            push(&mut query.phrases, phrase);
            rest = after;
            continue;
        }
        let word = &rest[..word_end(rest)];
        words.push(word);
        rest = &rest[word.len()..];
    }
    query.text = words.join(" ");
    query
}

/// As much of a text as fits in so many bytes.
fn beginning(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

/// `-word` or `-"phrase"` at the beginning; answers what follows it.
fn exclusion<'t>(text: &'t str, query: &mut Query) -> Option<&'t str> {
    let rest = text.strip_prefix('-')?;
    if let Some((phrase, after)) = quoted(rest) {
        push(&mut query.excluded, phrase);
        return Some(after);
    }
    // `-5`, `--flag` and a lone dash are text.
    if !rest.starts_with(char::is_alphabetic) {
        return None;
    }
    let (word, after) = rest.split_at(space(rest));
    push(&mut query.excluded, word);
    Some(after)
}

/// A filter at the beginning; answers what follows it.
fn filter<'t>(text: &'t str, query: &mut Query) -> Option<&'t str> {
    let (name, rest) = text.split_at_checked(text.find(':')?)?;
    let rest = &rest[1..];
    let values = match name.to_ascii_lowercase().as_str() {
        "server" => &mut query.servers,
        "mime" => &mut query.mime_types,
        "uri" => &mut query.uris,
        _ => return None,
    };
    let (value, after) = quoted(rest).unwrap_or_else(|| rest.split_at(space(rest)));
    if value.trim().is_empty() {
        return None;
    }
    push(values, value);
    Some(after)
}

/// A phrase in balanced quotes at the beginning, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let (_, close) = QUOTES.into_iter().find(|(open, _)| text.starts_with(*open))?;
    let inner = text.get(text.chars().next()?.len_utf8()..)?;
    let end = inner.find(close)?;
    Some((&inner[..end], &inner[end + close.len_utf8()..]))
}

/// Where a word ends: at a space, or where a phrase begins. Scripts without spaces put quotes right
/// behind a character; behind an ASCII letter or digit `"` is an inch mark or code.
fn word_end(text: &str) -> usize {
    let mut before = None;
    for (at, c) in text.char_indices() {
        let opens = match c {
            '"' => before.is_some_and(|c: char| !c.is_ascii_graphic()),
            _ => before.is_some() && QUOTES.iter().any(|(open, _)| *open == c),
        };
        if c.is_whitespace() || (opens && quoted(&text[at..]).is_some()) {
            return at;
        }
        before = Some(c);
    }
    text.len()
}

fn space(text: &str) -> usize {
    text.find(char::is_whitespace).unwrap_or(text.len())
}

fn push(values: &mut Vec<String>, value: &str) {
    let value = value.trim();
    if !value.is_empty() {
        values.push(value.to_owned());
    }
}

#[cfg(test)]
mod tests;
