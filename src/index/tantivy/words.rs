//! What each word of a query stands for, and how much of the query a text covers.

use std::collections::HashMap;
use std::ops::Range;

use super::analyzer::Pool;
use crate::analyze::{Field, QueryTerm};
use crate::index::Match;

/// The words of a query as people see words; in scripts without spaces, as a dictionary does.
#[derive(Default)]
pub struct Words {
    pub words: Vec<Word>,
    /// What a term of each field tells.
    body: HashMap<String, Vec<Meaning>>,
    word: HashMap<String, Vec<Meaning>>,
    /// What any body term tells that begins so.
    prefixes: Vec<(String, Meaning)>,
}

#[derive(Clone, Debug)]
pub struct Word {
    /// Bytes of the query's text.
    pub at: Range<usize>,
    /// How much it tells: its inverse document frequency.
    pub weight: f32,
}

/// That a term stands for (a part of) a word.
#[derive(Clone, Debug, PartialEq)]
pub struct Meaning {
    pub word: usize,
    /// Which part of it, as bytes of the query; empty for a pair that lies across two words, which is
    /// worth a highlight and proves neither.
    pub part: Range<usize>,
    /// How surely; 1 as it was typed.
    pub sure: f32,
}

impl Words {
    /// The words of a query's terms.
    pub fn new(terms: &[QueryTerm]) -> Self {
        let mut words = Self::default();
        let by_field = |field| terms.iter().filter(move |term| term.field == field);
        for term in by_field(Field::Word).chain(by_field(Field::Body)) {
            let at = term.from..term.to;
            // A word has the extent of its term in the field of words; what lies outside all of
            // those (a sign that only the body has) is a word of its own.
            let is_new = !words.words.iter().any(|word| overlap(&word.at, &at));
            if is_new {
                words.words.push(Word { at: at.clone(), weight: 0.0 });
            }
            words.add(term, 1.0);
        }
        words
    }

    fn add(&mut self, term: &QueryTerm, sure: f32) {
        for meaning in self.meanings(&(term.from..term.to), sure) {
            if term.prefix {
                self.prefixes.push((term.term.clone(), meaning));
            } else {
                self.learn(term.field, term.term.clone(), meaning);
            }
        }
    }

    /// Adds that a term stands for what a place of the query says.
    pub fn learn(&mut self, field: Field, term: String, meaning: Meaning) {
        let terms = match field {
            Field::Body => &mut self.body,
            Field::Word => &mut self.word,
        };
        let meanings = terms.entry(term).or_default();
        if !meanings.contains(&meaning) {
            meanings.push(meaning);
        }
    }

    /// What a place of the query says: of a word the part in which it lies, or each word that lies in
    /// it.
    pub fn meanings(&self, at: &Range<usize>, sure: f32) -> Vec<Meaning> {
        let overlapping = || {
            let all = self.words.iter().enumerate();
            all.filter(|(_, word)| overlap(&word.at, at))
        };
        let mut meanings = vec![];
        for (number, word) in overlapping() {
            let part = word.at.start.max(at.start)..word.at.end.min(at.end);
            if part == *at || part == word.at {
                meanings.push(Meaning { word: number, part, sure });
            }
        }
        if meanings.is_empty() {
            let first = overlapping().next();
            meanings.extend(first.map(|(word, _)| Meaning {
                word,
                part: at.start..at.start,
                sure,
            }));
        }
        meanings
    }

    /// What of a text matches.
    pub fn find(&self, pool: &Pool, text: &str) -> InText {
        let mut found = InText::default();
        pool.with(|analyzer| {
            for field in [Field::Body, Field::Word] {
                analyzer.analyze(field, text, &mut |token| {
                    let terms = match field {
                        Field::Body => &self.body,
                        Field::Word => &self.word,
                    };
                    for meaning in terms.get(&token.term).into_iter().flatten() {
                        found.add(meaning, token.from..token.to, &self.words);
                    }
                    if field == Field::Word {
                        return;
                    }
                    for (prefix, meaning) in &self.prefixes {
                        if token.term.starts_with(prefix.as_str()) {
                            let first = text[token.from..].chars().next().map_or(0, char::len_utf8);
                            found.add(meaning, token.from..token.from + first, &self.words);
                        }
                    }
                });
            }
        });
        found.matches.sort_by_key(|place| (place.bytes.start, place.bytes.end, place.word));
        found.matches.dedup();
        found
    }

    /// How much of the query several texts together cover, 0–1: the share of its words that occur in
    /// any of them, each word weighed by its rarity. A word that occurs nowhere in the index counts
    /// most among the missing. Of a word that occurs in part (bigrams, parts of a compound) that
    /// part counts; one that was found by a near spelling counts less.
    ///
    /// Unlike a score it doesn't depend on the length of the query or the size of the index, so one
    /// threshold does for all queries. A query of filters only is covered whole.
    pub fn coverage(&self, texts: &[&InText]) -> f32 {
        let (mut covered, mut total) = (0.0, 0.0);
        for (number, word) in self.words.iter().enumerate() {
            let share = texts.iter().map(|found| found.share(number, word)).fold(0.0, f32::max);
            covered += word.weight * share;
            total += word.weight;
        }
        if total > 0.0 { (covered / total).clamp(0.0, 1.0) } else { 1.0 }
    }
}

/// What of a text matched.
#[derive(Default)]
pub struct InText {
    /// By where they begin.
    pub matches: Vec<Match>,
    seen: Vec<Meaning>,
}

impl InText {
    fn add(&mut self, meaning: &Meaning, bytes: Range<usize>, words: &[Word]) {
        if !self.seen.contains(meaning) {
            self.seen.push(meaning.clone());
        }
        let weight = words.get(meaning.word).map_or(0.0, |word| word.weight);
        self.matches.push(Match { bytes, word: meaning.word as u32, weight });
    }

    /// How much the matches tell, each word once.
    pub fn weight(&self) -> f32 {
        let mut words: Vec<(u32, f32)> =
            self.matches.iter().map(|found| (found.word, found.weight)).collect();
        words.sort_unstable_by_key(|(word, _)| *word);
        words.dedup_by_key(|(word, _)| *word);
        words.iter().map(|(_, weight)| weight).sum()
    }

    /// How much of a word was seen, 0–1.
    fn share(&self, number: usize, word: &Word) -> f32 {
        let of_word = || self.seen.iter().filter(|meaning| meaning.word == number);
        let near = of_word().filter(|meaning| meaning.sure < 1.0);
        let near = near.map(|meaning| meaning.sure).fold(0.0, f32::max);
        let exact = of_word().filter(|meaning| meaning.sure >= 1.0);
        let mut parts: Vec<&Range<usize>> = exact.map(|meaning| &meaning.part).collect();
        parts.sort_unstable_by_key(|part| part.start);
        let (mut covered, mut end) = (0, 0);
        for part in parts {
            covered += part.end.saturating_sub(end.max(part.start));
            end = end.max(part.end);
        }
        near.max(covered as f32 / word.at.len().max(1) as f32)
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}
