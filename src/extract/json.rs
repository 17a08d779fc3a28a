//! JSON made readable without moving its lines: escapes in strings become what they stand for.

use std::borrow::Cow;

/// Replaces `\uXXXX` by its character (many writers escape all but ASCII), `\/` by a slash, and
/// escaped line breaks, tabs and other controls by a space, so that no word is glued to the `n`
/// of `\n`. Escaped quotes and backslashes stay, so strings still end where they did.
pub fn readable(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut readable = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        readable.push_str(&rest[..at]);
        rest = &rest[at..];
        let len = match rest.as_bytes().get(1) {
            Some(b'n' | b't' | b'r' | b'b' | b'f') => {
                readable.push(' ');
                2
            }
            Some(b'/') => {
                readable.push('/');
                2
            }
            Some(b'u') => match escaped_char(rest) {
                Some((c, len)) => {
                    match c {
                        '"' | '\\' => readable.push_str(&rest[..len]),
                        c if c.is_control() => readable.push(' '),
                        c => readable.push(c),
                    }
                    len
                }
                None => {
                    readable.push('\\');
                    1
                }
            },
            Some(b'"' | b'\\') => {
                readable.push_str(&rest[..2]);
                2
            }
            _ => {
                readable.push('\\');
                1
            }
        };
        rest = &rest[len..];
    }
    readable.push_str(rest);
    Cow::Owned(readable)
}

/// The character of `\uXXXX`, or of a pair of surrogates, and the length of its escape.
pub fn escaped_char(text: &str) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
    };
    let first = unit(0)?;
    if let Some(c) = char::from_u32(u32::from(first)) {
        return Some((c, 6));
    }
    char::decode_utf16([first, unit(6)?]).next()?.ok().map(|c| (c, 12))
}

/// Whether a text of unknown kind is one JSON object or array.
pub fn looks_like(text: &str) -> bool {
    let text = text.trim();
    (text.starts_with('{') && text.ends_with('}') || text.starts_with('[') && text.ends_with(']'))
        && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Whether a text of unknown kind has a JSON object on each of its first lines.
pub fn looks_like_lines(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).take(3).peekable();
    lines.peek().is_some()
        && lines.all(|line| {
            line.starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_readable() {
        let rows = [
            (r#"{"a": "b"}"#, r#"{"a": "b"}"#),
            (r#"{"title": "\u9000\u6b3e"}"#, r#"{"title": "退款"}"#),
            (r#""one\ntwo\tthree""#, r#""one two three""#),
            (r#""\ud83d\ude00!""#, r#""😀!""#),
            (r#""\ud83d alone""#, r#""\ud83d alone""#),
            (r#""a\"b\\n\/c""#, r#""a\"b\\n/c""#),
            (r#""\u0022\u005c\u0000\u12""#, r#""\u0022\u005c \u12""#),
            (r#""end\"#, r#""end\"#),
            (r"\u退款", r"\u退款"),
        ];
        for (text, expected) in rows {
            assert_eq!(readable(text), expected, "{text}");
        }
    }

    #[test]
    fn json_is_recognised() {
        let rows = [
            ("{\"a\": [1, 2]}\n", true, true),
            ("[1, 2]", true, false),
            ("{\"a\": 1}\n{\"b\": 2}\n", false, true),
            ("{not json}", false, false),
            ("[link](x)", false, false),
            ("plain", false, false),
            ("", false, false),
        ];
        for (text, one, lines) in rows {
            assert_eq!((looks_like(text), looks_like_lines(text)), (one, lines), "{text}");
        }
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert!(looks_like(&deep), "depth is no danger");
    }
}
