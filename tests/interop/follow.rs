//! What changes in a server is found, by push in either era, and by the schedule where nothing is
//! pushed.

use crate::daemon::{Daemon, Hit};
use crate::peers::{Kind, Note, Over, Peer};

/// Far enough away that only a push can be why something was found.
const NEVER: &str = "schedule = \"0 0 0 1 1 *\"";
const OFTEN: &str = "schedule = \"*/2 * * * * *\"";

const ALPHA: Note = Note {
    uri: "notes://alpha",
    title: "Bridge",
    text: "The drawbridge opens at noon, says the zephyrine almanac.",
};
const ALPHA_NEW: Note =
    Note { text: "The drawbridge opens at dusk, says the quintessent almanac.", ..ALPHA };
const BETA: Note = Note { uri: "notes://beta", title: "码头", text: "码头每周二停用。" };
const GAMMA: Note =
    Note {
        uri: "notes://gamma", title: "Kiln", text: "Пекарня топит печь берёзовыми дровами."
    };

/// Waits until the changed note shows its new words and no passage its old ones. At every moment
/// there is one hit for the note, of the text before or after.
fn sees_the_change(daemon: &Daemon) {
    daemon.wait_until("the note's new words are found", |daemon| {
        let of_alpha = |hit: &Hit| hit.uri == ALPHA.uri;
        let hits: Vec<_> =
            daemon.search("drawbridge almanac").into_iter().filter(of_alpha).collect();
        let [hit] = &hits[..] else { panic!("one hit, not {hits:?}") };
        let (old, new) = (hit.snippet.contains("noon"), hit.snippet.contains("dusk"));
        assert!(old != new, "half of a change: {hit:?}");
        new.then_some(())
    });
    daemon.found("quintessent", ALPHA.uri);
    for query in ["zephyrine", "drawbridge", "noon"] {
        let hits = daemon.search(query);
        let old = |hit: &Hit| hit.snippet.contains("zephyrine") || hit.snippet.contains("noon");
        assert!(!hits.iter().any(old), "{query} still shows {hits:?}");
    }
}

fn gone(daemon: &Daemon, query: &str, uri: &str) {
    daemon.wait_until(&format!("{uri} is gone"), |daemon| {
        daemon.search(query).iter().all(|hit| hit.uri != uri).then_some(())
    });
}

/// Starts with two notes, and follows a changed text, a new note and a removed one by push alone.
fn pushed(kind: Kind, over: Over, era: &str) {
    let Some(peer) = Peer::new(kind, over) else { return };
    peer.write(&[ALPHA, BETA]);
    let more = format!("protocol = \"{era}\"\n{NEVER}");
    let daemon = Daemon::start(&peer.config("peer", &more));
    let status = daemon.live("peer");
    daemon.found("zephyrine", ALPHA.uri);
    daemon.found("码头停用", BETA.uri);

    // Whoever pushes no `updated` has nothing but its listing to tell of.
    let tells_of_texts = status["push"].as_array().unwrap().iter().any(|push| push == "updated");
    assert_eq!(tells_of_texts, kind != Kind::Fastmcp, "{status:#}");
    if tells_of_texts {
        peer.write(&[ALPHA_NEW, BETA]);
        peer.push(&format!("updated {}", ALPHA.uri));
        sees_the_change(&daemon);
    }

    peer.write(&[ALPHA_NEW, GAMMA]);
    peer.push("list_changed");
    daemon.found("берёзовые дрова", GAMMA.uri);
    gone(&daemon, "码头停用", BETA.uri);

    // What is new is followed like what was there from the start.
    if tells_of_texts {
        let text = "Пекарня перешла на электричество и гудит амперметром.";
        peer.write(&[ALPHA_NEW, Note { text, ..GAMMA }]);
        peer.push(&format!("updated {}", GAMMA.uri));
        let hit = daemon.found("амперметр", GAMMA.uri);
        assert!(!hit.snippet.contains("дровами"), "{hit:?}");
    }
}

