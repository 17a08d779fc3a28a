//! Request → grouped hits with snippets. Uses the index's contract and the model, nothing else.

pub mod context;
pub mod filter;
pub mod query;
pub mod ranking;
pub mod snippet;
pub mod versions;

use std::ops::Range;

use chrono::{DateTime, Utc};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use self::filter::{Clause, Filter};
use self::query::{Bounds, Query};
use self::ranking::Ranking;
use self::snippet::Snippet;
use crate::index::{IndexError, IndexStore, StoreHit, StorePassage, StoreRequest};
use crate::model::{Audience, Chunk, ContentHash, Outcome, ResourceKey, ServerName};

/// What a caller asks.
#[derive(Clone, Debug)]
pub struct Request {
    /// As typed; see [`query`] for what it may hold.
    pub query: String,
    /// What the caller may see, narrowed by what it asked for.
    pub filter: Filter,
    pub limit: usize,
    pub offset: usize,
    /// Passages of each resource, the best first; at least 1.
    pub passages: usize,
    /// Leaves out hits of less relevance (0–1).
    pub min_relevance: Option<f32>,
    /// Fills [`Hit::explanation`].
    pub explain: bool,
    pub bounds: Bounds,
    /// Snippets of the answer; bytes.
    pub max_answer_bytes: usize,
    pub ranking: Ranking,
}

impl Request {
    /// A request with the defaults of the API.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            filter: Filter::default(),
            limit: 10,
            offset: 0,
            passages: 1,
            min_relevance: None,
            explain: false,
            bounds: Bounds::default(),
            max_answer_bytes: 64 << 10,
            ranking: Ranking::default(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    pub hits: Vec<Hit>,
    /// Whether further hits exist after these.
    pub more: bool,
}

/// A resource that answers a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// From 1, counted over all pages.
    pub rank: usize,
    pub key: ResourceKey,
    pub title: String,
    pub mime_type: Option<String>,
    pub content_hash: ContentHash,
    pub last_modified: Option<String>,
    pub indexed_at: DateTime<Utc>,
    pub outcome: Outcome,
    pub audience: Audience,
    /// The engine's own.
    pub score: f32,
    /// 0–1, and the same across queries.
    pub relevance: f32,
    /// The best first; never empty.
    pub passages: Vec<Passage>,
    /// Other resources with the same text that the caller may see; at most
    /// [`crate::index::MAX_DUPLICATES`].
    pub duplicates: Vec<ResourceKey>,
    pub explanation: Option<serde_json::Value>,
}

/// A piece of a resource, with what is shown of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Passage {
    /// Which of the resource's chunks.
    pub ordinal: u32,
    pub score: f32,
    /// At most [`snippet::MAX_CHARS`] characters, safe to print.
    pub snippet: String,
    /// Unicode scalar values of the snippet, in order, not overlapping.
    pub highlights: Vec<(u32, u32)>,
    /// The snippet's lines in the part's text, from 1, both inclusive.
    pub lines: (u32, u32),
    /// What the snippet shows, as bytes of the chunk's text.
    pub shown: Range<usize>,
    /// The whole chunk, as it is indexed: raw, for whoever shows more than the snippet.
    pub chunk: Chunk,
}

/// With a least relevance, how many hits are looked at for each one that is wanted.
const LOOKED_AT_PER_HIT: usize = 5;

/// Answers a request from one commit of the index.
///
/// # Errors
/// [`IndexError::Read`] when the index can't be read. Nothing that can be typed is an error.
pub fn search(store: &dyn IndexStore, request: &Request) -> Result<Answer, IndexError> {
    let query = query::parse(&request.query, request.bounds);
    if query.is_empty() || request.limit == 0 {
        return Ok(Answer::default());
    }
    let filter = match clause(&query) {
        Some(clause) => request.filter.clone().and(clause),
        None => request.filter.clone(),
    };
    let mut asked = StoreRequest {
        query,
        filter,
        limit: request.limit,
        offset: request.offset,
        passages: request.passages.max(1),
        explain: request.explain,
        ranking: request.ranking.clone(),
    };
    let (hits, mut more) = match request.min_relevance.filter(|least| *least > 0.0) {
        None => {
            let answer = store.search(&asked)?;
            (answer.hits, answer.more)
        }
        Some(least) => {
            // Ranks count what is left, so pages are cut after the hits of too little relevance are out.
            let wanted = request.offset.saturating_add(request.limit);
            asked.offset = 0;
            asked.limit = wanted.saturating_mul(LOOKED_AT_PER_HIT).max(50);
            let answer = store.search(&asked)?;
            let good = answer.hits.into_iter().filter(|hit| hit.relevance >= least);
            let mut good: Vec<StoreHit> = good.skip(request.offset).collect();
            let more = good.len() > request.limit;
            good.truncate(request.limit);
            (good, more)
        }
    };
    let mut shown: Vec<Hit> = vec![];
    let mut bytes = 0;
    for (stored, rank) in hits.into_iter().zip(request.offset + 1..) {
        let hit = hit(stored, rank);
        bytes += hit.passages.iter().map(|passage| passage.snippet.len()).sum::<usize>();
        if bytes > request.max_answer_bytes && !shown.is_empty() {
            more = true;
            break;
        }
        shown.push(hit);
    }
    Ok(Answer { hits: shown, more })
}

