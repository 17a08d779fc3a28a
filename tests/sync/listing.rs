//! Listings that are wrong: too long, too short, endless, doubled, refused.

use std::collections::BTreeSet;

use serde_json::json;

use crate::bench::Bench;
use crate::peers::{NOT_FOUND, Peer, Reply, stdio};
use resdex::model::ServerState;
use resdex::sync::control::Event;

const ERAS: [&str; 2] = ["protocol = \"legacy\"", "protocol = \"modern\""];

fn three() -> Peer {
    Peer::of([("a://1", "first quartz"), ("a://2", "second quartz"), ("a://3", "third quartz")])
}

const ALL: [&str; 3] = ["a://1", "a://2", "a://3"];

fn item(uri: &str) -> serde_json::Value {
    json!({"uri": uri, "name": uri})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_that_never_advances_ends_the_listing_and_removes_nothing() {
    for era in ERAS {
        let peer = three();
        let served = stdio::Served::new(peer.clone());
        let bench = Bench::start(served.config("s", era)).await;
        bench.live("s").await;
        peer.hook(|request| {
            let page = json!({"resources": [item("a://1"), item("a://2")], "nextCursor": "more"});
            (request.method == "resources/list").then_some(Reply::Result(page))
        });
        let before = peer.count("resources/list");
        bench.sync("s").await;
        // The page, the page again; and perhaps the listing that is tried again by then.
        assert!(peer.count("resources/list") - before <= 4);
        let status = bench.error("s", "repeats a cursor").await;
        assert_eq!((status.state, status.listed, status.stale), (ServerState::Backoff, 2, 1));
        bench.finds("quartz", &ALL).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_cursor_that_repeats_ends_a_complete_listing() {
    let peer = three();
    peer.hook(|request| {
        let page = json!({"resources": ALL.map(item), "nextCursor": ""});
        (request.method == "resources/list").then_some(Reply::Result(page))
    });
    let served = stdio::Served::new(peer.clone());
    let bench = Bench::start(served.config("s", ERAS[0])).await;
    let status = bench.live("s").await;
    assert_eq!((status.listed, status.indexed), (3, 3));
    assert_eq!(peer.count("resources/list"), 2);
    bench.finds("quartz", &ALL).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_fails_removes_nothing() {
    for era in ERAS {
        let peer = three();
        let served = stdio::Served::new(peer.clone());
        let bench = Bench::start(served.config("s", era)).await;
        bench.live("s").await;
        peer.hook(|request| match (request.method, request.cursor) {
            ("resources/list", None) => Some(Reply::Result(
                json!({"resources": [item("a://1"), item("a://2")], "nextCursor": "2"}),
            )),
            ("resources/list", Some(_)) => Some(Reply::Error(-32603, "the disk is on fire")),
            _ => None,
        });
        bench.sync("s").await;
        let status = bench.error("s", "the disk is on fire").await;
        assert_eq!(status.stale, 1);
        let hits = bench.hits("quartz");
        let stale: Vec<&str> =
            hits.iter().filter(|hit| hit.stale).map(|hit| hit.uri.as_str()).collect();
        assert_eq!((hits.len(), stale), (3, vec!["a://3"]));
        // When the listing is well again, so is the resource.
        peer.unhook();
        bench
            .until("nothing is wrong any more", |bench| {
                let status = bench.status("s");
                (status.stale == 0 && status.last_error.is_none()).then_some(())
            })
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resources_that_are_gone_are_removed_few_at_once_and_many_when_confirmed() {
    for (era, count) in [(ERAS[0], 3), (ERAS[1], 30)] {
        let uris: Vec<String> = (0..count).map(|at| format!("a://{at:02}")).collect();
        let peer = Peer::of(uris.iter().map(|uri| (uri.as_str(), "quartz")));
        let served = stdio::Served::new(peer.clone());
        let bench = Bench::start(served.config("s", era)).await;
        assert_eq!(bench.live("s").await.indexed, count);
        for uri in &uris {
            peer.remove(uri);
        }
        peer.list_changed();
        bench.finds("quartz", &[]).await;
        bench
            .until("nothing is left of it", |bench| bench.resources("s").is_empty().then_some(()))
            .await;
        let status = bench.status("s");
        assert_eq!((status.counts.removed, status.withheld_removals), (count, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_empty_for_a_moment_loses_nothing() {
    let uris: Vec<String> = (0..30).map(|at| format!("a://{at:02}")).collect();
    let peer = Peer::of(uris.iter().map(|uri| (uri.as_str(), "quartz")));
    let served = stdio::Served::new(peer.clone());
    let bench = Bench::with_limits("removal_confirmation = \"1h\"", served.config("s", "")).await;
    bench.live("s").await;
    peer.hook(|request| {
        (request.method == "resources/list").then_some(Reply::Result(json!({"resources": []})))
    });
    peer.list_changed();
    bench
        .until("the removals are withheld", |bench| {
            (bench.status("s").withheld_removals == 30).then_some(())
        })
        .await;
    assert_eq!(bench.hits("quartz").len(), 30);
    assert!(bench.hits("quartz").iter().all(|hit| hit.stale));
    peer.unhook();
    peer.list_changed();
    bench
        .until("they are forgotten", |bench| {
            let status = bench.status("s");
            (status.withheld_removals == 0 && status.stale == 0).then_some(())
        })
        .await;
    assert_eq!(bench.status("s").counts.removed, 0);

    // Somebody who knows better needn't wait for the second listing.
    peer.hook(|request| {
        (request.method == "resources/list").then_some(Reply::Result(json!({"resources": []})))
    });
    bench.control.request_sync(&[], true);
    bench.finds("quartz", &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_uri_that_is_listed_again_and_again_is_one_document() {
    let peer = three();
    peer.hook(|request| {
        let again = json!({"uri": "a://1", "name": "again", "mimeType": "text/html"});
        let once_more = json!({"uri": "a://1", "name": "and again"});
        let page = match (request.method, request.cursor) {
            ("resources/list", None) => {
                json!({"resources": [item("a://1"), again, item("a://2")], "nextCursor": "2"})
            }
            ("resources/list", Some(_)) => json!({"resources": [item("a://3"), once_more]}),
            _ => return None,
        };
        Some(Reply::Result(page))
    });
    let served = stdio::Served::new(peer.clone());
    let bench = Bench::start(served.config("s", "")).await;
    let status = bench.live("s").await;
    bench.finds("quartz", &ALL).await;
    assert_eq!(peer.reads("a://1"), 1);
    let told = status.warnings.iter().filter(|warning| warning.contains("a://1 is listed 3 times"));
    assert_eq!(told.count(), 1, "{:?}", status.warnings);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_uri_on_two_servers_is_two_documents() {
    let peers = [("clock", "tells the hour in quartz"), ("zone", "tells the zone in quartz")]
        .map(|(name, text)| (name, Peer::of([("timezone://info", text)])));
    let served = peers.clone().map(|(name, peer)| (name, stdio::Served::new(peer)));
    let config: String = served.iter().map(|(name, served)| served.config(name, "")).collect();
    let mut bench = Bench::start(config).await;
    for (name, _) in &peers {
        bench.live(name).await;
    }
    let servers = |bench: &Bench| {
        let mut servers: Vec<String> =
            bench.hits("quartz").into_iter().map(|hit| hit.server).collect();
        servers.sort_unstable();
        servers
    };
    assert_eq!(servers(&bench), ["clock", "zone"]);
    // One is taken out of the config.
    bench.stop("clock").await;
    let gone = resdex::model::ServerName::new("clock").unwrap();
    bench.writer.apply(vec![resdex::index::Change::RemoveServer(gone)]).await.unwrap();
    assert_eq!(servers(&bench), ["zone"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_list_is_kept_and_left_alone() {
    let peer = Peer::default();
    peer.hook(|request| {
        (request.method.ends_with("list")).then_some(Reply::Error(-32601, "Method not found"))
    });
    let served = stdio::Served::new(peer.clone());
    let bench = Bench::start(served.config("s", "")).await;
    let status = bench
        .until("it is known to list nothing", |bench| {
            Some(bench.status("s")).filter(|status| status.state == ServerState::NoListing)
        })
        .await;
    assert_eq!(status.counts.connects, 1);
    let listings = peer.count("resources/list");
    assert_eq!(listings, 1);
    // Asked, it is asked; by itself it isn't.
    bench.sync("s").await;
    assert_eq!(peer.count("resources/list"), listings + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_capability_is_one() {
    for era in ERAS {
        let peer = three();
        peer.state().resources_capability = json!({});
        let served = stdio::Served::new(peer.clone());
        let bench = Bench::start(served.config("s", era)).await;
        let status = bench.live("s").await;
        assert_eq!((status.indexed, status.push.len()), (3, 0));
        assert_eq!(peer.count("resources/subscribe") + peer.count("subscriptions/listen"), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_listed_and_never_found_is_asked_for_seldom() {
    let peer = three();
    peer.hook(|request| {
        (request.uri == "a://2" && request.method == "resources/read").then_some(NOT_FOUND)
    });
    let served = stdio::Served::new(peer.clone());
    let limits = "retry_delay = \"1s\"\nmax_retry_delay = \"5m\"";
    let bench = Bench::with_limits(limits, served.config("s", "")).await;
    let status = bench.error("s", "a://2").await;
    assert_eq!(status.listed, 3);
    // Found by its name at least, with the reason; a read that never succeeded holds nothing up.
    bench
        .until("it is found by its name", |bench| {
            let resources = bench.resources("s");
            let row = resources.iter().find(|row| row.uri == "a://2")?;
            row.reason.as_ref()?.contains("couldn't be read").then_some(())
        })
        .await;
    bench.finds("quartz", &["a://1", "a://3"]).await;
    bench.live("s").await;
    // Every listing since the failure has found it listed; the read waits for its turn.
    for _ in 0..5 {
        peer.list_changed();
        let listings = peer.count("resources/list");
        bench
            .until("it is listed again", |_| {
                (peer.count("resources/list") > listings).then_some(())
            })
            .await;
    }
    assert!(peer.reads("a://2") <= 7, "{} reads", peer.reads("a://2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_servers_owner_is_warned_with_secrets_masked() {
    let peer = Peer::default();
    let served = stdio::Served::new(peer.clone());
    let bench = Bench::start(served.config("s", "")).await;
    bench.live("s").await;
    let mut events = bench.control.events();
    for (uri, text) in [
        ("https://ada:hunter2@site.example/a", "basalt"),
        ("file:///home/ada/b.md?token=hunter2", "gneiss"),
        // Listed as plain text, as all of them.
        (
            "a://3",
            "<!DOCTYPE html><html><head><title>T</title></head><body><p>schist</p></body></html>",
        ),
    ] {
        peer.put(uri, text);
    }
    for item in &mut peer.state().listed {
        item["name"] = json!("notes");
    }
    peer.put("a://4", "marl");
    peer.state().listed[3]["name"] = json!("");
    peer.list_changed();
    let warnings = bench
        .until("the last of the warnings", |bench| {
            let warnings = bench.status("s").warnings;
            warnings.iter().any(|warning| warning.contains("MIME")).then_some(warnings)
        })
        .await;
    let all = warnings.join("\n");
    for said in [
        "1 resources have no name",
        "2 URIs with credentials, such as https://***@site.example/a",
        "1 URI with the path of somebody's home folder, such as file:///home/***/b.md?token=***",
        "3 resources with the name of another, such as \"notes\"",
        "1 resource of another MIME type than is declared, such as a://3",
    ] {
        assert!(all.contains(said), "{said} isn't in\n{all}");
    }
    assert!(!all.contains("hunter2") && !all.contains("ada"), "{all}");
    let mut told = BTreeSet::new();
    let mut drain = || {
        let mut new = 0;
        while let Ok(event) = events.try_recv() {
            if let Event::Warning { message, .. } = event {
                new += usize::from(told.insert(message));
            }
        }
        new
    };
    assert_eq!(drain(), 5, "events tell what the status shows");
    bench.sync("s").await;
    assert_eq!(drain(), 0, "the same again is no news");
    assert_eq!(bench.status("s").warnings, warnings);
    assert!(told.iter().all(|told| warnings.contains(told)), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_capability_is_taken_up_and_a_lost_listing_removes_nothing() {
    let peer = three();
    peer.state().resources_capability = json!({});
    let served = stdio::Served::new(peer.clone());
    let bench = Bench::start(served.config("s", ERAS[0])).await;
    bench.live("s").await;
    assert_eq!(peer.count("resources/subscribe"), 0);

    // It comes back with push: what it lists is subscribed to.
    peer.state().resources_capability = json!({"subscribe": true, "listChanged": true});
    peer.hang_up();
    bench
        .until("three subscriptions", |_| (peer.count("resources/subscribe") == 3).then_some(()))
        .await;
    bench.live("s").await;
    peer.put("a://1", "first garnet");
    peer.updated("a://1");
    bench.finds("garnet", &["a://1"]).await;

    // It comes back without a listing.
    peer.hook(|request| {
        (request.method == "resources/list").then_some(Reply::Error(-32601, "Method not found"))
    });
    peer.hang_up();
    bench
        .until("it lists nothing", |bench| {
            let status = bench.status("s");
            (status.state == ServerState::NoListing && status.stale == 3).then_some(())
        })
        .await;
    bench.sync("s").await;
    bench.finds("quartz", &ALL[1..]).await;
    assert!(bench.hits("garnet")[0].stale);

    peer.unhook();
    bench.sync("s").await;
    assert_eq!(bench.live("s").await.stale, 0);
}
