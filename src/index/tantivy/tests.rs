//! The store's behaviour, mostly in memory; what concerns files, in a folder.

mod disks;
mod former;
mod growth;
mod searching;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeZone as _};
use proptest::prelude::*;

use super::*;
use crate::index::description_hash;
use crate::model::{Audience, Chunk, ContentHash, Origin, Outcome, Resource};
use crate::search::filter::{Clause, Filter};
use crate::search::{self, Request};

fn server(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

fn key(name: &str, uri: &str) -> ResourceKey {
    ResourceKey { server: server(name), uri: uri.into() }
}

fn time() -> DateTime<Utc> {
    Utc.timestamp_opt(1_700_000_000, 123_456_789).unwrap()
}

fn resource(uri: &str, name: &str) -> Resource {
    Resource {
        uri: uri.into(),
        name: name.into(),
        title: None,
        description: None,
        mime_type: Some("text/markdown".into()),
        size: Some(7),
        audience: Audience::Both,
        priority: Some(0.5),
        last_modified: Some("2026-01-02T03:04:05Z".into()),
        origin: Origin::Listed,
    }
}

/// An entry whose chunks are the given texts.
fn entry(on: &str, uri: &str, texts: &[&str]) -> Entry {
    let mut at = 0;
    let mut line = 1;
    let mut chunks = vec![];
    for text in texts {
        let newlines = text.matches('\n').count() as u32;
        chunks.push(Chunk {
            part: 0,
            heading_path: vec![],
            lines: (line, line + newlines),
            bytes: at..at + text.len() as u32,
            page: None,
            text: (*text).into(),
            lead: None,
            noise: vec![],
        });
        at += text.len() as u32;
        line += newlines;
    }
    Entry {
        server: server(on),
        resource: resource(uri, ""),
        document_title: None,
        mime_type: None,
        content_hash: ContentHash([texts.len() as u8; 16]),
        fingerprint: fingerprint(),
        outcome: Outcome::Indexed,
        chunks,
        indexed_at: time(),
    }
}

fn replace(entry: Entry) -> Change {
    Change::Replace(Box::new(entry))
}

fn store(entries: Vec<Entry>) -> TantivyStore {
    let store = TantivyStore::in_memory().unwrap();
    put(&store, entries);
    store
}

fn put(store: &TantivyStore, entries: Vec<Entry>) {
    apply(store, entries.into_iter().map(replace).collect());
}

fn apply(store: &TantivyStore, changes: Vec<Change>) {
    store.apply(changes).unwrap();
    store.commit().unwrap();
    store.persist().unwrap();
}

/// A folder as it is at the moment; a file that is collected meanwhile isn't part of the index.
fn copy_of(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(folder).unwrap().flatten() {
        match std::fs::copy(file.path(), copy.path().join(file.file_name())) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            copied => drop(copied.unwrap()),
        }
    }
    copy
}

/// What a query finds, as `server uri`, best first.
fn found(store: &TantivyStore, query: &str) -> Vec<String> {
    found_within(store, query, Filter::default())
}

fn found_within(store: &TantivyStore, query: &str, filter: Filter) -> Vec<String> {
    let request = Request { filter, limit: 1000, ..Request::new(query) };
    let answer = search::search(store, &request).unwrap();
    answer.hits.iter().map(|hit| format!("{} {}", hit.key.server, hit.key.uri)).collect()
}

