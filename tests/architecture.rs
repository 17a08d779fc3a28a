//! The rules of the house, held over the source: which room may use which, where the types of rmcp
//! and tantivy may stand, and which files stay pure. `ARCHITECTURE.md` says why.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Which rooms a room may use, by the start of the module's path. `daemon` wires all of them.
const RULES: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("metrics", &[]),
    ("fault", &[]),
    ("quiet", &[]),
    ("kept", &[]),
    ("outbox", &[]),
    (
        "fuzz",
        &["model", "config", "source", "extract", "chunk", "analyze", "index", "search", "serve"],
    ),
    ("config", &["model"]),
    ("source", &["model", "config"]),
    ("sync", &["model", "metrics", "config", "source", "extract", "worker", "chunk", "index"]),
    ("extract", &["model", "config"]),
    ("worker", &["model", "config", "extract"]),
    ("chunk", &["model"]),
    ("analyze", &[]),
    ("index", &["model", "config", "analyze"]),
    ("search", &["model", "index"]),
    (
        "serve",
        &[
            "model",
            "metrics",
            "config",
            "search",
            "index",
            "sync::control",
            "sync::added",
            "worker",
        ],
    ),
    ("client", &["serve::api"]),
    ("eval", &["model", "config", "extract", "chunk", "analyze", "index", "search"]),
    ("cli", &["client", "serve::api", "model", "config", "daemon"]),
];

/// May be used anywhere: what does nothing but in a test, how often the log is told, and what rooms that
/// mustn't know one another have in common.
const EVERYWHERE: &[&str] = &["fault", "quiet", "kept", "outbox"];

/// What a file uses against the rules, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("chunk.rs", "extract::mime", "how text is cut follows from what kind of text it is"),
    ("chunk/atoms.rs", "extract::markdown", "one reading of Markdown's fences, not two"),
    ("chunk/items.rs", "extract::markdown", "one reading of Markdown's fences, not two"),
    ("index.rs", "extract::mime", "whether a declared type is the right one is said in one way"),
    ("index.rs", "search::filter", "the store's request holds it; pure data"),
    ("index.rs", "search::query", "the store's request holds it; pure data"),
    ("index.rs", "search::ranking", "the store's request holds it; pure data"),
    ("index/tantivy/query.rs", "search::ranking", "the request's factors, applied"),
    ("index/tantivy/statistics.rs", "search::ranking", "the request's factors, applied"),
    ("index/tantivy/visible.rs", "search::filter", "the request's filter, applied"),
    ("index/tantivy/query.rs", "search::query", "the request's query, translated"),
    ("index/tantivy.rs", "extract", "its VERSION, for the fingerprint"),
    ("index/tantivy.rs", "chunk", "its VERSION, for the fingerprint"),
    ("serve/cut.rs", "chunk", "tokens are estimated in one way"),
    ("serve/read.rs", "chunk", "tokens are estimated in one way"),
    ("serve/read/shape.rs", "chunk", "tokens are estimated in one way"),
    ("serve/read.rs", "extract", "`read --extracted` shows a live snapshot as text"),
    ("serve/read.rs", "source", "a live read's errors become answers"),
    ("serve/search.rs", "chunk", "tokens are estimated in one way"),
    ("serve/dify.rs", "chunk", "tokens are estimated in one way"),
    ("serve/resource.rs", "chunk", "tokens are estimated in one way"),
    ("serve/mcp/tools.rs", "chunk", "tokens are estimated in one way"),
    (
        "serve/fill.rs",
        "source",
        "one reading of URI templates, and a server's errors become answers",
    ),
    ("serve/mcp/complete.rs", "source::mcp::template", "one reading of URI templates, not two"),
    ("index/tantivy/search.rs", "search::versions", "one rule of what is a version of what"),
    ("eval/run.rs", "serve::tokenizer", "a context is counted as the daemon counts it"),
    ("cli/eval.rs", "eval", "`resdex eval` works without a daemon"),
    ("cli/eval.rs", "search::ranking", "`resdex eval --rank` changes what is measured"),
    ("cli/eval.rs", "chunk", "tokens are estimated in one way"),
    ("cli/ask.rs", "serve::error", "a wrong range of lines is refused as the daemon would"),
    ("cli/local.rs", "extract", "`resdex extract` works without a daemon"),
    ("cli/local.rs", "worker", "and opens a hostile file as safely as the daemon does"),
    ("cli.rs", "worker", "the hidden command that is a worker"),
    ("cli/local.rs", "chunk", "`resdex extract` shows the chunks"),
    ("cli/local.rs", "source::files", "`resdex files` works without a daemon"),
    ("cli/progress.rs", "sync::control", "`serve` shows progress on its own terminal"),
];

