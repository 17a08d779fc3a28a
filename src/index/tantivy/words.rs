//! What each word of a query stands for, and how much of the query a text covers.

use std::collections::HashMap;
use std::ops::Range;

use super::analyzer::Pool;
use crate::analyze::{Field, QueryTerm, is_common};
use crate::index::Match;

// The logistic curve of relevance: see docs/retrieval.md.
const BIAS: f32 = -8.0;
const NEAR: f32 = 1.06;
const STRETCH: f32 = 8.54;
const MATCHED: f32 = 0.53;
const UNKNOWN: f32 = -3.45;
/// About a snippet.
const STRETCH_BYTES: usize = 400;

/// The words of a query as people see words; in scripts without spaces, as a dictionary does.
#[derive(Default)]
pub struct Words {
    pub words: Vec<Word>,
    /// What a term of each field tells.
    body: HashMap<String, Vec<Meaning>>,
    word: HashMap<String, Vec<Meaning>>,
    /// What any body term tells that begins so.
    prefixes: Vec<(String, Meaning)>,
    /// The most that a word of the query's language can tell.
    pub rarest: f32,
}

#[derive(Clone, Debug)]
pub struct Word {
    /// Bytes of the query's text.
    pub at: Range<usize>,
    /// How much it tells: its inverse document frequency.
    pub weight: f32,
    /// Whether it says nothing of the query's subject, and others do.
    pub is_common: bool,
    /// Whether it occurs nowhere that the caller sees.
    pub is_unknown: bool,
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
    pub fn new(text: &str, terms: &[QueryTerm]) -> Self {
        let mut words = Self::default();
        let by_field = |field| terms.iter().filter(move |term| term.field == field);
        for term in by_field(Field::Word).chain(by_field(Field::Body)) {
            let at = term.from..term.to;
            // A word has the extent of its term in the field of words; what lies outside all of
            // those (a sign that only the body has) is a word of its own.
            let is_new = !words.words.iter().any(|word| overlap(&word.at, &at));
            if is_new {
                let word = text.get(at.clone()).unwrap_or_default().to_lowercase();
                let is_common = is_common(&word);
                words.words.push(Word {
                    at: at.clone(),
                    weight: 0.0,
                    is_common,
                    is_unknown: false,
                });
            }
            words.add(term, 1.0);
        }
        if words.words.iter().all(|word| word.is_common) {
            words.words.iter_mut().for_each(|word| word.is_common = false);
        }
        words
    }

    /// Whether a place of the query says nothing of its subject.
    pub fn is_common(&self, at: &Range<usize>) -> bool {
        let mut words = self.words.iter().filter(|word| overlap(&word.at, at)).peekable();
        words.peek().is_some() && words.all(|word| word.is_common)
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

    /// How surely a passage answers the query, 0–1, with the names under which it stands.
    ///
    /// Each word is weighed by its rarity. What counts is how much of the query one stretch of the
    /// passage covers, how many of its neighbours stand together, how much was matched at all (in
    /// words as rare as can be, so that the size of the index falls out), and how many of its words
    /// occur nowhere in the index. The four are put together by a logistic curve, fitted on questions
    /// that an index answers and on those of others; docs/retrieval.md says how. A query of filters
    /// only is answered whole.
    pub fn relevance(&self, passage: &InText, names: &[InText]) -> f32 {
        let total: f32 = self.words.iter().map(|word| word.weight).sum();
        if total <= 0.0 {
            return 1.0;
        }
        let texts = || names.iter().chain([passage]);
        let share =
            |(number, word)| texts().map(|text| text.share(number, word)).fold(0.0, f32::max);
        let shares: Vec<f32> = self.words.iter().enumerate().map(share).collect();
        let matched: f32 = self.words.iter().zip(&shares).map(|(w, share)| w.weight * share).sum();
        if matched <= 0.0 {
            return 0.0;
        }
        // What was found by a name is as good as found in one stretch.
        let named = names.iter().map(|name| name.covered(&self.words));
        let stretch = self.stretch(&passage.matches, &shares).max(named.fold(0.0, f32::max));
        let unknown = self.words.iter().filter(|word| word.is_unknown).count();
        let near = self.near(&passage.matches).unwrap_or(matched / total);
        let sum = BIAS
            + NEAR * near
            + STRETCH * stretch / total
            + MATCHED * (matched / self.rarest).min(4.0)
            + UNKNOWN * unknown as f32 / self.words.len() as f32;
        1.0 / (1.0 + (-sum).exp())
    }

    /// The share of the query that one stretch of a text covers.
    pub fn in_stretch(&self, text: &InText) -> f32 {
        let total: f32 = self.words.iter().map(|word| word.weight).sum();
        let words = self.words.iter().enumerate();
        let shares: Vec<f32> = words.map(|(number, word)| text.share(number, word)).collect();
        if total > 0.0 { self.stretch(&text.matches, &shares) / total } else { 0.0 }
    }

    /// The most of the query that a stretch of the passage covers.
    fn stretch(&self, matches: &[Match], shares: &[f32]) -> f32 {
        let mut most: f32 = 0.0;
        for (at, first) in matches.iter().enumerate() {
            let mut seen = vec![false; self.words.len()];
            let mut sum = 0.0;
            let end = first.bytes.start + STRETCH_BYTES;
            for found in matches[at..].iter().take_while(|found| found.bytes.end <= end) {
                let number = found.word as usize;
                if !std::mem::replace(&mut seen[number], true) {
                    sum += self.words[number].weight * shares[number];
                }
            }
            most = most.max(sum);
        }
        most
    }

    /// The share of the query's neighbours that stand together in the passage, weighed by their
    /// rarity; nothing for a single word.
    fn near(&self, matches: &[Match]) -> Option<f32> {
        let mut places: Vec<Vec<&Range<usize>>> = vec![vec![]; self.words.len()];
        for found in matches {
            places[found.word as usize].push(&found.bytes);
        }
        let (mut near, mut all) = (0.0, 0.0);
        for (number, pair) in self.words.windows(2).enumerate() {
            let weight = pair[0].weight * pair[1].weight;
            all += weight;
            let follows = |left: &&Range<usize>| {
                let next = &places[number + 1];
                let from = next.partition_point(|right| right.start < left.end);
                next.get(from).is_some_and(|right| right.start <= left.end + 3)
            };
            if places[number].iter().any(follows) {
                near += weight;
            }
        }
        (all > 0.0).then(|| near / all)
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

    /// How much of the query this text covers, in weights of its words.
    fn covered(&self, words: &[Word]) -> f32 {
        words.iter().enumerate().map(|(n, word)| word.weight * self.share(n, word)).sum()
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
