//! Text for a terminal: escaped, coloured, wrapped. Whatever a stranger wrote goes through here.

use std::borrow::Cow;
use std::fmt::Write as _;

use console::{Style, measure_text_width};

/// Whether a character would do something other than show itself: controls, bidi controls,
/// zero-width and tag characters, private and unassigned noncharacters.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
            | '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
            | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}')
        || (u32::from(c) & 0xfffe) == 0xfffe
}

/// A text on one line: what isn't printable is written as `\u{…}`, line ends too.
pub fn line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unprintable) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    text.chars().for_each(|c| push(&mut escaped, c));
    Cow::Owned(escaped)
}

/// A text with its lines and tabs; anything else that isn't printable is escaped.
pub fn block(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\t' => escaped.push(c),
            '\r' if chars.peek() == Some(&'\n') => {}
            _ => push(&mut escaped, c),
        }
    }
    escaped
}

fn push(out: &mut String, c: char) {
    if is_unprintable(c) {
        let _ = match c {
            '\n' => write!(out, "\\n"),
            '\r' => write!(out, "\\r"),
            '\t' => write!(out, "\\t"),
            _ => write!(out, "{}", c.escape_unicode()),
        };
    } else {
        out.push(c);
    }
}

/// JSON that is safe on a terminal too: what isn't printable is an escape, which means the same.
pub fn json(value: &impl serde::Serialize, pretty: bool) -> String {
    let text =
        if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    json_text(&text.unwrap_or_else(|error| {
        serde_json::json!({"error": {"message": error.to_string()}}).to_string()
    }))
}

