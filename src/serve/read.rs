//! `read`: a live `resources/read`, or the last good text where the server can't be read.
//!
//! A URI is taken as it is. Clients normalise URIs on the way, though, so one that no server has is
//! tried once more as the single known URI that is equal after WHATWG parsing.

use std::sync::Arc;

use url::Url;

use super::api::{ErrorCode, ReadContent, ReadRequest, ReadResponse};
use super::cut::{self, Lines};
use super::error::ApiError;
use super::{App, scope};
use crate::chunk;
use crate::config::Limits;
use crate::extract::{self, Extraction};
use crate::index::{Entry, ResourcesRequest};
use crate::model::{
    Audience, Body, Document, Format, Heading, Origin, Outcome, Resource, ResourceKey, ServerName,
    Snapshot,
};
use crate::search::filter::{Clause, Filter};
use crate::source::SourceError;
use crate::sync::control::ReadError;

/// Most resources that are looked through for a URI that no server has as it stands.
const MAX_CANDIDATES: usize = 200_000;
/// Of those, how many are compared for likeness.
const MAX_COMPARED: usize = 20_000;
const NEAREST_SHOWN: usize = 3;

/// One of a read's contents before it is cut to what was asked for.
#[derive(Clone, Debug, PartialEq)]
struct Item {
    index: u32,
    uri: String,
    mime_type: Option<String>,
    body: Body,
    /// Of `body`'s text.
    headings: Vec<Heading>,
}

/// What was read, and how.
#[derive(Default)]
struct Reading {
    items: Vec<Item>,
    stale: bool,
    truncated: bool,
    notes: Vec<String>,
}

impl App {
    /// # Errors
    /// A field that can't be understood, an unknown or ambiguous resource, or a server that can't
    /// be read and of whose resource the index holds no text.
    pub async fn read(self: &Arc<Self>, request: ReadRequest) -> Result<ReadResponse, ApiError> {
        // A server's own words may repeat what it was sent.
        let masker = self.config.load().masker.clone();
        let masked = |text: String| masker.mask(&text).into_owned();
        match self.read_as_it_is(request).await {
            Ok(mut response) => {
                response.notes = response.notes.into_iter().map(masked).collect();
                Ok(response)
            }
            Err(ApiError { mut detail }) => {
                detail.message = masked(detail.message);
                detail.hint = detail.hint.map(masked);
                Err(ApiError { detail })
            }
        }
    }

    async fn read_as_it_is(
        self: &Arc<Self>,
        request: ReadRequest,
    ) -> Result<ReadResponse, ApiError> {
        let lines = match &request.lines {
            Some(text) => Lines::parse(text).map_err(ApiError::bad_request)?,
            None => Lines::ALL,
        };
        if request.max_tokens == Some(0) {
            return Err(ApiError::bad_request("max_tokens: at least 1, not 0"));
        }
        let (uri, server) = (request.uri.clone(), request.server.clone());
        let key = self.blocking(move |app| app.resolve(&uri, server.as_deref())).await?;
        let reading = match self.control.read(&key).await {
            Ok(snapshot) => {
                let (key, request) = (key.clone(), request.clone());
                self.blocking(move |app| app.live(&key, &request, snapshot)).await?
            }
            Err(error) => {
                let key = key.clone();
                self.blocking(move |app| app.last_good(&key, &error)).await?
            }
        };
        answer(&key, &request, lines, reading)
    }

