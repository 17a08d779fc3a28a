//! Title and headings of a text, and of the light markups other than Markdown.

use super::clean;
use crate::model::Heading;

/// What the structure of a text is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outline {
    pub title: Option<String>,
    pub headings: Vec<Heading>,
}

impl Outline {
    fn of(headings: Vec<Heading>) -> Self {
        Self { title: headings.first().map(|heading| heading.text.clone()), headings }
    }
}

/// Longest title or heading that is kept, in characters: longer ones are paragraphs gone astray.
const MAX_TITLE_CHARS: usize = 200;

/// A title on one line, with single spaces and no end of words.
pub fn title_line(text: &str) -> String {
    let mut line = String::new();
    for word in clean::decoded(text).split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > MAX_TITLE_CHARS {
            break;
        }
    }
    match line.char_indices().nth(MAX_TITLE_CHARS) {
        Some((at, _)) => line[..at].to_owned() + "…",
        None => line,
    }
}

/// reStructuredText: a line underlined by at least as many of one mark; the marks' order of
/// appearance gives the level.
pub fn restructured(text: &str) -> Outline {
    let mut headings = vec![];
    let mut styles: Vec<(u8, bool)> = vec![];
    let mut lines: [(usize, &str); 2] = [(0, ""), (0, "")];
    let mut at = 0;
    for raw in text.split_inclusive('\n') {
        let line = raw.trim_end();
        let [over, (start, title)] = lines;
        if let Some(mark) = rule(line)
            && !title.trim().is_empty()
            && rule(title).is_none()
            && line.len() >= title.trim().chars().count().min(4)
            && (over.1.is_empty() || rule(over.1) == Some(mark))
        {
            let style = (mark, rule(over.1).is_some());
            let level = styles.iter().position(|known| *known == style).unwrap_or_else(|| {
                styles.push(style);
                styles.len() - 1
            });
            let start = if style.1 { over.0 } else { start };
            let level = (level + 1).min(6) as u8;
            headings.push(Heading { level, text: title_line(title), at: start });
        }
        lines = [lines[1], (at, line)];
        at += raw.len();
    }
    Outline::of(headings)
}

/// The mark of a line that is nothing but three or more of it.
fn rule(line: &str) -> Option<u8> {
    let mark = *line.as_bytes().first().filter(|b| b"=-`:'\"~^_*+#<>.".contains(b))?;
    (line.len() >= 3 && line.bytes().all(|b| b == mark)).then_some(mark)
}

/// AsciiDoc (`== Section`) and org (`** Section`): as many marks as the level.
pub fn marked(text: &str, mark: u8) -> Outline {
    let mut headings = vec![];
    let mut title = None;
    let mut at = 0;
    let mut block: Option<&str> = None;
    for raw in text.split_inclusive('\n') {
        let line = raw.trim_end();
        let delimiter = mark == b'=' && (line == "----" || line == "....");
        let lower = line.to_ascii_lowercase();
        if let Some(open) = block {
            if line == open || (mark == b'*' && lower.starts_with("#+end_")) {
                block = None;
            }
        } else if delimiter || (mark == b'*' && lower.starts_with("#+begin_")) {
            block = Some(line);
        } else if mark == b'*' && lower.starts_with("#+title:") {
            title = Some(title_line(&line["#+title:".len()..]));
        } else {
            let level = line.bytes().take_while(|b| *b == mark).count();
            if (1..=6).contains(&level) && line[level..].starts_with(' ') {
                let text = title_line(&line[level..]);
                headings.push(Heading { level: level as u8, text, at });
            }
        }
        at += raw.len();
    }
    headings.retain(|heading| !heading.text.is_empty());
    let title = title.filter(|title| !title.is_empty());
    Outline { title: title.or_else(|| Outline::of(headings.clone()).title), headings }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(outline: &Outline) -> Vec<(u8, &str, usize)> {
        outline.headings.iter().map(|h| (h.level, h.text.as_str(), h.at)).collect()
    }

    #[test]
    fn restructured_text_has_headings() {
        let outline =
            restructured("=====\nTitle\n=====\n\nIntro\n-----\ntext\n\n退款\n----\n\nDeep\n~~~~\n");
        assert_eq!(outline.title.as_deref(), Some("Title"));
        assert_eq!(
            found(&outline),
            [(1, "Title", 0), (2, "Intro", 19), (2, "退款", 37), (3, "Deep", 50)]
        );
        assert_eq!(restructured("text\n\n----\n\nmore\n").headings, []);
    }

    #[test]
    fn asciidoc_and_org_have_headings() {
        let outline = marked("= Guide\n\n== Setup\n----\n== code\n----\n=== Deep\n", b'=');
        assert_eq!(found(&outline), [(1, "Guide", 0), (2, "Setup", 9), (3, "Deep", 36)]);
        let outline = marked("#+TITLE: Notes\n* One\n#+BEGIN_SRC\n* no\n#+END_SRC\n** Two\n", b'*');
        assert_eq!(outline.title.as_deref(), Some("Notes"));
        assert_eq!(found(&outline), [(1, "One", 15), (2, "Two", 48)]);
    }

    #[test]
    fn titles_are_short_and_on_one_line() {
        assert_eq!(title_line("  a\n b\tc "), "a b c");
        assert_eq!(title_line(&"退".repeat(300)).chars().count(), MAX_TITLE_CHARS + 1);
    }
}
