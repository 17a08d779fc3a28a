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

/// Requests of every kind with every token, made of names that there are and names that there aren't:
/// none answers with anything of a scope that isn't its token's.
#[tokio::test]
async fn random_requests_never_see_a_foreign_resource() {
    use tower::ServiceExt as _;

    use crate::serve::fake::{FakeStore, entry};
    use crate::serve::tests::shared;
    use crate::sync::control::Control;

    const REQUESTS: u64 = 10_000;
    let scopes = ["red", "green", "blue"];
    let store = FakeStore::of(scopes.iter().flat_map(|scope| {
        (0..3).map(move |n| {
            let uri = format!("{scope}://page/{n}");
            entry(scope, &uri, &format!("Title-{scope}-{n}"), &format!("word secret-{scope}-{n}\n"))
        })
    }));
    let control = Control::default();
    let mut config = Config::default();
    for scope in scopes {
        let name = crate::model::ServerName::new(scope).unwrap();
        control.insert(name.clone(), shared(scope, &[]).0);
        let (token_sha256, pins) = (Some(sha256_hex(&format!("token-{scope}"))), vec![]);
        // By servers, by URIs, by both.
        let by = |uris: bool| if uris { vec![format!("{scope}://**")] } else { vec![] };
        let scoped = match scope {
            "red" => ScopeConfig { servers: vec![name], ..Default::default() },
            "green" => ScopeConfig { include: by(true), ..Default::default() },
            _ => ScopeConfig { servers: vec![name], include: by(true), ..Default::default() },
        };
        config.scopes.insert(scope.into(), ScopeConfig { token_sha256, pins, ..scoped });
    }
    let app = Arc::new(App::new(Arc::new(store), Arc::new(control), Arc::new(config)));
    let state = tempfile::tempdir().unwrap();
    app.keep_in(state.path()).unwrap();
    let access = Access::Tcp { loopback: true, host: None };
    let router = router_for(app, CancellationToken::new(), access);

    let mut seed = 0_u64;
    let mut pick = |most: usize| {
        seed += 1;
        let hash = blake3::hash(&seed.to_le_bytes());
        usize::from(u16::from_le_bytes([hash.as_bytes()[0], hash.as_bytes()[1]])) % most
    };
    for _ in 0..REQUESTS {
        let own = pick(3);
        let named = scopes[pick(3)];
        let uri = format!("{named}://page/{}", pick(5));
        let (field, server) = (["", "server"][pick(2)], scopes[pick(3)]);
        let mut body = serde_json::json!({"uri": uri});
        if !field.is_empty() {
            body[field] = server.into();
        }
        if pick(3) == 0 {
            body["scope"] = named.into();
        }
        let ask = |body: serde_json::Value| body.to_string();
        let query = ["word", "secret", "Title", "page"][pick(4)];
        let mut search = serde_json::json!({"query": query});
        match pick(5) {
            0 => search["servers"] = serde_json::json!([server]),
            1 => search["uri_prefix"] = format!("{named}:").into(),
            2 => search["scope"] = named.into(),
            3 => search["query"] = format!("{query} server:{server} uri:{named}").into(),
            _ => {}
        }
        let context = serde_json::json!({"query": query, "pins": [uri], "conversation": "c"});
        let retrieval = serde_json::json!({"knowledge_id": named, "query": query});
        let call = |tool: &str, arguments: serde_json::Value| {
            serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": tool, "arguments": arguments}})
        };
        let (method, route, body) = match pick(14) {
            0 | 1 => ("POST", "/v1/search".into(), ask(search)),
            2 | 3 => ("POST", "/v1/read".into(), ask(body)),
            4 => ("POST", "/v1/context".into(), ask(context)),
            5 => ("POST", "/v1/pins".into(), ask(body)),
            6 => ("GET", "/v1/pins".into(), String::new()),
            7 => (
                "GET",
                format!(
                    "/v1/resources?{field}{}{server}",
                    if field.is_empty() { "cursor=" } else { "=" }
                ),
                String::new(),
            ),
            8 => ("GET", "/v1/templates".into(), String::new()),
            9 => ("GET", "/v1/status".into(), String::new()),
            10 => ("GET", "/v1/trace?limit=20".into(), String::new()),
            11 => ("POST", "/retrieval".into(), ask(retrieval)),
            12 => ("POST", "/mcp".into(), ask(call("search", search))),
            _ => ("POST", "/mcp".into(), ask(call("fetch", serde_json::json!({"id": uri})))),
        };
        let request = Request::builder()
            .method(method)
            .uri(&route)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("authorization", format!("Bearer token-{}", scopes[own]));
        let request = request.body(axum::body::Body::from(body.clone())).unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        let answer = answer.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(answer.to_vec()).unwrap();
        // What the request itself said may be said again; in a trace, in an earlier request.
        let text = text.replace(&uri, "");
        for (foreign, scope) in scopes.iter().enumerate() {
            if foreign == own {
                continue;
            }
            // A trace tells what this very token asked for before, whether or not it was there.
            let uri = if route.starts_with("/v1/trace") { "no uri" } else { scope };
            for mark in [format!("secret-{scope}"), format!("Title-{scope}"), format!("{uri}://")] {
                assert!(!text.contains(&mark), "{} {method} {route} {body}: {text}", scopes[own]);
            }
        }
    }
}
