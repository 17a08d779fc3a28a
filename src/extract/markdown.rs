//! Markdown: headings and title. The text itself stays as it is.

use super::outline::Outline;
use crate::model::Heading;

/// Finds ATX and setext headings (CommonMark 4.2, 4.3) outside of fenced code and front matter.
pub fn outline(text: &str) -> Outline {
    let mut headings = vec![];
    let front_matter = front_matter_len(text);
    let mut fence: Option<Fence> = None;
    // The one line of the paragraph before, which an underline would make a heading.
    let mut paragraph: Option<(usize, &str)> = None;
    let mut paragraph_lines = 0;
    let mut at = front_matter;
    for raw in text[front_matter..].split_inclusive('\n') {
        let start = at;
        at += raw.len();
        let line = raw.trim_end();
        if let Some(open) = fence {
            if open.is_closed_by(line) {
                fence = None;
            }
            continue;
        }
        if let Some(open) = Fence::open(line) {
            (fence, paragraph, paragraph_lines) = (Some(open), None, 0);
        } else if let Some((level, title)) = atx(line) {
            headings.push(Heading { level, text: plain(title), at: start });
            (paragraph, paragraph_lines) = (None, 0);
        } else if let (Some(level), Some((start, title))) = (underline(line), paragraph) {
            headings.push(Heading { level, text: plain(title), at: start });
            (paragraph, paragraph_lines) = (None, 0);
        } else if line.is_empty() {
            (paragraph, paragraph_lines) = (None, 0);
        } else {
            paragraph = (paragraph_lines == 0 && can_be_setext(line)).then_some((start, line));
            paragraph_lines += 1;
        }
    }
    headings.retain(|heading| !heading.text.is_empty());
    let title = front_matter_title(&text[..front_matter])
        .or_else(|| headings.first().map(|heading| heading.text.clone()));
    Outline { title, headings }
}

/// An open code fence (CommonMark 4.5). Deeper indents than three spaces are taken too, as they
/// stand in lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    mark: u8,
    len: usize,
}

impl Fence {
    /// The fence that a line opens.
    pub fn open(line: &str) -> Option<Self> {
        let (mark, len, rest) = Self::marks(line)?;
        // "```code``` and more" is inline code.
        (!(mark == b'`' && rest.contains('`'))).then_some(Self { mark, len })
    }

    pub fn is_closed_by(self, line: &str) -> bool {
        Self::marks(line).is_some_and(|(mark, len, rest)| {
            mark == self.mark && len >= self.len && rest.trim().is_empty()
        })
    }

    fn marks(line: &str) -> Option<(u8, usize, &str)> {
        let line = line.trim_start_matches([' ', '\t', '>']);
        let mark = *line.as_bytes().first().filter(|b| matches!(b, b'`' | b'~'))?;
        let len = line.bytes().take_while(|b| *b == mark).count();
        (len >= 3).then(|| (mark, len, &line[len..]))
    }
}

/// Level and raw text of an ATX heading.
fn atx(line: &str) -> Option<(u8, &str)> {
    let body = line.trim_start_matches(' ');
    if line.len() - body.len() > 3 {
        return None;
    }
    let level = body.bytes().take_while(|b| *b == b'#').count();
    let rest = &body[level..];
    if !(1..=6).contains(&level) || !(rest.is_empty() || rest.starts_with([' ', '\t', '\u{3000}']))
    {
        return None;
    }
    let rest = rest.trim();
    let open = rest.trim_end_matches('#');
    let rest = if open.is_empty() || open.ends_with([' ', '\t']) { open.trim_end() } else { rest };
    Some((level as u8, rest))
}

fn underline(line: &str) -> Option<u8> {
    let body = line.trim_start_matches(' ');
    if line.len() - body.len() > 3 {
        return None;
    }
    match body.as_bytes() {
        marks @ [b'=', ..] if marks.iter().all(|b| *b == b'=') => Some(1),
        marks @ [b'-', _, ..] if marks.iter().all(|b| *b == b'-') => Some(2),
        _ => None,
    }
}

