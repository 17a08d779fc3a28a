//! The size of an index after very many updates, through the writer and on a disk.

use std::collections::{BTreeSet, HashSet};
use std::time::{Duration, Instant};

use futures::future::join_all;

use super::*;
use crate::index::writer::{Writer, WriterHandle};

/// Updates, unless `RESDEX_GROWTH_UPDATES` says another number.
const UPDATES: usize = 500;
const RESOURCES: usize = 200;
/// Updates that share a commit, as when a server pushes several at once.
const AT_ONCE: usize = 5;

/// A resource as of a round: most are short, each fiftieth is a book.
fn text(of: usize, round: usize) -> Entry {
    let chunks = if of.is_multiple_of(50) { 60 } else { 1 + of % 4 };
    let words = |chunk: usize| {
        let mut n = (of * 31 + chunk * 7 + round * 1_009) as u64;
        let words = (0..40).map(|_| {
            n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            format!("word{}", (n >> 33) % 5_000)
        });
        words.collect::<Vec<_>>().join(" ") + "\n"
    };
    let texts: Vec<String> = (0..chunks).map(words).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    entry("docs", &format!("docs://{of:03}"), &texts)
}

/// Names and sizes of the files in a folder, but for locks and what tantivy notes of itself.
fn files(folder: &Path) -> BTreeMap<String, u64> {
    let files = std::fs::read_dir(folder).unwrap().flatten();
    let named = files.map(|file| {
        let bytes = file.metadata().map_or(0, |metadata| metadata.len());
        (file.file_name().into_string().unwrap(), bytes)
    });
    named.filter(|(name, _)| !name.starts_with('.')).collect()
}

/// The files that the present commit names, itself included.
fn named(store: &TantivyStore) -> HashSet<String> {
    let segments = store.index.searchable_segment_metas().unwrap();
    let files = segments.iter().flat_map(|segment| {
        use ::tantivy::index::SegmentComponent::{
            Delete, FastFields, FieldNorms, Positions, Postings, Store, Terms,
        };
        let components = [Delete, FastFields, FieldNorms, Positions, Postings, Store, Terms];
        components.map(|component| segment.relative_path(component).to_str().unwrap().to_owned())
    });
    files.chain(["meta.json".to_owned()]).collect()
}

/// Waits until no merge goes on any more and nothing is on the disk that no commit names; answers the
/// size. The writer is idle, so nobody else settles for a moment.
fn settled(store: &TantivyStore, folder: &Path) -> u64 {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        store.settle().unwrap();
        store.persist().unwrap();
        let (there, named) = (files(folder), named(store));
        let strange: Vec<&String> = there.keys().filter(|file| !named.contains(*file)).collect();
        if strange.is_empty() {
            return there.values().sum();
        }
        assert!(Instant::now() < deadline, "no commit names {strange:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

struct Index {
    folder: tempfile::TempDir,
    store: Arc<TantivyStore>,
    handle: WriterHandle,
    writer: Writer,
}

fn index() -> Index {
    let folder = tempfile::tempdir().unwrap();
    let config = IndexConfig { threads: 2, ..IndexConfig::default() };
    let store = Arc::new(TantivyStore::open(folder.path(), &config).unwrap());
    let (handle, writer) = Writer::start(store.clone()).unwrap();
    Index { folder, store, handle, writer }
}

/// Updates the resources that `of` says, and compares with an index that never knew anything else.
async fn grow(updates: usize, of: impl Fn(usize) -> usize) {
    let Index { folder, store, handle, writer } = index();
    let all = |rounds: &BTreeMap<usize, usize>| {
        rounds.iter().map(|(of, round)| replace(text(*of, *round))).collect::<Vec<_>>()
    };
    let mut rounds: BTreeMap<usize, usize> = (0..RESOURCES).map(|of| (of, 0)).collect();
    handle.apply(all(&rounds)).await.unwrap();
    let (mut most_segments, mut most_bytes) = (0, 0);
    for first in (0..updates).step_by(AT_ONCE) {
        let numbers = first..(first + AT_ONCE).min(updates);
        rounds.extend(numbers.clone().map(|number| (of(number), number + 1)));
        let updated: BTreeSet<usize> = numbers.map(&of).collect();
        let changes = updated.iter().map(|of| vec![replace(text(*of, rounds[of]))]);
        for applied in join_all(changes.map(|change| handle.apply(change))).await {
            applied.unwrap();
        }
        most_segments = most_segments.max(store.index.searchable_segment_ids().unwrap().len());
        most_bytes = most_bytes.max(files(folder.path()).values().sum::<u64>());
    }
    writer.stop();

    let fresh = index();
    fresh.handle.apply(all(&rounds)).await.unwrap();
    fresh.writer.stop();
    let bytes = (settled(&store, folder.path()), settled(&fresh.store, fresh.folder.path()));
    let stats = (store.stats().unwrap(), fresh.store.stats().unwrap());
    eprintln!(
        "{updates} updates: {} KB, at most {} KB and {most_segments} segments; fresh {} KB; {} chunks",
        bytes.0 >> 10,
        most_bytes >> 10,
        bytes.1 >> 10,
        stats.0.chunks,
    );
    assert_eq!((stats.0.resources, stats.0.chunks), (stats.1.resources, stats.1.chunks));
    assert!(bytes.0 < 3 * bytes.1, "{} bytes, and {} in a fresh index", bytes.0, bytes.1);
    assert!(most_segments < 64, "{most_segments} segments");
}

fn updates() -> usize {
    std::env::var("RESDEX_GROWTH_UPDATES").map_or(UPDATES, |number| number.parse().unwrap())
}

#[tokio::test]
async fn updates_here_and_there_dont_let_the_index_grow() {
    grow(updates(), |number| number * 7_919 % RESOURCES).await;
}

#[tokio::test]
async fn a_book_that_changes_all_the_time_doesnt_let_the_index_grow() {
    grow(updates() / 5, |_| 0).await;
}
