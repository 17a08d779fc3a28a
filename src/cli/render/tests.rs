use chrono::Duration;
use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::model::ServerError;
use crate::serve::api::{ConfigStatus, IndexStatus, OutcomeKind, OutlineItem, TemplateItem};
use crate::serve::fake::time;
use crate::serve::tests::server_status;

const PLAIN: Look = Look { colour: false, width: 60 };
const COLOUR: Look = Look { colour: true, width: 60 };

fn found(rank: usize, title: &str, uri: &str, snippet: &str) -> Hit {
    Hit {
        rank,
        server: "handbook".into(),
        uri: uri.into(),
        title: title.into(),
        mime_type: Some("text/markdown".into()),
        score: 1.0,
        relevance: 0.5,
        passage: Passage {
            heading_path: vec!["Orders".into(), "Refunds".into()],
            start_line: Some(3),
            end_line: Some(9),
            page: None,
            part: None,
            snippet: snippet.into(),
            highlights: vec![],
        },
        passages: None,
        duplicates: None,
        stale: false,
        indexed_at: time(),
        untrusted: true,
        explanation: None,
    }
}

fn check_hits(found: Vec<Hit>, expected: Expect) {
    let answer = SearchResponse { request_id: "r".into(), took_ms: 1.0, more: false, hits: found };
    expected.assert_eq(&hits(&answer, PLAIN));
}

