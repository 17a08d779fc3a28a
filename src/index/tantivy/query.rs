//! A parsed query → what tantivy runs.
//!
//! Any of a query's words may match: each of its terms is a clause of one large disjunction, which is
//! the only shape in which tantivy skips whole blocks of documents that can't score well enough.

use std::collections::HashSet;

use ::tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, FuzzyTermQuery, Occur, PhrasePrefixQuery, PhraseQuery,
    Query, TermQuery,
};
use ::tantivy::schema::{Field, IndexRecordOption, Term};

mod variants;

use super::analyzer::Pool;
use super::schema::Fields;
use super::statistics::Statistics;
use super::view::{View, alive, read_error};
use super::visible::Visible;
use super::words::{Meaning, Words};
use crate::analyze::{self, PhraseTerm, QueryTerm};
use crate::index::IndexError;
use crate::search::query::Query as UserQuery;
use crate::search::ranking::Ranking;

/// Distinct terms that are searched; a long text in a script without spaces has many.
const MAX_TERMS: usize = 384;
/// Ways in which a phrase may go on within its last character's script.
const MAX_PHRASE_ENDS: u32 = 1_000;
/// What a word counts in relevance, which is about the query's subject only, that says nothing of it.
const COMMON_WEIGHT: f32 = 0.2;
/// Terms of a query of which neighbours are looked for.
const MAX_PAIRED: usize = 64;

/// What a term counts in each field of the body's analyzer.
fn boosts(fields: &Fields, ranking: &Ranking) -> [(Field, f32); 5] {
    [
        (fields.body, 1.0),
        (fields.title, ranking.title),
        (fields.heading, ranking.heading),
        (fields.uri, ranking.uri),
        (fields.description, ranking.description),
    ]
}

/// A query, ready to run on one view.
pub struct Compiled {
    pub query: Box<dyn Query>,
    /// A resource with a document that matches one of these is left out.
    pub excluded: Vec<Box<dyn Query>>,
    /// Neighbours of the query that stand together; each adds to the score of what has it.
    pub pairs: Vec<Box<dyn Query>>,
    pub words: Words,
}

/// Whether a term is of a script that is written without spaces, or indexed by pairs.
fn is_unspaced(term: &str) -> bool {
    term.chars().next().is_some_and(|c| {
        matches!(c, '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}'
            | '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7A3}'
            | '\u{20000}'..='\u{3FFFD}')
    })
}

/// Compiles a query for one view; `visible` tells which words occur at all for this caller.
///
/// # Errors
/// [`IndexError::Read`] when the index can't be read.
pub fn compile(
    view: &View,
    pool: &Pool,
    visible: &[Visible<'_>],
    query: &UserQuery,
    statistics: &Statistics<'_>,
    ranking: &Ranking,
) -> Result<Compiled, IndexError> {
    let fields = &view.fields;
    let boosts = boosts(fields, ranking);
    Compiler { view, pool, visible, fields, statistics, ranking, boosts }.compile(query)
}

type Clauses = Vec<(Occur, Box<dyn Query>)>;

struct Compiler<'a> {
    view: &'a View,
    pool: &'a Pool,
    visible: &'a [Visible<'a>],
    fields: &'a Fields,
    statistics: &'a Statistics<'a>,
    ranking: &'a Ranking,
    /// The fields of the body's analyzer, with what a term counts in each.
    boosts: [(Field, f32); 5],
}

