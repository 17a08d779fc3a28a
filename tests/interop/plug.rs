//! Clients that other people wrote, with resdex as their MCP server: in front of a folder and of a
//! server with templates, through a scope's token on TCP or through `resdex mcp`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::daemon::{Daemon, Stopped, resdex};
use crate::installed::{environment, is_installed, node22};
use crate::peers::{Kind, Over, Peer, free_port};

const URI: &str = "notes:///%E9%80%80%E6%AC%BE.md";
const DESIGNS: &str = "[[servers.peer.templates]]\nuri = \"design://docs/{docId}/{+version}\"";
const SCOPE: &str = "[scopes.bot]\nexclude = [\"runbook://**\", \"design://docs/gateway/**\"]\n";
const DOCUMENT: &str = "# 退款\n\n退款需要十四天。\n";

/// A daemon with all that the clients ask for.
struct Served {
    daemon: Daemon,
    url: String,
    token: String,
    _peer: Peer,
}

/// Nothing, with a printed reason, when what the test runs isn't installed.
fn served(client: &str, interpreter: &Path, kind: Kind) -> Option<Served> {
    if !is_installed(client, interpreter) {
        return None;
    }
    let peer = Peer::new(kind, Over::Stdio)?;
    let port = free_port();
    // The conformance scenarios know of no tokens.
    let (token, (templates, scope)) = match (kind, token()) {
        (Kind::Conformance, (token, _)) => (token, (String::new(), String::new())),
        (_, (token, hash)) => {
            (token, (DESIGNS.into(), format!("{SCOPE}token_sha256 = \"{hash}\"\n")))
        }
    };
    let peer_config = peer.config("peer", &templates);
    let daemon = Stopped::new(&format!(
        "[http]\nlisten = \"127.0.0.1:{port}\"\n[limits]\nconnect_timeout = \"2m\"\n\
         [servers.notes]\nfiles = \"notes\"\n{peer_config}\n{scope}"
    ));
    let notes = daemon.folder().join("notes");
    fs::create_dir(&notes).unwrap();
    fs::write(notes.join("退款.md"), DOCUMENT).unwrap();
    fs::write(notes.join("logo.png"), PNG).unwrap();
    let daemon = daemon.start();
    for server in ["notes", "peer"] {
        daemon.live(server);
    }
    daemon.found("退款", URI);
    Some(Served { daemon, url: format!("http://127.0.0.1:{port}/mcp"), token, _peer: peer })
}

