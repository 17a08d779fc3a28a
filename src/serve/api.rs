//! The bodies of the API: what a caller sends and gets, as types from which `/openapi.json` is made.
//!
//! A field that may be missing is left out when there is nothing to say; a field of the contract
//! that has no value is `null`. Text that came from a server is data from a stranger.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::model::ServerStatus;

mod look;
mod plug;

pub use look::*;
pub use plug::*;

/// Most hits of one answer.
pub const MAX_LIMIT: usize = 100;
/// Furthest hit that can be asked for: a caller who pages on wants another query.
pub const MAX_OFFSET: usize = 10_000;
/// Most passages of one hit.
pub const MAX_PASSAGES: usize = 10;
/// Resources on one page of `/v1/resources`.
pub const RESOURCES_PAGE: usize = 200;

/// `POST /v1/search`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchRequest {
    /// Words in any language, `"a phrase"`, `-without`, `server:`, `mime:` and `uri:` filters.
    pub query: String,
    /// Most hits, 1–100.
    #[serde(default = "default_limit")]
    #[schema(minimum = 1, maximum = 100)]
    pub limit: usize,
    /// Hits to leave out at the start.
    #[serde(default)]
    #[schema(maximum = 10_000)]
    pub offset: usize,
    /// Name of a scope in the config that narrows what is searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Only these servers; all when missing or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<String>>,
    /// Only these MIME types, `text/*` as a wildcard; all when missing or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_types: Option<Vec<String>>,
    /// Only URIs that begin with this, byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri_prefix: Option<String>,
    /// Only hits at least this relevant, 0–1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1)]
    pub min_relevance: Option<f32>,
    /// Passages of each hit, 1–10.
    #[serde(default = "default_passages")]
    #[schema(minimum = 1, maximum = 10)]
    pub passages: usize,
    /// Adds how each hit was ranked.
    #[serde(default)]
    pub explain: bool,
}

fn default_limit() -> usize {
    10
}

fn default_passages() -> usize {
    1
}

impl SearchRequest {
    /// A search for these words with the defaults of everything else.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            limit: default_limit(),
            offset: 0,
            scope: None,
            servers: None,
            mime_types: None,
            uri_prefix: None,
            min_relevance: None,
            passages: default_passages(),
            explain: false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SearchResponse {
    pub request_id: String,
    pub took_ms: f64,
    /// Whether further hits exist after these.
    pub more: bool,
    /// The best first, one for each resource.
    pub hits: Vec<Hit>,
}

/// A resource that answers a query, with its best passage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Hit {
    /// 1 is the best.
    pub rank: usize,
    pub server: String,
    /// Byte for byte as the server gave it: what `read` takes.
    pub uri: String,
    pub title: String,
    pub mime_type: Option<String>,
    /// The engine's own; comparable within one answer only.
    pub score: f32,
    /// 0–1, and the same across queries.
    pub relevance: f32,
    #[serde(flatten)]
    pub passage: Passage,
    /// Further passages, when more than one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passages: Option<Vec<Passage>>,
    /// Other resources with the same text, where there are any: at most 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<Vec<Duplicate>>,
    /// Whether this text is older than a read that failed.
    pub stale: bool,
    pub indexed_at: DateTime<Utc>,
    /// Always true: everything here was written by strangers.
    pub untrusted: bool,
    /// How the hit was ranked, when that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<serde_json::Value>,
}

/// A resource that has the same text as a hit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Duplicate {
    pub server: String,
    pub uri: String,
}

/// A part of a document with its place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Passage {
    /// The headings above, the topmost first.
    pub heading_path: Vec<String>,
    /// From 1, in the text that `read` returns (with `extracted` where that is binary or markup).
    /// `null` where a resource was found by its name only.
    pub start_line: Option<u32>,
    pub end_line: Option<u32>,
    /// Page, slide or sheet, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    /// Which of a read's contents, from 0, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u32>,
    pub snippet: String,
    /// Start and end of what matched, in Unicode scalar values of the snippet.
    #[schema(value_type = Vec<Vec<usize>>)]
    pub highlights: Vec<(usize, usize)>,
}