impl Compiler<'_> {
    fn compile(&self, query: &UserQuery) -> Result<Compiled, IndexError> {
        let phrases = query.phrases.iter().filter_map(|phrase| self.phrase(phrase));
        let mut clauses: Clauses = phrases.map(|phrase| (Occur::Must, phrase)).collect();
        let excluded = query.excluded.iter().filter_map(|text| self.phrase(text)).collect();

        // The words of phrases count as words too: for scores, relevance and highlights.
        let text = query.words();
        let words = self.words(&text, query.text.len(), &mut clauses)?;
        if text.is_empty() && query.narrows() {
            // Only filters or exclusions: everything that they leave.
            clauses.push((Occur::Must, Box::new(AllQuery)));
        }
        let pairs = self.pairs(&text)?;
        Ok(Compiled { query: Box::new(BooleanQuery::new(clauses)), excluded, pairs, words })
    }

    /// Neighbours in the query: they add to the score of what has them together. They are looked for
    /// in the best candidates only, so a search never walks through the places of common words.
    fn pairs(&self, text: &str) -> Result<Vec<Box<dyn Query>>, IndexError> {
        let terms = self.pool.with(|analyzer| analyzer.phrase(text));
        let terms = &terms[..terms.len().min(MAX_PAIRED)];
        let documents = self.view.searcher.num_docs();
        let too_common = (documents / 8).max(100);
        let mut pairs: Vec<Box<dyn Query>> = vec![];
        let mut seen = HashSet::new();
        for (at, left) in terms.iter().enumerate() {
            let near = |right: &&PhraseTerm| right.position <= left.position + 2;
            for right in terms[at + 1..].iter().take_while(near) {
                let gap = right.position - left.position;
                if gap == 0 || !seen.insert((&left.term, &right.term)) {
                    continue;
                }
                let pair = [left, right].map(|term| {
                    (term.position, Term::from_field_text(self.fields.body, &term.term))
                });
                let mut rarer = u64::MAX;
                for (_, term) in &pair {
                    rarer = rarer.min(self.view.searcher.doc_freq(term).map_err(read_error)?);
                }
                if rarer == 0 || rarer > too_common {
                    continue;
                }
                let is_unspaced = is_unspaced(&left.term) && is_unspaced(&right.term);
                let boost =
                    if is_unspaced { self.ranking.unspaced_pair } else { self.ranking.pair };
                if boost <= 0.0 {
                    continue;
                }
                let boost = if gap > 1 { boost / 2.0 } else { boost };
                let phrase = PhraseQuery::new_with_offset(pair.to_vec());
                pairs.push(Box::new(BoostQuery::new(Box::new(phrase), boost)));
            }
        }
        Ok(pairs)
    }

    /// Adds a clause for each term of a text, and says what the terms mean. A word at `typed_end` may
    /// be unfinished.
    fn words(
        &self,
        text: &str,
        typed_end: usize,
        clauses: &mut Clauses,
    ) -> Result<Words, IndexError> {
        let mut terms = self.pool.with(|analyzer| analyzer.query(text));
        terms.truncate(MAX_TERMS);
        let mut words = Words::new(text, &terms);
        let mut frequencies = vec![None::<u64>; words.words.len()];
        for term in &terms {
            let is_common = words.is_common(&(term.from..term.to));
            let factor = if is_common { self.ranking.common } else { 1.0 };
            let frequency = match term.field {
                analyze::Field::Word => {
                    let boost = match is_unspaced(&term.term) {
                        true => self.ranking.unspaced_word,
                        false => self.ranking.word,
                    };
                    let term = Term::from_field_text(self.fields.word, &term.term);
                    clauses.push((Occur::Should, boosted(term, boost * factor)));
                    continue;
                }
                analyze::Field::Body if term.prefix => {
                    clauses.extend(self.beginning(&term.term).map(|query| (Occur::Should, query)));
                    continue;
                }
                analyze::Field::Body => {
                    let occurs = self.occurs(&term.term)?;
                    clauses.extend(in_fields(&term.term, &occurs.fields, factor));
                    occurs.frequency
                }
            };
            for meaning in words.meanings(&(term.from..term.to), 1.0) {
                let known = &mut frequencies[meaning.word];
                if frequency > 0 && !meaning.part.is_empty() {
                    // Of its parts the rarest says most about how rare the whole is.
                    *known = Some(known.map_or(frequency, |old| old.min(frequency)));
                }
            }
        }
        // A word may stand in the text in another form; one of which nothing occurs may also be
        // misspelt, or be two words written as one.
        let languages = &self.statistics.languages;
        let last = self.unfinished(&terms, typed_end, &frequencies, &words);
        let completed = match last {
            Some(last) => self.completions(last, &mut words, &mut frequencies, clauses)?,
            None => None,
        };
        for term in terms.iter().filter(|term| term.field == analyze::Field::Body) {
            let at = term.from..term.to;
            if completed.as_ref().is_some_and(|word| word.start <= at.start && at.end <= word.end) {
                continue;
            }
            let meanings = words.meanings(&at, 1.0);
            let is_unknown = meanings.iter().all(|meaning| frequencies[meaning.word].is_none());
            let has_forms = languages.is_inflected() || is_unknown && languages.is_unknown();
            if has_forms && term.fuzzy && !words.is_common(&at) && self.ranking.form > 0.0 {
                let typed = text.get(at).unwrap_or_default();
                let found = self.forms(term, typed, &meanings, &mut words, clauses)?;
                if found > 0 && languages.is_inflected() {
                    for meaning in &meanings {
                        frequencies[meaning.word].get_or_insert(found);
                    }
                    continue;
                }
            }
            if is_unknown {
                self.splits(term, &meanings, &mut words, clauses)?;
                if term.fuzzy && self.ranking.near > 0.0 {
                    self.near(term, &meanings, &mut words, clauses)?;
                }
            }
        }
        for (word, frequency) in words.words.iter_mut().zip(frequencies) {
            let typed = text.get(word.at.clone()).unwrap_or_default();
            word.weight = self.statistics.rarity(typed, frequency.unwrap_or_default())?;
            word.is_unknown = frequency.is_none() && !word.is_common;
            if word.is_common {
                word.weight *= COMMON_WEIGHT;
            }
        }
        words.rarest = self.statistics.rarity("", 0)?;
        Ok(words)
    }

    /// The last word of a query, when nothing stands behind it and it occurs nowhere.
    fn unfinished<'t>(
        &self,
        terms: &'t [QueryTerm],
        typed_end: usize,
        frequencies: &[Option<u64>],
        words: &Words,
    ) -> Option<&'t QueryTerm> {
        let last = terms.iter().find(|term| {
            let is_last = term.field == analyze::Field::Word && term.to == typed_end;
            is_last && !is_unspaced(&term.term) && !words.is_common(&(term.from..term.to))
        })?;
        let meanings = words.meanings(&(last.from..last.to), 1.0);
        let is_unknown = meanings.iter().all(|meaning| frequencies[meaning.word].is_none());
        (is_unknown && self.ranking.unfinished > 0.0).then_some(last)
    }

    /// All terms that begin so, in the fields in which people look for a single character.
    fn beginning(&self, term: &str) -> impl Iterator<Item = Box<dyn Query>> {
        [self.fields.body, self.fields.title].into_iter().map(move |field| -> Box<dyn Query> {
            Box::new(FuzzyTermQuery::new_prefix(Term::from_field_text(field, term), 0, true))
        })
    }

    /// A text as it stands, in any of the fields; `None` for one without words.
    fn phrase(&self, text: &str) -> Option<Box<dyn Query>> {
        let terms = self.pool.with(|analyzer| analyzer.phrase(text));
        let queries: Vec<Box<dyn Query>> = match terms.as_slice() {
            [] => return None,
            [alone] if alone.prefix => self.beginning(&alone.term).collect(),
            [alone] => {
                let fields = self.boosts;
                in_fields(&alone.term, &fields, 1.0).map(|(_, query)| query).collect()
            }
            [.., last] => {
                let in_field = |(field, boost)| {
                    let terms = terms
                        .iter()
                        .map(|term| (term.position, Term::from_field_text(field, &term.term)));
                    let phrase: Box<dyn Query> = if last.prefix {
                        let mut phrase = PhrasePrefixQuery::new_with_offset(terms.collect());
                        phrase.set_max_expansions(MAX_PHRASE_ENDS);
                        Box::new(phrase)
                    } else {
                        Box::new(PhraseQuery::new_with_offset(terms.collect()))
                    };
                    Box::new(BoostQuery::new(phrase, boost)) as Box<dyn Query>
                };
                self.boosts.into_iter().map(in_field).collect()
            }
        };
        Some(Box::new(BooleanQuery::union(queries)))
    }

    fn occurs(&self, term: &str) -> Result<Occurs, IndexError> {
        let mut occurs = Occurs { fields: vec![], frequency: 0 };
        let mut is_seen = false;
        for (field, boost) in self.boosts {
            let term = Term::from_field_text(field, term);
            let mut frequency = 0;
            for ((_, reader, _), visible) in self.view.segments().zip(self.visible) {
                let index = reader.inverted_index(field).map_err(read_error)?;
                let Some(info) = index.get_term_info(&term).map_err(read_error)? else { continue };
                frequency += u64::from(info.doc_freq);
                if !is_seen {
                    let docs = index.read_postings_from_terminfo(&info, IndexRecordOption::Basic);
                    let mut docs = alive(reader, docs.map_err(read_error)?);
                    is_seen = docs.any(|doc| visible.allows(doc));
                }
            }
            if frequency > 0 {
                occurs.fields.push((field, boost));
                occurs.frequency = occurs.frequency.max(frequency);
            }
        }
        if !is_seen {
            occurs.frequency = 0;
        }
        Ok(occurs)
    }
}

/// Where a term occurs.
struct Occurs {
    /// With what the term counts there.
    fields: Vec<(Field, f32)>,
    /// In how many documents, in the field where that is most; 0 when in none that the caller sees.
    frequency: u64,
}

/// A term in each of some fields.
fn in_fields(
    term: &str,
    fields: &[(Field, f32)],
    boost: f32,
) -> impl Iterator<Item = (Occur, Box<dyn Query>)> {
    fields.iter().map(move |(field, of_field)| {
        (Occur::Should, boosted(Term::from_field_text(*field, term), boost * of_field))
    })
}

/// That a term stands for what other terms were typed for.
fn learn(words: &mut Words, term: &str, meanings: &[Meaning], sure: f32) {
    for meaning in meanings {
        let meaning = Meaning { sure, ..meaning.clone() };
        words.learn(analyze::Field::Body, term.to_owned(), meaning);
    }
}

fn boosted(term: Term, boost: f32) -> Box<dyn Query> {
    Box::new(BoostQuery::new(Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)), boost))
}
