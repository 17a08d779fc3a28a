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
fn killed_and_started_again() {
    let Some(mut peer) = Peer::new(Kind::PythonMcp, Over::Http) else { return };
    peer.write(&[ALPHA, BETA]);
    let daemon = Daemon::start(&peer.config("peer", ""));
    let before = daemon.live("peer");
    daemon.found("vermilion pier", ALPHA.uri);
    // What is live is on disk within two seconds; a word from the status says that it is.
    let known = before["indexed"].as_u64().unwrap();
    daemon.wait_until("the index is on disk", |daemon| {
        let status = daemon.ask(&["status"])?;
        status["index"]["last_commit"].as_str().map(drop)
    });
    let stopped = daemon.kill();

    // The server is away when the daemon comes back, so whatever is found is from its index.
    peer.stop();
    peer.write(&[Note { text: "The ferry leaves from the cerulean pier.", ..ALPHA }, BETA]);
    let daemon = stopped.start();
    assert_eq!(daemon.search("vermilion pier")[0].uri, ALPHA.uri, "the first search of all");
    assert_eq!(daemon.search("quartermaster")[0].uri, "guide://onboarding");
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
