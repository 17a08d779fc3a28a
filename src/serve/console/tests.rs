//! The pages over the router, as a browser asks for them.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::*;
use crate::config::{Config, ScopeConfig, sha256_hex};
use crate::serve::guard::Access;
use crate::serve::http::router_for;
use crate::serve::tests::app;

const TOKEN: &str = "rdx_s3cret";
const VIEWS: &[&str] = &[
    "/",
    "/?q=refund",
    "/context?q=refund",
    "/servers",
    "/resources",
    "/resources?server=handbook",
    "/resources/branch?server=handbook",
    "/resources?contains=refund",
    "/resources?skipped=yes",
    "/resource?uri=handbook:///refunds.md",
    "/resource?uri=handbook:///refunds.md&view=text&lines=1-2",
    "/resource?uri=handbook:///refunds.md&view=chunks",
    "/resource?uri=handbook:///refunds.md&view=history",
    "/templates",
    "/scopes",
    "/trace",
    "/overview",
];

/// On loopback, where one scope has a token.
fn with_token() -> (Arc<App>, Router) {
    let app = app();
    let mut config = Config::clone(&app.config.load());
    let scope = ScopeConfig {
        token_sha256: Some(sha256_hex(TOKEN)),
        exclude: vec!["wiki://**".into()],
        ..ScopeConfig::default()
    };
    config.scopes.insert("bot".into(), scope);
    app.config.store(Arc::new(config));
    let access = Access::Tcp { loopback: true, host: None };
    let router = router_for(app.clone(), CancellationToken::new(), access);
    (app, router)
}

struct Browser {
    router: Router,
    cookie: Option<String>,
}

impl Browser {
    async fn send(
        &self,
        method: &str,
        address: &str,
        origin: Option<&str>,
        body: &str,
    ) -> (Response<()>, String) {
        let mut request = Request::builder()
            .method(method)
            .uri(address)
            .header("host", "localhost:7878")
            .header("content-type", "application/x-www-form-urlencoded");
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let (head, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        (Response::from_parts(head, ()), text)
    }

    async fn get(&self, address: &str) -> (Response<()>, String) {
        self.send("GET", address, None, "").await
    }

    async fn post(&self, address: &str, body: &str) -> (Response<()>, String) {
        self.send("POST", address, Some("http://localhost:7878"), body).await
    }

    /// Keeps the session that an answer begins.
    fn keep(&mut self, answer: &Response<()>) {
        let set = answer.headers()["set-cookie"].to_str().unwrap();
        self.cookie = set.split(';').next().map(str::to_owned);
    }
}

async fn owner() -> (Arc<App>, Browser) {
    let (app, router) = with_token();
    let mut browser = Browser { router, cookie: None };
    let link = app.sessions.link(std::time::Instant::now()).unwrap();
    let (answer, _) = browser.get(&format!("/sign-in/{link}")).await;
    browser.keep(&answer);
    (app, browser)
}

#[tokio::test]
async fn every_view_is_a_whole_page_under_a_strict_policy() {
    let (_, browser) = owner().await;
    for view in VIEWS {
        let (answer, page) = browser.get(view).await;
        assert_eq!(answer.status(), StatusCode::OK, "{view}: {page}");
        let policy = answer.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff", "{view}");
        assert_eq!(answer.headers()["cache-control"], "no-store", "{view}");
        assert!(
            view.contains("branch") || page.starts_with("<!DOCTYPE html><html lang=\"en\">"),
            "{view}"
        );
        // The policy would stop it anyway.
        assert!(!page.contains(" style=") && !page.contains("javascript:"), "{view}");
    }
    let (missing, page) = browser.get("/resource?uri=x://none").await;
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    assert!(page.contains("no server has x://none"), "{page}");
}

#[tokio::test]
async fn without_a_session_there_is_only_the_way_to_sign_in() {
    let (_, router) = with_token();
    let browser = Browser { router, cookie: Some("resdex_7878=guessed".into()) };
    for view in VIEWS {
        let (answer, page) = browser.get(view).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{view}");
        assert!(
            answer.headers()["location"].to_str().unwrap().starts_with("/sign-in?to="),
            "{view}"
        );
        assert!(page.is_empty(), "{view}");
    }
    for (method, address) in [
        ("GET", "/v1/status"),
        ("POST", "/servers/sync"),
        ("POST", "/scopes/token"),
        ("POST", "/pins"),
    ] {
        let (answer, _) = browser.send(method, address, Some("http://localhost:7878"), "").await;
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{address}");
    }
    let (answer, page) = browser.get("/sign-in").await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(!page.contains("handbook"), "{page}");
    for asset in ["console.css", "console.js", "live.js", "forms.js", "icon.svg"] {
        let (answer, text) = browser.get(&assets::address(asset)).await;
        assert!(answer.status() == StatusCode::OK && !text.is_empty(), "{asset}");
    }
}

#[tokio::test]
async fn a_change_says_where_it_comes_from() {
    let (app, browser) = owner().await;
    for origin in [None, Some("http://evil.example"), Some("null"), Some("http://localhost:7879")] {
        for address in [
            "/servers/sync",
            "/pins",
            "/pins/remove",
            "/templates",
            "/templates/forget",
            "/scopes/token",
            "/sign-out",
            "/sign-in",
            "/v1/sync",
            "/v1/pins",
        ] {
            let (answer, _) = browser.send("POST", address, origin, "").await;
            assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{address} {origin:?}");
        }
    }
    let form = "uri=handbook:///refunds.md&server=handbook&scope=bot";
    let (answer, page) = browser.post("/pins", form).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER, "{page}");
    let (_, page) = browser.get("/scopes").await;
    assert!(page.contains("refunds.md") && page.contains("added at run time"), "{page}");
    browser.post("/pins/remove", form).await;
    assert!(!browser.get("/scopes").await.1.contains("refunds.md"));
    let (_, page) = browser.post("/scopes/token", "scope=bot").await;
    assert!(page.contains("rdx_") && page.contains("token_sha256"), "{page}");
    let (answer, _) = browser.post("/servers/sync", "server=wiki&to=//evil.example").await;
    assert_eq!(answer.headers()["location"], "/servers", "only addresses of ours");
    browser.post("/sign-out", "").await;
    assert_eq!(browser.get("/servers").await.0.status(), StatusCode::SEE_OTHER);
    drop(app);
}

