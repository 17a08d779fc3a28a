//! Servers that misbehave, one kind a test: whatever a server does, its good resources are found
//! once, its fault shows in its status, and nobody else is harmed.
//!
//! What is proven closer to its mechanism isn't repeated here:
//!
//! | kind of fault | where it is tested |
//! |---|---|
//! | cursors that never advance, empty cursors, pages that fail, duplicates, lost and odd items | `listing` |
//! | everything gone at once, for good or by mistake | `listing`, `sync/plan.rs` |
//! | reads that fail, hang, are of many parts, hold odd bytes | `reading`, `source/mcp/framing.rs` |
//! | documents of a wrong type, in a wrong spelling, too large, or that crash their reader | `documents`, `tests/worker.rs` |
//! | noise, marks, long and endless lines on stdout, floods on stderr, early exits | `wire`, `source/mcp/transport/lines.rs` |
//! | children that don't start, don't end, get secrets | `wire`, `source/mcp/transport/child.rs` |
//! | notifications without need, sense, end or order | `pushing`, `source/mcp/hints.rs`, `sync/machine/tests.rs` |
//! | bodies without end, dropped sessions, refused event streams, redirects | `over_http` |
//! | any order of events, failures and restarts | `sync/machine/tests.rs` |
//! | clock changes, missed runs | `sync/schedule.rs` |
//! | how a config is saved, broken, restored; no inotify | `config/watch.rs`, `daemon` |
//! | stale sockets, other files in its place, a second daemon | `serve/socket/tests.rs`, `daemon/lock.rs`, `daemon` |
//! | an index that grows, a power loss, a full disk | `index/tantivy/tests.rs`, `index/writer/tests.rs` |
//! | a daemon that is killed | `tests/crash.rs` |

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod bench;
mod documents;
mod failing;
mod listing;
mod over_http;
#[allow(dead_code, reason = "each test target uses its part")]
#[path = "../peers/mod.rs"]
mod peers;
mod pushing;
mod reading;
mod telling;
mod wire;

/// What a peer's child runs.
#[test]
fn child() {
    peers::stdio::be_a_child();
}
