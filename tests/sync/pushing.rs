//! Notifications without need, sense or end.

use serde_json::json;

use crate::bench::Bench;
use crate::peers::{Peer, Reply, stdio};

const ERAS: [&str; 2] = ["protocol = \"legacy\"", "protocol = \"modern\""];

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_after_one_addition_is_a_listing_or_two() {
    for era in ERAS {
        let peer = Peer::of([("a://1", "basalt")]);
        let served = stdio::Served::new(peer.clone());
        let bench = Bench::with_limits("relist_interval = \"10s\"", served.config("s", era)).await;
        bench.live("s").await;
        let before = peer.count("resources/list");
        peer.put("a://2", "new basalt");
        for _ in 0..12 {
            peer.list_changed();
        }
        bench.finds("basalt", &["a://1", "a://2"]).await;
        assert!(peer.count("resources/list") - before <= 2);
        assert_eq!(peer.reads("a://1"), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_that_are_none_are_listed_now_and_then_and_read_never() {
    let peer = Peer::of([("a://1", "basalt"), ("a://2", "gneiss")]);
    let served = stdio::Served::new(peer.clone());
    let bench = Bench::with_limits("relist_interval = \"1s\"", served.config("s", "")).await;
    bench.live("s").await;
    let started = std::time::Instant::now();
    let before = peer.count("resources/list");
    while peer.count("resources/list") < before + 3 {
        peer.list_changed();
        tokio::task::yield_now().await;
    }
    // The first at once, or with what is left of the interval; the others an interval apart.
    assert!(
        started.elapsed() >= std::time::Duration::from_millis(1_900),
        "{:?}",
        started.elapsed()
    );
    assert_eq!((peer.reads("a://1"), peer.reads("a://2")), (1, 1));
    let status = bench.status("s");
    assert!(status.counts.notifications > 3 && status.counts.connects == 1, "{status:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hints_of_a_server_that_says_it_has_none_are_hints() {
    let peer = Peer::of([("a://1", "basalt")]);
    peer.state().resources_capability = json!({"subscribe": false, "listChanged": false});
    let served = stdio::Served::new(peer.clone());
    let bench = Bench::start(served.config("s", ERAS[0])).await;
    bench.live("s").await;
    peer.put("a://1", "weathered gneiss");
    peer.updated("a://1");
    bench.finds("gneiss", &["a://1"]).await;
    bench.finds("basalt", &[]).await;
    assert_eq!(peer.count("resources/subscribe"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn hints_about_what_is_not_listed_make_no_documents() {
    for era in ERAS {
        let peer = Peer::of([("docs://guide", "basalt")]);
        peer.hook(|request| {
            // It can be read under any name, so reading would be believed.
            let text = format!("basalt of {}", request.uri);
            let text = json!({"contents": [{"uri": request.uri, "text": text}]});
            (request.method == "resources/read").then_some(Reply::Result(text))
        });
        let served = stdio::Served::new(peer.clone());
        let bench = Bench::start(served.config("s", era)).await;
        bench.live("s").await;
        for at in 0..500 {
            peer.updated(&format!("docs://unlisted/{at}"));
            peer.updated("docs://guide/");
            peer.updated("DOCS://guide");
            peer.updated("");
        }
        peer.put("docs://last", "basalt");
        peer.list_changed();
        bench.finds("basalt", &["docs://guide", "docs://last"]).await;
        bench.sync("s").await;
        assert_eq!(bench.resources("s").len(), 2);
        let read = |message: &&serde_json::Value| message["method"] == "resources/read";
        let state = peer.state();
        let strange = state.log.iter().filter(read).filter(|message| {
            !["docs://guide", "docs://last"].contains(&message["params"]["uri"].as_str().unwrap())
        });
        assert_eq!(strange.count(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_ends_with_the_last_text_after_a_handful_of_reads() {
    for era in ERAS {
        let peer = Peer::of([("a://1", "basalt"), ("a://2", "gneiss")]);
        let served = stdio::Served::new(peer.clone());
        let bench = Bench::with_limits(
            "relist_interval = \"1s\"\nreread_interval = \"1s\"",
            served.config("s", era),
        )
        .await;
        bench.live("s").await;
        let started = std::time::Instant::now();
        for at in 0..25_000 {
            if at % 1_000 == 0 {
                peer.put("a://1", &format!("basalt of round {at}"));
            }
            peer.updated("a://1");
            peer.list_changed();
        }
        peer.put("a://1", "the last schist");
        peer.updated("a://1");
        bench.finds("schist", &["a://1"]).await;
        bench
            .until("all have come", |bench| {
                (bench.status("s").counts.notifications == 50_001).then_some(())
            })
            .await;
        bench.sync("s").await;
        bench.finds("basalt", &[]).await;
        let seconds = started.elapsed().as_secs() as usize;
        assert!(peer.reads("a://1") <= 4 + seconds, "{} reads", peer.reads("a://1"));
        assert!(peer.count("resources/list") <= 5 + seconds);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_changes_all_the_time_does_not_starve_the_others() {
    let mut texts = vec![("a://busy".to_owned(), "basalt".to_owned())];
    texts.extend((0..50).map(|at| (format!("a://{at:02}"), "old gneiss".to_owned())));
    let peer = Peer::of(texts.iter().map(|(uri, text)| (uri.as_str(), text.as_str())));
    let served = stdio::Served::new(peer.clone());
    let bench =
        Bench::with_limits("reads_in_flight = 1\nreread_interval = \"0s\"", served.config("s", ""))
            .await;
    bench.live("s").await;
    // Each read of it finds it changed again.
    let changing = peer.clone();
    peer.hook(move |request| {
        if request.uri == "a://busy" && request.method == "resources/read" {
            changing.updated("a://busy");
        }
        None
    });
    peer.updated("a://busy");
    for (uri, _) in &texts[1..] {
        peer.put(uri, "new schist");
        peer.updated(uri);
    }
    bench
        .until("the others are read", |bench| (bench.hits("schist").len() == 50).then_some(()))
        .await;
    assert!(peer.reads("a://busy") > 2);
}