#[tokio::test]
async fn a_token_signs_in_to_its_scope_and_sees_nothing_else() {
    let (app, router) = with_token();
    let mut browser = Browser { router, cookie: None };
    let (answer, page) = browser.post("/sign-in", "token=wrong").await;
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    assert!(page.contains("No scope has this token."));
    let (answer, _) = browser.post("/sign-in", &format!("token={TOKEN}&to=/servers")).await;
    assert_eq!(answer.headers()["location"], "/servers");
    browser.keep(&answer);
    for view in VIEWS {
        let (answer, page) = browser.get(view).await;
        assert_eq!(answer.status(), StatusCode::OK, "{view}");
        assert!(!page.contains("wiki://"), "{view}: {page}");
    }
    let (answer, _) = browser.get("/resource?uri=wiki://pages/hr/pay").await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    for (method, address, body) in [
        ("POST", "/scopes/token", "scope=bot"),
        ("GET", "/servers/withheld?server=wiki", ""),
        ("GET", "/v1/series", ""),
        ("POST", "/v1/console", ""),
    ] {
        let (answer, _) = browser.send(method, address, Some("http://localhost:7878"), body).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{address}");
    }
    let elsewhere = browser.get("/?q=refund&scope=everything").await.1;
    assert!(elsewhere.contains("no scope is called"), "{elsewhere}");
    // Another token in the config ends the session.
    let mut config = Config::clone(&app.config.load());
    if let Some(scope) = config.scopes.get_mut("bot") {
        scope.token_sha256 = Some(sha256_hex("another"));
    }
    app.config.store(Arc::new(config));
    assert_eq!(browser.get("/servers").await.0.status(), StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn the_language_is_the_readers() {
    let (_, mut browser) = owner().await;
    let (answer, _) = browser.get("/language?lang=zh&to=/servers").await;
    assert_eq!(answer.headers()["location"], "/servers");
    let cookie = browser.cookie.clone().unwrap_or_default();
    browser.cookie = Some(format!("{cookie}; resdex_lang=zh"));
    let (answer, page) = browser.get("/servers").await;
    assert!(page.contains("<h1>服务器</h1>"), "{page}");
    assert_eq!(answer.headers()["content-language"], "zh-Hans");
    for to in ["//evil.example", "/\\evil.example", "https://evil.example", "servers", "/a b"] {
        let to: String = url::form_urlencoded::byte_serialize(to.as_bytes()).collect();
        let (answer, _) = browser.get(&format!("/language?lang=en&to={to}")).await;
        assert_eq!(answer.headers()["location"], "/", "{to}");
    }
}

#[test]
fn each_route_is_known_as_a_page() {
    for path in ["/", "/servers/sync", "/resource", "/assets/1/x", "/sign-in/abc", "/overview"] {
        assert!(is_page(path), "{path}");
    }
    for path in [
        "/v1/status",
        "/mcp",
        "/healthz",
        "/retrieval",
        "/openapi.json",
        "/metrics",
        "/datasets/x/retrieve",
    ] {
        assert!(!is_page(path), "{path}");
    }
    assert!(!is_open("/servers") && !is_open("/") && !is_open("/sign-inn") && is_open("/sign-in"));
}
