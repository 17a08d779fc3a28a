//! A typed client of the daemon's socket. Knows the API's types and nothing else of the daemon.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sse_stream::SseStream;
use tokio::net::UnixStream;

use crate::serve::api::{
    ConsoleResponse, ContextRequest, ContextResponse, ErrorResponse, MCP_UPGRADE, ReadRequest,
    ReadResponse, ResourcesQuery, ResourcesResponse, SearchRequest, SearchResponse, StatusResponse,
    SyncRequest, SyncResponse, TemplatesResponse, TraceQuery, TraceResponse,
};

/// What the daemon is told who asks.
const AGENT: &str = concat!("resdex/", env!("CARGO_PKG_VERSION"));
/// Longer than the daemon gives itself for any answer.
const TIMEOUT: Duration = Duration::from_secs(120);
/// More than the largest answer: a resource's blob in base64.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// Why a daemon didn't do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("no daemon answers at {}: {reason}", path.display())]
    NoDaemon { path: PathBuf, reason: io::Error },
    /// The daemon's own words.
    #[error("{}", .0.error.message)]
    Refused(ErrorResponse),
    #[error("the daemon at {} broke off: {reason}", path.display())]
    BrokeOff { path: PathBuf, reason: String },
    #[error("what answers at {} is no resdex of this version: {reason}", path.display())]
    NotUnderstood { path: PathBuf, reason: String },
}

/// Speaks to the daemon at one socket; one connection for each call.
#[derive(Clone, Debug)]
pub struct Client {
    path: PathBuf,
}

impl Client {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub async fn search(&self, request: &SearchRequest) -> Result<SearchResponse, ClientError> {
        self.call(Method::POST, "/v1/search", Some(request)).await
    }

    pub async fn read(&self, request: &ReadRequest) -> Result<ReadResponse, ClientError> {
        self.call(Method::POST, "/v1/read", Some(request)).await
    }

    pub async fn context(&self, request: &ContextRequest) -> Result<ContextResponse, ClientError> {
        self.call(Method::POST, "/v1/context", Some(request)).await
    }

    pub async fn trace(&self, query: &TraceQuery) -> Result<TraceResponse, ClientError> {
        let mut parameters = url::form_urlencoded::Serializer::new(String::new());
        if let Some(limit) = query.limit {
            parameters.append_pair("limit", &limit.to_string());
        }
        for (name, value) in
            [("scope", &query.scope), ("server", &query.server), ("uri", &query.uri)]
        {
            if let Some(value) = value {
                parameters.append_pair(name, value);
            }
        }
        let target = format!("/v1/trace?{}", parameters.finish());
        self.call(Method::GET, &target, None::<&()>).await
    }

    /// A link that opens the console and signs its owner in, once.
    pub async fn console(&self) -> Result<ConsoleResponse, ClientError> {
        self.call(Method::POST, "/v1/console", None::<&()>).await
    }

