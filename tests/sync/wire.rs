//! What goes wrong on a child's stdout and stderr, and with the child itself.

use std::time::{Duration, Instant};

use crate::bench::Bench;
use crate::peers::{Peer, Reply, stdio};
use resdex::model::ServerState;

const ERAS: [&str; 2] = ["protocol = \"legacy\"", "protocol = \"modern\""];

fn shell(name: &str, script: &str, more: &str) -> String {
    format!("[servers.{name}]\ncommand = \"sh\"\nargs = [\"-c\", {script:?}]\n{more}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn noise_between_messages_is_dropped_and_counted() {
    for era in ERAS {
        let peer = Peer::of([("a://1", "granite"), ("a://2", "granite")]);
        let noisy = peer.clone();
        peer.hook(move |request| {
            noisy.raw(b"Server v2.1 ready\r\n\r\n\n\x1b[32minfo\x1b[0m listening\n");
            noisy.raw(b"{\"level\":\"info\",\"method\":\"GET\",\"id\":1}\n[]\n\"text\"\n");
            // A byte order mark before each answer, the handshake's included.
            noisy.raw(b"\xEF\xBB\xBF");
            (request.method == "ping").then_some(Reply::Silence)
        });
        let served = stdio::Served::new(peer.clone());
        let bench = Bench::start(served.config("s", era)).await;
        let status = bench.live("s").await;
        assert_eq!((status.indexed, status.counts.connects), (2, 1));
        let told =
            status.warnings.iter().any(|warning| warning.contains("were none of the protocol"));
        assert!(told, "{:?}", status.warnings);
        // Noise is never answered.
        assert!(peer.state().log.iter().all(|message| message.get("method").is_some()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_is_too_long_fails_its_request_and_no_other() {
    let peer = Peer::of([("a://1", "granite"), ("a://2", "granite"), ("a://3", "granite")]);
    peer.hook(|request| {
        let text = "A".repeat(100 << 10);
        (request.uri == "a://2" && request.method == "resources/read").then(|| {
            let result = serde_json::json!({"contents": [{"uri": "a://2", "text": text}]});
            Reply::Result(result)
        })
    });
    let served = stdio::Served::new(peer.clone());
    let bench =
        Bench::with_limits("max_message_bytes = \"64KiB\"", served.config("s", ERAS[0])).await;
    let status = bench.error("s", "longer than 65536 bytes").await;
    assert_eq!(status.counts.connects, 1);
    bench.finds("granite", &["a://1", "a://3"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_without_end_ends_the_child() {
    let config = shell("s", "cat /dev/zero | tr '\\\\0' A", "");
    let mut bench = Bench::with_limits(
        "max_message_bytes = \"64KiB\"\nmax_retry_delay = \"1h\"\nretry_delay = \"1h\"",
        config,
    )
    .await;
    let status = bench
        .until("the child is given up", |bench| {
            Some(bench.status("s")).filter(|status| status.state == ServerState::Backoff)
        })
        .await;
    let message = status.last_error.unwrap().message;
    assert!(message.contains("a line that doesn't end"), "{message}");
    assert!(message.contains("65536 bytes"), "{message}");
    bench.stop("s").await;
    bench.children.close();
    bench.children.wait().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn much_on_stderr_before_the_first_answer_holds_nothing_up() {
    // 20 MB, then the last words and the exit.
    let script =
        "head -c 20000000 /dev/zero | tr '\\\\0' E >&2; echo >&2; echo all said >&2; exit 4";
    let bench = Bench::start(shell("s", script, "")).await;
    let status = bench.error("s", "exited with status 4").await;
    let message = status.last_error.unwrap().message;
    assert!(message.contains("all said") && message.len() < 6 << 10, "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_says_much_on_stderr_first_is_served() {
    let peer = Peer::of([("a://1", "granite")]);
    let served = stdio::Served::new(peer.clone());
    let flood = "head -c 50000000 /dev/zero | tr \"\\000\" E >&2; exec";
    let bench = Bench::start(served.config("s", "").replace("exec", flood)).await;
    bench.finds("granite", &["a://1"]).await;
    assert_eq!(bench.live("s").await.counts.connects, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_exits_at_once_is_told_with_its_status_and_last_words() {
    let limits = "connect_timeout = \"1h\"\nretry_delay = \"1h\"\nmax_retry_delay = \"1h\"";
    let bench = Bench::with_limits(limits, shell("s", "echo its last words >&2; exit 1", "")).await;
    let status = bench.error("s", "exited with status 1").await;
    assert!(status.last_error.unwrap().message.contains("its last words"));
    assert_eq!(status.state, ServerState::Backoff);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_that_is_never_answered_leaves_one_child_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    // Each child takes the lock or says that another is alive; it ends with its stdin.
    let script = format!(
        "if mkdir {path}/alive 2>/dev/null; then echo x >> {path}/started; \
         cat > /dev/null; rmdir {path}/alive; else echo x >> {path}/both; fi"
    );
    let limits = "connect_timeout = \"200ms\"\nmax_retry_delay = \"20ms\"";
    let mut bench = Bench::with_limits(limits, shell("s", &script, "")).await;
    let started = || std::fs::read_to_string(folder.path().join("started")).unwrap_or_default();
    bench
        .until("it was tried some times", |_| (started().lines().count() >= 5).then_some(()))
        .await;
    assert!(bench.status("s").last_error.is_some());
    bench.stop("s").await;
    bench.children.close();
    bench.children.wait().await;
    assert!(!folder.path().join("both").exists(), "two were alive at a time");
    assert!(!folder.path().join("alive").exists(), "one is still alive");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deaf_child_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let script = format!(
        "trap '' TERM HUP; echo $$ > {0}.new; mv {0}.new {0}; while :; do sleep 1; done",
        pid.display()
    );
    let mut bench = Bench::start(shell("s", &script, "")).await;
    let pid = bench.until("it runs", |_| std::fs::read_to_string(&pid).ok()).await;
    let asked = Instant::now();
    bench.stop("s").await;
    bench.children.close();
    bench.children.wait().await;
    assert!(asked.elapsed() < Duration::from_secs(30));
    assert!(!std::path::Path::new(&format!("/proc/{}", pid.trim())).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_sees_its_own_environment_and_nobody_elses() {
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let script = format!("env > {0}.new; mv {0}.new {0}; cat", seen.display());
    let config = shell("s", &script, "env = { OWN = \"granite\" }")
        + &shell("other", "cat", "env = { THEIRS = \"a-planted-secret\" }");
    let _bench = Bench::start(config).await;
    let seen = _bench.until("it has written", |_| std::fs::read_to_string(&seen).ok()).await;
    assert!(seen.lines().any(|line| line == "OWN=granite"), "{seen}");
    // Cargo plants many a variable in the test's own environment.
    for planted in ["CARGO", "CARGO_MANIFEST_DIR"] {
        assert!(std::env::var_os(planted).is_some(), "{planted}");
        assert!(!seen.lines().any(|line| line.starts_with(&format!("{planted}="))), "{seen}");
    }
    assert!(!seen.contains("a-planted-secret"), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_dies_of_a_read_takes_nothing_along() {
    let peer = Peer::of([("a://1", "granite"), ("a://2", "granite"), ("a://3", "granite")]);
    let deadly = peer.clone();
    peer.hook(move |request| {
        let first_two = request.uri == "a://2" && deadly.reads("a://2") <= 2;
        (request.method == "resources/read" && first_two).then_some(Reply::Close)
    });
    let served = stdio::Served::new(peer.clone());
    let bench = Bench::start(served.config("s", ERAS[0])).await;
    bench.finds("granite", &["a://1", "a://2", "a://3"]).await;
    assert_eq!(bench.live("s").await.counts.connects, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_dies_is_started_again_and_caught_up_with() {
    for era in ERAS {
        let peer = Peer::of([("a://1", "granite"), ("a://2", "granite")]);
        let served = stdio::Served::new(peer.clone());
        let bench = Bench::start(served.config("s", era)).await;
        bench.live("s").await;
        peer.put("a://1", "slate");
        peer.remove("a://2");
        peer.put("a://3", "granite");
        peer.hang_up();
        bench.finds("slate", &["a://1"]).await;
        bench.finds("granite", &["a://3"]).await;
        let status = bench.live("s").await;
        assert!(status.counts.connects >= 2 && status.last_error.is_none(), "{status:?}");
        // It is subscribed to as before.
        peer.put("a://1", "marble");
        peer.updated("a://1");
        bench.finds("marble", &["a://1"]).await;
    }
}
