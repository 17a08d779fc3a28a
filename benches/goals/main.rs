//! The goals of speed, each as one line with its denominator from the same run:
//!
//! ```text
//! G<n> <value> <denominator> <ratio> <met|missed> <what the ratio has to be>: <what was measured>
//! ```
//!
//! `cargo bench --bench goals [-- [--full] [FOLDER]]`. Without `--full` it takes about two minutes, with
//! about 10,000 chunks; with it about 185,000 are indexed. Without a folder the corpus is made of the
//! crates under Cargo's registry.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a bench stops at a fault, and prints"
)]

mod corpus;
mod daemon;
mod generator;
mod raw;
mod report;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use chrono::Utc;
use futures::StreamExt;
use futures::future::join_all;
use resdex::analyze::{self, Analyzer};
use resdex::chunk::chunk;
use resdex::config::{Config, IndexConfig};
use resdex::extract::{Extraction, extract};
use resdex::index::tantivy::{TantivyStore, fingerprint};
use resdex::index::{Change, Entry, IndexStore};
use resdex::model::{Body, Outcome, Resource, ServerName, Snapshot};
use resdex::search;
use resdex::search::filter::{Clause, Filter};
use resdex::source::mcp::{ConnectOptions, connect};
use serde_json::json;

use self::daemon::{Daemon, Kept, PROGRAM};
use self::raw::Raw;
use self::report::{Goal, Times, figure, goal, shown, times};

struct Sizes {
    english: usize,
    chinese: usize,
    queries: usize,
    updates: usize,
    generated: &'static [usize],
    quiet: Duration,
}

const SHORT: Sizes = Sizes {
    english: 11_000_000,
    chinese: 2_000_000,
    queries: 400,
    updates: 60,
    generated: &[10_000],
    quiet: Duration::from_secs(5),
};
const FULL: Sizes = Sizes {
    english: 200_000_000,
    chinese: 20_000_000,
    queries: 2_000,
    updates: 300,
    generated: &[10_000, 100_000],
    quiet: Duration::from_secs(60),
};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, resources, delay] = arguments.as_slice()
        && mode == "generator"
    {
        let delay = Duration::from_millis(delay.parse().unwrap());
        return generator::run(resources.parse().unwrap(), delay);
    }
    let sizes = if arguments.iter().any(|argument| argument == "--full") { FULL } else { SHORT };
    let named = arguments.iter().find(|argument| !argument.starts_with("--"));
    let folder = named.map_or_else(corpus::registry, |folder| fs::canonicalize(folder).unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(run(&sizes, &folder));
}

async fn run(sizes: &Sizes, folder: &Path) {
    let scratch = tempfile::tempdir().unwrap();
    let [english, chinese, notes] = ["english", "chinese", "notes"].map(|n| scratch.path().join(n));
    corpus::copy(folder, &english, sizes.english);
    let handbook = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/handbook");
    corpus::chinese(&handbook, &chinese, sizes.chinese);
    fs::create_dir(&notes).unwrap();
    for number in 0..100 {
        fs::write(notes.join(format!("{number}.md")), "# News\n\nThere is none.\n").unwrap();
    }
    let config = configure(
        scratch.path(),
        &format!("[servers.english]\nfiles = {english:?}\n[servers.notes]\nfiles = {notes:?}\n"),
    );

    let (texts, reading) = read_alone(&config, "english").await;
    let entries = entries(&texts, &config);
    let mb = texts.iter().map(|(_, snapshot)| size(snapshot)).sum::<usize>() as f64 / 1e6;
    let chunks: usize = entries.iter().map(|entry| entry.chunks.len()).sum();
    figure("corpus", &format!("{mb:.1} MB, {} resources, {chunks} chunks", entries.len()));
    figure("binary", &format!("{:.1} MB", fs::metadata(PROGRAM).unwrap().len() as f64 / 1e6));

    let (built, mut raw, indexing) = indexing(scratch.path(), &texts, &entries, &config, mb);
    let fresh = freshness(&built, &mut raw, &entries, sizes);
    drop((built, raw));
    disk(scratch.path(), &english, &chinese).await;

    let mut daemon = Daemon::start(scratch.path());
    let first = daemon.live(texts.len() as u64).await;
    let larger = reading.max(indexing);
    figure(
        "first sync",
        &format!("reading alone {}, raw tantivy {}", shown(reading), shown(indexing)),
    );
    times(
        9,
        first,
        larger,
        Goal::AtMost(1.4),
        "first sync of a folder, beside the larger of reading and raw indexing",
    );
    let peak = daemon.peak as f64 / 1e6;
    let allowed = allowed(&config, texts.len());
    goal(
        11,
        format!("{peak:.0}MB"),
        format!("{allowed:.0}MB"),
        peak / allowed,
        Goal::AtMost(1.0),
        "peak of the first sync, beside heap + 64 MB + idle",
    );
    let before = daemon.client.status().await.unwrap().index.last_commit;
    let (mut syncs, mut reads) = (Times::default(), Times::default());
    for _ in 0..3 {
        reads.add(read_alone(&config, "english").await.1);
        syncs.add(daemon.sync("english").await);
    }
    let commits = daemon.client.status().await.unwrap().index.last_commit != before;
    let what = format!(
        "a sync without a change, beside reading alone; {}",
        if commits { "it COMMITS" } else { "no commit" }
    );
    times(10, syncs.p50(), reads.p50(), Goal::AtMost(1.05), &what);
    daemon.stop();

    queries(scratch.path(), &config, &entries, &notes, sizes, fresh).await;
    servers(scratch.path(), sizes).await;
}

