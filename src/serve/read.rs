//! `read`: a live `resources/read`, or the last good text where the server can't be read.
//!
//! A URI is taken as it is. Clients normalise URIs on the way, though, so one that no server has is
//! tried once more as the single known URI that is equal after WHATWG parsing.

mod shape;

use std::sync::Arc;

use self::shape::{Item, Reading, add_headings, answer, differs, fits, raw, stored};
use super::App;
use super::api::{ErrorCode, ReadRequest, ReadResponse, TraceVerb};
use super::cut::Lines;
use super::error::ApiError;
use super::scope::{Caller, View};
use crate::chunk;
use crate::config::{self, Limits};
use crate::extract::Extraction;
use crate::model::{Body, Document, Format, Outcome, Resource, ResourceKey, ServerName, Snapshot};
use crate::source::SourceError;
use crate::sync::control::ReadError;

/// What the index knows of a resource that is asked for.
enum Known {
    Seen,
    /// It holds it, and the view doesn't show it.
    Hidden,
    Not,
}

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
