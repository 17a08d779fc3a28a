//! What each sign of an answer counts. All of it in one place, so that a sign can be left out and its
//! worth be measured (`resdex eval DIR --rank title=0`); docs/retrieval.md holds what came out.

use serde::Deserialize;

/// Factors of scores, each beside 1 for a term of the body; 0 leaves the sign out.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ranking {
    /// A term in the title, the headings above the chunk, the URI, the server's description. These are
    /// short; they point the way, and mustn't drown what the passage says.
    pub title: f32,
    pub heading: f32,
    pub uri: f32,
    pub description: f32,
    /// A whole word as it is written, beside its stem; and in scripts without spaces, beside its pairs.
    pub word: f32,
    pub unspaced_word: f32,
    /// A word that says nothing of the query's subject.
    pub common: f32,
    /// A near spelling of a word that occurs nowhere.
    pub near: f32,
    /// A word that begins like the last one of the query, which occurs nowhere: it may not be typed
    /// to its end yet.
    pub unfinished: f32,
    /// Another form of a word, by how alike they are, in languages that have no stemmer here.
    pub form: f32,
    /// Two neighbours of the query that stand together. Pairs of characters are neighbours already, so
    /// two of these say little more.
    pub pair: f32,
    pub unspaced_pair: f32,
    /// How much a passage gains that has all of the query's words in one stretch; others by what they
    /// have there.
    pub stretch: f32,
    /// How much of a language's own statistics is taken for its words, else those of the whole index.
    pub language: f32,
    /// Lengths of chunks that count as neither short nor long, in terms of the body; 0: the average of
    /// the index.
    pub length: f32,
    pub unspaced_length: f32,
}

impl Default for Ranking {
    fn default() -> Self {
        Self {
            title: 0.3,
            heading: 0.4,
            uri: 0.2,
            description: 0.5,
            word: 0.5,
            unspaced_word: 1.0,
            common: 0.3,
            near: 0.6,
            unfinished: 0.8,
            form: 0.6,
            pair: 0.3,
            unspaced_pair: 0.05,
            stretch: 0.7,
            language: 1.0,
            length: 150.0,
            unspaced_length: 300.0,
        }
    }
}