/// What the first sync may take at its peak, and a daemon with so many resources.
fn allowed(config: &Config, resources: usize) -> f64 {
    (config.index.heap_bytes as f64 + f64::from(64 << 20)) / 1e6 + idle(resources)
}

/// Megabytes that a daemon without work may take.
fn idle(resources: usize) -> f64 {
    // A URI here takes about 60 bytes.
    (f64::from(32 << 20) + resources as f64 * 360.0) / 1e6
}

fn configure(folder: &Path, servers: &str) -> Config {
    fs::create_dir_all(folder).unwrap();
    let file = folder.join("resdex.toml");
    fs::write(&file, servers).unwrap();
    Config::from_texts(&[(file, servers.to_owned())], &|name| std::env::var(name).ok()).unwrap()
}

/// Lists and reads everything as the daemon does, and does nothing with it.
async fn read_alone(config: &Config, server: &str) -> (Vec<(Resource, Snapshot)>, Duration) {
    let server = &config.servers[&ServerName::new(server).unwrap()];
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
    (read.into_iter().map(|(read, resource)| (resource, read.unwrap())).collect(), took)
}

fn size(snapshot: &Snapshot) -> usize {
    let bodies = snapshot.contents.iter().map(|content| match &content.body {
        Body::Text(text) | Body::Blob(text) => text.len(),
    });
    bodies.sum()
}

fn entries(texts: &[(Resource, Snapshot)], config: &Config) -> Vec<Entry> {
    texts.iter().map(|(resource, snapshot)| entry(resource, snapshot, config)).collect()
}

fn entry(resource: &Resource, snapshot: &Snapshot, config: &Config) -> Entry {
    let Extraction::Document(document) = extract(resource, snapshot, &config.limits) else {
        panic!("{} isn't text", resource.uri)
    };
    Entry {
        server: ServerName::new("english").unwrap(),
        resource: resource.clone(),
        document_title: document.title.clone(),
        mime_type: Some(document.mime_type.clone()),
        content_hash: snapshot.hash,
        fingerprint: fingerprint(),
        outcome: Outcome::Indexed,
        chunks: chunk(&document),
        indexed_at: Utc::now(),
    }
}

fn put(entry: Entry) -> Vec<Change> {
    vec![Change::Replace(Box::new(entry))]
}

