//! Requests of every kind with every token, made of names that there are and names that there aren't:
//! none answers with anything of a scope that isn't its token's.

use std::collections::BTreeMap;

use axum::Router;
use http::Method;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;
use crate::model::ServerName;
use crate::serve::fake::{FakeStore, entry};
use crate::serve::tests::shared;
use crate::sync::control::Control;

/// `RESDEX_RANDOM_REQUESTS` asks for another number.
const REQUESTS: u64 = 10_000;
const TASKS: u64 = 4;
const SCOPES: [&str; 3] = ["red", "green", "blue"];

/// Three scopes, of which each has a server with three resources of its own: by servers, by URIs, by
/// both.
fn house(state: &std::path::Path) -> Router {
    let store = FakeStore::of(SCOPES.iter().flat_map(|scope| {
        (0..3).map(move |n| {
            let uri = format!("{scope}://page/{n}");
            entry(scope, &uri, &format!("Title-{scope}-{n}"), &format!("word secret-{scope}-{n}\n"))
        })
    }));
    let control = Control::default();
    let mut config = Config::default();
    for scope in SCOPES {
        let name = ServerName::new(scope).unwrap();
        control.insert(name.clone(), shared(scope, &[]).0);
        let include = vec![format!("{scope}://**")];
        let scoped = match scope {
            "red" => ScopeConfig { servers: vec![name], ..Default::default() },
            "green" => ScopeConfig { include, ..Default::default() },
            _ => ScopeConfig { servers: vec![name], include, ..Default::default() },
        };
        let token_sha256 = Some(sha256_hex(&format!("token-{scope}")));
        config.scopes.insert(scope.into(), ScopeConfig { token_sha256, ..scoped });
    }
    let app = Arc::new(App::new(Arc::new(store), Arc::new(control), Arc::new(config)));
    app.keep_in(state).unwrap();
    router_for(app, CancellationToken::new(), Access::Tcp { loopback: true, host: None })
}

/// SplitMix64: the same choices in every run.
struct Choices(u64);

impl Choices {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % most
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        let at = self.below(all.len() as u64);
        all[usize::try_from(at).unwrap()]
    }
}

/// One request, and what of it an answer may say again.
struct Asking {
    kind: &'static str,
    request: http::request::Builder,
    body: String,
    said: Vec<String>,
}

