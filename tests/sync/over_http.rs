//! What goes wrong over HTTP: bodies without end, lost sessions, refused streams.

use serde_json::Value;

use crate::bench::Bench;
use crate::peers::{Peer, Reply, http, stdio};
use resdex::model::ServerState;

const ERAS: [&str; 2] = ["protocol = \"legacy\"", "protocol = \"modern\""];

fn two() -> Peer {
    Peer::of([("a://1", "marl"), ("a://2", "marl")])
}

#[tokio::test(flavor = "multi_thread")]
async fn pushes_arrive_in_either_era() {
    for era in ERAS {
        let peer = two();
        let served = http::Served::new(peer.clone()).await;
        let bench = Bench::start(served.config("s", era)).await;
        bench.live("s").await;
        bench.finds("marl", &["a://1", "a://2"]).await;
        peer.put("a://1", "chalk");
        peer.updated("a://1");
        bench.finds("chalk", &["a://1"]).await;
        peer.put("a://3", "chalk");
        peer.list_changed();
        bench.finds("chalk", &["a://1", "a://3"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_without_end_is_cut() {
    const SENT: usize = 2 << 30;
    for status in [200, 500] {
        let peer = two();
        peer.hook(move |request| {
            let endless = Reply::Endless { status, bytes: SENT };
            (request.uri == "a://2" && request.method == "resources/read").then_some(endless)
        });
        let served = http::Served::new(peer.clone()).await;
        let limits = "max_message_bytes = \"1MiB\"\nretry_delay = \"1h\"\nmax_retry_delay = \"1h\"";
        let bench = Bench::with_limits(limits, served.config("s", ERAS[0])).await;
        let words = if status == 200 { "longer than 1048576 bytes" } else { "HTTP 500" };
        let status = bench.error("s", words).await;
        assert_eq!(status.counts.connects, 1);
        bench.finds("marl", &["a://1"]).await;
        // What the sockets' buffers took, and no more.
        let taken = peer.state().endless_bytes;
        assert!(taken < 64 << 20, "{taken} bytes were taken");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_dropped_is_begun_again() {
    let peer = two();
    let served = http::Served::new(peer.clone()).await;
    let bench = Bench::start(served.config("s", ERAS[0])).await;
    bench.live("s").await;
    assert_eq!(peer.count("resources/subscribe"), 2);
    peer.put("a://1", "chalk");
    peer.drop_session();
    bench.sync("s").await;
    bench.finds("chalk", &["a://1"]).await;
    bench.live("s").await;
    assert_eq!(peer.count("initialize"), 2);
    assert_eq!(peer.count("resources/subscribe"), 4);
    // The new subscriptions work.
    peer.put("a://2", "dolomite");
    peer.updated("a://2");
    bench.finds("dolomite", &["a://2"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_dropped_in_the_middle_of_a_sync_costs_another_round() {
    let uris: Vec<String> = (0..12).map(|at| format!("a://{at:02}")).collect();
    let peer = Peer::of(uris.iter().map(|uri| (uri.as_str(), "marl")));
    // Once while it subscribes, and once while it reads.
    let dropping = peer.clone();
    peer.hook(move |request| {
        let nth = match request.method {
            "resources/subscribe" => 10,
            "resources/read" => 20,
            _ => return None,
        };
        if dropping.count(request.method) == nth {
            dropping.drop_session();
        }
        None
    });
    let served = http::Served::new(peer.clone()).await;
    let bench = Bench::start(served.config("s", ERAS[0])).await;
    let uris: Vec<&str> = uris.iter().map(String::as_str).collect();
    bench.finds("marl", &uris).await;
    assert_eq!(bench.live("s").await.indexed, 12);
    peer.put("a://05", "dolomite");
    peer.updated("a://05");
    bench.finds("dolomite", &["a://05"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_the_event_stream_is_not_asked_again() {
    for status in [405, 400] {
        let peer = two();
        peer.state().get_status = Some(status);
        let served = http::Served::new(peer.clone()).await;
        let bench = Bench::start(served.config("s", ERAS[0])).await;
        let live = bench.live("s").await;
        assert_eq!(live.indexed, 2);
        // Nothing is pushed, so looking is all there is.
        peer.put("a://1", "chalk");
        bench.sync("s").await;
        bench.finds("chalk", &["a://1"]).await;
        let status = bench.sync("s").await;
        assert_eq!((status.counts.connects, status.push.len()), (1, 0));
        assert_eq!(peer.state().gets, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_ends_is_opened_again_and_what_was_missed_is_read() {
    for era in ERAS {
        let peer = two();
        let served = http::Served::new(peer.clone()).await;
        let bench = Bench::start(served.config("s", era)).await;
        bench.live("s").await;
        // Nobody is told of this.
        peer.hang_up();
        peer.put("a://1", "chalk");
        bench.finds("chalk", &["a://1"]).await;
        bench.live("s").await;
        peer.put("a://2", "dolomite");
        peer.updated("a://2");
        bench.finds("dolomite", &["a://2"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_servers_beside_a_good_one() {
    let good = two();
    let served = stdio::Served::new(good.clone());
    let mute = Peer::default();
    mute.hook(|_| Some(Reply::Silence));
    let mute_served = http::Served::new(mute.clone()).await;
    let nonsense = Peer::default();
    nonsense.hook(|_| Some(Reply::Result(Value::Null)));
    let nonsense_served = http::Served::new(nonsense.clone()).await;
    let config = [
        served.config("good", ""),
        mute_served.config("mute", ""),
        nonsense_served.config("nonsense", ""),
        "[servers.nobody]\nurl = \"http://127.0.0.1:1/mcp\"\n".into(),
        "[servers.missing]\ncommand = \"/no/such/program\"\n".into(),
    ];
    let bench = Bench::with_limits("connect_timeout = \"500ms\"", config.concat()).await;
    bench.live("good").await;
    for name in ["mute", "nonsense", "nobody", "missing"] {
        let status = bench
            .until(&format!("{name}'s fault shows"), |bench| {
                Some(bench.status(name)).filter(|status| status.last_error.is_some())
            })
            .await;
        assert_ne!(status.state, ServerState::Live);
    }
    good.put("a://2", "chalk");
    good.updated("a://2");
    bench.finds("chalk", &["a://2"]).await;
}
