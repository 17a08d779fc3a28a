//! The analyzers as tantivy's tokenizers.
//!
//! Tantivy copies a tokenizer for every segment that it writes, and a commit may write one resource.
//! An [`Analyzer`] has buffers and caches worth keeping, so the copies borrow theirs from a pool.

use std::sync::{Arc, Mutex, PoisonError};

use ::tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use crate::analyze::{Analyzer, Field};

/// Analyzers that nobody uses at the moment. Cheap to clone; all clones share.
#[derive(Clone, Default)]
pub struct Pool(Arc<Mutex<Vec<Analyzer>>>);

impl Pool {
    /// Lends an analyzer for the time of one call.
    pub fn with<T>(&self, call: impl FnOnce(&mut Analyzer) -> T) -> T {
        let mut analyzer = self.take();
        let result = call(&mut analyzer);
        self.put(analyzer);
        result
    }

    fn take(&self) -> Analyzer {
        // A poisoned list still holds whole analyzers.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn put(&self, analyzer: Analyzer) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(analyzer);
    }
}

/// One of the two analyzers, as tantivy wants it.
pub struct PooledTokenizer {
    pool: Pool,
    field: Field,
    /// Taken from the pool at the first text, given back on drop.
    analyzer: Option<Analyzer>,
    /// The tokens of the text at hand; the first `len` count, the others are kept for their buffers.
    tokens: Vec<Token>,
    len: usize,
}

impl PooledTokenizer {
    pub fn new(pool: Pool, field: Field) -> Self {
        Self { pool, field, analyzer: None, tokens: vec![], len: 0 }
    }
}

impl Clone for PooledTokenizer {
    fn clone(&self) -> Self {
        Self::new(self.pool.clone(), self.field)
    }
}

impl Drop for PooledTokenizer {
    fn drop(&mut self) {
        if let Some(analyzer) = self.analyzer.take() {
            self.pool.put(analyzer);
        }
    }
}

impl Tokenizer for PooledTokenizer {
    type TokenStream<'a> = Tokens<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Tokens<'a> {
        let Self { pool, field, analyzer, tokens, len } = self;
        let analyzer = analyzer.get_or_insert_with(|| pool.take());
        *len = 0;
        analyzer.analyze(*field, text, &mut |token| {
            if tokens.len() == *len {
                tokens.push(Token::default());
            }
            let slot = &mut tokens[*len];
            slot.text.clear();
            slot.text.push_str(&token.term);
            (slot.offset_from, slot.offset_to) = (token.from, token.to);
            slot.position = token.position;
            *len += 1;
        });
        Tokens { tokens: &mut tokens[..*len], next: 0 }
    }
}

/// Walks through tokens that were made at once.
pub struct Tokens<'a> {
    tokens: &'a mut [Token],
    /// One past the current token; the protocol of [`TokenStream`] begins before the first.
    next: usize,
}

impl TokenStream for Tokens<'_> {
    fn advance(&mut self) -> bool {
        let more = self.next < self.tokens.len();
        self.next += usize::from(more);
        more
    }

    fn token(&self) -> &Token {
        &self.tokens[self.next - 1]
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.tokens[self.next - 1]
    }
}
