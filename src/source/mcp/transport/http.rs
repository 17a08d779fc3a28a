//! Streamable HTTP: the client under rmcp's transport, with limits and the framing layer in between.
//!
//! Only the configured URL is ever contacted: redirects stay on its origin, and names that resolve to
//! link-local or metadata addresses don't resolve. What rmcp leaves unseen is told to the hints: an
//! event stream that was reopened (changes may have been missed), and a session that has expired.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, Stream, StreamExt};
use http::{HeaderName, HeaderValue, StatusCode, header};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::SseRetryPolicy;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use serde_json::{Value, json};
use sse_stream::{Sse, SseStream};

use super::pipe::MessageLimits;
use crate::source::mcp::framing::{self, Frame};
use crate::source::mcp::hints::Hints;

/// What of an error's body is kept for people.
const ERROR_BYTES: usize = 64 << 10;

/// How long a connection may be silent before the system asks whether the peer is there.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Attempts to open the event stream again before the session is given up.
const REOPENINGS: u32 = 3;

/// How rmcp waits between its attempts to open an event stream again.
#[derive(Debug)]
pub struct Reopening;

impl SseRetryPolicy for Reopening {
    fn retry(&self, times: usize) -> Option<Duration> {
        (times < REOPENINGS as usize).then(|| Duration::from_millis(500 << times.min(4)))
    }
}

/// Why a request over HTTP failed, without its URL: that may hold secrets.
#[derive(Debug, thiserror::Error)]
pub enum HttpFault {
    #[error("{0}")]
    Request(String),
    #[error("the body is longer than {limit} bytes")]
    TooLong { limit: usize },
    #[error("the server answered HTTP {status}{detail}")]
    Status { status: u16, detail: String },
    #[error("the server answered with {found}, not with JSON or an event stream")]
    ContentType { found: String },
}

impl From<reqwest::Error> for HttpFault {
    fn from(error: reqwest::Error) -> Self {
        let error = error.without_url();
        let mut text = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !text.contains(&cause_text) {
                text = format!("{text}: {cause_text}");
            }
            source = cause.source();
        }
        Self::Request(text)
    }
}

type Failure = StreamableHttpError<HttpFault>;

/// The HTTP client of one session; clones share its state.
#[derive(Clone)]
pub struct HttpClient {
    client: reqwest::Client,
    limits: MessageLimits,
    shared: Arc<Shared>,
}

struct Shared {
    hints: Arc<Hints>,
    noise: Arc<AtomicU64>,
    /// Whether the server refused the legacy event stream: it can't push.
    refused_stream: AtomicBool,
    opened_streams: AtomicU32,
    failed_streams: AtomicU32,
}

impl HttpClient {
    /// A client with a connection pool of its own.
    ///
    /// # Errors
    /// When the URL's host is an address that is never contacted, or TLS can't be set up.
    pub fn new(
        url: &str,
        unix_socket: Option<&Path>,
        connect_timeout: Duration,
        limits: MessageLimits,
        hints: Arc<Hints>,
        noise: Arc<AtomicU64>,
    ) -> Result<Self, HttpFault> {
        if let Some(reason) = forbidden_host(url) {
            return Err(HttpFault::Request(reason));
        }
        // Installed once in the process; a second time is refused, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("resdex/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(connect_timeout)
            // A peer that vanished is noticed even on a stream on which nothing is ever sent.
            .tcp_keepalive(KEEPALIVE)
            .redirect(redirect::Policy::custom(same_origin))
            .dns_resolver(Arc::new(PublicNames));
        if let Some(socket) = unix_socket {
            builder = builder.unix_socket(socket);
        }
        let shared = Shared {
            hints,
            noise,
            refused_stream: AtomicBool::new(false),
            opened_streams: AtomicU32::new(0),
            failed_streams: AtomicU32::new(0),
        };
        Ok(Self { client: builder.build()?, limits, shared: Arc::new(shared) })
    }

    /// Whether the server refused to open the legacy era's event stream.
    pub fn refuses_stream(&self) -> bool {
        self.shared.refused_stream.load(Ordering::Relaxed)
    }