/// G1 and G2; answers our index and raw tantivy's, with the time that the latter took.
fn indexing(
    scratch: &Path,
    texts: &[(Resource, Snapshot)],
    entries: &[Entry],
    config: &Config,
    mb: f64,
) -> (TantivyStore, Raw, Duration) {
    let open = |name: &str, threads| {
        let config = IndexConfig { threads, ..config.index.clone() };
        let store = TantivyStore::open(&scratch.join(name), &config).unwrap();
        // Its schema is read from the disk.
        store.persist().unwrap();
        store
    };
    let mut raw = None;
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    let mut built = None;
    for turn in 0..3 {
        let (name, raw_name) = (format!("built{turn}"), format!("raw{turn}"));
        let store = open(&name, config.index.threads);
        let mut tantivy = Raw::like(&scratch.join(&name), &scratch.join(raw_name), &config.index);
        theirs.add(tantivy.index(entries));
        let started = Instant::now();
        let next = AtomicUsize::new(0);
        // As many threads as index: text is read by one while another analyzes.
        std::thread::scope(|scope| {
            for _ in 0..config.index.threads {
                scope.spawn(|| {
                    while let Some((resource, snapshot)) =
                        texts.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        store.apply(put(entry(resource, snapshot, config))).unwrap();
                    }
                });
            }
        });
        store.commit().unwrap();
        store.persist().unwrap();
        ours.add(started.elapsed());
        (built, raw) = (Some(store), Some(tantivy));
    }
    let speed = |time: Duration| mb / time.as_secs_f64();
    let (our, their) = (speed(ours.p50()), speed(theirs.p50()));
    goal(
        1,
        format!("{our:.1}MB/s"),
        format!("{their:.1}MB/s"),
        our / their,
        Goal::AtLeast(0.9),
        "text → chunks → searchable, beside raw tantivy with the same chunks",
    );

    let mut analyzer = Analyzer::new();
    let chunks: Vec<&str> = entries
        .iter()
        .flat_map(|entry| &entry.chunks)
        .map(|chunk| &*chunk.text)
        .take(10_000)
        .collect();
    let bytes: usize = chunks.iter().map(|text| text.len()).sum();
    let started = Instant::now();
    let mut terms = 0;
    for text in &chunks {
        for field in [analyze::Field::Body, analyze::Field::Word] {
            analyzer.analyze(field, text, &mut |_| terms += 1);
        }
    }
    let speed = bytes as f64 / 1e6 / started.elapsed().as_secs_f64();
    goal(
        1,
        format!("{speed:.1}MB/s"),
        "25.0MB/s".into(),
        speed / 25.0,
        Goal::AtLeast(1.0),
        "both fields' analysis on one core",
    );

    let (mut one, mut two) = (Times::default(), Times::default());
    for turn in 0..3 {
        for (threads, times) in [(1, &mut one), (2, &mut two)] {
            let store = open(&format!("threads{threads}-{turn}"), threads);
            let mut entries = entries.to_vec();
            let started = Instant::now();
            for entry in entries.drain(..) {
                store.apply(put(entry)).unwrap();
            }
            store.commit().unwrap();
            store.persist().unwrap();
            times.add(started.elapsed());
        }
    }
    let ratio = one.p50().as_secs_f64() / two.p50().as_secs_f64();
    goal(
        2,
        shown(two.p50()),
        shown(one.p50()),
        ratio,
        Goal::AtLeast(1.6),
        "two indexing threads, beside one",
    );
    (built.unwrap(), raw.unwrap(), theirs.p50())
}

/// G3; answers the times of an update with its content in hand.
fn freshness(store: &TantivyStore, raw: &mut Raw, entries: &[Entry], sizes: &Sizes) -> Times {
    let (mut ours, mut theirs) = (Times::default(), Times::default());
    for update in 0..sizes.updates {
        let mut entry = entries[update % entries.len()].clone();
        entry.chunks.truncate(8);
        theirs.add(raw.update(&entry));
        let started = Instant::now();
        store.apply(put(entry)).unwrap();
        store.commit().unwrap();
        ours.add(started.elapsed());
    }
    times(
        3,
        ours.p50(),
        theirs.p50(),
        Goal::AtMost(1.0 / 6.0),
        "content in hand → searchable (p50), beside a raw commit and reload",
    );
    times(3, ours.p99(), theirs.p99(), Goal::AtMost(1.0), "the same (p99)");
    ours
}