/// `POST /v1/read`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadRequest {
    /// As a hit or a list shows it.
    pub uri: String,
    /// Name of a scope in the config that narrows what can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Needed only where several servers have this URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The text that is indexed instead of what the server sent.
    #[serde(default)]
    pub extracted: bool,
    /// `A-B`, `A-` or `A`: only these lines, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<String>,
    /// Only the contents with this number, from 0: a hit's `part`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u32>,
    /// At most this many tokens of text, as o200k counts; never more than the scope allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_tokens: Option<usize>,
    /// The headings with lines and sizes instead of the text.
    #[serde(default)]
    pub outline: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReadResponse {
    pub server: String,
    /// The resource's own URI, which may differ from the one asked for in its percent-encoding.
    pub uri: String,
    pub contents: Vec<ReadContent>,
    /// Whether this is the last good text, because the server can't be read now.
    pub stale: bool,
    /// Whether text was left out to keep to `max_tokens` or a limit of extraction.
    pub truncated: bool,
    /// What to ask as `lines` to go on after a truncated text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_lines: Option<String>,
    /// When asked for, and with every text that `max_tokens` cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outline: Option<Vec<OutlineItem>>,
    /// Why the text is stale, or what was corrected in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One of a read's contents: either `text` or `blob`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReadContent {
    pub uri: String,
    pub mime_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
}

/// A heading with the size of what stands under it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OutlineItem {
    /// 1 is the topmost.
    pub level: u8,
    pub heading: String,
    pub start_line: u32,
    /// The last line before the next heading.
    pub end_line: u32,
    /// As many tokens stand in these lines.
    pub tokens: usize,
    /// Which of the read's contents, from 0, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u32>,
}

/// `GET /v1/resources`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ResourcesQuery {
    /// Only this server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Name of a scope in the config that narrows what is listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// `next_cursor` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Only those that are found by name only.
    #[serde(default)]
    pub skipped: bool,
    /// Only URIs that begin with this, byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Only URIs that have this in them, percent-decoded, whatever the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResourcesResponse {
    /// In the order of server and URI.
    pub resources: Vec<ResourceItem>,
    /// Opaque; `null` on the last page.
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResourceItem {
    pub server: String,
    pub uri: String,
    pub title: String,
    pub mime_type: Option<String>,
    /// In bytes, as the server says.
    pub size: Option<u64>,
    pub outcome: OutcomeKind,
    /// Why it is found by name only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub stale: bool,
    pub indexed_at: DateTime<Utc>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// Its text is searchable.
    Indexed,
    /// Found by name, title, description and URI only.
    Skipped,
}

/// `GET /v1/templates`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TemplatesResponse {
    pub templates: Vec<TemplateItem>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TemplateItem {
    pub server: String,
    /// RFC 6570.
    pub uri_template: String,
    pub title: String,
    pub description: Option<String>,
    /// How many of its expansions are followed.
    pub expanded: u64,
    /// In their order; none where the template isn't one.
    #[serde(default)]
    pub variables: Vec<String>,
    /// Expansions that were chosen at run time to be followed.
    #[serde(default)]
    pub followed: Vec<String>,
}

/// `GET /v1/status`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatusResponse {
    pub version: String,
    pub pid: u32,
    pub uptime_s: u64,
    pub index: IndexStatus,
    pub config: ConfigStatus,
    pub servers: Vec<ServerStatus>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IndexStatus {
    pub resources: u64,
    pub chunks: u64,
    /// On disk.
    pub bytes: u64,
    pub last_commit: Option<DateTime<Utc>>,
    /// Why nothing is written at the moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// How far what another version made is made anew; the servers wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuilding: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConfigStatus {
    /// Why the changed config isn't in force; the one before it still is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Things that work but deserve a look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// `POST /v1/sync`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SyncRequest {
    /// All when missing or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<String>>,
    /// Believe a withheld mass removal now.
    #[serde(default)]
    pub confirm: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SyncResponse {
    /// The servers that were asked to list and reconcile.
    pub started: Vec<String>,
}

/// Every answer that isn't a success.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorResponse {
    pub error: ErrorDetail,
    pub request_id: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    pub code: ErrorCode,
    /// What went wrong, and where.
    pub message: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// What kind of error it is, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The body or a parameter isn't what the route takes.
    BadRequest,
    UnknownServer,
    UnknownScope,
    /// The `Authorization` header isn't `Bearer TOKEN`.
    MalformedAuthorization,
    /// There is no token, or no scope has this one.
    Unauthorized,
    /// The `Host` or `Origin` isn't one that is allowed, or the caller may not do this.
    Forbidden,
    /// No such resource, or no such route.
    NotFound,
    MethodNotAllowed,
    /// Several servers have this URI: name one.
    Ambiguous,
    /// The request's body is over the limit.
    TooLarge,
    /// The resource's server can't be read now, and the index holds no text of it.
    ServerAway,
    /// The resource's server answered with an error.
    ServerError,
    TimedOut,
    /// A fault of the daemon's; its log says more under the request's id.
    Internal,
}
