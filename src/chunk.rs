//! Document → chunks: passages of about 400 tokens with heading path and span.

use crate::model::{Chunk, Document};

/// Changes whenever the same document gives other chunks; part of the index's fingerprint.
pub const VERSION: u32 = 1;

/// Cuts a document into chunks that partition the text of each part. An empty document has none.
pub fn chunk(document: &Document) -> Vec<Chunk> {
    let _ = document;
    vec![]
}

/// Estimates a text's length in tokens (of o200k) by script, without a vocabulary.
pub fn estimate_tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}
