//! Control characters out, and the cut at a limit. Line numbers stay as they are.

use std::borrow::Cow;

/// Makes controls other than tab and line breaks harmless: each becomes a space. Escape sequences
/// of terminals go without a trace (`\x1b[31mERROR` is `ERROR`), and so do NULs that are the other
/// half of UTF-16 taken for bytes. A byte order mark at the start goes too.
pub fn clean(text: String) -> String {
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    };
    // Not one by one, so that the compiler looks at many bytes at once.
    let has_control = |few: &[u8]| few.iter().fold(false, |has, byte| has | is_control(*byte));
    let has_controls = text.as_bytes().chunks(64).any(has_control);
    if !has_controls && (text.is_ascii() || !text.contains(is_c1)) {
        return text;
    }
    let nuls = text.bytes().filter(|b| *b == 0).count();
    let halves = nuls * 5 >= text.len() * 2;
    without(&text, halves, |c| c.is_control() && !matches!(c, '\t' | '\n' | '\r'))
}

/// The same for text that a reader took out of markup, where a character reference or an escape may
/// stand for anything: tabs and line feeds are all that stays.
pub fn decoded(text: &str) -> Cow<'_, str> {
    let is_wrong = |c: char| c.is_control() && !matches!(c, '\t' | '\n');
    if !text.contains(is_wrong) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(without(&text.replace("\r\n", "\n"), false, is_wrong))
}

/// Puts a space for each wrong character, and nothing for an escape sequence and, with `halves`, a NUL.
fn without(text: &str, halves: bool, is_wrong: impl Fn(char) -> bool) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(&is_wrong) {
        clean.push_str(&rest[..at]);
        rest = &rest[at..];
        let escape = escape_len(rest);
        if escape > 0 {
            rest = &rest[escape..];
            continue;
        }
        if !(halves && rest.starts_with('\0')) {
            clean.push(' ');
        }
        rest = rest.get(rest.chars().next().map_or(0, char::len_utf8)..).unwrap_or_default();
    }
    clean.push_str(rest);
    clean
}

fn is_control(byte: u8) -> bool {
    (byte < 0x20) & !matches!(byte, b'\t' | b'\n' | b'\r') | (byte == 0x7f)
}

fn is_c1(c: char) -> bool {
    ('\u{80}'..='\u{9f}').contains(&c)
}

/// Length of the terminal escape sequence (ECMA-48 CSI, or OSC) at the start, 0 if there is none.
/// Neither reaches over a line's end.
fn escape_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes {
        [0x1b, b'[', rest @ ..] => rest
            .iter()
            .take(64)
            .position(|b| !matches!(b, 0x20..=0x3f))
            .filter(|at| matches!(rest[*at], 0x40..=0x7e))
            .map_or(0, |at| at + 3),
        [0x1b, b']', rest @ ..] => {
            rest.iter().take(256).position(|b| matches!(b, 0x07 | 0x1b | b'\n')).map_or(0, |at| {
                match rest[at] {
                    0x07 => at + 3,
                    0x1b if rest.get(at + 1) == Some(&b'\\') => at + 4,
                    _ => 0,
                }
            })
        }
        _ => 0,
    }
}

/// The head of a text within `max` bytes, cut at a line's end where one is near.
pub fn head(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let cut = boundary(text, max);
    let near = boundary(text, cut.saturating_sub(4096));
    let cut = text[near..cut].rfind('\n').map_or(cut, |at| near + at + 1);
    &text[..cut]
}

/// The tail of a text within `max` bytes, from a line's beginning where one is near.
pub fn tail(text: &str, max: usize) -> &str {
    let least = text.len().saturating_sub(max);
    let cut = (least..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let near = &text[cut..boundary(text, cut.saturating_add(4096).min(text.len()))];
    let cut = if cut == 0 { 0 } else { near.find('\n').map_or(cut, |at| cut + at + 1) };
    &text[cut..]
}

/// The last character boundary that isn't after `at`.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn controls_become_harmless() {
        let rows = [
            ("plain text\twith\r\nlines\n", "plain text\twith\r\nlines\n"),
            ("before\0nulword\0after", "before nulword after"),
            ("n\0u\0l\0w\0o\0r\0d\0", "nulword"),
            ("\u{feff}mark", "mark"),
            ("\x1b[31mERROR\x1b[0m disk full", "ERROR disk full"),
            ("\x1b]0;title\x07prompt", "prompt"),
            ("\x1b]8;;https://x.example\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1b[31\n\x1b]broken\n", " [31\n ]broken\n"),
            ("form\x0cfeed\x7f", "form feed "),
            ("c1 \u{85}退款\u{9b}", "c1  退款 "),
            ("\x1b", " "),
        ];
        for (text, expected) in rows {
            assert_eq!(clean(text.into()), expected, "{text:?}");
        }
    }

    #[test]
    fn what_markup_stands_for_keeps_tabs_and_lines_only() {
        let rows = [
            ("plain\ttext\n", "plain\ttext\n"),
            ("a\r\nb\rc\u{1}d\u{9b}", "a\nb c d "),
            ("\x1b[31mred\x1b[0m\0", "red "),
        ];
        for (text, expected) in rows {
            assert_eq!(decoded(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_head_ends_at_a_line_or_character() {
        let rows = [
            ("one\ntwo\nthree", 9, "one\ntwo\n"),
            ("one\ntwo\nthree", 99, "one\ntwo\nthree"),
            ("退款退款", 7, "退款"),
            ("退款", 0, ""),
        ];
        for (text, max, expected) in rows {
            assert_eq!(head(text, max), expected);
        }
    }

    #[test]
    fn the_tail_begins_at_a_line_or_character() {
        let rows = [
            ("one\ntwo\nthree", 9, "three"),
            ("one\ntwo\nthree", 99, "one\ntwo\nthree"),
            ("退款退款", 7, "退款"),
            ("退款", 0, ""),
        ];
        for (text, max, expected) in rows {
            assert_eq!(tail(text, max), expected);
        }
    }

    proptest! {
        #[test]
        fn lines_stay(text in "[a\u{0}\u{1b}\\[\\]0;m\u{7}\n\r退\u{85}]{0,80}") {
            let cleaned = clean(text.clone());
            prop_assert_eq!(cleaned.matches('\n').count(), text.matches('\n').count());
            prop_assert!(!cleaned.chars().any(|c| c.is_control() && !"\t\r\n".contains(c)));
        }
    }
}
