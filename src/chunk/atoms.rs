//! A section → atoms: the pieces that aren't cut further, with how good a place for a cut is
//! before each.
//!
//! The lines tell what belongs together: fences, tables, records, the items of code. What of it is
//! too large, and all prose, is cut by text-splitter.

use std::ops::Range;

use unicode_normalization::char::is_combining_mark;

use super::CAP;
use super::cutter::{Cutter, LARGEST};
use super::tokens::{self, UNIT};
use crate::extract::markdown::Fence;
use crate::model::Format;

/// Fences and tables up to this cost stay whole: their heading and a line of words still fit
/// under the cap with them.
const UNBROKEN: u64 = CAP - 100 * UNIT;
/// A header row or a fence's opening above this cost isn't repeated.
pub(super) const MAX_LEAD: u64 = 150 * UNIT;

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
    /// The header row of the table, or the opening of the fence, in which it stands.
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
    let mut lines = Lines::new(text, section.clone());
    let mut builder = Builder { text, section, format, cutter: Cutter::new(), atoms };
    if has_header {
        builder.rows(&mut lines);
        return;
    }
    // What waits for its end.
    let mut run = lines.at;
    while let Some(line) = lines.next() {
        let content = &text[line.clone()];
        if format == Format::Markdown {
            if let Some(fence) = Fence::open(content.trim_end()) {
                builder.run(run..line.start);
                builder.fence(&mut lines, line, fence);
                run = lines.at;
                continue;
            }
            if let Some(header) = table_header(text, &line, &mut lines) {
                builder.run(run..line.start);
                builder.table(&mut lines, header);
                run = lines.at;
                continue;
            }
        }
        let (begins, ends) = match format {
            Format::Plain => (false, false),
            // A long line is cut at sentences rather than at its inline elements.
            Format::Markdown => {
                let is_long = tokens::cost(content) > LARGEST;
                (is_long, is_long)
            }
            Format::Code => (builder.cut_at(line.start, format) == Cut::Best, false),
            Format::Lines => (builder.cut_at(line.start, format) >= Cut::Good, false),
        };
        if begins {
            builder.run(run..line.start);
            run = line.start;
        }
        if ends {
            builder.run(run..line.end);
            run = line.end;
        }
    }
    builder.run(run..lines.end);
}

