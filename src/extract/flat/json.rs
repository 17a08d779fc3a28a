//! JSON, JSON lines, and JSON with comments, trailing commas, bare keys and single quotes.

mod line;

use std::borrow::Cow;

use line::{Entry, Kind};

use super::{Path, is_too_much};
use crate::extract::clean;
use crate::extract::json::{escaped_char, readable};

/// A line with more values than this, of more bytes than that, is taken apart.
const MAX_VALUES: usize = 8;
const MAX_LINE: usize = 1000;
/// Values of one array that share a line where lines are taken apart, in bytes.
const MAX_LIST: usize = 200;
/// Deeper nesting is no data that anybody reads.
const MAX_DEPTH: usize = 512;

/// Flattened JSON.
#[derive(Debug, PartialEq)]
pub struct Flat {
    pub text: String,
    /// Whether its lines are those of the source.
    pub keeps_lines: bool,
}

/// Flattens a text of one JSON value or several, the last of which may be cut. Where a line holds many
/// values, each gets a line of its own. `None` if it is no JSON.
pub fn flatten(text: &str) -> Option<Flat> {
    let keeps = |text| Flat { text, keeps_lines: true };
    match Flattener::new(text, Mode::Kept).run() {
        Ok(text) => Some(keeps(text)),
        Err(Fault::LongLine) => {
            let text = Flattener::new(text, Mode::Apart).run().ok()?;
            Some(Flat { text, keeps_lines: false })
        }
        Err(Fault::NoJson) => None,
    }
}

/// Flattens a JSON value a line, and leaves what is none as it is. The lines stay.
pub fn flatten_lines(text: &str) -> String {
    let mut flat = String::with_capacity(text.len());
    let mut read = 0;
    for line in text.split_inclusive('\n') {
        let body = line.trim_end_matches(['\n', '\r']);
        let mut flattener = Flattener::new(body, Mode::Line);
        flattener.before = (flat.len(), read);
        match flattener.run() {
            Ok(value) => flat.push_str(&value),
            Err(_) => flat.push_str(&readable(body)),
        }
        if line.ends_with('\n') {
            flat.push('\n');
        }
        read += line.len();
    }
    flat
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// Lines stay what they are, or it is said that one is too long.
    Kept,
    /// Lines stay, however long they are.
    Line,
    /// A line for each value.
    Apart,
}

enum Fault {
    NoJson,
    LongLine,
}

/// An open object or array.
struct Level {
    is_array: bool,
    /// How many elements began in it.
    count: usize,
    /// Tells it from its neighbours.
    serial: usize,
    /// The line in which it was opened.
    line: usize,
}

struct Flattener<'a> {
    text: &'a str,
    at: usize,
    mode: Mode,
    out: String,
    path: Path,
    levels: Vec<Level>,
    /// How much was written and read of what stands before the text.
    before: (usize, usize),
    serials: usize,
    lines: usize,
    /// The key whose value is awaited.
    key: Option<String>,
    line: Vec<Entry>,
    /// How much the line will be, about.
    pending: usize,
    /// Whether an empty line stands before the line that is being read, and before the next one.
    has_gap: bool,
    wants_gap: bool,
}

impl<'a> Flattener<'a> {
    fn new(text: &'a str, mode: Mode) -> Self {
        Self {
            text,
            at: 0,
            mode,
            out: String::with_capacity(text.len()),
            path: Path::default(),
            levels: vec![],
            before: (0, 0),
            serials: 0,
            lines: 0,
            key: None,
            line: vec![],
            pending: 0,
            has_gap: false,
            wants_gap: false,
        }
    }

    fn run(mut self) -> Result<String, Fault> {
        let mut found = false;
        while let Some(&byte) = self.text.as_bytes().get(self.at) {
            match byte {
                b'\n' => {
                    self.at += 1;
                    self.lines += 1;
                    self.end_line(true)?;
                }
                b' ' | b'\t' | b'\r' | b',' => self.at += 1,
                b'/' => self.comment()?,
                b'{' | b'[' => self.open(byte == b'[')?,
                b'}' | b']' => self.close(byte == b']')?,
                b':' if self.key.is_some() => self.at += 1,
                _ => self.word()?,
            }
            found |= !self.levels.is_empty() || !self.line.is_empty();
        }
        if self.mode == Mode::Line && !(self.levels.is_empty() && self.key.is_none()) {
            return Err(Fault::NoJson);
        }
        self.cut()?;
        self.end_line(false)?;
        if self.mode == Mode::Apart {
            self.out.push('\n');
        }
        if found { Ok(self.out) } else { Err(Fault::NoJson) }
    }

