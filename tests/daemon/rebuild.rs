//! A daemon that finds an index which another version made.

use std::path::Path;

use resdex::config::IndexConfig;
use resdex::index::tantivy::{TantivyStore, fingerprint};
use resdex::index::{Change, Entry, IndexStore as _};
use resdex::model::{Fingerprint, ServerName};

use crate::daemon::{Daemon, Stopped};
use crate::folder;

const PAGES: usize = 12;

fn open(state: &Path) -> TantivyStore {
    TantivyStore::open(&state.join("index"), &IndexConfig::default()).unwrap()
}

fn entries(state: &Path) -> Vec<Entry> {
    let (store, server) = (open(state), ServerName::new("docs").unwrap());
    let mut entries: Vec<Entry> = store
        .manifests(&server)
        .unwrap()
        .into_iter()
        .map(|manifest| store.entry(&manifest.key).unwrap().unwrap())
        .collect();
    entries.sort_by_key(Entry::key);
    entries
}

#[test]
fn another_versions_entries_are_made_again_while_their_server_is_away() {
    let root = tempfile::tempdir().unwrap();
    let words: Vec<String> = (0..PAGES).map(|page| format!("mineral{page:02}")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let limits = "[limits]\nmin_free_disk_percent = 0\nmin_free_disk_bytes = 0\n";
    let config = format!("{limits}{}", folder(root.path(), "docs", &words));
    let daemon = Daemon::start(&config);
    daemon.live("docs");

    // As if another analysis had made them.
    let stopped = daemon.stop();
    let state = stopped.folder().join("state");
    let mut before = entries(&state);
    assert_eq!(before.len(), PAGES);
    let other = Fingerprint(fingerprint().0 ^ 0x1_0000);
    before.iter_mut().for_each(|entry| entry.fingerprint = other);
    let store = open(&state);
    let old = before.iter().cloned().map(|entry| Change::Replace(Box::new(entry)));
    store.apply(old.collect()).unwrap();
    store.commit().unwrap();
    store.persist().unwrap();
    drop(store);
    std::fs::remove_dir_all(root.path().join("docs")).unwrap();

    // It dies on the way, and takes up at its next start.
    let mut daemon = stopped.start_with(&[("RESDEX_FAIL_POINT", "rebuild.handed:5")]);
    daemon.ended();
    let daemon = daemon.kill().start();
    for word in &words {
        daemon.found(word, &format!("docs:///{word}.md"));
    }
    let rebuilt = daemon.folder().join("log");
    daemon.wait_until("it is rebuilt", |_| {
        std::fs::read_to_string(&rebuilt).ok()?.contains("made again").then_some(())
    });
    let stopped: Stopped = daemon.stop();
    let after = entries(&stopped.folder().join("state"));
    before.iter_mut().for_each(|entry| entry.fingerprint = fingerprint());
    assert_eq!(after, before, "the same text, made by this version");
}
