//! Glyphs with places → lines in the order of reading → paragraphs and headings.

use std::collections::BTreeMap;

use unicode_normalization::UnicodeNormalization as _;

/// A glyph on a page: its origin from the top left, width and size in points.
#[derive(Clone, Debug, PartialEq)]
pub struct Glyph {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub size: f64,
    pub text: String,
}

/// Words that stand on one base line without a gap of more than a few spaces.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub text: String,
    pub x: f64,
    pub end: f64,
    pub y: f64,
    pub size: f64,
}

/// Two glyphs this far apart, in parts of their size, stand in different words.
const SPACE: f64 = 0.22;
/// And this far apart, in different columns or cells.
const GAP: f64 = 1.4;
/// Glyphs on one base line differ by less than this part of their size.
const LEVEL: f64 = 0.35;

/// Puts glyphs into lines, and these into the order in which they are read.
pub fn lines(glyphs: Vec<Glyph>) -> Vec<Line> {
    let mut spans: Vec<Vec<Glyph>> = vec![];
    for glyph in glyphs {
        let goes_on = spans.last().and_then(|span| span.last()).is_some_and(|last| {
            let size = last.size.max(glyph.size);
            let level = (last.y - glyph.y).abs() < LEVEL * size;
            let after = glyph.x - (last.x + last.width);
            // Writing from the right moves the other way, and marks stand on their base.
            let before = last.x - (glyph.x + glyph.width);
            let near = |gap: f64| (-1.2 * size..GAP * size).contains(&gap);
            level && (near(after) || near(before))
        });
        match spans.last_mut() {
            Some(span) if goes_on => span.push(glyph),
            _ => spans.push(vec![glyph]),
        }
    }
    let mut lines: Vec<Line> = spans.into_iter().filter_map(line).collect();
    lines = joined(lines);
    let mut ordered = Vec::with_capacity(lines.len());
    order(lines, 0, &mut ordered);
    ordered
}

/// One span's text: spaces where there are gaps, letters in logical order.
fn line(mut glyphs: Vec<Glyph>) -> Option<Line> {
    let is_rtl = glyphs.iter().filter(|g| g.text.chars().any(is_rtl)).count() * 2
        > glyphs.iter().filter(|g| g.text.chars().any(char::is_alphabetic)).count();
    if is_rtl {
        glyphs.sort_by(|a, b| b.x.total_cmp(&a.x));
    }
    let x = glyphs.iter().map(|g| g.x).fold(f64::INFINITY, f64::min);
    let end = glyphs.iter().map(|g| g.x + g.width).fold(f64::NEG_INFINITY, f64::max);
    let size = glyphs.iter().map(|g| g.size).fold(0.0, f64::max);
    let y = glyphs.first()?.y;
    let mut text = String::new();
    let mut last: Option<&Glyph> = None;
    for glyph in &glyphs {
        if let Some(last) = last {
            let gap = if is_rtl {
                last.x - (glyph.x + glyph.width)
            } else {
                glyph.x - (last.x + last.width)
            };
            let is_cjk = |text: &str| text.chars().any(is_cjk);
            let apart = gap > SPACE * size && !(is_cjk(&last.text) && is_cjk(&glyph.text));
            if apart && !text.ends_with(' ') && !glyph.text.starts_with(' ') {
                text.push(' ');
            }
        }
        // A ligature's letters are in logical order already.
        text.push_str(&glyph.text);
        last = Some(glyph);
    }
    let text = if is_rtl { turn_numbers(&text) } else { text };
    let text = plain(&text);
    (!text.trim().is_empty()).then_some(Line { text, x, end, y, size })
}

/// Numbers and Latin words in text from the right were turned with it; turns them back.
fn turn_numbers(text: &str) -> String {
    let mut turned = String::with_capacity(text.len());
    let mut run: Vec<char> = vec![];
    let is_ltr = |c: char| c.is_numeric() || c.is_alphabetic() && !is_rtl(c);
    for c in text.chars() {
        // What stands between two digits belongs to the number.
        if is_ltr(c) || (!run.is_empty() && ".,:/-%".contains(c)) {
            run.push(c);
            continue;
        }
        end_run(&mut run, &mut turned);
        turned.push(c);
    }
    end_run(&mut run, &mut turned);
    turned
}

fn end_run(run: &mut Vec<char>, turned: &mut String) {
    let tail = run.iter().rev().take_while(|c| ".,:/-%".contains(**c)).count();
    let tail = run.split_off(run.len() - tail);
    turned.extend(run.drain(..).rev());
    turned.extend(tail);
}

