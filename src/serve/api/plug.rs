//! What bots ask for: context, pins, and the trace of what was asked.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// What `Upgrade` says at `/mcp` to get a connection with one message a line, as on stdio.
pub const MCP_UPGRADE: &str = "resdex-mcp-stdio";

/// `POST /v1/context`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextRequest {
    /// As a search takes it; may be empty where pins are all that is wanted.
    #[serde(default)]
    pub query: String,
    /// Name of a scope in the config: what can be found, what is pinned, how many tokens at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// A name of the caller's own choice, whose pins go in as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Most tokens of `text`; never more than the scope allows. 4,000 when nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_tokens: Option<usize>,
    /// URIs that go in first, this time only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pins: Option<Vec<String>>,
    /// `o200k_base` (the default), `o200k_harmony`, `cl100k_base`, `p50k_base` or `r50k_base`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContextResponse {
    pub request_id: String,
    /// Ready for a prompt: it says itself that it is data. Empty where nothing was found.
    pub text: String,
    /// Of `text`, exactly, as `tokenizer` counts.
    pub tokens: usize,
    pub tokenizer: String,
    /// What stands in the text, by number.
    pub citations: Vec<ContextCitation>,
    /// Pins that are not in the text, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ContextCitation {
    /// As in the text: `[1]`.
    pub n: usize,
    pub server: String,
    pub uri: String,
    pub start_line: u32,
    pub end_line: u32,
    /// Which of a read's contents, from 0, where it isn't the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u32>,
}

/// `GET /v1/pins`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PinsQuery {
    /// Of this scope; of none when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Those of this conversation as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
}

/// `POST /v1/pins`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PinRequest {
    /// As a hit or a list shows it.
    pub uri: String,
    /// Needed only where several servers have this URI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Pins it in this scope; in none when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Pins it in this conversation only: a name of the caller's own choice, 1–200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// How long a conversation's pin stays, in seconds; a day when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 31_536_000)]
    pub ttl_s: Option<u64>,
}

/// `DELETE /v1/pins`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UnpinQuery {
    pub uri: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
}

/// What is pinned now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PinsResponse {
    /// In the order in which they go into a context.
    pub pins: Vec<PinItem>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PinItem {
    pub uri: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    pub level: PinLevel,
    /// When a conversation's pin goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PinLevel {
    /// Of the scope, in the config.
    Config,
    /// Of the scope, added at run time.
    Scope,
    Conversation,
}

/// `GET /v1/trace`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TraceQuery {
    /// Most entries, 1–1000; 50 when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Only what was asked in this scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Only what a resource of this server came up in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Only what this resource came up in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TraceResponse {
    /// The newest first.
    pub entries: Vec<TraceEntry>,
}

/// One search, context or read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TraceEntry {
    pub time: DateTime<Utc>,
    pub verb: TraceVerb,
    /// What the client calls itself.
    pub client: String,
    pub scope: Option<String>,
    /// Only where the config says `[trace] queries = true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// The same for the same query, and tells nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_hash: Option<String>,
    /// What was found or read.
    pub resources: Vec<TraceResource>,
    /// About how many tokens the answer's text has.
    pub tokens: usize,
    pub took_ms: f64,
    /// `ok`, or the error's code.
    pub outcome: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TraceResource {
    pub server: String,
    pub uri: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TraceVerb {
    Search,
    Context,
    Read,
}

/// `/mcp`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct McpQuery {
    /// Name of a scope in the config that narrows what is seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}
