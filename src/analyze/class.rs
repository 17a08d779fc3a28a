//! What a character is to the tokenizers.

/// The role of a folded character in its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// A letter without case counts as lower: it never starts a new part of a camelCase word.
    Lower,
    Upper,
    Digit,
    Han,
    Kana,
    Hangul,
    /// Thai, Lao, Khmer, Burmese: letters without spaces between words.
    Unspaced,
    Emoji,
    /// May hold the words of a compound together: `_ - . / : @`.
    Link,
    /// Separates words.
    Other,
}

impl Class {
    /// Letters and digits of scripts that put something between words.
    pub(super) fn is_spaced(self) -> bool {
        matches!(self, Self::Lower | Self::Upper | Self::Digit)
    }

    pub(super) fn is_letter(self) -> bool {
        matches!(self, Self::Lower | Self::Upper)
    }
}

/// Scripts that are told apart because their words are treated differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    Latin,
    Greek,
    Cyrillic,
    Arabic,
    Devanagari,
    Tamil,
    Other,
}

const ASCII: [Class; 128] = {
    let mut table = [Class::Other; 128];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = match byte {
            b'a'..=b'z' => Class::Lower,
            b'A'..=b'Z' => Class::Upper,
            b'0'..=b'9' => Class::Digit,
            b'_' | b'-' | b'.' | b'/' | b':' | b'@' => Class::Link,
            _ => Class::Other,
        };
        byte += 1;
    }
    table
};

/// The class of the character at a byte of `text`, and its length; nothing at the end.
#[inline]
pub(super) fn class_at(text: &str, at: usize) -> Option<(Class, usize)> {
    let byte = *text.as_bytes().get(at)?;
    if let Some(&class) = ASCII.get(usize::from(byte)) {
        return Some((class, 1));
    }
    let c = text.get(at..)?.chars().next()?;
    Some((class(c), c.len_utf8()))
}

pub(super) fn class(c: char) -> Class {
    match c {
        '\0'..='\u{7F}' => ASCII[c as usize],
        '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFD}'
        | '々'
        | '〆'
        | '〇' => Class::Han,
        '\u{3041}'..='\u{3096}'
        | '\u{309D}'..='\u{309F}'
        | '\u{30A1}'..='\u{30FA}'
        | '\u{30FC}'..='\u{30FF}'
        | '\u{31F0}'..='\u{31FF}'
        | '\u{1B000}'..='\u{1B16F}' => Class::Kana,
        '\u{AC00}'..='\u{D7A3}'
        | '\u{1100}'..='\u{11FF}'
        | '\u{3131}'..='\u{318E}'
        | '\u{A960}'..='\u{A97C}'
        | '\u{D7B0}'..='\u{D7FB}' => Class::Hangul,
        _ if is_unspaced(c) => Class::Unspaced,
        '\u{1F000}'..='\u{1FAFF}' | '\u{2600}'..='\u{27BF}' | '\u{2B00}'..='\u{2BFF}' => {
            Class::Emoji
        }
        _ if c.is_uppercase() => Class::Upper,
        _ if c.is_alphabetic() => Class::Lower,
        _ if c.is_numeric() => Class::Digit,
        // A vowel sign or a virama is part of its word, though it isn't a letter.
        _ if unicode_normalization::char::is_combining_mark(c) => Class::Lower,
        _ => Class::Other,
    }
}

/// Letters and marks of Thai, Lao, Khmer and Burmese; not their digits and punctuation.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0E01}'..='\u{0E3A}' | '\u{0E40}'..='\u{0E4E}'
        | '\u{0E81}'..='\u{0ECE}' | '\u{0EDC}'..='\u{0EDF}'
        | '\u{1000}'..='\u{103F}' | '\u{1050}'..='\u{108F}' | '\u{109A}'..='\u{109D}'
        | '\u{A9E0}'..='\u{A9EF}' | '\u{A9FA}'..='\u{A9FE}' | '\u{AA60}'..='\u{AA7F}'
        | '\u{1780}'..='\u{17D3}' | '\u{17DC}' | '\u{17DD}')
}

/// The script of a letter.
pub(super) fn script(c: char) -> Script {
    match c {
        '\0'..='\u{024F}' | '\u{1E00}'..='\u{1EFF}' => Script::Latin,
        '\u{0370}'..='\u{03FF}' | '\u{1F00}'..='\u{1FFF}' => Script::Greek,
        '\u{0400}'..='\u{052F}' => Script::Cyrillic,
        '\u{0600}'..='\u{06FF}' | '\u{0750}'..='\u{077F}' | '\u{08A0}'..='\u{08FF}' => {
            Script::Arabic
        }
        '\u{0900}'..='\u{097F}' => Script::Devanagari,
        '\u{0B80}'..='\u{0BFF}' => Script::Tamil,
        _ => Script::Other,
    }
}
