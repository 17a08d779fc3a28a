//! A daemon that dies in the middle of its work: at every point that is worth a name, and at any
//! moment. What it leaves opens by itself, holds every document once and whole, and the next start
//! brings it up to date.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

#[path = "common/daemon.rs"]
mod daemon;
#[allow(dead_code, reason = "each test target uses its part")]
mod peers;

use std::collections::{BTreeMap, HashSet};
use std::fmt::Debug;
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use daemon::{Daemon, Stopped};
use peers::{Peer, http};
use resdex::config::IndexConfig;
use resdex::index::IndexStore;
use resdex::index::tantivy::TantivyStore;
use resdex::model::{Outcome, ServerName};
use rustix::process::{Signal, kill_process};

/// Kills at random moments, unless `RESDEX_CRASH_CYCLES` says another number.
const CYCLES: usize = 40;

/// What the moments and the changes are drawn from, unless `RESDEX_CRASH_SEED` says another number.
const SEED: u64 = 7;

/// A number from the environment, for longer runs by hand.
fn from_environment<T: FromStr<Err: Debug>>(name: &str, otherwise: T) -> T {
    std::env::var(name).map_or(otherwise, |number| number.parse().expect(name))
}

const LIMITS: &str = "[limits]\nrelist_interval = \"20ms\"\nreread_interval = \"20ms\"\n\
    removal_confirmation = \"20ms\"\nretry_delay = \"20ms\"\nmin_free_disk_bytes = 0\n\
    min_free_disk_percent = 0\n";

/// What child processes of `peers::stdio` would run; there are none here.
#[test]
fn child() {
    peers::stdio::be_a_child();
}

/// A server whose pages have revisions, and what of it an index may hold.
struct Pages {
    peer: Peer,
    /// The revision of each page that is there.
    revisions: BTreeMap<usize, usize>,
    /// The least revision that the index may hold of a page, from what it held before.
    held: BTreeMap<usize, usize>,
    random: u64,
    next_page: usize,
}

fn uri(page: usize) -> String {
    format!("page://{page}")
}

/// Long enough for several chunks, each of which tells page and revision.
fn text(page: usize, revision: usize) -> String {
    let line =
        format!("page{page} revision{revision} says a sentence that is long enough to count.\n");
    (0..40).map(|at| format!("{at} {line}{}", if at % 5 == 4 { "\n" } else { "" })).collect()
}

impl Pages {
    fn new(pages: usize, seed: u64) -> Self {
        let (revisions, held) = (BTreeMap::new(), BTreeMap::new());
        let mut all =
            Self { peer: Peer::default(), revisions, held, random: seed, next_page: pages };
        for page in 0..pages {
            all.write(page, 0);
        }
        all
    }

    /// From 0 to below `most`. The same numbers for the same seed.
    fn random(&mut self, most: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (self.random >> 33) as usize % most
    }

    fn write(&mut self, page: usize, revision: usize) {
        self.peer.put(&uri(page), &text(page, revision));
        self.revisions.insert(page, revision);
    }

    /// Changes a page, tells of it, and now and then takes one away for a new one.
    fn change(&mut self) {
        let nth = self.random(self.revisions.len());
        let (page, revision) = self.revisions.iter().nth(nth).map(|(p, r)| (*p, *r)).unwrap();
        if self.random(8) == 0 {
            self.peer.remove(&uri(page));
            self.revisions.remove(&page);
            self.held.remove(&page);
            let new = self.next_page;
            self.next_page += 1;
            self.write(new, 0);
            self.peer.list_changed();
        } else {
            self.write(page, revision + 1);
            self.peer.updated(&uri(page));
        }
    }

