//! One client's connection: the protocol's requests, and pushing in both of its eras.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::ops::Bound;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rmcp::model::{
    Annotations, CacheScope, Implementation, ListResourceTemplatesResult, ListResourcesResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    Resource, ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::content::{self, cannot_list, missing, not_found};
use super::folder::Folder;
use super::scan::{self, Entry};
use super::uri::{self, RelPath};
use super::{FilesServer, walk};
use crate::outbox::Outbox;

/// Most URIs that one client may be subscribed to.
const MAX_SUBSCRIPTIONS: usize = 1_000_000;

pub struct Connection {
    server: FilesServer,
    /// What the legacy era pushes; registered and emptied once such a client shows up.
    legacy: Arc<Outbox<RelPath>>,
    pushing: AtomicBool,
    closed: CancellationToken,
    _close: DropGuard,
}

impl Connection {
    pub fn new(server: FilesServer) -> Self {
        let closed = CancellationToken::new();
        let _close = closed.clone().drop_guard();
        Self {
            server,
            legacy: Arc::new(Outbox::new(true, MAX_SUBSCRIPTIONS)),
            pushing: AtomicBool::new(false),
            closed,
            _close,
        }
    }

    fn folder(&self) -> &Arc<Folder> {
        &self.server.folder
    }

    fn path_of(&self, uri: &str) -> Result<RelPath, ErrorData> {
        uri::decode(&self.folder().scheme, uri).ok_or_else(|| not_found(uri))
    }

    /// Starts to push to a legacy client, once.
    fn push_to(&self, peer: &Peer<RoleServer>) {
        if self.pushing.swap(true, Ordering::Relaxed) {
            return;
        }
        self.folder().register(&self.legacy);
        let (outbox, peer, closed) = (self.legacy.clone(), peer.clone(), self.closed.clone());
        tokio::spawn(closed.run_until_cancelled_owned(async move { outbox.push_to(&peer).await }));
    }
}

#[allow(deprecated)] // The legacy era's subscriptions, which most clients of today have.
impl ServerHandler for Connection {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("resdex-files", env!("CARGO_PKG_VERSION")))
            .with_instructions(format!(
                "The files of one folder as resources, {}:///PATH each; hidden and git-ignored files aren't \
                 among them. Changes are pushed.",
                self.folder().scheme
            ))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.push_to(&context.peer);
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let folder = self.folder();
        let after = match request.and_then(|request| request.cursor) {
            Some(cursor) => Some(decode_cursor(&cursor)?),
            None => None,
        };
        // The first page is of the folder as it is; the pages after it follow the live state, and a
        // file that comes or goes meanwhile is told by a notification.
        let current = if after.is_some() { folder.current() } else { None };
        let snapshot = match current {
            Some(current) => current,
            None => folder.refresh(HashSet::new(), true).await,
        }
        .map_err(cannot_list)?;
        let from = after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = snapshot.files.range::<OsStr, _>((from, Bound::Unbounded));
        let page: Vec<_> = rest
            .by_ref()
            .take(folder.options.page_size.max(1))
            .map(|(path, entry)| (path.clone(), entry.clone()))
            .collect();
        let next_cursor = match (rest.next(), page.last()) {
            (Some(_), Some((last, _))) => Some(URL_SAFE_NO_PAD.encode(last.as_bytes())),
            _ => None,
        };
        let (scheme, root) = (folder.scheme.clone(), folder.root.clone());
        let resources = blocking(move || {
            page.iter().map(|(path, entry)| describe(&scheme, &root, path, entry)).collect()
        })
        .await?;
        Ok(ListResourcesResult {
            next_cursor,
            ttl_ms: Some(0),
            cache_scope: Some(CacheScope::Private),
            ..ListResourcesResult::with_all_items(resources)
        })
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult {
            ttl_ms: Some(0),
            cache_scope: Some(CacheScope::Private),
            ..ListResourceTemplatesResult::default()
        })
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let path = self.path_of(&uri)?;
        let folder = self.folder().clone();
        // Bounds the memory that contents take together.
        let _permit = self.server.reads.acquire().await;
        let contents = blocking(move || {
            let listed = folder.last_good().is_some_and(|good| good.files.contains_key(&path));
            if !listed && !walk::is_served(&folder.root, &path) {
                return Err(missing(&folder.root, &uri));
            }
            content::read(&folder, &path, uri)
        })
        .await??;
        let result = ReadResourceResult::new(vec![contents])
            .with_ttl_ms(0)
            .with_cache_scope(CacheScope::Private);
        Ok(result.into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let path = self.path_of(&request.uri)?;
        if !self.legacy.subscribe(path, request.uri) {
            return Err(ErrorData::invalid_request(
                "too many subscriptions on this connection",
                None,
            ));
        }
        self.push_to(&context.peer);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.legacy.unsubscribe(&self.path_of(&request.uri)?);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.retain(|uri| uri::decode(&self.folder().scheme, uri).is_some());
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let accepted = context.accepted();
        let outbox =
            Arc::new(Outbox::new(accepted.resources_list_changed == Some(true), MAX_SUBSCRIPTIONS));
        for uri in accepted.resource_subscriptions.iter().flatten() {
            if !outbox.subscribe(self.path_of(uri)?, uri.clone()) {
                return Err(ErrorData::invalid_request(
                    "too many subscriptions in one stream",
                    None,
                ));
            }
        }
        self.folder().register(&outbox);
        outbox.push_into(&context).await;
        Ok(())
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ErrorData> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| ErrorData::internal_error(e.to_string(), None))
}

fn decode_cursor(cursor: &str) -> Result<RelPath, ErrorData> {
    URL_SAFE_NO_PAD
        .decode(cursor)
        .ok()
        .filter(|path| !path.is_empty())
        .map(RelPath::from_vec)
        .ok_or_else(|| {
            ErrorData::invalid_params(
                "this cursor isn't one of ours; list from the beginning",
                None,
            )
        })
}

fn describe(scheme: &str, root: &Path, path: &RelPath, entry: &Entry) -> Resource {
    let head = entry.head.get_or_init(|| scan::head(root, path));
    let mut resource = Resource::new(uri::encode(scheme, path), path.to_string_lossy())
        .with_size(entry.stamp.size);
    resource.title.clone_from(&head.title);
    resource.mime_type = head.mime.map(str::to_owned);
    resource.annotations =
        entry.stamp.modified().map(|time| Annotations::default().with_timestamp(time));
    resource
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_come_back() {
        let path = RelPath::from_vec(b"a/\xff.md".to_vec());
        assert_eq!(decode_cursor(&URL_SAFE_NO_PAD.encode(path.as_bytes())).unwrap(), path);
        for cursor in ["", "not base64!", "="] {
            assert!(decode_cursor(cursor).is_err(), "{cursor:?}");
        }
    }
}
