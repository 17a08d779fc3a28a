//! A parsed query → what tantivy runs, and what each of its words means for relevance and highlights.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use ::tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, FuzzyTermQuery, Occur, PhraseQuery, Query, TermQuery,
};
use ::tantivy::schema::{Field, IndexRecordOption, Term};

use super::analyzer::Pool;
use super::collect::Visible;
use super::schema::Fields;
use super::view::{View, read_error};
use crate::analyze::{Field as Analysis, Token};
use crate::index::IndexError;
use crate::search::query::Query as UserQuery;

/// Distinct terms of one analyzer that are searched; a long text in a script without spaces has many.
const MAX_TERMS: usize = 192;
/// Shortest word that is taken for a possible misspelling; letters.
const MIN_FUZZY_LETTERS: usize = 4;
/// Words that a misspelling may stand for.
const MAX_EXPANSIONS: usize = 8;
/// What a word found by a near spelling counts, beside one found as it was typed.
const FUZZY_BOOST: f32 = 0.6;

/// What a term counts in each field, beside the body. Fields of names are short, so that BM25 rates
/// them high by itself; they point the way, and mustn't drown what the passage says.
fn boosts(fields: &Fields) -> [(Field, f32); 5] {
    [
        (fields.body, 1.0),
        (fields.title, 0.5),
        (fields.heading, 0.4),
        (fields.uri, 0.2),
        (fields.description, 0.5),
    ]
}
const WORD_BOOST: f32 = 0.5;

/// A query, ready to run on one view.
pub struct Compiled {
    pub query: Box<dyn Query>,
    /// Whether a resource with such a document is left out.
    pub excluded: Vec<Box<dyn Query>>,
    pub words: Words,
}

/// The words of a query, for relevance and highlights.
#[derive(Default)]
pub struct Words {
    pub words: Vec<Word>,
    /// Which words a term stands for.
    body: HashMap<String, Vec<(u32, f32)>>,
    word: HashMap<String, Vec<(u32, f32)>>,
}

/// One word of the query as people see words; in scripts without spaces, as a dictionary does.
#[derive(Clone, Debug)]
pub struct Word {
    /// Inverse document frequency: how much it tells.
    pub weight: f32,
    /// How many body terms it has (bigrams, parts of a compound).
    pub parts: usize,
}

impl Words {
    /// The words that a term stands for, each with how surely (1: as typed).
    pub fn of(&self, field: Analysis, term: &str) -> &[(u32, f32)] {
        let terms = match field {
            Analysis::Body => &self.body,
            Analysis::Word => &self.word,
        };
        terms.get(term).map_or(&[], Vec::as_slice)
    }
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
) -> Result<Compiled, IndexError> {
    let compiler = Compiler { view, pool, visible, fields: &view.fields };
    compiler.compile(query)
}

struct Compiler<'a> {
    view: &'a View,
    pool: &'a Pool,
    visible: &'a [Visible<'a>],
    fields: &'a Fields,
}

