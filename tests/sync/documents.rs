//! What servers send, in whatever format, type and size: opened, corrected, cut, or refused with the reason.

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
use resdex::serve::api::{OutcomeKind, ReadResponse};
use resdex::serve::scope::Caller;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::peers::{Peer, stdio};

const ERA: &str = "protocol = \"modern\"";

fn text(uri: &str, mime_type: &str, text: &str) -> Value {
    json!([{"uri": uri, "mimeType": mime_type, "text": text}])
}

/// A peer whose resources are listed with the types that their contents have.
fn typed<const N: usize>(contents: [Value; N]) -> Peer {
    let uris = contents.each_ref().map(|content| content[0]["uri"].as_str().unwrap().to_owned());
    let peer = Peer::of(uris.each_ref().map(|uri| (uri.as_str(), "")));
    {
        let mut state = peer.state();
        for (uri, contents) in uris.into_iter().zip(contents) {
            let listed = state.listed.iter_mut().find(|item| item["uri"] == uri).unwrap();
            listed["mimeType"] = contents[0]["mimeType"].clone();
            state.contents.insert(uri, contents);
        }
    }
    peer
}

/// What was made of a resource.
async fn read(bench: &Bench, uri: &str) -> ReadResponse {
    let request = serde_json::from_value(json!({"uri": uri, "extracted": true})).unwrap();
    bench.app.read(&Caller::owner("test"), request).await.unwrap()
}

/// A picture of one pixel, which a worker opens. What follows its end is none of it.
fn picture(uri: &str, after: &str) -> serde_json::Value {
    const GIF: &[u8] =
        b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
    let bytes = [GIF, after.as_bytes()].concat();
    json!([{"uri": uri, "mimeType": "image/gif", "blob": BASE64_STANDARD.encode(bytes)}])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_crashed_the_worker_is_skipped_until_it_changes() {
    for (fault, words) in [
        ("fault://panic", "is broken in an unexpected way"),
        ("fault://overflow", "nested too deeply"),
    ] {
        let peer = Peer::of([("a://picture", ""), ("a://words", "feldspar")]);
        // The content's own URI is what has the worker fail.
        peer.state().contents.insert("a://picture".into(), picture(fault, ""));
        let served = stdio::Served::new(peer.clone());
        let bench = Bench::start(served.config("s", ERA)).await;
        let before = bench.live("s").await;
        let row = |bench: &Bench| {
            bench.resources("s").into_iter().find(|row| row.uri == "a://picture").unwrap()
        };
        let skipped = row(&bench);
        assert!(
            skipped.reason.as_ref().is_some_and(|reason| reason.contains(words)),
            "{skipped:?}"
        );
        assert_eq!(bench.uris("feldspar"), ["a://words"]);

        // It is looked at, and not tried, again while it stays what it is.
        let reads = peer.reads("a://picture");
        let after = bench.sync("s").await;
        assert!(peer.reads("a://picture") > reads);
        assert!(after.counts.unchanged >= before.counts.unchanged + 2);
        assert_eq!(after.counts.indexed, before.counts.indexed);
        assert_eq!(
            (row(&bench).reason, row(&bench).indexed_at),
            (skipped.reason, skipped.indexed_at)
        );

        peer.state().contents.insert("a://picture".into(), picture("a://picture", "changed"));
        peer.updated("a://picture");
        bench.until("it is indexed", |bench| row(bench).reason.is_none().then_some(())).await;
        assert_eq!(bench.uris("GIF image"), ["a://picture"]);
    }
}

/// A type is that of the content, whatever is declared, and what the config doesn't want is found by name.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_types_are_corrected_and_unwanted_ones_are_named_only() {
    let peer = typed([
        text("a://words", "application/pdf", "feldspar of words\n"),
        text("a://rows.csv", "text/plain", "feldspar,b\n1,2\n"),
        picture("a://picture", ""),
        text("a://page", "Text/Markdown; charset=UTF-8", "# Feldspar\n\nof pages\n"),
    ]);
    peer.state().listed[2]["mimeType"] = "text/plain".into();
    let served = stdio::Served::new(peer.clone());
    let policy = "mime_types = [\"text/*\"]\nexclude_mime_types = [\"text/csv\"]";
    let bench = Bench::start(served.config("s", &format!("{}\n{policy}", ERA))).await;
    bench.live("s").await;
    let rows = bench.resources("s");
    let row = |uri: &str| {
        let row = rows.iter().find(|row| row.uri == uri).unwrap();
        (row.mime_type.as_deref().unwrap_or_default(), row.reason.as_deref().unwrap_or_default())
    };
    assert_eq!(row("a://words"), ("text/plain", ""));
    assert_eq!(row("a://page").1, "");
    let (mime_type, reason) = row("a://rows.csv");
    assert_eq!(mime_type, "text/csv");
    assert!(reason.starts_with("text/csv isn't indexed by the config"), "{reason}");
    let (mime_type, reason) = row("a://picture");
    assert_eq!(mime_type, "image/gif");
    assert!(reason.starts_with("image/gif isn't indexed by the config"), "{reason}");
    assert_eq!(bench.uris("feldspar"), ["a://page", "a://words"]);
    bench
        .until("the wrong type is said", |bench| {
            let warnings = bench.status("s").warnings;
            warnings
                .iter()
                .any(|w| w.contains("of another MIME type") && w.contains("a://words"))
                .then_some(())
        })
        .await;
    let read = read(&bench, "a://words").await;
    assert!(read.notes.contains(&"declared application/pdf, is text/plain".into()), "{read:?}");
}

