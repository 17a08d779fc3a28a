//! The text of an opened file while it is written: Markdown-like, with headings and pages.

use crate::extract::clean;
use crate::extract::outline::title_line;
use crate::model::{Format, Heading, Page};

/// How many headings, pages and notes a document may have; a file with more is hostile or a list.
const MAX_MARKS: usize = 20_000;

/// What a reader makes of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    pub text: String,
    pub format: Format,
    pub title: Option<String>,
    pub headings: Vec<Heading>,
    pub pages: Vec<Page>,
    /// The type that the content turned out to be of, where its bytes alone didn't tell.
    pub mime_type: Option<&'static str>,
    pub notes: Vec<String>,
    /// Whether text was left out because of the limit.
    pub truncated: bool,
    limit: usize,
}

impl Draft {
    /// An empty one that takes at most `limit` bytes of text.
    pub fn new(limit: usize) -> Self {
        Self { format: Format::Markdown, limit, ..Self::default() }
    }

    /// Whether nothing more is taken, so that a reader may stop.
    pub fn is_full(&self) -> bool {
        self.truncated
    }

    /// Bytes of text that are still taken.
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.text.len())
    }

    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Sets the title, unless there is one.
    pub fn title(&mut self, title: &str) {
        let title = title_line(title);
        if self.title.is_none() && !title.is_empty() {
            self.title = Some(title);
        }
    }

    pub fn note(&mut self, note: impl Into<String>) {
        let note = one_line(&note.into());
        if self.notes.len() < 16 && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Begins a page (slide, sheet), which may have a name.
    pub fn page(&mut self, number: u32, label: Option<&str>) {
        self.blank_line();
        if self.pages.len() < MAX_MARKS {
            let label = label.map(title_line).filter(|label| !label.is_empty());
            self.pages.push(Page { at: self.text.len(), number, label });
        }
    }

    /// Adds a heading on a line of its own; 1 is the topmost level.
    pub fn heading(&mut self, level: u8, text: &str) {
        let text = one_line(text);
        if text.is_empty() {
            return;
        }
        self.blank_line();
        let at = self.text.len();
        let level = level.clamp(1, 6);
        self.push(&"#".repeat(level.into()));
        self.push(" ");
        self.push(&text);
        self.push("\n");
        if self.headings.len() < MAX_MARKS && !self.truncated {
            self.headings.push(Heading { level, text: title_line(&text), at });
        }
    }

    /// Adds a paragraph; its line breaks stay.
    pub fn paragraph(&mut self, text: &str) {
        let text = text.trim_matches(|c: char| c.is_whitespace() || c.is_control());
        if text.is_empty() {
            return;
        }
        self.blank_line();
        self.push(text);
        self.push("\n");
    }

    /// Adds a list item below the one before; 0 is the outermost level.
    pub fn item(&mut self, depth: usize, mark: &str, text: &str) {
        let text = one_line(text);
        if text.is_empty() {
            return;
        }
        if !self.ends_in_item() {
            self.blank_line();
        }
        self.push(&"  ".repeat(depth.min(8)));
        self.push(mark);
        self.push(" ");
        self.push(&text);
        self.push("\n");
    }

    /// Adds a line below the one before, of whatever kind.
    pub fn line(&mut self, text: &str) {
        self.push(text);
        self.push("\n");
    }

    /// Adds a table whose first row is its header. A table of one column is a list of paragraphs.
    pub fn table(&mut self, rows: &[Vec<String>]) {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        if columns < 2 {
            rows.iter().flatten().for_each(|cell| self.paragraph(cell));
            return;
        }
        self.blank_line();
        for (n, row) in rows.iter().filter(|row| row.iter().any(|c| !c.is_empty())).enumerate() {
            if self.truncated {
                return;
            }
            self.row(row);
            if n == 0 {
                let rule = "| --- ".repeat(row.len().max(1));
                self.push(&rule);
                self.push("|\n");
            }
        }
    }

    /// Adds a table's row.
    pub fn row(&mut self, cells: &[String]) {
        let mut line = String::new();
        for cell in cells {
            line.push_str("| ");
            for word in cell.split_whitespace() {
                line.push_str(&word.replace('|', "\\|"));
                line.push(' ');
            }
        }
        line.push_str("|\n");
        self.push(&line);
    }

    /// Adds code between fences.
    pub fn code(&mut self, language: &str, code: &str) {
        if code.trim().is_empty() {
            return;
        }
        self.blank_line();
        let fence = if code.contains("```") { "~~~~" } else { "```" };
        self.push(&format!("{fence}{language}\n{}\n{fence}\n", code.trim_end()));
    }

    /// Takes over what another reader made, its headings at least `below` levels down.
    pub fn append(&mut self, text: &str, headings: &[Heading], below: u8) {
        if text.trim().is_empty() {
            return;
        }
        self.blank_line();
        let mut at = self.text.len();
        self.push(text);
        if !self.text.ends_with('\n') {
            self.push("\n");
        }
        let room = MAX_MARKS.saturating_sub(self.headings.len());
        let end = self.text.len();
        let mut from = 0;
        let moved = headings.iter().map(|heading| {
            // What is no text is gone before it.
            let before = text.get(from..heading.at).unwrap_or_default();
            at += clean::decoded(before).len();
            from = heading.at;
            Heading { level: (heading.level + below).min(6), at, ..heading.clone() }
        });
        self.headings.extend(moved.filter(|heading| heading.at < end).take(room));
    }

    fn blank_line(&mut self) {
        if self.text.is_empty() || self.text.ends_with("\n\n") {
            return;
        }
        self.push(if self.text.ends_with('\n') { "\n" } else { "\n\n" });
    }

    fn ends_in_item(&self) -> bool {
        let last = self.text.trim_end_matches('\n').rsplit('\n').next().unwrap_or_default();
        let body = last.trim_start();
        body.starts_with("- ")
            || body.split_once(". ").is_some_and(|(n, _)| {
                !n.is_empty() && n.len() < 5 && n.bytes().all(|b| b.is_ascii_digit())
            })
    }

    fn push(&mut self, text: &str) {
        let text = &*clean::decoded(text);
        let room = self.limit.saturating_sub(self.text.len());
        if text.len() <= room && !self.truncated {
            self.text.push_str(text);
            return;
        }
        if !self.truncated {
            let cut = (0..=room).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            self.text.push_str(&text[..cut]);
            self.truncated = true;
        }
    }
}