/// Presentation forms and ligatures become the letters that people type, and signs of symbol fonts at the
/// beginning the bullets that they are; controls go.
fn plain(text: &str) -> String {
    let is_form = |c: char| matches!(c, '\u{fb00}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' | '\u{2f00}'..='\u{2fdf}');
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{ad}' | '\u{200b}' | '\u{feff}' => {}
            '\u{a0}' | '\t' => plain.push(' '),
            // LibreOffice writes the two halves of Thai's and Lao's "am" as "am" and its second half.
            'า' if plain.ends_with('ำ') => {}
            'າ' if plain.ends_with('ຳ') => {}
            '\u{f020}'..='\u{f0ff}' if plain.trim_start().is_empty() => plain.push('•'),
            c if c.is_control() => {}
            c if is_form(c) => plain.extend(c.nfkc()),
            c => plain.push(c),
        }
    }
    plain
}

/// Spans of one base line that follow each other without a gap, though they were drawn apart.
fn joined(mut lines: Vec<Line>) -> Vec<Line> {
    lines.sort_by(|a, b| a.y.total_cmp(&b.y));
    // A base line's spans, in the order of their places.
    let mut rows: Vec<Vec<Line>> = vec![];
    for line in lines {
        match rows.last_mut() {
            Some(row)
                if row.first().is_some_and(|first| {
                    (first.y - line.y).abs() < LEVEL * first.size.min(line.size)
                }) =>
            {
                row.push(line);
            }
            _ => rows.push(vec![line]),
        }
    }
    let mut joined: Vec<Line> = vec![];
    for mut row in rows {
        row.sort_by(|a, b| a.x.total_cmp(&b.x));
        let from = joined.len();
        for line in row {
            match joined[from..].last_mut() {
                Some(last)
                    if line.x - last.end < GAP * last.size.max(line.size)
                        && line.x - last.end > -0.5 * last.size =>
                {
                    let gap = line.x - last.end;
                    if is_rtl_text(&last.text) && is_rtl_text(&line.text) {
                        last.text = format!("{} {}", line.text, last.text);
                    } else {
                        let cjk = last.text.ends_with(is_cjk) && line.text.starts_with(is_cjk);
                        if gap > SPACE * last.size && !cjk && !last.text.ends_with(' ') {
                            last.text.push(' ');
                        }
                        last.text.push_str(&line.text);
                    }
                    last.end = last.end.max(line.end);
                    last.size = last.size.max(line.size);
                }
                _ => joined.push(line),
            }
        }
    }
    joined
}

/// Columns that are looked for within columns.
const MAX_COLUMNS: usize = 4;

/// Brings lines into the order of reading: where a gutter parts the page, each stretch between two
/// lines that cross it is read column by column.
fn order(mut lines: Vec<Line>, depth: usize, ordered: &mut Vec<Line>) {
    lines.sort_by(|a, b| a.y.total_cmp(&b.y).then(a.x.total_cmp(&b.x)));
    let gutter = if depth < MAX_COLUMNS { gutter(&lines) } else { None };
    let Some(gutter) = gutter else {
        ordered.extend(rows(lines));
        return;
    };
    let (mut left, mut right) = (vec![], vec![]);
    for line in lines {
        if line.end <= gutter {
            left.push(line);
        } else if line.x >= gutter {
            right.push(line);
        } else {
            order(std::mem::take(&mut left), depth + 1, ordered);
            order(std::mem::take(&mut right), depth + 1, ordered);
            ordered.push(line);
        }
    }
    order(left, depth + 1, ordered);
    order(right, depth + 1, ordered);
}

/// Lines a column has at least; less is a table, or chance.
const COLUMN_LINES: usize = 4;

/// Where a page of running text is parted into columns: hardly any line crosses there, and the lines
/// on both sides fill their column, as the cells of a table don't.
fn gutter(lines: &[Line]) -> Option<f64> {
    if lines.len() < 2 * COLUMN_LINES {
        return None;
    }
    let mut starts: Vec<f64> = lines.iter().map(|line| line.x).collect();
    starts.sort_by(f64::total_cmp);
    starts.dedup_by(|a, b| (*a - *b).abs() < 1.0);
    // Beginnings of lines at which many begin.
    let mut best: Option<(usize, f64)> = None;
    for start in starts {
        let begin = lines.iter().filter(|line| (line.x - start).abs() < 2.0).count();
        if begin < COLUMN_LINES || best.is_some_and(|(most, _)| most >= begin) {
            continue;
        }
        let cut = start - 1.0;
        let (mut left, mut right, mut across) = (vec![], vec![], 0);
        for line in lines {
            if line.end <= cut {
                left.push(line);
            } else if line.x >= cut {
                right.push(line);
            } else {
                across += 1;
            }
        }
        let is_column = |lines: &[&Line]| {
            let begin = lines.iter().map(|line| line.x).fold(f64::INFINITY, f64::min);
            let end = lines.iter().map(|line| line.end).fold(f64::NEG_INFINITY, f64::max);
            let full = lines.iter().filter(|line| line.end - line.x > 0.6 * (end - begin)).count();
            let size = lines.first().map_or(10.0, |line| line.size);
            lines.len() >= COLUMN_LINES && full * 2 >= lines.len() && end - begin > 8.0 * size
        };
        if across * 5 <= lines.len() && is_column(&left) && is_column(&right) {
            best = Some((begin, cut));
        }
    }
    best.map(|(_, cut)| cut)
}