#[test]
fn hits_show_where_and_what() {
    let mut stale = found(10, "退款政策", "handbook:///退款.md", "退款需要十四天。");
    stale.stale = true;
    stale.passage = Passage {
        start_line: Some(4),
        end_line: Some(4),
        page: Some(2),
        heading_path: vec![],
        ..stale.passage
    };
    let mut named = found(11, "logo.png", "handbook:///logo.png", "Our logo");
    named.passage = Passage { snippet: "Our logo".into(), ..Passage::default() };
    check_hits(
        vec![
            found(9, "Refunds", "handbook:///refunds.md", "A refund takes 14 days."),
            stale,
            named,
        ],
        expect![[r#"
            9. Refunds
               handbook handbook:///refunds.md
               Orders › Refunds · lines 3–9
               A refund takes 14 days.

            10. 退款政策 (stale)
                handbook handbook:///退款.md
                page 2 · line 4
                退款需要十四天。

            11. logo.png
                handbook handbook:///logo.png
                Our logo
        "#]],
    );
}

#[test]
fn what_strangers_wrote_never_steers_a_terminal() {
    let evil = "\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}x\r";
    let mut hit = found(1, evil, evil, evil);
    hit.server = evil.into();
    hit.passage.heading_path = vec![evil.into()];
    hit.explanation = Some(json!({evil: evil}));
    let answer =
        SearchResponse { request_id: evil.into(), took_ms: 1.0, more: false, hits: vec![hit] };
    let mut server = server_status(evil, ServerState::Failed);
    server.push = vec![evil.into()];
    server.warnings = vec![evil.into()];
    server.last_error =
        Some(ServerError { message: evil.into(), hint: Some(evil.into()), at: time() });
    let reading = ReadResponse {
        server: evil.into(),
        uri: evil.into(),
        contents: vec![
            ReadContent {
                uri: evil.into(),
                mime_type: None,
                text: Some(evil.into()),
                blob: None,
            };
            2
        ],
        stale: true,
        truncated: false,
        next_lines: None,
        outline: None,
        notes: vec![],
    };
    let row = ResourceItem {
        server: evil.into(),
        uri: evil.into(),
        title: evil.into(),
        mime_type: Some(evil.into()),
        size: None,
        outcome: OutcomeKind::Skipped,
        reason: Some(evil.into()),
        stale: true,
        indexed_at: time(),
    };
    let template = TemplateItem {
        server: evil.into(),
        uri_template: evil.into(),
        title: evil.into(),
        description: Some(evil.into()),
        expanded: 0,
        variables: vec![],
        followed: vec![],
    };
    let shown = [
        hits(&answer, PLAIN),
        servers(&[server], time(), PLAIN),
        super::reading(&reading, PLAIN),
        resources(&ResourcesResponse { resources: vec![row], next_cursor: None }, PLAIN),
        templates(&TemplatesResponse { templates: vec![template] }, PLAIN),
        started(&SyncResponse { started: vec![evil.into()] }),
        event(&json!({"event": evil, "server": evil, "uri": evil, evil: [evil]}), time(), PLAIN),
    ];
    for shown in shown {
        assert!(shown.contains("owned"), "{shown:?}");
        let bad: Vec<char> =
            shown.chars().filter(|c| *c != '\n' && (c.is_control() || *c == '\u{202e}')).collect();
        assert!(bad.is_empty(), "{bad:?} in {shown:?}");
    }
}

#[test]
fn status_is_a_table_and_what_to_do() {
    let now = time() + Duration::seconds(125);
    let live = ServerStatus {
        listed: 1234,
        push: vec!["updated".into(), "list_changed".into()],
        next_sync: Some(now + Duration::minutes(13)),
        ..server_status("手册", ServerState::Live)
    };
    let failed = ServerStatus {
        last_error: Some(ServerError {
            message: "npx: no such command\nPATH=/usr/bin".into(),
            hint: Some("install Node.js, or give the full path".into()),
            at: time(),
        }),
        push: vec![],
        last_sync: None,
        ..server_status("docs", ServerState::Failed)
    };
    let withheld =
        ServerStatus { withheld_removals: 40, ..server_status("wiki", ServerState::Live) };
    let unset = server_status("linear", ServerState::NeedsAuth);
    let answer = StatusResponse {
        version: "0.1.0".into(),
        pid: 7,
        uptime_s: 11_520,
        index: IndexStatus {
            resources: 1,
            chunks: 5_678,
            bytes: 12_900_000,
            last_commit: Some(time()),
            paused: Some("less than 1 GiB is free".into()),
            rebuilding: None,
        },
        config: ConfigStatus { error: Some("a.toml:3: broken".into()), warnings: vec![] },
        servers: vec![live, failed, withheld, unset],
    };
    expect![[r#"
        resdex 0.1.0, up 3 h 12 min, pid 7
        1 resource in 5,678 passages, 12.3 MiB; last commit 2 min ago
        writing pauses: less than 1 GiB is free
        the changed config can't be used; the config before it is in force:
          a.toml:3: broken

        SERVER  STATE       LISTED  INDEXED  SKIPPED  STALE  PUSH                   LAST SYNC  NEXT
        手册    live        1,234   2        1        0      updated, list_changed  2 min ago  in 13 min
        docs    failed      3       2        1        0      -                      -          -
        wiki    live        3       2        1        0      updated                2 min ago  -
        linear  needs_auth  3       2        1        0      updated                2 min ago  -

        docs
          npx: no such command
          PATH=/usr/bin (2 min ago)
          → install Node.js, or give the full path

        wiki
          40 resources gone from its listing at once; kept until a second listing agrees
          → if that is right: resdex sync wiki --confirm

        linear
          needs_auth
          → set the credentials that it wants in its `headers` or `env`
    "#]]
    .assert_eq(&status(&answer, now, PLAIN));
    assert!(status(&answer, now, COLOUR).contains("\u{1b}[32mlive"));
    assert_eq!(servers(&[], now, PLAIN), "no servers are configured\n");
}

#[test]
fn lists_give_reasons() {
    let item = |uri: &str, reason: Option<&str>| ResourceItem {
        server: "handbook".into(),
        uri: uri.into(),
        title: "A title".into(),
        mime_type: None,
        size: Some(2048),
        outcome: OutcomeKind::Indexed,
        reason: reason.map(Into::into),
        stale: false,
        indexed_at: time(),
    };
    let page = ResourcesResponse {
        resources: vec![item("x:///退款.md", None), item("x:///a", Some("image/png has no text"))],
        next_cursor: None,
    };
    expect![[r#"
        handbook  x:///退款.md  -  2.0 KiB  A title
        handbook  x:///a        -  2.0 KiB  A title  skipped: image/png has no text
    "#]]
    .assert_eq(&resources(&page, PLAIN));
}

#[test]
fn readings_are_text_or_an_outline() {
    let content = |text: Option<&str>, blob: Option<&str>| ReadContent {
        uri: "x:///a".into(),
        mime_type: Some("image/png".into()),
        text: text.map(Into::into),
        blob: blob.map(Into::into),
    };
    let reading = |contents, outline| ReadResponse {
        server: "s".into(),
        uri: "x:///a".into(),
        contents,
        stale: false,
        truncated: false,
        next_lines: None,
        outline,
        notes: vec![],
    };
    let shown = |response: ReadResponse| super::reading(&response, PLAIN);
    assert_eq!(shown(reading(vec![content(Some("a\tb\nก"), None)], None)), "a\tb\nก\n");
    assert_eq!(shown(reading(vec![content(Some(""), None)], None)), "");
    expect![[r#"
        ── x:///a ──
        a
        ── x:///a ──
        [image/png, 3 B: --extracted shows its text, --json has it as base64]
    "#]]
    .assert_eq(&shown(reading(vec![content(Some("a"), None), content(None, Some("AAAA"))], None)));
    let heading = |level, heading: &str, start_line| OutlineItem {
        level,
        heading: heading.into(),
        start_line,
        end_line: start_line + 4,
        tokens: 1200,
        part: None,
    };
    let outline = vec![heading(1, "Orders", 1), heading(2, "退款", 6)];
    expect![[r#"
        Orders  lines 1-5   1,200 tokens
          退款  lines 6-10  1,200 tokens
    "#]]
    .assert_eq(&shown(reading(vec![], Some(outline))));
}

#[test]
fn events_are_lines() {
    for (value, expected) in [
        (
            json!({"event": "indexed", "server": "wiki", "uri": "wiki://退款"}),
            "14:13:20 indexed wiki wiki://退款\n",
        ),
        (
            json!({"event": "listing", "server": "wiki", "cause": "startup", "resources": 3, "complete": true}),
            "14:13:20 listing wiki cause=startup resources=3 complete=true\n",
        ),
        (
            json!({"event": "error", "server": "wiki", "message": "gone"}),
            "14:13:20 error wiki gone\n",
        ),
        (
            json!({"event": "reload", "added": ["a"], "changed": [], "removed": [], "error": null}),
            "14:13:20 reload added=[\"a\"] changed=[] removed=[]\n",
        ),
        (json!({"event": "lagged", "missed": 7}), "14:13:20 lagged missed=7\n"),
        (json!(3), "14:13:20 event\n"),
    ] {
        assert_eq!(event(&value, time(), PLAIN), expected);
    }
}

#[test]
fn numbers_are_readable() {
    assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    assert_eq!(
        [0, 1023, 1024, 1 << 20, 5 << 40].map(size),
        ["0 B", "1023 B", "1.0 KiB", "1.0 MiB", "5.0 TiB"]
    );
    assert_eq!(
        [0, 59, 60, 3_600, 90_000].map(duration),
        ["0 s", "59 s", "1 min", "1 h 0 min", "1 d 1 h"]
    );
}
