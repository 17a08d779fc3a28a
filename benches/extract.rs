//! How fast workers open each format, and what a search takes meanwhile, beside what it takes alone.
//!
//! `cargo bench --bench extract [-- FOLDER]`: the folder's files, else those that the interop tests make
//! (`tests/interop/setup` installs what writes them), small ones that tell the cost of a round and large
//! ones that tell the throughput.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench stops at a fault, and prints"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use resdex::chunk::chunk;
use resdex::config::Limits;
use resdex::extract::{self, Extraction};
use resdex::index::tantivy::{TantivyStore, fingerprint};
use resdex::index::{Change, Entry, IndexStore};
use resdex::model::{Body, Content, Outcome, Resource, ServerName, Snapshot};
use resdex::search;
use resdex::worker::Workers;

/// Each format is read for about this long.
const TIME: Duration = Duration::from_secs(1);
const SEARCHES: usize = 2_000;

/// How often a large document says what a small one says once.
const TIMES: usize = 50;

/// A document of a format, with the length of its file.
type File = (Resource, Snapshot, usize);
type Formats = BTreeMap<String, Vec<File>>;

#[tokio::main]
async fn main() {
    let given = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let scratch = tempfile::tempdir().unwrap();
    let folders = match given {
        Some(folder) => vec![PathBuf::from(folder)],
        None => vec![made(scratch.path(), 1), made(scratch.path(), TIMES)],
    };
    let workers = Workers::of(env!("CARGO_BIN_EXE_resdex"), 2);
    let limits = Limits::default();
    let mut formats = Formats::new();
    for folder in folders {
        formats = files(&folder);
        println!("| format | a file | a document | of file | of text |\n|---|---|---|---|---|");
        for (format, files) in &formats {
            throughput(format, files, &workers, &limits).await;
        }
        println!();
    }
    latency(&formats, &workers, &limits).await;
}

fn files(folder: &Path) -> Formats {
    let mut formats = Formats::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        // Not the list of what is to be found in them.
        let Some((_, format)) = name.split_once('.').filter(|_| name != "expected.json") else {
            continue;
        };
        let bytes = fs::read(&path).unwrap();
        let uri = format!("bench:///{name}");
        let body = Body::Blob(BASE64_STANDARD.encode(&bytes));
        let content = Content { left_out: None, uri: uri.clone(), mime_type: None, body };
        let one = (Resource::new(uri.as_str()), Snapshot::new(vec![content]), bytes.len());
        formats.entry(format.to_owned()).or_default().push(one);
    }
    formats
}

/// One document after the other, each as it comes from a server: in base64.
async fn throughput(format: &str, files: &[File], workers: &Workers, limits: &Limits) {
    let (begin, mut documents, mut bytes, mut text) = (Instant::now(), 0, 0, 0);
    while begin.elapsed() < TIME {
        for (resource, snapshot, size) in files {
            let found = workers.extract(resource, snapshot, limits).await.unwrap();
            documents += 1;
            bytes += size;
            if let Extraction::Document(document) = found {
                text += document.parts.iter().map(|part| part.text.len()).sum::<usize>();
            }
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "| {format} | {:.1} KB | {:.2} ms | {:.2} MB/s | {:.2} MB/s |",
        bytes as f64 / f64::from(documents) / 1e3,
        seconds * 1e3 / f64::from(documents),
        bytes as f64 / seconds / 1e6,
        text as f64 / seconds / 1e6,
    );
}

/// The documents of the tests, written by their script.
fn made(scratch: &Path, times: usize) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("target/interop/documents/bin/python");
    let script = root.join("tests/interop/peers/documents/make.py");
    let folder = scratch.join(times.to_string());
    let made = Command::new(python).arg(script).arg(&folder).arg(times.to_string()).status();
    assert!(made.unwrap().success());
    folder
}

/// Searches alone, and while both workers are busy all the time.
async fn latency(formats: &Formats, workers: &Workers, limits: &Limits) {
    let store = store();
    let alone = searches(&store);
    let stop = Arc::new(AtomicBool::new(false));
    let mut busy = vec![];
    for _ in 0..2 {
        let (stop, workers, limits) = (stop.clone(), workers.clone(), limits.clone());
        let files: Vec<_> = formats.values().flatten().cloned().collect();
        busy.push(tokio::spawn(async move {
            let mut documents = 0;
            while !stop.load(Ordering::Relaxed) {
                for (resource, snapshot, _) in &files {
                    workers.extract(resource, snapshot, &limits).await.unwrap();
                    documents += 1;
                }
            }
            documents
        }));
    }
    let meanwhile = tokio::task::spawn_blocking(move || searches(&store)).await.unwrap();
    stop.store(true, Ordering::Relaxed);
    let mut documents = 0;
    for busy in busy {
        documents += busy.await.unwrap();
    }
    println!(
        "| a search | alone | while {documents} documents were opened | ratio | wanted | |\n|---|---|---|---|---|---|"
    );
    for (name, alone, meanwhile) in [("p50", alone.0, meanwhile.0), ("p99", alone.1, meanwhile.1)] {
        let ratio = meanwhile / alone;
        let word = if ratio < 2.0 { "met" } else { "missed" };
        println!("| {name} | {alone:.3} ms | {meanwhile:.3} ms | {ratio:.2} | < 2 | {word} |");
    }
}

fn store() -> TantivyStore {
    let store = TantivyStore::in_memory().unwrap();
    let server = ServerName::new("bench").unwrap();
    let entry = |number: usize| {
        let text =
            format!("Refund {number} is granted within {} days. 退款申请须提交。\n\n", number % 97);
        let uri = format!("bench:///{number}.md");
        let resource = Resource::new(uri.as_str());
        let content =
            Content { left_out: None, uri, mime_type: None, body: Body::Text(text.repeat(40)) };
        let snapshot = Snapshot::new(vec![content]);
        let found = extract::extract(&resource, &snapshot, &Limits::default());
        let Extraction::Document(document) = found else { unreachable!("it is text") };
        Change::Replace(Box::new(Entry {
            server: server.clone(),
            chunks: chunk(&document),
            document_title: document.title,
            mime_type: Some(document.mime_type),
            content_hash: snapshot.hash,
            fingerprint: fingerprint(),
            outcome: Outcome::Indexed,
            indexed_at: chrono::Utc::now(),
            resource,
        }))
    };
    store.apply((0..2_000).map(entry).collect()).unwrap();
    store.commit().unwrap();
    store
}

/// p50 and p99 in milliseconds.
fn searches(store: &TantivyStore) -> (f64, f64) {
    let mut times: Vec<f64> = (0..SEARCHES)
        .map(|number| {
            let query = format!("refund {} 退款", number % 97);
            let begin = Instant::now();
            search::search(store, &search::Request::new(query.as_str())).unwrap();
            begin.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[times.len() * 99 / 100])
}
