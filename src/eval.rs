//! How good the search is, measured: sets of questions with known answers go through the pipeline that
//! serves people (extract, chunk, index, search), and what comes back is judged.
//!
//! * `set`: a folder of `corpus.jsonl`, `queries.jsonl`, `qrels.tsv`, or a file of questions with the
//!   URIs that answer them.
//! * `run`: sets → an index in memory → what each question found.
//! * `judge`: what was found → figures. Pure.
//! * `separation`: whether relevance tells questions that the index answers from those that it can't.

mod judge;
mod run;
mod separation;
mod set;

use std::path::PathBuf;

use serde::Serialize;

pub use judge::{Found, FoundHit, HITS, Latency, Missed, judge, missed};
pub use run::{Bench, CONTEXT, nonsense};
pub use separation::{Separation, plot, separate};
pub use set::{Id, Question, Set, questions, readable};

/// Why something couldn't be measured, with the file and line where that is known.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: String },
    #[error("{}, line {line}: {reason}", path.display())]
    Line { path: PathBuf, line: usize, reason: String },
    #[error(transparent)]
    Index(#[from] crate::index::IndexError),
}

/// What is printed of a set. All figures but counts, tokens and times are 0–1; more is better.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    pub name: String,
    pub queries: usize,
    /// Discounted gain of the first ten hits, of what an ideal order would gain.
    pub ndcg_at_10: f64,
    /// The share of the right documents that is among the first ten hits.
    pub recall_at_10: f64,
    /// One over the rank of the first right document; 0 after the tenth.
    pub mrr_at_10: f64,
    /// The share of questions with a right document first, and among the first three.
    pub success_at_1: f64,
    pub success_at_3: f64,
    /// Where a right document was found: whether the snippet that is shown of it has an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_in_snippet: Option<f64>,
    /// Whether 500 tokens of context have an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_in_context_500: Option<f64>,
    /// Title, URI and snippet of all hits: what a reader is handed. Estimated by script.
    pub tokens_per_query: f64,
    pub latency_ms: Latency,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relevance: Option<Separation>,
    /// Of questions that the daemon was asked: those whose document doesn't come first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<Vec<Missed>>,
}