    /// Whether a GET is answered as the old HTTP+SSE transport does: with an `endpoint` event.
    pub async fn is_legacy_sse(
        &self,
        url: &str,
        headers: &HashMap<HeaderName, HeaderValue>,
    ) -> bool {
        let request = self.client.get(url).header(header::ACCEPT, "text/event-stream");
        let Ok(response) = request.headers(headers.clone().into_iter().collect()).send().await
        else {
            return false;
        };
        if !response.status().is_success() || !is_type(&response, "text/event-stream") {
            return false;
        }
        let first = self.events(response).next().await;
        first.is_some_and(|event| {
            event.is_ok_and(|event| event.event.as_deref() == Some("endpoint"))
        })
    }

    /// The events of a response, each one within the limit.
    fn events(&self, response: reqwest::Response) -> BoxStream<'static, Result<Sse, SseError>> {
        SseStream::from_bytes_stream(limited(response.bytes_stream(), self.limits.bytes)).boxed()
    }

    /// An event stream as rmcp may see it.
    fn framed(&self, response: reqwest::Response) -> BoxStream<'static, Result<Sse, SseError>> {
        let (shared, depth) = (self.shared.clone(), self.limits.depth);
        let framed = move |event: Result<Sse, SseError>| match event {
            Ok(event) => shared.frame(event, depth).into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => vec![Err(error)],
        };
        self.events(response).flat_map(move |event| stream::iter(framed(event))).boxed()
    }
}

impl Shared {
    /// Pushes go to the hints; every message becomes an event of its own, the first of which keeps
    /// the id, so that a stream can be resumed after it.
    fn frame(&self, event: Sse, depth: usize) -> Vec<Sse> {
        if !matches!(event.event.as_deref(), None | Some("" | "message")) {
            return vec![event];
        }
        let mut events: Vec<Sse> = vec![];
        for frame in framing::sort(event.data.unwrap_or_default().as_bytes(), depth) {
            match frame {
                Frame::Push(push) => self.hints.push(push),
                Frame::Noise => drop(self.noise.fetch_add(1, Ordering::Relaxed)),
                Frame::Message(message) => events.push(Sse::default().data(message.to_string())),
            }
        }
        if events.is_empty() {
            events.push(Sse::default());
        }
        (events[0].id, events[0].retry) = (event.id, event.retry);
        events
    }

    fn stream_failed(&self, session_lost: bool) {
        let failures = self.failed_streams.fetch_add(1, Ordering::Relaxed) + 1;
        let opened = self.opened_streams.load(Ordering::Relaxed) > 0;
        if opened && (session_lost || failures >= REOPENINGS) {
            self.hints.closed("the server's event stream can't be opened again");
        }
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpFault;

    async fn post_message(
        &self,
        url: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        bearer: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let body = serde_json::to_vec(&message)?;
        let request_id = match &message {
            ClientJsonRpcMessage::Request(request) => Some(serde_json::to_value(&request.id)?),
            _ => None,
        };
        let mut request = self
            .client
            .post(url.as_ref())
            .header(header::ACCEPT, "application/json, text/event-stream")
            .header(header::CONTENT_TYPE, "application/json")
            .headers(headers.into_iter().collect())
            .body(body);
        if let Some(bearer) = bearer {
            request = request.bearer_auth(bearer);
        }
        let has_session = session.is_some();
        if let Some(session) = session {
            request = request.header(SESSION_ID, session.as_ref());
        }
        let response = request.send().await.map_err(fault)?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(Failure::SessionExpired);
        }
        refuse_unauthorised(&response)?;
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::TOO_MANY_REQUESTS {
            return Err(HttpStatusError::new(status.as_u16(), retry_after(&response)).into());
        }
        let session = response.headers().get(SESSION_ID).and_then(|id| id.to_str().ok());
        let session = session.map(str::to_owned);
        if status.is_success() && is_type(&response, "text/event-stream") {
            return Ok(StreamableHttpPostResponse::Sse(self.framed(response), session));
        }
        let content_type = content_type(&response);
        let retry_after = retry_after(&response);
        let limit = if status.is_success() { self.limits.bytes } else { ERROR_BYTES };
        let body = match read_body(response, limit).await {
            Err(HttpFault::TooLong { .. }) if !status.is_success() => vec![],
            body => body.map_err(Failure::Client)?,
        };
        if status == StatusCode::BAD_REQUEST && has_session && self.is_about_the_session(&body) {
            return Err(Failure::SessionExpired);
        }
        if let Some(answer) = self.answer(&body, request_id.as_ref()) {
            return Ok(StreamableHttpPostResponse::Json(answer, session));
        }
        let Some(request_id) = request_id else {
            // Nothing is awaited: whatever stands in the body says nothing to us.
            return match status.is_success() {
                true => Ok(StreamableHttpPostResponse::Accepted),
                false => Err(Failure::Client(status_fault(status, &body))),
            };
        };
        if status.is_server_error() {
            return Err(HttpStatusError::new(status.as_u16(), retry_after).into());
        }
        if !status.is_success() {
            // A server of the legacy era may refuse what it doesn't know with any 4xx.
            if is_discover(&message) && !has_session {
                let reason = status_fault(status, &body).to_string();
                let refusal = json!({"jsonrpc": "2.0", "id": request_id, "error": {"code": -32600, "message": reason}});
                return Ok(StreamableHttpPostResponse::Json(
                    serde_json::from_value(refusal)?,
                    session,
                ));
            }
            return Err(Failure::Client(status_fault(status, &body)));
        }
        let found = content_type.unwrap_or_else(|| "a body of no type".into());
        match found.starts_with("application/json") {
            true => {
                let failure = framing::failure(request_id, "the answer is not JSON-RPC");
                Ok(StreamableHttpPostResponse::Json(serde_json::from_value(failure)?, session))
            }
            false => Err(Failure::Client(HttpFault::ContentType { found })),
        }
    }

