//! The field `body`: whatever a reader might type for what stands there.

use icu_segmenter::WordSegmenterBorrowed;

use super::class::{Class, Script, class_at};
use super::emit::{Emit, Kind, push_lower};
use super::parts::{Part, find_parts, is_noise};
use super::stem::Stems;
use super::word::{end_of_run, suffix};
use super::{MAX_COMPOUND, MAX_WORD};

/// Emits the terms of folded text. `parts` is a buffer.
pub(super) struct Body<'a, 'e> {
    pub(super) text: &'a str,
    pub(super) segmenter: WordSegmenterBorrowed<'static>,
    pub(super) stems: &'a mut Stems,
    pub(super) parts: &'a mut Vec<Part>,
    pub(super) out: &'a mut Emit<'e>,
}

impl Body<'_, '_> {
    pub(super) fn terms(&mut self) {
        let mut at = 0;
        let mut before = Class::Other;
        while let Some((class, len)) = class_at(self.text, at) {
            let from = at;
            at += len;
            match class {
                Class::Lower | Class::Upper | Class::Digit => {
                    let dotted = before == Class::Link && self.begins_with_dot(from);
                    at = self.compound(from, dotted);
                }
                // Japanese words go on from one to the other.
                Class::Han | Class::Kana => {
                    at = end_of_run(self.text, at, |c| matches!(c, Class::Han | Class::Kana));
                    self.pairs(from, at);
                }
                Class::Hangul => {
                    at = end_of_run(self.text, at, |c| c == Class::Hangul);
                    self.pairs(from, at);
                }
                Class::Unspaced => {
                    at = end_of_run(self.text, at, |c| c == Class::Unspaced);
                    self.unspaced(from, at);
                }
                Class::Emoji => {
                    at = self.emoji(from, at);
                }
                Class::Link | Class::Other => {}
            }
            before = class;
        }
    }

    /// Whether a name like `.NET` or `.gitignore` begins at `from`: a dot, with nothing before it.
    fn begins_with_dot(&self, from: usize) -> bool {
        let before = self.text.get(..from).and_then(|text| text.strip_suffix('.'));
        before.is_some_and(|text| {
            text.chars().next_back().is_none_or(|c| c.is_whitespace() || "(\"'`*[/,".contains(c))
        })
    }

    /// Overlapping pairs of a run of characters.
    fn pairs(&mut self, from: usize, to: usize) {
        let Some(run) = self.text.get(from..to) else { return };
        let mut first: Option<usize> = None;
        for (at, c) in run.char_indices() {
            let end = at + c.len_utf8();
            if let Some(start) = first {
                self.emit_as_is(Kind::Pair, from + start, from + end);
                self.out.advance();
            }
            first = Some(at);
        }
        if let Some(last) = first {
            let kind = if last == 0 { Kind::Lone } else { Kind::Tail };
            self.emit_as_is(kind, from + last, to);
            self.out.advance();
        }
    }

    /// Words of a run of Thai, Lao, Khmer or Burmese, by the dictionary.
    fn unspaced(&mut self, from: usize, to: usize) {
        let Some(run) = self.text.get(from..to) else { return };
        let mut start = 0;
        for end in self.segmenter.segment_str(run) {
            if start < end && end - start <= MAX_WORD {
                self.emit_as_is(Kind::Part, from + start, from + end);
            }
            if start < end {
                self.out.advance();
            }
            start = end;
        }
    }

    /// An emoji is a term; so is a flag, which is two characters.
    fn emoji(&mut self, from: usize, mut to: usize) -> usize {
        let is_flag = |text: &str| text.starts_with(|c| ('\u{1F1E6}'..='\u{1F1FF}').contains(&c));
        if self.text.get(from..).is_some_and(is_flag) && self.text.get(to..).is_some_and(is_flag) {
            to += 4;
        }
        self.emit_as_is(Kind::Part, from, to);
        self.out.advance();
        to
    }

    fn emit_as_is(&mut self, kind: Kind, from: usize, to: usize) {
        let Some(term) = self.text.get(from..to) else { return };
        self.out.start().push_str(term);
        self.out.emit(kind, from, to);
    }

    /// Emits the compound that begins at `from`, by parts and whole, and returns its end.
    fn compound(&mut self, from: usize, dotted: bool) -> usize {
        if let Some(end) = self.plain_word(from, dotted) {
            return end;
        }
        self.parts.clear();
        let end = find_parts(self.text, from, self.parts);
        let tail = suffix(self.text, end);
        let words = self.parts.last().map_or(0, |part| part.word + 1);
        let mut first = 0;
        while let Some(part) = self.parts.get(first).copied() {
            let count = self.parts.iter().skip(first).take_while(|p| p.word == part.word).count();
            let last = first + count;
            let to = self.parts.get(last - 1).map_or(part.to, |part| part.to);
            let is_noise = is_noise(count, to - part.from);
            if words > 1 && first == 0 {
                self.whole(0, self.parts.len(), MAX_COMPOUND);
            }
            self.name(first);
            if count > 1 || (is_noise && to - part.from <= MAX_WORD) {
                self.whole(first, last, MAX_WORD);
            }
            if is_noise {
                self.out.advance();
            } else {
                for index in first..last {
                    self.numbers(index);
                    let is_only = words == 1 && count == 1;
                    self.part(index, is_only, tail, end);
                    if is_only && dotted {
                        self.affixed(part.from - 1, end);
                    }
                    self.out.advance();
                }
            }
            first = last;
        }
        end + tail
    }

