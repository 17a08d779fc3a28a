//! A real socket in a folder of its own, with the real router and the real client.

use std::os::unix::net::UnixListener as StdListener;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use http::StatusCode;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use tokio::task::JoinHandle;

use super::*;
use crate::client::{Client, ClientError};
use crate::serve::App;
use crate::serve::api::{ErrorCode, ReadRequest, ResourcesQuery, SearchRequest, SyncRequest};
use crate::serve::http::router;
use crate::serve::tests::app;
use crate::sync::control::Event;

struct Daemon {
    folder: tempfile::TempDir,
    app: Arc<App>,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Daemon {
    fn path(&self) -> PathBuf {
        self.folder.path().join("run/sock")
    }

    fn client(&self) -> Client {
        Client::new(self.path())
    }
}

fn start() -> Daemon {
    let folder = tempfile::tempdir().unwrap();
    let socket = Socket::bind(&folder.path().join("run/sock"), &SocketConfig::default()).unwrap();
    let (app, shutdown) = (app(), CancellationToken::new());
    let router = router(app.clone(), shutdown.clone());
    let task = tokio::spawn(socket.serve(router, 64, shutdown.clone()));
    Daemon { folder, app, shutdown, task }
}

/// One request as any program would send it.
async fn send(path: &Path, request: http::Request<&'static str>) -> http::Response<bytes::Bytes> {
    let stream = UnixStream::connect(path).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = request.map(|body| Full::new(bytes::Bytes::from(body)));
    let (head, body) = sender.send_request(request).await.unwrap().into_parts();
    http::Response::from_parts(head, body.collect().await.unwrap().to_bytes())
}

#[tokio::test]
async fn every_verb_answers_over_the_socket() {
    let daemon = start();
    let client = daemon.client();
    let found = client.search(&SearchRequest::new("退款")).await.unwrap();
    assert_eq!(found.hits[0].uri, "handbook:///退款.md");
    assert_eq!(found.request_id.len(), 16);
    assert_eq!(client.status().await.unwrap().servers.len(), 2);
    assert_eq!(client.templates().await.unwrap().templates.len(), 2);
    assert!(client.sync(&SyncRequest::default()).await.unwrap().started.is_empty());
    let query = ResourcesQuery { server: Some("wiki".into()), ..ResourcesQuery::default() };
    assert_eq!(client.resources(&query).await.unwrap().resources.len(), 2);
    let request = ReadRequest { uri: "handbook:///refunds.md".into(), ..ReadRequest::default() };
    let read = client.read(&request).await.unwrap();
    assert!(read.stale, "its server has no session");
}

#[tokio::test]
async fn an_error_has_a_code_a_hint_and_the_requests_id() {
    let daemon = start();
    let request = SearchRequest { scope: Some("bott".into()), ..SearchRequest::new("x") };
    let error = daemon.client().search(&request).await.unwrap_err();
    let ClientError::Refused(refused) = error else { panic!("{error}") };
    assert_eq!(refused.error.code, ErrorCode::UnknownScope);
    assert_eq!(refused.error.hint.as_deref(), Some("did you mean \"bot\"?"));
    assert_eq!(refused.request_id.len(), 16);

    for (method, target, id, status, code, hint) in [
        (
            "GET",
            "/v1/serch",
            "mine-1",
            StatusCode::NOT_FOUND,
            "not_found",
            "did you mean \"/v1/search\"?",
        ),
        (
            "GET",
            "/v1/search",
            "mine-2",
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "use POST",
        ),
        (
            "POST",
            "/v1/status",
            "mine-3",
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "use GET",
        ),
        (
            "GET",
            "/v1/resources?servr=x",
            "mine-4",
            StatusCode::BAD_REQUEST,
            "bad_request",
            "did you mean \"server\"?",
        ),
    ] {
        let request = http::Request::builder()
            .method(method)
            .uri(target)
            .header("host", "localhost")
            .header("x-request-id", id)
            .body("")
            .unwrap();
        let response = send(&daemon.path(), request).await;
        assert_eq!(response.status(), status, "{target}");
        assert_eq!(response.headers()["x-request-id"], id);
        let body: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(body["request_id"], id);
        assert_eq!(body["error"]["code"], code);
        assert_eq!(body["error"]["hint"], hint);
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let daemon = start();
    let long: &'static str = Box::leak("x".repeat((1 << 20) + 1).into_boxed_str());
    let request = http::Request::post("/v1/search").header("host", "localhost").body(long).unwrap();
    let response = send(&daemon.path(), request).await;
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let body: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(body["error"]["code"], "too_large");
}

#[tokio::test]
async fn events_stream_until_the_end() {
    let daemon = start();
    let mut events = std::pin::pin!(daemon.client().events().await.unwrap());
    let uri = "wiki://退款".to_owned();
    daemon.app.control.publish(Event::Indexed { server: "wiki".into(), uri: uri.clone() });
    let event = events.next().await.unwrap().unwrap();
    assert_eq!(event, serde_json::json!({"event": "indexed", "server": "wiki", "uri": uri}));
    daemon.shutdown.cancel();
    assert!(events.next().await.is_none());
    daemon.task.await.unwrap();
}

#[tokio::test]
async fn the_socket_is_ours_alone_and_gone_at_the_end() {
    let daemon = start();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&daemon.path()), 0o600);
    assert_eq!(mode(&daemon.folder.path().join("run")), 0o700);
    assert_eq!(fs::read_dir(daemon.folder.path().join("run")).unwrap().count(), 1);
    daemon.shutdown.cancel();
    daemon.task.await.unwrap();
    assert!(!daemon.folder.path().join("run/sock").exists());
    let error = Client::new(daemon.folder.path().join("run/sock")).status().await.unwrap_err();
    assert!(matches!(error, ClientError::NoDaemon { .. }), "{error}");
}

