//! Spellings of one text → one: NFKC, Traditional → Simplified, digits, signs that nobody types.
//! Keeps where each folded byte came from. Case stays: it tells the parts of camelCase words.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{decompose_canonical, is_combining_mark};

use super::Field;
use super::class::{Class, class, is_unspaced};
use super::simplify::simplify;

/// A character with more marks than this is no writing, and sorting the marks would take time.
const MAX_MARKS: usize = 16;

/// Folded text with, for each of its bytes, the bytes of the original it stands for.
#[derive(Default)]
pub(super) struct Folded {
    pub(super) text: String,
    spans: Vec<(u32, u32)>,
    cluster: String,
    last: Option<char>,
}

impl Folded {
    /// The original's bytes for a non-empty range of folded bytes.
    pub(super) fn span(&self, from: usize, to: usize) -> (usize, usize) {
        let first = self.spans.get(from).copied().unwrap_or_default().0;
        let last = to.checked_sub(1).and_then(|at| self.spans.get(at)).copied().unwrap_or_default();
        (first as usize, last.1 as usize)
    }

    /// Folds `text`, whose length must fit in 32 bits.
    pub(super) fn fold(&mut self, field: Field, text: &str) {
        self.text.clear();
        self.spans.clear();
        self.last = None;
        let mut chars = text.char_indices().peekable();
        while let Some((from, c)) = chars.next() {
            let mut to = from + c.len_utf8();
            if !chars.peek().is_some_and(|&(_, next)| joins(next)) {
                if is_folded_already(c) {
                    self.push(field, c, from, to);
                } else {
                    for c in std::iter::once(c).nfkc() {
                        self.push(field, c, from, to);
                    }
                }
                continue;
            }
            let mut cluster = std::mem::take(&mut self.cluster);
            cluster.clear();
            cluster.push(c);
            let mut marks = 0;
            while let Some((at, mark)) = chars.next_if(|&(_, next)| joins(next)) {
                to = at + mark.len_utf8();
                marks += 1;
                if marks <= MAX_MARKS {
                    cluster.push(mark);
                }
            }
            for c in cluster.nfkc() {
                self.push(field, c, from, to);
            }
            self.cluster = cluster;
        }
    }

    /// Appends a character in NFKC as its field wants it.
    fn push(&mut self, field: Field, c: char, from: usize, to: usize) {
        let body = field == Field::Body;
        match c {
            '\0'..='\u{7F}' => self.put(c, from, to),
            // Each of these is typed as the other, or not at all.
            '\u{2018}' | '\u{2019}' | '\u{02BC}' | '\u{02B9}' => self.put('\'', from, to),
            '\u{2010}'..='\u{2013}' | '\u{2212}' => self.put('-', from, to),
            'ς' => self.put('σ', from, to),
            'Ё' => self.put('Е', from, to),
            'ё' => self.put('е', from, to),
            _ if is_ignored(c) => {}
            '\u{00C0}'..='\u{024F}' | '\u{1E00}'..='\u{1EFF}' if body => match plain_latin(c) {
                Some(plain) => plain.chars().for_each(|c| self.put(c, from, to)),
                None => self.put_base(c, from, to),
            },
            '\u{0370}'..='\u{03FF}' | '\u{1F00}'..='\u{1FFF}' if body => self.put_base(c, from, to),
            '\u{0300}'..='\u{036F}' if body => {}
            'İ' => self.put('I', from, to),
            'أ' | 'إ' | 'آ' | 'ٱ' if body => self.put('ا', from, to),
            'ى' if body => self.put('ي', from, to),
            'ی' => self.put('ي', from, to),
            'ک' => self.put('ك', from, to),
            // Dots for sounds of other languages, and the two signs of a nasal vowel, are typed at will.
            '\u{093C}' if body => {}
            '\u{0901}' if body => self.put('\u{0902}', from, to),
            '\u{0915}'..='\u{092E}' if body => {
                self.replace_nasal(c);
                self.put(c, from, to);
            }
            // The dictionary of Thai words has these two as one, as they're typed.
            '\u{0E32}' if self.last == Some('\u{0E4D}') => {
                if let Some(len) = self.text.len().checked_sub('\u{0E4D}'.len_utf8()) {
                    let from = self.spans.get(len).map_or(from, |span| span.0 as usize);
                    self.text.truncate(len);
                    self.spans.truncate(len);
                    self.put('\u{0E33}', from, to);
                }
            }
            // Iteration marks repeat what stands before them.
            '々' | 'ゝ' | 'ヽ' => {
                let repeated = self.last.filter(|&last| {
                    matches!((class(last), c == '々'), (Class::Han, true) | (Class::Kana, false))
                });
                self.put(repeated.unwrap_or(c), from, to);
            }
            // Hiragana and katakana are two spellings of one sound.
            '\u{30A1}'..='\u{30F6}' if body => {
                self.put(char::from_u32(c as u32 - 0x60).unwrap_or(c), from, to);
            }
            '\u{4E00}'..='\u{9FFF}' | '\u{3400}'..='\u{4DBF}' | '\u{20000}'..='\u{3FFFD}' => {
                self.put(simplify(c), from, to);
            }
            _ => self.put(ascii_digit(c).unwrap_or(c), from, to),
        }
    }