#[test]
fn the_first_change_after_a_restart_survives_a_merge() {
    let memory = RamDirectory::create();
    let open = || {
        let home = Home::Memory(memory.clone());
        // One thread: what is put in one commit is in one segment.
        let config = IndexConfig { threads: 1, ..IndexConfig::default() };
        TantivyStore::with_home(home, &config).unwrap()
    };
    {
        let store = open();
        let never = ::tantivy::indexer::NoMergePolicy;
        store
            .with_writer(|writer| {
                writer.set_merge_policy(Box::new(never));
                Ok(())
            })
            .unwrap();
        // Enough segments for a merge; the first of it is the largest.
        put(&store, vec![entry("s", "large", &["one", "two", "three", "four", "five"])]);
        for at in 0..9 {
            put(&store, vec![entry("s", &format!("small {at}"), &["some"])]);
        }
        // The last commit deletes from the segment that holds what is changed next.
        let of_one_segment = ["before", "next", "unchanged"];
        put(&store, of_one_segment.map(|uri| entry("s", uri, &["old"])).into());
        put(&store, vec![entry("s", "before", &["new"])]);
    }
    let store = open();
    put(&store, vec![entry("s", "next", &["new"])]);
    lock(&store.writer).take().unwrap().wait_merging_threads().unwrap();
    store.publish().unwrap();
    assert_eq!(store.index.searchable_segment_ids().unwrap().len(), 2, "merged");
    assert_eq!(store.stats().unwrap().resources, 13);
    assert_eq!(found(&store, "old"), ["s unchanged"]);
}

#[test]
fn a_resource_comes_back_as_it_went_in() {
    let mut whole = entry("docs", "docs:///a.md", &["# One\n", "two\n三\n"]);
    whole.resource.title = Some("Title".into());
    whole.resource.description = Some("Says".into());
    whole.resource.origin = Origin::Template("docs:///{name}".into());
    whole.document_title = Some("One".into());
    whole.chunks[1].heading_path = vec!["One".into(), "Deeper".into()];
    whole.chunks[1].page = Some(3);
    whole.chunks[1].lead = Some("| a | b |".into());
    whole.chunks[1].noise.push(0..1);
    whole.resource.mime_type = Some("Text/Plain; charset=utf-8".into());
    whole.mime_type = Some("text/html".into());
    let mut skipped = entry("docs", "docs:///b.png", &[]);
    skipped.outcome = Outcome::Skipped("image/png has no text".into());
    let store = store(vec![whole.clone(), skipped.clone()]);

    for entry in [&whole, &skipped] {
        assert_eq!(store.entry(&entry.key()).unwrap().as_ref(), Some(entry));
    }
    assert_eq!(store.entry(&key("docs", "docs:///c")).unwrap(), None);

    let mut manifests = store.manifests(&server("docs")).unwrap();
    manifests.sort_by(|a, b| a.key.cmp(&b.key));
    let expected = [&whole, &skipped].map(|entry| Manifest {
        key: entry.key(),
        content_hash: entry.content_hash,
        description_hash: description_hash(&entry.resource),
        fingerprint: entry.fingerprint,
        chunks: entry.chunks.len() as u32,
        outcome: entry.outcome.clone(),
        mislabelled: entry.outcome == Outcome::Indexed,
        indexed_at: entry.indexed_at,
        origin: entry.resource.origin.clone(),
    });
    assert_eq!(manifests, expected);

    let stats = store.stats().unwrap();
    assert_eq!((stats.resources, stats.chunks), (2, 2));
    assert!(stats.bytes > 0 && stats.last_commit.is_some());
}

#[test]
fn a_replaced_resource_is_found_by_its_new_words_only() {
    let store = store(vec![
        entry("docs", "a", &["alpha words", "beta words", "gamma words"]),
        entry("docs", "b", &["other words"]),
    ]);
    assert_eq!(found(&store, "beta"), ["docs a"]);
    put(&store, vec![entry("docs", "a", &["delta words"])]);
    for gone in ["alpha", "beta", "gamma"] {
        assert!(found(&store, gone).is_empty(), "{gone} is gone");
    }
    assert_eq!(found(&store, "delta"), ["docs a"]);
    assert_eq!(store.stats().unwrap().chunks, 2);

    // Twice in one batch, and once more: the last counts, once.
    let twice = [&["first"], &["second"]].map(|texts| replace(entry("docs", "a", texts)));
    apply(&store, twice.to_vec());
    put(&store, vec![entry("docs", "a", &["second"])]);
    assert!(found(&store, "first").is_empty());
    assert_eq!(found(&store, "second"), ["docs a"]);
    assert_eq!(store.manifests(&server("docs")).unwrap().len(), 2);
}

