//! The verbs: request → response, the same for every face (HTTP, MCP, …).
//!
//! Verbs that only need the index are plain functions that block; the faces run them where blocking
//! is allowed, so that a search never waits for a sync. `read` goes to the live server.

pub mod api;
pub mod body;
pub mod cut;
pub mod error;
pub mod http;
pub mod nearest;
pub mod read;
pub mod scope;
pub mod search;
pub mod socket;

use std::sync::Arc;
use std::time::Instant;

use arc_swap::{ArcSwap, ArcSwapOption};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use crate::config::Config;
use crate::index::{IndexStore, ResourcesRequest};
use crate::model::{Outcome, ResourceKey, ServerName};
use crate::search::filter::{Clause, Filter};
use crate::sync::control::Control;
use api::{
    ConfigStatus, IndexStatus, OutcomeKind, ResourceItem, ResourcesQuery, ResourcesResponse,
    StatusResponse, SyncRequest, SyncResponse, TemplateItem, TemplatesResponse,
};
use error::ApiError;

/// What the verbs work on. Shared by all faces; the daemon replaces what a reload changes.
pub struct App {
    pub store: Arc<dyn IndexStore>,
    pub control: Arc<Control>,
    pub config: ArcSwap<Config>,
    /// Why a changed config isn't in force.
    pub config_error: ArcSwapOption<String>,
    /// Why nothing is written to the index at the moment.
    pub paused: ArcSwapOption<String>,
    started: Instant,
}

impl App {
    pub fn new(store: Arc<dyn IndexStore>, control: Arc<Control>, config: Arc<Config>) -> Self {
        Self {
            store,
            control,
            config: ArcSwap::new(config),
            config_error: ArcSwapOption::empty(),
            paused: ArcSwapOption::empty(),
            started: Instant::now(),
        }
    }

    /// What is known of a resource, a page at a time.
    ///
    /// # Errors
    /// An unknown server, a cursor that no page gave, or a fault of the index.
    pub fn resources(&self, query: &ResourcesQuery) -> Result<ResourcesResponse, ApiError> {
        let mut filter = Filter::default();
        if let Some(name) = &query.server {
            let server = scope::server(name, &self.control.names())?;
            filter = filter.and(Clause { servers: Some(vec![server]), ..Clause::default() });
        }
        let after = query.cursor.as_deref().map(parse_cursor).transpose()?;
        let page = self.store.resources(&ResourcesRequest {
            filter,
            after,
            limit: api::RESOURCES_PAGE,
            skipped_only: query.skipped,
        })?;
        let last = page.resources.last().map(|row| cursor(&row.key));
        let resources = page.resources.into_iter().map(|row| {
            let (outcome, reason) = match row.outcome {
                Outcome::Indexed => (OutcomeKind::Indexed, None),
                Outcome::Skipped(reason) => (OutcomeKind::Skipped, Some(reason)),
            };
            ResourceItem {
                stale: self.control.is_stale(&row.key),
                server: row.key.server.to_string(),
                uri: row.key.uri.to_string(),
                title: row.title,
                mime_type: row.mime_type,
                size: row.size,
                outcome,
                reason,
                indexed_at: row.indexed_at,
            }
        });
        Ok(ResourcesResponse {
            resources: resources.collect(),
            next_cursor: last.filter(|_| page.more),
        })
    }

    pub fn templates(&self) -> TemplatesResponse {
        let rows = self.control.templates().into_iter().map(|(server, row)| TemplateItem {
            server: server.to_string(),
            title: row
                .template
                .title
                .filter(|title| !title.is_empty())
                .or(Some(row.template.name).filter(|name| !name.is_empty()))
                .unwrap_or_else(|| row.template.uri_template.clone()),
            uri_template: row.template.uri_template,
            description: row.template.description,
            expanded: row.expanded,
        });
        TemplatesResponse { templates: rows.collect() }
    }

    /// # Errors
    /// The index can't be read.
    pub fn status(&self) -> Result<StatusResponse, ApiError> {
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
            },
            config: ConfigStatus {
                error: text(&self.config_error),
                warnings: self.config.load().warnings.clone(),
            },
            servers: self.control.statuses(),
        })
    }

    /// Asks servers to be listed and reconciled; doesn't wait for it.
    ///
    /// # Errors
    /// A name that no server has.
    pub fn sync(&self, request: &SyncRequest) -> Result<SyncResponse, ApiError> {
        let names = scope::servers(request.servers.as_deref(), &self.control.names())?;
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
