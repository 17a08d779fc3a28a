//! `read`: a live `resources/read`, or the last good text where the server can't be read.
//!
//! A URI is taken as it is. Clients normalise URIs on the way, though, so one that no server has is
//! tried once more as the single known URI that is equal after WHATWG parsing.

use std::sync::Arc;

use super::App;
use super::api::{ErrorCode, ReadContent, ReadRequest, ReadResponse, TraceVerb};
use super::cut::{self, Lines};
use super::error::ApiError;
use super::scope::{Caller, View};
use super::tokenizer::Tokenizer;
use crate::chunk;
use crate::config::{self, Limits};
use crate::extract::Extraction;
use crate::index::Entry;
use crate::model::{
    Body, Document, Format, Heading, Outcome, Resource, ResourceKey, ServerName, Snapshot,
};
use crate::source::SourceError;
use crate::sync::control::ReadError;

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

/// What the index knows of a resource that is asked for.
enum Known {
    Seen,
    /// It holds it, and the view doesn't show it.
    Hidden,
    Not,
}

/// What was read, and how.
#[derive(Default)]
struct Reading {
    items: Vec<Item>,
    stale: bool,
    truncated: bool,
    notes: Vec<String>,
}

/// What the outline of a text that was cut may cost beside it: this part of the budget.
const OUTLINE_SHARE: usize = 4;
/// But no less than a few headings.
const LEAST_OUTLINE: usize = 32;

impl App {
    /// # Errors
    /// A field that can't be understood, an unknown or ambiguous resource, or a server that can't
    /// be read and of whose resource the index holds no text.
    pub async fn read(
        self: &Arc<Self>,
        caller: &Caller,
        mut request: ReadRequest,
    ) -> Result<ReadResponse, ApiError> {
        if let Ok(view) = self.view(caller, request.scope.as_deref()) {
            request.max_tokens = view.budget(request.max_tokens);
        }
        self.read_whole(caller, request).await
    }

