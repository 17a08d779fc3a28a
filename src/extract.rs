//! Snapshot → document: what is text in a resource, with its title and structure.
//!
//! By MIME type (parameters and case tolerated), else by the URI's suffix, else by looking at the
//! content. What has no text says why. Must not know servers, the index or the clock.

use crate::config::Limits;
use crate::model::{Document, Resource, Snapshot};

/// Changes whenever the same snapshot gives another document; part of the index's fingerprint.
pub const VERSION: u32 = 1;

/// What could be made of a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub enum Extraction {
    Document(Document),
    /// No text; the reason in words that tell a user what to expect ("image/png has no text").
    Skipped(String),
}

/// Extracts the text of a snapshot.
pub fn extract(resource: &Resource, snapshot: &Snapshot, limits: &Limits) -> Extraction {
    let _ = (resource, snapshot, limits);
    Extraction::Skipped("nothing is extracted yet".into())
}