    /// Opens what a dead daemon left, and looks at all of it.
    fn check(&mut self, folder: &Path) {
        let state = folder.join("state/index");
        if !state.join("meta.json").exists() {
            assert!(self.held.is_empty(), "an index that was there is gone");
            return;
        }
        let store = TantivyStore::open(&state, &IndexConfig::default()).unwrap();
        let manifests = store.manifests(&ServerName::new("pages").unwrap()).unwrap();
        let stats = store.stats().unwrap();
        let chunks: u64 = manifests.iter().map(|manifest| u64::from(manifest.chunks)).sum();
        assert_eq!((stats.resources, stats.chunks), (manifests.len() as u64, chunks), "orphans");
        let (mut found, mut uris) = (BTreeMap::new(), HashSet::new());
        for manifest in &manifests {
            let entry = store.entry(&manifest.key).unwrap().expect("a manifest has its entry");
            assert_eq!(entry.chunks.len(), manifest.chunks as usize);
            assert!(uris.insert(manifest.key.uri.clone()), "{} twice", manifest.key.uri);
            if let Outcome::Skipped(reason) = &entry.outcome {
                // Listed, and gone before it was read: known by its name, until the next listing.
                assert!(entry.chunks.is_empty() && reason.contains("couldn't be read"), "{reason}");
                continue;
            }
            let whole: String = entry.chunks.iter().map(|chunk| chunk.text.as_str()).collect();
            let number = |word: &str| -> usize {
                let rest = &whole[whole.find(word).unwrap() + word.len()..];
                rest.split(' ').next().unwrap().parse().unwrap()
            };
            let (page, revision) = (number("page"), number("revision"));
            assert_eq!(*manifest.key.uri, *uri(page));
            assert_eq!(whole, peers::served(&uri(page), &text(page, revision)), "torn");
            found.insert(page, revision);
        }
        for (page, least) in &self.held {
            let revision = found.get(page).unwrap_or_else(|| panic!("page {page} is lost"));
            assert!(revision >= least, "page {page} fell back from {least} to {revision}");
        }
        // Those that the server still has may not go back from here.
        found.retain(|page, _| self.revisions.contains_key(page));
        self.held = found;
    }

    /// Waits until a daemon has all pages as they are.
    fn complete(&self, daemon: &Daemon) {
        daemon.wait_until("all is as the server has it", |daemon| {
            let server = daemon.server("pages");
            let all = self.revisions.len();
            (server["state"] == "live" && server["indexed"] == all && server["stale"] == 0)
                .then_some(())?;
            let of = |(page, revision): (&usize, &usize)| {
                let hits = daemon.search(&format!("\"page{page} revision{revision}\""));
                hits.len() == 1 && hits[0].uri == uri(*page)
            };
            self.revisions.iter().all(of).then_some(())
        });
    }
}

struct Bench {
    _runtime: tokio::runtime::Runtime,
    served: http::Served,
    pages: Pages,
}

fn bench(pages: usize, seed: u64) -> Bench {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let pages = Pages::new(pages, seed);
    let served = runtime.block_on(http::Served::new(pages.peer.clone()));
    Bench { _runtime: runtime, served, pages }
}

impl Bench {
    fn config(&self) -> String {
        format!("{LIMITS}{}", self.served.config("pages", "protocol = \"legacy\""))
    }
}

#[test]
fn dying_at_any_moment_leaves_an_index_that_is_right() {
    let cycles = from_environment("RESDEX_CRASH_CYCLES", CYCLES);
    let mut bench = bench(30, from_environment("RESDEX_CRASH_SEED", SEED));
    let mut stopped = Stopped::new(&bench.config());
    for _ in 0..cycles {
        let daemon = stopped.start_with(&[]);
        // The moment is what this is about, so here time decides: from before the index is opened
        // to some commits after.
        let moment = Instant::now() + Duration::from_millis(bench.pages.random(1_500) as u64);
        while Instant::now() < moment {
            bench.pages.change();
            std::thread::sleep(Duration::from_millis(5));
        }
        // Now and then it is told to end, and killed for taking its time.
        if bench.pages.random(4) == 0 {
            kill_process(daemon.pid(), Signal::TERM).unwrap();
            std::thread::sleep(Duration::from_millis(bench.pages.random(300) as u64));
        }
        stopped = daemon.kill();
        bench.pages.check(stopped.folder());
    }
    let daemon = stopped.start();
    bench.pages.complete(&daemon);
    let stopped = daemon.stop();
    bench.pages.check(stopped.folder());
    assert_eq!(bench.pages.held, bench.pages.revisions);
}

#[test]
fn dying_at_every_point_leaves_an_index_that_is_right() {
    // Each with the times at which it is passed while some pages are read and changed.
    let points = [
        ("eras.written", 1),
        ("sync.listed", 1),
        ("sync.read", 1),
        ("sync.read", 17),
        ("writer.applied", 1),
        ("writer.applied", 11),
        ("index.prepared", 1),
        ("index.prepared", 3),
        ("index.committed", 1),
        ("index.committed", 3),
        ("index.written", 1),
        ("index.written", 2),
        ("index.persisted", 1),
        ("index.persisted", 2),
        ("sync.flushed", 1),
        ("sync.removed", 1),
    ];
    for (at, (point, times)) in points.into_iter().enumerate() {
        let mut bench = bench(20, at as u64);
        let mut stopped = Stopped::new(&bench.config());
        // Once at the first start, and once with an index and a server that has moved on.
        for round in 0..2 {
            if round == 1 {
                let daemon = stopped.start();
                bench.pages.complete(&daemon);
                stopped = daemon.stop();
                // The era is remembered by now: it is written once more when it is forgotten.
                let _ = std::fs::remove_file(stopped.folder().join("state/eras.json"));
            }
            let mut daemon =
                stopped.start_with(&[("RESDEX_FAIL_POINT", &format!("{point}:{times}"))]);
            let deadline = Instant::now() + Duration::from_secs(120);
            while !daemon.is_dead() {
                assert!(Instant::now() < deadline, "{point}:{times} is never passed");
                bench.pages.change();
                std::thread::sleep(Duration::from_millis(10));
            }
            assert_eq!(daemon.ended(), None, "killed, as by a signal");
            stopped = daemon.kill();
            bench.pages.check(stopped.folder());
        }
        let daemon = stopped.start();
        bench.pages.complete(&daemon);
        let stopped = daemon.stop();
        bench.pages.check(stopped.folder());
        assert_eq!(bench.pages.held, bench.pages.revisions, "after {point}");
    }
}

