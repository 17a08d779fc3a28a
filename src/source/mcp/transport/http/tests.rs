use std::path::PathBuf;

use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};

use super::*;
use crate::config::{self, ServerConfig};
use crate::model::{Body, ServerName};
use crate::source::SourceError;
use crate::source::mcp::{ConnectOptions, Session, connect};

#[test]
fn metadata_addresses_are_never_contacted() {
    for (url, forbidden) in [
        ("http://169.254.169.254/latest", true),
        ("http://[::ffff:169.254.169.254]/", true),
        ("http://[fe80::1]/", true),
        ("http://[fd00:ec2::254]/", true),
        ("no url", true),
        ("http://127.0.0.1:8080/mcp", false),
        ("https://wiki.example/mcp", false),
        ("http://10.0.0.1/", false),
    ] {
        assert_eq!(forbidden_host(url).is_some(), forbidden, "{url}");
    }
}

#[tokio::test]
async fn an_event_over_the_limit_ends_the_stream() {
    let pieces = |text: &'static [&'static str]| {
        stream::iter(
            text.iter().map(|piece| reqwest::Result::Ok(Bytes::from_static(piece.as_bytes()))),
        )
    };
    let ends = |text| async move {
        limited(pieces(text), 10).any(|piece| async move { piece.is_err() }).await
    };
    assert!(!ends(&["data: 1234\n", "\ndata: 5678\r\n\r\n", "data: 90"]).await);
    assert!(ends(&["data: 12345\n\n"]).await);
    assert!(ends(&["data: ", "1234", "56"]).await);
    assert!(ends(&["data: 1\n", "data: 2\n"]).await);
}

/// A server of the legacy era over HTTP, of which one answer is replaced.
struct Peer {
    url: String,
    socket: Option<PathBuf>,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// What a test replaces: given the method (or `GET`), an answer of its own.
type Replace = fn(&str) -> Option<Response>;

impl Peer {
    async fn start(replace: Replace) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let router = Self::router(replace);
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, socket: None, serving }
    }

    /// The same on a Unix socket.
    fn at(socket: &Path) -> Self {
        let listener = tokio::net::UnixListener::bind(socket).unwrap();
        let router = Self::router(|_| None);
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url: "http://localhost/mcp".into(), socket: Some(socket.to_owned()), serving }
    }

    fn router(replace: Replace) -> axum::Router {
        let answer = move |request: Request| async move {
            if request.method() == http::Method::GET {
                let none = || (StatusCode::METHOD_NOT_ALLOWED, "").into_response();
                return replace("GET").unwrap_or_else(none);
            }
            let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap_or_default();
            let message: Value = serde_json::from_slice(&body).unwrap_or_default();
            let method = message["method"].as_str().unwrap_or_default().to_owned();
            if let Some(response) = replace(&method) {
                return response;
            }
            let result = match &*method {
                "initialize" => json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"resources": {}},
                    "serverInfo": {"name": "peer", "version": "1"},
                }),
                "resources/read" => json!({"contents": [{"uri": "a://1", "text": "words"}]}),
                _ => return StatusCode::ACCEPTED.into_response(),
            };
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            ([("mcp-session-id", "s1")], axum::Json(answer)).into_response()
        };
        axum::Router::new().fallback(answer)
    }

    async fn connect(&self) -> Result<Session, SourceError> {
        let server = ServerConfig {
            name: ServerName::new("peer").unwrap(),
            origin: "test".into(),
            readiness: config::Readiness::Ready,
            transport: config::Transport::Http {
                url: self.url.clone(),
                headers: std::collections::BTreeMap::new(),
                unix_socket: self.socket.clone(),
            },
            follow: config::Follow {
                protocol: config::ProtocolChoice::Legacy,
                ..Default::default()
            },
        };
        let limits = config::Limits { max_message_bytes: 100_000, ..Default::default() };
        let options = ConnectOptions { limits, ..Default::default() };
        connect(&server, &options).await.map(|connection| connection.session)
    }

    async fn read(&self) -> Result<String, SourceError> {
        let session = self.connect().await?;
        let snapshot = session.read("a://1").await?;
        match &snapshot.contents[0].body {
            Body::Text(text) => Ok(text.clone()),
            Body::Blob(_) => panic!("a blob"),
        }
    }
}