    /// Runs what blocks on a thread where it may.
    pub(super) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        verb: impl FnOnce(&Self) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let app = Arc::clone(self);
        tokio::task::spawn_blocking(move || verb(&app))
            .await
            .map_err(|error| ApiError::internal(format!("the request's work ended: {error}")))?
    }

    /// Which resource is meant.
    fn resolve(&self, uri: &str, server: Option<&str>) -> Result<ResourceKey, ApiError> {
        let names = self.control.names();
        let server = server.map(|name| scope::server(name, &names)).transpose()?;
        let mut keys = self.store.keys_of_uri(uri)?;
        keys.retain(|key| names.contains(&key.server));
        if let Some(server) = &server {
            keys.retain(|key| key.server == *server);
        }
        match &keys[..] {
            [key] => return Ok(key.clone()),
            [] => {}
            several => return Err(ambiguous(uri, several)),
        }
        let candidates = self.candidates(uri, server.as_ref())?;
        match (&candidates.equal[..], server) {
            ([key], _) => Ok(key.clone()),
            // It may be what a template gives, or a part of another resource: the server knows.
            ([], Some(server)) => Ok(ResourceKey { server, uri: uri.into() }),
            ([], None) => Err(not_found(uri, None, &candidates.nearest)),
            (several, _) => Err(ambiguous(uri, several)),
        }
    }

    fn candidates(&self, uri: &str, server: Option<&ServerName>) -> Result<Candidates, ApiError> {
        const PAGE: usize = 2_000;
        let filter = match server {
            None => Filter::default(),
            Some(server) => Filter::default()
                .and(Clause { servers: Some(vec![server.clone()]), ..Clause::default() }),
        };
        let mut search = CandidateSearch::new(uri);
        let mut after = None;
        while search.seen < MAX_CANDIDATES {
            let page = self.store.resources(&ResourcesRequest {
                filter: filter.clone(),
                after: after.take(),
                limit: PAGE,
                skipped_only: false,
            })?;
            page.resources.iter().for_each(|row| search.see(&row.key));
            after = page.resources.last().map(|row| row.key.clone());
            if !page.more || after.is_none() {
                break;
            }
        }
        Ok(search.finish())
    }

    fn live(
        &self,
        key: &ResourceKey,
        request: &ReadRequest,
        snapshot: Snapshot,
    ) -> Result<Reading, ApiError> {
        let limits = self.config.load().limits.clone();
        if !request.extracted && !request.outline {
            let mut reading = Reading { items: raw(&snapshot), ..Reading::default() };
            let needs_headings = request
                .max_tokens
                .is_some_and(|most| reading.items.iter().any(|item| !fits(item, most)));
            if needs_headings && let Ok(document) = self.extracted(key, &snapshot, &limits) {
                add_headings(&mut reading.items, document);
            }
            return Ok(reading);
        }
        let document = self.extracted(key, &snapshot, &limits)?;
        let mut reading = Reading {
            notes: document.notes.clone(),
            truncated: document.truncated,
            ..Reading::default()
        };
        if !request.extracted && differs(&document, &snapshot) {
            reading.notes.push("the lines are those of the text that `extracted` gives".into());
        }
        reading.items = document
            .parts
            .into_iter()
            .map(|part| Item {
                index: part.index,
                uri: snapshot
                    .contents
                    .get(part.index as usize)
                    .map_or_else(|| key.uri.to_string(), |content| content.uri.clone()),
                mime_type: Some(match part.format {
                    Format::Markdown => "text/markdown".into(),
                    _ => "text/plain".into(),
                }),
                body: Body::Text(part.text),
                headings: part.headings,
            })
            .collect();
        Ok(reading)
    }

    fn extracted(
        &self,
        key: &ResourceKey,
        snapshot: &Snapshot,
        limits: &Limits,
    ) -> Result<Document, ApiError> {
        let resource = self.store.entry(key)?.map_or_else(|| bare(key), |entry| entry.resource);
        match extract::extract(&resource, snapshot, limits) {
            Extraction::Document(document) => Ok(document),
            Extraction::Skipped(reason) => {
                Err(ApiError::bad_request(format!("{} has no text: {reason}", key.uri))
                    .hint(Some("read it without `extracted` and `outline`")))
            }
        }
    }

    /// The text that the index holds, where the server's own can't be had.
    fn last_good(&self, key: &ResourceKey, error: &ReadError) -> Result<Reading, ApiError> {
        if let ReadError::Source(SourceError::NotFound { message, .. }) = error {
            let nearest = self.candidates(&key.uri, Some(&key.server))?.nearest;
            return Err(not_found(&key.uri, Some((&key.server, message)), &nearest));
        }
        match self.store.entry(key)? {
            Some(entry) if entry.outcome == Outcome::Indexed => Ok(Reading {
                items: stored(&entry),
                stale: true,
                truncated: false,
                notes: vec![format!(
                    "the text of {}, since it can't be read now: {error}",
                    entry.indexed_at.format("%Y-%m-%d %H:%M:%S UTC")
                )],
            }),
            _ => Err(unreadable(key, error)),
        }
    }
}