    /// Emits the word at `from` and returns its end, if it's ASCII letters without case within,
    /// not part of a compound: what most words are.
    fn plain_word(&mut self, from: usize, dotted: bool) -> Option<usize> {
        let bytes = self.text.as_bytes().get(from..)?;
        let rest = bytes.get(1..)?;
        let len = 1 + rest.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        if dotted || len > MAX_WORD || !bytes.first()?.is_ascii_alphabetic() {
            return None;
        }
        match (bytes.get(len), bytes.get(len + 1)) {
            (None | Some(b' ' | b'(' | b')' | b'"' | b'`' | b';' | b'\n'), _)
            | (Some(b'.' | b',' | b':'), None | Some(b' ' | b'\n')) => {}
            _ => return None,
        }
        let end = from + len;
        push_lower(self.out.start(), self.text.get(from..end)?);
        self.stems.stem(Script::Latin, &mut self.out.token.term);
        self.out.emit(Kind::Word, from, end);
        self.out.advance();
        Some(end)
    }

    /// Emits a part; with the `++` or `#` after it too, if it's the compound's last.
    fn part(&mut self, index: usize, is_only: bool, tail: usize, end: usize) {
        let Some(&part) = self.parts.get(index) else { return };
        let Some(text) = self.text.get(part.from..part.to) else { return };
        if text.len() > MAX_WORD {
            return;
        }
        let term = self.out.start();
        match greek_name(text) {
            Some(name) => term.push_str(name),
            None => push_lower(term, text),
        }
        if !part.is_digits {
            self.stems.stem(part.script, &mut self.out.token.term);
        }
        let kind = if is_only && !part.is_digits { Kind::Word } else { Kind::Part };
        self.out.emit(kind, part.from, part.to);
        if tail > 0 && part.to == end {
            self.affixed(part.from, end + tail);
        }
    }

    /// Emits a name whose punctuation tells it from others: `c++`, `.net`.
    fn affixed(&mut self, from: usize, to: usize) {
        if let Some(name) = self.text.get(from..to).filter(|name| name.len() <= MAX_WORD) {
            push_lower(self.out.start(), name);
            self.out.emit(Kind::Whole, from, to);
        }
    }

    /// Emits parts as one term, if that isn't too long. Links vanish, so that `user_name`,
    /// `user-name` and `userName` are one, but stay between digits: 1.2 isn't 12.
    fn whole(&mut self, first: usize, last: usize, max: usize) {
        let parts = self.parts.get(first..last).unwrap_or_default();
        let (Some(head), Some(tail)) = (parts.first(), parts.last()) else { return };
        let (from, to) = (head.from, tail.to);
        if to - from > max {
            return;
        }
        let term = self.out.start();
        let mut previous: Option<Part> = None;
        for &part in parts {
            if let Some(previous) = previous.filter(|p| p.is_digits && part.is_digits) {
                let link = self.text.get(previous.to..part.from).unwrap_or_default();
                if !matches!(link, "_" | ",") {
                    term.push_str(link);
                }
            }
            let text = self.text.get(part.from..part.to).unwrap_or_default();
            match greek_name(text) {
                Some(name) => term.push_str(name),
                None => push_lower(term, text),
            }
            previous = Some(part);
        }
        if parts.iter().all(|part| !part.is_digits && part.script == head.script) {
            self.stems.stem(head.script, &mut self.out.token.term);
        }
        self.out.emit(Kind::Whole, from, to);
    }

    /// Emits the name whose first part this is, if it's one of several words within something
    /// longer: `read_to_string` of `std::fs::read_to_string`.
    fn name(&mut self, first: usize) {
        let Some(head) = self.parts.get(first) else { return };
        let before = first.checked_sub(1).and_then(|index| self.parts.get(index));
        if before.is_some_and(|before| before.name == head.name) {
            return;
        }
        let count = self.parts.iter().skip(first).take_while(|p| p.name == head.name).count();
        let last = self.parts.get(first + count - 1);
        if count < self.parts.len() && last.is_some_and(|last| last.word > head.word) {
            self.whole(first, first + count, MAX_WORD);
        }
    }

    /// Emits the version, date or number within a longer compound whose first digits are this
    /// part: `1.2.3` of `v1.2.3-rc1`.
    fn numbers(&mut self, index: usize) {
        let follows = |a: &Part, b: &Part| a.is_digits && b.is_digits && a.word + 1 == b.word;
        let mut parts = self.parts.iter().skip(index);
        let Some(mut last) = parts.next() else { return };
        let before = index.checked_sub(1).and_then(|index| self.parts.get(index));
        if before.is_some_and(|before| follows(before, last)) {
            return;
        }
        let mut end = index + 1;
        for part in parts {
            if !follows(last, part) {
                break;
            }
            last = part;
            end += 1;
        }
        if end - index > 1 && end - index < self.parts.len() {
            self.whole(index, end, MAX_WORD);
        }
    }
}

/// The English name of a Greek letter that stands alone, as symbols do: `TNF-α` is `TNF-alpha`.
fn greek_name(text: &str) -> Option<&'static str> {
    const NAMES: [&str; 25] = [
        "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa",
        "lambda", "mu", "nu", "xi", "omicron", "pi", "rho", "sigma", "sigma", "tau", "upsilon",
        "phi", "chi", "psi", "omega",
    ];
    if text.len() != 2 {
        return None;
    }
    let c = text.chars().next()?.to_lowercase().next()?;
    let index = (c as u32).checked_sub('α' as u32)?;
    NAMES.get(index as usize).copied()
}