/// G13.
async fn disk(scratch: &Path, english: &Path, chinese: &Path) {
    for (name, folder, most) in [("English", english, 1.0), ("Chinese", chinese, 2.5)] {
        let home = scratch.join(name);
        let config = configure(&home, &format!("[servers.english]\nfiles = {folder:?}\n"));
        let (texts, _) = read_alone(&config, "english").await;
        let store = TantivyStore::open(&home.join("index"), &config.index).unwrap();
        for (resource, snapshot) in &texts {
            store.apply(put(entry(resource, snapshot, &config))).unwrap();
        }
        store.commit().unwrap();
        store.persist().unwrap();
        drop(store);
        let text: u64 = texts.iter().map(|(_, snapshot)| size(snapshot) as u64).sum();
        let mut parts = std::collections::BTreeMap::<String, u64>::new();
        for file in fs::read_dir(home.join("index")).unwrap().flatten() {
            let kind = file.path().extension().unwrap_or_default().to_string_lossy().into_owned();
            *parts.entry(kind).or_default() += file.metadata().unwrap().len();
        }
        let bytes: u64 = parts.values().sum();
        let mut what = format!("index on disk, beside {name} text;");
        for (part, bytes) in &parts {
            if *bytes > text / 100 {
                write!(what, " {part} {:.2}", *bytes as f64 / text as f64).unwrap();
            }
        }
        let mb = |bytes| format!("{:.1}MB", bytes as f64 / 1e6);
        goal(13, mb(bytes), mb(text), bytes as f64 / text as f64, Goal::AtMost(most), &what);
    }
}

/// G5 to G8, G12, G14, and the command line, on an index that is there.
async fn queries(
    scratch: &Path,
    config: &Config,
    entries: &[Entry],
    notes: &Path,
    sizes: &Sizes,
    fresh: Times,
) {
    let texts: Vec<&str> =
        entries.iter().flat_map(|entry| &entry.chunks).map(|chunk| &*chunk.text).collect();
    let queries = corpus::queries(&texts, sizes.queries);
    let mut starts = Times::default();
    let mut daemon = Daemon::start(scratch);
    for turn in 0..5 {
        if turn > 0 {
            daemon.stop();
            daemon = Daemon::start(scratch);
        }
        let body = json!({ "query": queries[0] });
        while tokio::net::UnixStream::connect(&daemon.socket).await.is_err() {
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        Kept::open(&daemon.socket).await.search(&body).await;
        starts.add(daemon.started.elapsed());
    }
    times(
        12,
        starts.p50(),
        Duration::from_millis(50),
        Goal::AtMost(1.0),
        "start → first answer on an index that is there",
    );
    daemon.live(entries.len() as u64).await;
    let (memory, most) = (daemon.anonymous() as f64 / 1e6, idle(entries.len()));
    goal(
        11,
        format!("{memory:.1}MB"),
        format!("{most:.1}MB"),
        memory / most,
        Goal::AtMost(1.0),
        "anonymous memory after a start and a sync, beside 32 MB + 300 B and the URI for each resource",
    );

    let store = TantivyStore::open(&scratch.join("state/index"), &config.index).unwrap();
    let inside = |query: &str, filter: &Filter| {
        let request = search::Request { filter: filter.clone(), ..search::Request::new(query) };
        let started = Instant::now();
        std::hint::black_box(search::search(&store, &request).unwrap());
        started.elapsed()
    };
    let all = Filter::default();
    let scope = all.clone().and(Clause {
        servers: Some([ServerName::new("english").unwrap()].into()),
        ..Clause::default()
    });
    let mut kept = Kept::open(&daemon.socket).await;
    let [mut over, mut within, mut scoped] = [(); 3].map(|()| Times::default());
    // The first round only fills the caches.
    for round in 0..3 {
        for query in &queries {
            let body = json!({ "query": query });
            let started = Instant::now();
            kept.search(&body).await;
            let (socket, inside, narrowed) =
                (started.elapsed(), inside(query, &all), inside(query, &scope));
            if round > 0 {
                over.add(socket);
                within.add(inside);
                scoped.add(narrowed);
            }
        }
    }
    times(
        6,
        over.p50(),
        within.p50(),
        Goal::AtMost(1.4),
        "a query over the socket (p50), beside the same search in process",
    );
    times(6, over.p99(), within.p99(), Goal::AtMost(1.25), "the same (p99)");
    times(
        8,
        scoped.p50(),
        within.p50(),
        Goal::AtMost(1.2),
        "a query in a scope (p50), beside one without",
    );
    throughput(&daemon, &store, &queries).await;
    changes(&daemon, notes, &queries, fresh, sizes).await;
    command_line(&daemon, &queries);
    daemon.stop();
}

/// G7: 64 clients over the socket, beside two threads in process.
async fn throughput(daemon: &Daemon, store: &TantivyStore, queries: &[String]) {
    let wanted = queries.len() * 4;
    let next = AtomicUsize::new(0);
    let query = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        (at < wanted).then(|| queries[at % queries.len()].as_str())
    };
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(query) = query() {
                    search::search(store, &search::Request::new(query)).unwrap();
                }
            });
        }
    });
    let inside = wanted as f64 / started.elapsed().as_secs_f64();
    next.store(0, Ordering::Relaxed);
    let clients = join_all((0..64).map(|_| Kept::open(&daemon.socket))).await;
    let started = Instant::now();
    join_all(clients.into_iter().map(async |mut client| {
        while let Some(query) = query() {
            client.search(&json!({ "query": query })).await;
        }
    }))
    .await;
    let over = wanted as f64 / started.elapsed().as_secs_f64();
    goal(
        7,
        format!("{over:.0}/s"),
        format!("{inside:.0}/s"),
        over / inside,
        Goal::AtLeast(0.8),
        "queries over the socket by 64 clients (on the same cores), beside two threads in process",
    );
}

