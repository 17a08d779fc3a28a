//! Each server is indexed completely, and the words of what it offers are found.

use serde_json::Value;

use crate::daemon::Daemon;
use crate::peers::{Kind, Note, Over, Peer};

const NOTES: [Note; 2] = [
    Note {
        uri: "notes://harbour",
        title: "Harbour",
        text: "The lighthouse keeper retires in May.",
    },
    Note { uri: "notes://orchard", title: "果园", text: "果园里的苹果在九月成熟。" },
];

/// A template whose variables are both asked of the server.
const DESIGNS: &str = "[[servers.peer.templates]]\nuri = \"design://docs/{docId}/{+version}\"";

/// A server's own words and the URI that they belong to.
type Words<'a> = &'a [(&'a str, &'a str)];

/// Starts a daemon for one server, and looks for all the words once the server is live.
fn check(peer: &Peer, more: &str, resources: u64, words: Words<'_>) -> (Daemon, Value) {
    let daemon = Daemon::start(&peer.config("peer", more));
    let status = daemon.live("peer");
    assert_eq!(count(&status, "indexed") + count(&status, "skipped"), resources, "{status:#}");
    for (query, uri) in words {
        let hit = daemon.found(query, uri);
        assert_eq!(hit.server, "peer");
    }
    (daemon, status)
}

fn count(status: &Value, field: &str) -> u64 {
    status[field].as_u64().unwrap_or_else(|| panic!("no {field} in {status:#}"))
}

fn everything(over: Over) {
    let Some(peer) = Peer::new(Kind::Everything, over) else { return };
    let document = |name| format!("demo://resource/static/document/{name}.md");
    let words = [
        ("beginSimulatedResourceUpdates", document("how-it-works")),
        ("bidirectional tasks", document("features")),
        ("registerXPrompt", document("extension")),
        ("clientConnect", document("startup")),
        ("autonomous agents constraints", document("instructions")),
    ];
    let words: Vec<_> = words.iter().map(|(query, uri)| (*query, uri.as_str())).collect();
    let (daemon, status) = check(&peer, "", 7, &words);
    assert_eq!(status["protocol"], "2025-11-25");
    let listed = daemon.ask(&["list", "--templates"]).unwrap();
    assert_eq!(listed["templates"].as_array().unwrap().len(), 2, "{listed:#}");
}

#[test]
fn the_reference_server_over_stdio() {
    everything(Over::Stdio);
}

#[test]
fn the_reference_server_over_http() {
    everything(Over::Http);
}

#[test]
fn the_memory_server() {
    let Some(peer) = Peer::new(Kind::Memory, Over::Stdio) else { return };
    let entity = r#"{"type":"entity","name":"Ottilie","entityType":"person","observations":["repairs theodolites in Graz"]}"#;
    peer.put("memory.jsonl", &format!("{entity}\n"));
    check(&peer, "", 1, &[("theodolites", "memory://knowledge-graph")]);
}

#[test]
fn the_sqlite_server() {
    let Some(peer) = Peer::new(Kind::Sqlite, Over::Stdio) else { return };
    let words = [
        ("no insights discovered yet", "memo://insights"),
        ("living document", "memo://insights"), // of its description
    ];
    check(&peer, "", 1, &words);
}

/// Text from a `str`, JSON from a `dict`, an image, and Chinese designs behind a template.
fn python(over: Over) {
    let Some(peer) = Peer::new(Kind::PythonMcp, over) else { return };
    peer.write(&NOTES);
    let words = [
        ("quartermaster badge", "guide://onboarding"),
        ("Ljubljana", "config://limits"),
        ("burst_policy", "config://limits"),
        ("floorplan Reykjavik", "images://floorplan"),
        ("lighthouse keeper", "notes://harbour"),
        ("苹果成熟", "notes://orchard"),
        ("锁定库存", "design://docs/checkout/v1"),
        ("优惠券核销", "design://docs/checkout/v2/draft"),
        ("审计日志保留", "design://docs/%E6%9D%83%E9%99%90/v1"),
    ];
    let (daemon, status) = check(&peer, DESIGNS, 8, &words);
    assert_eq!(count(&status, "skipped"), 0, "an image is known by its kind and size: {status:#}");
    assert_eq!(daemon.found("floorplan", "images://floorplan").mime_type, "image/png");
    assert_eq!(status["protocol"], "2026-07-28", "the era in which it pushes");
    assert_eq!(status["push"].as_array().unwrap().len(), 2, "{status:#}");
}

#[test]
fn a_server_on_the_python_sdk_over_stdio() {
    python(Over::Stdio);
}

#[test]
fn a_server_on_the_python_sdk_over_http() {
    python(Over::Http);
}

#[test]
fn five_hundred_resources_in_pages_of_fifty() {
    let Some(peer) = Peer::new(Kind::Fastmcp, Over::Stdio) else { return };
    peer.write(&NOTES);
    let words = [
        ("gasket001", "kb://articles/001"),
        ("gasket050", "kb://articles/050"),
        ("gasket051", "kb://articles/051"),
        ("gasket500", "kb://articles/500"),
        ("lighthouse keeper", "notes://harbour"), // on the eleventh page
    ];
    let (_, status) = check(&peer, "", 502, &words);
    assert_eq!(count(&status, "listed"), 502);
    assert_eq!(status["protocol"], "2025-11-25", "the era in which it pushes");
    assert_eq!(status["push"], serde_json::json!(["list_changed"]));
}

fn typescript(over: Over, era: &str, revision: &str) {
    let Some(peer) = Peer::new(Kind::Typescript, over) else { return };
    peer.write(&NOTES);
    let words = [
        ("Tallinn replica", "runbook://failover"),
        ("lighthouse keeper", "notes://harbour"),
        ("苹果成熟", "notes://orchard"),
        ("借贷平衡", "design://docs/ledger/v3"),
        ("多币种折算", "design://docs/ledger/2025/rc1"),
        ("令牌桶", "design://docs/gateway/v1"),
    ];
    let more = format!("protocol = \"{era}\"\n{DESIGNS}");
    let (_, status) = check(&peer, &more, 6, &words);
    assert_eq!(status["protocol"], revision);
}

#[test]
fn a_server_on_the_typescript_sdk_over_stdio_in_the_legacy_era() {
    typescript(Over::Stdio, "legacy", "2025-11-25");
}

#[test]
fn a_server_on_the_typescript_sdk_over_stdio_in_the_better_era() {
    typescript(Over::Stdio, "auto", "2026-07-28");
}

#[test]
fn a_server_on_the_typescript_sdk_over_http_in_the_legacy_era() {
    typescript(Over::Http, "legacy", "2025-11-25");
}

#[test]
fn a_server_on_the_typescript_sdk_over_http_in_the_better_era() {
    typescript(Over::Http, "auto", "2026-07-28");
}
