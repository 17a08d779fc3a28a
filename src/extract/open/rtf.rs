//! RTF 1.9: its words, paragraphs and tables; groups may nest as deeply as they like.

use std::collections::HashMap;

use encoding_rs::Encoding;

use super::{Draft, Task};

/// # Errors
/// It has no text.
pub fn read(bytes: &[u8], task: &Task<'_>) -> Result<Draft, String> {
    let mut parser = Parser {
        draft: Draft::new(task.budget),
        state: State::default(),
        stack: vec![],
        fonts: HashMap::new(),
        charset: encoding_rs::WINDOWS_1252,
        pending: vec![],
        text: String::new(),
        title: String::new(),
        row: vec![],
        rows: vec![],
        skip: 0,
    };
    parser.run(bytes);
    let mut draft = parser.draft;
    if draft.is_blank() {
        return Err("the RTF document has no text".into());
    }
    draft.title(&parser.title);
    if draft.title.is_none()
        && let Some(first) = draft.headings.first().map(|heading| heading.text.clone())
    {
        draft.title(&first);
    }
    Ok(draft)
}

/// What a group's end brings back.
#[derive(Clone, Copy)]
struct State {
    /// Where text goes.
    place: Place,
    font: i32,
    /// Characters that follow a `\u` for programs without Unicode.
    substitutes: usize,
    in_table: bool,
    outline: Option<u8>,
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Body,
    Title,
    Fonts,
    /// Styles, pictures, fields' codes, and whatever isn't known.
    Nowhere,
}

impl Default for State {
    fn default() -> Self {
        Self { place: Place::Body, font: 0, substitutes: 1, in_table: false, outline: None }
    }
}

/// More open groups than this are counted as one.
const MAX_DEPTH: usize = 10_000;

struct Parser {
    draft: Draft,
    state: State,
    stack: Vec<State>,
    /// The charset of each font.
    fonts: HashMap<i32, &'static Encoding>,
    charset: &'static Encoding,
    /// Bytes in a font's charset that make characters together.
    pending: Vec<u8>,
    text: String,
    title: String,
    row: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Substitutes that are still to come.
    skip: usize,
}

