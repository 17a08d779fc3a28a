//! What is seen of a daemon from outside: its log, its events, its metrics; and a system that gives it
//! less than it asks for.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;

use serde_json::Value;

use crate::daemon::{self, Daemon, Stopped};
use crate::folder;

/// An answer as it comes, head and body.
fn get(daemon: &Daemon, path: &str, header: &str) -> String {
    let mut stream = UnixStream::connect(daemon.folder().join("sock")).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n{header}Connection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_log_is_lines_of_json_with_the_requests_ids() {
    let root = tempfile::tempdir().unwrap();
    let config = folder(root.path(), "first", &["feldspar"]);
    let daemon = Stopped::new(&config).start_with(&[("RESDEX_LOG", "debug,rmcp=off")]);
    daemon.wait_until("it answers", |daemon| daemon.ask(&["status"]));
    let answer = get(&daemon, "/v1/status", "X-Request-Id: look-for-me\r\n");
    assert!(answer.contains("x-request-id: look-for-me\r\n"), "{answer}");
    let log = daemon.folder().join("log");
    let line = daemon.wait_until("the request is in the log", |_| {
        let log = fs::read_to_string(&log).ok()?;
        let line = log.lines().find(|line| line.contains("look-for-me"))?;
        Some(line.to_owned())
    });
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&line["request_id"], &line["status"]),
        (&"look-for-me".into(), &200.into()),
        "{line}"
    );
    // The last line may be under way.
    let log = fs::read_to_string(&log).unwrap();
    for line in log.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let line: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
    }
}

#[test]
fn metrics_are_on_the_socket() {
    let root = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&folder(root.path(), "first", &["feldspar", "gneiss"]));
    daemon.live("first");
    daemon.found("gneiss", "first:///gneiss.md");
    fs::write(root.path().join("first/schist.md"), "The schist is here.\n").unwrap();
    daemon.found("schist", "first:///schist.md");
    let metrics = daemon.wait_until("the lag is measured", |daemon| {
        let metrics = get(daemon, "/metrics", "");
        metrics
            .contains("resdex_notification_lag_seconds_count{server=\"first\"} 1\n")
            .then_some(metrics)
    });
    assert!(
        metrics.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"),
        "{metrics}"
    );
    let number = |name: &str| {
        let line = metrics.lines().find(|line| line.starts_with(&format!("{name} ")));
        let line = line.unwrap_or_else(|| panic!("{name} isn't in\n{metrics}"));
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    assert_eq!(number("resdex_indexed_resources{server=\"first\"}"), 3.0);
    assert_eq!(number("resdex_server_state{server=\"first\",state=\"live\"}"), 1.0);
    assert!(number("resdex_read_bytes_total{server=\"first\"}") > 60.0);
    assert!(number("resdex_reads_total{server=\"first\"}") >= 3.0);
    assert!(number("resdex_index_bytes") > 0.0);
    assert!(number("resdex_answer_seconds_count{verb=\"search\"}") >= 2.0);
}

#[test]
fn a_reload_is_an_event() {
    let root = tempfile::tempdir().unwrap();
    let first = folder(root.path(), "first", &["feldspar"]);
    let both = format!("{first}{}", folder(root.path(), "second", &["gneiss"]));
    let daemon = Daemon::start(&first);
    daemon.live("first");
    let mut events = daemon::resdex(daemon.folder())
        .args(["events", "--json", "--socket"])
        .arg(daemon.folder().join("sock"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (sender, lines) = channel();
    let stdout = events.stdout.take().unwrap();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    // Whoever listens gets what happens from then on, so it happens now and then until it is told.
    let mut looks = 0;
    let reload = daemon.wait_until("the reload is told", |daemon| {
        if looks % 40 == 0 {
            daemon.configure(if looks % 80 == 0 { &both } else { &first });
        }
        looks += 1;
        let mut new = lines.try_iter().map(|line| serde_json::from_str::<Value>(&line).unwrap());
        new.find(|event| event["event"] == "reload")
    });
    events.kill().unwrap();
    events.wait().unwrap();
    let touched =
        [&reload["added"], &reload["removed"]].map(|names| names.as_array().unwrap().len());
    assert!(touched == [1, 0] || touched == [0, 1], "{reload}");
}

/// A system that has no inotify left: the config and the folders are looked at instead.
#[test]
fn without_inotify_changes_are_looked_for() {
    let none_left = "echo 0 > /proc/sys/user/max_inotify_instances";
    let possible = Command::new("unshare").args(["-Ur", "sh", "-c", none_left]).output();
    if !possible.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no namespace can be made in which inotify is exhausted");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let first = folder(root.path(), "first", &["feldspar"]);
    let script = format!("{none_left} && exec \"$@\"");
    let daemon = Stopped::new(&first).start_in(&["unshare", "-Ur", "sh", "-c", &script, "sh"]);
    daemon.found("feldspar", "first:///feldspar.md");
    let log = fs::read_to_string(daemon.folder().join("log")).unwrap();
    assert_eq!(log.matches("config files can't be watched").count(), 1, "said once: {log}");
    daemon.configure(&format!("{first}{}", folder(root.path(), "second", &["gneiss"])));
    daemon.found("gneiss", "second:///gneiss.md");
    daemon.configure(&first);
    daemon.wait_until("it is gone", |daemon| daemon.search("gneiss").is_empty().then_some(()));
}
