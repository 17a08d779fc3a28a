//! A real port with the real router.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::*;
use crate::config::{Config, ScopeConfig, sha256_hex};
use crate::serve::http::openapi;
use crate::serve::tests::app;

mod random;

async fn start(app: Arc<App>) -> (SocketAddr, CancellationToken) {
    let stop = CancellationToken::new();
    let tcp = Tcp::bind("127.0.0.1:0").await.unwrap();
    let address = tcp.address();
    tokio::spawn(tcp.serve(app, 64, stop.clone()));
    (address, stop)
}

async fn send(address: SocketAddr, request: Request<String>) -> Response<Bytes> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = request.map(|body| Full::new(Bytes::from(body)));
    let (head, body) = sender.send_request(request).await.unwrap().into_parts();
    Response::from_parts(head, body.collect().await.unwrap().to_bytes())
}

fn with_token() -> Arc<App> {
    let app = app();
    let mut config = Config::clone(&app.config.load());
    let token_sha256 = Some(sha256_hex("s3cret"));
    config.scopes.insert(
        "bot".into(),
        ScopeConfig { token_sha256, exclude: vec!["wiki://**".into()], ..ScopeConfig::default() },
    );
    app.config.store(Arc::new(config));
    app
}

#[tokio::test]
async fn every_route_looks_at_host_origin_and_token() {
    let (address, _stop) = start(with_token()).await;
    let routes = openapi().paths.paths.into_keys();
    for route in routes.chain(["/mcp".into(), "/nothing".into()]) {
        for (host, origin, token, status) in [
            ("evil.example", None, Some("s3cret"), StatusCode::FORBIDDEN),
            ("localhost", Some("http://evil.example"), Some("s3cret"), StatusCode::FORBIDDEN),
            ("localhost", None, Some("wrong"), StatusCode::UNAUTHORIZED),
            ("localhost", None, None, StatusCode::UNAUTHORIZED),
        ] {
            if route == "/healthz" && token.is_none() {
                continue;
            }
            // A body that is announced and never sent: who waits for it waits for ever.
            let mut request =
                Request::post(&route).header("host", host).header("expect", "100-continue");
            if let Some(origin) = origin {
                request = request.header("origin", origin);
            }
            if let Some(token) = token {
                request = request.header("authorization", format!("Bearer {token}"));
            }
            let answer = send(address, request.body(String::new()).unwrap()).await;
            assert_eq!(answer.status(), status, "{route} {host} {origin:?} {token:?}");
        }
    }
}

#[tokio::test]
async fn a_token_is_its_scope_on_every_route() {
    let (address, _stop) = start(with_token()).await;
    let ask = async |method: &str, route: &str, body: &str| {
        let request = Request::builder()
            .method(method)
            .uri(route)
            .header("host", address.to_string())
            .header("authorization", "Bearer s3cret");
        send(address, request.body(body.into()).unwrap()).await
    };
    for (method, route, body) in [
        ("POST", "/v1/search", r#"{"query":"refund"}"#),
        ("POST", "/v1/read", r#"{"uri":"wiki://pages/hr/pay"}"#),
        ("POST", "/v1/read", r#"{"uri":"wiki://pages/hr/pa"}"#),
        ("POST", "/v1/read", r#"{"uri":"wiki://pages/hr/pay","server":"wiki"}"#),
        ("GET", "/v1/resources", ""),
        ("GET", "/v1/templates", ""),
    ] {
        let answer = ask(method, route, body).await;
        let text = String::from_utf8(answer.body().to_vec()).unwrap();
        let text = text.replace("no server has wiki://pages/hr/pay", "");
        let text = text.replace("no server has wiki://pages/hr/pa", "");
        assert!(!text.contains("wiki://"), "{route} {body}: {text}");
    }
    let found = ask("POST", "/v1/search", r#"{"query":"refund"}"#).await;
    assert_eq!(found.status(), StatusCode::OK);
    let status = ask("GET", "/v1/status", "").await;
    let status: serde_json::Value = serde_json::from_slice(status.body()).unwrap();
    assert_eq!(status["index"]["resources"], 5, "{status}");
}

#[tokio::test]
async fn what_a_client_can_unpack_is_compressed() {
    let (address, _stop) = start(app()).await;
    let request =
        Request::get("/openapi.json").header("host", "localhost").header("accept-encoding", "gzip");
    let answer = send(address, request.body(String::new()).unwrap()).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.headers()["content-encoding"], "gzip");
    assert!(answer.body().starts_with(&[0x1f, 0x8b]));
}

#[tokio::test]
async fn dify_gets_its_answers_and_errors_in_its_shape() {
    let (address, _stop) = start(with_token()).await;
    let ask = async |route: &str, authorization: Option<&str>, body: &str| {
        let mut request = Request::post(route).header("host", "localhost");
        if let Some(value) = authorization {
            request = request.header("authorization", value);
        }
        let answer = send(address, request.body(body.into()).unwrap()).await;
        let json: serde_json::Value = serde_json::from_slice(answer.body()).unwrap();
        (answer.status().as_u16(), json)
    };
    let body = r#"{"knowledge_id":"bot","query":"refund","retrieval_setting":{"top_k":2,"score_threshold":0.0}}"#;
    let (status, found) = ask("/retrieval", Some("Bearer s3cret"), body).await;
    assert_eq!((status, found["records"].as_array().unwrap().len()), (200, 1), "{found}");
    let other = body.replace("bot", "everything");
    for (authorization, body, status, code) in [
        (Some("s3cret"), body, 401, 1001),
        (Some("Bearer wrong"), body, 401, 1002),
        (None, body, 401, 1002),
        (Some("Bearer s3cret"), other.as_str(), 400, 2001),
        (Some("Bearer s3cret"), "{", 400, 400),
    ] {
        for route in ["/retrieval", "/datasets/everything/retrieve"] {
            let (answered, error) = ask(route, authorization, body).await;
            assert_eq!((answered, &error["error_code"]), (status, &code.into()), "{route} {body}");
            assert!(error["error_msg"].as_str().unwrap().len() > 5);
        }
    }
}

#[tokio::test]
async fn a_connection_is_kept_for_the_next_request() {
    let (address, _stop) = start(app()).await;
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..3 {
        sender.ready().await.unwrap();
        let request = Request::get("/v1/status").header("host", "localhost");
        let answer = sender.send_request(request.body(Full::<Bytes>::default()).unwrap());
        let (head, body) = answer.await.unwrap().into_parts();
        assert_eq!(head.status, StatusCode::OK);
        body.collect().await.unwrap();
    }
}

/// Tells when it is dropped.
struct Dropped(tokio::sync::mpsc::Sender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.try_send(());
    }
}

#[tokio::test]
async fn an_answer_that_nobody_waits_for_is_dropped() {
    use tokio::io::AsyncWriteExt as _;

    let (begun, mut has_begun) = tokio::sync::mpsc::channel(1);
    let (dropped, mut was_dropped) = tokio::sync::mpsc::channel(1);
    let endless = move || async move {
        let _dropped = Dropped(dropped);
        begun.send(()).await.unwrap();
        std::future::pending::<()>().await;
    };
    let router = axum::Router::new().route("/", axum::routing::get(endless));
    let tcp = Tcp::bind("127.0.0.1:0").await.unwrap();
    let mut stream = TcpStream::connect(tcp.address()).await.unwrap();
    tokio::spawn(async move { listen::serve(&tcp, router, 4, CancellationToken::new()).await });
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    has_begun.recv().await.unwrap();
    assert!(was_dropped.try_recv().is_err());
    drop(stream);
    was_dropped.recv().await.unwrap();
}