pub(super) struct Lines<'a> {
    text: &'a str,
    at: usize,
    end: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str, range: Range<usize>) -> Self {
        Self { text, at: range.start, end: range.end }
    }

    fn peek(&self) -> Option<Range<usize>> {
        let rest = &self.text[self.at..self.end];
        (!rest.is_empty()).then(|| {
            let len = rest.find('\n').map_or(rest.len(), |at| at + 1);
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
    section: Range<usize>,
    format: Format,
    cutter: Cutter,
    atoms: &'a mut Vec<Atom>,
}

impl Builder<'_> {
    /// Adds a run of whole lines, cut by text-splitter if it is too large.
    fn run(&mut self, run: Range<usize>) {
        let cut = self.cut_at(run.start, self.format);
        self.pieces(run, self.format, cut, Cut::Best, None);
    }

    /// Adds a run that begins at `first`, and of which no other piece begins at a better cut than
    /// `inner`.
    fn pieces(
        &mut self,
        run: Range<usize>,
        format: Format,
        first: Cut,
        inner: Cut,
        lead: Option<&Range<usize>>,
    ) {
        let content = &self.text[run.clone()];
        if tokens::cost(content) <= LARGEST {
            self.atom(run, first, lead);
            return;
        }
        let is_prose = format == Format::Markdown && content.trim_end().contains('\n');
        let mut at = run.start;
        for end in self.cutter.ends(self.text, run.clone(), is_prose) {
            let start = at + self.take_space(at..end);
            let is_first = at == run.start;
            let cut = if is_first { first } else { self.cut_at(start, format).min(inner) };
            self.atom(start..end, cut, lead);
            at = end;
        }
    }

    fn atom(&mut self, range: Range<usize>, cut: Cut, lead: Option<&Range<usize>>) {
        let start = range.start + self.take_space(range.clone());
        if start < range.end {
            let cost = tokens::cost(&self.text[start..range.end]);
            self.atoms.push(Atom { end: range.end, cost, cut, lead: lead.cloned() });
        }
    }

    /// Gives the white space with which a piece begins to the atom that it ends, and tells its length.
    /// Indentation stays.
    fn take_space(&mut self, piece: Range<usize>) -> usize {
        let content = &self.text[piece.clone()];
        let rest = content.trim_start();
        let space = &content[..content.len() - rest.len()];
        let len = match space.rfind('\n') {
            Some(at) => at + 1,
            None if self.is_line_start(piece.start) => 0,
            // A mark makes one character with the space before it.
            None if rest.starts_with(is_combining_mark) => 0,
            None => space.len(),
        };
        let cost = tokens::cost(&space[..len]);
        match self.atoms.last_mut() {
            Some(last) if last.cost + cost <= CAP => {
                last.end += len;
                last.cost += cost;
                len
            }
            _ => 0,
        }
    }

    /// A fence: whole if it is small enough, else pieces that are led by its opening.
    fn fence(&mut self, lines: &mut Lines<'_>, opening: Range<usize>, fence: Fence) {
        let body = lines.at;
        for line in lines.by_ref() {
            if fence.is_closed_by(self.text[line].trim_end()) {
                break;
            }
        }
        let cut = if self.is_after_blank(opening.start) { Cut::Good } else { Cut::Poor };
        if tokens::cost(&self.text[opening.start..lines.at]) <= UNBROKEN {
            self.atom(opening.start..lines.at, cut, None);
            return;
        }
        let lead = self.lead(&opening);
        self.pieces(opening, Format::Code, cut, Cut::Fair, None);
        // The opening never stands alone.
        self.pieces(body..lines.at, Format::Code, Cut::Poor, Cut::Fair, lead.as_ref());
    }

    /// A table: whole if it is small enough, else row by row, each row led by the header.
    fn table(&mut self, lines: &mut Lines<'_>, header: Range<usize>) {
        let body = lines.at;
        while lines.peek().is_some_and(|row| self.text[row].contains('|')) {
            lines.next();
        }
        let cut = if self.is_after_blank(header.start) { Cut::Best } else { Cut::Poor };
        if tokens::cost(&self.text[header.start..lines.at]) <= UNBROKEN {
            self.atom(header.start..lines.at, cut, None);
            return;
        }
        let lead = self.lead(&header);
        self.pieces(header, Format::Lines, cut, Cut::Fair, None);
        for row in Lines::new(self.text, body..lines.at) {
            // The header never stands alone.
            let cut = if row.start == body { Cut::Poor } else { Cut::Good };
            self.pieces(row, Format::Lines, cut, Cut::Fair, lead.as_ref());
        }
    }

    /// Rows of comma-separated values; a quoted one may have several lines.
    fn rows(&mut self, lines: &mut Lines<'_>) {
        let Some(header) = lines.next() else { return };
        let lead = self.lead(&header);
        let mut row = header.end;
        self.pieces(header, Format::Lines, Cut::Best, Cut::Fair, None);
        let mut in_quotes = false;
        for line in lines {
            let end = line.end;
            in_quotes ^= self.text[line].bytes().filter(|b| *b == b'"').count() % 2 == 1;
            if !in_quotes {
                self.pieces(row..end, Format::Lines, Cut::Good, Cut::Fair, lead.as_ref());
                row = end;
            }
        }
        self.pieces(row..self.section.end, Format::Lines, Cut::Good, Cut::Fair, lead.as_ref());
    }

    fn lead(&self, line: &Range<usize>) -> Option<Range<usize>> {
        (tokens::cost(&self.text[line.clone()]) <= MAX_LEAD).then(|| line.clone())
    }

    fn is_line_start(&self, at: usize) -> bool {
        at == self.section.start || self.text[..at].ends_with('\n')
    }

    /// The line that ends at a line's start.
    fn line_before(&self, at: usize) -> &str {
        let before = &self.text[self.section.start..at];
        before.strip_suffix('\n').unwrap_or(before).rsplit('\n').next().unwrap_or_default()
    }

    fn is_after_blank(&self, at: usize) -> bool {
        self.line_before(at).trim_start().is_empty()
    }

    /// How good a cut is, by what stands around it.
    fn cut_at(&self, at: usize, format: Format) -> Cut {
        if !self.is_line_start(at) {
            let is_end = ends_sentence(&self.text[..at]);
            return if is_end { Cut::Fair } else { Cut::Poor };
        }
        let line = self.text[at..self.section.end].split('\n').next().unwrap_or_default();
        let body = line.trim_start();
        let indent = line.len() - body.len();
        let before = self.line_before(at);
        let blank = before.trim_start().is_empty();
        match format {
            _ if body.is_empty() => Cut::Poor,
            Format::Markdown if blank && indent == 0 => Cut::Best,
            Format::Markdown if is_item(body) => {
                if indent == 0 {
                    Cut::Good
                } else {
                    Cut::Fair
                }
            }
            Format::Code if body.starts_with(['}', ')', ']']) => Cut::Poor,
            Format::Code if is_leading(before.trim_start()) => Cut::Poor,
            Format::Code if blank && indent == 0 => Cut::Best,
            Format::Code if indent == 0 || blank => Cut::Good,
            Format::Code if indent <= 4 => Cut::Fair,
            Format::Code => Cut::Poor,
            Format::Lines if blank && indent == 0 => Cut::Best,
            Format::Lines if indent == 0 => Cut::Good,
            Format::Lines => Cut::Poor,
            _ if blank => Cut::Best,
            _ if ends_sentence(before) || ends_block(before) => Cut::Fair,
            _ => Cut::Poor,
        }
    }
}

/// Whether a line may be the last one of a fence or a table.
fn ends_block(line: &str) -> bool {
    line.ends_with(['`', '~', '|'])
}
/// Whether a line of code begins like a comment, an attribute or a decorator.
fn is_leading(body: &str) -> bool {
    ["//", "/*", "* ", "#", "@", "--"].iter().any(|mark| body.starts_with(mark)) || body == "*"
}

/// Whether a line begins with the mark of a list item.
pub(super) fn is_item(body: &str) -> bool {
    let number = body.trim_start_matches(|c: char| c.is_ascii_digit());
    ["- ", "* ", "+ "].iter().any(|mark| body.starts_with(mark))
        || (number.len() < body.len() && (number.starts_with(". ") || number.starts_with(") ")))
}

/// Whether a text ends with a sentence, white space and closing marks aside.
fn ends_sentence(text: &str) -> bool {
    // Bounded: a line of spaces has this asked at each of its pieces.
    let last = text.chars().rev().take(16).find(|c| !c.is_whitespace() && !is_closing(*c));
    last.is_some_and(is_sentence_end)
}

fn is_closing(c: char) -> bool {
    matches!(c, '"' | '\'' | ')' | ']' | '”' | '’' | '」' | '』' | '）' | '】' | '》')
}

fn is_sentence_end(c: char) -> bool {
    matches!(c, '.' | '!' | '?' | '…' | '。' | '！' | '？' | '।' | '॥' | '؟' | '۔' | '។')
}
