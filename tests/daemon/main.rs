//! What only the real binary can show: the config that changes under it, one instance, its end, and
//! `resdex files` as a process.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

#[path = "../common/daemon.rs"]
mod daemon;
mod outside;
mod rebuild;
mod systemd;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use daemon::Daemon;

/// A folder with one document for each word, as a server's config.
fn folder(root: &Path, name: &str, words: &[&str]) -> String {
    let folder = root.join(name);
    fs::create_dir_all(&folder).unwrap();
    for word in words {
        fs::write(
            folder.join(format!("{word}.md")),
            format!("# About {word}\n\nThe {word} is here.\n"),
        )
        .unwrap();
    }
    format!("[servers.{name}]\nfiles = {:?}\n", folder.display().to_string())
}

fn names(daemon: &Daemon) -> Vec<String> {
    let status = daemon.ask(&["status"]).unwrap();
    let servers = status["servers"].as_array().unwrap();
    servers.iter().map(|server| server["name"].as_str().unwrap().to_owned()).collect()
}

fn gone(daemon: &Daemon, word: &str) {
    daemon.wait_until(&format!("{word} is gone"), |daemon| {
        daemon.search(word).is_empty().then_some(())
    });
}

#[test]
fn a_changed_config_is_applied_server_by_server() {
    let root = tempfile::tempdir().unwrap();
    let first = folder(root.path(), "first", &["feldspar"]);
    let second = folder(root.path(), "second", &["gneiss"]);
    let daemon = Daemon::start(&first);
    daemon.live("first");
    let connects = daemon.server("first")["counts"]["connects"].clone();
    for _ in 0..3 {
        daemon.configure(&format!("{first}{second}"));
        daemon.found("gneiss", "second:///gneiss.md");
        daemon.configure(&first);
        gone(&daemon, "gneiss");
        assert_eq!(names(&daemon), ["first"]);
    }
    daemon.found("feldspar", "first:///feldspar.md");
    assert_eq!(
        daemon.server("first")["counts"]["connects"],
        connects,
        "the other server was left alone"
    );
    // A server that is narrowed loses what it may no longer show.
    daemon.configure(&format!("{first}exclude = [\"first:///**\"]\n"));
    gone(&daemon, "feldspar");
}

#[test]
fn a_broken_config_changes_nothing_and_says_where() {
    let root = tempfile::tempdir().unwrap();
    let good = folder(root.path(), "first", &["feldspar"]);
    let daemon = Daemon::start(&good);
    daemon.live("first");
    let error = |daemon: &Daemon| {
        daemon.ask(&["status"]).unwrap()["config"]["error"].as_str().map(str::to_owned)
    };
    daemon.configure("[servers.first]\nfiles = \"/nowhere");
    let said = daemon.wait_until("the error is told", error);
    assert!(said.contains("resdex.toml:2"), "{said}");
    daemon.found("feldspar", "first:///feldspar.md");
    daemon.configure(&good);
    daemon.wait_until("the error is gone", |daemon| error(daemon).is_none().then_some(()));
    daemon.found("feldspar", "first:///feldspar.md");
}

#[test]
fn a_config_behind_swapped_links_is_followed() {
    let root = tempfile::tempdir().unwrap();
    let version = |name: &str, config: &str| {
        let folder = root.path().join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("resdex.toml"), config).unwrap();
    };
    version("1", &folder(root.path(), "first", &["feldspar"]));
    version("2", &folder(root.path(), "second", &["gneiss"]));
    symlink("1", root.path().join("..data")).unwrap();
    let daemon = Daemon::start("");
    let config = daemon.folder().join("resdex.toml");
    fs::remove_file(&config).unwrap();
    symlink(root.path().join("..data/resdex.toml"), &config).unwrap();
    daemon.found("feldspar", "first:///feldspar.md");
    symlink("2", root.path().join("..new")).unwrap();
    fs::rename(root.path().join("..new"), root.path().join("..data")).unwrap();
    daemon.found("gneiss", "second:///gneiss.md");
    gone(&daemon, "feldspar");
}

