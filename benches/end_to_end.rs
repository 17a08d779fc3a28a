//! The whole flow from a folder to an answer, each figure beside its denominator from the same run:
//!
//! * first sync of a folder, beside reading it alone and beside raw tantivy indexing the same chunks;
//! * a changed file until a search over the socket finds it, beside a raw commit and reload;
//! * a search over the socket, beside the same search in this process.
//!
//! `cargo bench --bench end_to_end [-- FOLDER]`; without a folder a corpus is made.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench stops at a fault, and prints"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures::StreamExt;
use resdex::analyze;
use resdex::chunk::chunk;
use resdex::client::Client;
use resdex::config::{Config, IndexConfig};
use resdex::extract::{Extraction, extract};
use resdex::index::tantivy::TantivyStore;
use resdex::index::tantivy::analyzer::{Pool, PooledTokenizer};
use resdex::model::{Body, Chunk, Resource, ServerName, ServerState, Snapshot};
use resdex::search;
use resdex::serve::api::SearchRequest;
use resdex::source::mcp::{ConnectOptions, connect};
use tantivy::schema::{Field, IndexRecordOption, STORED, STRING, Schema};
use tantivy::schema::{TextFieldIndexing, TextOptions};
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{Index, IndexReader, IndexWriter, ReloadPolicy, TantivyDocument, Term};

const FILES: usize = 1_500;
const UPDATES: usize = 20;
const QUERIES: usize = 500;

#[tokio::main]
async fn main() {
    let given = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let scratch = tempfile::tempdir().unwrap();
    let corpus = given.map(|folder| fs::canonicalize(folder).unwrap()).unwrap_or_else(|| {
        let folder = scratch.path().join("corpus");
        generate(&folder);
        folder
    });
    // What is changed stands in a folder of its own: a given one is left as it is.
    let notes = scratch.path().join("notes");
    fs::create_dir(&notes).unwrap();
    for number in 0..UPDATES {
        fs::write(notes.join(format!("{number}.md")), "# News\n\nThere is none.\n").unwrap();
    }
    let config =
        format!("[servers.corpus]\nfiles = {corpus:?}\n[servers.notes]\nfiles = {notes:?}\n");
    let config_file = scratch.path().join("resdex.toml");
    fs::write(&config_file, &config).unwrap();
    let config = Config::from_texts(&[(config_file.clone(), config)], &|_| None).unwrap();

    let (texts, reading) = read_alone(&config).await;
    let bytes: usize = texts.iter().map(|(_, snapshot)| size(snapshot)).sum();
    let chunks = chunks(&texts, &config);
    let mut raw = Raw::new(&scratch.path().join("raw"), &config.index);
    let indexing = raw.index(&chunks);

    let daemon = Daemon::start(scratch.path(), &config_file);
    let client = Client::new(daemon.socket.clone());
    let sync = daemon.live(&client, (texts.len() + UPDATES) as u64).await;
    let mb = bytes as f64 / 1e6;
    let floor = reading.max(indexing);
    println!(
        "sync     {mb:.1} MB in {} resources, {} passages: {:.2} s | reading alone {:.2} s, raw tantivy {:.2} s | {:.2} × the larger",
        texts.len(),
        chunks.len(),
        seconds(sync),
        seconds(reading),
        seconds(indexing),
        seconds(sync) / seconds(floor),
    );

    let mut updates = vec![];
    let mut raws = vec![];
    for number in 0..UPDATES {
        let word = format!("changed{number}word");
        updates.push(update(&client, &notes.join(format!("{number}.md")), &word).await);
        raws.push(raw.update(&word));
    }
    compare("update", "file changed → found", &mut updates, "raw commit and reload", &mut raws);

    let queries = queries(&chunks);
    let mut socket = vec![];
    for query in &queries {
        let started = Instant::now();
        client.search(&SearchRequest { query: query.clone(), ..request() }).await.unwrap();
        socket.push(started.elapsed());
    }
    let state = daemon.stop();
    let store = TantivyStore::open(&state.join("index"), &config.index).unwrap();
    let mut inside = vec![];
    for query in &queries {
        let started = Instant::now();
        search::search(&store, &search::Request::new(query.as_str())).unwrap();
        inside.push(started.elapsed());
    }
    compare("query", "over the socket", &mut socket, "in this process", &mut inside);
}