    /// A connection that speaks MCP as stdio does, one message a line.
    pub async fn mcp(&self, scope: Option<&str>) -> Result<Upgraded, ClientError> {
        let mut target = "/mcp".to_owned();
        if let Some(scope) = scope {
            let mut parameters = url::form_urlencoded::Serializer::new(String::new());
            target += &format!("?{}", parameters.append_pair("scope", scope).finish());
        }
        let request = Request::builder()
            .uri(target)
            .header(header::HOST, "localhost")
            .header(header::USER_AGENT, "resdex mcp")
            .header(header::CONNECTION, "upgrade")
            .header(header::UPGRADE, MCP_UPGRADE)
            .body(Full::default())
            .map_err(|error| self.broke_off(&error))?;
        let response = self.connect().await?.send_request(request).await;
        let response = response.map_err(|error| self.broke_off(&error))?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            self.success(response).await?;
            return Err(self.not_understood(&"it has no MCP"));
        }
        hyper::upgrade::on(response).await.map_err(|error| self.broke_off(&error))
    }

    /// One page; the next with its `next_cursor`.
    pub async fn resources(
        &self,
        query: &ResourcesQuery,
    ) -> Result<ResourcesResponse, ClientError> {
        let mut parameters = url::form_urlencoded::Serializer::new(String::new());
        if let Some(server) = &query.server {
            parameters.append_pair("server", server);
        }
        if let Some(scope) = &query.scope {
            parameters.append_pair("scope", scope);
        }
        if let Some(cursor) = &query.cursor {
            parameters.append_pair("cursor", cursor);
        }
        if query.skipped {
            parameters.append_pair("skipped", "true");
        }
        let target = format!("/v1/resources?{}", parameters.finish());
        self.call(Method::GET, &target, None::<&()>).await
    }

    pub async fn templates(&self) -> Result<TemplatesResponse, ClientError> {
        self.call(Method::GET, "/v1/templates", None::<&()>).await
    }

    pub async fn status(&self) -> Result<StatusResponse, ClientError> {
        self.call(Method::GET, "/v1/status", None::<&()>).await
    }

    pub async fn sync(&self, request: &SyncRequest) -> Result<SyncResponse, ClientError> {
        self.call(Method::POST, "/v1/sync", Some(request)).await
    }

    /// What happens from now on, each event as JSON; ends when the daemon does.
    pub async fn events(
        &self,
    ) -> Result<impl Stream<Item = Result<serde_json::Value, ClientError>> + use<>, ClientError>
    {
        let response = self.send(Method::GET, "/v1/events", None::<&()>).await?;
        let response = self.success(response).await?;
        let path = self.path.clone();
        let events = SseStream::new(response.into_body()).filter_map(move |event| {
            let path = path.clone();
            let event = match event {
                // Without data it is a sign of life.
                Ok(event) => event.data.map(|data| {
                    serde_json::from_str(&data).map_err(|error| ClientError::NotUnderstood {
                        path,
                        reason: error.to_string(),
                    })
                }),
                Err(error) => Some(Err(ClientError::BrokeOff { path, reason: error.to_string() })),
            };
            std::future::ready(event)
        });
        Ok(events)
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        target: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, ClientError> {
        let answer = async {
            let response = self.send(method, target, body).await?;
            let body = self.collect(self.success(response).await?).await?;
            serde_json::from_slice(&body).map_err(|error| self.not_understood(&error))
        };
        tokio::time::timeout(TIMEOUT, answer).await.unwrap_or_else(|_| {
            let reason = format!("no answer within {} s", TIMEOUT.as_secs());
            Err(ClientError::BrokeOff { path: self.path.clone(), reason })
        })
    }

    async fn send(
        &self,
        method: Method,
        target: &str,
        body: Option<&impl Serialize>,
    ) -> Result<Response<Incoming>, ClientError> {
        let mut sender = self.connect().await?;
        let body = match body {
            Some(body) => serde_json::to_vec(body).map_err(|error| self.not_understood(&error))?,
            None => vec![],
        };
        let request = Request::builder()
            .method(method)
            .uri(target)
            .header(header::HOST, "localhost")
            .header(header::USER_AGENT, AGENT)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| self.broke_off(&error))?;
        sender.send_request(request).await.map_err(|error| self.broke_off(&error))
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, ClientError> {
        let no_daemon = |reason| ClientError::NoDaemon { path: self.path.clone(), reason };
        let stream = UnixStream::connect(&self.path).await.map_err(no_daemon)?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| self.broke_off(&error))?;
        // Ends by itself when the answer has been read or dropped.
        tokio::spawn(connection.with_upgrades());
        Ok(sender)
    }

    async fn success(
        &self,
        response: Response<Incoming>,
    ) -> Result<Response<Incoming>, ClientError> {
        if response.status() == StatusCode::OK {
            return Ok(response);
        }
        let status = response.status();
        let body = self.collect(response).await?;
        Err(match serde_json::from_slice(&body) {
            Ok(error) => ClientError::Refused(error),
            Err(_) => self.not_understood(&status),
        })
    }

    async fn collect(&self, response: Response<Incoming>) -> Result<Bytes, ClientError> {
        let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES);
        let body = body.collect().await.map_err(|error| self.broke_off(&error))?;
        Ok(body.to_bytes())
    }

    fn broke_off(&self, reason: &impl ToString) -> ClientError {
        ClientError::BrokeOff { path: self.path.clone(), reason: reason.to_string() }
    }

    fn not_understood(&self, reason: &impl ToString) -> ClientError {
        ClientError::NotUnderstood { path: self.path.clone(), reason: reason.to_string() }
    }
}
