//! The field `word`: whole words as they're written, in lower case.

use icu_segmenter::WordSegmenterBorrowed;

use super::MAX_WORD;
use super::class::{Class, class, class_at};
use super::emit::{Emit, Kind, push_lower};

/// Emits the words of folded text.
pub(super) fn words(segmenter: WordSegmenterBorrowed<'static>, text: &str, out: &mut Emit<'_>) {
    let mut at = 0;
    while let Some((class, len)) = class_at(text, at) {
        let from = at;
        at += len;
        match class {
            Class::Lower | Class::Upper | Class::Digit => {
                at = end_of_word(text, at, class);
                let to = without_possessive(text, from, at);
                let kind = if class.is_letter() { Kind::Word } else { Kind::Part };
                if let Some(word) = text.get(from..to) {
                    emit(word, kind, from, out);
                }
            }
            Class::Hangul => {
                at = end_of_run(text, at, |c| c == Class::Hangul);
                if let Some(word) = text.get(from..at) {
                    emit(word, Kind::Part, from, out);
                }
            }
            Class::Han | Class::Kana => {
                at = end_of_run(text, at, |c| matches!(c, Class::Han | Class::Kana));
                segment(segmenter, text, from, at, out);
            }
            Class::Unspaced => {
                at = end_of_run(text, at, |c| c == Class::Unspaced);
                segment(segmenter, text, from, at, out);
            }
            Class::Emoji | Class::Link | Class::Other => {}
        }
    }
}

/// Cuts a run of a script without spaces into words by the dictionary, and emits them.
fn segment(
    segmenter: WordSegmenterBorrowed<'static>,
    text: &str,
    from: usize,
    to: usize,
    out: &mut Emit<'_>,
) {
    let Some(run) = text.get(from..to) else { return };
    let mut start = 0;
    for end in segmenter.segment_str(run) {
        let Some(word) = run.get(start..end).filter(|word| !word.is_empty()) else { continue };
        emit(without_long_vowel(word), Kind::Part, from + start, out);
        start = end;
    }
}

fn emit(word: &str, kind: Kind, from: usize, out: &mut Emit<'_>) {
    if word.len() <= MAX_WORD {
        push_lower(out.start(), word);
        out.emit(kind, from, from + word.len());
    }
    out.advance();
}

pub(super) fn end_of_run(text: &str, mut at: usize, is_in: impl Fn(Class) -> bool) -> usize {
    while let Some((class, len)) = class_at(text, at) {
        if !is_in(class) {
            break;
        }
        at += len;
    }
    at
}

/// The end of the word that goes on at `at`: letters, digits, `_`, and `.` or `'` between two
/// letters or two digits, as Unicode's word boundaries have it; `++` and `#` after a short name.
fn end_of_word(text: &str, mut at: usize, mut last: Class) -> usize {
    let bytes = text.as_bytes();
    while let Some((class, len)) = class_at(text, at) {
        if class.is_spaced() {
            last = class;
            at += len;
            continue;
        }
        match bytes.get(at) {
            Some(b'_') => at += 1,
            Some(b'.' | b'\'') => match class_at(text, at + 1) {
                Some((next, len)) if next.is_letter() && last.is_letter() => {
                    (last, at) = (next, at + 1 + len);
                }
                Some((Class::Digit, len)) if last == Class::Digit => at += 1 + len,
                _ => break,
            },
            _ => break,
        }
    }
    at + suffix(text, at)
}

/// The length of the `++` or `#` after a word that ends at `at`, as in `C++` and `F#`.
pub(super) fn suffix(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let len = match bytes.get(at) {
        Some(b'+') if bytes.get(at + 1) == Some(&b'+') => 2,
        // Only after one letter or two; else it's an anchor or a comment.
        Some(b'#') => {
            let letters = bytes.get(..at).unwrap_or_default().iter().rev();
            match letters.take(3).take_while(|byte| byte.is_ascii_alphanumeric()).count() {
                1 | 2 => 1,
                _ => return 0,
            }
        }
        _ => return 0,
    };
    match class_at(text, at + len) {
        Some((class, _)) if class.is_spaced() => 0,
        _ => len,
    }
}

fn without_possessive(text: &str, from: usize, to: usize) -> usize {
    match text.get(from..to) {
        Some(word) if word.ends_with("'s") || word.ends_with("'S") => to - 2,
        _ => to,
    }
}

/// `サーバー` and `サーバ` are one word.
fn without_long_vowel(word: &str) -> &str {
    match word.strip_suffix('ー') {
        Some(short)
            if short.chars().count() >= 3 && short.chars().all(|c| class(c) == Class::Kana) =>
        {
            short
        }
        _ => word,
    }
}