/// G5 and G14.
async fn changes(daemon: &Daemon, notes: &Path, queries: &[String], fresh: Times, sizes: &Sizes) {
    let mut kept = Kept::open(&daemon.socket).await;
    let mut seen = Times::default();
    let mut reads = Times::default();
    for update in 0..sizes.updates.min(100) {
        let word = format!("changed{update}word");
        let uri = format!("notes:///{update}.md");
        let read = json!({ "uri": uri, "server": "notes" });
        let started = Instant::now();
        daemon.client.read(&serde_json::from_value(read).unwrap()).await.unwrap();
        reads.add(started.elapsed());
        write_whole(&notes.join(format!("{update}.md")), &word);
        let started = Instant::now();
        loop {
            let answer = kept.search(&json!({ "query": word, "servers": ["notes"] })).await;
            // The query isn't in the answer, so the word is a snippet's.
            if String::from_utf8_lossy(&answer).contains(&word) {
                break;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "{word} is never found");
            tokio::time::sleep(Duration::from_micros(300)).await;
        }
        seen.add(started.elapsed());
    }
    let most = reads.p99() + fresh.p99() + Duration::from_millis(5);
    times(
        5,
        seen.p99(),
        most,
        Goal::AtMost(1.0),
        "a file's change → searchable (p99), beside a read's, an update's and 5 ms",
    );
    figure(
        "change → searchable",
        &format!("p50 {}; a read p50 {}", shown(seen.p50()), shown(reads.p50())),
    );

    let (mut idle, mut busy) = (Times::default(), Times::default());
    for query in queries {
        idle.add(timed(&mut kept, query).await);
    }
    let ended = AtomicBool::new(false);
    let updates = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(10));
        let mut number = 0;
        while !ended.load(Ordering::Relaxed) {
            ticks.tick().await;
            write_whole(&notes.join(format!("{}.md", number % 100)), &format!("again{number}"));
            number += 1;
        }
        number
    };
    let asking = async {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(4) {
            for query in queries.iter().take(100) {
                busy.add(timed(&mut kept, query).await);
            }
        }
        ended.store(true, Ordering::Relaxed);
        started.elapsed()
    };
    let (number, took) = futures::join!(updates, asking);
    let rate = number as f64 / took.as_secs_f64();
    times(
        14,
        busy.p99(),
        idle.p99(),
        Goal::AtMost(1.5),
        &format!("a query (p99) under {rate:.0} updates/s, beside idle"),
    );
    figure("under updates", &format!("p50 {} beside {}", shown(busy.p50()), shown(idle.p50())));
}

async fn timed(kept: &mut Kept, query: &str) -> Duration {
    let body = json!({ "query": query });
    let started = Instant::now();
    kept.search(&body).await;
    started.elapsed()
}