fn request() -> SearchRequest {
    serde_json::from_str("{\"query\": \"\"}").unwrap()
}

fn compare(name: &str, what: &str, ours: &mut [Duration], other: &str, theirs: &mut [Duration]) {
    let [(a, b), (c, d)] = [&mut *ours, theirs].map(|times| {
        times.sort_unstable();
        let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
        (seconds(at(0.5)) * 1e3, seconds(at(0.99)) * 1e3)
    });
    println!(
        "{name:<8} {what}: p50 {a:.2} ms, p99 {b:.2} ms | {other}: p50 {c:.2} ms, p99 {d:.2} ms | {:.2} × at p50 ({} times)",
        a / c,
        ours.len(),
    );
}

fn size(snapshot: &Snapshot) -> usize {
    let bodies = snapshot.contents.iter().map(|content| match &content.body {
        Body::Text(text) | Body::Blob(text) => text.len(),
    });
    bodies.sum()
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

/// Numbers that look random and are the same in every run.
fn scatter(number: u64) -> u64 {
    let mixed = (number ^ (number >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// Markdown in English-looking words and Chinese, a few rare words and many common ones.
fn generate(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let syllables = ["ra", "ten", "mo", "shi", "pal", "ver", "in", "dor", "ka", "lus", "ed", "ing"];
    let characters: Vec<char> = ('一'..='龥').step_by(17).collect();
    let mut seed = 0;
    let mut random = |below: usize| {
        seed += 1;
        (scatter(seed) % below as u64) as usize
    };
    for file in 0..FILES {
        let mut text = format!("# Page {file}\n");
        while text.len() < 5_000 {
            if random(6) == 0 {
                write!(text, "\n\n## Section {}\n", random(40)).unwrap();
            }
            for _ in 0..12 + random(20) {
                // The square makes low numbers, hence some words, frequent.
                let mut rank = random(400) * random(400);
                text.push(' ');
                while {
                    text.push_str(syllables[rank % syllables.len()]);
                    rank /= syllables.len();
                    rank > 0
                } {}
            }
            if random(4) == 0 {
                text.push('\n');
                text.extend((0..30).map(|_| characters[random(characters.len())]));
                text.push('。');
            }
            text.push('\n');
        }
        fs::write(folder.join(format!("page-{file}.md")), text).unwrap();
    }
}

/// Lists and reads everything as the daemon does, and does nothing with it.
async fn read_alone(config: &Config) -> (Vec<(Resource, Snapshot)>, Duration) {
    let server = &config.servers[&ServerName::new("corpus").unwrap()];
    let options = ConnectOptions { limits: config.limits.clone(), ..ConnectOptions::default() };
    let started = Instant::now();
    let session = connect(server, &options).await.unwrap().session;
    let listed = session.list(&[]).await.unwrap().listing.resources;
    let reads = futures::stream::iter(listed)
        .map(|resource| async { (session.read(&resource.uri).await, resource) })
        .buffer_unordered(config.limits.reads_in_flight);
    let read: Vec<_> = reads.collect().await;
    let took = started.elapsed();
    session.close().await;
    let good = read.into_iter().filter_map(|(read, resource)| Some((resource, read.ok()?)));
    (good.collect(), took)
}

fn chunks(texts: &[(Resource, Snapshot)], config: &Config) -> Vec<Chunk> {
    let documents = texts.iter().filter_map(|(resource, snapshot)| {
        match extract(resource, snapshot, &config.limits) {
            Extraction::Document(document) => Some(document),
            Extraction::Skipped(_) => None,
        }
    });
    documents.flat_map(|document| chunk(&document)).collect()
}

/// Words of the corpus, in pairs.
fn queries(chunks: &[Chunk]) -> Vec<String> {
    let word = |number: u64| {
        let chunk = &chunks[scatter(number) as usize % chunks.len()];
        let words: Vec<&str> = chunk.text.split_whitespace().collect();
        words.get(scatter(number + 1) as usize % words.len().max(1)).copied().unwrap_or("page")
    };
    let pair = |number: u64| format!("{} {}", word(number), word(number + 1_000_000));
    (0..QUERIES as u64).map(pair).collect()
}

/// Writes a file and waits until a search finds its word.
async fn update(client: &Client, file: &Path, word: &str) -> Duration {
    let request = SearchRequest { query: word.into(), ..request() };
    fs::write(file, format!("# News\n\nThis says {word}.\n")).unwrap();
    let started = Instant::now();
    // A word that isn't there yet finds the nearest one that is.
    while !client
        .search(&request)
        .await
        .unwrap()
        .hits
        .iter()
        .any(|hit| hit.passage.snippet.contains(word))
    {
        assert!(started.elapsed() < Duration::from_secs(60), "{word} is never found");
    }
    started.elapsed()
}

struct Daemon {
    child: Child,
    started: Instant,
    socket: PathBuf,
    state: PathBuf,
}

impl Daemon {
    fn start(folder: &Path, config: &Path) -> Self {
        let (socket, state) = (folder.join("sock"), folder.join("state"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_resdex"));
        command.arg("serve").arg("--config").arg(config);
        command.arg("--state").arg(&state).arg("--socket").arg(&socket);
        command.env("RESDEX_LOG", "error").stdin(Stdio::null());
        let started = Instant::now();
        Self { child: command.spawn().unwrap(), started, socket, state }
    }

    /// Waits until everything is listed, read and on disk; answers how long that took.
    async fn live(&self, client: &Client, resources: u64) -> Duration {
        loop {
            if let Ok(status) = client.status().await
                && !status.servers.is_empty()
                && status.servers.iter().all(|server| server.state == ServerState::Live)
            {
                let took = self.started.elapsed();
                assert!(status.index.resources >= resources, "not all are in the index");
                return took;
            }
            assert!(self.started.elapsed() < Duration::from_secs(600), "it never gets live");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Ends it; answers the folder with its index.
    fn stop(mut self) -> PathBuf {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap();
        self.state.clone()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // After `stop` there is nothing left to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Tantivy without resdex around it: the same chunks, analyzers, threads and memory.
struct Raw {
    writer: IndexWriter,
    reader: IndexReader,
    key: Field,
    body: Field,
    word: Field,
    text: Field,
}

impl Raw {
    fn new(folder: &Path, config: &IndexConfig) -> Self {
        let mut schema = Schema::builder();
        let mut analyzed = |name: &str, record| {
            let indexing =
                TextFieldIndexing::default().set_tokenizer(name).set_index_option(record);
            schema.add_text_field(name, TextOptions::default().set_indexing_options(indexing))
        };
        let body = analyzed("body", IndexRecordOption::WithFreqsAndPositions);
        let word = analyzed("word", IndexRecordOption::WithFreqs);
        let key = schema.add_text_field("key", STRING);
        let text = schema.add_text_field("text", STORED);
        fs::create_dir(folder).unwrap();
        let index = Index::create_in_dir(folder, schema.build()).unwrap();
        let pool = Pool::default();
        for (name, field) in [("body", analyze::Field::Body), ("word", analyze::Field::Word)] {
            let tokenizer = PooledTokenizer::new(pool.clone(), field);
            index.tokenizers().register(name, TextAnalyzer::builder(tokenizer).build());
        }
        let writer = index.writer_with_num_threads(config.threads, config.heap_bytes).unwrap();
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().unwrap();
        Self { writer, reader, key, body, word, text }
    }

    fn add(&self, key: &str, text: &str) {
        let mut document = TantivyDocument::default();
        document.add_text(self.key, key);
        for field in [self.body, self.word, self.text] {
            document.add_text(field, text);
        }
        self.writer.add_document(document).unwrap();
    }

    fn index(&mut self, chunks: &[Chunk]) -> Duration {
        let started = Instant::now();
        for chunk in chunks {
            self.add("corpus", &chunk.text);
        }
        self.writer.commit().unwrap();
        started.elapsed()
    }

    fn update(&mut self, word: &str) -> Duration {
        let started = Instant::now();
        self.writer.delete_term(Term::from_field_text(self.key, word));
        self.add(word, &format!("# News\n\nThis says {word}.\n"));
        self.writer.commit().unwrap();
        self.reader.reload().unwrap();
        started.elapsed()
    }
}
