//! One live connection to a server, and what can be asked over it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientConfig, ClientRequest, ErrorCode, ReadResourceRequest, ReadResourceRequestParams,
    ServerCapabilities, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RunningService, ServiceError};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, StreamableHttpError,
};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::framing::{RAW, UNUSABLE};
use super::hints::Hints;
use super::subscribe::Followed;
use super::transport::http::{HttpClient, HttpFault};
use crate::config::Limits;
use crate::model::{Body, Content, Era, LEFT_OUT, Snapshot};
use crate::source::SourceError;

/// A live session. Cheap to clone; when the last clone is dropped, it is closed in the background.
#[derive(Clone)]
pub struct Session(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub peer: Peer<RoleClient>,
    pub era: Era,
    pub protocol: String,
    pub capabilities: ServerCapabilities,
    pub limits: Limits,
    pub hints: Arc<Hints>,
    pub noise: Arc<AtomicU64>,
    pub http: Option<HttpClient>,
    pub followed: Mutex<Followed>,
    /// Dropped with the last clone, which ends rmcp's task and with it the transport.
    pub running: Mutex<Option<RunningService<RoleClient, ClientConfig>>>,
    /// The child's task, which ends when it has been reaped.
    pub child: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("era", &self.0.era)
            .field("protocol", &self.0.protocol)
            .finish()
    }
}

impl Session {
    pub fn era(&self) -> Era {
        self.0.era
    }

    /// The negotiated revision of the protocol.
    pub fn protocol(&self) -> &str {
        &self.0.protocol
    }

    /// What the server has said to have changed; taken by the sync.
    pub fn hints(&self) -> &Arc<Hints> {
        &self.0.hints
    }

    /// Messages so far that were none of the protocol.
    pub fn noise(&self) -> u64 {
        self.0.noise.load(Ordering::Relaxed)
    }

    /// Whether the server says that it has resources. One that doesn't say so may have some still.
    pub fn declares_resources(&self) -> bool {
        self.0.capabilities.resources.is_some()
    }

    /// What the server says to push.
    pub fn push(&self) -> BTreeSet<&'static str> {
        // Legacy pushes over HTTP come on the event stream, which a server may refuse to open.
        if self.0.era == Era::Legacy && self.0.http.as_ref().is_some_and(HttpClient::refuses_stream)
        {
            return BTreeSet::new();
        }
        let resources = self.0.capabilities.resources.clone().unwrap_or_default();
        let said = [("updated", resources.subscribe), ("list_changed", resources.list_changed)];
        said.into_iter().filter(|(_, yes)| *yes == Some(true)).map(|(name, _)| name).collect()
    }

    /// `resources/read`, within the time limit for reads.
    ///
    /// # Errors
    /// `NotFound` when the server says that there is no such resource (the codes that revisions and
    /// servers use for it: -32002, and -32602 on a read).
    pub async fn read(&self, uri: &str) -> Result<Snapshot, SourceError> {
        let what = "resources/read";
        let request = ReadResourceRequest::new(ReadResourceRequestParams::new(uri));
        let request = ClientRequest::ReadResourceRequest(request);
        let result = self.request(what, request, self.0.limits.read_timeout).await;
        let mut result = result.map_err(|error| match error {
            SourceError::Refused { code: -32002 | -32602, message, .. } => {
                SourceError::NotFound { uri: uri.to_owned(), message }
            }
            other => other,
        })?;
        let Some(Value::Array(contents)) = result.get_mut("contents").map(Value::take) else {
            let asks = result.get("resultType").and_then(Value::as_str) == Some("input_required");
            let reason = match asks {
                true => "the server asks for input before it answers, which a daemon can't give",
                false => "the answer has no `contents`",
            };
            return Err(SourceError::BadAnswer { what: what.into(), reason: reason.into() });
        };
        let many = contents.len();
        let contents: Vec<Content> =
            contents.into_iter().filter_map(|item| content(item, uri)).collect();
        if contents.is_empty() && many > 0 {
            let reason = "none of the contents has a text or a blob".into();
            return Err(SourceError::BadAnswer { what: what.into(), reason });
        }
        Ok(Snapshot { fresh: fresh(&result), ..Snapshot::new(contents) })
    }

    /// Sends a request and hands back its raw result.
    pub(super) async fn request(
        &self,
        what: &str,
        request: ClientRequest,
        limit: Duration,
    ) -> Result<Value, SourceError> {
        let answer = async {
            let options = PeerRequestOptions::with_timeout(limit);
            self.0.peer.send_request_with_option(request, options).await?.await_response().await
        };
        // rmcp's own limit cancels the request at the server; ours also covers a send that hangs.
        let answer = match tokio::time::timeout(limit + Duration::from_secs(1), answer).await {
            Ok(answer) => answer,
            Err(_) => Err(ServiceError::Timeout { timeout: limit }),
        };
        match answer {
            Ok(ServerResult::CustomResult(mut result)) => Ok(match result.0.get_mut(RAW) {
                Some(raw) => raw.take(),
                None => result.0,
            }),
            Ok(_) => {
                let reason = "the answer is of another kind than was asked for".into();
                Err(SourceError::BadAnswer { what: what.into(), reason })
            }
            Err(error) => Err(self.source_error(what, error)),
        }
    }

    /// An error of rmcp's in our own terms.
    pub(super) fn source_error(&self, what: &str, error: ServiceError) -> SourceError {
        let what = what.to_owned();
        match error {
            ServiceError::McpError(error) => {
                let message = clean(&error.message);
                match error.code {
                    ErrorCode(code) if i64::from(code) == UNUSABLE => {
                        SourceError::BadAnswer { what, reason: message }
                    }
                    ErrorCode(code) => SourceError::Refused { what, code, message },
                }
            }
            ServiceError::Timeout { timeout } => {
                SourceError::TimedOut { what, seconds: timeout.as_secs() }
            }
            ServiceError::TransportSend(error) => transport_error(&what, &error),
            ServiceError::TransportClosed | ServiceError::Cancelled { .. } => {
                SourceError::Disconnected { reason: self.ending() }
            }
            other => SourceError::BadAnswer { what, reason: clean(&other.to_string()) },
        }
    }

    fn ending(&self) -> String {
        self.0.hints.ending().unwrap_or_else(|| "the connection is closed".into())
    }

    /// Ends the session and waits until nothing of it is left.
    pub async fn close(&self) {
        if let Some(mut running) = self.0.running.lock().await.take() {
            // The only error is a panic of rmcp's task, which has ended then as well.
            let _ = running.close().await;
        }
        if let Some(child) = self.0.child.lock().await.take() {
            let _ = child.await;
        }
    }
}

