//! The vocabulary: what every room of the house talks about. No I/O, no clock, no other room.
//!
//! A *resource key* is a server's name and a URI, and the URI is opaque bytes: it is kept, compared,
//! sent and returned as it came, never normalised. Everything else here hangs on that key.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// The name of a configured server: 1–64 characters, no control characters, no slash.
///
/// Cheap to clone. The config room is the only one that makes one from outside text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServerName(Arc<str>);

impl ServerName {
    /// Longest name, in characters.
    pub const MAX_CHARS: usize = 64;

    /// Takes a name as it stands in a config.
    ///
    /// # Errors
    /// Says what is wrong with the name; the caller adds where it stands.
    pub fn new(name: impl AsRef<str>) -> Result<Self, String> {
        let name = name.as_ref();
        let chars = name.chars().count();
        if chars == 0 || chars > Self::MAX_CHARS {
            return Err(format!(
                "a server's name has 1 to {} characters, this one has {chars}",
                Self::MAX_CHARS
            ));
        }
        if let Some(bad) = name.chars().find(|c| c.is_control() || *c == '/') {
            return Err(format!("a server's name has no {bad:?} in it"));
        }
        Ok(Self(name.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Borrow<str> for ServerName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A resource's URI, byte for byte as its server gave it. Never parsed to decide identity.
pub type Uri = Arc<str>;

/// What identifies a resource: two servers may offer the same URI.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ResourceKey {
    pub server: ServerName,
    pub uri: Uri,
}

/// Who a resource is meant for, from MCP's `annotations.audience`; both when the server doesn't say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Audience {
    Both,
    User,
    Assistant,
}

/// A resource as its server describes it: an item of `resources/list`, or an expanded template.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    pub uri: Uri,
    /// The server's own name for it; empty when the server gave none (which is reported).
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub mime_type: Option<String>,
    /// Size of the content in bytes, as the server says.
    pub size: Option<u64>,
    pub audience: Audience,
    /// 0–1, 1 the most important (MCP `annotations.priority`).
    pub priority: Option<f32>,
    /// ISO 8601, as the server says (MCP `annotations.lastModified`).
    pub last_modified: Option<String>,
    pub origin: Origin,
}

impl Resource {
    /// One of which only the URI is known.
    pub fn new(uri: impl Into<Uri>) -> Self {
        Self {
            uri: uri.into(),
            name: String::new(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
            audience: Audience::Both,
            priority: None,
            last_modified: None,
            origin: Origin::Listed,
        }
    }

    /// What people are shown: the title, else the name, else the URI.
    pub fn label(&self) -> &str {
        match &self.title {
            Some(title) if !title.is_empty() => title,
            _ if !self.name.is_empty() => &self.name,
            _ => &self.uri,
        }
    }
}

/// Where a resource was learned of, which decides what its absence means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// An item of `resources/list`: absent from a complete listing, it is gone.
    Listed,
    /// An expansion of this URI template, which no listing holds.
    Template(String),
}

/// An item of `resources/templates/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResourceTemplate {
    pub uri_template: String,
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub mime_type: Option<String>,
}

/// What `resources/list` (and the templates' expansion) returned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    /// Each URI once, in the server's order.
    pub resources: Vec<Resource>,
    pub templates: Vec<ResourceTemplate>,
    /// Whether every page was seen to its end. Only a complete listing removes anything.
    pub complete: bool,
    /// Whether every template was expanded to its end; only then does an expansion's absence count.
    pub expansions_complete: bool,
    /// What was wrong, in words for the server's owner.
    pub problems: Vec<String>,
}

/// A 128-bit hash (BLAKE3, cut) of everything that a read returned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ContentHash(pub [u8; 16]);

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// What one `resources/read` returned. All contents belong to the URI that was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    pub contents: Vec<Content>,
    pub hash: ContentHash,
    /// For how long it stays as it is, as the server says (`ttlMs` of the modern era); not hashed.
    pub fresh: Option<Duration>,
}

