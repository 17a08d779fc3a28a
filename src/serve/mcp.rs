//! MCP in front of everything: Streamable HTTP at `/mcp`, and the same on a raw connection for
//! `resdex mcp`. rmcp's types stay in here.
//!
//! Each scope has a service of its own, so a session of one can't be entered with the token of another.

mod complete;
mod follow;
mod handler;
mod names;
mod tools;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, StatusCode, header};
use hyper_util::rt::TokioIo;
use rmcp::ServiceExt as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::App;
use super::api::MCP_UPGRADE as UPGRADE;
use super::error::ApiError;
use super::scope::Caller;
use follow::Hub;
use handler::Connection;

/// A session ends when nothing was asked of it for so long: who is subscribed may be silent for hours.
const SESSION_IDLE: Duration = Duration::from_secs(12 * 60 * 60);
/// Most clients at once.
const MAX_CLIENTS: usize = 1_000;

type Service = StreamableHttpService<Connection, LocalSessionManager>;

/// The MCP face of one listener.
#[derive(Clone)]
pub struct McpFace {
    app: Arc<App>,
    shutdown: CancellationToken,
    scopes: Arc<Mutex<HashMap<Option<String>, Scoped>>>,
    clients: Arc<AtomicUsize>,
}

/// What clients that see the same have in common.
#[derive(Clone)]
struct Scoped {
    service: Service,
    hub: Arc<Hub>,
}

impl McpFace {
    pub fn new(app: Arc<App>, shutdown: CancellationToken) -> Self {
        Self { app, shutdown, scopes: Arc::default(), clients: Arc::default() }
    }

    /// Answers one HTTP request. `scope` narrows what the owner sees.
    ///
    /// # Errors
    /// An unknown scope.
    pub async fn handle(
        &self,
        caller: &Caller,
        scope: Option<&str>,
        request: Request,
    ) -> Result<Response, ApiError> {
        let view = self.app.view(caller, scope)?;
        let scoped = self.scoped(view.scope);
        let upgrade = request.headers().get(header::UPGRADE).map(HeaderValue::as_bytes);
        if request.method() == Method::GET && upgrade == Some(UPGRADE.as_bytes()) {
            return Ok(self.pipe(&scoped, caller, request));
        }
        Ok(scoped.service.handle(request).await.map(axum::body::Body::new))
    }

    fn scoped(&self, scope: Option<String>) -> Scoped {
        let mut scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || {
            let caller = Caller { bound: scope.clone(), client: "mcp".into() };
            let hub = Arc::new(Hub::new(self.app.clone(), caller));
            let (connection_hub, clients) = (hub.clone(), self.clients.clone());
            let connect = move || {
                Place::take(&clients)
                    .map(|place| Connection::new(connection_hub.clone(), place))
                    .ok_or_else(|| std::io::Error::other(format!("over {MAX_CLIENTS} clients")))
            };
            let mut sessions = LocalSessionManager::default();
            sessions.session_config.keep_alive = Some(SESSION_IDLE);
            // Host and Origin were looked at before.
            let config = StreamableHttpServerConfig::default()
                .disable_allowed_hosts()
                .disable_allowed_origins()
                .with_cancellation_token(self.shutdown.child_token())
                .with_max_request_body_bytes(super::body::MAX_BYTES);
            let service = StreamableHttpService::new(connect, Arc::new(sessions), config);
            Scoped { service, hub }
        };
        scopes.entry(scope.clone()).or_insert_with(make).clone()
    }

    /// Makes the connection one that speaks as stdio does.
    fn pipe(&self, scoped: &Scoped, caller: &Caller, mut request: Request) -> Response {
        let Some(place) = Place::take(&self.clients) else {
            return ApiError::internal(format!("over {MAX_CLIENTS} clients")).into_response();
        };
        let upgrade = hyper::upgrade::on(&mut request);
        let connection = Connection::new(scoped.hub.clone(), place).of(&caller.client);
        let shutdown = self.shutdown.clone();
        tokio::spawn(shutdown.run_until_cancelled_owned(async move {
            let Ok(upgraded) = upgrade.await else { return };
            // A client that leaves before or while it says something has done nothing wrong.
            if let Ok(running) = connection.serve(TokioIo::new(upgraded)).await {
                let _ = running.waiting().await;
            }
        }));
        let headers = [(header::CONNECTION, "upgrade"), (header::UPGRADE, UPGRADE)];
        (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
    }
}

/// One of the places that clients have; given back when dropped.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(taken: &Arc<AtomicUsize>) -> Option<Self> {
        let place = Self(taken.clone());
        (taken.fetch_add(1, Ordering::Relaxed) < MAX_CLIENTS).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