/// Whether a line can be the text of a setext heading, and not a list item, quote or table row.
fn can_be_setext(line: &str) -> bool {
    let body = line.trim_start();
    line.len() - body.len() <= 3
        && !body.starts_with(['>', '|', '<'])
        && !["- ", "* ", "+ "].iter().any(|mark| body.starts_with(mark))
        && !body.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(". ")
}

/// A heading's text as people read it: no emphasis, link targets, code marks, attribute lists.
fn plain(title: &str) -> String {
    // No title is that long, and looking for each bracket's mate takes the square of the length.
    let title = super::clean::head(title, 1024);
    if !title.contains(['\\', '`', '*', '_', '[', '{']) {
        return super::outline::title_line(title);
    }
    let title = match title.rfind("{#") {
        Some(at) if title.ends_with('}') => title[..at].trim_end(),
        _ => title,
    };
    let has_links = title.contains("](");
    let mut text = String::with_capacity(title.len());
    let mut rest = title;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\\' => {
                if let Some(escaped) = rest.chars().next().filter(char::is_ascii_punctuation) {
                    text.push(escaped);
                    rest = &rest[1..];
                } else {
                    text.push('\\');
                }
            }
            '*' if text.ends_with(' ') && rest.starts_with(' ') => text.push('*'),
            '`' | '*' => {}
            '_' if !text.ends_with(char::is_alphanumeric)
                || !rest.starts_with(char::is_alphanumeric) => {}
            '!' if rest.starts_with('[') => {}
            '[' if has_links => {
                // `[text](target)` is its text; brackets of another kind stay.
                match rest.split_once("](") {
                    Some((label, after)) if !label.contains('[') => match after.split_once(')') {
                        Some((_, after)) => {
                            text.push_str(&label.replace(['`', '*'], ""));
                            rest = after;
                        }
                        None => text.push('['),
                    },
                    _ => text.push('['),
                }
            }
            _ => text.push(c),
        }
    }
    super::outline::title_line(&text)
}

/// Length of YAML (`---`) or TOML (`+++`) front matter, its marks included; 0 if there is none.
pub fn front_matter_len(text: &str) -> usize {
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next() else { return 0 };
    let mark = first.trim_end();
    if mark != "---" && mark != "+++" {
        return 0;
    }
    let mut at = first.len();
    for (n, line) in lines.enumerate() {
        at += line.len();
        let end = line.trim_end();
        if end == mark || (mark == "---" && end == "...") {
            return at;
        }
        // A rule at the start of a page isn't front matter, whose first line has a key.
        let is_key = |c: char| c.is_alphanumeric() || "_-\"' #".contains(c);
        if n == 0 && !(line.contains([':', '=']) && line.starts_with(is_key)) || n > 500 {
            return 0;
        }
    }
    0
}

fn front_matter_title(front_matter: &str) -> Option<String> {
    front_matter.lines().find_map(|line| {
        let value = line.strip_prefix("title:").or_else(|| {
            line.strip_prefix("title").and_then(|rest| rest.trim_start().strip_prefix('='))
        })?;
        let value = value.trim();
        let quoted =
            ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
        let value = super::outline::title_line(quoted.unwrap_or(value));
        (!value.is_empty() && value != "|" && value != ">").then_some(value)
    })
}

