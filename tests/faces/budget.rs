//! What it costs a model to find something: the tokens of one search and one bounded read, through the
//! MCP face, beside those of listing and reading whole documents.
//!
//! Over the sample handbook; over a folder as `resdex eval` takes it when RESDEX_EVAL_DIR names one:
//! `RESDEX_EVAL_DIR=… cargo test --release --test faces budget -- --nocapture`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use resdex::eval::{Question, Set};
use resdex::serve::tokenizer::Tokenizer;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::daemon::{Daemon, Stopped};
use crate::http::call_tool;

/// Tokens (o200k) that a search and a read of what it found may bring to a model.
const MOST: usize = 1_500;

/// The bound of a read: what a search leaves of that.
const BOUND: usize = 900;

/// What became of one question.
struct Asked {
    /// Where among the results the right document was.
    rank: Option<usize>,
    search: usize,
    read: usize,
    /// Whether what was read has the answer, where that is known.
    answered: Option<bool>,
}

/// Serves a folder of documents and asks as a model would: search, then read the lines of the first
/// result. Questions name documents by what their URI ends with.
struct House {
    daemon: Daemon,
    tokenizer: Tokenizer,
}

impl House {
    fn new(folder: &Path, documents: usize) -> Self {
        let config = format!("[servers.docs]\nfiles = {}\n", json!(folder));
        let daemon = Stopped::new(&config).start();
        daemon.wait_until("all is indexed", |daemon| {
            let server = daemon.server("docs");
            (server["state"] == "live" && server["indexed"] == documents).then_some(())
        });
        Self { daemon, tokenizer: Tokenizer::named(None).unwrap() }
    }

    fn ask(&self, question: &Question) -> Asked {
        let socket = self.daemon.folder().join("sock");
        let found = call_tool(&socket, "search", &json!({"query": question.text}));
        let results: Value = serde_json::from_str(&found).unwrap();
        let results = results["results"].as_array().unwrap();
        let is_right = |result: &Value| {
            let id = result["id"].as_str().unwrap();
            question.grades.keys().any(|document| id.ends_with(&format!("/{document}")))
        };
        let read = results.first().map(|first| {
            let lines = json!({"id": first["id"], "lines": first["lines"], "max_tokens": BOUND});
            call_tool(&socket, "fetch", &lines)
        });
        let read = read.unwrap_or_default();
        let answers = &question.answers;
        Asked {
            rank: results.iter().position(is_right),
            search: self.tokenizer.count(&found),
            read: self.tokenizer.count(&read),
            answered: (!answers.is_empty()).then(|| answers.iter().any(|one| read.contains(one))),
        }
    }
}

fn report(name: &str, asked: &[Asked]) {
    let share = |count: usize| count as f64 / asked.len() as f64;
    let among = |most: usize| asked.iter().filter(|one| one.rank.is_some_and(|r| r < most)).count();
    let mean = |of: &dyn Fn(&Asked) -> usize| asked.iter().map(of).sum::<usize>() / asked.len();
    let mut sums: Vec<usize> = asked.iter().map(|one| one.search + one.read).collect();
    sums.sort_unstable();
    let known = asked.iter().filter_map(|one| one.answered);
    let (right, known) = known.fold((0, 0), |(r, k), answered| (r + usize::from(answered), k + 1));
    println!(
        "{name}: {} questions, success_at_1 {:.3}, success_at_3 {:.3}, tokens of a search {} and a read {}, \
         of both p50 {} p99 {} max {}, answered by what was read {right}/{known}",
        asked.len(),
        share(among(1)),
        share(among(3)),
        mean(&|one| one.search),
        mean(&|one| one.read),
        sums[sums.len() / 2],
        sums[sums.len() * 99 / 100],
        sums[sums.len() - 1],
    );
}

#[derive(Deserialize)]
struct Questions {
    documents: Vec<Expected>,
}

#[derive(Deserialize)]
struct Expected {
    expect: String,
    questions: Vec<String>,
    mixed: String,
}

#[test]
fn a_search_and_a_read_of_the_handbook_stay_small() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = fs::read_to_string(root.join("tests/handbook_questions.toml")).unwrap();
    let table: Questions = toml::from_str(&table).unwrap();
    let house = House::new(&root.join("data/handbook"), table.documents.len());
    let mut asked = vec![];
    for document in table.documents {
        let name = document.expect.rsplit('/').next().unwrap().to_owned();
        let grades = BTreeMap::from([(name, 1.0)]);
        for text in document.questions.into_iter().chain([document.mixed]) {
            asked.push(house.ask(&Question { text, grades: grades.clone(), answers: vec![] }));
        }
    }
    report("handbook", &asked);
    for one in &asked {
        assert!(one.search + one.read <= MOST, "{} + {}", one.search, one.read);
        assert!(one.read > 0);
    }
}

#[test]
fn a_search_and_a_read_of_a_folder_of_questions_stay_small() {
    let Some(set) = std::env::var_os("RESDEX_EVAL_DIR").map(PathBuf::from) else {
        println!("skipped: RESDEX_EVAL_DIR names no folder");
        return;
    };
    let set = Set::read(&set).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = Tokenizer::named(None).unwrap();
    let mut whole = 0;
    for document in &set.documents {
        let text = format!("{}\n{}", document.title, document.text);
        whole += tokenizer.count(&text);
        fs::write(folder.path().join(&document.id.0), text.trim_start()).unwrap();
    }
    let house = House::new(folder.path(), set.documents.len());
    let listing = house.daemon.ask(&["list"]).unwrap().to_string();
    println!(
        "{} documents: a listing {} tokens, a whole document {}",
        set.documents.len(),
        tokenizer.count(&listing),
        whole / set.documents.len(),
    );
    let mut groups: BTreeMap<&str, Vec<Asked>> = BTreeMap::new();
    for question in &set.questions {
        let han = question.text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
        groups.entry(if han { "Chinese" } else { "other" }).or_default().push(house.ask(question));
    }
    for (name, asked) in &groups {
        report(name, asked);
    }
    for one in groups.values().flatten() {
        assert!(one.search + one.read <= MOST, "{} + {}", one.search, one.read);
    }
}