/// Of `[sync]` and of the server; what either doesn't want isn't indexed.
#[tokio::test(flavor = "multi_thread")]
async fn the_rules_of_all_servers_and_of_one_hold_together() {
    let peer = || {
        let all = [
            ("text/markdown", "# Feldspar\n"),
            ("text/html", "<p>feldspar</p>"),
            ("text/x-rust", "fn feldspar() {}\n"),
            ("text/csv", "feldspar,b\n1,2\n"),
            ("application/json", "{\"feldspar\": 1}"),
        ];
        typed(all.map(|(essence, words)| text(&format!("a://{essence}"), essence, words)))
    };
    let (free, strict) = (stdio::Served::new(peer()), stdio::Served::new(peer()));
    let sync = "mime_types = [\"text/*\"]\nexclude_mime_types = [\"text/x-rust\"]\n";
    let policy = "mime_types = [\"text/html\", \"text/csv\", \"text/x-rust\", \"application/json\"]\n\
        exclude_mime_types = [\"TEXT/CSV\"]";
    let servers =
        [free.config("free", ERA), strict.config("strict", &format!("{}\n{policy}", ERA))];
    let bench = Bench::with_sync(sync, servers.concat()).await;
    for (server, expected) in [
        ("free", &["a://text/csv", "a://text/html", "a://text/markdown"][..]),
        ("strict", &["a://text/html"]),
    ] {
        bench.live(server).await;
        let rows = bench.resources(server);
        let mut indexed: Vec<_> =
            rows.iter().filter(|row| row.reason.is_none()).map(|row| row.uri.as_str()).collect();
        indexed.sort_unstable();
        assert_eq!(indexed, expected, "{server}: {rows:?}");
        for row in rows.iter().filter(|row| row.reason.is_some()) {
            let reason = row.reason.as_deref().unwrap_or_default();
            assert!(reason.contains("isn't indexed by the config"), "{reason}");
        }
    }
}

/// modelcontextprotocol/python-sdk#342, openclaw/openclaw#117321, IBM/mcp-context-forge#3051.
#[tokio::test(flavor = "multi_thread")]
async fn blobs_and_types_in_every_spelling_are_read_or_refused_never_garbled() {
    let blob =
        |uri: &str, blob: &str| json!([{"uri": uri, "mimeType": "text/plain", "blob": blob}]);
    // Its digits are other ones in the two alphabets.
    let said = "orthoclase >>>???>>>??? ~~~~ 退款";
    let url_safe = BASE64_URL_SAFE.encode(said);
    assert!(url_safe.contains('-') || url_safe.contains('_'), "{url_safe}");
    let html = "<html><body><p>mimehtml</p><script>var a = 'mimescript';</script></body></html>";
    let peer = typed([
        blob("a://url-safe", &url_safe),
        blob("a://broken", "b3J0aG9jbGFzZQ!!b3J0aG9jbGFzZQ"),
        text("a://parameter", "Text/Markdown; charset=UTF-8", "# A\n\nmimeword2\n"),
        text("a://page", "text/html", html),
    ]);
    let served = stdio::Served::new(peer.clone());
    let bench = Bench::start(served.config("s", ERA)).await;
    bench.live("s").await;
    assert_eq!(bench.uris("orthoclase"), ["a://url-safe"]);
    let decoded = read(&bench, "a://url-safe").await;
    assert_eq!(decoded.contents[0].text.as_deref(), Some(said));
    assert_eq!(bench.uris("mimeword2"), ["a://parameter"]);
    assert_eq!(bench.uris("mimehtml"), ["a://page"]);
    assert_eq!(bench.uris("mimescript"), Vec::<String>::new());
    let broken = bench.resources("s").into_iter().find(|row| row.uri == "a://broken").unwrap();
    let reason = broken.reason.unwrap();
    assert!(reason.starts_with("the blob of a://broken isn't base64"), "{reason}");
    assert_eq!(broken.outcome, OutcomeKind::Skipped);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_text_over_the_limit_the_ends_are_found_and_it_is_said() {
    let lines: String = (0..2000).map(|n| format!("line {n} of the log\n")).collect();
    let (first, last) = lines.split_at(lines.len() / 2);
    let log = format!("feldspar begins\n{first}orthoclase within\n{last}plagioclase ends\n");
    let chinese = log.replace("line", "日志行");
    let (gb18030, ..) = encoding_rs::GB18030.encode(&chinese);
    let peer = typed([
        text("a://x.log", "text/plain", &log),
        text("a://x.rs", "text/plain", &log),
        // A log is one as a blob as well, whatever blobs may have that are opened.
        json!([{"uri": "a://y.log", "blob": BASE64_STANDARD.encode(gb18030)}]),
    ]);
    let served = stdio::Served::new(peer.clone());
    let bench = Bench::with_limits(
        "max_text_bytes = \"16KiB\"\nmax_blob_bytes = \"1KiB\"",
        served.config("s", ERA),
    )
    .await;
    bench.live("s").await;
    assert_eq!(bench.uris("feldspar"), ["a://x.log", "a://x.rs", "a://y.log"]);
    assert_eq!(bench.uris("orthoclase"), Vec::<String>::new());
    // Of logs the end says as much as the beginning, of code it doesn't.
    assert_eq!(bench.uris("plagioclase"), ["a://x.log", "a://y.log"]);
    for (uri, note) in [
        ("a://x.log", "lines in the middle"),
        ("a://x.rs", "only the first"),
        ("a://y.log", "lines in the middle"),
    ] {
        let read = read(&bench, uri).await;
        assert!(read.truncated, "{uri}");
        assert!(read.notes.iter().any(|said| said.contains(note)), "{:?}", read.notes);
    }
}