#[test]
fn two_servers_may_offer_one_uri() {
    let store = store(vec![
        entry("one", "note://x", &["shared words a"]),
        entry("two", "note://x", &["shared words b"]),
        entry("two", "note://y", &["shared words c"]),
    ]);
    assert_eq!(found(&store, "shared"), ["one note://x", "two note://x", "two note://y"]);
    assert_eq!(
        store.keys_of_uri("note://x").unwrap(),
        [key("one", "note://x"), key("two", "note://x")]
    );
    apply(&store, vec![Change::Remove(key("one", "note://x"))]);
    assert_eq!(found(&store, "shared"), ["two note://x", "two note://y"]);
    assert_eq!(store.servers().unwrap(), [server("two")]);
    assert_eq!(store.keys_of_uri("note://x").unwrap(), [key("two", "note://x")]);

    apply(&store, vec![Change::RemoveServer(server("two"))]);
    assert!(found(&store, "shared").is_empty());
    assert!(store.servers().unwrap().is_empty());
    assert_eq!(store.stats().unwrap().resources, 0);
}

#[test]
fn nothing_is_seen_before_its_commit_nor_after_its_rollback() {
    let store = store(vec![entry("docs", "a", &["old words"])]);
    store.apply(vec![replace(entry("docs", "a", &["new words"]))]).unwrap();
    assert_eq!(found(&store, "old"), ["docs a"]);
    assert!(found(&store, "new").is_empty());
    store.rollback().unwrap();
    store.commit().unwrap();
    assert_eq!(found(&store, "old"), ["docs a"]);
    assert!(found(&store, "new").is_empty());
    put(&store, vec![entry("docs", "a", &["newer words"])]);
    assert_eq!(found(&store, "newer"), ["docs a"]);
}

#[test]
fn a_folder_opens_again_with_what_was_committed() {
    let folder = tempfile::tempdir().unwrap();
    let config = IndexConfig { threads: 1, ..IndexConfig::default() };
    let store = TantivyStore::open(folder.path(), &config).unwrap();
    put(&store, vec![entry("docs", "a", &["kept words"])]);
    let committed = store.stats().unwrap().last_commit;
    // As after kill -9: files of a batch that wasn't committed, and lock files, are left behind.
    store.apply(vec![replace(entry("docs", "b", &["lost words"]))]).unwrap();
    let image = copy_of(folder.path());
    std::fs::write(image.path().join(".tantivy-writer.lock"), b"").unwrap();
    std::fs::write(image.path().join("0123456789abcdef0123456789abcdef.store"), b"half").unwrap();

    let store = TantivyStore::open(image.path(), &config).unwrap();
    assert_eq!(store.stats().unwrap().last_commit, committed);
    assert_eq!(found(&store, "kept"), ["docs a"]);
    assert!(found(&store, "lost").is_empty());
    put(&store, vec![entry("docs", "b", &["found words"])]);
    assert_eq!(found(&store, "found"), ["docs b"]);
    drop(store);
    let store = TantivyStore::open(image.path(), &config).unwrap();
    assert_eq!(store.manifests(&server("docs")).unwrap().len(), 2);
}

#[test]
fn what_is_not_on_the_disk_yet_counts_as_size() {
    let folder = tempfile::tempdir().unwrap();
    let store = TantivyStore::open(folder.path(), &IndexConfig::default()).unwrap();
    store.apply(vec![replace(entry("docs", "a", &["kept words"]))]).unwrap();
    store.commit().unwrap();
    let visible = store.stats().unwrap().bytes;
    store.persist().unwrap();
    let durable = store.stats().unwrap().bytes;
    // But for the list of files.
    assert!(visible.abs_diff(durable) < durable / 2, "{visible}, then {durable}");
}