fn asking(choices: &mut Choices) -> Asking {
    let named = choices.of(&SCOPES);
    let server = choices.of(&["red", "green", "blue", "violet"]);
    let uri = format!("{named}://page/{}", choices.below(5));
    let template = format!("{named}://{{+path}}");
    let query = choices.of(&["word", "secret", "Title", "page"]);
    let mut search = json!({"query": query});
    match choices.below(5) {
        0 => search["servers"] = json!([server]),
        1 => search["uri_prefix"] = format!("{named}:").into(),
        2 => search["scope"] = named.into(),
        3 => search["query"] = format!("{query} server:{server} uri:{named}").into(),
        _ => {}
    }
    let mut one = json!({"uri": uri});
    if choices.below(2) == 0 {
        one["server"] = server.into();
    }
    if choices.below(3) == 0 {
        one["scope"] = named.into();
    }
    let conversation = choices.of(&["c", "d"]);
    let get = |kind, route: String| (kind, Method::GET, route, Value::Null);
    let post = |kind, route: &str, body| (kind, Method::POST, route.to_owned(), body);
    let mcp = |kind, method: &str, params: Value| {
        post(kind, "/mcp", json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
    };
    let tool = |kind, name: &str, arguments| {
        mcp(kind, "tools/call", json!({"name": name, "arguments": arguments}))
    };
    let complete = |kind, template: &str, name: &str| {
        let argument = json!({"name": name, "value": format!("{named}:")});
        let reference = json!({"type": "ref/resource", "uri": template});
        mcp(kind, "completion/complete", json!({"ref": reference, "argument": argument}))
    };
    let (kind, method, route, body) = match choices.below(22) {
        0 => post("search", "/v1/search", search),
        1 => post("read", "/v1/read", one),
        2 => post("context", "/v1/context", json!({"query": query, "conversation": conversation})),
        3 => post("context with a pin", "/v1/context", json!({"query": query, "pins": [uri]})),
        4 => {
            one["conversation"] = conversation.into();
            post("pin", "/v1/pins", one)
        }
        5 => post("pin", "/v1/pins", one),
        6 => get("pins", format!("/v1/pins?conversation={conversation}")),
        7 => ("unpin", Method::DELETE, format!("/v1/pins?uri={uri}"), Value::Null),
        8 => get("resources", "/v1/resources".into()),
        9 => get("resources of a server", format!("/v1/resources?server={server}")),
        10 => get("templates", "/v1/templates".into()),
        11 => get("status", "/v1/status".into()),
        12 => get("trace", format!("/v1/trace?limit=20&server={server}")),
        13 => post("sync", "/v1/sync", json!({"servers": [server]})),
        14 => post("retrieval", "/retrieval", json!({"knowledge_id": named, "query": query})),
        15 => post("dataset", &format!("/datasets/{named}/retrieve"), json!({"query": query})),
        16 => tool("tool search", "search", search),
        17 => tool("tool fetch", "fetch", json!({"id": uri})),
        18 => match choices.below(2) {
            0 => tool("tool list_servers", "list_servers", json!({})),
            _ => mcp("mcp templates", "resources/templates/list", json!({})),
        },
        19 => mcp("mcp list", "resources/list", json!({})),
        20 => mcp("mcp read", "resources/read", json!({"uri": uri})),
        _ => match choices.below(2) {
            0 => complete("mcp complete", "{+uri}", "uri"),
            _ => complete("mcp complete a template", &template, "path"),
        },
    };
    let mut request = Request::builder()
        .method(method)
        .uri(route)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    let mut body = body;
    if let Some(method) = body["method"].as_str() {
        // As clients of the modern era ask, without a session.
        request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
        let name = ["name", "uri"].iter().find_map(|name| body["params"][name].as_str());
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
        body["params"]["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "random", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    let body = if body.is_null() { String::new() } else { body.to_string() };
    Asking { kind, request, body, said: vec![uri, template] }
}

/// Asks, looks at the answer; says how often each kind of request showed something of its own scope.
async fn ask(router: Router, mut choices: Choices, requests: u64) -> BTreeMap<&'static str, u64> {
    let mut shown = BTreeMap::new();
    for _ in 0..requests {
        let own = choices.of(&["red", "green", "blue", "violet", ""]);
        let Asking { kind, mut request, body, said } = asking(&mut choices);
        if !own.is_empty() {
            request = request.header("authorization", format!("Bearer token-{own}"));
        }
        let request = request.body(axum::body::Body::from(body.clone())).unwrap();
        let asked = format!("{own}: {} {}", request.uri(), body);
        let answer = router.clone().oneshot(request).await.unwrap();
        let refused = answer.status() == StatusCode::UNAUTHORIZED;
        assert_eq!(refused, !SCOPES.contains(&own), "{asked}");
        let answer = answer.into_body().collect().await.unwrap().to_bytes();
        let mut text = String::from_utf8(answer.to_vec()).unwrap();
        for said in &said {
            text = text.replace(said, "");
        }
        for scope in SCOPES {
            let mut marks = vec![format!("secret-{scope}"), format!("Title-{scope}")];
            // A trace tells what this very token asked for before, whether or not it was there.
            if kind != "trace" {
                marks.push(format!("{scope}://"));
            }
            if ["status", "tool list_servers"].contains(&kind) {
                marks.push(format!("\"{scope}\""));
                marks.push(format!("\\\"{scope}\\\""));
            }
            let seen = marks.iter().any(|mark| text.contains(mark));
            assert!(!seen || scope == own, "{asked}\n{text}");
            *shown.entry(kind).or_default() += u64::from(seen);
        }
    }
    shown
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_requests_never_see_a_foreign_resource() {
    let requests = std::env::var("RESDEX_RANDOM_REQUESTS").map_or(REQUESTS, |n| n.parse().unwrap());
    let state = tempfile::tempdir().unwrap();
    let router = house(state.path());
    let tasks = (0..TASKS).map(|n| tokio::spawn(ask(router.clone(), Choices(n), requests / TASKS)));
    let mut shown = BTreeMap::<&str, u64>::new();
    for task in futures::future::try_join_all(tasks).await.unwrap() {
        for (kind, times) in task {
            *shown.entry(kind).or_default() += times;
        }
    }
    // What never shows anything would prove nothing.
    let silent = ["unpin", "sync", "trace", "mcp complete a template"];
    let nothing: Vec<_> =
        shown.iter().filter(|(_, times)| **times == 0).map(|(kind, _)| *kind).collect();
    assert!(nothing.iter().all(|kind| silent.contains(kind)), "{shown:?}");
}
