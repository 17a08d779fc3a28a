//! Text → terms, for every script: the analyzers of the fields `body` and `word`.
//!
//! Pure and without the index's types: the index feeds documents through it, the search feeds
//! queries, and the snippets ask it which parts of a passage matched.
//!
//! Text is taken line by line. A line is *folded* first (`fold`: one spelling for what is the
//! same), unless it's ASCII, which is what it folds to. The folded line is cut where the class of
//! its characters changes (`class`), and each run is treated as its script wants it (`body`, `word`).

mod body;
mod class;
mod common;
mod emit;
mod fold;
mod language;
mod parts;
mod query;
mod simplify;
mod stem;
mod word;

#[cfg(test)]
mod tests;

use icu_segmenter::options::WordBreakInvariantOptions;
use icu_segmenter::{WordSegmenter, WordSegmenterBorrowed};

pub use common::is_common;
pub use language::Languages;
pub use query::{PhraseTerm, QueryTerm};

use body::Body;
use emit::{Emit, Kind};
use fold::Folded;
use parts::Part;
use stem::Stems;

/// Changes whenever the same text gives other terms; part of the index's fingerprint.
pub const VERSION: u32 = 3;

/// Words of more bytes are no words (base64, hashes, minified code); they take a position, no term.
const MAX_WORD: usize = 64;
/// Compounds of more bytes are found by their parts only.
const MAX_COMPOUND: usize = 128;
/// Lines of more bytes are taken in pieces, cut at a space where there is one.
const MAX_LINE: usize = 32 * 1024;

/// Which of the two analyzed fields a term is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// Folded, stemmed, bigrams for scripts without spaces, code taken apart: recall.
    Body,
    /// Whole words, diacritics kept, no stemming: precision.
    Word,
}

/// One term with the place in the text that it stands for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Token {
    pub term: String,
    /// Bytes of the analyzed text, on character boundaries.
    pub from: usize,
    pub to: usize,
    /// Terms of neighbouring words have neighbouring positions; alternatives of one word share theirs.
    pub position: usize,
}

/// Turns text into terms. Keeps buffers and a stem cache, so one is kept per thread and reused.
pub struct Analyzer {
    token: Token,
    folded: Folded,
    parts: Vec<Part>,
    stems: Stems,
    segmenter: WordSegmenterBorrowed<'static>,
}

impl Default for Analyzer {
    fn default() -> Self {
        Self {
            token: Token::default(),
            folded: Folded::default(),
            parts: Vec::new(),
            stems: Stems::new(),
            segmenter: WordSegmenter::new_dictionary(WordBreakInvariantOptions::default()),
        }
    }
}

impl Analyzer {
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls `sink` with each token of `text`, in the order of position. This is for documents;
    /// queries go through [`Analyzer::query`] and [`Analyzer::phrase`].
    pub fn analyze(&mut self, field: Field, text: &str, sink: &mut dyn FnMut(&Token)) {
        self.tokens(field, text, &mut |token, _| sink(token));
    }

    fn tokens(&mut self, field: Field, text: &str, sink: &mut dyn FnMut(&Token, Kind)) {
        self.token.position = 0;
        let mut base = 0;
        for line in lines(text) {
            let folded = if line.is_ascii() {
                None
            } else {
                self.folded.fold(field, line);
                Some(&self.folded)
            };
            let text = folded.map_or(line, |folded| folded.text.as_str());
            let mut out = Emit { token: &mut self.token, base, folded, sink: &mut *sink };
            match field {
                Field::Body => Body {
                    text,
                    segmenter: self.segmenter,
                    stems: &mut self.stems,
                    parts: &mut self.parts,
                    out: &mut out,
                }
                .terms(),
                Field::Word => word::words(self.segmenter, text, &mut out),
            }
            base += line.len();
        }
    }
}

/// The lines of a text with their ends, long ones in pieces. No word goes on in the next one.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n').flat_map(|line| {
        let mut rest = line;
        std::iter::from_fn(move || {
            let (piece, after) = rest.split_at_checked(piece(rest))?;
            rest = after;
            (!piece.is_empty()).then_some(piece)
        })
    })
}

/// The length of the first piece of a line.
fn piece(line: &str) -> usize {
    if line.len() <= MAX_LINE {
        return line.len();
    }
    let end =
        (MAX_LINE - 3..=MAX_LINE).rfind(|&at| line.is_char_boundary(at)).unwrap_or(line.len());
    let piece = line.get(..end).unwrap_or(line);
    piece.rfind(char::is_whitespace).filter(|&at| at > 0).unwrap_or(end)
}
