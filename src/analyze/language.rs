//! Which languages a query is of, as far as an index's statistics need to know.
//!
//! How rare a word is shows among texts of its own language only: in an index of many, "của" is rare
//! and says nothing. A few words that nearly every text of a language has tell how many of its texts
//! an index holds. The script tells the language well enough, but for Latin, where a query's common
//! words tell it; a query without any is of no known language.

use super::class::{Class, Script, class, script};
use super::common::{self, Forms, Language};

/// Languages by script, each with words that nearly all of its texts have, as one of the two fields
/// has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writing {
    Latin,
    /// Chinese, or Japanese.
    Han,
    /// Japanese.
    Kana,
    Hangul,
    Thai,
    Cyrillic,
    Arabic,
    Greek,
    Devanagari,
    Other,
}

fn everyday(writing: Writing) -> &'static [&'static str] {
    match writing {
        Writing::Han => &["的", "在", "是", "の"],
        Writing::Kana => &["の", "に", "は"],
        // Endings: words of Hangul are written with them, and the body has pairs.
        Writing::Hangul => &["에서", "으로", "니다", "하는"],
        Writing::Thai => &["ที่", "และ", "ใน"],
        Writing::Cyrillic => &["и", "в", "на", "у"],
        Writing::Arabic => &["في", "من", "و"],
        Writing::Greek => &["και", "το", "του"],
        Writing::Devanagari => &["के", "में", "है"],
        Writing::Latin | Writing::Other => &[],
    }
}

/// The languages of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Languages {
    /// Of most of its letters.
    main: Writing,
    has_kana: bool,
    /// What its Latin words are of.
    latin: Vec<&'static Language>,
}

impl Languages {
    /// The languages of a query's text.
    pub fn of(text: &str) -> Self {
        let mut letters: Vec<(Writing, usize)> = vec![];
        for writing in text.chars().filter_map(writing) {
            match letters.iter_mut().find(|(known, _)| *known == writing) {
                Some((_, count)) => *count += 1,
                None => letters.push((writing, 1)),
            }
        }
        let has_kana = letters.iter().any(|(writing, _)| *writing == Writing::Kana);
        let main = letters.iter().rev().max_by_key(|(_, count)| *count);
        Self {
            main: main.map_or(Writing::Other, |(writing, _)| *writing),
            has_kana,
            latin: common::languages_of(text),
        }
    }

    /// Words that nearly every text of a word's language has; none where that isn't known. Digits and
    /// signs are of the query's language.
    pub fn everyday(&self, word: &str) -> Vec<&'static str> {
        let own = word.chars().find_map(writing).unwrap_or(self.main);
        match own {
            Writing::Latin => self.latin.iter().flat_map(|one| one.everyday).copied().collect(),
            Writing::Han if self.has_kana => everyday(Writing::Kana).to_vec(),
            other => everyday(other).to_vec(),
        }
    }

    /// Whether Latin words have endings that the stemmer doesn't know.
    pub fn is_inflected(&self) -> bool {
        !self.latin.is_empty() && self.latin.iter().all(|one| one.forms != Forms::Known)
    }

    /// Whether nothing tells of which language Latin words are.
    pub fn is_unknown(&self) -> bool {
        self.main == Writing::Latin && self.latin.is_empty()
    }

    /// Whether Latin words are, or may be, put together of others.
    pub fn is_compounding(&self) -> bool {
        self.is_unknown()
            || self.is_inflected() && self.latin.iter().any(|one| one.forms == Forms::Compound)
    }

    /// Whether it is mostly of a script that is indexed by pairs of characters.
    pub fn is_paired(&self) -> bool {
        matches!(self.main, Writing::Han | Writing::Kana | Writing::Hangul)
    }
}

fn writing(c: char) -> Option<Writing> {
    Some(match class(c) {
        Class::Han => Writing::Han,
        Class::Kana => Writing::Kana,
        Class::Hangul => Writing::Hangul,
        Class::Unspaced if ('\u{0E00}'..='\u{0E7F}').contains(&c) => Writing::Thai,
        Class::Lower | Class::Upper => match script(c) {
            Script::Latin => Writing::Latin,
            Script::Cyrillic => Writing::Cyrillic,
            Script::Arabic => Writing::Arabic,
            Script::Greek => Writing::Greek,
            Script::Devanagari => Writing::Devanagari,
            Script::Tamil | Script::Other => Writing::Other,
        },
        Class::Unspaced => Writing::Other,
        Class::Digit | Class::Emoji | Class::Link | Class::Other => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_tells_its_language() {
        for (query, word, expected) in [
            ("what is the refund deadline", "refund", Some("the")),
            ("wie lange ist die Frist", "Frist", Some("der")),
            ("thời hạn hoàn tiền là bao lâu", "hạn", Some("của")),
            ("thoi han hoan tien la bao nhieu", "han", Some("của")),
            ("iade süresi kaç gün", "iade", Some("ve")),
            ("refund deadline", "refund", None),
            ("退款期限", "退款", Some("的")),
            ("返金の期限", "返金", Some("の")),
            ("部署API到k8s", "部署", Some("的")),
            ("部署API到k8s", "api", None),
            ("срок возврата", "срок", Some("и")),
            ("ระยะเวลาคืนเงิน", "คืน", Some("ที่")),
            ("환불 기한", "환불", Some("에서")),
            ("срок 30 дней", "30", Some("и")),
            ("", "", None),
        ] {
            let languages = Languages::of(query);
            let everyday = languages.everyday(word);
            assert_eq!(
                everyday.contains(&expected.unwrap_or_default()),
                expected.is_some(),
                "{query}: {everyday:?}"
            );
            assert_eq!(everyday.is_empty(), expected.is_none(), "{query}: {everyday:?}");
        }
        assert!(Languages::of("返金の期限 API").is_paired());
        assert!(!Languages::of("refund 退款").is_paired());
        for (query, inflected, compounding) in [
            ("wie lange ist die Frist", true, true),
            ("iade süresi kaç gün", true, false),
            ("what is the deadline", false, false),
            ("thời hạn là bao lâu", false, false),
            ("deadline", false, true),
        ] {
            let languages = Languages::of(query);
            let got = (languages.is_inflected(), languages.is_compounding());
            assert_eq!(got, (inflected, compounding), "{query}");
        }
    }
}