    /// Adds the keys whose values a limit cut off.
    fn cut(&mut self) -> Result<(), Fault> {
        if self.key.is_none() && self.path.unshown().is_none() {
            return Ok(());
        }
        let kind = self.key.take().map_or(Kind::Empty, Kind::Member);
        self.add(kind, String::new())
    }

    fn open(&mut self, is_array: bool) -> Result<(), Fault> {
        self.at += 1;
        if self.levels.len() >= MAX_DEPTH {
            return Err(Fault::NoJson);
        }
        match self.levels.last_mut() {
            Some(level) if level.is_array => {
                self.path.index(level.count);
                level.count += 1;
            }
            Some(level) => {
                let key = self.key.take().ok_or(Fault::NoJson)?;
                self.path.key(&key);
                level.count += 1;
            }
            None => self.path.key(""),
        }
        self.serials += 1;
        self.levels.push(Level { is_array, count: 0, serial: self.serials, line: self.lines });
        Ok(())
    }

    fn close(&mut self, is_array: bool) -> Result<(), Fault> {
        self.at += 1;
        let level = self.levels.pop().filter(|level| level.is_array == is_array);
        let level = level.filter(|_| self.key.is_none()).ok_or(Fault::NoJson)?;
        if level.count == 0 {
            self.add(Kind::Empty, if is_array { "[]" } else { "{}" }.into())?;
        }
        self.path.truncate(self.levels.len());
        let in_array = self.levels.last().is_some_and(|level| level.is_array);
        self.wants_gap |= in_array || self.levels.len() < 2;
        Ok(())
    }

    /// A key, or a value that is no object and no array.
    fn word(&mut self) -> Result<(), Fault> {
        let wants_key = self.levels.last().is_some_and(|l| !l.is_array) && self.key.is_none();
        let quote = self.text.as_bytes()[self.at];
        let (word, is_string) = match quote {
            b'"' | b'\'' => (self.string(quote)?, true),
            _ => (self.bare(wants_key)?.to_owned(), false),
        };
        if wants_key {
            let rest = self.text[self.at..].trim_start();
            if !rest.is_empty() && !rest.starts_with(':') {
                return Err(Fault::NoJson);
            }
            self.key = Some(if word.trim().is_empty() { "\"\"".into() } else { word });
            return Ok(());
        }
        let value = if is_string && word.trim().is_empty() { "\"\"".into() } else { word };
        let (lines, apart) = (self.lines, self.mode == Mode::Apart);
        let kind = match self.levels.last_mut() {
            Some(level) if level.is_array => {
                let (serial, at) = (level.serial, level.count);
                level.count += 1;
                if let Some(Entry {
                    kind: Kind::Element { serial: of, last, .. }, value: list, ..
                }) = self.line.last_mut()
                    && *of == serial
                    && !(apart && list.len() + value.len() > MAX_LIST)
                {
                    *last = at;
                    self.pending += value.len() + 2;
                    list.push_str(", ");
                    list.push_str(&value);
                    return Ok(());
                }
                let is_whole = at == 0 && level.line == lines;
                Kind::Element { serial, first: at, last: at, is_whole }
            }
            Some(level) => {
                level.count += 1;
                Kind::Member(self.key.take().ok_or(Fault::NoJson)?)
            }
            None => Kind::Member(String::new()),
        };
        self.add(kind, value)
    }

    fn add(&mut self, kind: Kind, value: String) -> Result<(), Fault> {
        if self.mode == Mode::Apart {
            self.end_line(false)?;
            self.has_gap = std::mem::take(&mut self.wants_gap);
        }
        let (written, read) = self.before;
        let written = written + self.out.len() + self.pending;
        let is_terse = is_too_much(written, read + self.at);
        let above = match kind {
            Kind::Comment => String::new(),
            _ => self.path.show(is_terse),
        };
        self.pending += above.len() + value.len() + 4;
        if let Kind::Member(key) = &kind {
            self.pending += key.len();
        }
        self.line.push(Entry { above, kind, is_terse, value });
        Ok(())
    }