/// What a query's own filters let through; a value that can't be one lets nothing through.
fn clause(query: &Query) -> Option<Clause> {
    if query.servers.is_empty() && query.mime_types.is_empty() && query.uris.is_empty() {
        return None;
    }
    let servers = query.servers.iter().filter_map(|name| ServerName::new(name).ok()).collect();
    let mime_types = query.mime_types.iter().map(|mime| mime.to_ascii_lowercase()).collect();
    Some(Clause {
        servers: (!query.servers.is_empty()).then_some(servers),
        mime_types: (!query.mime_types.is_empty()).then_some(mime_types),
        include: (!query.uris.is_empty()).then(|| uri_globs(&query.uris)),
        ..Clause::default()
    })
}

/// A prefix, or a glob where there is a `*` in it.
fn uri_globs(uris: &[String]) -> GlobSet {
    let mut globs = GlobSetBuilder::new();
    for uri in uris {
        let whole = if uri.contains('*') { uri.clone() } else { globset::escape(uri) + "**" };
        let glob = GlobBuilder::new(&whole).literal_separator(uri.contains('*')).build();
        // What isn't a glob is meant as it stands.
        if let Ok(glob) = glob.or_else(|_| GlobBuilder::new(&globset::escape(uri)).build()) {
            globs.add(glob);
        }
    }
    globs.build().unwrap_or_else(|_| GlobSet::empty())
}

fn hit(stored: StoreHit, rank: usize) -> Hit {
    let StoreHit {
        key,
        title,
        mime_type,
        content_hash,
        last_modified,
        indexed_at,
        outcome,
        audience,
        description,
        score,
        relevance,
        passages,
        duplicates,
        explanation,
    } = stored;
    let name = description.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| title.clone());
    let passages = passages.into_iter().map(|stored| passage(stored, &name)).collect();
    Hit {
        rank,
        key,
        title: snippet::clean(&title).into_owned(),
        mime_type,
        content_hash,
        last_modified,
        indexed_at,
        outcome,
        audience,
        score,
        relevance,
        passages,
        duplicates,
        explanation,
    }
}

/// A passage with its snippet; `name` is shown of a resource without text.
fn passage(stored: StorePassage, name: &str) -> Passage {
    let StorePassage { ordinal, score, chunk, matches, instead } = stored;
    // What stands above the text because the match isn't in it, or because it needs its table's header.
    let above = match (&instead, &chunk.lead) {
        (Some(instead), _) => {
            let room =
                if chunk.text.is_empty() { snippet::MAX_CHARS } else { snippet::MAX_CHARS / 2 };
            snippet::cut(&instead.text, &instead.matches, room)
        }
        (None, Some(lead)) if lead.chars().count() <= snippet::MAX_CHARS / 3 => {
            snippet::cut(lead, &[], snippet::MAX_CHARS / 3)
        }
        _ => Snippet::default(),
    };
    let room = snippet::MAX_CHARS.saturating_sub(above.text.chars().count() + 1);
    let below = if chunk.text.trim().is_empty() && above.text.trim() != name.trim() {
        Snippet { bytes: 0..0, ..snippet::cut(name, &[], room) }
    } else {
        snippet::cut(&chunk.text, &matches, room)
    };
    let shown = below.bytes.clone();
    let lines = lines(&chunk, &shown);
    let Snippet { text, highlights, .. } = snippet::below(above, below);
    Passage { ordinal, score, snippet: text, highlights, lines, shown, chunk }
}

/// The lines in which bytes of a chunk's text are; what ends with a line's end ends in that line.
fn lines(chunk: &Chunk, bytes: &Range<usize>) -> (u32, u32) {
    let newlines = |text: Option<&str>| {
        text.map_or(0, |text| text.bytes().filter(|byte| *byte == b'\n').count() as u32)
    };
    let start = chunk.lines.0 + newlines(chunk.text.get(..bytes.start));
    let end = start
        + newlines(
            chunk.text.get(bytes.clone()).map(|text| text.strip_suffix('\n').unwrap_or(text)),
        );
    (start.min(chunk.lines.1), end.min(chunk.lines.1))
}

#[cfg(test)]
mod tests;
