//! What a word of a query may be met by beside itself: two words, a near spelling, another form, what
//! it will be when it is typed to its end.

use std::collections::HashMap;
use std::ops::Range;

use ::tantivy::query::{FuzzyTermQuery, Occur, PhraseQuery};
use ::tantivy::schema::{Field, Term};

use super::{Clauses, Compiler, Occurs, in_fields, learn};
use crate::analyze::QueryTerm;
use crate::index::IndexError;
use crate::index::tantivy::view::read_error;
use crate::index::tantivy::words::{Meaning, Words};

/// Words that a misspelling may stand for, and forms of a word.
const MAX_EXPANSIONS: usize = 8;
/// Terms that are looked through for forms of a word, in each segment.
const MAX_LOOKED_AT: usize = 2_000;
/// Letters that an unfinished word has at least.
const MIN_TYPED: usize = 3;
/// Forms of a word begin with as many letters, and with this share of the longer one's.
const MIN_BEGINNING: usize = 4;
const MIN_ALIKE: f32 = 0.5;
/// Letters that the other part of a compound has at least.
const MIN_PART: usize = 4;

impl Compiler<'_> {
    /// Adds the ways in which a word reads as two, for which there are documents.
    pub(super) fn splits(
        &self,
        term: &QueryTerm,
        meanings: &[Meaning],
        words: &mut Words,
        clauses: &mut Clauses,
    ) -> Result<(), IndexError> {
        for [left, right] in &term.splits {
            if self.occurs(left)?.frequency == 0 || self.occurs(right)?.frequency == 0 {
                continue;
            }
            let pair = [left, right].map(|half| Term::from_field_text(self.fields.body, half));
            clauses.push((Occur::Should, Box::new(PhraseQuery::new(pair.to_vec()))));
            for half in [left, right] {
                learn(words, half, meanings, self.ranking.near);
            }
        }
        Ok(())
    }

    /// Adds the words that a misspelt one may have been meant to be.
    pub(super) fn near(
        &self,
        term: &QueryTerm,
        meanings: &[Meaning],
        words: &mut Words,
        clauses: &mut Clauses,
    ) -> Result<(), IndexError> {
        for (near, occurs) in self.near_terms(&term.term)? {
            clauses.extend(in_fields(&near, &occurs.fields, self.ranking.near));
            learn(words, &near, meanings, self.ranking.near);
        }
        Ok(())
    }

    /// Adds other forms of a word whose language has no stemmer here: words that begin alike and, of a
    /// compound, its last part. Answers in how many documents the likeliest occurs.
    pub(super) fn forms(
        &self,
        term: &QueryTerm,
        typed: &str,
        meanings: &[Meaning],
        words: &mut Words,
        clauses: &mut Clauses,
    ) -> Result<u64, IndexError> {
        // As it is folded, without the endings that the stemmer of the script knows.
        let stem = term.term.as_str();
        let mut known = self.occurs(stem)?.frequency;
        let mut forms = self.beginning_alike(stem)?;
        if self.statistics.languages.is_compounding() {
            forms.extend(self.last_part(typed)?);
        }
        for (form, alike) in forms {
            let occurs = self.occurs(&form)?;
            if form == stem || occurs.frequency == 0 {
                continue;
            }
            let boost = alike * self.ranking.form;
            clauses.extend(in_fields(&form, &occurs.fields, boost));
            learn(words, &form, meanings, boost);
            known = known.max(occurs.frequency);
        }
        Ok(known)
    }

    /// Adds the words that an unfinished one may become, and takes the commonest one's frequency for its
    /// own. Answers which part of the query it is; nothing when there are none.
    ///
    /// Whole words tell how a word goes on: of `configuration` the body has a stem, which is shorter
    /// than what may be typed of it. They are looked for by their terms of the body, so all of a word's
    /// forms count, in every field.
    pub(super) fn completions(
        &self,
        unfinished: &QueryTerm,
        words: &mut Words,
        frequencies: &mut [Option<u64>],
        clauses: &mut Clauses,
    ) -> Result<Option<Range<usize>>, IndexError> {
        let (at, typed) = (unfinished.from..unfinished.to, unfinished.term.as_str());
        if typed.chars().count() < MIN_TYPED {
            return Ok(None);
        }
        let meanings = words.meanings(&at, 1.0);
        let mut terms: HashMap<String, u64> = HashMap::new();
        for field in [self.fields.word, self.fields.title, self.fields.heading] {
            self.each_beginning_with(field, typed, &mut |term, documents| {
                let term = match field == self.fields.word {
                    true => self.pool.with(|analyzer| analyzer.word(term)),
                    false => Some(term.to_owned()),
                };
                if let Some(term) = term {
                    let most = terms.entry(term).or_default();
                    *most = documents.max(*most);
                }
            })?;
        }
        let mut terms: Vec<(String, u64)> = terms.into_iter().collect();
        terms.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let mut added = vec![];
        for (term, _) in terms.into_iter().take(4 * MAX_EXPANSIONS) {
            let occurs = self.occurs(&term)?;
            if occurs.frequency > 0 && added.len() < MAX_EXPANSIONS {
                clauses.extend(in_fields(&term, &occurs.fields, self.ranking.unfinished));
                learn(words, &term, &meanings, self.ranking.unfinished);
                added.push(occurs.frequency);
            }
        }
        let Some(commonest) = added.into_iter().max() else { return Ok(None) };
        for meaning in &meanings {
            frequencies[meaning.word] = Some(commonest);
        }
        Ok(Some(at))
    }

    /// Calls `each` with the terms of a field that begin so, and in how many documents of a segment
    /// each of them is.
    fn each_beginning_with(
        &self,
        field: Field,
        beginning: &str,
        each: &mut dyn FnMut(&str, u64),
    ) -> Result<(), IndexError> {
        for (_, reader, _) in self.view.segments() {
            let index = reader.inverted_index(field).map_err(read_error)?;
            let terms = index.terms().range().ge(beginning.as_bytes()).into_stream();
            let mut terms = terms.map_err(read_error)?;
            for _ in 0..MAX_LOOKED_AT {
                let Some((term, info)) = terms.next() else { break };
                let Ok(term) = std::str::from_utf8(term) else { continue };
                if !term.starts_with(beginning) {
                    break;
                }
                each(term, u64::from(info.doc_freq));
            }
        }
        Ok(())
    }

    /// Terms that share their beginning with a word, the most alike first, with how much they share.
    fn beginning_alike(&self, word: &str) -> Result<Vec<(String, f32)>, IndexError> {
        let length = word.chars().count();
        let least = MIN_BEGINNING.max((length as f32 * MIN_ALIKE).ceil() as usize);
        let Some(beginning) = chars(word, least).filter(|_| length >= MIN_BEGINNING) else {
            return Ok(vec![]);
        };
        let mut alike: HashMap<String, f32> = HashMap::new();
        self.each_beginning_with(self.fields.body, beginning, &mut |term, _| {
            let shared = word.chars().zip(term.chars()).take_while(|(a, b)| a == b).count();
            let longer = length.max(term.chars().count());
            // A compound that begins with the whole word has it whole.
            let share = if shared == length { 0.8_f32 } else { 0.0 };
            let share = share.max(shared as f32 / longer as f32);
            if share >= MIN_ALIKE && term.chars().all(char::is_alphabetic) {
                alike.insert(term.to_owned(), share);
            }
        })?;
        let mut alike: Vec<(String, f32)> = alike.into_iter().collect();
        alike.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        alike.truncate(MAX_EXPANSIONS);
        Ok(alike)
    }

    /// The longest word with which a compound ends.
    fn last_part(&self, word: &str) -> Result<Option<(String, f32)>, IndexError> {
        const ALIKE: f32 = 0.6;
        let word = word.to_lowercase();
        let starts: Vec<usize> = word.char_indices().map(|(at, _)| at).collect();
        let end = (starts.len() + 1).saturating_sub(MIN_PART);
        for start in starts.get(MIN_PART..end).unwrap_or_default() {
            let part = self.pool.with(|analyzer| analyzer.word(&word[*start..]));
            if let Some(part) = part
                && self.occurs(&part)?.frequency > 0
            {
                return Ok(Some((part, ALIKE)));
            }
        }
        Ok(None)
    }

    /// Terms of body and title that begin within one edit of a word, the likeliest first.
    fn near_terms(&self, word: &str) -> Result<Vec<(String, Occurs)>, IndexError> {
        let mut near: HashMap<String, u64> = HashMap::new();
        let fuzzy = Term::from_field_text(self.fields.body, word);
        let fuzzy = FuzzyTermQuery::new_prefix(fuzzy, 1, true);
        let automaton = fuzzy.automaton().map_err(read_error)?;
        for field in [self.fields.body, self.fields.title] {
            for (_, reader, _) in self.view.segments() {
                let index = reader.inverted_index(field).map_err(read_error)?;
                let terms = index.terms().search(&automaton).into_stream();
                let mut terms = terms.map_err(read_error)?;
                while let Some((term, info)) = terms.next() {
                    if let Ok(term) = std::str::from_utf8(term) {
                        *near.entry(term.to_owned()).or_default() += u64::from(info.doc_freq);
                    }
                }
            }
        }
        // Of near spellings the one of about this length, then the commonest, is the likeliest.
        let length = word.chars().count();
        let mut near: Vec<(String, u64)> = near.into_iter().collect();
        near.sort_by_cached_key(|(term, frequency)| {
            (term.chars().count().abs_diff(length), u64::MAX - frequency, term.clone())
        });
        let mut likely = vec![];
        for (term, _) in near.into_iter().take(4 * MAX_EXPANSIONS) {
            let occurs = self.occurs(&term)?;
            if occurs.frequency > 0 && likely.len() < MAX_EXPANSIONS {
                likely.push((term, occurs));
            }
        }
        Ok(likely)
    }
}

/// The first characters of a text; nothing if there are fewer.
fn chars(text: &str, count: usize) -> Option<&str> {
    let end = text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(count)?;
    text.get(..end)
}