    /// A string, decoded, on one line.
    fn string(&mut self, quote: u8) -> Result<String, Fault> {
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        let mut end = start;
        loop {
            match bytes.get(end) {
                Some(b'\n') => return Err(Fault::NoJson),
                Some(b'\\') if bytes.get(end + 1) == Some(&b'\n') => return Err(Fault::NoJson),
                None if self.mode == Mode::Line => return Err(Fault::NoJson),
                // It was cut.
                None => break,
                Some(b'\\') => end += 2,
                Some(byte) if *byte == quote => break,
                Some(_) => end += 1,
            }
        }
        let end = end.min(bytes.len());
        self.at = bytes.len().min(end + 1);
        let decoded = decoded(self.text.get(start..end).ok_or(Fault::NoJson)?);
        Ok(match clean::decoded(&decoded) {
            text if text.contains(['\n', '\t']) => text.replace(['\n', '\t'], " "),
            text => text.into_owned(),
        })
    }

    /// A number, a literal or a key without quotes.
    fn bare(&mut self, is_key: bool) -> Result<&'a str, Fault> {
        let rest = &self.text[self.at..];
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '+' | '.');
        let word = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        let literals = ["true", "false", "null", "NaN", "Infinity", "-Infinity", "undefined"];
        let number = word.trim_start_matches(['-', '+', '.']);
        let is_value = literals.contains(&word) || number.starts_with(|c: char| c.is_ascii_digit());
        let is_cut = self.mode != Mode::Line
            && word.len() == rest.len()
            && (number.is_empty() || literals.iter().any(|literal| literal.starts_with(word)));
        if word.is_empty() || !is_key && !is_value && !is_cut {
            return Err(Fault::NoJson);
        }
        self.at += word.len();
        Ok(word)
    }

    fn comment(&mut self) -> Result<(), Fault> {
        let rest = &self.text[self.at..];
        let len = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map(|at| at + 2).ok_or(Fault::NoJson)?
        } else {
            return Err(Fault::NoJson);
        };
        self.at += len;
        for (n, line) in rest[..len].split('\n').enumerate() {
            if n > 0 {
                self.lines += 1;
                self.end_line(true)?;
            }
            let value = line.trim().to_owned();
            self.add(Kind::Comment, value)?;
        }
        Ok(())
    }

    /// Writes what the line holds. `is_break`: a line of the source ends here.
    fn end_line(&mut self, is_break: bool) -> Result<(), Fault> {
        let entries = std::mem::take(&mut self.line);
        self.pending = 0;
        if self.mode == Mode::Apart {
            if entries.is_empty() {
                return Ok(());
            }
            match (self.out.is_empty(), self.has_gap) {
                (true, _) => {}
                (false, true) => self.out.push_str("\n\n"),
                (false, false) => self.out.push('\n'),
            }
        }
        let before = self.out.len();
        line::write(&entries, &mut self.out);
        let is_long = self.out.len() - before > MAX_LINE && entries.len() > MAX_VALUES;
        if self.mode == Mode::Kept && is_long {
            return Err(Fault::LongLine);
        }
        if is_break && self.mode != Mode::Apart {
            self.out.push('\n');
        }
        Ok(())
    }
}

/// What a string's escapes stand for.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at..];
        let len = match rest[1..].chars().next() {
            Some('n' | 't' | 'r' | 'b' | 'f') => {
                decoded.push(' ');
                2
            }
            Some('u') => match escaped_char(rest) {
                Some((c, len)) => {
                    decoded.push(c);
                    len
                }
                // Half of a pair stays as it is written.
                None => {
                    decoded.push_str("\\u");
                    2
                }
            },
            Some(c) => {
                // What needs no escape is a path of Windows or a pattern by a careless writer.
                if !matches!(c, '"' | '\'' | '\\' | '/') {
                    decoded.push('\\');
                }
                decoded.push(c);
                1 + c.len_utf8()
            }
            None => 1,
        };
        rest = &rest[len..];
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

#[cfg(test)]
mod tests;
