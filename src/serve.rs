//! The verbs: request → response, the same for every face (HTTP, MCP, …).
//!
//! Verbs that only need the index are plain functions that block; the faces run them where blocking
//! is allowed, so that a search never waits for a sync. `read` goes to the live server.

pub mod api;
pub mod body;
mod candidates;
mod console;
pub mod context;
pub mod cut;
pub mod dify;
pub mod error;
mod fill;
pub mod guard;
pub mod history;
pub mod http;
mod listen;
pub mod mcp;
pub mod metrics;
pub mod nearest;
pub mod pins;
pub mod read;
mod resource;
pub mod scope;
mod scopes;
pub mod search;
pub mod socket;
pub mod tcp;
pub mod tokenizer;
pub mod trace;

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use arc_swap::{ArcSwap, ArcSwapOption};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use crate::config::Config;
use crate::index::writer::WriteQueue;
use crate::index::{IndexStore, ResourceRow, ResourcesRequest};
use crate::model::{Outcome, ResourceKey, ServerName, SyncCounts, SyncQueue};
use crate::search::filter::{Clause, Filter};
use crate::sync::control::{Control, TemplateRow};
use crate::worker::Workers;
use api::{
    ConfigStatus, ErrorCode, IndexStatus, ResourcesQuery, ResourcesResponse, StatusResponse,
    SyncRequest, SyncResponse, TemplateItem, TemplatesResponse,
};
use console::session::Sessions;
use error::ApiError;
use history::History;
use pins::Pins;
use scope::{Caller, Scopes, View};
use trace::Trace;

/// What the verbs work on. Shared by all faces; the daemon replaces what a reload changes.
pub struct App {
    pub store: Arc<dyn IndexStore>,
    pub control: Arc<Control>,
    pub config: ArcSwap<Config>,
    /// Why a changed config isn't in force.
    pub config_error: ArcSwapOption<String>,
    /// Why nothing is written to the index at the moment.
    pub paused: ArcSwapOption<String>,
    /// How far what another version made of the index is made anew; the servers wait for it.
    pub rebuilding: ArcSwapOption<String>,
    started: Instant,
    /// Of `config`, made when first asked for.
    scopes: ArcSwapOption<Scopes>,
    pub pins: Pins,
    pub trace: Trace,
    pub history: History,
    /// Who is signed in to the console.
    pub sessions: Sessions,
    /// Where TCP is answered, when it is.
    pub http: ArcSwapOption<SocketAddr>,
    /// How long answers took, by verb.
    latency: metrics::Latency,
    /// What waits for the index's writer.
    pub write_queue: OnceLock<WriteQueue>,
    /// What opens binary content for `read`; none unless it is set.
    pub workers: Workers,
}

impl App {
    pub fn new(store: Arc<dyn IndexStore>, control: Arc<Control>, config: Arc<Config>) -> Self {
        Self {
            store,
            control,
            config: ArcSwap::new(config),
            config_error: ArcSwapOption::empty(),
            paused: ArcSwapOption::empty(),
            rebuilding: ArcSwapOption::empty(),
            started: Instant::now(),
            scopes: ArcSwapOption::empty(),
            pins: Pins::default(),
            trace: Trace::default(),
            history: History::default(),
            sessions: Sessions::default(),
            http: ArcSwapOption::empty(),
            latency: metrics::Latency::default(),
            write_queue: OnceLock::new(),
            workers: Workers::none(),
        }
    }

    /// Keeps what is pinned, followed and traced in the state folder, from now on.
    ///
    /// # Errors
    /// The folder's files can't be had.
    pub fn keep_in(&self, state: &Path) -> io::Result<()> {
        self.pins.keep_in(state)?;
        self.control.added.keep_in(state)?;
        self.trace.keep_in(state)
    }