#[test]
fn a_panic_of_our_own_is_gone_by_itself() {
    let points = ["sync.listed:1", "sync.read:3", "sync.flushed:1"];
    let points =
        points.into_iter().chain(["writer.applied:2", "index.prepared:1", "index.committed:1"]);
    for (at, point) in points.enumerate() {
        let mut bench = bench(10, at as u64);
        let panics = format!("{point}:panic");
        let daemon =
            Stopped::new(&bench.config()).start_with(&[("RESDEX_FAIL_POINT", panics.as_str())]);
        daemon.wait_until("it answers", |daemon| daemon.ask(&["status"]));
        bench.pages.complete(&daemon);
        bench.pages.change();
        bench.pages.complete(&daemon);
        assert!(daemon.logged("at the fail point"), "{point} is never passed");
        let stopped = daemon.stop();
        bench.pages.check(stopped.folder());
        assert_eq!(bench.pages.held, bench.pages.revisions, "after {point}");
    }
}

#[test]
fn dying_while_a_server_is_taken_out_leaves_nothing_of_it() {
    for point in ["reload.ended", "reload.forgotten"] {
        let mut bench = bench(5, 1);
        let other = Peer::of([("other://1", "feldspar")]);
        let served = bench._runtime.block_on(http::Served::new(other));
        let both = format!("{}{}", bench.config(), served.config("other", ""));
        let mut daemon = Stopped::new(&both).start_with(&[("RESDEX_FAIL_POINT", point)]);
        daemon.wait_until("it answers", |daemon| daemon.ask(&["status"]));
        daemon.found("feldspar", "other://1");
        daemon.configure(&bench.config());
        assert_eq!(daemon.ended(), None, "killed, as by a signal");
        let daemon = daemon.kill().start();
        daemon.wait_until("nothing is left", |daemon| {
            daemon.search("feldspar").is_empty().then_some(())
        });
        bench.pages.complete(&daemon);
        let stopped = daemon.stop();
        bench.pages.check(stopped.folder());
        assert_eq!(bench.pages.held, bench.pages.revisions);
    }
}

#[test]
fn a_full_disk_pauses_the_writing_and_nothing_else() {
    let mut bench = bench(5, 1);
    let config = bench.config();
    let daemon = Daemon::start(&config);
    bench.pages.complete(&daemon);
    let paused = |daemon: &Daemon| {
        daemon.ask(&["status"]).unwrap()["index"]["paused"].as_str().map(str::to_owned)
    };
    assert_eq!(paused(&daemon), None);
    // More than any disk has.
    let full = config.replace("min_free_disk_bytes = 0", "min_free_disk_bytes = \"900000GiB\"");
    daemon.configure(&full);
    let others: Vec<usize> = (1..5).collect();
    let mut revision = 0;
    let reason = daemon.wait_until("the writing pauses", |daemon| {
        // Until the changed config is in force, changes are still written.
        revision += 1;
        bench.pages.write(0, revision);
        bench.pages.peer.updated(&uri(0));
        paused(daemon)
    });
    assert!(reason.contains("limits.min_free_disk_bytes"), "{reason}");
    let hits = daemon.search("page0");
    assert_eq!(hits.iter().filter(|hit| hit.uri == uri(0)).count(), 1, "{hits:?}");
    for page in others {
        assert_eq!(daemon.search(&format!("\"page{page} revision0\"")).len(), 1);
    }
    // A paused daemon ends when it is told to, and starts.
    let daemon = daemon.stop().start();
    daemon.found("\"page3 revision0\"", &uri(3));
    daemon.wait_until("the writing pauses again", paused);
    daemon.configure(&config);
    bench.pages.complete(&daemon);
    assert_eq!(paused(&daemon), None);
}