impl Snapshot {
    pub fn new(contents: Vec<Content>) -> Self {
        let mut hasher = blake3::Hasher::new();
        let mut field = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        for content in &contents {
            field(content.uri.as_bytes());
            field(content.mime_type.as_deref().unwrap_or("\0").as_bytes());
            let (kind, body) = match &content.body {
                Body::Text(text) => (b"t", text),
                Body::Blob(base64) => (b"b", base64),
            };
            field(kind);
            field(body.as_bytes());
        }
        let mut hash = [0; 16];
        hash.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Self { contents, hash: ContentHash(hash), fresh: None }
    }

    /// Bytes of content, as the server sent it.
    pub fn bytes(&self) -> u64 {
        let bytes = |content: &Content| match &content.body {
            Body::Text(text) | Body::Blob(text) => text.len() as u64,
        };
        self.contents.iter().map(bytes).sum()
    }
}

/// The key in a content's `_meta` with which a `files` server says that it gives a part only.
pub const LEFT_OUT: &str = "resdex/leftOut";

/// One item of a read's `contents`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Content {
    /// May be a sub-resource of the URI that was asked for.
    pub uri: String,
    pub mime_type: Option<String>,
    pub body: Body,
    /// What of the content its server kept back, in its words; [`LEFT_OUT`] in the protocol.
    pub left_out: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Body {
    Text(String),
    /// Base64 as the server sent it; decoded by the extract room.
    Blob(String),
}

/// Text extracted from a snapshot, with its structure: what is chunked, and what
/// `resdex read --extracted` prints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// From the content itself: the first heading, `<title>`, a front matter's `title`.
    pub title: Option<String>,
    /// The MIME type that was acted on, lower case, without parameters.
    pub mime_type: String,
    /// One for each content that has text.
    pub parts: Vec<Part>,
    /// What was corrected or left out, in words ("declared text/plain, is HTML").
    pub notes: Vec<String>,
    /// Whether text was left out because of a limit.
    pub truncated: bool,
}

/// The text of one content of a read. Lines are counted in it, from 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Position of the content in the read's `contents`, from 0.
    pub index: u32,
    pub format: Format,
    pub text: String,
    /// Headings in the order of the text.
    pub headings: Vec<Heading>,
    /// Where pages, slides or sheets begin, in the order of the text.
    pub pages: Vec<Page>,
}

/// How a part's text is best cut into passages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    #[default]
    Plain,
    Markdown,
    Code,
    /// Lines that stand for themselves: logs, CSV, flattened JSON.
    Lines,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// 1 is the topmost.
    pub level: u8,
    pub text: String,
    /// Byte in the part's text where the heading's line begins.
    pub at: usize,
}

/// A page (slide, sheet) that begins at a byte of the part's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    pub at: usize,
    /// From 1.
    pub number: u32,
    /// A sheet's or slide's own name.
    pub label: Option<String>,
}

/// An indexed piece of a document. A document's chunks partition each part's text: put together in
/// order, they are the text again, which is how the index can rebuild itself without the servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chunk {
    /// The part's `index`.
    pub part: u32,
    /// Headings above the chunk, the topmost first.
    pub heading_path: Vec<String>,
    /// Lines in the part's text, from 1, both inclusive.
    pub lines: (u32, u32),
    /// Bytes in the part's text.
    pub bytes: Range<u32>,
    /// The page (slide, sheet) on which the chunk begins.
    pub page: Option<u32>,
    /// The exact slice of the part's text.
    pub text: String,
    /// What a reader needs from before the chunk to make sense of it, such as a table's header
    /// row. Indexed and shown, not part of the partition.
    pub lead: Option<String>,
    /// Byte ranges of `text` that aren't language (base64 and its like): stored, not indexed.
    pub noise: Vec<Range<u32>>,
}

/// Which extractor, chunker, analyzer and schema made an entry of the index. Another one means that
/// the entry is to be made again from the stored text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fingerprint(pub u64);