/// Crates that stay where they are used, so that a new version is one room's matter.
const CRATES: &[(&str, &[&str])] = &[
    ("rmcp", &["source/mcp", "source/files", "serve/mcp", "outbox.rs"]),
    ("tantivy", &["index/tantivy"]),
    ("reqwest", &["source/mcp/transport/http.rs"]),
    ("axum", &["serve"]),
    ("maud", &["serve/console"]),
    ("ammonia", &["serve/console/preview.rs"]),
    ("pulldown_cmark", &["serve/console/preview.rs"]),
    ("hyper", &["serve", "client.rs"]),
    ("notify", &["config/watch.rs", "source/files"]),
    ("tokio_cron_scheduler", &["sync/schedule.rs"]),
    ("sd_notify", &["daemon/manager.rs"]),
    ("clap", &["cli"]),
    ("indicatif", &["cli/progress.rs"]),
    ("hayro_interpret", &["extract/open/pdf"]),
    ("hayro_syntax", &["extract/open/pdf"]),
    ("calamine", &["extract/open/sheet.rs"]),
    ("zip", &["extract/open/package.rs"]),
    ("mail_parser", &["extract/open/mail.rs"]),
    ("lofty", &["extract/open/media.rs"]),
    ("landlock", &["worker/confine.rs"]),
    ("seccompiler", &["worker/confine.rs"]),
];

/// No I/O and no clock: what comes out depends on what goes in.
const PURE: &[&str] = &[
    "model.rs",
    "config/diff",
    "sync/machine",
    "sync/plan",
    "sync/dirty",
    "sync/catalog",
    "sync/backoff",
    "extract",
    "chunk",
    "analyze",
    "search",
    "serve/cut",
    "serve/scope",
];

const IMPURE: &[&str] = &[
    "std::fs",
    "std::net",
    "std::env",
    "std::io",
    "std::process",
    "std::thread",
    "std::time::SystemTime",
    "SystemTime::now",
    "Instant::now",
    "Utc::now",
    "Local::now",
    "tokio",
];

/// A moment of tokio's clock is data; only asking for the present one isn't pure. Bytes in memory are
/// read by the same traits as files.
const IMPURE_BUT_DATA: &[&str] = &["tokio::time::Instant", "std::io::Read", "std::io::Cursor"];

/// A source file without comments and tests: its path below `src`, and every path expression in it
/// (`crate::model::Uri`, `tantivy::Index`), groups taken apart.
struct Source {
    file: String,
    paths: BTreeSet<String>,
}

fn sources() -> Vec<Source> {
    fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![];
    collect(&root, &mut files);
    let texts: Vec<(String, String)> = files
        .iter()
        .map(|path| {
            let file = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            (file, fs::read_to_string(path).unwrap())
        })
        .collect();
    let tests: Vec<String> =
        texts.iter().flat_map(|(file, text)| test_modules(file, text)).collect();
    let is_test = |file: &str| {
        tests.iter().any(|module| {
            file.strip_prefix(module.as_str())
                .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        })
    };
    let code = texts.into_iter().filter(|(file, _)| !is_test(file));
    code.map(|(file, text)| Source { file, paths: paths(&without_tests(&text)) }).collect()
}

/// The modules of a file that are compiled for tests only, as paths without `.rs`.
fn test_modules(file: &str, text: &str) -> Vec<String> {
    let folder = file.trim_end_matches(".rs").trim_end_matches("/mod");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let declared = lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]");
    let names = declared.filter_map(|pair| pair[1].strip_suffix(';')?.split("mod ").nth(1));
    names.map(|name| format!("{folder}/{name}")).collect()
}

/// The text up to its module of tests, which stands last, without comments.
fn without_tests(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let end = lines
        .windows(2)
        .position(|pair| pair[0] == "#[cfg(test)]" && pair[1].ends_with('{'))
        .unwrap_or(lines.len());
    let code = lines[..end].iter().map(|line| line.split("//").next().unwrap_or_default());
    code.collect::<Vec<_>>().join("\n")
}