/// A text on one line, with single spaces.
pub fn one_line(text: &str) -> String {
    clean::decoded(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_stand_apart_and_items_together() {
        let mut draft = Draft::new(1000);
        draft.page(1, Some("Deckblatt"));
        draft.heading(1, "退款\n政策");
        draft.paragraph("Tage: 30");
        draft.item(0, "-", "one");
        draft.item(1, "-", "two");
        draft.table(&[vec!["a".into(), "b|c".into()], vec!["1".into(), "2".into()]]);
        draft.code("sh", "ls\n");
        draft.page(2, None);
        draft.paragraph("end");
        assert_eq!(
            draft.text,
            "# 退款 政策\n\nTage: 30\n\n- one\n  - two\n\n| a | b\\|c |\n| --- | --- |\n| 1 | 2 |\n\n```sh\nls\n```\n\nend\n"
        );
        let rests: Vec<_> = draft.pages.iter().map(|page| &draft.text[page.at..]).collect();
        assert!(rests[0].starts_with("# 退款") && rests[1] == "end\n", "{rests:?}");
        assert_eq!(draft.headings[0].text, "退款 政策");
    }

    #[test]
    fn headings_that_are_taken_over_stand_where_they_did() {
        let text = "a\r\n# One\r\n\x1b[1mb\r\n# 二\r\n";
        let heading = |text: &str, at| Heading { level: 1, text: text.into(), at };
        let headings = [heading("One", 3), heading("二", text.find("# 二").unwrap_or(0))];
        let mut draft = Draft::new(1000);
        draft.paragraph("before");
        draft.append(text, &headings, 1);
        assert_eq!(draft.text, "before\n\na\n# One\nb\n# 二\n");
        let rests: Vec<_> = draft.headings.iter().map(|h| &draft.text[h.at..]).collect();
        assert_eq!(rests, ["# One\nb\n# 二\n", "# 二\n"]);
    }

    #[test]
    fn the_limit_cuts_at_a_character() {
        let mut draft = Draft::new(7);
        draft.paragraph("退款退款");
        draft.paragraph("more");
        draft.heading(1, "more");
        assert_eq!((draft.text.as_str(), draft.is_full()), ("退款", true));
        assert_eq!(draft.headings, []);
    }
}