    async fn delete_session(
        &self,
        url: Arc<str>,
        session: Arc<str>,
        bearer: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let mut request = self.client.delete(url.as_ref()).header(SESSION_ID, session.as_ref());
        if let Some(bearer) = bearer {
            request = request.bearer_auth(bearer);
        }
        // Best effort: a server that doesn't support it forgets the session by itself.
        request.headers(headers.into_iter().collect()).send().await.map_err(fault)?;
        Ok(())
    }

    async fn get_stream(
        &self,
        url: Arc<str>,
        session: Option<Arc<str>>,
        last_event_id: Option<String>,
        bearer: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let mut request = self
            .client
            .get(url.as_ref())
            .header(header::ACCEPT, "text/event-stream")
            .headers(headers.into_iter().collect());
        if let Some(session) = session {
            request = request.header(SESSION_ID, session.as_ref());
        }
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        if let Some(bearer) = bearer {
            request = request.bearer_auth(bearer);
        }
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) => {
                self.shared.stream_failed(false);
                return Err(fault(error));
            }
        };
        refuse_unauthorised(&response)?;
        let status = response.status();
        if status.is_client_error()
            || (status.is_success() && !is_type(&response, "text/event-stream"))
        {
            // 405 says it as the protocol has it, others say it their own way: no stream here, and
            // asking again changes nothing. After a stream was open, it means a lost session.
            self.shared.stream_failed(true);
            self.shared.refused_stream.store(true, Ordering::Relaxed);
            return Err(Failure::ServerDoesNotSupportSse);
        }
        if !status.is_success() {
            self.shared.stream_failed(false);
            return Err(HttpStatusError::new(status.as_u16(), retry_after(&response)).into());
        }
        self.shared.failed_streams.store(0, Ordering::Relaxed);
        if self.shared.opened_streams.fetch_add(1, Ordering::Relaxed) > 0 {
            // What was pushed in between is lost, unless the server replays it.
            self.shared.hints.everything();
        }
        Ok(self.framed(response))
    }
}

impl HttpClient {
    /// Whether a refusal is of the session and not of the request: it names no request. Servers that
    /// forgot a session say so with 400 at times, where the protocol has 404.
    fn is_about_the_session(&self, body: &[u8]) -> bool {
        framing::sort(body, self.limits.depth).iter().all(|frame| match frame {
            Frame::Message(message) => message.get("id").is_none(),
            Frame::Push(_) | Frame::Noise => true,
        })
    }

    /// The answer in a JSON body; pushes beside it go to the hints. An error without an id answers
    /// the request that it came back to.
    fn answer(&self, body: &[u8], request_id: Option<&Value>) -> Option<ServerJsonRpcMessage> {
        let mut answer = None;
        for frame in framing::sort(body, self.limits.depth) {
            match frame {
                Frame::Push(push) => self.shared.hints.push(push),
                Frame::Noise => drop(self.shared.noise.fetch_add(1, Ordering::Relaxed)),
                Frame::Message(mut message) => {
                    if message.get("error").is_some() && message.get("id").is_none() {
                        message["id"] = request_id?.clone();
                    }
                    answer = super::decode(message).or(answer);
                }
            }
        }
        answer
    }
}

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