#[test]
fn a_second_daemon_is_refused_and_a_killed_one_leaves_nothing_in_the_way() {
    let root = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&folder(root.path(), "first", &["feldspar"]));
    daemon.live("first");
    let second = daemon::serve(daemon.folder()).output().unwrap();
    assert_eq!(second.status.code(), Some(75));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains(&format!("pid {}", daemon.pid().as_raw_nonzero())), "{said}");

    let stopped = daemon.kill();
    assert!(stopped.folder().join("sock").exists(), "a killed daemon leaves its socket");
    let daemon = stopped.start();
    daemon.found("feldspar", "first:///feldspar.md");

    let stopped = daemon.kill();
    let socket = stopped.folder().join("sock");
    fs::remove_file(&socket).unwrap();
    fs::write(&socket, "a letter").unwrap();
    let (code, said) = stopped.refuses();
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(fs::read_to_string(&socket).unwrap(), "a letter");
}

#[test]
fn told_to_end_it_ends_its_children_too() {
    // The child ignores the end of stdin and SIGTERM, and so does its own child.
    let script =
        "trap '' TERM; (trap '' TERM; echo $$ $BASHPID > pids; while :; do sleep 1; done) & wait";
    let config = format!("[servers.stubborn]\ncommand = \"bash\"\nargs = [\"-c\", {script:?}]\n");
    let mut daemon = Daemon::start(&config);
    let pids = daemon.folder().join("pids");
    let pids = daemon.wait_until("the children run", |_| {
        let text = fs::read_to_string(&pids).ok()?;
        let pids: Vec<i32> = text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
        (pids.len() == 2).then_some(pids)
    });
    kill_process(daemon.pid(), Signal::TERM).unwrap();
    assert_eq!(daemon.ended(), Some(0));
    for pid in pids {
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        let stat =
            fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
        assert!(
            test_kill_process(pid).is_err() || stat.contains(") Z "),
            "{pid:?} is left: {stat}"
        );
    }
    assert!(!daemon.folder().join("sock").exists());
}

/// A server whose child is deaf takes seconds to end. Whoever can't wait says so once more.
#[test]
fn told_twice_it_ends_at_once() {
    let script = "trap '' TERM; echo $$ > pid; while :; do sleep 1; done";
    let config = format!("[servers.stubborn]\ncommand = \"bash\"\nargs = [\"-c\", {script:?}]\n");
    let mut daemon = Daemon::start(&config);
    let file = daemon.folder().join("pid");
    let pid = daemon.wait_until("the child runs", |_| {
        fs::read_to_string(&file).ok()?.trim().parse::<i32>().ok()
    });
    kill_process(daemon.pid(), Signal::TERM).unwrap();
    let log = daemon.folder().join("log");
    daemon.wait_until("it stops", |_| {
        fs::read_to_string(&log).ok()?.contains("\"stopping\"").then_some(())
    });
    kill_process(daemon.pid(), Signal::TERM).unwrap();
    assert_eq!(daemon.ended(), Some(1));
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    daemon.wait_until("the child is gone with it", |_| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        stat.map_or(true, |stat| stat.contains(") Z ")).then_some(())
    });
}

#[test]
fn hangup_reads_the_config_again() {
    let root = tempfile::tempdir().unwrap();
    let first = folder(root.path(), "first", &["feldspar"]);
    let daemon = Daemon::start(&first);
    daemon.live("first");
    daemon.configure(&format!("{first}{}", folder(root.path(), "second", &["gneiss"])));
    kill_process(daemon.pid(), Signal::HUP).unwrap();
    daemon.found("gneiss", "second:///gneiss.md");
}

/// `resdex files` as a process, spoken to line by line.
#[test]
fn a_folder_is_served_on_stdio_in_both_eras() {
    let root = tempfile::tempdir().unwrap();
    folder(root.path(), "docs", &["feldspar"]);
    let modern = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let eras = [
        vec![
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
                "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": {"uri": "docs:///feldspar.md"}}),
        ],
        vec![
            json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": modern}}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "resources/read",
                "params": {"uri": "docs:///feldspar.md", "_meta": modern}}),
        ],
    ];
    for messages in eras {
        let mut child = daemon::resdex(root.path())
            .args(["files", "docs", "--name", "docs"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut last = Value::Null;
        for message in messages {
            writeln!(stdin, "{message}").unwrap();
            if message.get("id").is_some() {
                last = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
                assert!(last.get("error").is_none(), "{last}");
            }
        }
        assert!(
            last["result"]["contents"][0]["text"]
                .as_str()
                .unwrap()
                .contains("The feldspar is here.")
        );
        // The end of stdin is the sign to end.
        drop(stdin);
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}