/// Whether a text of unknown kind is Markdown: it has headings as people write them, and not only
/// lines that begin with `#`, which are comments in many languages.
pub fn looks_like(text: &str) -> bool {
    let head = super::clean::head(text, 16 << 10);
    if head.starts_with("#!") {
        return false;
    }
    let (mut headings, mut others, mut code) = (0, 0, 0);
    let mut blank_before = true;
    for line in head.lines() {
        if blank_before && atx(line).is_some_and(|(_, title)| !title.is_empty()) {
            headings += 1;
        }
        others += usize::from(
            line.starts_with("- ")
                || line.starts_with("* ")
                || line.starts_with("> ")
                || line.starts_with("| ")
                || line.starts_with("```")
                || line.contains("](")
                || line.contains("**"),
        );
        code += usize::from(line.ends_with([';', '{', '}']) || line.contains(" = "));
        blank_before = line.trim().is_empty();
    }
    headings > 0 && (headings + others > 1 && code <= headings + others)
        || (headings > 0 && code == 0 && head.lines().nth(1).is_some_and(|l| l.trim().is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, title: Option<&str>, headings: &[(u8, &str)]) {
        let outline = outline(text);
        assert_eq!(outline.title.as_deref(), title, "{text}");
        let found: Vec<_> = outline.headings.iter().map(|h| (h.level, h.text.as_str())).collect();
        assert_eq!(found, headings, "{text}");
        for heading in &outline.headings {
            assert!(heading.at == 0 || text.as_bytes()[heading.at - 1] == b'\n', "{text}");
        }
    }

    #[test]
    fn headings_are_found() {
        check("# Refunds\n\ntext\n## Fees ##\n", Some("Refunds"), &[(1, "Refunds"), (2, "Fees")]);
        check("退款政策\n====\n\n期限\n----\n", Some("退款政策"), &[(1, "退款政策"), (2, "期限")]);
        check("```sh\n# comment\n```\n# Real\n", Some("Real"), &[(1, "Real")]);
        check("~~~~\n```\n# no\n~~~\n# no\n~~~~\n# Yes\n", Some("Yes"), &[(1, "Yes")]);
        check("```\n# never closed\n", None, &[]);
        check("#hashtag\n####### seven\n    # code\n", None, &[]);
        check("- item\n---\ntext\n\n---\n", None, &[]);
        check("two\nlines\n---\n", None, &[]);
        check("| a |\n---\n", None, &[]);
        check("# \n## x\r\n", Some("x"), &[(2, "x")]);
        check("", None, &[]);
        check("#　全角スペース\n", Some("全角スペース"), &[(1, "全角スペース")]);
    }

    #[test]
    fn headings_read_plain() {
        let rows = [
            ("# **Bold** and `code`", "Bold and code"),
            ("# The [guide](https://x.example/a_b)", "The guide"),
            ("# Install {#install .wide}", "Install"),
            ("# snake_case and _emphasis_", "snake_case and emphasis"),
            ("# C# and F#", "C# and F#"),
            ("# 2 * 3", "2 * 3"),
            ("# 1\\. Start", "1. Start"),
            ("# ![logo](x.png) Name", "logo Name"),
            ("# [draft] plan", "[draft] plan"),
            ("# Array[0](x", "Array[0](x"),
        ];
        for (line, expected) in rows {
            assert_eq!(outline(line).title.as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn front_matter_has_the_title() {
        check(
            "---\ntitle: \"Về hoàn tiền\"\n---\n# Other\n",
            Some("Về hoàn tiền"),
            &[(1, "Other")],
        );
        check("+++\ntitle = 'Возврат'\n+++\ntext", Some("Возврат"), &[]);
        check("---\nlayout: page\n---\n\n# Head\n", Some("Head"), &[(1, "Head")]);
        check("---\n\n# Head\n\n---\n", Some("Head"), &[(1, "Head")]);
        check("---\nkey: value\nnever closed\n", None, &[]);
    }

    #[test]
    fn markdown_is_told_from_code() {
        let rows = [
            ("# Title\n\nSome text with a [link](x).\n", true),
            ("# Title\n\nText.\n\n## More\n", true),
            ("# 标题\n\n正文\n", true),
            ("#!/bin/sh\n# comment\n\nfoo\n", false),
            ("# comment\nx = 1\n# other\ny = 2\n", false),
            ("# comment\n\nx = 1\ny = 2\n", false),
            ("plain text\nof two lines\n", false),
        ];
        for (text, expected) in rows {
            assert_eq!(looks_like(text), expected, "{text}");
        }
    }
}
