//! The verbs over a store in a map.

use std::collections::HashSet;
use std::sync::{Arc, RwLock};

use tokio::sync::mpsc;

use super::api::{ErrorCode, ResourcesQuery, SearchRequest, SyncRequest};
use super::fake::{FakeStore, entry, key, skipped, time};
use super::scope::Caller;
use super::{App, cursor, parse_cursor};
use crate::config::{Config, ScopeConfig};
use crate::model::{
    ResourceTemplate, ServerName, ServerState, ServerStatus, SyncCounts, SyncQueue,
};
use crate::sync::control::{Control, Shared, SyncRequest as Asked, TemplateRow};

pub fn owner() -> Caller {
    Caller::owner("test")
}

pub fn server_status(name: &str, state: ServerState) -> ServerStatus {
    ServerStatus {
        name: name.into(),
        state,
        protocol: Some("2025-11-25".into()),
        push: vec!["updated".into()],
        listed: 3,
        indexed: 2,
        skipped: 1,
        stale: 0,
        last_sync: Some(time()),
        next_sync: None,
        last_error: None,
        withheld_removals: 0,
        warnings: vec![],
        queue: SyncQueue::default(),
        counts: SyncCounts::default(),
    }
}

/// A server's shared state, without a session, and what its task is asked.
pub fn shared(name: &str, stale: &[&str]) -> (Arc<Shared>, mpsc::Receiver<Asked>) {
    let (requests, asked) = mpsc::channel(1);
    let template = ResourceTemplate {
        uri_template: format!("{name}://{{+path}}"),
        name: "page".into(),
        title: None,
        description: None,
        mime_type: None,
    };
    let shared = Shared {
        stale: RwLock::new(stale.iter().map(|uri| (*uri).into()).collect::<HashSet<_>>()),
        templates: RwLock::new(vec![TemplateRow { template, expanded: 2 }]),
        ..Shared::new(server_status(name, ServerState::Backoff), requests)
    };
    (Arc::new(shared), asked)
}

/// One server, `wiki`, over this store.
pub fn with_store(store: FakeStore) -> Arc<App> {
    let control = Control::default();
    control.insert(ServerName::new("wiki").unwrap(), shared("wiki", &[]).0);
    Arc::new(App::new(Arc::new(store), Arc::new(control), Arc::new(Config::default())))
}

pub fn app() -> Arc<App> {
    let store = FakeStore::of([
        entry(
            "handbook",
            "handbook:///refunds.md",
            "Refunds",
            "# Refunds\nA refund takes 14 days.\n\nAsk billing.\n",
        ),
        entry("handbook", "handbook:///退款.md", "退款", "# 退款\n退款需要十四天。\n"),
        skipped("handbook", "handbook:///logo.png", "image/png has no text"),
        entry("wiki", "wiki://pages/hr/pay", "Pay", "A refund of expenses.\n"),
        entry("wiki", "shared://note", "Note", "one\n"),
        entry("handbook", "shared://note", "Note", "two\n"),
    ]);
    let control = Control::default();
    for (name, stale) in [("handbook", &["handbook:///refunds.md"][..]), ("wiki", &[])] {
        let (shared, _) = shared(name, stale);
        control.insert(ServerName::new(name).unwrap(), shared);
    }
    let mut config = Config::default();
    let scope = ScopeConfig { exclude: vec!["wiki://pages/hr/**".into()], ..Default::default() };
    config.scopes.insert("bot".into(), scope);
    Arc::new(App::new(Arc::new(store), Arc::new(control), Arc::new(config)))
}

#[test]
fn a_search_is_shaped() {
    let answer = app().search(&owner(), &SearchRequest::new("refund"), "id-1").unwrap();
    assert_eq!(answer.request_id, "id-1");
    assert!(!answer.more);
    let [first, second] = &answer.hits[..] else { panic!("{answer:?}") };
    assert_eq!((first.rank, &*first.uri), (1, "handbook:///refunds.md"));
    assert!(first.stale && first.untrusted);
    assert_eq!((first.passage.start_line, &*first.title), (Some(1), "Refunds"));
    let highlighted: Vec<String> = first
        .passage
        .highlights
        .iter()
        .map(|(from, to)| first.passage.snippet.chars().skip(*from).take(to - from).collect())
        .collect();
    assert_eq!(highlighted, ["refund"]);
    assert_eq!((second.rank, &*second.uri), (2, "wiki://pages/hr/pay"));
    assert!(!second.stale);
    assert!(first.passages.is_none());
}

#[test]
fn a_search_is_narrowed() {
    let app = app();
    let uris = |request: SearchRequest| {
        let hits = app.search(&owner(), &request, "x").unwrap().hits;
        hits.into_iter().map(|hit| hit.uri).collect::<Vec<_>>()
    };
    let base = SearchRequest::new("refund");
    assert_eq!(
        uris(SearchRequest { scope: Some("bot".into()), ..base.clone() }),
        ["handbook:///refunds.md"]
    );
    assert_eq!(
        uris(SearchRequest { servers: Some(vec!["wiki".into()]), ..base.clone() }),
        ["wiki://pages/hr/pay"]
    );
    assert_eq!(
        uris(SearchRequest { uri_prefix: Some("wiki:".into()), ..base.clone() }),
        ["wiki://pages/hr/pay"]
    );
    assert_eq!(
        uris(SearchRequest { mime_types: Some(vec!["Image/*".into()]), ..base.clone() }),
        [""; 0]
    );
    assert_eq!(uris(SearchRequest { offset: 1, ..base.clone() }), ["wiki://pages/hr/pay"]);
    let one = app.search(&owner(), &SearchRequest { limit: 1, ..base }, "x").unwrap();
    assert!(one.more && one.hits.len() == 1);
}