/// The smallest picture there is.
const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDAT\
    x\xdac\xfc\xcfP\x0f\0\x03\x86\x01\x80Z4}k\0\0\0\0IEND\xaeB`\x82";

/// A token and its hash, as a person gets them.
fn token() -> (String, String) {
    let output = resdex(Path::new("/")).args(["token", "new", "bot"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let hash = said.lines().find_map(|line| line.strip_prefix("token_sha256 = "));
    let token = said.lines().next().unwrap().to_owned();
    (token, hash.unwrap_or_else(|| panic!("{said}")).trim_matches('"').to_owned())
}

fn python(client: &str) -> PathBuf {
    environment(client).join("bin/python")
}

fn script(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop").join(path)
}

impl Served {
    /// A command in the daemon's folder that knows the token.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.daemon.folder()).env("RESDEX_TOKEN", &self.token);
        command
    }

    /// A script of ours on a client of others: it says `ok`, or what is wrong.
    fn check(&self, command: &mut Command) {
        let output = command.output().unwrap();
        assert_eq!(said(&output).trim(), "ok");
    }
}

/// What a command printed; a failure with what went wrong when it failed.
fn said(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{wrong}");
    said
}

#[test]
fn the_python_sdk_in_both_eras_over_stdio_and_http() {
    let sdk = python("python-mcp");
    let Some(served) = served("python-mcp", &sdk, Kind::Typescript) else { return };
    let client = |era: &str| {
        let mut client = served.command(&sdk);
        client.arg(script("peers/python-mcp/client.py")).arg(era);
        client
    };
    for era in ["legacy", "2026-07-28"] {
        served.check(client(era).arg(&served.url));
        served.check(
            client(era)
                .arg(resdex(served.daemon.folder()).get_program())
                .args(["mcp", "--no-start", "--socket"])
                .arg(served.daemon.folder().join("sock")),
        );
    }
}

fn on_python(name: &str) {
    let Some(served) = served(name, &python(name), Kind::Typescript) else { return };
    let script = script(&format!("clients/{name}/client.py"));
    served.check(served.command(&python(name)).arg(script).arg(&served.url));
}

#[test]
fn langchain_loads_resources() {
    on_python("langchain");
}

#[test]
fn openais_agents_list_read_and_call() {
    on_python("openai-agents");
}

#[test]
fn anthropics_helpers_make_messages_and_files() {
    on_python("anthropic");
}

#[test]
fn langbot_lists_and_reads() {
    let Some(served) = served("langbot", &python("langbot"), Kind::Typescript) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut client = served.command(&python("langbot"));
    client.current_dir(&folder).arg(script("clients/langbot/client.py"));
    served.check(client.arg(free_port().to_string()).arg(&served.url));
}

#[test]
fn the_inspector_lists_reads_and_calls() {
    let Some(served) = served("inspector", &node22(), Kind::Typescript) else { return };
    let home = tempfile::tempdir().unwrap();
    let inspector = environment("inspector").join("node_modules/@modelcontextprotocol/inspector");
    for era in ["legacy", "modern"] {
        let ask = |arguments: &[&str]| -> Value {
            let mut command = served.command(&node22());
            command
                .env("HOME", home.path())
                .arg(inspector.join("clients/launcher/build/index.js"))
                .args(["--cli", "--quiet", "--format", "json", "--connect-timeout", "60000"])
                .args(["--protocol-era", era, "--server-url", &served.url, "--transport", "http"])
                .args(["--header", &format!("Authorization: Bearer {}", served.token), "--method"]);
            let said = said(&command.args(arguments).output().unwrap());
            serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error} in {said}"))
        };
        let has = |answer: Value, member: &str| {
            let text = answer.to_string();
            assert!(text.contains(member), "{era}: no {member} in {text}");
        };
        has(ask(&["resources/list"]), &json!(URI).to_string());
        has(ask(&["resources/templates/list"]), "design://docs/{docId}/{+version}");
        has(ask(&["resources/read", "--uri", URI]), &json!(DOCUMENT).to_string());
        has(ask(&["tools/list"]), "list_servers");
        let call = ["tools/call", "--tool-name", "search", "--tool-arg", "query=退款"];
        has(ask(&call), &json!(URI).to_string());
    }
}

/// Those of the protocol's scenarios that a server of resources can be asked; the others are about
/// prompts, and about tools of given names.
#[test]
fn the_protocols_own_scenarios() {
    let Some(served) = served("conformance", &node22(), Kind::Conformance) else { return };
    let scenarios = environment("conformance")
        .join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let run = |revision: &str, name: &str| {
        let mut command = served.command(&node22());
        command.arg(&scenarios).args(["server", "--url", &served.url, "--timeout", "120000"]);
        command.args(["--spec-version", revision, "--scenario", name]).output().unwrap()
    };
    for (revision, names) in [
        ("2025-11-25", &["server-initialize", "server-session-lifecycle", "ping"][..]),
        ("2025-11-25", &["resources-subscribe", "resources-unsubscribe"]),
        ("2025-11-25", SCENARIOS),
        ("2026-07-28", &["sep-2164-resource-not-found", "http-header-validation"]),
        ("2026-07-28", SCENARIOS),
    ] {
        for name in names {
            let said = said(&run(revision, name));
            assert!(said.contains("0 warnings"), "{name} of {revision}: {said}");
        }
    }
    // Some of the checks of these two want prompts, or call tools that only a server made for them has.
    let others = [
        "sep-2549-prompts-list-caching-hints",
        "sep-2575-server-rejects-undeclared-capability",
        "sep-2575-missing-capability-http-400",
        "sep-2575-http-server-no-independent-requests-on-stream",
        "sep-2575-server-no-log-without-loglevel",
    ];
    for (name, passed) in [("caching", 7), ("server-stateless", 24)] {
        let output = run("2026-07-28", name);
        let checks = String::from_utf8_lossy(&output.stdout);
        assert!(checks.matches("SUCCESS").count() >= passed, "{checks}");
        for failed in checks.lines().filter(|line| line.contains("FAILURE")) {
            assert!(others.iter().any(|other| failed.contains(other)), "{failed}");
        }
    }
}

/// What is asked in both eras.
const SCENARIOS: &[&str] = &[
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "tools-list",
    "dns-rebinding-protection",
];