impl Parser {
    fn run(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'{' => {
                    self.flush();
                    if self.stack.len() < MAX_DEPTH {
                        self.stack.push(self.state);
                    }
                    self.skip = 0;
                }
                b'}' => {
                    self.flush();
                    self.state = self.stack.pop().unwrap_or(self.state);
                    self.skip = 0;
                }
                b'\\' => at = self.control(bytes, at),
                b'\r' | b'\n' => {}
                _ => self.byte(byte),
            }
            if self.draft.is_full() {
                return;
            }
        }
        self.flush();
        self.end_cell();
        self.end_table();
        self.end_paragraph();
    }

    /// A control word or symbol that begins at `at`; where it ends.
    fn control(&mut self, bytes: &[u8], at: usize) -> usize {
        let word = bytes[at..].iter().take(32).take_while(|b| b.is_ascii_alphabetic()).count();
        if word == 0 {
            return self.symbol(bytes, at);
        }
        let name = &bytes[at..at + word];
        let mut end = at + word;
        let negative = bytes.get(end) == Some(&b'-');
        end += usize::from(negative);
        let digits = bytes[end..].iter().take(10).take_while(|b| b.is_ascii_digit()).count();
        let number = std::str::from_utf8(&bytes[end..end + digits]).ok();
        let number = number.and_then(|digits| digits.parse::<i32>().ok());
        let number = number.map(|n| if negative { -n } else { n });
        end += digits;
        // The space that ends a word belongs to it.
        end += usize::from(bytes.get(end) == Some(&b' '));
        if name == b"bin" {
            return end.saturating_add(usize::try_from(number.unwrap_or(0)).unwrap_or(0));
        }
        self.word(name, number);
        end
    }

    fn symbol(&mut self, bytes: &[u8], at: usize) -> usize {
        match bytes.get(at) {
            Some(b'\'') => {
                let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
                if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
                    self.byte(byte);
                }
                at + 3
            }
            Some(b'*') => {
                self.state.place = Place::Nowhere;
                at + 1
            }
            Some(b'~') => {
                self.push(" ");
                at + 1
            }
            Some(b'_') => {
                self.push("-");
                at + 1
            }
            Some(b'\r' | b'\n') => {
                self.word(b"par", None);
                at + 1
            }
            Some(b @ (b'\\' | b'{' | b'}')) => {
                self.byte(*b);
                at + 1
            }
            _ => at + 1,
        }
    }

    fn word(&mut self, name: &[u8], number: Option<i32>) {
        if name == b"u" {
            self.flush();
            if self.skip > 0 {
                self.skip -= 1;
            }
            // Sixteen bits, signed; a character beyond comes as two.
            self.unit((number.unwrap_or(0) & 0xffff) as u16);
            self.skip = self.state.substitutes;
            return;
        }
        self.flush();
        match name {
            b"ansicpg" => {
                if let Some(charset) = number.and_then(code_page) {
                    self.charset = charset;
                }
            }
            b"uc" => self.state.substitutes = number.unwrap_or(1).clamp(0, 8) as usize,
            b"f" => self.state.font = number.unwrap_or(0),
            b"fcharset" if self.state.place == Place::Fonts => {
                if let Some(charset) = number.and_then(font_charset) {
                    self.fonts.insert(self.state.font, charset);
                }
            }
            b"plain" => self.state.font = 0,
            b"fonttbl" => self.state.place = Place::Fonts,
            b"title" => self.state.place = Place::Title,
            b"stylesheet" | b"colortbl" | b"pict" | b"info" | b"header" | b"headerl"
            | b"headerr" | b"headerf" | b"footer" | b"footerl" | b"footerr" | b"footerf"
            | b"fldinst" | b"datafield" | b"object" | b"objdata" | b"themedata" | b"listtable"
            | b"revtbl" => {
                self.state.place = Place::Nowhere;
            }
            b"pard" => (self.state.in_table, self.state.outline) = (false, None),
            b"intbl" => self.state.in_table = true,
            b"outlinelevel" => {
                self.state.outline = number.filter(|n| (0..9).contains(n)).map(|n| n as u8 + 1);
            }
            b"cell" => self.end_cell(),
            b"row" => {
                let row = std::mem::take(&mut self.row);
                self.rows.push(row);
            }
            b"par" | b"sect" | b"page" => {
                if self.state.in_table {
                    self.push(" ");
                } else {
                    self.end_table();
                    self.end_paragraph();
                }
            }
            b"line" => self.push("\n"),
            b"tab" => self.push("\t"),
            b"emdash" => self.push("—"),
            b"endash" => self.push("–"),
            b"bullet" => self.push("•"),
            b"lquote" => self.push("‘"),
            b"rquote" => self.push("’"),
            b"ldblquote" => self.push("“"),
            b"rdblquote" => self.push("”"),
            _ => {}
        }
    }

    fn byte(&mut self, byte: u8) {
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        if matches!(self.state.place, Place::Body | Place::Title) {
            self.pending.push(byte);
        }
    }

    /// A unit of UTF-16; halves of a pair find each other in `high`.
    fn unit(&mut self, unit: u16) {
        if matches!(self.state.place, Place::Fonts | Place::Nowhere) {
            return;
        }
        let target =
            if self.state.place == Place::Title { &mut self.title } else { &mut self.text };
        match unit {
            0xd800..=0xdbff => {
                // Kept in a character of a private plane until its other half comes.
                target.extend(char::from_u32(0xf_0000 + u32::from(unit - 0xd800)));
            }
            0xdc00..=0xdfff => {
                if let Some(high) = target.chars().next_back().map(u32::from)
                    && (0xf_0000..0xf_0400).contains(&high)
                {
                    target.pop();
                    let c = 0x1_0000 + ((high - 0xf_0000) << 10) + u32::from(unit - 0xdc00);
                    target.extend(char::from_u32(c));
                }
            }
            unit => target.extend(char::from_u32(unit.into())),
        }
    }

    fn push(&mut self, text: &str) {
        match self.state.place {
            Place::Body => self.text.push_str(text),
            Place::Title => self.title.push_str(text),
            _ => {}
        }
    }

    /// Decodes the bytes that wait.
    fn flush(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let bytes = std::mem::take(&mut self.pending);
        let charset = self.fonts.get(&self.state.font).copied().unwrap_or(self.charset);
        let text = charset.decode_without_bom_handling(&bytes).0;
        self.push(&text);
    }

    fn end_cell(&mut self) {
        let text = std::mem::take(&mut self.text);
        if self.state.in_table {
            self.row.push(text.trim().to_owned());
        } else {
            self.text = text;
        }
    }

    fn end_table(&mut self) {
        let row = std::mem::take(&mut self.row);
        if !row.is_empty() {
            self.rows.push(row);
        }
        let rows = std::mem::take(&mut self.rows);
        self.draft.table(&rows);
    }

    fn end_paragraph(&mut self) {
        let text = std::mem::take(&mut self.text);
        match self.state.outline {
            Some(level) => self.draft.heading(level, &text),
            None => self.draft.paragraph(&text),
        }
    }
}