/// A failed send, by what the transport says.
pub(super) fn transport_error(what: &str, error: &DynamicTransportError) -> SourceError {
    let what = what.to_owned();
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error.error.as_ref());
    while let Some(current) = source {
        if let Some(refused) = current.downcast_ref::<AuthRequiredError>() {
            return SourceError::NeedsAuth { message: clean(&refused.www_authenticate_header) };
        }
        if let Some(status) = current.downcast_ref::<HttpStatusError>() {
            return http_status(what, status);
        }
        if let Some(error) = current.downcast_ref::<StreamableHttpError<HttpFault>>() {
            match error {
                StreamableHttpError::SessionExpired => {
                    return SourceError::Disconnected { reason: "the session has expired".into() };
                }
                StreamableHttpError::Client(HttpFault::Status { status, detail }) => {
                    return SourceError::Refused {
                        what,
                        code: (*status).into(),
                        message: clean(detail),
                    };
                }
                StreamableHttpError::Client(
                    fault @ (HttpFault::TooLong { .. } | HttpFault::ContentType { .. }),
                ) => {
                    return SourceError::BadAnswer { what, reason: clean(&fault.to_string()) };
                }
                StreamableHttpError::Client(fault) => {
                    return SourceError::Disconnected { reason: clean(&fault.to_string()) };
                }
                StreamableHttpError::HttpStatus(status) => return http_status(what, status),
                _ => {}
            }
        }
        source = current.source();
    }
    SourceError::Disconnected { reason: clean(&error.error.to_string()) }
}

fn http_status(what: String, error: &HttpStatusError) -> SourceError {
    match error.status {
        429 | 503 => {
            let retry_after =
                error.retry_after.as_deref().and_then(|value| value.trim().parse().ok());
            SourceError::Overloaded { what, retry_after }
        }
        status => {
            SourceError::Refused { what, code: status.into(), message: format!("HTTP {status}") }
        }
    }
}

/// A server's words, short and without controls.
pub(super) fn clean(text: &str) -> String {
    const MOST: usize = 500;
    let text = text.replace(['\n', '\r', '\t'], " ");
    text.chars().filter(|c| !c.is_control()).take(MOST).collect::<String>().trim().to_owned()
}

/// A result's `ttlMs`.
fn fresh(result: &Value) -> Option<Duration> {
    let millis = result.get("ttlMs").and_then(Value::as_f64)?;
    Duration::try_from_secs_f64(millis / 1_000.0).ok()
}

/// One item of `contents`; none when it has neither text nor blob.
fn content(mut item: Value, asked: &str) -> Option<Content> {
    let text = |value: Option<&mut Value>| match value.map(Value::take) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let uri = text(item.get_mut("uri")).unwrap_or_else(|| asked.to_owned());
    let mime_type = text(item.get_mut("mimeType"));
    let body = match item.get_mut("text").map(Value::take) {
        Some(Value::String(text)) => Body::Text(text),
        // Servers hand out objects where the protocol has their text.
        Some(value @ (Value::Object(_) | Value::Array(_) | Value::Number(_) | Value::Bool(_))) => {
            Body::Text(value.to_string())
        }
        Some(Value::Null) | None => Body::Blob(text(item.get_mut("blob"))?),
    };
    let left_out = item
        .get_mut("_meta")
        .and_then(|meta| text(meta.get_mut(LEFT_OUT)))
        .map(|said| clean(&said));
    Some(Content { uri, mime_type, body, left_out })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_ttl_is_a_number_of_milliseconds() {
        for (result, seconds) in [
            (json!({"ttlMs": 1500}), Some(1.5)),
            (json!({"ttlMs": 0}), Some(0.0)),
            (json!({"ttlMs": -1}), None),
            (json!({"ttlMs": "1500"}), None),
            (json!({}), None),
        ] {
            assert_eq!(fresh(&result).map(|ttl| ttl.as_secs_f64()), seconds, "{result}");
        }
    }
}
