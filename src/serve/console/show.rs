//! Text of strangers and numbers, as the pages show them.

use std::borrow::Cow;
use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use crate::search::snippet::{clean, is_shown};

/// One line of a stranger's: what isn't printable is seen as its number instead of doing something.
pub fn line(text: &str) -> Cow<'_, str> {
    let plain = |c: char| is_shown(c) && c != '\n' && c != '\t';
    if text.chars().all(plain) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(' '),
            c if plain(c) => shown.push(c),
            c => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    Cow::Owned(shown)
}

/// Text of many lines, as [`line`] has one.
pub fn block(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_shown) {
        return Cow::Borrowed(text);
    }
    let lines = text.split('\n').map(|each| {
        let tabs = each.trim_end_matches('\r').split('\t').map(line);
        tabs.collect::<Vec<_>>().join("\t")
    });
    Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
}

/// A snippet with what matched marked. Places are in Unicode scalar values.
pub fn highlighted(snippet: &str, highlights: &[(usize, usize)]) -> Markup {
    let mut pieces: Vec<(bool, String)> = vec![];
    let mut was_break = false;
    for (at, c) in snippet.chars().enumerate() {
        // Blank lines take room and tell nothing.
        let is_break = c == '\n' || (was_break && c.is_whitespace());
        if is_break && was_break {
            continue;
        }
        was_break = is_break;
        let marked = highlights.iter().any(|(from, to)| (*from..*to).contains(&at));
        match pieces.last_mut() {
            Some((last, piece)) if *last == marked => piece.push(c),
            _ => pieces.push((marked, c.to_string())),
        }
    }
    html! {
        @for (marked, piece) in &pieces {
            @if *marked { mark { (clean(piece)) } } @else { (clean(piece)) }
        }
    }
}

/// A URI as people read it: what is percent-encoded text is shown as the text, as browsers do.
pub fn uri(uri: &str) -> Cow<'_, str> {
    if uri.contains('%')
        && let Ok(decoded) = percent_encoding::percent_decode_str(uri).decode_utf8()
        && decoded.chars().all(|c| is_shown(c) && !c.is_whitespace() && !"%?#&=+\"<>".contains(c))
        && decoded.matches('/').count() == uri.matches('/').count()
    {
        return Cow::Owned(decoded.into_owned());
    }
    line(uri)
}

/// A time, which the page's script tells in the reader's own words.
pub fn time(at: DateTime<Utc>) -> Markup {
    let (exact, shown) = (at.to_rfc3339(), at.format("%Y-%m-%d %H:%M:%S UTC").to_string());
    html! { time datetime=(exact) title=(shown) { (shown) } }
}

pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let (mut value, mut unit) = (bytes as f64 / 1024.0, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A number with thin spaces between its thousands.
pub fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push('\u{202f}');
        }
        shown.push(digit);
    }
    shown
}

pub fn milliseconds(milliseconds: f64) -> String {
    match milliseconds {
        ..10.0 => format!("{milliseconds:.1} ms"),
        ..10_000.0 => format!("{milliseconds:.0} ms"),
        _ => format!("{:.1} s", milliseconds / 1_000.0),
    }
}

pub fn seconds(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A local address with parameters; those without a value are left out.
pub fn href(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in parameters.iter().filter(|(_, value)| !value.is_empty()) {
        query.append_pair(name, value);
    }
    match query.finish() {
        query if query.is_empty() => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_is_shown_as_it_is() {
        for (text, expected) in [
            ("退款 refund", "退款 refund"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("a\u{202e}b\u{200b}", "a\\u{202e}b\\u{200b}"),
            ("a\nb\tc", "a b c"),
        ] {
            assert_eq!(line(text), expected);
        }
        for (exact, shown) in [
            ("handbook:///zh/%E9%80%80%E6%AC%BE.md", "handbook:///zh/退款.md"),
            ("x://a%20b", "x://a%20b"),
            ("x://a%2Fb", "x://a%2Fb"),
            ("x://%E9%80", "x://%E9%80"),
            ("x://%E2%80%AE", "x://%E2%80%AE"),
            ("x://a\u{1b}", "x://a\\u{1b}"),
        ] {
            assert_eq!(uri(exact), shown);
        }
        assert_eq!(block("a\tb\r\nc\u{1b}\n"), "a\tb\nc\\u{1b}\n");
        assert_eq!(block("plain\n\ttext\n"), "plain\n\ttext\n");
    }

    #[test]
    fn what_matched_is_marked_and_everything_escaped() {
        let shown = highlighted("a <退款> & b", &[(3, 5), (9, 10)]).into_string();
        assert_eq!(shown, "a &lt;<mark>退款</mark>&gt; &amp; <mark>b</mark>");
        assert_eq!(highlighted("a\u{202e}b", &[(7, 9)]).into_string(), "ab");
        assert_eq!(highlighted("a\n\n \nb", &[(5, 6)]).into_string(), "a\n<mark>b</mark>");
    }

    #[test]
    fn numbers_are_readable() {
        let sizes = [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB")];
        for (size, shown) in sizes {
            assert_eq!(bytes(size), shown);
        }
        for (value, shown) in
            [(7, "7"), (1_000, "1\u{202f}000"), (1_234_567, "1\u{202f}234\u{202f}567")]
        {
            assert_eq!(number(value), shown);
        }
        for (value, shown) in [(0.25, "0.2 ms"), (41.6, "42 ms"), (12_340.0, "12.3 s")] {
            assert_eq!(milliseconds(value), shown);
        }
        for (value, shown) in [(5, "5 s"), (125, "2 min"), (7_300, "2 h 1 min"), (864_000, "10 d")]
        {
            assert_eq!(seconds(value), shown);
        }
        assert_eq!(href("/x", &[("a", "b c"), ("d", ""), ("e", "退")]), "/x?a=b+c&e=%E9%80%80");
        assert_eq!(href("/x", &[("d", "")]), "/x");
    }
}
