//! The peer over Streamable HTTP, on a port of its own.

use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use super::{Peer, Reply, acknowledgment, message};

/// A peer that can be reached over HTTP until this is dropped.
pub struct Served {
    port: u16,
    _task: AbortOnDropHandle<()>,
}

impl Served {
    /// Within a tokio runtime.
    pub async fn new(peer: Peer) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let handlers = post(take).get(open_stream).delete(|| async { StatusCode::OK });
        let router = Router::new().route("/mcp", handlers).with_state(peer);
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { port, _task: AbortOnDropHandle::new(task) }
    }

    /// The table of a server in a config.
    pub fn config(&self, name: &str, more: &str) -> String {
        format!("[servers.{name}]\nurl = \"http://127.0.0.1:{}/mcp\"\n{more}\n", self.port)
    }
}

const SESSION: &str = "mcp-session-id";
const EVENTS: [(header::HeaderName, &str); 1] = [(header::CONTENT_TYPE, "text/event-stream")];
const JSON: [(header::HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/json")];

async fn take(Shared(peer): Shared<Peer>, headers: HeaderMap, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap();
    let initialize = request["method"] == "initialize";
    if let (Some(session), false) = (headers.get(SESSION), initialize) {
        let state = peer.state();
        if state.session_dropped || session.to_str().ok() != Some(&state.session.to_string()) {
            return StatusCode::NOT_FOUND.into_response();
        }
    }
    if request["method"] == "subscriptions/listen" {
        peer.take(&request);
        let pushed = peer.connect(true, Some(request["id"].clone()));
        let first = Bytes::from(format!("data: {}\n\n", acknowledgment(&request)));
        return events(stream::iter([first]).chain(received(pushed)));
    }
    let Some(reply) = peer.take(&request) else {
        return StatusCode::ACCEPTED.into_response();
    };
    let mut response = match (message(&request["id"], &reply), reply) {
        (Some(message), _) => (JSON, message.to_string()).into_response(),
        (None, Reply::Bytes(bytes)) => (JSON, bytes).into_response(),
        (None, Reply::Endless { status, bytes }) => {
            let status = StatusCode::from_u16(status).unwrap();
            (status, JSON, endless(peer.clone(), bytes)).into_response()
        }
        (None, _) => std::future::pending().await,
    };
    if initialize {
        let mut state = peer.state();
        state.session += 1;
        state.session_dropped = false;
        let session = state.session.to_string().parse().unwrap();
        response.headers_mut().insert(SESSION, session);
    }
    response
}

/// The legacy era's stream of events.
async fn open_stream(Shared(peer): Shared<Peer>) -> Response {
    let status = {
        let mut state = peer.state();
        state.gets += 1;
        let status = if state.session_dropped { Some(404) } else { state.get_status };
        status.map(|status| StatusCode::from_u16(status).unwrap())
    };
    match status {
        Some(status) => status.into_response(),
        None => events(received(peer.connect(true, None))),
    }
}

fn received(
    pushed: tokio::sync::mpsc::UnboundedReceiver<Bytes>,
) -> impl futures::Stream<Item = Bytes> + Send + 'static {
    stream::unfold(pushed, |mut pushed| async move { Some((pushed.recv().await?, pushed)) })
}

fn events(stream: impl futures::Stream<Item = Bytes> + Send + 'static) -> Response {
    (EVENTS, Body::from_stream(stream.map(Ok::<_, Infallible>))).into_response()
}

/// A body that begins like an answer and goes on.
fn endless(peer: Peer, bytes: usize) -> Body {
    const PIECE: &[u8] = &[b'A'; 64 << 10];
    let first = Bytes::from_static(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"");
    let pieces = (0..bytes / PIECE.len()).map(move |_| {
        peer.state().endless_bytes += PIECE.len();
        Bytes::from_static(PIECE)
    });
    let all = stream::iter([first]).chain(stream::iter(pieces));
    Body::from_stream(all.map(Ok::<_, Infallible>))
}