    /// What is known of the resources that the caller may see, a page at a time.
    ///
    /// # Errors
    /// An unknown server, a cursor that no page gave, or a fault of the index.
    pub fn resources(
        &self,
        caller: &Caller,
        query: &ResourcesQuery,
    ) -> Result<ResourcesResponse, ApiError> {
        let view = self.view(caller, query.scope.as_deref())?;
        let within = match (&query.server, &query.prefix) {
            (Some(name), prefix) => Some(ResourceKey {
                server: self.server_named(&view, name)?,
                uri: prefix.as_deref().unwrap_or_default().into(),
            }),
            (None, _) => None,
        };
        let filter = match (&within, &query.prefix) {
            (None, Some(prefix)) => {
                let clause = Clause { uri_prefix: Some(prefix.clone()), ..Clause::default() };
                view.filter.and(clause)
            }
            _ => view.filter,
        };
        let after = query.cursor.as_deref().map(parse_cursor).transpose()?;
        let page = self.store.resources(&ResourcesRequest {
            filter,
            after,
            limit: api::RESOURCES_PAGE,
            skipped_only: query.skipped,
            within,
            contains: query.contains.as_deref().map(str::to_lowercase),
        })?;
        let last = page.resources.last().map(|row| cursor(&row.key));
        let resources = page.resources.into_iter().map(|row| self.item(row));
        Ok(ResourcesResponse {
            resources: resources.collect(),
            next_cursor: last.filter(|_| page.more),
        })
    }

    /// The URI templates that the caller may see. A template is seen where it fits a scope as a URI
    /// would.
    ///
    /// # Errors
    /// The caller's scope is gone.
    pub fn templates(&self, caller: &Caller) -> Result<TemplatesResponse, ApiError> {
        let view = self.view(caller, None)?;
        let rows = self.templates_in(&view).into_iter().map(|(server, row)| TemplateItem {
            server: server.to_string(),
            title: row
                .template
                .title
                .filter(|title| !title.is_empty())
                .or(Some(row.template.name).filter(|name| !name.is_empty()))
                .unwrap_or_else(|| row.template.uri_template.clone()),
            variables: fill::variables(&row.template.uri_template),
            followed: match view.bound {
                true => vec![],
                false => self.followed(&server, &row.template.uri_template),
            },
            uri_template: row.template.uri_template,
            description: row.template.description,
            // Expansions outside the scope would be counted too.
            expanded: if view.bound { 0 } else { row.expanded },
        });
        Ok(TemplatesResponse { templates: rows.collect() })
    }

    fn templates_in(&self, view: &View) -> Vec<(ServerName, TemplateRow)> {
        let mut rows = self.control.templates();
        rows.retain(|(server, row)| {
            let mime_type = row.template.mime_type.as_deref();
            view.sees_server(server)
                && view.filter.allows_uri(&row.template.uri_template)
                && mime_type.is_none_or(|mime_type| view.filter.allows_mime_type(mime_type))
        });
        rows
    }

    /// # Errors
    /// The index can't be read.
    pub fn status(&self, caller: &Caller) -> Result<StatusResponse, ApiError> {
        let view = self.view(caller, None)?;
        if view.bound {
            return self.status_in(&view);
        }
        let stats = self.store.stats()?;
        let text = |slot: &ArcSwapOption<String>| slot.load().as_deref().cloned();
        Ok(StatusResponse {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            uptime_s: self.started.elapsed().as_secs(),
            index: IndexStatus {
                resources: stats.resources,
                chunks: stats.chunks,
                bytes: stats.bytes,
                last_commit: stats.last_commit,
                paused: text(&self.paused),
                rebuilding: text(&self.rebuilding),
            },
            config: ConfigStatus {
                error: text(&self.config_error),
                warnings: self.config.load().warnings.clone(),
            },
            servers: self.control.statuses(),
        })
    }

