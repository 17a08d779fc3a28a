//! TOML: a key's line gets the table in which it stands, and stays TOML with dotted keys.

use std::collections::HashMap;

use super::{Path, is_too_much, joined, unescaped};

/// More keys of a header are no path that anybody reads.
const MAX_KEYS: usize = 64;

/// Flattens a text. The lines stay.
pub fn flatten(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut above = String::new();
    // How many tables each array of tables has so far.
    let mut arrays: HashMap<String, usize> = HashMap::new();
    let mut value = Value::default();
    let mut read = 0;
    for line in text.split_inclusive('\n') {
        read += line.len();
        let body = line.trim_end();
        if value.is_open() {
            out.push_str(&unescaped(
                body,
                value.string.is_some_and(|quotes| quotes.starts_with('"')),
            ));
            value.take(body);
        } else if let Some((name, is_array)) = header(body) {
            above = table(name, is_array, &mut arrays);
            out.push_str(body);
        } else {
            let key = body.trim_start();
            if key.is_empty() || key.starts_with('#') || is_too_much(out.len(), read) {
                out.push_str(&unescaped(key, false));
            } else {
                out.push_str(&joined(&above, &unescaped(key, false)));
            }
            if let Some((_, right)) = key.split_once('=').filter(|_| !key.starts_with('#')) {
                value.take(right);
            }
        }
        if line.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

/// The name in `[name]` or `[[name]]`, and whether it is an array's.
fn header(line: &str) -> Option<(&str, bool)> {
    let inner = line.trim_start().strip_prefix('[')?;
    let (inner, is_array) = inner.strip_prefix('[').map_or((inner, false), |inner| (inner, true));
    let mut quote = None;
    let (end, _) = inner.char_indices().find(|(_, c)| {
        match c {
            '"' | '\'' if quote.is_none() => quote = Some(*c),
            _ if quote == Some(*c) => quote = None,
            _ => {}
        }
        *c == ']' && quote.is_none()
    })?;
    let rest = inner[end..].strip_prefix(if is_array { "]]" } else { "]" })?.trim_start();
    let name = inner[..end].trim();
    (rest.is_empty() || rest.starts_with('#')).then_some((name, is_array))
}

/// The path of a table, with the positions in the arrays above it.
fn table(name: &str, is_array: bool, arrays: &mut HashMap<String, usize>) -> String {
    let mut path = Path::default();
    let keys = keys(name);
    for (n, key) in keys.iter().enumerate() {
        path.key(key);
        if is_array && n + 1 == keys.len() {
            let count = arrays.entry(path.text.clone()).or_default();
            *count += 1;
            path.index(*count - 1);
        } else if let Some(count) = arrays.get(&path.text) {
            path.index(count - 1);
        }
    }
    // The header has them all.
    path.shown = path.steps.len();
    path.show(false)
}

/// Takes a name apart at its dots, but for those in quotes.
fn keys(name: &str) -> Vec<&str> {
    let (mut keys, mut start, mut quote) = (vec![], 0, None);
    for (at, c) in name.char_indices() {
        match c {
            '"' | '\'' if quote.is_none() => quote = Some(c),
            _ if quote == Some(c) => quote = None,
            '.' if quote.is_none() => {
                keys.push(name[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    keys.push(name[start..].trim());
    keys.truncate(MAX_KEYS);
    keys
}

/// How much of a value is still to come: brackets that are open, or a string of several lines.
#[derive(Default)]
struct Value {
    brackets: usize,
    string: Option<&'static str>,
}

impl Value {
    fn is_open(&self) -> bool {
        self.brackets > 0 || self.string.is_some()
    }

    fn take(&mut self, text: &str) {
        let mut rest = text;
        loop {
            if let Some(end) = self.string {
                let Some(at) = closing(rest, end) else { return };
                rest = &rest[at + end.len()..];
                self.string = None;
            }
            let Some(at) = rest.find(['"', '\'', '[', ']', '{', '}', '#']) else { return };
            rest = &rest[at..];
            let triple = ["\"\"\"", "'''"].into_iter().find(|quotes| rest.starts_with(quotes));
            if let Some(quotes) = triple {
                self.string = Some(quotes);
                rest = &rest[3..];
                continue;
            }
            match rest.as_bytes()[0] {
                b'#' => return,
                b'[' | b'{' => self.brackets += 1,
                b']' | b'}' => self.brackets = self.brackets.saturating_sub(1),
                quote => {
                    let quote = if quote == b'"' { "\"" } else { "'" };
                    // A string of one line ends in it.
                    let Some(at) = closing(&rest[1..], quote) else { return };
                    rest = &rest[1 + at..];
                }
            }
            rest = &rest[1..];
        }
    }
}

/// Where a string ends; a backslash escapes in strings with double quotes.
fn closing(text: &str, end: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let next = at + text[at..].find([end.as_bytes()[0] as char, '\\'])?;
        if text[next..].starts_with('\\') && end.starts_with('"') {
            at = text.ceil_char_boundary((next + 2).min(text.len()));
        } else if text[next..].starts_with(end) {
            return Some(next);
        } else {
            at = next + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_get_their_tables() {
        let rows = [
            ("a = 1\n[b]\n# why\nc = \"x\" # y\n", "a = 1\n[b]\n# why\nb.c = \"x\" # y\n"),
            (
                "[a.b]\nc = 1\n[a.b.\"d.e]\"]\nf = 2",
                "[a.b]\na.b.c = 1\n[a.b.\"d.e]\"]\na.b.\"d.e]\".f = 2",
            ),
            (
                "[[package]]\nname = \"serde\"\n[[package]]\nname = \"返金\"\n[package.meta]\nx = 1\n",
                "[[package]]\npackage[0].name = \"serde\"\n[[package]]\npackage[1].name = \"返金\"\n[package.meta]\npackage[1].meta.x = 1\n",
            ),
            (
                "[a]\nb = [\n  \"[x]\", # ]\n  { c = 1 },\n]\nd = 2\n",
                "[a]\na.b = [\n  \"[x]\", # ]\n  { c = 1 },\n]\na.d = 2\n",
            ),
            (
                "[a]\nb = \"\"\"\n[no]\nc = 1 \\u9000\n\"\"\"\nd = '[e'\nf = 3\n",
                "[a]\na.b = \"\"\"\n[no]\nc = 1 退\n\"\"\"\na.d = '[e'\na.f = 3\n",
            ),
            ("[empty]\n\n[full] # note\nk = 1\n", "[empty]\n\n[full] # note\nfull.k = 1\n"),
            ("[сервер]\nимя = \"Москва\"\r\n", "[сервер]\nсервер.имя = \"Москва\"\n"),
            // Escapes of other scripts, not those of a path.
            ("a = \"\\u9000\\u6b3e C:\\\\new\" # \\n", "a = \"退款 C:\\\\new\" # \\n"),
            ("a = 'C:\\new\\u9000'", "a = 'C:\\new\\u9000'"),
        ];
        for (toml, expected) in rows {
            assert_eq!(flatten(toml), expected, "{toml}");
        }
        // Headers of many keys take no more time than their length.
        let wide = format!("[{}x]\na = 1\n", "x.".repeat(200_000)).repeat(3);
        assert!(flatten(&wide).len() < wide.len() * 2);
    }
}