#[tokio::test]
async fn only_a_socket_at_which_nobody_answers_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let bind = |name: &str| Socket::bind(&folder.path().join(name), &SocketConfig::default());

    drop(StdListener::bind(folder.path().join("stale")).unwrap());
    drop(bind("stale").unwrap());

    let _alive = StdListener::bind(folder.path().join("alive")).unwrap();
    assert!(matches!(bind("alive"), Err(SocketError::Taken { .. })));

    fs::write(folder.path().join("file"), "kept").unwrap();
    assert!(matches!(bind("file"), Err(SocketError::NotASocket { what: "a file", .. })));
    assert_eq!(fs::read(folder.path().join("file")).unwrap(), b"kept");

    std::os::unix::fs::symlink("alive", folder.path().join("link")).unwrap();
    assert!(matches!(bind("link"), Err(SocketError::NotASocket { what: "a symbolic link", .. })));
    assert!(folder.path().join("link").is_symlink());

    let long = "x".repeat(200);
    assert!(matches!(bind(&long), Err(SocketError::TooLong { .. })));

    let open = folder.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(bind("open/sock"), Err(SocketError::Folder { .. })));
}

#[tokio::test]
async fn a_socket_that_another_daemon_put_there_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sock");
    let ours = Socket::bind(&path, &SocketConfig::default()).unwrap();
    fs::remove_file(&path).unwrap();
    let _theirs = StdListener::bind(&path).unwrap();
    drop(ours);
    assert!(path.exists());
}

#[tokio::test]
async fn connections_over_the_limit_wait_for_a_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sock");
    let socket = Socket::bind(&path, &SocketConfig::default()).unwrap();
    let shutdown = CancellationToken::new();
    let router = router(app(), shutdown.clone());
    let task = tokio::spawn(socket.serve(router, 1, shutdown.clone()));
    let held = UnixStream::connect(&path).await.unwrap();
    let client = Client::new(&path);
    let mut status = std::pin::pin!(client.status());
    let early = tokio::time::timeout(Duration::from_millis(50), &mut status).await;
    assert!(early.is_err(), "the only place is held");
    drop(held);
    assert!(status.await.is_ok());
    shutdown.cancel();
    task.await.unwrap();
}

#[test]
fn who_may_connect() {
    let only = Allowed { uids: vec![0, 1000], group: false };
    assert!(only.allows(0) && only.allows(1000) && !only.allows(1001));
    assert!(Allowed { uids: vec![0], group: true }.allows(1001));
    assert_eq!(group_id("0").unwrap(), 0);
    assert_eq!(group_id("root").unwrap(), 0);
    assert!(group_id("no such group").is_err());
}
