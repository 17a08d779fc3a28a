//! The binary as people and programs meet it: help, README and the API's description agree, and the
//! commands answer over a real socket with the documented exit codes.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use clap::CommandFactory as _;
use expect_test::expect_file;
use resdex::chunk::chunk;
use resdex::config::{Config, ScopeConfig};
use resdex::index::tantivy::TantivyStore;
use resdex::index::{Change, Entry, IndexStore as _};
use resdex::model::{
    ContentHash, Document, Fingerprint, Format, Outcome, Part, Resource, ServerName, ServerState,
    ServerStatus, SyncCounts, SyncQueue,
};
use resdex::serve::App;
use resdex::serve::http::{openapi, router};
use resdex::serve::socket::Socket;
use resdex::sync::control::{Control, Shared};
use tokio_util::sync::CancellationToken;

/// What the binary says: the one that was built with the tests, or that of `RESDEX_BINARY`.
fn resdex(arguments: &[&str]) -> Output {
    let binary = std::env::var_os("RESDEX_BINARY");
    let mut command = Command::new(binary.unwrap_or_else(|| env!("CARGO_BIN_EXE_resdex").into()));
    for name in ["COLUMNS", "RESDEX_CONFIG", "RESDEX_STATE", "RESDEX_SOCKET", "RESDEX_LOG"] {
        command.env_remove(name);
    }
    command.args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The words of each command that does something: `["config", "check"]`.
fn commands() -> Vec<Vec<String>> {
    fn collect(command: &clap::Command, above: &[String], all: &mut Vec<Vec<String>>) {
        // What is hidden is for the program itself.
        let shown = |sub: &&clap::Command| sub.get_name() != "help" && !sub.is_hide_set();
        for sub in command.get_subcommands().filter(shown) {
            let path = [above, &[sub.get_name().to_owned()]].concat();
            if sub.has_subcommands() {
                collect(sub, &path, all);
            } else {
                all.push(path);
            }
        }
    }
    let mut all = vec![];
    collect(&resdex::cli::args::Cli::command(), &[], &mut all);
    all
}

#[test]
fn help_is_as_it_was_reviewed() {
    let mut help = stdout(&resdex(&["--help"]));
    for words in commands() {
        let mut arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        arguments.push("--help");
        let output = resdex(&arguments);
        assert!(output.status.success(), "{words:?}");
        help += &format!("\n\n=== resdex {} ===\n{}", words.join(" "), stdout(&output));
    }
    expect_file!["cli/help.txt"].assert_eq(&help);
}

#[test]
fn every_command_has_an_example() {
    for words in commands() {
        let mut arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        arguments.push("--help");
        let help = stdout(&resdex(&arguments));
        let example = format!("  resdex {}", words.join(" "));
        assert!(help.contains("Example") && help.contains(&example), "{help}");
    }
}

#[test]
fn the_readme_names_every_command_and_route() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    for words in commands() {
        // A group's commands may stand together: `resdex config check | show`.
        let last = words.last().unwrap();
        let named = readme.contains(&format!("resdex {}", words.join(" ")))
            || readme.lines().any(|line| {
                line.contains(&format!("resdex {}", words[0]))
                    && line.split(|c: char| !c.is_alphanumeric()).any(|word| word == last)
            });
        assert!(named, "README.md doesn't name `resdex {}`", words.join(" "));
    }
    for route in openapi().paths.paths.keys() {
        assert!(readme.contains(route.as_str()), "README.md doesn't name {route}");
    }
}

