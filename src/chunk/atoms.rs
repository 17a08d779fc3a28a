//! A section → atoms: the pieces that aren't cut further, with how good a place for a cut is
//! before each.

use std::ops::Range;

use unicode_normalization::char::is_combining_mark;

use super::CAP;
use super::tokens::{self, UNIT};
use crate::extract::markdown::Fence;
use crate::model::Format;

/// Fences and tables up to this cost stay whole: their heading and a line of words still fit
/// under the cap with them.
const UNBROKEN: u64 = CAP - 100 * UNIT;
/// A line above this cost is cut at sentences, or where it pauses.
const LONG_LINE: u64 = 120 * UNIT;
/// A header row above this cost isn't repeated.
const MAX_LEAD: u64 = 150 * UNIT;

/// How good a place for a cut is. Later ones are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cut {
    /// In the middle of a paragraph, a fence, an indented block.
    Poor,
    /// After a sentence or before an indented item.
    Fair,
    /// Before an item, a definition or a row.
    Good,
    /// After an empty line.
    Best,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Atom {
    /// Where it ends; it begins where the one before ends.
    pub end: usize,
    pub cost: u64,
    /// The cut before it.
    pub cut: Cut,
    /// The header row of the table in which it stands.
    pub lead: Option<Range<usize>>,
}

/// Takes a section apart. `has_header` says that its first line is the header of all others.
pub(super) fn split(
    text: &str,
    section: Range<usize>,
    format: Format,
    has_header: bool,
    atoms: &mut Vec<Atom>,
) {
    let mut lines = Lines { text, at: section.start, end: section.end };
    let mut builder = Builder { text, atoms, blank: true, leads: false, ends_sentence: false };
    if has_header && let Some(header) = lines.next() {
        builder.line(header.clone(), Cut::Best, None);
        let lead = Some(header).filter(|header| tokens::cost(&text[header.clone()]) <= MAX_LEAD);
        let mut in_quotes = false;
        for line in lines {
            let cut = if in_quotes { Cut::Poor } else { Cut::Good };
            in_quotes ^= text[line.clone()].bytes().filter(|b| *b == b'"').count() % 2 == 1;
            builder.line(line, cut, lead.clone());
        }
        return;
    }
    while let Some(line) = lines.next() {
        let content = &text[line.clone()];
        if format == Format::Markdown {
            if let Some(fence) = Fence::open(content.trim_end()) {
                builder.block(&mut lines, line, |line| fence.is_closed_by(line), None);
                continue;
            }
            if let Some(table) = table_header(text, &line, &mut lines) {
                let lead = Some(table.clone())
                    .filter(|lead| tokens::cost(&text[lead.clone()]) <= MAX_LEAD);
                builder.table(&mut lines, table, lead);
                continue;
            }
        }
        let cut = builder.cut_before(content, format);
        builder.line(line, cut, None);
    }
}

struct Lines<'a> {
    text: &'a str,
    at: usize,
    end: usize,
}

impl Lines<'_> {
    fn peek(&self) -> Option<Range<usize>> {
        let rest = &self.text[self.at..self.end];
        (!rest.is_empty()).then(|| {
            let len = rest.bytes().position(|b| b == b'\n').map_or(rest.len(), |at| at + 1);
            self.at..self.at + len
        })
    }
}

impl Iterator for Lines<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let line = self.peek()?;
        self.at = line.end;
        Some(line)
    }
}

/// If a table (GFM 4.10) begins at a line: header and delimiter row, the latter taken from `lines`.
fn table_header(text: &str, line: &Range<usize>, lines: &mut Lines<'_>) -> Option<Range<usize>> {
    if !text[line.clone()].contains('|') {
        return None;
    }
    let next = lines.peek()?;
    let delimiter = text[next.clone()].trim();
    let is_delimiter = delimiter.contains('-')
        && delimiter.contains('|')
        && delimiter.bytes().all(|b| matches!(b, b'|' | b'-' | b':' | b' ' | b'\t'));
    if !is_delimiter {
        return None;
    }
    lines.next();
    Some(line.start..next.end)
}

