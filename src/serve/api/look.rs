//! What people look at: a document's insides, the tree of URIs, templates being filled in, scopes, and
//! how things went lately.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::ResourceItem;

/// `GET /v1/resource`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ResourceQuery {
    /// As a hit or a list shows it.
    pub uri: String,
    /// Needed only where several servers have this URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Name of a scope in the config that narrows what is seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

/// What the index holds of a resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResourceResponse {
    #[serde(flatten)]
    pub item: ResourceItem,
    /// The server's own name for it.
    pub name: String,
    pub description: Option<String>,
    /// As the server says.
    pub last_modified: Option<String>,
    /// The URI template of which it is an expansion; `null` where the server lists it.
    pub uri_template: Option<String>,
    /// What was indexed, in the order of the text.
    pub chunks: Vec<ChunkItem>,
    /// What became of it since the daemon's start, the newest first.
    pub history: Vec<ChangeItem>,
}

/// An indexed piece of a document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChunkItem {
    /// The headings above, the topmost first.
    pub heading_path: Vec<String>,
    /// From 1, in the text that `read` with `extracted` returns.
    pub start_line: u32,
    pub end_line: u32,
    /// Page, slide or sheet, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    /// Which of a read's contents, from 0.
    pub part: u32,
    /// About as many as a model counts.
    pub tokens: usize,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangeItem {
    pub at: DateTime<Utc>,
    pub kind: ChangeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// Its content or description was new, and is searchable since.
    Indexed,
    Removed,
}

/// `GET /v1/tree`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TreeQuery {
    pub server: String,
    /// A branch's `prefix`; everything of the server when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Name of a scope in the config that narrows what is seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// `next_cursor` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// What stands directly below a prefix, at most 200 of both. A prefix with a single branch below it is
/// followed to where it forks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TreeResponse {
    /// Of everything here; longer than the one asked for where that leads to one branch only.
    pub prefix: String,
    /// In the order of their URIs, as are the resources.
    pub branches: Vec<Branch>,
    pub resources: Vec<ResourceItem>,
    /// Opaque; `null` on the last page.
    pub next_cursor: Option<String>,
}

/// URIs that go on alike up to the next `/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Branch {
    /// What it adds to the prefix above.
    pub name: String,
    pub prefix: String,
}

/// `POST /v1/complete`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteRequest {
    pub server: String,
    pub uri_template: String,
    pub variable: String,
    /// What was typed so far.
    #[serde(default)]
    pub value: String,
    /// The other variables' values.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CompleteResponse {
    pub values: Vec<String>,
    /// Whether the server has more than these.
    pub more: bool,
}

/// `POST /v1/templates`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpandRequest {
    pub server: String,
    pub uri_template: String,
    /// By the names of the template's variables.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
    /// Indexes and follows the resource from now on. Only the daemon's owner can.
    #[serde(default)]
    pub follow: bool,
}

/// `DELETE /v1/templates`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UnfollowQuery {
    pub server: String,
    pub uri: String,
}

/// A template's expansion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExpandResponse {
    pub server: String,
    pub uri: String,
    /// Whether it is followed: the server gave it, or it was chosen.
    pub followed: bool,
}

/// `GET /v1/withheld`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct WithheldQuery {
    pub server: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WithheldResponse {
    /// In their order, at most 1,000.
    pub uris: Vec<String>,
    pub total: u64,
}

/// `GET /v1/scopes`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScopesResponse {
    /// Those of the config, in the order of names; a scope's caller gets its own.
    pub scopes: Vec<ScopeItem>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScopeItem {
    pub name: String,
    /// All when empty.
    pub servers: Vec<String>,
    /// Globs over URIs: only these when there are any, and none of the excluded.
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    /// All when empty.
    pub mime_types: Vec<String>,
    /// Most tokens of an answer.
    pub max_tokens: Option<u32>,
    pub has_token: bool,
}

/// `POST /v1/tokens`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// A scope of the config.
    pub scope: String,
}

/// A new token, which nobody can show again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TokenResponse {
    pub scope: String,
    pub token: String,
    pub token_sha256: String,
    /// What belongs in the config.
    pub config: String,
}

/// `POST /v1/console`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConsoleResponse {
    /// Opens the console and signs its owner in, once.
    pub url: String,
    pub expires_in_s: u64,
}

/// `GET /v1/series`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SeriesResponse {
    /// One for each minute of the last two hours in which something is known, the oldest first.
    pub points: Vec<SeriesPoint>,
    /// Since the daemon's start, by server.
    pub errors: BTreeMap<String, u64>,
    /// By server, since the daemon's start: the median time from a notification until what changed is
    /// searchable.
    pub lag_p50_ms: BTreeMap<String, f64>,
}

/// What happened within a minute.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SeriesPoint {
    /// When the minute began.
    pub at: DateTime<Utc>,
    /// Searches and contexts.
    pub searches: u64,
    pub search_p50_ms: Option<f64>,
    pub search_p99_ms: Option<f64>,
    /// From a server's notification until what changed is searchable: the median and the longest.
    pub lag_p50_ms: Option<f64>,
    pub lag_max_ms: Option<f64>,
    pub errors: u64,
    pub resources: Option<u64>,
    /// Of the index on disk.
    pub index_bytes: Option<u64>,
}
