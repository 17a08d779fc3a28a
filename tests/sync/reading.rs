//! Reads that fail, hang, come in parts, or hold what text shouldn't hold.

use serde_json::json;

use crate::bench::Bench;
use crate::peers::{Peer, Reply, stdio};

const ERAS: [&str; 2] = ["protocol = \"legacy\"", "protocol = \"modern\""];

#[tokio::test(flavor = "multi_thread")]
async fn every_way_to_fail_keeps_the_last_good_text() {
    const CODES: [(&str, i32); 4] =
        [("a://-32002", -32002), ("a://-32602", -32602), ("a://-32603", -32603), ("a://0", 0)];
    for era in ERAS {
        let mut texts = CODES.map(|(uri, _)| (uri, "feldspar of old"));
        texts.sort_unstable();
        let peer = Peer::of(texts);
        let served = stdio::Served::new(peer.clone());
        let bench = Bench::start(served.config("s", era)).await;
        bench.live("s").await;
        peer.hook(|request| {
            let code = CODES.iter().find(|(uri, _)| *uri == request.uri)?.1;
            (request.method == "resources/read").then_some(Reply::Error(code, "no luck today"))
        });
        let status = bench.sync("s").await;
        assert_eq!(status.stale, 4);
        let hits = bench.hits("feldspar");
        assert!(hits.len() == 4 && hits.iter().all(|hit| hit.stale), "{hits:?}");

        // The one that a complete listing doesn't hold any more is gone.
        peer.remove("a://-32002");
        peer.list_changed();
        bench.finds("feldspar", &["a://-32602", "a://-32603", "a://0"]).await;
        // The others are well as soon as they can be read.
        peer.unhook();
        bench.sync("s").await;
        bench.until("none is stale", |bench| (bench.status("s").stale == 0).then_some(())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_finds_nothing_is_a_reason_to_list() {
    for code in [-32002, -32602] {
        let peer = Peer::of([("a://1", "feldspar"), ("a://2", "feldspar")]);
        let served = stdio::Served::new(peer.clone());
        let bench = Bench::start(served.config("s", ERAS[0])).await;
        bench.live("s").await;
        peer.hook(move |request| {
            let gone = request.method == "resources/read" && request.uri == "a://1";
            gone.then_some(Reply::Error(code, "Unknown resource"))
        });
        // Nothing tells that the list has changed.
        peer.remove("a://1");
        peer.updated("a://1");
        bench.finds("feldspar", &["a://2"]).await;
        assert_eq!(bench.resources("s").len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_is_never_answered_times_out_alone() {
    for era in ERAS {
        let texts = ["a://1", "a://2", "a://3", "a://4"].map(|uri| (uri, "feldspar"));
        let peer = Peer::of(texts);
        peer.hook(|request| (request.uri == "a://2").then_some(Reply::Silence));
        let served = stdio::Served::new(peer.clone());
        let bench = Bench::with_limits(
            "read_timeout = \"1s\"\nmax_retry_delay = \"5m\"\nretry_delay = \"1m\"",
            served.config("s", &format!("{era}\nsubscribe = [\"none://*\"]")),
        )
        .await;
        // The others are searchable while it is still waited for.
        bench.finds("feldspar", &["a://1", "a://3", "a://4"]).await;
        let status = bench.error("s", "no answer within").await;
        assert_eq!((status.counts.read_failures, status.counts.connects), (1, 1));
        bench
            .until("the request is cancelled", |_| {
                (peer.count("notifications/cancelled") == 1).then_some(())
            })
            .await;
        bench.live("s").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_parts_of_a_read_are_one_document() {
    let peer = Peer::of([("a://book", "")]);
    let parts = ["partone 卷一", "parttwo часть", "partthree"]
        .map(|text| json!({"uri": "a://book", "mimeType": "text/plain", "text": text}));
    peer.state().contents.insert("a://book".into(), json!(parts));
    let served = stdio::Served::new(peer.clone());
    let bench = Bench::start(served.config("s", "")).await;
    bench.live("s").await;
    for word in ["partone", "卷一", "parttwo", "часть", "partthree"] {
        assert_eq!(bench.uris(word), ["a://book"], "{word}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn control_characters_hold_nothing_up() {
    let peer =
        Peer::of([("a://1", "before\0\0nulword\u{1}\u{7f}\u{feff}end"), ("a://2", "feldspar")]);
    let served = stdio::Served::new(peer.clone());
    let bench = Bench::start(served.config("s", "")).await;
    assert_eq!(bench.live("s").await.indexed, 2);
    bench.finds("feldspar", &["a://2"]).await;
    bench.finds("nulword", &["a://1"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_utf8_cost_themselves_only() {
    for era in ERAS {
        let peer = Peer::of([("a://1", ""), ("a://2", "feldspar"), ("a://3", ""), ("a://4", "")]);
        peer.hook(|request| {
            // What comes before the text, the text's bytes, and the end.
            let answer = |text: &[u8]| {
                let head = format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"contents\":[{{\"uri\":\"{}\",\"text\":\"",
                    request.id, request.uri
                );
                Some(Reply::Bytes([head.as_bytes(), text, b"\"}]}}\n"].concat()))
            };
            match (request.method, request.uri) {
                ("resources/read", "a://1") => answer(b"euckr \xE9\xFF\xFE word"),
                ("resources/read", "a://3") => answer(b"surrogate \\ud83d word"),
                // Not JSON at all after its id.
                ("resources/read", "a://4") => {
                    let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{,,\n", request.id);
                    Some(Reply::Bytes(line.into_bytes()))
                }
                _ => None,
            }
        });
        let served = stdio::Served::new(peer.clone());
        let bench = Bench::start(served.config("s", era)).await;
        // Far sooner than the time limit of a read.
        let status = bench.error("s", "broken JSON").await;
        assert_eq!(status.counts.connects, 1);
        bench.finds("word", &["a://1", "a://3"]).await;
        bench.finds("feldspar", &["a://2"]).await;
        bench.live("s").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uris_and_links_from_a_server_are_never_fetched() {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let secret = format!("http://{}/secret", listener.local_addr().unwrap());
    let peer = Peer::of([(secret.as_str(), "public feldspar")]);
    {
        let mut state = peer.state();
        state.listed[0]["icons"] = json!([{"src": secret}]);
        let text = format!("[see]({secret}) ![look]({secret})");
        let link = json!({"type": "resource_link", "uri": secret, "name": "x", "text": text,
            "mimeType": "text/markdown"});
        state.listed.push(json!({"uri": "a://link", "name": "link"}));
        state.contents.insert("a://link".into(), json!([link]));
    }
    let served = stdio::Served::new(peer.clone());
    let bench = Bench::start(served.config("s", "")).await;
    bench.live("s").await;
    bench.sync("s").await;
    assert_eq!(bench.uris("feldspar"), [secret.as_str()]);
    let connected = futures::FutureExt::now_or_never(listener.accept());
    assert!(connected.is_none(), "somebody came to fetch it");
}