    /// A nasal without a vowel before a stop of its own place is also written as a dot (हिन्दी, हिंदी).
    fn replace_nasal(&mut self, stop: char) {
        let nasal = match stop {
            'क'..='घ' => 'ङ',
            'च'..='झ' => 'ञ',
            'ट'..='ढ' => 'ण',
            'त'..='ध' => 'न',
            'प'..='भ' => 'म',
            _ => return,
        };
        let before = self.text.strip_suffix('\u{094D}').and_then(|text| text.strip_suffix(nasal));
        let Some(length) = before.map(str::len) else { return };
        let (from, to) = self.span(length, self.text.len());
        self.text.truncate(length);
        self.spans.truncate(length);
        self.put('\u{0902}', from, to);
    }

    fn put_base(&mut self, c: char, from: usize, to: usize) {
        decompose_canonical(c, |part| {
            if !is_combining_mark(part) {
                self.put(part, from, to);
            }
        });
    }

    fn put(&mut self, c: char, from: usize, to: usize) {
        let small = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let span = (small(from), small(to));
        self.text.push(c);
        self.spans.extend(std::iter::repeat_n(span, c.len_utf8()));
        self.last = Some(c);
    }
}

/// Whether a character may compose with the one before it.
fn joins(c: char) -> bool {
    match c {
        '\0'..='\u{02FF}' | '\u{0400}'..='\u{0482}' | '\u{0620}'..='\u{064A}' => false,
        '\u{3099}' | '\u{309A}' | '\u{FF9E}' | '\u{FF9F}' => true,
        '\u{1160}'..='\u{11FF}' => true,
        '\u{2E80}'..='\u{D7FF}' => false,
        _ => !is_unspaced(c) && !is_ignored(c) && is_combining_mark(c),
    }
}

/// Whether NFKC leaves a character as it is when none joins it, or would do harm.
fn is_folded_already(c: char) -> bool {
    matches!(c,
        '\0'..='\u{9F}' | '\u{0400}'..='\u{0482}' | '\u{0620}'..='\u{064A}'
        | '\u{2010}'..='\u{2027}' | '\u{3001}'..='\u{3096}' | '\u{30A1}'..='\u{30FA}' | '\u{30FC}'
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}'
        // ™ would stick to its word as "TM".
        | '™' | '℠')
        || is_unspaced(c)
}

/// Characters that show nothing and change no meaning: zero-width, bidirectional, variation
/// selectors, tags, skin tones; with vowel points of Arabic and Hebrew and the tatweel, which are
/// written at will.
fn is_ignored(c: char) -> bool {
    matches!(c,
        '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
        | '\u{1F3FB}'..='\u{1F3FF}' | '\u{E0000}'..='\u{E0FFF}'
        | '\u{0591}'..='\u{05BD}' | '\u{05BF}' | '\u{05C1}' | '\u{05C2}' | '\u{05C4}' | '\u{05C5}'
        | '\u{0610}'..='\u{061A}' | '\u{0640}' | '\u{064B}'..='\u{065F}' | '\u{0670}'
        | '\u{06D6}'..='\u{06DC}' | '\u{06DF}'..='\u{06E4}'
        | '\u{20D0}'..='\u{20FF}')
}

/// Latin letters that are no base letter with marks.
fn plain_latin(c: char) -> Option<&'static str> {
    Some(match c {
        'đ' | 'ð' => "d",
        'Đ' | 'Ð' => "D",
        'ø' => "o",
        'Ø' => "O",
        'ł' => "l",
        'Ł' => "L",
        'ß' => "ss",
        'ẞ' => "SS",
        'æ' => "ae",
        'Æ' => "AE",
        'œ' => "oe",
        'Œ' => "OE",
        'þ' => "th",
        'Þ' => "TH",
        'ħ' => "h",
        'Ħ' => "H",
        'ı' => "i",
        'ŋ' => "n",
        'Ŋ' => "N",
        _ => return None,
    })
}

/// The ASCII digit for a decimal digit of the scripts that people type numbers in.
fn ascii_digit(c: char) -> Option<char> {
    const ZEROS: [char; 12] = [
        '\u{0660}', '\u{06F0}', '\u{0966}', '\u{09E6}', '\u{0A66}', '\u{0AE6}', '\u{0BE6}',
        '\u{0C66}', '\u{0E50}', '\u{0ED0}', '\u{1040}', '\u{17E0}',
    ];
    if !('\u{0660}'..='\u{17E9}').contains(&c) {
        return None;
    }
    ZEROS.iter().find_map(|&zero| {
        let digit = (c as u32).checked_sub(zero as u32).filter(|&digit| digit < 10)?;
        char::from_digit(digit, 10)
    })
}
