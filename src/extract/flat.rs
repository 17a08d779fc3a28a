//! Nested data → lines that stand for themselves: each value with the path of its keys, as in
//! `spec.containers[0].image: nginx`.
//!
//! A passage from the middle of a nested file says little without the keys above it, and none of them is
//! found by it. So each value gets them, in the line in which it stands in the source: line 7 of what comes
//! out is line 7 of what the server sent, which is where the exact words are. Lines that only open or
//! close something become empty. YAML and TOML are taken line by line, so comments, quotes and whatever
//! isn't understood stay as they are.
//!
//! Nothing of the source is lost, and one linear pass is enough: a path's beginning goes where it is long, and
//! all of it once the text has doubled, but for keys that stood in no line yet.

pub mod json;
pub mod toml;
pub mod yaml;

use std::borrow::Cow;

use super::json::escaped_char;

/// Longest path to what holds a value, in bytes; of a longer one its end is shown.
const MAX_ABOVE: usize = 160;
/// A text may grow to twice its size, and by this much.
const MAX_GROWTH: usize = 64 << 10;

/// Whether so much was written of so much read that paths are left out.
fn is_too_much(written: usize, read: usize) -> bool {
    written > read.saturating_mul(2).saturating_add(MAX_GROWTH)
}

#[derive(Clone, Copy)]
struct Step {
    /// Where it begins in the path's text.
    at: usize,
    is_key: bool,
}

/// The keys and positions that are open.
#[derive(Default)]
struct Path {
    text: String,
    steps: Vec<Step>,
    /// How many of them have been shown.
    shown: usize,
}

impl Path {
    fn key(&mut self, key: &str) {
        self.steps.push(Step { at: self.text.len(), is_key: true });
        if !self.text.is_empty() {
            self.text.push('.');
        }
        self.text.push_str(key);
    }

    fn index(&mut self, index: usize) {
        self.steps.push(Step { at: self.text.len(), is_key: false });
        self.text.push_str(&format!("[{index}]"));
    }

    fn truncate(&mut self, steps: usize) {
        if let Some(step) = self.steps.get(steps) {
            self.text.truncate(step.at);
            self.steps.truncate(steps);
            self.shown = self.shown.min(steps);
        }
    }

    /// The first key that has stood in no line yet.
    fn unshown(&self) -> Option<usize> {
        (self.shown..self.steps.len()).find(|step| self.steps[*step].is_key)
    }

    /// What is shown of it: its end, or nothing with `is_terse`, but all keys that weren't shown before.
    fn show(&mut self, is_terse: bool) -> String {
        let least = if is_terse { usize::MAX } else { self.text.len().saturating_sub(MAX_ABOVE) };
        let end = self.steps.partition_point(|step| step.at < least);
        let first = self.unshown().map_or(end, |step| step.min(end));
        self.shown = self.steps.len();
        match self.steps.get(first) {
            None => String::new(),
            Some(Step { at: 0, .. }) => self.text.clone(),
            Some(step) => format!("…{}", &self.text[step.at..]),
        }
    }
}

/// A key below a path.
fn joined(above: &str, key: &str) -> String {
    match above {
        "" => key.to_owned(),
        above => format!("{above}.{key}"),
    }
}

/// Decodes what strings in double quotes escape of other scripts, as many writers do, and breaks of lines.
/// `in_string`: the text begins inside one. Whatever stands elsewhere stays.
fn unescaped(text: &str, in_string: bool) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut quote = in_string.then_some('"');
    let mut before = ' ';
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let mut len = c.len_utf8();
        match (quote, c) {
            (Some('"'), '\\') => match escape(rest) {
                Some((c, escape_len)) => {
                    out.push(c);
                    len = escape_len;
                }
                None => {
                    len += rest[1..].chars().next().map_or(0, char::len_utf8);
                    out.push_str(&rest[..len]);
                }
            },
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') if !before.is_alphanumeric() => quote = Some(c),
            _ => {}
        }
        if c != '\\' || quote != Some('"') {
            out.push(c);
        }
        before = c;
        rest = &rest[len..];
    }
    Cow::Owned(out)
}

/// The character that an escape stands for, if it is no ASCII or a break of a line, and the escape's length.
fn escape(text: &str) -> Option<(char, usize)> {
    let hex = |len: usize| {
        let digits =
            text.get(2..2 + len).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))?;
        char::from_u32(u32::from_str_radix(digits, 16).ok()?).map(|c| (c, 2 + len))
    };
    let (c, len) = match text.as_bytes().get(1)? {
        b'n' | b'r' | b't' => return Some((' ', 2)),
        b'x' => hex(2)?,
        b'u' => escaped_char(text)?,
        b'U' => hex(8)?,
        _ => return None,
    };
    (!c.is_ascii() && !c.is_control()).then_some((c, len))
}

#[cfg(test)]
mod tests;
