//! What a text is by the look of it, where type and suffix don't say or are wrong.

use super::mime::Kind;
use super::{json, markdown};

/// A type that the start of a text shows beyond doubt, whatever was declared.
pub fn unmistakable(text: &str) -> Option<(&'static str, Kind)> {
    let start = after_comments(text);
    let starts =
        |mark: &str| start.get(..mark.len()).is_some_and(|head| head.eq_ignore_ascii_case(mark));
    if starts("<!doctype html") || starts("<html>") || starts("<html ") || starts("<html\n") {
        return Some(("text/html", Kind::Html));
    }
    if start.starts_with("%PDF-") {
        return Some(("application/pdf", Kind::Binary));
    }
    if start.starts_with("{\\rtf") {
        return Some(("application/rtf", Kind::Binary));
    }
    if start.starts_with("%!PS-Adobe") {
        return Some(("application/postscript", Kind::Binary));
    }
    None
}

/// The best guess at a text of which nothing is known.
pub fn guess(text: &str) -> (&'static str, Kind) {
    if let Some(found) = unmistakable(text) {
        return found;
    }
    let start = text.trim_start();
    if start.starts_with("<?xml") {
        let head = super::clean::head(start, 1024);
        return match () {
            () if head.contains("<svg") => ("image/svg+xml", Kind::Xml),
            () if head.contains("<html") => ("text/html", Kind::Html),
            () => ("application/xml", Kind::Xml),
        };
    }
    if start.starts_with("<svg") {
        return ("image/svg+xml", Kind::Xml);
    }
    if looks_like_html_fragment(text) {
        return ("text/html", Kind::Html);
    }
    if json::looks_like(text) {
        return ("application/json", Kind::Json);
    }
    if json::looks_like_lines(text) {
        return ("application/x-ndjson", Kind::JsonLines);
    }
    if start.starts_with("#!") {
        return ("text/x-shellscript", Kind::Code);
    }
    if markdown::looks_like(text) {
        return ("text/markdown", Kind::Markdown);
    }
    if looks_like_log(text) {
        return ("text/x-log", Kind::Log);
    }
    ("text/plain", Kind::Plain)
}

/// Whether there is any tag in a text that was declared as HTML.
pub fn has_tags(text: &str) -> bool {
    text.match_indices('<').any(|(at, _)| {
        let rest = &text.as_bytes()[at + 1..];
        let rest = rest.strip_prefix(b"/").unwrap_or(rest);
        rest.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'!')
    })
}

/// A text that begins with a block's tag and has its end tag, too.
fn looks_like_html_fragment(text: &str) -> bool {
    let start = text.trim_start();
    ["head", "body", "div", "p", "h1", "h2", "table", "ul", "article", "section", "main", "title"]
        .iter()
        .any(|tag| {
            start.strip_prefix('<').and_then(|rest| rest.strip_prefix(tag)).is_some_and(|rest| {
                rest.starts_with(['>', ' ', '\n']) && text.contains(&format!("</{tag}>"))
            })
        })
}

/// Most of the first lines begin with a time or a level.
fn looks_like_log(text: &str) -> bool {
    let (mut stamped, mut all) = (0, 0);
    for line in text.lines().filter(|line| !line.is_empty()).take(20) {
        all += 1;
        let head = line.trim_start_matches('[');
        let clock = head.bytes().take(32).filter(|b| *b == b':').count() >= 2
            && head.bytes().take(32).filter(u8::is_ascii_digit).count() >= 6;
        let level = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"].iter().any(|l| head.starts_with(l));
        stamped += usize::from(clock || level);
    }
    all >= 3 && stamped * 10 >= all * 7
}

/// Skips white space, an XML declaration and comments, which may stand before a doctype.
fn after_comments(text: &str) -> &str {
    let mut rest = text.trim_start();
    for _ in 0..8 {
        let after = if rest.starts_with("<!--") {
            rest.split_once("-->").map(|(_, after)| after)
        } else if rest.starts_with("<?xml") {
            rest.split_once("?>").map(|(_, after)| after)
        } else {
            None
        };
        match after {
            Some(after) => rest = after.trim_start(),
            None => break,
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_recognised() {
        let rows = [
            ("<!DOCTYPE html><p>x", "text/html"),
            ("\n<!-- c -->\n<HTML lang=\"th\">x", "text/html"),
            ("<?xml version='1.0'?>\n<!DOCTYPE html PUBLIC><html/>", "text/html"),
            ("<div class=\"a\">text</div>", "text/html"),
            ("<?xml version='1.0'?><feed/>", "application/xml"),
            ("<svg xmlns='x'/>", "image/svg+xml"),
            ("<person> is a placeholder", "text/plain"),
            ("{\"a\": 1}", "application/json"),
            ("{\"a\": 1}\n{\"a\": 2}\n", "application/x-ndjson"),
            ("{a template}", "text/plain"),
            ("#!/usr/bin/env python\n", "text/x-shellscript"),
            ("# Title\n\ntext\n\n## More\n", "text/markdown"),
            (
                "2026-01-12T08:30:00Z WARN a\n2026-01-12T08:30:01Z INFO b\n2026-01-12T08:30:02Z INFO c\n",
                "text/x-log",
            ),
            ("[INFO] a\n[WARN] b\n[INFO] c\n", "text/x-log"),
            ("%PDF-1.7 …", "application/pdf"),
            ("退款须知", "text/plain"),
            ("", "text/plain"),
        ];
        for (text, expected) in rows {
            assert_eq!(guess(text).0, expected, "{text}");
        }
    }

    #[test]
    fn tags_are_told_from_angle_brackets() {
        let rows = [
            ("<p>x", true),
            ("a </b>", true),
            ("<!-- c -->", true),
            ("a < b and c > d", false),
            ("1 <2", false),
            ("", false),
        ];
        for (text, expected) in rows {
            assert_eq!(has_tags(text), expected, "{text}");
        }
    }
}