#[test]
fn a_folder_that_holds_something_else_is_an_error() {
    let damaged: [(&str, &[u8]); 2] =
        [("meta.json", b"{\"not\": \"ours\"}"), ("meta.json", b"\xff\x00")];
    for (file, bytes) in damaged {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(file), bytes).unwrap();
        let opened = TantivyStore::open(folder.path(), &IndexConfig::default());
        assert!(matches!(opened, Err(IndexError::Open { .. })), "{file} {bytes:?}");
    }

    // Another schema.
    let folder = tempfile::tempdir().unwrap();
    let mut other = ::tantivy::schema::Schema::builder();
    other.add_text_field("body", ::tantivy::schema::TEXT);
    Index::create_in_dir(folder.path(), other.build()).unwrap();
    let opened = TantivyStore::open(folder.path(), &IndexConfig::default());
    assert!(matches!(opened, Err(IndexError::Open { .. })));
}

#[test]
fn a_damaged_file_is_an_error_and_no_panic() {
    let config = IndexConfig { threads: 1, ..IndexConfig::default() };
    let whole = tempfile::tempdir().unwrap();
    let store = TantivyStore::open(whole.path(), &config).unwrap();
    put(
        &store,
        vec![entry("docs", "a", &["some words", "more words"]), entry("docs", "b", &["x"])],
    );
    put(&store, vec![entry("docs", "b", &["y"])]);
    drop(store);
    let whole = copy_of(whole.path());
    let files = std::fs::read_dir(whole.path()).unwrap();
    for damaged in files.map(|file| file.unwrap().file_name()) {
        for keep in [0.0, 0.5] {
            let folder = copy_of(whole.path());
            let damaged = folder.path().join(&damaged);
            let bytes = std::fs::read(&damaged).unwrap();
            let kept = (bytes.len() as f64 * keep) as usize;
            std::fs::write(&damaged, &bytes[..kept]).unwrap();
            match TantivyStore::open(folder.path(), &config) {
                // Files of no consequence, such as locks.
                Ok(store) => assert_eq!(found(&store, "words"), ["docs a"], "{damaged:?}"),
                Err(error) => assert!(matches!(error, IndexError::Open { .. })),
            }
        }
    }
}

#[test]
fn updates_one_by_one_dont_let_the_index_grow() {
    let text = |n: usize, round: usize| format!("resource {n} as of round {round}, {}", n * 7919);
    let entries = |round: usize| {
        (0..30).map(move |n| {
            let texts = [text(n, round), text(n, round), text(n, round)];
            entry("docs", &format!("{n:02}"), &texts.each_ref().map(String::as_str))
        })
    };
    let store = store(entries(0).collect());
    for round in 1..=10 {
        for entry in entries(round) {
            put(&store, vec![entry]);
        }
    }
    let fresh = self::store(entries(10).collect());
    // Merges run in the background; they are waited for with a deadline.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        store.settle().unwrap();
        let (grown, fresh) = (store.stats().unwrap().bytes, fresh.stats().unwrap().bytes);
        if grown < 3 * fresh {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{grown} bytes, {fresh} when fresh");
        std::thread::yield_now();
    }
    for entry in entries(10) {
        assert_eq!(store.entry(&entry.key()).unwrap(), Some(entry), "whole after all the merges");
    }
    assert_eq!(found(&store, "\"round 10\"").len(), 30);
    assert_eq!(found(&store, "\"round 9\"").len(), 0);
}

#[test]
fn resources_are_listed_in_the_order_of_their_keys() {
    let mut entries: Vec<Entry> =
        (0..7).map(|n| entry(["b", "a"][n % 2], &format!("u{n}"), &["x", "y"])).collect();
    entries[3].outcome = Outcome::Skipped("why".into());
    entries[4].mime_type = Some("image/png".into());
    let store = TantivyStore::in_memory().unwrap();
    for entry in entries {
        // A segment each.
        put(&store, vec![entry]);
    }
    let list = |request: ResourcesRequest| {
        let page = store.resources(&request).unwrap();
        let keys = page.resources.iter().map(|row| format!("{}:{}", row.key.server, row.key.uri));
        (keys.collect::<Vec<_>>().join(" "), page.more)
    };
    let all = ResourcesRequest { limit: 10, ..Default::default() };
    assert_eq!(list(all.clone()), ("a:u1 a:u3 a:u5 b:u0 b:u2 b:u4 b:u6".into(), false));
    let first = ResourcesRequest { limit: 3, ..Default::default() };
    assert_eq!(list(first.clone()), ("a:u1 a:u3 a:u5".into(), true));
    let next = ResourcesRequest { after: Some(key("a", "u5")), limit: 4, ..Default::default() };
    assert_eq!(list(next), ("b:u0 b:u2 b:u4 b:u6".into(), false));
    assert_eq!(list(ResourcesRequest { skipped_only: true, ..all.clone() }).0, "a:u3");
    let images = Clause { mime_types: Some(vec!["image/*".into()]), ..Default::default() };
    let images = ResourcesRequest { filter: Filter::default().and(images), ..all };
    assert_eq!(list(images).0, "b:u4");
}