/// Lines of one base line become one, its parts as cells.
fn rows(lines: Vec<Line>) -> Vec<Line> {
    let mut rows: Vec<Line> = vec![];
    for line in lines {
        match rows.last_mut() {
            Some(row) if (row.y - line.y).abs() < LEVEL * row.size.min(line.size) => {
                // Cells from the right are in that order.
                if is_rtl_text(&row.text) && line.x > row.x {
                    row.text = format!("{}  {}", line.text, row.text);
                } else {
                    row.text = format!("{}  {}", row.text.trim_end(), line.text);
                }
                row.end = row.end.max(line.end);
            }
            _ => rows.push(line),
        }
    }
    rows
}

/// The sizes of a document's type.
#[derive(Debug, PartialEq)]
pub struct Sizes {
    body: f64,
    /// Larger ones that headings have, the largest first.
    larger: Vec<i64>,
}

/// Levels of headings that sizes tell.
const LEVELS: usize = 4;

impl Sizes {
    pub fn of<'a>(lines: impl Iterator<Item = &'a Line>) -> Self {
        let mut chars: BTreeMap<i64, usize> = BTreeMap::new();
        for line in lines {
            *chars.entry(tenths(line.size)).or_default() += line.text.chars().count();
        }
        let body = chars.iter().max_by_key(|(_, count)| **count).map_or(0, |(size, _)| *size);
        let all: usize = chars.values().sum();
        let larger = chars
            .iter()
            .rev()
            .filter(|(size, count)| **size * 100 >= body * 115 && **count * 4 <= all)
            .map(|(size, _)| *size)
            .take(LEVELS)
            .collect();
        Self { body: body as f64 / 10.0, larger }
    }

    fn level(&self, line: &Line) -> Option<u8> {
        let at = self.larger.iter().position(|size| *size == tenths(line.size))?;
        (line.text.chars().count() <= 150 && line.text.chars().any(char::is_alphabetic))
            .then_some(at as u8 + 1)
    }
}

fn tenths(size: f64) -> i64 {
    (size * 10.0).round() as i64
}

/// A paragraph, or a heading with its level.
#[derive(Debug, PartialEq)]
pub struct Block {
    pub level: Option<u8>,
    pub text: String,
}

/// Puts lines together that make a paragraph or a heading.
pub fn blocks(lines: &[Line], sizes: &Sizes) -> Vec<Block> {
    let mut blocks: Vec<Block> = vec![];
    let mut last: Option<&Line> = None;
    for line in lines {
        let level = sizes.level(line);
        let goes_on = last.is_some_and(|last| {
            let below = line.y - last.y;
            let size = last.size.max(line.size);
            let same = blocks.last().is_some_and(|block| block.level == level)
                && (last.size - line.size).abs() < 0.1 * size;
            // A cell's row stands alone, and so does what follows a short line.
            let is_row = |line: &Line| line.text.contains("  ");
            let full = last.end - last.x > 0.6 * (line.end - line.x) || level.is_some();
            let starts_item = line.text.trim_start().starts_with(['•', '·', '–', '■', '●', '▪']);
            same && below > 0.0
                && below < 1.75 * size
                && (line.x - last.x).abs() < 3.0 * size.max(sizes.body)
                && !is_row(line)
                && !is_row(last)
                && full
                && !starts_item
        });
        match blocks.last_mut() {
            Some(block) if goes_on => join(&mut block.text, line.text.trim()),
            _ => blocks.push(Block { level, text: line.text.trim().to_owned() }),
        }
        last = Some(line);
    }
    blocks
}

/// Joins two lines of a paragraph: without a space where the script has none, and without the hyphen
/// at which a word was parted.
fn join(text: &mut String, next: &str) {
    let before = text.chars().next_back();
    let after = next.chars().next();
    match (before, after) {
        (Some(a), Some(b)) if joins(a) && joins(b) => {}
        (Some('-' | '\u{2010}'), Some(b)) if b.is_lowercase() => {
            let parted = text.chars().rev().nth(1).is_some_and(char::is_lowercase);
            if parted {
                text.pop();
            }
        }
        _ => text.push(' '),
    }
    text.push_str(next);
}

fn joins(c: char) -> bool {
    is_cjk(c) || ('\u{e00}'..='\u{eff}').contains(&c)
}

