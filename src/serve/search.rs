//! `search`: checks a request, asks the search room, and shapes its answer.

use std::time::Instant;

use super::App;
use super::api::{self, Hit, Passage, SearchRequest, SearchResponse};
use super::error::ApiError;
use super::scope::{self, Caller};
use crate::model::Outcome;
use crate::search;
use crate::search::filter::Clause;
use crate::search::query::Bounds;

impl App {
    /// Blocks on the index, never on a server.
    ///
    /// # Errors
    /// A request out of its bounds, an unknown server or scope, or a fault of the index.
    pub fn search(
        &self,
        caller: &Caller,
        request: &SearchRequest,
        request_id: &str,
    ) -> Result<SearchResponse, ApiError> {
        let started = Instant::now();
        let config = self.config.load();
        check(request, config.limits.max_query_bytes)?;
        let view = self.view(caller, request.scope.as_deref())?;
        let servers = scope::servers(request.servers.as_deref(), &self.servers_in(&view))?;
        let mut filter = view.filter.clone();
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
        let answer = search::search(
            &*self.store,
            &search::Request {
                query: request.query.clone(),
                filter,
                limit: request.limit,
                offset: request.offset,
                passages: request.passages,
                min_relevance: request.min_relevance,
                explain: request.explain,
                bounds: Bounds {
                    bytes: config.limits.max_query_bytes,
                    terms: config.limits.max_query_terms,
                },
                max_answer_bytes: config.limits.max_answer_bytes,
            },
        )?;
        // Once more, whatever the index says.
        let hits = answer.hits.into_iter().filter(|hit| {
            view.filter.allows(hit.key.server.as_str(), &hit.key.uri, hit.mime_type.as_deref())
        });
        let hits = hits.map(|found| {
            let stale = self.control.is_stale(&found.key);
            hit(found, stale, request.passages > 1)
        });
        let (hits, more) = (hits.collect(), answer.more);
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

fn hit(found: search::Hit, stale: bool, several: bool) -> Hit {
    let named_only = found.outcome != Outcome::Indexed;
    let mut passages = found.passages.into_iter().map(|found| passage(found, named_only));
    Hit {
        rank: found.rank,
        server: found.key.server.to_string(),
        uri: found.key.uri.to_string(),
        title: found.title,
        mime_type: found.mime_type,
        score: found.score,
        relevance: found.relevance,
        passage: passages.next().unwrap_or_default(),
        passages: several.then(|| passages.collect()),
        stale,
        indexed_at: found.indexed_at,
        untrusted: true,
        explanation: found.explanation,
    }
}

/// A resource that is found by its name only has no lines.
fn passage(found: search::Passage, named_only: bool) -> Passage {
    let lines = (!named_only).then_some(found.lines);
    Passage {
        heading_path: found.chunk.heading_path,
        start_line: lines.map(|(start, _)| start),
        end_line: lines.map(|(_, end)| end),
        page: found.chunk.page,
        part: Some(found.chunk.part).filter(|part| *part > 0),
        snippet: found.snippet,
        highlights: found
            .highlights
            .into_iter()
            .map(|(start, end)| (start as usize, end as usize))
            .collect(),
    }
}
