//! Request → grouped hits with snippets. Uses the index's contract and the model, nothing else.

pub mod filter;
pub mod query;
pub mod snippet;
