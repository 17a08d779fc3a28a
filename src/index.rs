//! The store's contract, and what goes in and comes out.
//!
//! Nothing above this seam may assume one process, atomic commits across keys, or tantivy's types.

pub mod rebuild;
pub mod tantivy;
pub mod writer;

use std::ops::Range;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::extract::mime::{self, Kind, MimeType};
use crate::model::{
    Audience, Chunk, ContentHash, Fingerprint, Manifest, Outcome, Resource, ResourceKey, ServerName,
};
use crate::search::filter::Filter;
use crate::search::query::Query;
use crate::search::ranking::Ranking;

/// One resource as the index shall hold it, whole: its chunks all come from one snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub server: ServerName,
    pub resource: Resource,
    /// From the document itself; `resource.title` goes before it.
    pub document_title: Option<String>,
    /// The MIME type that was acted on.
    pub mime_type: Option<String>,
    pub content_hash: ContentHash,
    pub fingerprint: Fingerprint,
    pub outcome: Outcome,
    pub chunks: Vec<Chunk>,
    pub indexed_at: DateTime<Utc>,
}

impl Entry {
    pub fn key(&self) -> ResourceKey {
        ResourceKey { server: self.server.clone(), uri: self.resource.uri.clone() }
    }
}

/// Hash of the fields of a resource that are indexed or shown: a change of one of them is a reason to
/// write the resource again, even when its content is the same.
pub fn description_hash(resource: &Resource) -> u64 {
    // Taken apart whole, so that a new field can't be forgotten.
    let Resource {
        uri: _,
        name,
        title,
        description,
        mime_type,
        size,
        audience,
        priority,
        last_modified,
        origin: _,
    } = resource;
    let mut hasher = blake3::Hasher::new();
    let mut field = |value: Option<&[u8]>| {
        // No length is the largest, so that an absent value differs from an empty one.
        hasher.update(&value.map_or(u64::MAX, |bytes| bytes.len() as u64).to_le_bytes());
        hasher.update(value.unwrap_or_default());
    };
    field(Some(name.as_bytes()));
    field(title.as_deref().map(str::as_bytes));
    field(description.as_deref().map(str::as_bytes));
    field(mime_type.as_deref().map(str::as_bytes));
    field(size.map(u64::to_le_bytes).as_ref().map(<[u8; 8]>::as_slice));
    field(Some(&[*audience as u8]));
    field(priority.map(f32::to_le_bytes).as_ref().map(<[u8; 4]>::as_slice));
    field(last_modified.as_deref().map(str::as_bytes));
    let mut first = [0; 8];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(first)
}

/// Whether a resource's text is of another kind than its server's MIME type says. Text of most kinds
/// may be called plain, and a type that says nothing is no wrong one.
pub fn is_mislabelled(entry: &Entry) -> bool {
    let kind = |mime_type: &Option<String>| {
        let essence = MimeType::parse(mime_type.as_deref()?).essence;
        mime::kind_of_type(&essence)
    };
    let actual = kind(&entry.mime_type);
    entry.outcome == Outcome::Indexed
        && match kind(&entry.resource.mime_type) {
            None => false,
            Some(Kind::Plain) => actual == Some(Kind::Html),
            Some(declared) => actual.is_some_and(|actual| actual != declared),
        }
}

/// One operation on the index. Both are idempotent.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Puts the entry in the place of whatever the index holds of its key.
    Replace(Box<Entry>),
    Remove(ResourceKey),
    /// Removes all that a server has in the index: it was taken out of the config.
    RemoveServer(ServerName),
}