impl Compiler<'_> {
    fn compile(&self, query: &UserQuery) -> Result<Compiled, IndexError> {
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = vec![];
        let phrases = query.phrases.iter().filter_map(|phrase| self.phrase(phrase));
        clauses.extend(phrases.map(|phrase| (Occur::Must, phrase)));
        let must = clauses.len();

        // Phrases count as words too: for the score of other passages and for highlights.
        let mut text = query.text.clone();
        for phrase in &query.phrases {
            text.push('\n');
            text.push_str(phrase);
        }
        let words = self.words(&text, &mut clauses)?;

        let excluded: Vec<_> = query.excluded.iter().filter_map(|text| self.phrase(text)).collect();
        let has_words = !query.text.is_empty() || !query.phrases.is_empty();
        if clauses.len() == must && must == 0 && !has_words && query.narrows() {
            // Only filters or exclusions: everything that they leave.
            clauses.push((Occur::Must, Box::new(AllQuery)));
        }
        Ok(Compiled { query: Box::new(BooleanQuery::new(clauses)), excluded, words })
    }

    /// Adds a clause for each distinct term of a text, and says what the terms mean.
    fn words(
        &self,
        text: &str,
        clauses: &mut Vec<(Occur, Box<dyn Query>)>,
    ) -> Result<Words, IndexError> {
        let body = self.pool.tokens(Analysis::Body, text);
        let word = self.pool.tokens(Analysis::Word, text);
        let mut layout = Layout::new(&word);
        let mut words = Words::default();

        let mut distinct: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
        for token in &body {
            let at = layout.word_at(token.from..token.to);
            if distinct.len() == MAX_TERMS && !distinct.contains_key(token.term.as_str()) {
                break;
            }
            if !distinct.contains_key(token.term.as_str()) {
                distinct.insert(&token.term, (self.frequency(&token.term)?, at));
            }
            let meanings = words.body.entry(token.term.clone()).or_default();
            if !meanings.iter().any(|(word, _)| *word == at as u32) {
                meanings.push((at as u32, 1.0));
            }
        }
        for term in distinct.keys() {
            clauses.extend(self.any_field(term).map(|query| (Occur::Should, query)));
        }
        for (token, at) in word.iter().zip(&layout.numbers).take(MAX_TERMS) {
            let meanings = words.word.entry(token.term.clone()).or_default();
            if meanings.is_empty() {
                let term = Term::from_field_text(self.fields.word, &token.term);
                clauses.push((Occur::Should, boosted(term, WORD_BOOST)));
            }
            if !meanings.iter().any(|(word, _)| *word == *at as u32) {
                meanings.push((*at as u32, 1.0));
            }
        }

        let documents = self.view.searcher.num_docs();
        words.words = vec![Word { weight: 0.0, parts: 0 }; layout.words.len()];
        let mut frequencies: Vec<Option<u64>> = vec![None; layout.words.len()];
        for token in &body {
            let Some((frequency, _)) = distinct.get(token.term.as_str()) else { continue };
            for (at, _) in words.body.get(&token.term).into_iter().flatten() {
                let slot = &mut frequencies[*at as usize];
                if *frequency > 0 {
                    *slot = Some(slot.map_or(*frequency, |old| old.min(*frequency)));
                }
            }
        }
        for meanings in words.body.values() {
            for (at, _) in meanings {
                words.words[*at as usize].parts += 1;
            }
        }
        for (word, frequency) in words.words.iter_mut().zip(&frequencies) {
            word.weight = idf(documents, frequency.unwrap_or_default());
        }

        // A word that occurs nowhere may be misspelt. One of which a part occurs isn't.
        let unknown: Vec<&Token> = body
            .iter()
            .filter(|token| {
                let at = layout.word_at(token.from..token.to);
                frequencies[at].is_none() && token.term.chars().count() >= MIN_FUZZY_LETTERS
            })
            .collect();
        for token in unknown {
            let at = layout.word_at(token.from..token.to) as u32;
            if words.body.get(&token.term).is_some_and(|meanings| meanings.len() > 1) {
                continue;
            }
            for near in self.near(&token.term)? {
                let known = words.body.entry(near.clone()).or_default();
                if known.is_empty() {
                    let queries = self.any_field(&near);
                    clauses.extend(queries.map(|query| {
                        let query: Box<dyn Query> = Box::new(BoostQuery::new(query, FUZZY_BOOST));
                        (Occur::Should, query)
                    }));
                }
                if !known.iter().any(|(word, _)| *word == at) {
                    known.push((at, FUZZY_BOOST));
                }
            }
        }
        Ok(words)
    }

    /// A term in each of the fields that the body's analyzer made.
    fn any_field<'t>(&self, term: &'t str) -> impl Iterator<Item = Box<dyn Query>> + use<'t> {
        let boosts = boosts(self.fields);
        boosts
            .into_iter()
            .map(move |(field, boost)| boosted(Term::from_field_text(field, term), boost))
    }

    /// A text as it stands, in any of the fields; `None` for one without words.
    fn phrase(&self, text: &str) -> Option<Box<dyn Query>> {
        let mut terms: Vec<Token> = vec![];
        for token in self.pool.tokens(Analysis::Body, text) {
            match terms.last_mut() {
                // Of alternatives at one position the shortest is the word itself, the others are
                // compounds with its neighbours, which a text may write apart.
                Some(last) if last.position == token.position => {
                    if token.to - token.from < last.to - last.from {
                        *last = token;
                    }
                }
                _ => terms.push(token),
            }
        }
        let start = terms.first()?.position;
        let fields = boosts(self.fields).into_iter().map(|(field, boost)| {
            let terms: Vec<(usize, Term)> = terms
                .iter()
                .map(|token| (token.position - start, Term::from_field_text(field, &token.term)))
                .collect();
            match terms.as_slice() {
                [(_, term)] => boosted(term.clone(), boost),
                _ => {
                    Box::new(BoostQuery::new(Box::new(PhraseQuery::new_with_offset(terms)), boost))
                }
            }
        });
        Some(Box::new(BooleanQuery::union(fields.collect())))
    }

    /// In how many documents a term occurs, all fields together; 0 when in none that the caller sees.
    fn frequency(&self, term: &str) -> Result<u64, IndexError> {
        let mut frequency = 0;
        let mut seen = false;
        for (field, _) in boosts(self.fields) {
            let term = Term::from_field_text(field, term);
            for ((_, reader, _), visible) in self.view.segments().zip(self.visible) {
                let index = reader.inverted_index(field).map_err(read_error)?;
                let Some(info) = index.get_term_info(&term).map_err(read_error)? else { continue };
                frequency = frequency.max(u64::from(info.doc_freq));
                if !seen {
                    let postings =
                        index.read_postings_from_terminfo(&info, IndexRecordOption::Basic);
                    let mut docs = super::view::alive(reader, postings.map_err(read_error)?);
                    seen = docs.any(|doc| visible.allows(doc));
                }
            }
        }
        Ok(if seen { frequency } else { 0 })
    }

    /// Terms of body and title that begin within one edit of a word, the likeliest first.
    fn near(&self, word: &str) -> Result<Vec<String>, IndexError> {
        let mut near: HashMap<String, u64> = HashMap::new();
        for field in [self.fields.body, self.fields.title] {
            let fuzzy = FuzzyTermQuery::new_prefix(Term::from_field_text(field, word), 1, true);
            for (_, reader, _) in self.view.segments() {
                let index = reader.inverted_index(field).map_err(read_error)?;
                let automaton = fuzzy.automaton().map_err(read_error)?;
                let mut terms =
                    index.terms().search(automaton).into_stream().map_err(read_error)?;
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
        let mut expansions = vec![];
        for (term, _) in near.into_iter().take(4 * MAX_EXPANSIONS) {
            if expansions.len() == MAX_EXPANSIONS {
                break;
            }
            if self.frequency(&term)? > 0 {
                expansions.push(term);
            }
        }
        Ok(expansions)
    }
}

fn boosted(term: Term, boost: f32) -> Box<dyn Query> {
    Box::new(BoostQuery::new(Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)), boost))
}