#[test]
fn a_search_out_of_bounds_names_the_field() {
    let app = app();
    let base = SearchRequest::new("refund");
    for (request, code, start) in [
        (SearchRequest::new(" \n"), ErrorCode::BadRequest, "query: "),
        (SearchRequest::new("a".repeat(5000)), ErrorCode::BadRequest, "query: at most 4096 bytes"),
        (
            SearchRequest { limit: 0, ..base.clone() },
            ErrorCode::BadRequest,
            "limit: 1 to 100, not 0",
        ),
        (SearchRequest { limit: 101, ..base.clone() }, ErrorCode::BadRequest, "limit: 1 to 100"),
        (SearchRequest { offset: 10_001, ..base.clone() }, ErrorCode::BadRequest, "offset: 0 to"),
        (SearchRequest { passages: 0, ..base.clone() }, ErrorCode::BadRequest, "passages: 1 to"),
        (
            SearchRequest { min_relevance: Some(1.5), ..base.clone() },
            ErrorCode::BadRequest,
            "min_relevance: 0 to 1",
        ),
        (
            SearchRequest { servers: Some(vec!["wikki".into()]), ..base.clone() },
            ErrorCode::UnknownServer,
            "no server is called \"wikki\"",
        ),
        (
            SearchRequest { scope: Some("boot".into()), ..base },
            ErrorCode::UnknownScope,
            "no scope is called \"boot\"",
        ),
    ] {
        let error = app.search(&owner(), &request, "x").unwrap_err().detail;
        assert_eq!(error.code, code, "{error:?}");
        assert!(error.message.starts_with(start), "{error:?}");
    }
}

#[test]
fn resources_are_paged() {
    let app = app();
    let all = app.resources(&owner(), &ResourcesQuery::default()).unwrap();
    assert_eq!(all.resources.len(), 6);
    assert_eq!(all.next_cursor, None);
    let after = ResourcesQuery {
        cursor: Some(cursor(&key("handbook", "handbook:///退款.md"))),
        ..ResourcesQuery::default()
    };
    let rest: Vec<_> =
        app.resources(&owner(), &after).unwrap().resources.into_iter().map(|r| r.uri).collect();
    assert_eq!(rest, ["shared://note", "shared://note", "wiki://pages/hr/pay"]);
    let skipped = ResourcesQuery { skipped: true, ..ResourcesQuery::default() };
    let skipped = app.resources(&owner(), &skipped).unwrap().resources;
    assert_eq!(skipped.len(), 1);
    assert_eq!(skipped[0].reason.as_deref(), Some("image/png has no text"));
    for bad in ["", "!", "YQ", "L2E"] {
        let query = ResourcesQuery { cursor: Some(bad.into()), ..ResourcesQuery::default() };
        assert!(
            app.resources(&owner(), &query).unwrap_err().detail.message.starts_with("cursor: "),
            "{bad}"
        );
    }
    let unknown = ResourcesQuery { server: Some("x".into()), ..ResourcesQuery::default() };
    assert_eq!(
        app.resources(&owner(), &unknown).unwrap_err().detail.code,
        ErrorCode::UnknownServer
    );
}

#[test]
fn a_cursor_keeps_its_key() {
    for key in [key("a", "b://c/d"), key("名字 with space", "/"), key("a", "")] {
        assert_eq!(parse_cursor(&cursor(&key)).unwrap(), key);
    }
}

#[test]
fn sync_asks_the_named_servers() {
    let app = app();
    let sync =
        |servers: Option<Vec<String>>| app.sync(&owner(), &SyncRequest { servers, confirm: false });
    assert!(sync(None).unwrap().started.is_empty(), "their tasks are gone");
    assert_eq!(sync(Some(vec!["x".into()])).unwrap_err().detail.code, ErrorCode::UnknownServer);
    let (shared, mut asked) = shared("wiki", &[]);
    app.control.insert(ServerName::new("wiki").unwrap(), shared);
    assert_eq!(sync(None).unwrap().started, ["wiki"]);
    assert!(!asked.try_recv().unwrap().confirm);
}

#[test]
fn status_tells_all() {
    let app = app();
    app.config_error.store(Some(Arc::new("resdex.toml:3: broken".into())));
    let json = serde_json::to_value(app.status(&owner()).unwrap()).unwrap();
    assert_eq!(json["index"]["resources"], 6);
    assert_eq!(json["index"].get("paused"), None);
    assert_eq!(json["config"]["error"], "resdex.toml:3: broken");
    assert_eq!(json["servers"][0]["name"], "handbook");
    assert_eq!(json["servers"][1]["state"], "backoff");
    assert!(json["servers"][0]["last_error"].is_null());
    let templates = app.templates(&owner()).unwrap().templates;
    assert_eq!(templates.len(), 2);
    assert_eq!((&*templates[1].uri_template, templates[1].expanded), ("wiki://{+path}", 2));
}