    /// The status as far as a scope goes: its servers, with counts of what is in it. What is said
    /// to a server's owner may name anything, and is left out.
    fn status_in(&self, view: &View) -> Result<StatusResponse, ApiError> {
        let mut counts: HashMap<ServerName, [u64; 3]> = HashMap::new();
        self.each_resource(&view.filter, |row| {
            let stale = self.control.is_stale(&row.key);
            let [indexed, skipped, stales] = counts.entry(row.key.server).or_default();
            *(if row.outcome == Outcome::Indexed { indexed } else { skipped }) += 1;
            *stales += u64::from(stale);
            true
        })?;
        let shown = self.servers_shown(view)?;
        let mut servers = self.control.statuses();
        servers.retain(|server| shown.iter().any(|name| name.as_str() == server.name));
        for server in &mut servers {
            let [indexed, skipped, stale] =
                counts.get(server.name.as_str()).copied().unwrap_or_default();
            server.listed = indexed + skipped;
            (server.indexed, server.skipped, server.stale) = (indexed, skipped, stale);
            (server.last_error, server.withheld_removals) = (None, 0);
            (server.warnings, server.queue, server.counts) =
                (vec![], SyncQueue::default(), SyncCounts::default());
        }
        Ok(StatusResponse {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            uptime_s: self.started.elapsed().as_secs(),
            index: IndexStatus {
                resources: servers.iter().map(|server| server.listed).sum(),
                chunks: 0,
                bytes: 0,
                last_commit: None,
                paused: None,
                rebuilding: None,
            },
            config: ConfigStatus::default(),
            servers,
        })
    }

    /// Goes through all resources that a filter lets through, as long as `seen` says so.
    pub(crate) fn each_resource(
        &self,
        filter: &Filter,
        mut seen: impl FnMut(ResourceRow) -> bool,
    ) -> Result<(), ApiError> {
        const PAGE: usize = 2_000;
        let mut after = None;
        loop {
            let page = self.store.resources(&ResourcesRequest {
                filter: filter.clone(),
                after: after.take(),
                limit: PAGE,
                ..ResourcesRequest::default()
            })?;
            after = page.resources.last().map(|row| row.key.clone());
            for row in page.resources {
                if !seen(row) {
                    return Ok(());
                }
            }
            if !page.more || after.is_none() {
                return Ok(());
            }
        }
    }

    /// Asks servers to be listed and reconciled; doesn't wait for it.
    ///
    /// # Errors
    /// A name that no server has, or a confirmation by a caller that sees only a part.
    pub fn sync(&self, caller: &Caller, request: &SyncRequest) -> Result<SyncResponse, ApiError> {
        let view = self.view(caller, None)?;
        if view.bound && request.confirm {
            let message = "confirm: only the daemon's owner can believe a mass removal";
            return Err(ApiError::new(ErrorCode::Forbidden, message));
        }
        let mut names = self.servers_named(&view, request.servers.as_deref())?;
        if names.is_empty() && view.bound {
            // None named would mean all there are.
            let seen = self.servers_shown(&view)?;
            if seen.is_empty() {
                return Ok(SyncResponse { started: vec![] });
            }
            names = seen;
        }
        let started = self.control.request_sync(&names, request.confirm);
        Ok(SyncResponse { started: started.iter().map(ToString::to_string).collect() })
    }
}

/// Where the next page begins, as text that isn't meant to be read or made by others.
fn cursor(key: &ResourceKey) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(format!("{}/{}", key.server, key.uri))
}

fn parse_cursor(cursor: &str) -> Result<ResourceKey, ApiError> {
    let parse = || {
        let text = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
        // A server's name has no slash in it.
        let (server, uri) = text.split_once('/')?;
        Some(ResourceKey { server: ServerName::new(server).ok()?, uri: uri.into() })
    };
    parse().ok_or_else(|| {
        ApiError::bad_request("cursor: not one that this route gave")
            .hint(Some("leave it out to begin at the first page"))
    })
}

#[cfg(test)]
pub mod fake;
#[cfg(test)]
pub mod tests;
