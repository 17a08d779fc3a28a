//! `search`: checks a request, asks the search room, and shapes its answer.

use std::time::Instant;

use super::api::{self, Hit, Passage, SearchRequest, SearchResponse};
use super::error::ApiError;
use super::{App, scope};
use crate::search::filter::Clause;

impl App {
    /// Blocks on the index, never on a server.
    ///
    /// # Errors
    /// A request out of its bounds, an unknown server or scope, or a fault of the index.
    pub fn search(
        &self,
        request: &SearchRequest,
        request_id: &str,
    ) -> Result<SearchResponse, ApiError> {
        let started = Instant::now();
        let config = self.config.load();
        check(request, config.limits.max_query_bytes)?;
        let mut filter = scope::filter(&config, request.scope.as_deref())?;
        let servers = scope::servers(request.servers.as_deref(), &self.control.names())?;
        let mime_types = request.mime_types.clone().unwrap_or_default();
        if !servers.is_empty() || !mime_types.is_empty() || request.uri_prefix.is_some() {
            filter = filter.and(Clause {
                servers: (!servers.is_empty()).then_some(servers),
                mime_types: (!mime_types.is_empty())
                    .then(|| mime_types.iter().map(|m| m.to_lowercase()).collect()),
                uri_prefix: request.uri_prefix.clone(),
                ..Clause::default()
            });
        }
        let (hits, more) = self.find(request, filter)?;
        let took_ms = (started.elapsed().as_secs_f64() * 100_000.0).round() / 100.0;
        Ok(SearchResponse { request_id: request_id.into(), took_ms, more, hits })
    }
}

/// # Errors
/// Names the field that is out of its bounds, and the bounds.
fn check(request: &SearchRequest, max_query_bytes: usize) -> Result<(), ApiError> {
    if request.query.trim().is_empty() {
        return Err(ApiError::bad_request("query: there are no words in it"));
    }
    if request.query.len() > max_query_bytes {
        return Err(ApiError::bad_request(format!(
            "query: at most {max_query_bytes} bytes, this one has {}",
            request.query.len()
        ))
        .hint(Some("ask with the words that matter; limits.max_query_bytes is the limit")));
    }
    for (field, value, least, most) in [
        ("limit", request.limit, 1, api::MAX_LIMIT),
        ("offset", request.offset, 0, api::MAX_OFFSET),
        ("passages", request.passages, 1, api::MAX_PASSAGES),
    ] {
        if !(least..=most).contains(&value) {
            return Err(ApiError::bad_request(format!("{field}: {least} to {most}, not {value}")));
        }
    }
    if let Some(relevance) = request.min_relevance
        && !(0.0..=1.0).contains(&relevance)
    {
        return Err(ApiError::bad_request(format!("min_relevance: 0 to 1, not {relevance}")));
    }
    Ok(())
}

impl App {
    /// Hands a checked request to the store and shapes what it finds.
    fn find(
        &self,
        request: &SearchRequest,
        filter: crate::search::filter::Filter,
    ) -> Result<(Vec<Hit>, bool), ApiError> {
        let answer = self.store.search(&crate::index::StoreRequest {
            query: crate::search::query::Query {
                text: request.query.clone(),
                ..crate::search::query::Query::default()
            },
            filter,
            limit: request.limit,
            offset: request.offset,
            passages: request.passages,
            explain: request.explain,
        })?;
        let hits = answer.hits.into_iter().zip(request.offset + 1..).map(|(hit, rank)| {
            let stale = self.control.is_stale(&hit.key);
            let mut passages = hit.passages.iter().map(passage);
            Hit {
                rank,
                server: hit.key.server.to_string(),
                uri: hit.key.uri.to_string(),
                title: hit.title,
                mime_type: hit.mime_type,
                score: hit.score,
                relevance: hit.relevance,
                passage: passages.next().unwrap_or_default(),
                passages: (request.passages > 1).then(|| passages.collect()),
                stale,
                indexed_at: hit.indexed_at,
                untrusted: true,
                explanation: hit.explanation,
            }
        });
        Ok((hits.collect(), answer.more))
    }
}

/// A passage with the text around its first match.
fn passage(found: &crate::index::StorePassage) -> Passage {
    const BEFORE: usize = 100;
    const LONGEST: usize = 400;
    let text = &found.chunk.text;
    let first = found.matches.first().map_or(0, |range| range.start);
    let from = super::cut::floor(text, first.saturating_sub(BEFORE));
    let to = super::cut::floor(text, from + LONGEST);
    let scalars = |to: usize| text[from..to].chars().count();
    let inside = found.matches.iter().filter(|range| range.start >= from && range.end <= to);
    Passage {
        heading_path: found.chunk.heading_path.clone(),
        start_line: Some(found.chunk.lines.0),
        end_line: Some(found.chunk.lines.1),
        page: found.chunk.page,
        part: Some(found.chunk.part).filter(|part| *part > 0),
        snippet: text[from..to].to_owned(),
        highlights: inside.map(|range| (scalars(range.start), scalars(range.end))).collect(),
    }
}
