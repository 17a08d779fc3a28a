//! `search`: checks a request, asks the search room, and shapes its answer.

use std::time::Instant;

use super::App;
use super::api::{self, Duplicate, Hit, Passage, SearchRequest, SearchResponse, TraceVerb};
use super::error::ApiError;
use super::scope::{Caller, View};
use crate::chunk::estimate_tokens;
use crate::model::{Audience, Outcome};
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
        let query = Some(request.query.as_str());
        let mut doing = self.doing(TraceVerb::Search, caller, request.scope.as_deref(), query);
        let result = self.found(caller, request, request_id);
        if let Ok(answer) = &result {
            doing.found(answer.hits.iter().map(|hit| (&*hit.server, &*hit.uri)));
            let snippets = answer.hits.iter().map(|hit| estimate_tokens(&hit.passage.snippet));
            doing.tokens(snippets.sum());
        }
        doing.done(result)
    }

    fn found(
        &self,
        caller: &Caller,
        request: &SearchRequest,
        request_id: &str,
    ) -> Result<SearchResponse, ApiError> {
        let started = Instant::now();
        let config = self.config.load();
        check(request, config.limits.max_query_bytes)?;
        let view = self.view(caller, request.scope.as_deref())?;
        let servers = self.servers_named(&view, request.servers.as_deref())?;
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
                ..search::Request::new(request.query.as_str())
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

/// A search for the faces that put passages into prompts.
pub(super) struct Asked<'q> {
    pub query: &'q str,
    pub limit: usize,
    pub offset: usize,
    pub passages: usize,
    pub min_relevance: Option<f32>,
}

impl App {
    /// What answers a query for a prompt: with its text, and without what is for people only.
    pub(super) fn hits(&self, view: &View, asked: &Asked<'_>) -> Result<search::Answer, ApiError> {
        let limits = &self.config.load().limits;
        check_query(asked.query, limits.max_query_bytes)?;
        let bounds = Bounds { bytes: limits.max_query_bytes, terms: limits.max_query_terms };
        let request = search::Request {
            filter: view.filter.clone(),
            limit: asked.limit,
            offset: asked.offset,
            passages: asked.passages,
            min_relevance: asked.min_relevance,
            bounds,
            // What is shown is counted in tokens or records.
            max_answer_bytes: usize::MAX,
            ..search::Request::new(asked.query)
        };
        let mut answer = search::search(&*self.store, &request)?;
        answer.hits.retain(|hit| {
            let (server, mime_type) = (hit.key.server.as_str(), hit.mime_type.as_deref());
            hit.audience != Audience::User && view.filter.allows(server, &hit.key.uri, mime_type)
        });
        Ok(answer)
    }
}

/// # Errors
/// Names the field that is out of its bounds, and the bounds.
fn check(request: &SearchRequest, max_query_bytes: usize) -> Result<(), ApiError> {
    check_query(&request.query, max_query_bytes)?;
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

/// # Errors
/// There are no words, or too many.
fn check_query(query: &str, max_query_bytes: usize) -> Result<(), ApiError> {
    if query.trim().is_empty() {
        return Err(ApiError::bad_request("query: there are no words in it"));
    }
    if query.len() > max_query_bytes {
        return Err(ApiError::bad_request(format!(
            "query: at most {max_query_bytes} bytes, this one has {}",
            query.len()
        ))
        .hint(Some("ask with the words that matter; limits.max_query_bytes is the limit")));
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
        duplicates: (!found.duplicates.is_empty()).then(|| {
            let named = found
                .duplicates
                .iter()
                .map(|key| Duplicate { server: key.server.to_string(), uri: key.uri.to_string() });
            named.collect()
        }),
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