/// As BM25 has it; a word that occurs nowhere tells the most.
fn idf(documents: u64, frequency: u64) -> f32 {
    let (documents, frequency) = (documents.max(frequency) as f32, frequency as f32);
    (1.0 + (documents - frequency + 0.5) / (frequency + 0.5)).ln()
}

/// Which words a query's text has, and where.
struct Layout {
    /// Where each word stands when it stands for the first time.
    words: Vec<Range<usize>>,
    /// Place in the text → number of the word. Places of a repeated word lead to its first.
    places: Vec<(Range<usize>, usize)>,
    /// Token by token, the number of its word.
    numbers: Vec<usize>,
}

impl Layout {
    fn new(tokens: &[Token]) -> Self {
        let mut layout = Self { words: vec![], places: vec![], numbers: vec![] };
        let mut known: HashMap<&str, usize> = HashMap::new();
        for token in tokens {
            let range = token.from..token.to;
            // Alternatives of one word (a compound and its parts) overlap, and are one word.
            let overlapped = layout.places.iter().find(|(place, _)| overlaps(place, &range));
            let number = match (overlapped, known.get(token.term.as_str())) {
                (Some((_, number)), _) => *number,
                (None, Some(number)) => *number,
                (None, None) => {
                    layout.words.push(range.clone());
                    layout.words.len() - 1
                }
            };
            known.entry(&token.term).or_insert(number);
            layout.places.push((range, number));
            layout.numbers.push(number);
        }
        layout
    }

    /// The word that covers the beginning of a place, else one that overlaps it, else a new one.
    fn word_at(&mut self, range: Range<usize>) -> usize {
        let begins = self.places.iter().find(|(place, _)| place.contains(&range.start));
        let any = || self.places.iter().find(|(place, _)| overlaps(place, &range));
        if let Some((_, number)) = begins.or_else(any) {
            return *number;
        }
        self.words.push(range.clone());
        self.places.push((range, self.words.len() - 1));
        self.words.len() - 1
    }
}

fn overlaps(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}