/// The index, whatever its engine.
///
/// * `apply` hands changes to the engine in order; they become visible and durable at the next
///   `commit`, all of one key's chunks together with its manifest, never half.
/// * A reader sees the state of one commit, and no reader waits for a writer.
/// * A crash leaves the last commit or the one before.
/// * Only the writer (`index::writer`) calls `apply`, `commit`, `rollback` and `settle`.
pub trait IndexStore: Send + Sync + 'static {
    /// Hands changes over. Blocking: called from a thread that may wait.
    fn apply(&self, changes: Vec<Change>) -> Result<(), IndexError>;
    /// Makes all that was applied visible before it returns.
    fn commit(&self) -> Result<(), IndexError>;
    /// Makes all that was committed before the call durable before it returns. May be called from
    /// another thread than the rest: commits go on meanwhile.
    fn persist(&self) -> Result<(), IndexError>;
    /// Forgets what was applied since the last commit, after an error.
    fn rollback(&self) -> Result<(), IndexError>;
    /// Takes up what the engine did by itself since the last commit (merging segments), which
    /// changes no answer. Called by the writer now and then when it has nothing else to do.
    fn settle(&self) -> Result<(), IndexError> {
        Ok(())
    }

    /// All manifests of a server, in no order.
    fn manifests(&self, server: &ServerName) -> Result<Vec<Manifest>, IndexError>;
    /// The names of the servers of which the index holds anything.
    fn servers(&self) -> Result<Vec<ServerName>, IndexError>;
    /// What the index holds of one resource, with its chunks in order.
    fn entry(&self, key: &ResourceKey) -> Result<Option<Entry>, IndexError>;
    /// The keys of all resources with this URI, on whatever server.
    fn keys_of_uri(&self, uri: &str) -> Result<Vec<ResourceKey>, IndexError>;
    /// Resources in the order of their keys, those after `after`.
    fn resources(&self, request: &ResourcesRequest) -> Result<ResourcesPage, IndexError>;
    /// The best resources for a query, best first, one hit each.
    fn search(&self, request: &StoreRequest) -> Result<StoreAnswer, IndexError>;
    fn stats(&self) -> Result<IndexStats, IndexError>;
}

#[derive(Clone, Debug, Default)]
pub struct ResourcesRequest {
    pub filter: Filter,
    pub after: Option<ResourceKey>,
    pub limit: usize,
    /// Only those that are found by name only.
    pub skipped_only: bool,
    /// Only this server's, whose URIs begin with this one.
    pub within: Option<ResourceKey>,
    /// Only URIs that have this in them, percent-decoded, whatever the case; lower case itself.
    pub contains: Option<String>,
}

impl ResourcesRequest {
    /// Whether a key is one that is asked for, the filter aside.
    pub fn is_about(&self, server: &str, uri: &str) -> bool {
        self.within
            .as_ref()
            .is_none_or(|within| within.server.as_str() == server && uri.starts_with(&*within.uri))
            && self.contains.as_ref().is_none_or(|part| {
                let decoded = percent_encoding::percent_decode_str(uri).decode_utf8_lossy();
                decoded.to_lowercase().contains(part.as_str())
            })
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourcesPage {
    pub resources: Vec<ResourceRow>,
    /// Whether more follow after the last one.
    pub more: bool,
}

/// A resource as lists show it.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceRow {
    pub key: ResourceKey,
    pub title: String,
    pub mime_type: Option<String>,
    pub size: Option<u64>,
    /// As its server describes it.
    pub resource: Resource,
    pub outcome: Outcome,
    pub indexed_at: DateTime<Utc>,
}

#[derive(Clone, Debug)]
pub struct StoreRequest {
    pub query: Query,
    pub filter: Filter,
    pub limit: usize,
    pub offset: usize,
    /// Passages of each resource, the best first; at least 1.
    pub passages: usize,
    /// Fills [`StoreHit::explanation`].
    pub explain: bool,
    pub ranking: Ranking,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreAnswer {
    pub hits: Vec<StoreHit>,
    /// Whether further hits exist after these.
    pub more: bool,
}

/// Most resources that a hit names as having its text.
pub const MAX_DUPLICATES: usize = 20;

/// A resource that answers a query, and stands for all with the same text.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreHit {
    pub key: ResourceKey,
    pub title: String,
    pub mime_type: Option<String>,
    pub content_hash: ContentHash,
    pub last_modified: Option<String>,
    pub indexed_at: DateTime<Utc>,
    pub outcome: Outcome,
    pub audience: Audience,
    /// The server's, which is what a hit by name is shown with.
    pub description: Option<String>,
    /// The engine's own.
    pub score: f32,
    /// 0–1, and the same across queries.
    pub relevance: f32,
    /// Best first. A resource that is found by name only has one whose chunk text is empty.
    pub passages: Vec<StorePassage>,
    /// Other resources with the same text that the filter lets through, by key; at most
    /// [`MAX_DUPLICATES`].
    pub duplicates: Vec<ResourceKey>,
    pub explanation: Option<serde_json::Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StorePassage {
    pub ordinal: u32,
    pub score: f32,
    pub chunk: Chunk,
    /// What of the chunk's text matched the query, by where it begins; may overlap.
    pub matches: Vec<Match>,
    /// What matched when nothing of the chunk's text did.
    pub instead: Option<Matched>,
}

/// A lead, a heading above the chunk, or the resource's title, description or URI, that matched.
#[derive(Clone, Debug, PartialEq)]
pub struct Matched {
    pub text: String,
    pub matches: Vec<Match>,
}

/// A place that matched one of the query's words.
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    /// Bytes of the chunk's text, on character boundaries.
    pub bytes: Range<usize>,
    /// Which of the query's words.
    pub word: u32,
    /// How much that word tells, by its rarity; more is rarer.
    pub weight: f32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexStats {
    pub resources: u64,
    pub chunks: u64,
    /// On disk.
    pub bytes: u64,
    pub last_commit: Option<DateTime<Utc>>,
}

/// What went wrong in the index, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    #[error("the index in {folder} can't be opened: {reason}")]
    Open { folder: String, reason: String },
    #[error("the index in {folder} was made by another version")]
    OtherSchema { folder: String },
    #[error("the index can't be written: {reason}")]
    Write { reason: String },
    #[error("the index can't be read: {reason}")]
    Read { reason: String },
    #[error("the index has stopped; restart the daemon")]
    Stopped,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Origin;