/// As editors save.
fn write_whole(file: &Path, word: &str) {
    let new = file.with_extension("new");
    fs::write(&new, format!("# News\n\nThis says {word}.\n")).unwrap();
    fs::rename(new, file).unwrap();
}

fn command_line(daemon: &Daemon, queries: &[String]) {
    let run = |arguments: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).env("RESDEX_SOCKET", &daemon.socket);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let started = Instant::now();
        assert!(command.status().unwrap().success());
        started.elapsed()
    };
    let [mut search, mut help] = [(); 2].map(|()| Times::default());
    for query in queries.iter().take(40) {
        search.add(run(&["search", query]));
        help.add(run(&["--help"]));
    }
    figure("resdex search", &format!("{} from start to end, beside 15 ms", shown(search.p50())));
    figure("resdex --help", &format!("{}, beside 5 ms", shown(help.p50())));
}

/// G9 with a server that takes its time, G11 with many resources, G16.
async fn servers(scratch: &Path, sizes: &Sizes) {
    let program: PathBuf = std::env::current_exe().unwrap();
    let generator = |name: &str, resources: usize, delay: u32| {
        format!(
            "[servers.{name}]\ncommand = {program:?}\nargs = [\"generator\", \"{resources}\", \"{delay}\"]\n"
        )
    };
    let home = scratch.join("slow");
    let resources = 5_000;
    let config = configure(&home, &generator("slow", resources, 2));
    let (_, alone) = read_alone(&config, "slow").await;
    let mut daemon = Daemon::start(&home);
    let first = daemon.live(resources as u64).await;
    times(
        9,
        first,
        alone,
        Goal::AtMost(1.1),
        "first sync of a server that takes 2 ms, beside reading alone",
    );
    daemon.stop();

    for resources in sizes.generated.iter().copied() {
        let home = scratch.join(format!("many{resources}"));
        let config = configure(&home, &generator("many", resources, 0));
        let mut daemon = Daemon::start(&home);
        let took = daemon.live(resources as u64).await;
        let (peak, most) = (daemon.peak as f64 / 1e6, allowed(&config, resources));
        goal(
            11,
            format!("{peak:.0}MB"),
            format!("{most:.0}MB"),
            peak / most,
            Goal::AtMost(1.0),
            &format!("peak of the first sync of {resources} resources ({})", shown(took)),
        );
        daemon.stop();
        let mut daemon = Daemon::start(&home);
        daemon.live(resources as u64).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        let (memory, most) = (daemon.anonymous() as f64 / 1e6, idle(resources));
        goal(
            11,
            format!("{memory:.1}MB"),
            format!("{most:.1}MB"),
            memory / most,
            Goal::AtMost(1.0),
            &format!("idle with {resources} resources"),
        );
        let mut kept = Kept::open(&daemon.socket).await;
        let mut all = Times::default();
        for _ in 0..5 {
            all.add(timed(&mut kept, "page").await);
        }
        figure("a word in all of them", &format!("{} a query", shown(all.p50())));
        daemon.stop();
    }

    let home = scratch.join("quiet");
    let servers: String = (0..20).map(|n| generator(&format!("quiet{n}"), 3, 0)).collect();
    configure(&home, &servers);
    let mut daemon = Daemon::start(&home);
    daemon.live(60).await;
    // What follows a start has to be over: the store settles two and four seconds after a commit.
    tokio::time::sleep(Duration::from_secs(8)).await;
    let (before, used) = daemon.wakes();
    tokio::time::sleep(sizes.quiet).await;
    let (after, used_later) = daemon.wakes();
    // Threads end and begin meanwhile.
    let woken = after.iter().map(|(thread, times)| times - before.get(thread).unwrap_or(&0));
    let rate = woken.sum::<u64>() as f64 / sizes.quiet.as_secs_f64();
    let what = format!(
        "wake-ups of a daemon with twenty quiet servers; {} of processor time in {} s",
        shown(used_later - used),
        sizes.quiet.as_secs()
    );
    goal(16, format!("{rate:.1}/s"), "3.0/s".into(), rate / 3.0, Goal::AtMost(1.0), &what);
    daemon.stop();
}
