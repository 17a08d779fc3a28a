//! A daemon that was killed answers from its index at once, and then finds what changed meanwhile.

use crate::daemon::Daemon;
use crate::peers::{Kind, Note, Over, Peer};

const ALPHA: Note = Note {
    uri: "notes://alpha",
    title: "Ferry",
    text: "The ferry leaves from the vermilion pier.",
};
const BETA: Note = Note { uri: "notes://beta", title: "Mill", text: "The mill grinds spelt." };

#[test]
fn stopped_and_started_again() {
    let Some(mut peer) = Peer::new(Kind::PythonMcp, Over::Http) else { return };
    peer.write(&[ALPHA, BETA]);
    let daemon = Daemon::start(&peer.config("peer", ""));
    let before = daemon.live("peer");
    let known = before["indexed"].as_u64().unwrap();
    let words = [
        ("vermilion pier", ALPHA.uri),
        ("spelt", BETA.uri),
        ("quartermaster", "guide://onboarding"),
        ("Ljubljana", "config://limits"),
        ("floorplan", "images://floorplan"),
    ];
    for (query, uri) in words {
        daemon.found(query, uri);
    }
    let stopped = daemon.stop();

    // The server is away when the daemon comes back, so whatever is found is from its index.
    peer.stop();
    peer.write(&[Note { text: "The ferry leaves from the cerulean pier.", ..ALPHA }, BETA]);
    let daemon = stopped.start();
    for (query, uri) in words {
        assert_eq!(daemon.search(query)[0].uri, uri, "{query} at once");
    }
    assert_ne!(daemon.server("peer")["state"], "live");

    peer.start();
    let hit = daemon.found("cerulean", ALPHA.uri);
    assert!(!hit.snippet.contains("vermilion"), "{hit:?}");
    let after = daemon.live("peer");
    assert_eq!(after["indexed"].as_u64().unwrap(), known);
    let counts = &after["counts"];
    assert_eq!(counts["indexed"], 1, "only what changed is indexed again: {after:#}");
    assert!(counts["unchanged"].as_u64().unwrap() >= 3, "the others were looked at: {after:#}");
    assert_eq!(counts["removed"], 0, "{after:#}");
}