#[test]
fn the_api_is_described_as_it_was_reviewed() {
    let api = serde_json::to_value(openapi()).unwrap();
    expect_file!["cli/openapi.json"]
        .assert_eq(&(serde_json::to_string_pretty(&api).unwrap() + "\n"));

    let text = api.to_string();
    for reference in text.split("\"$ref\":\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(api["components"]["schemas"].get(name).is_some(), "{name} isn't described");
    }
    for (route, item) in api["paths"].as_object().unwrap() {
        for operation in item.as_object().unwrap().values() {
            let answers = operation["responses"].as_object().unwrap();
            for status in ["200", "400", "500"] {
                assert!(answers.contains_key(status), "{route} {status}");
            }
            for (status, answer) in answers {
                let said = answer["description"].as_str().unwrap_or_default();
                assert!(answer.get("$ref").is_some() || !said.is_empty(), "{route} {status}");
            }
        }
    }
    let fields: BTreeSet<&str> = api["components"]["schemas"]["SearchRequest"]["properties"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert!(fields.contains("min_relevance") && fields.len() == 10, "{fields:?}");
}

const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{9b}2J";

/// What a server's task would share; nobody takes its requests.
fn shared(name: &str) -> Arc<Shared> {
    let status = ServerStatus {
        name: name.into(),
        state: ServerState::Backoff,
        protocol: None,
        push: vec![],
        listed: 2,
        indexed: 2,
        skipped: 0,
        stale: 0,
        last_sync: None,
        next_sync: None,
        last_error: None,
        withheld_removals: 0,
        warnings: vec![HOSTILE.into()],
        queue: SyncQueue::default(),
        counts: SyncCounts::default(),
    };
    Arc::new(Shared::new(status, tokio::sync::mpsc::channel(1).0))
}

fn entry(uri: &str, title: &str, text: &str) -> Change {
    let part = Part { format: Format::Plain, text: text.into(), ..Part::default() };
    let document =
        Document { mime_type: "text/plain".into(), parts: vec![part], ..Document::default() };
    Change::Replace(Box::new(Entry {
        server: ServerName::new("handbook").unwrap(),
        resource: Resource {
            name: title.into(),
            mime_type: Some("text/plain".into()),
            ..Resource::new(uri)
        },
        document_title: None,
        mime_type: Some("text/plain".into()),
        content_hash: ContentHash([1; 16]),
        fingerprint: Fingerprint(1),
        outcome: Outcome::Indexed,
        chunks: chunk(&document),
        indexed_at: chrono::Utc::now(),
    }))
}

fn skipped(uri: &str, reason: &str) -> Change {
    let Change::Replace(mut entry) = entry(uri, "Logo", "") else { unreachable!() };
    entry.outcome = Outcome::Skipped(reason.into());
    entry.chunks.clear();
    Change::Replace(entry)
}

/// A daemon's face with a small index, without any server.
struct Face {
    folder: tempfile::TempDir,
    shutdown: CancellationToken,
    _runtime: tokio::runtime::Runtime,
}

impl Face {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = TantivyStore::in_memory().unwrap();
        let evil = format!("A refund is {HOSTILE} never late.\n");
        let evil_title = format!("Late {HOSTILE}");
        store
            .apply(vec![
                entry("handbook:///refunds.md", "Refunds", "A refund takes 14 days.\n"),
                entry("handbook:///退款.md", "退款", "退款需要十四天。\n"),
                entry("handbook:///evil.md", &evil_title, &evil),
                skipped("handbook:///logo.png", "image/png has no text"),
            ])
            .unwrap();
        store.commit().unwrap();
        let control = Control::default();
        control.insert(ServerName::new("handbook").unwrap(), shared("handbook"));
        let mut config = Config::default();
        let include = vec!["handbook:///退款.md".to_owned()];
        let chinese = ScopeConfig { include, ..ScopeConfig::default() };
        config.scopes.insert("chinese".to_owned(), chinese);
        let app = App::new(Arc::new(store), Arc::new(control), Arc::new(config));
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let shutdown = CancellationToken::new();
        let inside = runtime.enter();
        let socket = Socket::bind(&folder.path().join("sock"), &Config::default().socket).unwrap();
        drop(inside);
        let router = router(Arc::new(app), shutdown.clone());
        runtime.spawn(socket.serve(router, 64, shutdown.clone()));
        Self { folder, shutdown, _runtime: runtime }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("sock")
    }

    fn ask(&self, arguments: &[&str]) -> Output {
        let socket = self.socket();
        resdex(&[arguments, &["--socket", socket.to_str().unwrap()]].concat())
    }

    fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.ask(&[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for Face {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

#[test]
fn commands_answer_over_the_socket() {
    let face = Face::start();
    let found = face.json(&["search", "退款"]);
    assert_eq!(found["hits"][0]["uri"], "handbook:///退款.md");
    assert_eq!(found["hits"][0]["start_line"], 1);
    assert_eq!(found["hits"][0]["untrusted"], true);
    let shown = stdout(&face.ask(&["search", "refund", "days"]));
    assert!(shown.starts_with("1. Refunds\n   handbook handbook:///refunds.md\n"), "{shown}");

    let read = face.json(&["read", "handbook:///%E9%80%80%E6%AC%BE.md"]);
    assert_eq!(read["uri"], "handbook:///退款.md");
    assert_eq!(read["stale"], true);
    let read = face.ask(&["read", "handbook:///refunds.md"]);
    assert_eq!(stdout(&read), "A refund takes 14 days.\n");
    assert!(stderr(&read).contains("stale"), "{}", stderr(&read));

    assert_eq!(face.json(&["list"])["resources"].as_array().unwrap().len(), 4);
    let skipped = face.json(&["list", "--skipped"]);
    let [skipped] = &skipped["resources"].as_array().unwrap()[..] else {
        unreachable!("{skipped}")
    };
    assert_eq!(
        (&skipped["uri"], &skipped["outcome"], &skipped["reason"]),
        (&"handbook:///logo.png".into(), &"skipped".into(), &"image/png has no text".into())
    );
    let shown = stdout(&face.ask(&["list", "--skipped"]));
    assert!(
        shown.contains("handbook:///logo.png") && shown.contains("image/png has no text"),
        "{shown}"
    );
    assert_eq!(face.json(&["status"])["index"]["resources"], 4);
    assert_eq!(face.json(&["sync"])["started"], serde_json::json!([]));
    assert_eq!(face.json(&["list", "--templates"])["templates"], serde_json::json!([]));
}

/// A knowledge base is tested with questions of one's own.
#[test]
fn the_daemon_is_asked_questions_with_known_answers() {
    let face = Face::start();
    let file = face.folder.path().join("questions.jsonl");
    let questions = [
        r#"{"query": "refund days", "expect": "handbook:///refunds.md", "answers": ["14 days"]}"#,
        r#"{"query": "退款要多久？", "expect": ["handbook:///no.md", "handbook:///%E9%80%80%E6%AC%BE.md"]}"#,
        r#"{"query": "refund", "expect": "handbook:///evil.md"}"#,
        r#"{"query": "refund of a gift card", "expect": "handbook:///gifts.md"}"#,
    ];
    std::fs::write(&file, questions.join("\n")).unwrap();
    let file = file.to_str().unwrap();

    let output = face.ask(&["eval", file]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(
        stderr(&output),
        "found at rank 2: refund (first: handbook:///refunds.md)\n\
         not found, since nothing has that URI: refund of a gift card (first: handbook:///refunds.md)\n"
    );
    let shown = stdout(&output);
    assert!(shown.lines().nth(1).unwrap().starts_with("questions  4        "), "{shown}");

    let report = face.json(&["eval", file, "--server", "handbook"]);
    assert_eq!((&report["queries"], &report["success_at_1"]), (&4.into(), &0.5.into()));
    assert_eq!(
        (&report["success_at_3"], &report["answer_in_snippet"]),
        (&0.75.into(), &1.0.into())
    );
    assert_eq!(
        report["missed"][0],
        serde_json::json!({
            "query": "refund",
            "expect": ["handbook:///evil.md"],
            "rank": 2,
            "first": "handbook:///refunds.md",
            "is_unknown": false,
        })
    );
    assert_eq!(report["missed"][1]["is_unknown"], true);
    // A context is asked for where there are answers to look for.
    assert_eq!(face.json(&["eval", file])["answer_in_context_500"], 1.0);

    // In a scope there is what the scope shows.
    let report = face.json(&["eval", file, "--scope", "chinese"]);
    assert_eq!(
        (&report["success_at_1"], &report["answer_in_context_500"]),
        (&0.25.into(), &0.0.into())
    );
    let unknown: Vec<&serde_json::Value> =
        report["missed"].as_array().unwrap().iter().map(|missed| &missed["is_unknown"]).collect();
    assert_eq!(unknown, [true, true, true]);

    let empty = face.folder.path().join("empty.jsonl");
    std::fs::write(&empty, "").unwrap();
    for (arguments, code, says) in [
        (&[file, "--scope", "chinse"][..], 1, "chinese"),
        (&[file, "--server", "handbok"], 1, "handbook"),
        (&[file, "--rank", "title=0"], 2, "--rank and --off-topic are for folders"),
        (&[empty.to_str().unwrap()], 2, "it has no questions"),
        (&["nothing.jsonl"], 2, "nothing.jsonl"),
    ] {
        let output = face.ask(&[&["eval"], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn no_output_steers_a_terminal() {
    let face = Face::start();
    for arguments in [
        &["search", "refund late"][..],
        &["search", "refund late", "--json"],
        &["read", "handbook:///evil.md"],
        &["read", "handbook:///evil.md", "--json"],
        &["list"],
        &["list", "--json"],
        &["status"],
        &["status", "--json"],
        &["read", "handbook:///\u{1b}[31m"],
    ] {
        let output = face.ask(arguments);
        for bytes in [&output.stdout, &output.stderr] {
            let text = std::str::from_utf8(bytes).unwrap();
            let bad = text.chars().find(|c| c.is_control() && *c != '\n');
            assert_eq!(bad, None, "{arguments:?}: {text:?}");
        }
    }
    // JSON keeps what it escapes.
    let read = face.json(&["read", "handbook:///evil.md"]);
    assert!(read["contents"][0]["text"].as_str().unwrap().contains(HOSTILE));
}

#[test]
fn exit_codes_are_as_documented() {
    let face = Face::start();
    let nobody = face.folder.path().join("nobody");
    let nobody = nobody.to_str().unwrap();
    let missing = face.folder.path().join("missing.toml");
    let missing = missing.to_str().unwrap();
    for (arguments, code, says) in [
        (&["--version"][..], 0, ""),
        (&["search", "x", "--limit", "0"], 1, "limit: 1 to 100"),
        (&["search", "x", "--server", "handbok"], 1, "did you mean \"handbook\"?"),
        (&["read", "handbook:///refund.md"], 1, "handbook:///refunds.md"),
        (&["search"], 2, "QUERY"),
        (&["nothing"], 2, "unrecognized"),
    ] {
        let output = match arguments[0] {
            "search" | "read" => face.ask(arguments),
            _ => resdex(arguments),
        };
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{arguments:?}: {}", stderr(&output));
    }
    let output = resdex(&["status", "--socket", nobody]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains(&format!("no daemon answers at {nobody}")));
    assert!(stderr(&output).contains("resdex serve --config"));
    let output = resdex(&["config", "check", "--config", missing]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stdout(&output).is_empty());
}

#[test]
fn the_manual_and_the_completions_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let man = folder.path().join("man1");
    assert!(resdex(&["man", man.to_str().unwrap()]).status.success());
    assert!(man.join("resdex-search.1").exists());
    for shell in ["bash", "zsh", "fish"] {
        assert!(stdout(&resdex(&["completions", shell])).contains("resdex"), "{shell}");
    }
}

#[test]
fn a_files_extraction_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.md");
    std::fs::write(&file, "# 退款\n\nA \u{1b}[31mrefund\n").unwrap();
    let output = resdex(&["extract", file.to_str().unwrap(), "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json["outcome"] == "indexed" || json["reason"].is_string(), "{json}");
    assert!(json["took_ms"].is_number(), "{json}");
    assert_eq!(json["parts"][0]["headings"][0]["line"], 1, "{json}");
    let shown = stdout(&resdex(&["extract", file.to_str().unwrap()]));
    assert!(
        !shown.contains('\u{1b}') && shown.contains("── headings ──\n退款 line 1\n"),
        "{shown}"
    );
    let text = stdout(&resdex(&["extract", "--text", file.to_str().unwrap()]));
    assert!(text.starts_with("# 退款\n") && !text.contains("──"), "{text}");

    // A worker opens what is binary, here a picture.
    let gif = folder.path().join("a.gif");
    std::fs::write(
        &gif,
        b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;",
    )
    .unwrap();
    let shown = stdout(&resdex(&["extract", "--text", gif.to_str().unwrap()]));
    assert_eq!(shown, "GIF image, 1 × 1 pixels\n");
}