/// As [`json`], of what is JSON already.
pub fn json_text(text: &str) -> String {
    if !text.contains(|c| is_unprintable(c) && c != '\n') {
        return text.to_owned();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        // Outside strings, pretty JSON has line ends; inside, serde has escaped them.
        if is_unprintable(c) && c != '\n' {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// How people's output looks.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub colour: bool,
    /// Columns.
    pub width: usize,
}

impl Look {
    /// For stdout as it is: plain and wide where it isn't a terminal, and plain with NO_COLOR.
    pub fn of_stdout() -> Self {
        use std::io::IsTerminal as _;
        if !std::io::stdout().is_terminal() {
            return Self { colour: false, width: 100 };
        }
        let columns = console::Term::stdout().size_checked().map_or(80, |(_, columns)| columns);
        Self { colour: wants_colour(), width: usize::from(columns).clamp(40, 120) }
    }

    /// As [`Look::of_stdout`], for messages.
    pub fn of_stderr() -> Self {
        use std::io::IsTerminal as _;
        Self { colour: std::io::stderr().is_terminal() && wants_colour(), width: 100 }
    }

    fn style(self, style: Style, text: &str) -> String {
        style.force_styling(self.colour).apply_to(text).to_string()
    }

    pub fn bold(self, text: &str) -> String {
        self.style(Style::new().bold(), text)
    }

    pub fn dim(self, text: &str) -> String {
        self.style(Style::new().dim(), text)
    }

    pub fn green(self, text: &str) -> String {
        self.style(Style::new().green(), text)
    }

    pub fn yellow(self, text: &str) -> String {
        self.style(Style::new().yellow(), text)
    }

    pub fn red(self, text: &str) -> String {
        self.style(Style::new().red(), text)
    }

    pub fn cyan(self, text: &str) -> String {
        self.style(Style::new().cyan(), text)
    }

    /// What matched.
    pub fn matched(self, text: &str) -> String {
        self.style(Style::new().bold().yellow(), text)
    }
}

/// <https://no-color.org>: set and not empty means no colour.
fn wants_colour() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// A piece of text that is shown as one, and whether it matched.
struct Cell {
    text: String,
    width: usize,
    matched: bool,
    space: bool,
}

/// Wraps a snippet to `width` columns, each line behind `indent`, with what matched standing out.
/// Runs of white space are one space; a line may break there, and beside wide characters.
///
/// `highlights` are positions in Unicode scalar values of `text`.
pub fn snippet(text: &str, highlights: &[(usize, usize)], indent: &str, look: Look) -> String {
    let mut ranges = highlights.iter().peekable();
    let mut cells: Vec<Cell> = vec![];
    for (position, c) in text.chars().enumerate() {
        while ranges.peek().is_some_and(|(_, end)| position >= *end) {
            ranges.next();
        }
        let matched = ranges.peek().is_some_and(|(start, _)| position >= *start);
        if c.is_whitespace() {
            if cells.last().is_some_and(|cell| !cell.space) {
                cells.push(Cell { text: " ".into(), width: 1, matched, space: true });
            }
            continue;
        }
        let mut shown = String::new();
        push(&mut shown, c);
        let width = measure_text_width(&shown);
        cells.push(Cell { text: shown, width, matched, space: false });
    }
    let room = look.width.saturating_sub(measure_text_width(indent)).max(20);
    let mut out = String::new();
    let mut from = 0;
    while from < cells.len() {
        if cells[from].space {
            from += 1;
            continue;
        }
        let to = line_end(&cells, from, room);
        out.push_str(indent);
        push_cells(&mut out, &cells[from..to], look);
        out.push('\n');
        from = to;
    }
    out
}

/// What no line begins with.
const CLOSING: [char; 24] = [
    '，', '。', '、', '；', '：', '？', '！', '）', '」', '』', '】', '》', '〉', '〕', '”', '’',
    'ー', '…', '･', '｡', '､', '｣', '％', '々',
];

/// Where the line that begins at `from` ends.
fn line_end(cells: &[Cell], from: usize, room: usize) -> usize {
    let (mut width, mut best) = (0, None);
    for at in from..cells.len() {
        let cell = &cells[at];
        // A combining mark stays with its letter, and closing punctuation with its word.
        if at > from
            && cell.width > 0
            && !cell.text.starts_with(CLOSING)
            && (cell.space || cell.width == 2 || cells[at - 1].width == 2)
        {
            best = Some(at);
        }
        width += cell.width;
        if width > room && at > from {
            return best.unwrap_or(at);
        }
    }
    cells.len()
}

fn push_cells(out: &mut String, cells: &[Cell], look: Look) {
    let trimmed = cells.iter().rposition(|cell| !cell.space).map_or(0, |last| last + 1);
    for run in cells[..trimmed].chunk_by(|a, b| a.matched == b.matched) {
        let text: String = run.iter().map(|cell| cell.text.as_str()).collect();
        if run[0].matched {
            out.push_str(&look.matched(&text));
        } else {
            out.push_str(&text);
        }
    }
}

/// Rows in columns as wide as their widest cell; the last column isn't padded. Cells may be styled.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|c| measure_text_width(c)).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut out = String::new();
    for row in rows {
        let mut padding = 0;
        for (cell, width) in row.iter().zip(&widths) {
            out.extend(std::iter::repeat_n(' ', padding));
            out.push_str(cell);
            padding = width - measure_text_width(cell) + 2;
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    const PLAIN: Look = Look { colour: false, width: 30 };

    #[test]
    fn what_is_not_printable_is_escaped() {
        for (text, on_a_line, in_a_block) in [
            ("plain 退款 ไทย é", "plain 退款 ไทย é", "plain 退款 ไทย é"),
            ("\u{1b}[31mred", "\\u{1b}[31mred", "\\u{1b}[31mred"),
            ("a\u{9b}31m", "a\\u{9b}31m", "a\\u{9b}31m"),
            ("a\n\tb\r\nc\rd", "a\\n\\tb\\r\\nc\\rd", "a\n\tb\nc\\rd"),
            ("\u{202e}gpj.exe", "\\u{202e}gpj.exe", "\\u{202e}gpj.exe"),
            ("a\u{200b}b\u{e0041}", "a\\u{200b}b\\u{e0041}", "a\\u{200b}b\\u{e0041}"),
            ("\u{7f}\0", "\\u{7f}\\u{0}", "\\u{7f}\\u{0}"),
            // Joiners shape Persian and Hindi words and emoji; they stay.
            (
                "می\u{200c}خواهم क्\u{200d}ष",
                "می\u{200c}خواهم क्\u{200d}ष",
                "می\u{200c}خواهم क्\u{200d}ष",
            ),
        ] {
            assert_eq!(line(text), on_a_line);
            assert_eq!(block(text), in_a_block);
        }
    }

    fn check(text: &str, highlights: &[(usize, usize)], expected: Expect) {
        expected.assert_eq(&snippet(text, highlights, ">  ", PLAIN));
    }

    #[test]
    fn snippets_wrap() {
        check(
            "  A refund takes\n\n14 days after the request was made.",
            &[],
            expect![[r#"
                >  A refund takes 14 days
                >  after the request was made.
            "#]],
        );
        check(
            "退款需要十四天，从申请那天，请联系账单。",
            &[],
            expect![[r#"
                >  退款需要十四天，从申请那
                >  天，请联系账单。
            "#]],
        );
        check("", &[], expect![[""]]);
        check(
            "averyveryveryverylongwordthatfitsnowhere at all",
            &[],
            expect![[r#"
                >  averyveryveryverylongwordth
                >  atfitsnowhere at all
            "#]],
        );
    }

    #[test]
    fn matches_stand_out() {
        let look = Look { colour: true, width: 80 };
        assert_eq!(
            snippet("the 退款 rule", &[(4, 6)], "", look),
            format!("the {} rule\n", look.matched("退款"))
        );
        assert_eq!(snippet("the 退款 rule", &[(4, 6)], "", PLAIN), "the 退款 rule\n");
    }

    #[test]
    fn tables_align_wide_characters() {
        let rows = [vec!["手册".into(), "x".into()], vec!["wiki-2".into(), "y".into()]];
        expect![[r#"
            手册    x
            wiki-2  y
        "#]]
        .assert_eq(&table(&rows));
    }

    proptest! {
        #[test]
        fn nothing_dangerous_survives(text in any::<String>(), from in 0_usize..40, len in 0_usize..40) {
            let shown = [
                line(&text).into_owned(),
                block(&text).replace(['\n', '\t'], ""),
                snippet(&text, &[(from, from + len)], "", PLAIN).replace('\n', ""),
                json(&text, false),
            ];
            for shown in shown {
                prop_assert!(!shown.contains(is_unprintable), "{:?}", shown);
            }
            prop_assert_eq!(serde_json::from_str::<String>(&json(&text, true)).unwrap(), text);
        }

        #[test]
        fn no_line_is_too_wide(text in "[a-z 退กี]{0,120}") {
            for line in snippet(&text, &[], " ", PLAIN).lines() {
                prop_assert!(measure_text_width(line) <= PLAIN.width, "{line}");
            }
        }
    }
}