fn paths(code: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = BTreeSet::new();
    // The prefix before each open brace; empty where the brace isn't a group of paths.
    let mut groups: Vec<String> = vec![];
    let mut path = String::new();
    let mut rest = code;
    while let Some(c) = rest.chars().next() {
        let word = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        let taken = if !word.is_empty() {
            path += word;
            word.len()
        } else if rest.starts_with("::") {
            // A leading `::` names a crate as a plain name does.
            if !path.is_empty() {
                path += "::";
            }
            2
        } else {
            let prefix = groups.last().cloned().unwrap_or_default();
            let whole = format!("{prefix}{path}");
            path.clear();
            if c == '{' {
                groups.push(if whole.ends_with("::") { whole.clone() } else { String::new() });
            } else if c == '}' {
                groups.pop();
            }
            if whole.trim_end_matches("::").contains("::") || whole.ends_with("::") {
                found.insert(whole.trim_end_matches("::").to_owned());
            }
            c.len_utf8()
        };
        rest = &rest[taken..];
    }
    found
}

/// Whether a path is `start` or lies below it.
fn is_in(path: &str, start: &str) -> bool {
    path.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn room(file: &str) -> &str {
    file.split(['/', '.']).next().unwrap_or_default()
}

#[test]
fn rooms_use_only_the_rooms_they_may() {
    let mut broken = vec![];
    let mut needed = BTreeSet::new();
    for Source { file, paths } in sources() {
        let own = room(&file);
        if ["main", "lib", "daemon"].contains(&own) {
            continue;
        }
        let rule = RULES.iter().find(|(room, _)| *room == own);
        let (_, allowed) = rule.unwrap_or_else(|| panic!("no rule says what {own} may use"));
        for used in paths.iter().filter_map(|path| path.strip_prefix("crate::")) {
            if is_in(used, own)
                || EVERYWHERE.iter().any(|start| is_in(used, start))
                || allowed.iter().any(|start| is_in(used, start))
            {
                continue;
            }
            let exception =
                EXCEPTIONS.iter().find(|(place, start, _)| *place == file && is_in(used, start));
            match exception {
                Some(exception) => {
                    needed.insert(*exception);
                }
                None => broken.push(format!("{file} uses {used}")),
            }
        }
    }
    assert!(broken.is_empty(), "against the rules of the house:\n{}", broken.join("\n"));
    let stale: Vec<_> = EXCEPTIONS.iter().filter(|entry| !needed.contains(*entry)).collect();
    assert!(stale.is_empty(), "exceptions that nothing needs any more: {stale:#?}");
}

#[test]
fn crates_stay_in_their_rooms() {
    let sources = sources();
    for (name, places) in CRATES {
        let users = sources.iter().filter(|source| source.paths.iter().any(|p| is_in(p, name)));
        let users: Vec<&str> = users.map(|source| source.file.as_str()).collect();
        assert!(!users.is_empty(), "nothing uses {name}");
        let strays: Vec<_> = users
            .iter()
            .filter(|file| !places.iter().any(|place| file.starts_with(place)))
            .collect();
        assert!(strays.is_empty(), "{name} belongs in {places:?}, not in {strays:?}");
    }
}

#[test]
fn decisions_are_pure() {
    let sources = sources();
    for place in PURE {
        let files: Vec<&Source> = sources
            .iter()
            .filter(|source| {
                source
                    .file
                    .strip_prefix(place)
                    .is_some_and(|rest| rest.is_empty() || rest == ".rs" || rest.starts_with('/'))
            })
            .collect();
        assert!(!files.is_empty(), "there is no {place}");
        for Source { file, paths } in files {
            for path in paths.iter().filter(|path| !IMPURE_BUT_DATA.contains(&path.as_str())) {
                let impure = IMPURE.iter().find(|start| is_in(path, start));
                assert_eq!(impure, None, "{file} uses {path}");
            }
        }
    }
}

#[test]
fn paths_are_found_in_every_spelling() {
    let code = "use crate::{analyze, chunk::{self, tokens::UNIT}};\n// crate::hidden::x\n\
                use ::tantivy::Index;\nfn f() { if a { crate::model::g(&crate::serve::X) } }\n\
                #[cfg(test)]\nmod tests {\n    use crate::daemon::x;\n}";
    let found = paths(&without_tests(code));
    for path in [
        "crate::analyze",
        "crate::chunk::self",
        "crate::chunk::tokens::UNIT",
        "tantivy::Index",
        "crate::model::g",
        "crate::serve::X",
    ] {
        assert!(found.contains(path), "{path} isn't in {found:?}");
    }
    assert!(!found.iter().any(|path| path.contains("hidden") || path.contains("daemon")));
}
