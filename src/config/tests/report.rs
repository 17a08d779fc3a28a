use super::*;
use crate::config::report::{CheckKind, check, import, show};

const ENV: [(&str, &str); 6] = [
    ("TOKEN", "sesame"),
    ("HOME", "/home/u"),
    ("DOCS_TOKEN", "docs-secret"),
    ("WIKI_TOKEN", "wiki-secret"),
    ("BOT_TOKEN", "bot-secret"),
    ("API_KEY", "asked-for"),
];

/// How a server stands, without the words.
fn standing(server: &ServerConfig) -> &'static str {
    match server.readiness {
        Readiness::Ready => "ready",
        Readiness::NeedsConfig { .. } => "needs_config",
        Readiness::Disabled { .. } => "disabled",
    }
}

fn without_comments(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_is_shown_is_read_again() {
    let files = super::dialects::FILES.map(|(name, _, text)| (name, text));
    for (name, text) in files.into_iter().chain([("p/config.toml", super::own::EXAMPLE)]) {
        let folder = Folder::with(&[(name, text), ("p/.env", "FROM_FILE=filed")]);
        let config = folder.load(&[name], &ENV[..5]).unwrap();
        let shown = show(&config);
        for secret in ["sesame", "docs-secret", "wiki-secret", "bot-secret", "filed", "asked-for"] {
            assert!(!shown.contains(secret), "{name}: {shown}");
        }
        folder.write("again/config.toml", &shown);
        let again = folder.load(&["again/config.toml"], &ENV[..5]);
        let again = again.unwrap_or_else(|errors| panic!("{name}: {errors}\n{shown}"));
        assert_eq!(without_comments(&show(&again)), without_comments(&shown), "{name}");
        assert_eq!(again.limits, config.limits);
        assert_eq!(again.scopes, config.scopes);
        assert_eq!((&again.http, &again.socket), (&config.http, &config.socket));
        assert_eq!((&again.sync, &again.index), (&config.sync, &config.index));
        for (server, before) in again.servers.values().zip(config.servers.values()) {
            assert_eq!(server.follow, before.follow);
            assert_eq!(server.readiness == Readiness::Ready, before.readiness == Readiness::Ready);
        }
    }
}

#[test]
fn what_is_imported_is_the_same_server() {
    for (name, _, text) in super::dialects::FILES {
        let folder = Folder::with(&[(name, text), ("p/.env", "FROM_FILE=filed")]);
        let imported = import(&folder.path(name)).unwrap();
        // Codex's file holds it as a literal.
        assert!(name.contains("codex") || !imported.contains("sesame"), "{imported}");
        folder.write("elsewhere/config.toml", &imported);
        let before = folder.load(&[name], &ENV).unwrap();
        let after = folder.load(&["elsewhere/config.toml"], &ENV);
        let after = after.unwrap_or_else(|errors| panic!("{name}: {errors}\n{imported}"));
        assert_eq!(
            after.servers.keys().collect::<Vec<_>>(),
            before.servers.keys().collect::<Vec<_>>(),
            "{name}"
        );
        for (server, before) in after.servers.values().zip(before.servers.values()) {
            match (standing(before), standing(server)) {
                ("ready", "ready") => assert_eq!(server.transport, before.transport, "{imported}"),
                // What TOML can't say is switched off; what a person was asked for is a variable.
                ("needs_config", "disabled" | "needs_config") | ("disabled", "disabled") => {}
                ("needs_config", "ready") => assert_eq!(server.name.as_str(), "asks"),
                (was, is) => panic!("{name}: {} was {was}, is {is}", server.name),
            }
        }
    }
}

#[test]
fn references_stay_references() {
    let json = r#"{"inputs": [], "servers": {"a b": {
        "command": "${workspaceFolder}/run", "cwd": "sub",
        "args": ["${env:X}", "${userHome}/d", "say \"hi\"\n"],
        "env": {"K": "${input:api-key}"}
    }}}"#;
    let folder = Folder::with(&[("p/.vscode/mcp.json", json)]);
    let imported = import(&folder.path("p/.vscode/mcp.json")).unwrap();
    let base = folder.0.path().display().to_string();
    let wanted = r#"# imported from BASE/p/.vscode/mcp.json

# the client asks for these values; set the variables API_KEY
[servers."a b"]
command = "BASE/p/run"
args = ["${X}", "${HOME}/d", """
say "hi"
"""]
env = { K = "${API_KEY}" }
cwd = "BASE/p/sub"
"#;
    let values = |text: &str| text.parse::<toml::Table>().unwrap();
    assert_eq!(values(&imported), values(&wanted.replace("BASE", &base)), "{imported}");
    assert!(imported.contains("\nenv = { K = \"${API_KEY}\" }\n"), "{imported}");
    assert!(imported.contains("set the variables API_KEY\n"), "{imported}");
}

#[test]
fn import_refuses_what_it_cannot_do() {
    let folder = Folder::with(&[("config.toml", "[sync]"), ("x.json", "{}")]);
    for (name, wanted) in [
        ("config.toml", "is resdex's own TOML already"),
        ("x.json", "has no MCP servers"),
        ("none", "can't be read"),
    ] {
        let errors = import(&folder.path(name)).unwrap_err().to_string();
        assert!(errors.contains(wanted), "{errors}");
    }
}

#[test]
fn check_says_what_would_run() {
    let toml = r#"
[servers.a]
command = "npx"
args = ["-y", "two words", "--token=${TOKEN}"]
[servers.b]
url = "https://user:pw@wiki.example/${TOKEN}/mcp?api_key=zzz"
[servers.c]
command = "x"
args = ["${UNSET}"]
[servers.d]
command = "resdex"
[servers.e]
url = "unix:///run/x.sock#/mcp"
[servers.f]
files = "docs"
"#;
    let json = r#"{"mcpServers": {"g": {"command": "x", "colour": 1, "enabled": false}}}"#;
    let folder = Folder::with(&[("config.toml", toml), (".mcp.json", json), ("docs/a.md", "")]);
    let config = folder.load(&["config.toml", ".mcp.json"], &ENV).unwrap();
    let base = folder.0.path().display().to_string();
    let lines: Vec<(CheckKind, String)> = check(&config)
        .into_iter()
        .map(|line| (line.kind, line.text.replace(&base, "BASE")))
        .collect();
    let wanted = [
        (CheckKind::Runs, "runs npx -y \"two words\" --token=*** in BASE"),
        (CheckKind::Runs, "asks https://***@wiki.example/***/mcp?api_key=***"),
        (CheckKind::NeedsConfig, "args: the variable UNSET isn't set"),
        (CheckKind::Disabled, "it would start resdex itself, which would index its own answers"),
        (CheckKind::Runs, "asks http://localhost/mcp through the socket /run/x.sock"),
        (CheckKind::Runs, "serves the folder BASE/docs"),
        (CheckKind::Disabled, "switched off in its file"),
        (
            CheckKind::Note,
            "BASE/.mcp.json:1: the server g has keys that resdex passes over: colour",
        ),
    ];
    assert_eq!(lines, wanted.map(|(kind, text)| (kind, text.to_owned())));
}