/// Scripts that are written without spaces, their marks included; Korean has spaces.
fn is_cjk(c: char) -> bool {
    matches!(c,
        '\u{2e80}'..='\u{312f}' | '\u{31a0}'..='\u{a4cf}' | '\u{f900}'..='\u{faff}'
        | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}

fn is_rtl(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}')
        && !c.is_numeric()
}

fn is_rtl_text(text: &str) -> bool {
    text.chars().filter(|c| is_rtl(*c)).count() * 2
        > text.chars().filter(|c| c.is_alphabetic()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text drawn from a place on, letter by letter, each as wide as half the size.
    fn drawn(text: &str, x: f64, y: f64, size: f64) -> Vec<Glyph> {
        let at = |n: usize| x + n as f64 * size / 2.0;
        let letters = text.chars().enumerate();
        letters
            .map(|(n, c)| Glyph { x: at(n), y, width: size / 2.0, size, text: c.to_string() })
            .collect()
    }

    fn texts(glyphs: Vec<Glyph>) -> Vec<String> {
        lines(glyphs).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn letters_become_words_and_lines() {
        // The space isn't drawn, but jumped over; the second word is drawn first.
        let mut glyphs = drawn("world", 85.0, 50.0, 10.0);
        glyphs.extend(drawn("Hello", 56.0, 50.2, 10.0));
        glyphs.extend(drawn("next", 56.0, 64.0, 10.0));
        assert_eq!(texts(glyphs), ["Hello world", "next"]);
    }

    #[test]
    fn writing_from_the_right_is_read_from_the_right() {
        // Drawn from the left, as a page shows it: the number reads the other way.
        let shown: String = "طلب".chars().rev().collect();
        let mut glyphs = drawn("30", 50.0, 50.0, 10.0);
        glyphs.extend(drawn(&shown, 64.0, 50.0, 10.0));
        assert_eq!(texts(glyphs), ["طلب 30"]);
    }

    #[test]
    fn letters_are_those_that_people_type() {
        let rows = [
            ("\u{f095} ที่ส่งคำาขอ", "• ที่ส่งคำขอ"),
            (" \u{f0b7}ຄຳາ", " •ຄຳ"),
            ("a \u{f0b7} b", "a \u{f0b7} b"),
            ("ﬁ\u{ad}n\u{a0}ﻻ", "fin لا"),
        ];
        for (text, expected) in rows {
            assert_eq!(plain(text), expected, "{text}");
        }
    }

    #[test]
    fn columns_are_read_one_after_the_other_and_rows_of_a_table_across() {
        let mut glyphs = drawn("A title over both of the columns here", 50.0, 20.0, 14.0);
        for row in 0..6 {
            let y = 50.0 + 12.0 * f64::from(row);
            glyphs.extend(drawn(&format!("left column line {row} is full"), 50.0, y, 10.0));
            glyphs.extend(drawn(&format!("right column line {row} is full"), 230.0, y, 10.0));
        }
        let found = texts(glyphs);
        assert_eq!(found[0], "A title over both of the columns here");
        assert_eq!(found[1], "left column line 0 is full");
        assert_eq!(found[6], "left column line 5 is full");
        assert_eq!(found[7], "right column line 0 is full");

        let mut glyphs = vec![];
        for row in 0..6 {
            let y = 50.0 + 12.0 * f64::from(row);
            glyphs.extend(drawn(&format!("a{row}"), 50.0, y, 10.0));
            glyphs.extend(drawn(&format!("b{row}"), 130.0, y, 10.0));
            glyphs.extend(drawn("a longer cell than the others", 230.0, y, 10.0));
        }
        assert_eq!(texts(glyphs)[0], "a0  b0  a longer cell than the others");
    }

    #[test]
    fn lines_become_paragraphs_and_larger_ones_headings() {
        let line = |text: &str, y: f64, size: f64| Line {
            text: text.into(),
            x: 50.0,
            end: 250.0,
            y,
            size,
        };
        let page = [
            line("Heading", 20.0, 18.0),
            line("A paragraph whose word is hyphen-", 50.0, 10.0),
            line("ated goes on here", 62.0, 10.0),
            line("and the next begins after a gap.", 90.0, 10.0),
            line("退款申请须在购买后", 118.0, 10.0),
            line("三十天内提交。", 130.0, 10.0),
        ];
        let sizes = Sizes::of(page.iter());
        let found: Vec<_> = blocks(&page, &sizes).into_iter().map(|b| (b.level, b.text)).collect();
        let expected = [
            (Some(1), "Heading"),
            (None, "A paragraph whose word is hyphenated goes on here"),
            (None, "and the next begins after a gap."),
            (None, "退款申请须在购买后三十天内提交。"),
        ];
        assert_eq!(found, expected.map(|(level, text)| (level, text.to_owned())));
    }
}