struct Builder<'a> {
    text: &'a str,
    atoms: &'a mut Vec<Atom>,
    /// Whether the line before was empty.
    blank: bool,
    /// Whether the line before is a comment or attribute, which belongs to what follows it.
    leads: bool,
    ends_sentence: bool,
}

impl Builder<'_> {
    fn push(&mut self, end: usize, cost: u64, cut: Cut, lead: Option<Range<usize>>) {
        self.atoms.push(Atom { end, cost, cut, lead });
    }

    fn line(&mut self, line: Range<usize>, cut: Cut, lead: Option<Range<usize>>) {
        let content = &self.text[line.clone()];
        let cost = tokens::cost(content);
        let trimmed = content.trim_end();
        if trimmed.is_empty() && cost <= LONG_LINE {
            self.blank = true;
            match self.atoms.last_mut() {
                // Empty lines belong to what stands before them.
                Some(last) if last.cost + cost <= CAP => {
                    last.end = line.end;
                    last.cost += cost;
                }
                _ => self.push(line.end, cost, Cut::Poor, lead),
            }
            return;
        }
        self.blank = false;
        self.leads = is_leading(trimmed.trim_start());
        self.ends_sentence = trimmed.ends_with(is_sentence_end);
        if cost <= LONG_LINE {
            self.push(line.end, cost, cut, lead);
        } else {
            long_line(self.text, line, cut, lead.as_ref(), self.atoms);
        }
    }

    /// A fence: whole if it is small enough, else line by line.
    fn block(
        &mut self,
        lines: &mut Lines<'_>,
        first: Range<usize>,
        is_last: impl Fn(&str) -> bool,
        lead: Option<Range<usize>>,
    ) {
        let start = first.start;
        let mut end = first.end;
        let inner = lines.at;
        for line in lines.by_ref() {
            end = line.end;
            if is_last(self.text[line].trim_end()) {
                break;
            }
        }
        let cut = if self.blank { Cut::Good } else { Cut::Poor };
        let cost = tokens::cost(&self.text[start..end]);
        if cost <= UNBROKEN {
            self.push(end, cost, cut, lead);
        } else {
            self.line(first, cut, None);
            for line in (Lines { text: self.text, at: inner, end }) {
                let cut = if self.blank { Cut::Fair } else { Cut::Poor };
                self.line(line, cut, lead.clone());
            }
        }
        (self.blank, self.ends_sentence) = (false, true);
    }

    /// A table: whole if it is small enough, else row by row, each row led by the header.
    fn table(&mut self, lines: &mut Lines<'_>, header: Range<usize>, lead: Option<Range<usize>>) {
        let rows = lines.at;
        while let Some(row) = lines.peek() {
            if !self.text[row].contains('|') {
                break;
            }
            lines.next();
        }
        let end = lines.at;
        let cut = if self.blank { Cut::Best } else { Cut::Poor };
        let cost = tokens::cost(&self.text[header.start..end]);
        if cost <= UNBROKEN {
            self.push(end, cost, cut, None);
        } else {
            self.line(header, cut, None);
            for (n, row) in (Lines { text: self.text, at: rows, end }).enumerate() {
                // The header never stands alone.
                let cut = if n == 0 { Cut::Poor } else { Cut::Good };
                self.line(row, cut, lead.clone());
            }
        }
        (self.blank, self.ends_sentence) = (false, true);
    }

    fn cut_before(&self, line: &str, format: Format) -> Cut {
        let body = line.trim_start();
        let indent = line.len() - body.len();
        match format {
            _ if body.is_empty() => Cut::Poor,
            Format::Markdown if self.blank && indent == 0 => Cut::Best,
            Format::Markdown if is_item(body) => {
                if indent == 0 {
                    Cut::Good
                } else {
                    Cut::Fair
                }
            }
            Format::Code if body.starts_with(['}', ')', ']']) => Cut::Poor,
            Format::Code if self.leads && !self.blank => Cut::Poor,
            Format::Code if self.blank && indent == 0 => Cut::Best,
            Format::Code if indent == 0 || self.blank => Cut::Good,
            Format::Code if indent <= 4 => Cut::Fair,
            Format::Code => Cut::Poor,
            Format::Lines if indent == 0 => Cut::Good,
            Format::Lines => Cut::Poor,
            _ if self.blank => Cut::Best,
            _ if self.ends_sentence => Cut::Fair,
            _ => Cut::Poor,
        }
    }
}