fn code_page(page: i32) -> Option<&'static Encoding> {
    Some(match page {
        65001 => encoding_rs::UTF_8,
        932 => encoding_rs::SHIFT_JIS,
        936 | 54936 => encoding_rs::GB18030,
        949 => encoding_rs::EUC_KR,
        950 => encoding_rs::BIG5,
        874 => encoding_rs::WINDOWS_874,
        10000 => encoding_rs::MACINTOSH,
        1250..=1258 => Encoding::for_label(format!("windows-{page}").as_bytes())?,
        _ => return None,
    })
}

/// The specification's table of `\fcharset`.
fn font_charset(charset: i32) -> Option<&'static Encoding> {
    code_page(match charset {
        0 => 1252,
        77 => 10000,
        128 => 932,
        129 | 130 => 949,
        134 => 936,
        136 => 950,
        161 => 1253,
        162 => 1254,
        163 => 1258,
        177 => 1255,
        178 => 1256,
        186 => 1257,
        204 => 1251,
        222 => 874,
        238 => 1250,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Limits;

    fn text(rtf: &[u8]) -> Draft {
        let limits = Limits::default();
        let task = Task { uri: "x://a.rtf", limits: &limits, budget: 1 << 20, depth: 0 };
        read(rtf, &task).unwrap_or_default()
    }

    #[test]
    fn words_come_out_in_every_charset() {
        let rows: &[(&[u8], &str)] = &[
            (b"{\\rtf1\\ansi Hello {\\b bold} world.\\par Next}", "Hello bold world.\n\nNext\n"),
            (b"{\\rtf1\\ansi\\ansicpg936 \\'cd\\'cb\\'bf\\'ee}", "退款\n"),
            (b"{\\rtf1{\\fonttbl{\\f0\\fcharset0 A;}{\\f1\\fcharset204 B;}}\\f1 \\'c2\\'ee\\'e7}", "Воз\n"),
            (b"{\\rtf1\\uc1 \\u36864?\\u27454?}", "退款\n"),
            (b"{\\rtf1\\uc0\\u-10179\\u-8704}", "😀\n"),
            (b"{\\rtf1{\\*\\generator X;}{\\stylesheet{\\s0 Normal;}}{\\info{\\title T}}a\\tab b\\line c}", "a\tb\nc\n"),
            (b"{\\rtf1\\trowd\\intbl a\\cell b\\cell\\row\\trowd\\intbl 1\\cell 2\\cell\\row\\pard end\\par}", "| a | b |\n| --- | --- |\n| 1 | 2 |\n\nend\n"),
            (b"{\\rtf1\\outlinelevel0 Head\\par\\pard words\\par}", "# Head\n\nwords\n"),
            (b"{\\rtf1 a\\{b\\}\\\\c{\\pict 00ff}}", "a{b}\\c\n"),
        ];
        for (rtf, expected) in rows {
            assert_eq!(text(rtf).text, *expected, "{}", String::from_utf8_lossy(rtf));
        }
        assert_eq!(text(rows[5].0).title.as_deref(), Some("T"));
    }

    #[test]
    fn any_depth_and_any_end_is_read() {
        let mut deep = b"{\\rtf1 ".to_vec();
        deep.extend(std::iter::repeat_n(b'{', 200_000));
        deep.extend(b"deep");
        assert_eq!(text(&deep).text, "deep\n");
        let whole = b"{\\rtf1\\ansicpg950 \\u1?a\\'a4\\bin5 12345\\cell\\row}";
        for end in 0..whole.len() {
            text(&whole[..end]);
        }
    }
}
