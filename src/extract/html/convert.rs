//! Tokens → text: whitespace, blocks, headings, lists, code. Tables are written cell by cell and
//! put into rows at their end.

use std::cell::RefCell;

use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{Tag, TagKind, Token, TokenSink, TokenSinkResult};

use super::Html;
use super::elements::{implied_ends, is_line, is_paragraph, is_void};
use super::out::Out;
use super::table::Table;
use crate::extract::clean;
use crate::extract::outline::{Outline, title_line};
use crate::model::Heading;

/// How far up an end tag looks for its start tag. Bounds the work on pages that close nothing.
const MAX_LOOKUP: usize = 256;
/// List levels that are indented; deeper ones stand with the last.
const MAX_INDENT: usize = 8;

pub(super) struct Sink(RefCell<Writer>);

impl Sink {
    pub(super) fn new(skip_navigation: bool) -> Self {
        Self(RefCell::new(Writer { skip_navigation, ..Writer::default() }))
    }

    pub(super) fn into_html(self) -> Html {
        let mut writer = self.0.into_inner();
        writer.close_down_to(0);
        let text = writer.out.into_text();
        let first_h1 = writer.headings.iter().find(|heading| heading.level == 1);
        let title = Some(title_line(&writer.title))
            .filter(|title| !title.is_empty())
            .or_else(|| first_h1.map(|heading| heading.text.clone()));
        Html { outline: Outline { title, headings: writer.headings }, text, stripped: false }
    }
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut writer = self.0.borrow_mut();
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => return writer.start(&tag),
            Token::TagToken(tag) => writer.end(&tag.name),
            Token::CharacterTokens(text) => writer.text(&text),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// An element that is open, with what has to be done at its end.
struct Open {
    name: String,
    role: Role,
}

enum Role {
    Inline,
    Block,
    /// Nothing inside is shown.
    Skipped,
    Title,
    Heading {
        level: u8,
        at: usize,
    },
    List,
    /// Begins after the opening fence.
    Code {
        at: usize,
    },
    Table,
}

#[derive(Default)]
struct Writer {
    skip_navigation: bool,
    out: Out,
    open: Vec<Open>,
    headings: Vec<Heading>,
    title: String,
    has_title: bool,
    /// Open elements of these kinds.
    skipped: usize,
    in_title: bool,
    in_heading: bool,
    in_code: bool,
    /// The next number of each open list, `None` for bullets.
    lists: Vec<Option<u32>>,
    tables: Vec<Table>,
}

impl Writer {
    fn start(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let name: &str = &tag.name;
        let raw = match name {
            "script" => TokenSinkResult::RawData(RawKind::ScriptData),
            "style" | "xmp" | "iframe" | "noembed" | "noframes" => {
                TokenSinkResult::RawData(RawKind::Rawtext)
            }
            "title" | "textarea" if !self.is_open("svg") => {
                TokenSinkResult::RawData(RawKind::Rcdata)
            }
            "plaintext" => TokenSinkResult::Plaintext,
            _ => TokenSinkResult::Continue,
        };
        self.close_implied(name);
        if self.skipped > 0 {
            if !is_void(name) && !tag.self_closing {
                self.open.push(Open { name: name.into(), role: Role::Inline });
            }
            return raw;
        }
        match name {
            "br" => self.line(),
            "hr" => self.paragraph(),
            "img" | "area" => {
                if let Some(alt) = attribute(tag, "alt") {
                    self.text(&alt);
                }
            }
            _ if is_void(name) => {}
            _ => {
                let role = self.role(tag, name);
                self.open.push(Open { name: name.into(), role });
            }
        }
        // A self-closing element of SVG or MathML has no end tag; in HTML the slash means nothing.
        if tag.self_closing && self.is_open("svg") {
            self.end(name);
        }
        raw
    }