impl Fingerprint {
    /// Of these versions; each has to be below 65,536.
    pub const fn of(extract: u32, chunk: u32, analyze: u32, schema: u32) -> Self {
        let text = (extract as u64 & 0xffff) << 16 | (chunk as u64 & 0xffff);
        let index = (analyze as u64 & 0xffff) << 16 | (schema as u64 & 0xffff);
        Self(text << 32 | index)
    }

    /// Whether text and passages are made in the same way, so that an entry can be made again from
    /// what is stored of it.
    pub const fn has_text_of(self, other: Self) -> bool {
        self.0 >> 32 == other.0 >> 32
    }
}

/// What became of a resource in the index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome", content = "reason")]
pub enum Outcome {
    /// Its text is searchable (an empty text too).
    Indexed,
    /// Found by name, title, description and URI only; says why.
    Skipped(String),
}

/// What the index holds of a resource. Committed together with the resource's chunks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub key: ResourceKey,
    pub content_hash: ContentHash,
    /// Hash of the fields of [`Resource`] that are indexed or shown.
    pub description_hash: u64,
    pub fingerprint: Fingerprint,
    pub chunks: u32,
    pub outcome: Outcome,
    /// Whether its text is of another kind than its server's MIME type says.
    pub mislabelled: bool,
    pub indexed_at: DateTime<Utc>,
    pub origin: Origin,
}

/// Why a server is being synchronised; shown in logs, events and `status`.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SyncCause {
    Startup,
    Notification,
    Schedule,
    Reload,
    Request,
    /// A mass removal asks for a second listing before it is believed.
    Confirmation,
}

/// What a server is doing; see the design's `status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    Connecting,
    Listing,
    Syncing,
    /// Listed completely, every read tried, subscribed where it can be.
    Live,
    /// Connected, but the server offers no listing of resources.
    NoListing,
    /// Waits before it connects again.
    Backoff,
    Failed,
    NeedsConfig,
    NeedsAuth,
    Disabled,
}

/// The era of the protocol in which a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// `initialize`, subscriptions one by one (up to revision 2025-11-25).
    Legacy,
    /// `server/discover`, one `subscriptions/listen` (revision 2026-07-28).
    Modern,
}

/// One server as `status` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ServerStatus {
    pub name: String,
    pub state: ServerState,
    /// The negotiated protocol revision.
    pub protocol: Option<String>,
    /// What the server pushes: `updated`, `list_changed`, both, or nothing.
    pub push: Vec<String>,
    pub listed: u64,
    /// Resources whose text is searchable (an empty text too).
    pub indexed: u64,
    /// Resources that are found by name only.
    pub skipped: u64,
    pub stale: u64,
    pub last_sync: Option<DateTime<Utc>>,
    pub next_sync: Option<DateTime<Utc>>,
    /// The last error with what to do about it; stays until the server has been `live` again.
    pub last_error: Option<ServerError>,
    /// Removals that wait for a second listing or `sync --confirm`.
    pub withheld_removals: u64,
    /// For the server's owner: duplicates, missing names, URIs with credentials, noise on stdout.
    pub warnings: Vec<String>,
    /// What waits, and what is under way.
    pub queue: SyncQueue,
    /// Counters since the daemon's start.
    pub counts: SyncCounts,
}

/// Work of a server's task that isn't done yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SyncQueue {
    /// Reads that a plan or a notification asks for.
    pub waiting: u64,
    /// Reads under way.
    pub in_flight: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ServerError {
    pub message: String,
    pub hint: Option<String>,
    pub at: DateTime<Utc>,
}

/// What a server's task has done since the daemon's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SyncCounts {
    pub connects: u64,
    pub listings: u64,
    pub reads: u64,
    pub read_failures: u64,
    /// Bytes of content that reads brought, as the server sent it (base64 for what is binary).
    pub bytes_read: u64,
    /// Resources (re)indexed because their content or description changed.
    pub indexed: u64,
    /// Reads whose content was what the index already held.
    pub unchanged: u64,
    /// Reads that the server's `lastModified` or `ttlMs` spared; see the config's `trust`.
    pub spared: u64,
    pub removed: u64,
    pub notifications: u64,
}