fn fault(error: reqwest::Error) -> Failure {
    Failure::Client(error.into())
}

fn is_discover(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, ClientJsonRpcMessage::Request(request)
        if matches!(request.request, ClientRequest::DiscoverRequest(_)))
}

/// 401 and 403 are for the user to mend.
fn refuse_unauthorised(response: &reqwest::Response) -> Result<(), Failure> {
    if !matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Ok(());
    }
    let challenge =
        response.headers().get(header::WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
    let reason = format!("HTTP {} {}", response.status().as_u16(), challenge.unwrap_or_default());
    Err(Failure::AuthRequired(AuthRequiredError::new(reason.trim().to_owned())))
}

fn retry_after(response: &reqwest::Response) -> Option<String> {
    let value = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?;
    Some(value.to_owned())
}

fn content_type(response: &reqwest::Response) -> Option<String> {
    let value = response.headers().get(header::CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase())
}

fn is_type(response: &reqwest::Response, wanted: &str) -> bool {
    content_type(response)
        .is_some_and(|found| found.split(';').next().unwrap_or_default().trim() == wanted)
}

fn status_fault(status: StatusCode, body: &[u8]) -> HttpFault {
    const SHOWN: usize = 200;
    let text = String::from_utf8_lossy(body);
    let text: String = text.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
    let detail = if text.trim().is_empty() { String::new() } else { format!(": {}", text.trim()) };
    HttpFault::Status { status: status.as_u16(), detail }
}

async fn read_body(response: reqwest::Response, limit: usize) -> Result<Vec<u8>, HttpFault> {
    let mut body = vec![];
    let mut stream = response.bytes_stream();
    while let Some(piece) = stream.next().await {
        let piece = piece?;
        if body.len() + piece.len() > limit {
            return Err(HttpFault::TooLong { limit });
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// Ends a stream of events at an event over the limit.
fn limited(
    stream: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    limit: usize,
) -> impl Stream<Item = Result<Bytes, HttpFault>> + Send + 'static {
    let (mut event, mut line, mut after_return) = (0_usize, 0_usize, false);
    stream.map(move |piece| {
        let piece = piece?;
        for byte in &piece {
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => {
                    // An empty line ends the event.
                    event = if line == 0 { 0 } else { event };
                    line = 0;
                }
                _ => (event, line) = (event + 1, line + 1),
            }
            if event > limit {
                return Err(HttpFault::TooLong { limit });
            }
            after_return = *byte == b'\r';
        }
        Ok(piece)
    })
}

/// At most three redirects, and none away from the origin that holds the credentials.
fn same_origin(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let leaves =
        attempt.previous().first().is_some_and(|first| first.origin() != attempt.url().origin());
    if leaves {
        return attempt.error("the server redirects to another origin, which is not followed");
    }
    match attempt.previous().len() {
        0..=3 => attempt.follow(),
        _ => attempt.error("the server redirects more than three times"),
    }
}

/// Why a URL's host is never contacted, when it is an address.
fn forbidden_host(url: &str) -> Option<String> {
    let url = match url::Url::parse(url) {
        Ok(url) => url,
        Err(error) => return Some(format!("the URL can't be used: {error}")),
    };
    let address = match url.host()? {
        url::Host::Ipv4(address) => IpAddr::V4(address),
        url::Host::Ipv6(address) => IpAddr::V6(address),
        url::Host::Domain(_) => return None,
    };
    is_forbidden(address)
        .then(|| format!("{address} is a link-local or metadata address, which is never contacted"))
}

/// Link-local addresses (where clouds serve metadata and credentials), and the one IPv6 metadata
/// address that isn't link-local.
fn is_forbidden(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => v4.is_link_local(),
            None => {
                v6.is_unicast_link_local() || v6.segments() == [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]
            }
        },
    }
}

/// The system's names, without the addresses that are never contacted.
struct PublicNames;

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> =
                found.filter(|address| !is_forbidden(address.ip())).collect();
            if allowed.is_empty() {
                return Err(
                    format!("{} has no address that may be contacted", name.as_str()).into()
                );
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests;