fn of(method: &str, wanted: &str, response: impl FnOnce() -> Response) -> Option<Response> {
    (method == wanted).then(response)
}

#[tokio::test]
async fn a_resource_is_read() {
    assert_eq!(Peer::start(|_| None).await.read().await.as_deref(), Ok("words"));
}

#[tokio::test]
async fn a_resource_is_read_over_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let peer = Peer::at(&folder.path().join("sock"));
    assert_eq!(peer.read().await.as_deref(), Ok("words"));
}

#[tokio::test]
async fn refusals_say_what_they_are_about() {
    let cases: &[(Replace, &str)] = &[
        (|m| of(m, "initialize", || StatusCode::UNAUTHORIZED.into_response()), "HTTP 401"),
        (|m| of(m, "resources/read", || StatusCode::FORBIDDEN.into_response()), "HTTP 403"),
        (
            |m| of(m, "resources/read", || StatusCode::NOT_FOUND.into_response()),
            "the session has expired",
        ),
        (
            |m| {
                of(m, "resources/read", || {
                    let error = json!({"jsonrpc": "2.0", "error": {"code": -32000, "message": "No valid session ID"}, "id": null});
                    (StatusCode::BAD_REQUEST, axum::Json(error)).into_response()
                })
            },
            "the session has expired",
        ),
        (
            |m| of(m, "resources/read", || StatusCode::SERVICE_UNAVAILABLE.into_response()),
            "resources/read: the server is overloaded",
        ),
        (
            |m| of(m, "resources/read", || StatusCode::INTERNAL_SERVER_ERROR.into_response()),
            "resources/read: the server answered with error 500: HTTP 500",
        ),
        (
            |m| of(m, "resources/read", || axum::response::Html("<p>sign in").into_response()),
            "resources/read: the server answered with text/html; charset=utf-8, not with JSON or an event stream",
        ),
        (
            |m| of(m, "resources/read", || axum::Json(json!({"page": 1})).into_response()),
            "resources/read: the answer is not JSON-RPC",
        ),
        (
            |m| {
                of(m, "resources/read", || {
                    axum::Json(json!({"x": "y".repeat(200_000)})).into_response()
                })
            },
            "resources/read: the body is longer than 100000 bytes",
        ),
        (
            |m| {
                of(m, "resources/read", || {
                    axum::response::Redirect::temporary("http://127.0.0.1:1/mcp").into_response()
                })
            },
            "error following redirect: the server redirects to another origin, which is not followed",
        ),
    ];
    for (replace, expected) in cases {
        let error = Peer::start(*replace).await.read().await.unwrap_err();
        assert_eq!(error.to_string(), *expected);
    }
}

#[tokio::test]
async fn an_event_stream_answers_and_pushes() {
    let peer = Peer::start(|method| {
        of(method, "resources/read", || {
            // The id is not known here: rmcp counts from 0, and the read is its second request.
            let events = "event: ping\ndata: x\n\n\
                data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":\"a://2\"}}\n\n\
                data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"contents\":[{\"text\":\"streamed\"}]}}\n\n";
            ([(header::CONTENT_TYPE, "text/event-stream")], events).into_response()
        })
    })
    .await;
    let session = peer.connect().await.unwrap();
    let snapshot = session.read("a://1").await.unwrap();
    assert_eq!(snapshot.contents[0].body, Body::Text("streamed".into()));
    assert_eq!(session.hints().take().await.uris.into_iter().collect::<Vec<_>>(), ["a://2"]);
}

#[tokio::test]
async fn a_refused_event_stream_is_no_push() {
    let peer =
        Peer::start(|method| of(method, "GET", || StatusCode::BAD_REQUEST.into_response())).await;
    let session = peer.connect().await.unwrap();
    assert_eq!(session.read("a://1").await.unwrap().contents.len(), 1);
    assert!(session.push().is_empty());
}

#[tokio::test]
async fn the_old_transport_is_named() {
    let peer = Peer::start(|method| match method {
        "GET" => {
            let events = "event: endpoint\ndata: /messages\n\n";
            Some(([(header::CONTENT_TYPE, "text/event-stream")], events).into_response())
        }
        _ => Some(StatusCode::METHOD_NOT_ALLOWED.into_response()),
    });
    let error = peer.await.connect().await.unwrap_err();
    assert!(error.to_string().contains("mcp-remote"), "{error}");
}