#[test]
fn a_uri_that_is_too_long_is_left_out_alone() {
    let long = "x".repeat(70_000);
    let store = store(vec![entry("d", &long, &["words"]), entry("d", "short", &["words"])]);
    assert_eq!(found(&store, "words"), ["d short"]);
}

#[derive(Clone, Debug)]
enum Step {
    Replace { server: u8, uri: u8, texts: Vec<u8> },
    Remove { server: u8, uri: u8 },
    RemoveServer(u8),
    Commit,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..3u8, 0..5u8, prop::collection::vec(0..9u8, 0..4))
            .prop_map(|(server, uri, texts)| Step::Replace { server, uri, texts }),
        2 => (0..3u8, 0..5u8).prop_map(|(server, uri)| Step::Remove { server, uri }),
        1 => (0..3u8).prop_map(Step::RemoveServer),
        2 => Just(Step::Commit),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever happens, the index ends as a map would: every resource once, whole, at its last state.
    #[test]
    fn the_index_is_a_map(steps in steps()) {
        let store = TantivyStore::in_memory().unwrap();
        let mut model: BTreeMap<ResourceKey, Entry> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Replace { server, uri, texts } => {
                    let texts: Vec<String> = texts.iter().map(|n| format!("word{n}x of{server}{uri}\n")).collect();
                    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                    let entry = entry(&format!("s{server}"), &format!("u{uri}"), &texts);
                    model.insert(entry.key(), entry.clone());
                    store.apply(vec![replace(entry)]).unwrap();
                }
                Step::Remove { server, uri } => {
                    let key = key(&format!("s{server}"), &format!("u{uri}"));
                    model.remove(&key);
                    store.apply(vec![Change::Remove(key)]).unwrap();
                }
                Step::RemoveServer(n) => {
                    let server = server(&format!("s{n}"));
                    model.retain(|key, _| key.server != server);
                    store.apply(vec![Change::RemoveServer(server)]).unwrap();
                }
                Step::Commit => store.commit().unwrap(),
            }
        }
        store.commit().unwrap();

        let mut servers: Vec<ServerName> = model.keys().map(|key| key.server.clone()).collect();
        servers.dedup();
        prop_assert_eq!(store.servers().unwrap(), servers.clone());
        let mut keys: Vec<ResourceKey> = vec![];
        for server in &servers {
            let manifests = store.manifests(server).unwrap();
            for manifest in &manifests {
                prop_assert_eq!(manifest.chunks as usize, model[&manifest.key].chunks.len());
            }
            keys.extend(manifests.into_iter().map(|manifest| manifest.key));
        }
        keys.sort();
        prop_assert!(keys.iter().eq(model.keys()));
        for (key, entry) in &model {
            let stored = store.entry(key).unwrap();
            prop_assert_eq!(stored.as_ref(), Some(entry));
        }
        for n in 0..9u8 {
            let word = format!("word{n}x");
            let mut hits = found(&store, &format!("\"{word}\""));
            hits.sort();
            let holds = |entry: &&Entry| entry.chunks.iter().any(|chunk| chunk.text.contains(&word));
            let expected: Vec<String> = model
                .values()
                .filter(holds)
                .map(|entry| format!("{} {}", entry.server, entry.resource.uri))
                .collect();
            prop_assert_eq!(hits, expected);
        }
    }
}