/// Whether a line of code begins like a comment, an attribute or a decorator.
fn is_leading(body: &str) -> bool {
    ["//", "/*", "* ", "#", "@", "--"].iter().any(|mark| body.starts_with(mark)) || body == "*"
}

/// Whether a line begins with the mark of a list item.
fn is_item(body: &str) -> bool {
    let number = body.trim_start_matches(|c: char| c.is_ascii_digit());
    ["- ", "* ", "+ "].iter().any(|mark| body.starts_with(mark))
        || (number.len() < body.len() && (number.starts_with(". ") || number.starts_with(") ")))
}

/// Cuts a long line after sentences, else clauses, else words, else characters, the last of the
/// best kind that a piece has in its second half.
fn long_line(
    text: &str,
    line: Range<usize>,
    first_cut: Cut,
    lead: Option<&Range<usize>>,
    atoms: &mut Vec<Atom>,
) {
    let (mut start, mut cut) = (line.start, first_cut);
    while start < line.end {
        let (len, cost, next_cut) = next_pause(&text[start..line.end]);
        atoms.push(Atom { end: start + len, cost, cut, lead: lead.cloned() });
        (start, cut) = (start + len, next_cut);
    }
}

/// Length and cost of a long line's next piece, and how good the cut after it is.
fn next_pause(rest: &str) -> (usize, u64, Cut) {
    let mut cost = 0;
    let mut chars = rest.char_indices();
    // Pauses count in the second half only.
    while cost * 2 < LONG_LINE
        && let Some((_, c)) = chars.next()
    {
        cost += tokens::char_cost(c);
    }
    let mut best = [None::<(usize, u64)>; 4];
    let Some((_, mut c)) = chars.next() else { return (rest.len(), cost, Cut::Poor) };
    let mut before = c;
    for (at, next) in chars {
        cost += tokens::char_cost(c);
        if cost > LONG_LINE {
            let found = best.iter().enumerate().rev().find_map(|(kind, end)| end.zip(Some(kind)));
            // No cluster of marks and joiners that people write is as long as that.
            let ((len, cost), kind) = found.unwrap_or(((at, cost), 0));
            return (len, cost, if kind == 3 { Cut::Fair } else { Cut::Poor });
        }
        if let Some(kind) = pause(before, c, next) {
            best[kind] = Some((at, cost));
        }
        c = next;
        if !c.is_whitespace() && !is_closing(c) {
            before = c;
        }
    }
    (rest.len(), cost + tokens::char_cost(c), Cut::Poor)
}

/// What kind of pause is between two characters: 3 after a sentence, 2 a clause, 1 a word, 0 none;
/// `None` where they belong together. `before` is the last one up to `c`
/// that is no space or closing mark.
fn pause(before: char, c: char, next: char) -> Option<usize> {
    if !next.is_ascii() && joins(next) || c == '\u{200d}' {
        return None;
    }
    if next.is_whitespace() || is_closing(next) || is_sentence_end(next) {
        // White space and closing marks stay with what they end.
        return Some(0);
    }
    Some(match c {
        '。' | '！' | '？' | '।' | '॥' | '۔' => 3,
        '，' | '、' | '；' | '：' | '،' => 2,
        ',' | ';' if !next.is_ascii_digit() => 2,
        _ if c.is_whitespace() && is_sentence_end(before) => 3,
        _ if c.is_whitespace() && matches!(before, ',' | ';' | ':') => 2,
        _ if c.is_whitespace() => 1,
        _ if is_closing(c) && is_sentence_end(before) => 3,
        _ => 0,
    })
}

/// Whether a character belongs to the one before: marks, joiners, variants, skin tones.
fn joins(c: char) -> bool {
    matches!(c, '\u{200d}' | '\u{fe0e}' | '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}')
        || is_combining_mark(c)
}

fn is_closing(c: char) -> bool {
    matches!(c, '"' | '\'' | ')' | ']' | '”' | '’' | '」' | '』' | '）' | '】' | '》')
}

fn is_sentence_end(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？' | '।' | '॥' | '؟' | '۔' | '។')
}