    /// As [`App::read`], without the scope's budget: for a face whose protocol knows no parts.
    ///
    /// # Errors
    /// As [`App::read`].
    pub async fn read_whole(
        self: &Arc<Self>,
        caller: &Caller,
        request: ReadRequest,
    ) -> Result<ReadResponse, ApiError> {
        // A server's own words may repeat what it was sent.
        let masker = self.config.load().masker.clone();
        let masked = |text: String| masker.mask(&text).into_owned();
        let mut doing = self.doing(TraceVerb::Read, caller, request.scope.as_deref(), None);
        let asked = request.clone();
        let result = self.read_as_it_is(caller, request).await;
        match &result {
            Ok(response) => {
                doing.found([(&*response.server, &*response.uri)]);
                let texts = response.contents.iter().filter_map(|content| content.text.as_deref());
                doing.tokens(texts.map(chunk::estimate_tokens).sum());
            }
            // What was asked for, so that a wrong URI can be found.
            Err(_) => doing.found([(asked.server.as_deref().unwrap_or_default(), &*asked.uri)]),
        }
        match doing.done(result) {
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
        caller: &Caller,
        request: ReadRequest,
    ) -> Result<ReadResponse, ApiError> {
        let view = self.view(caller, request.scope.as_deref())?;
        let lines = match &request.lines {
            Some(text) => Lines::parse(text).map_err(ApiError::bad_request)?,
            None => Lines::ALL,
        };
        if request.max_tokens == Some(0) {
            return Err(ApiError::bad_request("max_tokens: at least 1, not 0"));
        }
        let (key, reading) = self.reading(&view, &request).await?;
        self.blocking(move |_| answer(&key, &request, lines, reading)).await
    }

    /// Which resource is meant, and what it says now.
    async fn reading(
        self: &Arc<Self>,
        view: &View,
        request: &ReadRequest,
    ) -> Result<(ResourceKey, Reading), ApiError> {
        let (key, snapshot) = self.snapshot(view, &request.uri, request.server.as_deref()).await?;
        let (known, request, view) = (key.clone(), request.clone(), view.clone());
        let reading = self
            .blocking(move |app| match snapshot {
                Ok(snapshot) => app.live(&known, &request, snapshot),
                Err(error) => app.last_good(&view, &known, &error),
            })
            .await?;
        Ok((key, reading))
    }

    /// A live `resources/read` of what a view shows under a URI.
    pub(super) async fn snapshot(
        self: &Arc<Self>,
        view: &View,
        uri: &str,
        server: Option<&str>,
    ) -> Result<(ResourceKey, Result<Snapshot, ReadError>), ApiError> {
        let (seen, asked) = (view.clone(), (uri.to_owned(), server.map(str::to_owned)));
        let (key, known) =
            self.blocking(move |app| app.meant(&seen, &asked.0, asked.1.as_deref())).await?;
        let snapshot = self.control.read(&key).await;
        let shown = match (&known, &snapshot) {
            // Asked all the same, so that it takes as long and fails as what isn't there.
            (Known::Hidden, Ok(_)) => false,
            // Only what was read tells the type of a resource that isn't in the index.
            (Known::Not, Ok(snapshot)) => snapshot.contents.iter().all(|content| {
                view.filter.allows_mime_type(content.mime_type.as_deref().unwrap_or_default())
            }),
            (Known::Hidden | Known::Not, Err(ReadError::Source(SourceError::NotFound { .. }))) => {
                view.scope.is_none()
            }
            _ => true,
        };
        if shown { Ok((key, snapshot)) } else { Err(not_found(uri, None, &[])) }
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

    /// The one resource that is meant among those that the index holds and a view shows.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub(super) fn resolve(
        &self,
        view: &View,
        uri: &str,
        server: Option<&str>,
    ) -> Result<ResourceKey, ApiError> {
        match self.meant(view, uri, server)? {
            (key, Known::Seen) => Ok(key),
            _ => Err(not_found(uri, None, &[])),
        }
    }

    /// Which resource is meant, and whether the index knows it.
    fn meant(
        &self,
        view: &View,
        uri: &str,
        server: Option<&str>,
    ) -> Result<(ResourceKey, Known), ApiError> {
        let names = self.servers_in(view);
        let server = server.map(|name| self.server_named(view, name)).transpose()?;
        let mut keys = vec![];
        for key in self.store.keys_of_uri(uri)? {
            let meant = server.as_ref().is_none_or(|server| key.server == *server);
            if meant && names.contains(&key.server) && self.sees(view, &key)? {
                keys.push(key);
            }
        }
        match &keys[..] {
            [key] => return Ok((key.clone(), Known::Seen)),
            [] => {}
            several => return Err(ambiguous(uri, several)),
        }
        let filter = match &server {
            Some(server) => view.of_server(server.clone()),
            None => view.filter.clone(),
        };
        let mut candidates = self.candidates(uri, &filter)?;
        candidates.equal.retain(|key| names.contains(&key.server));
        match (&candidates.equal[..], server) {
            ([key], _) => Ok((key.clone(), Known::Seen)),
            // It may be what a template gives, or a part of another resource: the server knows.
            ([], Some(server)) => {
                let key = ResourceKey { server, uri: uri.into() };
                if self.may_be_asked(view, &key) {
                    let held = self.store.keys_of_uri(uri)?.contains(&key);
                    return Ok((key, if held { Known::Hidden } else { Known::Not }));
                }
                Err(not_found(uri, None, &candidates.nearest))
            }
            ([], None) => Err(not_found(uri, None, &candidates.nearest)),
            (several, _) => Err(ambiguous(uri, several)),
        }
    }

    /// Whether a server may be asked for a URI that the index doesn't know. The owner may ask
    /// anything; a scope ends where the config's own patterns for the server do.
    fn may_be_asked(&self, view: &View, key: &ResourceKey) -> bool {
        if !view.filter.allows_uri(&key.uri) {
            return false;
        }
        let config = self.config.load();
        let Some(server) = config.servers.get(&key.server).filter(|_| view.scope.is_some()) else {
            return true;
        };
        // The config room has checked the patterns; one that is bad lets nothing through.
        let matches = |patterns: &[String], none: bool| match config::globs(patterns) {
            Ok(None) => none,
            Ok(Some(globs)) => globs.is_match(&*key.uri),
            Err(_) => !none,
        };
        matches(&server.follow.include, true) && !matches(&server.follow.exclude, false)
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
        let resource = self
            .store
            .entry(key)?
            .map_or_else(|| Resource::new(key.uri.clone()), |entry| entry.resource);
        let extraction = self.workers.extract_blocking(&resource, snapshot, limits);
        match extraction.map_err(ApiError::internal)? {
            Extraction::Document(document) => Ok(document),
            Extraction::Skipped(reason) => {
                Err(ApiError::bad_request(format!("{} has no text: {reason}", key.uri))
                    .hint(Some("read it without `extracted` and `outline`")))
            }
        }
    }

    /// The text that the index holds, where the server's own can't be had.
    fn last_good(
        &self,
        view: &View,
        key: &ResourceKey,
        error: &ReadError,
    ) -> Result<Reading, ApiError> {
        if let ReadError::Source(SourceError::NotFound { message, .. }) = error {
            let nearest = self.candidates(&key.uri, &view.of_server(key.server.clone()))?.nearest;
            return Err(not_found(&key.uri, Some((&key.server, message)), &nearest));
        }
        let seen = self.sees(view, key)?;
        match self.store.entry(key)?.filter(|_| seen) {
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
        // The estimate may be off by half.
        Body::Text(text) => chunk::estimate_tokens(text) <= max_tokens / 2,
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
    let tokenizer = Tokenizer::named(None)?;
    let count = |text: &str| tokenizer.count(text);
    let has_blob = items.iter().any(|item| matches!(item.body, Body::Blob(_)));
    if request.lines.is_some() && has_blob {
        return Err(ApiError::bad_request("lines: this resource isn't text")
            .hint(Some("ask with `extracted` for the lines of its text")));
    }
    let outline = |items: &[Item]| {
        let all = items.iter().flat_map(|item| match &item.body {
            Body::Text(text) => {
                cut::outline(text, &item.headings, several.then_some(item.index), &count)
            }
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
        let cut = cut::budget(text, left, &count);
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
        let most = (request.max_tokens.unwrap_or(usize::MAX) / OUTLINE_SHARE).max(LEAST_OUTLINE);
        let outline = cut::shallow(outline(&items), most);
        response.outline = (!outline.is_empty()).then_some(outline);
    }
    (response.truncated, response.notes) = (truncated, notes);
    Ok(response)
}

fn content(item: &Item, text: Option<String>, blob: Option<String>) -> ReadContent {
    ReadContent { uri: item.uri.clone(), mime_type: item.mime_type.clone(), text, blob }
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