    #[test]
    fn a_wrong_type_is_told_from_a_vague_one() {
        for (declared, actual, wrong) in [
            (Some("text/plain"), "text/html", true),
            (Some("Text/Markdown; charset=utf-8"), "text/html", true),
            (Some("application/json"), "text/plain", true),
            (Some("image/png"), "text/plain", true),
            (Some("text/plain"), "text/markdown", false),
            (Some("text/x-markdown"), "text/markdown", false),
            (Some("text/html"), "text/html", false),
            (Some(""), "text/html", false),
            (None, "text/html", false),
        ] {
            let entry = Entry {
                server: ServerName::new("s").unwrap(),
                resource: Resource {
                    mime_type: declared.map(str::to_owned),
                    ..Resource::new("a://1")
                },
                document_title: None,
                mime_type: Some(actual.into()),
                content_hash: ContentHash([0; 16]),
                fingerprint: Fingerprint(0),
                outcome: Outcome::Indexed,
                chunks: vec![],
                indexed_at: DateTime::UNIX_EPOCH,
            };
            assert_eq!(is_mislabelled(&entry), wrong, "{declared:?} {actual}");
            let skipped = Entry { outcome: Outcome::Skipped(String::new()), ..entry };
            assert!(!is_mislabelled(&skipped));
        }
    }

    #[test]
    fn what_is_shown_or_indexed_is_in_the_hash() {
        let plain = Resource { name: "n".into(), ..Resource::new("u") };
        let hash = description_hash(&plain);
        let text = || Some(String::new());
        let others = [
            Resource { name: "m".into(), ..plain.clone() },
            Resource { title: text(), ..plain.clone() },
            Resource { description: text(), ..plain.clone() },
            Resource { mime_type: text(), ..plain.clone() },
            Resource { size: Some(0), ..plain.clone() },
            Resource { audience: Audience::User, ..plain.clone() },
            Resource { priority: Some(0.0), ..plain.clone() },
            Resource { last_modified: text(), ..plain.clone() },
        ];
        let mut hashes: Vec<u64> = others.iter().map(description_hash).chain([hash]).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), others.len() + 1, "each field counts, and by itself");

        let elsewhere = Resource { uri: "v".into(), origin: Origin::Template("t".into()), ..plain };
        assert_eq!(description_hash(&elsewhere), hash);
    }
}
