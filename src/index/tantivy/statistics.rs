//! How rare a word is and what counts as a long text: what BM25 asks of an index.
//!
//! Both are answered so that a document scores the same whatever else is indexed beside it. A word is
//! as rare as it is among texts of its language. A length is compared with that of an ordinary chunk,
//! since it is known how chunks are cut; the average of the index would depend on the scripts in it, and
//! on when documents that were deleted are merged away.

use std::cell::RefCell;
use std::collections::HashMap;

use ::tantivy::query::Bm25StatisticsProvider;
use ::tantivy::schema::{Field, Term};

use super::view::{View, read_error};
use crate::analyze::Languages;
use crate::index::IndexError;
use crate::search::ranking::Ranking;

/// As many documents as BM25 is told there are. It derives how rare a word is from two whole numbers;
/// with as many as this any rarity can be told.
const TOLD: u64 = 1 << 40;
/// Fewer texts than this tell nothing of a language's words.
const MIN_TEXTS: u64 = 16;
/// Ordinary lengths of names, in terms.
const TITLE: f32 = 8.0;
const URI: f32 = 6.0;
const DESCRIPTION: f32 = 20.0;
/// Words in scripts without spaces, beside pairs.
const WORDS_PER_PAIR: f32 = 0.6;

/// The statistics for one query on one view.
pub struct Statistics<'a> {
    view: &'a View,
    ranking: &'a Ranking,
    pub languages: Languages,
    documents: u64,
    /// In how many documents everyday words are.
    everyday: RefCell<HashMap<&'static str, u64>>,
}

impl<'a> Statistics<'a> {
    pub fn new(view: &'a View, ranking: &'a Ranking, languages: Languages) -> Self {
        let documents = view.searcher.num_docs();
        Self { view, ranking, languages, documents, everyday: RefCell::default() }
    }

    /// How much a word tells that is in so many documents: its inverse document frequency, as BM25
    /// has it. One that occurs nowhere tells the most.
    ///
    /// # Errors
    /// The index can't be read.
    pub fn rarity(&self, word: &str, frequency: u64) -> Result<f32, IndexError> {
        let texts = self.texts(word).map_err(read_error)?;
        Ok(ratio(if frequency > texts { self.documents } else { texts }, frequency).ln_1p())
    }

    /// How many texts there are of a word's language; all where that isn't known.
    fn texts(&self, word: &str) -> ::tantivy::Result<u64> {
        let mut texts = 0;
        if self.ranking.language > 0.0 {
            for everyday in self.languages.everyday(word) {
                texts = texts.max(self.frequency_of(everyday)?);
            }
        }
        Ok(if texts == 0 {
            self.documents
        } else {
            texts.max(MIN_TEXTS).min(self.documents.max(texts))
        })
    }

    fn frequency_of(&self, everyday: &'static str) -> ::tantivy::Result<u64> {
        if let Some(known) = self.everyday.borrow().get(everyday) {
            return Ok(*known);
        }
        let fields = &self.view.fields;
        let mut frequency = 0;
        for field in [fields.word, fields.body] {
            let term = Term::from_field_text(field, everyday);
            frequency = frequency.max(self.view.searcher.doc_freq(&term)?);
        }
        self.everyday.borrow_mut().insert(everyday, frequency);
        Ok(frequency)
    }

    /// The length of an ordinary text; nothing for the average of the index.
    fn ordinary(&self, field: Field) -> Option<f32> {
        let fields = &self.view.fields;
        let is_paired = self.languages.is_paired();
        let (length, unspaced) = (self.ranking.length, self.ranking.unspaced_length);
        if length <= 0.0 {
            return None;
        }
        Some(match field {
            _ if field == fields.title || field == fields.heading => TITLE,
            _ if field == fields.uri => URI,
            _ if field == fields.description => DESCRIPTION,
            _ if !is_paired => length,
            _ if field == fields.word => unspaced * WORDS_PER_PAIR,
            _ => unspaced,
        })
    }
}

impl Bm25StatisticsProvider for Statistics<'_> {
    fn total_num_tokens(&self, field: Field) -> ::tantivy::Result<u64> {
        let ordinary = match self.ordinary(field) {
            Some(length) => length,
            None => {
                let tokens = self.view.searcher.total_num_tokens(field)?;
                tokens as f32 / self.view.searcher.total_num_docs()?.max(1) as f32
            }
        };
        Ok((f64::from(ordinary) * TOLD as f64) as u64)
    }

    fn total_num_docs(&self) -> ::tantivy::Result<u64> {
        Ok(TOLD)
    }

    fn doc_freq(&self, term: &Term) -> ::tantivy::Result<u64> {
        let frequency = self.view.searcher.doc_freq(term)?;
        let texts = self.texts(term.value().as_str().unwrap_or_default())?;
        let rare = ratio(if frequency > texts { self.documents } else { texts }, frequency);
        // The frequency at which BM25 arrives at the same ratio.
        let (told, rare) = (TOLD as f64, f64::from(rare));
        Ok((((told + 0.5 - 0.5 * rare) / (1.0 + rare)).round() as u64).min(TOLD))
    }
}

/// How many documents are without a word for each one that has it.
fn ratio(documents: u64, frequency: u64) -> f32 {
    let (documents, frequency) = (documents.max(frequency) as f32, frequency as f32);
    (documents - frequency + 0.5) / (frequency + 0.5)
}
