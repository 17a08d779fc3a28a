//! Servers that misbehave for as long as they like, all at once: the daemon neither grows nor fills the
//! log, the good server beside them is followed, and with them goes all that they took.

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

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use daemon::Daemon;
use peers::{Peer, Reply, http, stdio};
use serde_json::json;

/// Rounds, unless `RESDEX_BOUNDED_ROUNDS` says another number. In each, every server misbehaves once
/// more at least.
const ROUNDS: usize = 30;
/// Until then everything has happened once.
const WARM: usize = 10;

/// Short waits, so that failures follow each other as fast as they can.
const LIMITS: &str = "[limits]\nrelist_interval = \"20ms\"\nreread_interval = \"20ms\"\nrecheck_interval = \"20ms\"\n\
    retry_delay = \"10ms\"\nmax_retry_delay = \"50ms\"\nconnect_timeout = \"2s\"\n\
    list_timeout = \"5s\"\nread_timeout = \"5s\"\nmax_pages = 20\n\
    min_free_disk_bytes = 0\nmin_free_disk_percent = 0\n";

/// What the peers' children run.
#[test]
fn child() {
    peers::stdio::be_a_child();
}

/// What a daemon takes.
#[derive(Clone, Copy, Debug)]
struct Taken {
    files: usize,
    descendants: usize,
    memory_kb: usize,
    log_lines: usize,
    log_bytes: usize,
}

fn taken(daemon: &Daemon) -> Taken {
    let process = format!("/proc/{}", daemon.pid().as_raw_nonzero());
    let status = fs::read_to_string(format!("{process}/status")).unwrap();
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let log = fs::read_to_string(daemon.folder().join("log")).unwrap();
    Taken {
        files: fs::read_dir(format!("{process}/fd")).unwrap().count(),
        descendants: descendants(daemon.pid().as_raw_nonzero().get()),
        memory_kb: memory.trim().trim_end_matches(" kB").parse().unwrap(),
        log_lines: log.lines().count(),
        log_bytes: log.len(),
    }
}

/// Processes that a process has started, and those that they have.
fn descendants(of: i32) -> usize {
    let parents: BTreeMap<i32, i32> = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // Behind the name, which may hold anything: the state, the parent.
            let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
            Some((pid, parent))
        })
        .collect();
    let is_of = |mut pid: i32| {
        while let Some(parent) = parents.get(&pid) {
            if *parent == of {
                return true;
            }
            pid = *parent;
        }
        false
    };
    parents.keys().filter(|pid| is_of(**pid)).count()
}

/// A server that tells of each of its starts in a file.
fn script(name: &str, script: &str) -> String {
    let script = format!("echo x >> {name}.starts; {script}");
    format!("[servers.{name}]\ncommand = \"sh\"\nargs = [\"-c\", {script:?}]\n")
}

