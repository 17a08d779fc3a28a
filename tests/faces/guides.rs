//! The snippets of `docs/clients.md`, as they stand there: each entry for a client starts a server that
//! answers, each line for a shell and for Python is run.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::daemon::{Daemon, Stopped, resdex};
use crate::http::free_port;

const HASH: &str = "1ec1c26b50d5d3c58d9583181af8076655fe00756bf7285940ba3670f99fcba0"; // of s3cret

/// The fenced blocks of one language.
fn blocks(language: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("docs/clients.md")).unwrap();
    let fence = format!("```{language}\n");
    let blocks = text.split(&fence).skip(1);
    blocks.map(|block| block.split("\n```").next().unwrap().to_owned()).collect()
}

/// The daemon of the guide: its scope and its token, at a port of its own.
fn served() -> (Daemon, u16) {
    let port = free_port();
    let handbook = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/handbook");
    let daemon = Stopped::new(&format!(
        "[http]\nlisten = \"127.0.0.1:{port}\"\n[servers.handbook]\nfiles = {}\n\
         [scopes.support-bot]\nservers = [\"handbook\"]\npins = [\"handbook:///tone.md\"]\n\
         max_tokens = 4000\ntoken_sha256 = \"{HASH}\"\n",
        json!(handbook)
    ));
    let daemon = daemon.start();
    daemon.live("handbook");
    (daemon, port)
}

#[test]
fn the_entries_for_clients_start_a_server() {
    let (daemon, _) = served();
    let entries = blocks("json");
    assert!(entries.len() >= 5, "{entries:?}");
    for text in entries {
        let file: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e} in {text}"));
        let servers = file.get("mcpServers").or(file.get("servers")).unwrap();
        let entry = &servers["resdex"];
        assert_eq!(entry["command"], "resdex", "{text}");
        let config = daemon.folder().join("resdex.toml");
        let arguments = entry["args"].as_array().unwrap().iter().map(|argument| {
            argument.as_str().unwrap().replace("/home/me/resdex.toml", config.to_str().unwrap())
        });
        let mut child = resdex(daemon.folder())
            .args(arguments)
            .env("RESDEX_SOCKET", daemon.folder().join("sock"))
            .env("RESDEX_STATE", daemon.folder().join("state"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "guide", "version": "1"},
        }});
        writeln!(child.stdin.as_mut().unwrap(), "{initialize}").unwrap();
        let mut answer = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut answer).unwrap();
        assert!(answer.contains("\"name\":\"resdex\""), "{text}: {answer}");
        drop(child.stdin.take());
        child.wait().unwrap();
        // A daemon that reads the same file doesn't start itself.
        let file = daemon.folder().join("client.json");
        fs::write(&file, &text).unwrap();
        let mut check = resdex(daemon.folder());
        let check = check.args(["config", "check", "--config"]).arg(file).output().unwrap();
        let said = String::from_utf8(check.stdout).unwrap();
        assert!(said.contains("disabled"), "{text}: {said}");
    }
}

/// A command with what the guide's snippets expect around them.
fn around(daemon: &Daemon, program: &str) -> Command {
    let binary = Path::new(env!("CARGO_BIN_EXE_resdex")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(program);
    command
        .current_dir(daemon.folder())
        .env("PATH", format!("{}:{path}", binary.display()))
        .env("RESDEX_SOCKET", daemon.folder().join("sock"))
        .env("SUPPORT_BOT_TOKEN", "s3cret");
    command
}

/// What a snippet printed, which must have gone well.
fn said(snippet: &str, output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr);
    let well = output.status.success() && !said.contains("\"error\"");
    assert!(well, "{snippet}\n{said}{wrong}");
    said
}

fn is_there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).status();
    let there = found.is_ok_and(|status| status.success());
    let required = std::env::var("RESDEX_INTEROP").is_ok_and(|value| value == "required");
    assert!(there || !required, "{program} doesn't run");
    if !there {
        println!("skipped: {program} doesn't run");
    }
    there
}

#[test]
fn the_lines_for_a_shell_are_answered() {
    if !is_there("curl") {
        return;
    }
    let (daemon, port) = served();
    let mut run = 0;
    for block in blocks("sh") {
        // What starts a daemon, and what needs a product beside it.
        if ["resdex serve", "claude mcp", ":5300"].iter().any(|other| block.contains(other)) {
            continue;
        }
        // `jq` only makes it nicer to read.
        let script = block.replace("7878", &port.to_string()).replace(" | jq -r .text", "");
        let socket = daemon.folder().join("sock");
        let script = script
            .replace("S=\"$XDG_RUNTIME_DIR/resdex/sock\"", "")
            .replace("\"$S\"", socket.to_str().unwrap());
        let output = around(&daemon, "bash").args(["-euo", "pipefail", "-c", &script]).output();
        let said = said(&block, &output.unwrap());
        assert!(!said.trim().is_empty(), "{block}");
        run += 1;
    }
    assert!(run >= 4, "only {run} were run");
}

#[test]
fn the_lines_for_python_make_a_prompt() {
    if !is_there("python3") {
        return;
    }
    let (daemon, port) = served();
    let python = blocks("python");
    assert!(!python.is_empty());
    for block in python {
        let script = block.replace("7878", &port.to_string());
        let script = format!("{script}\nprint(prompt)\nprint(sources)\n");
        let output = around(&daemon, "python3").args(["-X", "utf8", "-c", &script]).output();
        let said = said(&block, &output.unwrap());
        assert!(said.contains("退款") && said.contains("handbook:///"), "{said}");
    }
}