    /// What an element's start does, and what its end will do.
    fn role(&mut self, tag: &Tag, name: &str) -> Role {
        match name {
            "script" | "style" | "template" | "iframe" | "noembed" | "noframes" => {
                self.skipped += 1;
                Role::Skipped
            }
            "nav" | "noscript" if self.skip_navigation => {
                self.skipped += 1;
                Role::Skipped
            }
            _ if self.skip_navigation
                && attribute(tag, "role").is_some_and(|role| role == "navigation") =>
            {
                self.skipped += 1;
                Role::Skipped
            }
            "title" if !self.has_title && !self.is_open("svg") => {
                (self.has_title, self.in_title) = (true, true);
                Role::Title
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" if !self.in_heading && !self.in_code => {
                self.spoil_tables();
                self.paragraph();
                self.in_heading = true;
                let level = name.as_bytes()[1] - b'0';
                let at = self.out.begin(&format!("{} ", "#".repeat(level.into())));
                Role::Heading { level, at }
            }
            "ul" | "ol" | "menu" => {
                if self.lists.is_empty() {
                    self.paragraph();
                } else {
                    self.line();
                }
                let first = attribute(tag, "start").and_then(|start| start.parse().ok());
                self.lists.push((name == "ol").then(|| first.unwrap_or(1)));
                Role::List
            }
            "li" => {
                self.line();
                let indent = "  ".repeat(self.lists.len().saturating_sub(1).min(MAX_INDENT));
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let mark = format!("{number}. ");
                        *number = number.saturating_add(1);
                        mark
                    }
                    _ => "- ".into(),
                };
                if !self.in_heading {
                    self.out.prefix = indent + &mark;
                }
                Role::Block
            }
            "pre" | "listing" | "xmp" if !self.in_code && !self.in_heading => {
                self.spoil_tables();
                self.paragraph();
                self.in_code = true;
                let at = self.out.begin("```");
                self.out.text.push('\n');
                Role::Code { at }
            }
            "table" => {
                self.spoil_tables();
                self.paragraph();
                self.tables.push(Table::new(self.out.settled()));
                Role::Table
            }
            "tr" => {
                self.line();
                if let Some(table) = self.tables.last_mut() {
                    table.row();
                }
                Role::Block
            }
            "td" | "th" => {
                self.line();
                let at = self.out.settled();
                if let Some(table) = self.tables.last_mut() {
                    table.cell(at);
                }
                Role::Block
            }
            _ if is_paragraph(name) => {
                self.paragraph();
                Role::Block
            }
            _ if is_line(name) => {
                self.line();
                Role::Block
            }
            _ => Role::Inline,
        }
    }

    fn end(&mut self, name: &str) {
        if name == "p" || name == "br" {
            self.line();
        }
        let in_table =
            |open: &Open| matches!(open.name.as_str(), "td" | "th" | "table" | "caption");
        let of_table = matches!(
            name,
            "td" | "th"
                | "tr"
                | "tbody"
                | "thead"
                | "tfoot"
                | "table"
                | "caption"
                | "body"
                | "html"
        );
        for at in (0..self.open.len()).rev().take(MAX_LOOKUP) {
            if self.open[at].name == name {
                self.close_down_to(at);
                return;
            }
            // A stray end tag in a cell doesn't close what is around the table.
            if in_table(&self.open[at]) && !of_table {
                return;
            }
        }
    }

    /// Ends elements whose end tag may be left out (HTML 13.1.2.4).
    fn close_implied(&mut self, name: &str) {
        let Some((closes, within)) = implied_ends(name) else { return };
        let limit = self.open.len().saturating_sub(16);
        for at in (limit..self.open.len()).rev() {
            let open = self.open[at].name.as_str();
            if closes.contains(&open) {
                self.close_down_to(at);
                return;
            }
            if within.contains(&open) {
                return;
            }
        }
    }

    fn close_down_to(&mut self, len: usize) {
        while self.open.len() > len {
            let Some(open) = self.open.pop() else { return };
            match open.role {
                Role::Inline => {}
                Role::Block if is_paragraph(&open.name) => self.paragraph(),
                Role::Block => {
                    if matches!(open.name.as_str(), "td" | "th") {
                        let at = self.out.text.len();
                        if let Some(table) = self.tables.last_mut() {
                            table.end_cell(at);
                        }
                    }
                    if open.name == "li" {
                        self.out.prefix.clear();
                    }
                    self.line();
                }
                Role::Skipped => self.skipped -= 1,
                Role::Title => self.in_title = false,
                Role::Heading { level, at } => self.end_heading(level, at),
                Role::List => {
                    self.lists.pop();
                    if self.lists.is_empty() {
                        self.paragraph();
                    } else {
                        self.line();
                    }
                }
                Role::Code { at } => self.end_code(at),
                Role::Table => {
                    if let Some(table) = self.tables.pop() {
                        table.write_rows(&mut self.out.text);
                    }
                    self.paragraph();
                }
            }
        }
    }

    fn end_heading(&mut self, level: u8, at: usize) {
        self.in_heading = false;
        let mark = usize::from(level) + 1;
        // Generated pages put a link to the heading at its end.
        let end = self.out.text.trim_end_matches(['¶', '🔗', ' ']).len().max(at + mark);
        self.out.text.truncate(end);
        let title = title_line(&self.out.text[at + mark..]);
        if title.is_empty() {
            self.out.text.truncate(at);
        } else {
            self.headings.push(Heading { level, text: title, at });
        }
        self.paragraph();
    }

    fn end_code(&mut self, at: usize) {
        self.in_code = false;
        let body = at + "```\n".len();
        let code = &self.out.text[body..];
        let end = body + code.trim_end().len();
        self.out.text.truncate(end);
        if end == body {
            self.out.text.truncate(at);
            return self.paragraph();
        }
        let longest = longest_run(&self.out.text[body..], b'`');
        let fence = "`".repeat(longest.max(2) + 1);
        if fence.len() > 3 {
            self.out.text.insert_str(at, &fence[3..]);
        }
        self.out.text.push('\n');
        self.out.text.push_str(&fence);
        self.paragraph();
    }

    fn text(&mut self, text: &str) {
        // A character reference stands for any character.
        let text = &*clean::decoded(text);
        if self.in_title {
            self.title.push_str(text);
        } else if self.skipped > 0 {
        } else if self.in_code {
            // The line break right after `<pre>` isn't part of it (HTML 4.4.3).
            let first = self.out.text.ends_with("```\n");
            let text = if first { text.strip_prefix('\n').unwrap_or(text) } else { text };
            self.out.text.push_str(text);
        } else {
            self.out.words(text);
        }
    }

    /// The next text begins on a new line.
    fn line(&mut self) {
        self.break_lines(1);
    }

    /// The next text begins after an empty line.
    fn paragraph(&mut self) {
        self.break_lines(2);
    }

    fn break_lines(&mut self, lines: u8) {
        if self.in_code {
            if lines == 1 && !self.out.text.ends_with('\n') {
                self.out.text.push('\n');
            }
        } else if self.in_heading {
            self.out.space = true;
        } else {
            // Items stand close together, whether or not their text is in paragraphs.
            let lines = if self.lists.is_empty() { lines } else { 1 };
            self.out.lines = self.out.lines.max(lines);
        }
    }

    /// Tables that hold tables, headings or code lay a page out: their cells stay paragraphs.
    fn spoil_tables(&mut self) {
        if let Some(table) = self.tables.last_mut() {
            table.is_layout = true;
        }
    }

    fn is_open(&self, name: &str) -> bool {
        self.open.iter().rev().take(16).any(|open| open.name == name)
    }
}

fn attribute(tag: &Tag, name: &str) -> Option<String> {
    tag.attrs.iter().find(|a| &*a.name.local == name).map(|a| a.value.to_string())
}

fn longest_run(text: &str, byte: u8) -> usize {
    text.as_bytes()
        .chunk_by(|a, b| a == b)
        .filter(|run| run[0] == byte)
        .map(<[u8]>::len)
        .max()
        .unwrap_or(0)
}