#[test]
fn whatever_servers_do_the_daemon_stays_within_bounds() {
    let rounds = std::env::var("RESDEX_BOUNDED_ROUNDS").map_or(ROUNDS, |n| n.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let _within = runtime.enter();

    let good = Peer::of([("good://1", "granite"), ("good://2", "feldspar")]);
    let flood = Peer::of([("flood://1", "basalt")]);
    let mute = Peer::default();
    mute.hook(|_| Some(Reply::Silence));
    let dropping = Peer::of([("dropping://1", "marl"), ("dropping://2", "chalk")]);
    let endless = Peer::default();
    endless.hook(|request| {
        (request.method == "resources/list").then(|| {
            let page: usize = request.cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
            let item = json!({"uri": format!("endless://{page}"), "name": "x"});
            Reply::Result(json!({"resources": [item], "nextCursor": (page + 1).to_string()}))
        })
    });
    // It fails in ever new words.
    let failing = Peer::of([("failing://1", "slate")]);
    let failures = AtomicUsize::new(0);
    failing.hook(move |request| {
        (request.method == "resources/read").then(|| {
            let failure = failures.fetch_add(1, Ordering::Relaxed);
            Reply::Error(-32603, format!("failure number {failure}").leak())
        })
    });

    let mut served_http = vec![];
    let mut config = String::from(LIMITS);
    for (name, peer, more) in [
        ("good", &good, ""),
        ("mute", &mute, ""),
        ("dropping", &dropping, "protocol = \"legacy\""),
        ("endless", &endless, ""),
        ("failing", &failing, ""),
    ] {
        let served = runtime.block_on(http::Served::new(peer.clone()));
        config += &served.config(name, more);
        served_http.push(served);
    }
    let alone = config.clone();
    let served_stdio = stdio::Served::new(flood.clone());
    config += &served_stdio.config("flood", "protocol = \"legacy\"");
    config += &script("crashing", "echo dying >&2; exit 3");
    let noise = "i=0; while [ $i -lt 500 ]; do echo noise $i; echo noise $i >&2; i=$((i+1)); done";
    config += &script("noisy", noise);

    let daemon = Daemon::start(&config);
    daemon.found("granite", "good://1");
    daemon.found("basalt", "flood://1");
    let starts = |name: &str| {
        let starts = fs::read_to_string(daemon.folder().join(format!("{name}.starts")));
        starts.unwrap_or_default().lines().count()
    };
    let misdeeds = || {
        [
            starts("crashing"),
            starts("noisy"),
            dropping.count("resources/list"),
            endless.count("resources/list"),
        ]
    };
    let (mut warm, mut most) = (None::<Taken>, taken(&daemon));
    for round in 0..rounds {
        daemon
            .wait_until("there is a stream to drop", |_| (dropping.listeners() > 0).then_some(()));
        let before = misdeeds();
        for _ in 0..200 {
            flood.list_changed();
            flood.updated("flood://1");
            flood.updated("flood://unlisted");
            flood.raw(b"{\"level\":\"info\"}\nnoise\n\xff\n");
        }
        match round % 5 {
            0 => dropping.drop_session(),
            _ => dropping.hang_up(),
        }
        daemon.wait_until("each has misbehaved again", |_| {
            misdeeds().iter().zip(before).all(|(now, before)| *now > before).then_some(())
        });
        let now = taken(&daemon);
        most = Taken {
            files: most.files.max(now.files),
            descendants: most.descendants.max(now.descendants),
            memory_kb: most.memory_kb.max(now.memory_kb),
            ..now
        };
        if round == WARM {
            warm = Some(now);
        }
    }
    let warm = warm.expect("more rounds than it takes to be warm");
    eprintln!("{rounds} rounds, {:?} misdeeds: {warm:?} once warm, at most {most:?}", misdeeds());
    assert!(most.files <= 120, "{most:?}");
    // Three servers are children; one that ends may still be there when the next one starts.
    assert!(most.descendants <= 9, "{most:?}");
    assert!(most.memory_kb <= warm.memory_kb + (64 << 10), "{warm:?}, at most {most:?}");
    // A dozen lines about a server's faults, and some of its own about the daemon.
    assert!(most.log_lines <= 8 * 12 + 30 && most.log_bytes <= 64 << 10, "{most:?}");

    // Nobody is any the worse for it.
    good.put("good://1", "the last schist");
    good.updated("good://1");
    daemon.found("schist", "good://1");
    flood.put("flood://1", "the last gneiss");
    flood.updated("flood://1");
    daemon.found("gneiss", "flood://1");
    daemon.found("feldspar", "good://2");
    daemon.found("chalk", "dropping://2");
    for name in ["mute", "endless", "failing", "crashing", "noisy"] {
        daemon.wait_until(&format!("{name}'s fault is told"), |daemon| {
            daemon.server(name)["last_error"]["message"].as_str().map(str::to_owned)
        });
    }

    // With the servers goes what they took.
    daemon.configure(&alone);
    daemon.wait_until("no child is left", |daemon| {
        (descendants(daemon.pid().as_raw_nonzero().get()) == 0).then_some(())
    });
    daemon.found("schist", "good://1");
}