/// What a template is expanded to is followed like what is listed.
fn pushed_of_a_template(kind: Kind, era: &str, uri: &'static str, words: &str) {
    let Some(peer) = Peer::new(kind, Over::Stdio) else { return };
    let template = "[[servers.peer.templates]]\nuri = \"design://docs/{docId}/{+version}\"";
    let more = format!("protocol = \"{era}\"\n{NEVER}\n{template}");
    let daemon = Daemon::start(&peer.config("peer", &more));
    daemon.live("peer");
    daemon.found(words, uri);

    peer.write(&[Note { uri, title: "", text: "# 修订\n\n改用滑动窗口统计。\n" }]);
    peer.push(&format!("updated {uri}"));
    daemon.found("滑动窗口", uri);
    gone(&daemon, words, uri);
}

#[test]
fn pushes_of_an_expanded_template_in_the_legacy_era() {
    let uri = "design://docs/ledger/2025/rc1";
    pushed_of_a_template(Kind::Typescript, "legacy", uri, "多币种折算");
}

#[test]
fn pushes_of_an_expanded_template_in_the_modern_era() {
    let uri = "design://docs/%E6%9D%83%E9%99%90/v1";
    pushed_of_a_template(Kind::PythonMcp, "modern", uri, "审计日志");
}

#[test]
fn pushes_of_the_typescript_sdk_over_stdio_in_the_legacy_era() {
    pushed(Kind::Typescript, Over::Stdio, "legacy");
}

#[test]
fn pushes_of_the_typescript_sdk_over_stdio_in_the_modern_era() {
    pushed(Kind::Typescript, Over::Stdio, "modern");
}

#[test]
fn pushes_of_the_typescript_sdk_over_http_in_the_legacy_era() {
    pushed(Kind::Typescript, Over::Http, "legacy");
}

#[test]
fn pushes_of_the_typescript_sdk_over_http_in_the_modern_era() {
    pushed(Kind::Typescript, Over::Http, "modern");
}

#[test]
fn pushes_of_the_python_sdk_over_stdio() {
    pushed(Kind::PythonMcp, Over::Stdio, "auto");
}

#[test]
fn pushes_of_the_python_sdk_over_http() {
    pushed(Kind::PythonMcp, Over::Http, "auto");
}

#[test]
fn pushes_of_fastmcp_over_stdio() {
    pushed(Kind::Fastmcp, Over::Stdio, "auto");
}

#[test]
fn pushes_of_fastmcp_over_http() {
    pushed(Kind::Fastmcp, Over::Http, "auto");
}

/// Changes, adds and removes without a word; the schedule finds all of it.
fn unpushed(kind: Kind, era: &str) {
    let Some(peer) = Peer::new(kind, Over::Stdio) else { return };
    peer.write(&[ALPHA, BETA]);
    let more = format!("protocol = \"{era}\"\n{OFTEN}");
    let daemon = Daemon::start(&peer.config("peer", &more));
    daemon.live("peer");
    daemon.found("zephyrine", ALPHA.uri);

    peer.write(&[ALPHA_NEW, GAMMA]);
    sees_the_change(&daemon);
    daemon.found("берёзовые дрова", GAMMA.uri);
    gone(&daemon, "码头停用", BETA.uri);
}

#[test]
fn the_schedule_finds_what_the_python_sdk_does_not_push() {
    unpushed(Kind::PythonMcp, "legacy");
}

#[test]
fn the_schedule_finds_what_nobody_asked_to_be_pushed() {
    unpushed(Kind::Typescript, "modern");
}

#[test]
fn the_schedule_finds_what_the_memory_server_was_not_told() {
    let Some(peer) = Peer::new(Kind::Memory, Over::Stdio) else { return };
    let entity = |observation: &str| {
        let line = serde_json::json!({
            "type": "entity",
            "name": "Ottilie",
            "entityType": "person",
            "observations": [observation],
        });
        peer.put("memory.jsonl", &format!("{line}\n"));
    };
    entity("repairs theodolites");
    let daemon = Daemon::start(&peer.config("peer", OFTEN));
    daemon.live("peer");
    daemon.found("theodolites", "memory://knowledge-graph");
    entity("collects astrolabes");
    daemon.found("astrolabes", "memory://knowledge-graph");
    gone(&daemon, "theodolites", "memory://knowledge-graph");
}
