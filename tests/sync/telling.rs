//! What is told of the sync as it happens.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::bench::Bench;
use crate::peers::{NOT_FOUND, Peer, Reply, stdio};
use resdex::sync::control::Event;
use tokio::sync::broadcast::Receiver;

/// Everything that was told so far, by kind.
#[derive(Default)]
struct Told(BTreeMap<String, Vec<Value>>);

impl Told {
    fn take(&mut self, events: &mut Receiver<Event>) -> &mut Self {
        while let Ok(event) = events.try_recv() {
            let event = serde_json::to_value(event).unwrap();
            let kind = event["event"].as_str().unwrap().to_owned();
            self.0.entry(kind).or_default().push(event);
        }
        self
    }

    fn has(&self, kind: &str, field: &str, value: &Value) -> bool {
        self.0.get(kind).into_iter().flatten().any(|event| event[field] == *value)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_happens_is_told() {
    let peer = Peer::default();
    let served = stdio::Served::new(peer.clone());
    let limits = "removal_confirmation = \"1h\"";
    let bench = Bench::with_limits(limits, served.config("s", "")).await;
    bench.live("s").await;
    let (mut events, mut told) = (bench.control.events(), Told::default());

    let pages: Vec<String> = (0..5).map(|page| format!("a://{page}")).collect();
    for uri in &pages {
        peer.put(uri, "basalt");
    }
    peer.list_changed();
    let all: Vec<&str> = pages.iter().map(String::as_str).collect();
    bench.finds("basalt", &all).await;
    bench
        .until("the new ones are told", |_| {
            let told = told.take(&mut events);
            pages
                .iter()
                .all(|uri| {
                    let uri = Value::from(uri.as_str());
                    told.has("read", "uri", &uri) && told.has("indexed", "uri", &uri)
                })
                .then_some(())
        })
        .await;
    assert!(told.has("listing", "cause", &"notification".into()), "{:?}", told.0);

    peer.remove("a://0");
    peer.list_changed();
    bench
        .until("the removal is told", |_| {
            told.take(&mut events).has("removed", "uri", &"a://0".into()).then_some(())
        })
        .await;

    peer.hook(|request| (request.uri == "a://1").then_some(NOT_FOUND));
    peer.updated("a://1");
    bench
        .until("the failure is told", |_| {
            let told = told.take(&mut events);
            let errors = told.0.get("error")?;
            errors.iter().find(|error| error["message"].as_str().unwrap().contains("a://1"))?;
            Some(())
        })
        .await;

    peer.hook(|request| {
        let empty = serde_json::json!({"resources": []});
        (request.method == "resources/list").then_some(Reply::Result(empty))
    });
    peer.list_changed();
    bench
        .until("what is withheld is told", |_| {
            told.take(&mut events).has("withheld", "removals", &4.into()).then_some(())
        })
        .await;

    peer.unhook();
    peer.hang_up();
    bench
        .until("the reconnection is told", |_| {
            let told = told.take(&mut events);
            (told.has("reconnect", "attempt", &1.into())
                && told.has("state", "state", &"backoff".into())
                && told.has("state", "state", &"live".into()))
            .then_some(())
        })
        .await;
    let kinds: Vec<&str> = told.0.keys().map(String::as_str).collect();
    for kind in ["error", "indexed", "listing", "read", "reconnect", "removed", "state", "withheld"]
    {
        assert!(kinds.contains(&kind), "{kind} isn't in {kinds:?}");
    }
}
