//! Where the parts of a compound begin and end: `getUserName`, `v1.2.3-rc1`, `std::fs::read`.

use super::MAX_WORD;
use super::class::{Class, Script, class_at, script};

/// A piece of a compound that is a term of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) script: Script,
    pub(super) is_digits: bool,
    /// Which word of the compound it belongs to, from 0; and which name, as paths are made of.
    pub(super) word: usize,
    pub(super) name: usize,
}

/// Whether a word is a hash or base64 rather than something with parts.
pub(super) fn is_noise(parts: usize, len: usize) -> bool {
    len > MAX_WORD || (parts >= 6 && len < 3 * parts)
}

/// Finds the parts of the compound that begins at `from`, and returns its end. Words are held
/// together by links, with nothing else between; a word has parts where case, digits or script change.
pub(super) fn find_parts(text: &str, from: usize, parts: &mut Vec<Part>) -> usize {
    let bytes = text.as_bytes();
    let mut at = from;
    let (mut word, mut name) = (0, 0);
    loop {
        at = find_parts_of_word(text, at, (word, name), parts);
        word += 1;
        // A possessive belongs to its word without being looked for.
        if let Some(b"'s" | b"'S") = bytes.get(at..at + 2)
            && !class_at(text, at + 2).is_some_and(|(class, _)| class.is_spaced())
        {
            return at + 2;
        }
        let Some(link) = link(text, at) else { return at };
        if link > 1 || matches!(bytes.get(at), Some(b'.' | b'/' | b':' | b'@')) {
            name += 1;
        }
        at += link;
    }
}

/// The length of what links the word that ends at `at` to the next.
fn link(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let len = match bytes.get(at)? {
        b'\'' => 1,
        // A thousand's separator.
        b',' if (1..4).all(|i| is_digit(at + i))
            && !is_digit(at + 4)
            && is_digit(at.checked_sub(1)?) =>
        {
            1
        }
        _ => (0..3)
            .take_while(|i| class_at(text, at + i).is_some_and(|(class, _)| class == Class::Link))
            .count(),
    };
    let (next, _) = class_at(text, at + len)?;
    (len > 0 && next.is_spaced()).then_some(len)
}

fn find_parts_of_word(
    text: &str,
    from: usize,
    (word, name): (usize, usize),
    parts: &mut Vec<Part>,
) -> usize {
    let mut at = from;
    let mut part: Option<Part> = None;
    // The capitals that the part ends with, and where the last one begins.
    let (mut capitals, mut last_capital) = (0_usize, from);
    let mut last = Class::Other;
    while let Some((class, len)) = class_at(text, at).filter(|(class, _)| class.is_spaced()) {
        let script = match text.as_bytes().get(at) {
            Some(byte) if byte.is_ascii() => Script::Latin,
            _ => text.get(at..).and_then(|text| text.chars().next()).map_or(Script::Other, script),
        };
        let is_digits = class == Class::Digit;
        let mut begins = true;
        match part.as_mut() {
            None => part = Some(Part { from: at, to: at, script, is_digits, word, name }),
            Some(now) => {
                begins = now.is_digits != is_digits
                    || (!is_digits && now.script != script)
                    || (class == Class::Upper && last == Class::Lower);
                if begins {
                    parts.push(*now);
                    *now = Part { from: at, to: at, script, is_digits, word, name };
                } else if class == Class::Lower && capitals > 1 && !is_plural(text, at) {
                    // `HTTPServer`: the last capital belongs to what follows.
                    parts.push(Part { to: last_capital, ..*now });
                    now.from = last_capital;
                }
            }
        }
        if class == Class::Upper {
            capitals = if begins { 1 } else { capitals + 1 };
            last_capital = at;
        } else {
            capitals = 0;
        }
        at += len;
        if let Some(part) = part.as_mut() {
            part.to = at;
        }
        last = class;
    }
    parts.extend(part);
    at
}

/// Whether what follows capitals is the `s` of a plural, as in `URLs`.
fn is_plural(text: &str, at: usize) -> bool {
    text.as_bytes().get(at) == Some(&b's')
        && !class_at(text, at + 1).is_some_and(|(class, _)| class == Class::Lower)
}