/// A resource of which only the key is known.
fn bare(key: &ResourceKey) -> Resource {
    Resource {
        uri: key.uri.clone(),
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

fn raw(snapshot: &Snapshot) -> Vec<Item> {
    (0..)
        .zip(&snapshot.contents)
        .map(|(index, content)| Item {
            index,
            uri: content.uri.clone(),
            mime_type: content.mime_type.clone(),
            body: content.body.clone(),
            headings: vec![],
        })
        .collect()
}

fn fits(item: &Item, max_tokens: usize) -> bool {
    match &item.body {
        Body::Text(text) => chunk::estimate_tokens(text) <= max_tokens,
        Body::Blob(_) => true,
    }
}

/// Headings tell lines of the extracted text, so they hold only where that is the text itself.
fn add_headings(items: &mut [Item], document: Document) {
    for part in document.parts {
        let item = items.iter_mut().find(|item| item.index == part.index);
        if let Some(item) = item
            && matches!(&item.body, Body::Text(text) if *text == part.text)
        {
            item.headings = part.headings;
        }
    }
}

fn differs(document: &Document, snapshot: &Snapshot) -> bool {
    document.parts.iter().any(|part| {
        let content = snapshot.contents.get(part.index as usize);
        !content.is_some_and(|c| matches!(&c.body, Body::Text(text) if *text == part.text))
    })
}

/// Chunks partition the text of each part, so put together they are it again.
fn stored(entry: &Entry) -> Vec<Item> {
    let mut items: Vec<Item> = vec![];
    let mut path: &[String] = &[];
    for chunk in &entry.chunks {
        let mime_type = match entry.mime_type.as_deref() {
            Some("text/markdown" | "text/html" | "application/xhtml+xml") => "text/markdown",
            _ => "text/plain",
        };
        if items.last().is_none_or(|item| item.index != chunk.part) {
            path = &[];
            items.push(Item {
                index: chunk.part,
                uri: entry.resource.uri.to_string(),
                mime_type: Some(mime_type.into()),
                body: Body::Text(String::new()),
                headings: vec![],
            });
        }
        let Some(Item { body: Body::Text(text), headings, .. }) = items.last_mut() else {
            continue;
        };
        if chunk.heading_path != path
            && let Some(heading) = chunk.heading_path.last()
        {
            let level = u8::try_from(chunk.heading_path.len()).unwrap_or(u8::MAX);
            headings.push(Heading { level, text: heading.clone(), at: text.len() });
        }
        path = &chunk.heading_path;
        text.push_str(&chunk.text);
    }
    items
}

/// Cuts what was read to what was asked for.
fn answer(
    key: &ResourceKey,
    request: &ReadRequest,
    lines: Lines,
    reading: Reading,
) -> Result<ReadResponse, ApiError> {
    let Reading { mut items, stale, mut truncated, mut notes } = reading;
    let several = items.len() > 1;
    if let Some(part) = request.part {
        let count = items.len();
        items.retain(|item| item.index == part);
        if items.is_empty() {
            return Err(ApiError::bad_request(format!(
                "part: the resource has {count} contents, counted from 0, and none is {part}"
            )));
        }
    }
    let has_blob = items.iter().any(|item| matches!(item.body, Body::Blob(_)));
    if request.lines.is_some() && has_blob {
        return Err(ApiError::bad_request("lines: this resource isn't text")
            .hint(Some("ask with `extracted` for the lines of its text")));
    }
    let outline = |items: &[Item]| {
        let all = items.iter().flat_map(|item| match &item.body {
            Body::Text(text) => cut::outline(text, &item.headings, several.then_some(item.index)),
            Body::Blob(_) => vec![],
        });
        all.collect::<Vec<_>>()
    };
    let mut response = ReadResponse {
        server: key.server.to_string(),
        uri: key.uri.to_string(),
        contents: vec![],
        stale,
        truncated,
        next_lines: None,
        outline: None,
        notes: vec![],
    };
    if request.outline {
        response.outline = Some(outline(&items));
        response.notes = notes;
        return Ok(response);
    }
    let mut left = request.max_tokens.unwrap_or(usize::MAX);
    let mut cut_here = false;
    for item in &items {
        let text = match &item.body {
            Body::Blob(blob) => {
                response.contents.push(content(item, None, Some(blob.clone())));
                continue;
            }
            Body::Text(text) => lines.of(text),
        };
        if cut_here {
            notes.push(format!("contents {} left out: ask with `part`", item.index));
            continue;
        }
        if request.max_tokens.is_none() {
            response.contents.push(content(item, Some(text.to_owned()), None));
            continue;
        }
        let cut = cut::budget(text, left);
        left -= cut.tokens.min(left);
        response.contents.push(content(item, Some(cut.text.to_owned()), None));
        if !cut.complete {
            cut_here = true;
            if cut.whole_lines == 0 {
                notes.push(format!(
                    "line {} alone is longer than max_tokens: ask with more",
                    lines.first
                ));
            } else {
                let next = lines.first + cut.whole_lines;
                let last = lines.last.map(|last| last.to_string()).unwrap_or_default();
                response.next_lines = Some(format!("{next}-{last}"));
            }
        }
    }
    if cut_here {
        truncated = true;
        let outline = outline(&items);
        response.outline = (!outline.is_empty()).then_some(outline);
    }
    (response.truncated, response.notes) = (truncated, notes);
    Ok(response)
}

fn content(item: &Item, text: Option<String>, blob: Option<String>) -> ReadContent {
    ReadContent { uri: item.uri.clone(), mime_type: item.mime_type.clone(), text, blob }
}

/// What the index knows that may be meant by a URI that no server has.
#[derive(Debug, Default, PartialEq)]
struct Candidates {
    /// Equal after WHATWG parsing.
    equal: Vec<ResourceKey>,
    /// The most alike, best first.
    nearest: Vec<ResourceKey>,
}

struct CandidateSearch<'a> {
    uri: &'a str,
    parsed: Option<Url>,
    seen: usize,
    equal: Vec<ResourceKey>,
    nearest: Vec<(f64, ResourceKey)>,
}

impl<'a> CandidateSearch<'a> {
    fn new(uri: &'a str) -> Self {
        Self { uri, parsed: Url::parse(uri).ok(), seen: 0, equal: vec![], nearest: vec![] }
    }

    fn see(&mut self, key: &ResourceKey) {
        const ALIKE: f64 = 0.5;
        self.seen += 1;
        if self.parsed.is_some() && Url::parse(&key.uri).ok() == self.parsed {
            self.equal.push(key.clone());
        }
        if self.seen <= MAX_COMPARED {
            let likeness = strsim::sorensen_dice(head(self.uri), head(&key.uri));
            let worst = self.nearest.last().map_or(0.0, |(likeness, _)| *likeness);
            if likeness >= ALIKE && (self.nearest.len() < NEAREST_SHOWN || likeness > worst) {
                self.nearest.push((likeness, key.clone()));
                self.nearest.sort_by(|a, b| b.0.total_cmp(&a.0));
                self.nearest.truncate(NEAREST_SHOWN);
            }
        }
    }

    fn finish(self) -> Candidates {
        let nearest = self.nearest.into_iter().map(|(_, key)| key).collect();
        Candidates { equal: self.equal, nearest }
    }
}

/// As much of a URI as is worth comparing.
fn head(uri: &str) -> &str {
    &uri[..cut::floor(uri, 256)]
}

fn ambiguous(uri: &str, keys: &[ResourceKey]) -> ApiError {
    let mut servers: Vec<&str> = keys.iter().map(|key| key.server.as_str()).collect();
    servers.dedup();
    if servers.len() == 1 {
        let uris: Vec<_> = keys.iter().map(|key| key.uri.as_ref()).collect();
        return ApiError::new(
            ErrorCode::Ambiguous,
            format!("{} may be any of: {}", uri, uris.join(" ")),
        )
        .hint(Some("give the URI exactly as a hit or a list shows it"));
    }
    ApiError::new(
        ErrorCode::Ambiguous,
        format!("several servers have {}: {}", uri, servers.join(", ")),
    )
    .hint(Some("name the one that is meant in `server`"))
}

fn not_found(uri: &str, said: Option<(&ServerName, &String)>, nearest: &[ResourceKey]) -> ApiError {
    let message = match said {
        None => format!("no server has {}", uri),
        Some((server, message)) => format!("{server} has no {} ({message})", uri),
    };
    let uris: Vec<_> = nearest.iter().map(|key| key.uri.as_ref()).collect();
    let hint = if uris.is_empty() {
        "URIs are those that a search or a list shows; `server` reads one that isn't listed".into()
    } else {
        format!("the nearest: {}", uris.join(" "))
    };
    ApiError::new(ErrorCode::NotFound, message).hint(Some(hint))
}

fn unreadable(key: &ResourceKey, error: &ReadError) -> ApiError {
    let code = match error {
        ReadError::UnknownServer(_) => ErrorCode::UnknownServer,
        ReadError::Away { .. } | ReadError::Source(SourceError::Disconnected { .. }) => {
            ErrorCode::ServerAway
        }
        ReadError::Source(SourceError::TimedOut { .. }) => ErrorCode::TimedOut,
        ReadError::Source(_) => ErrorCode::ServerError,
    };
    ApiError::new(code, format!("{} can't be read: {error}", key.uri))
        .hint(Some(format!("`resdex status` says what is wrong with {}", key.server)))
}

#[cfg(test)]
mod tests;
