//! What other versions made: another schema, another analysis, other text.

use super::*;
use crate::index::rebuild::rebuild;
use crate::index::writer::Writer;

/// An index whose fields are others, by number and one by name.
fn of_another_schema(folder: &Path) -> TantivyStore {
    let mut builder = Schema::builder();
    builder.add_u64_field("was", ::tantivy::schema::FAST);
    let directory = MmapDirectory::open(folder).unwrap();
    let home = Home::Folder(folder.to_owned(), Deferred::new(directory));
    let (config, schema) = (IndexConfig::default(), schema::after(builder));
    TantivyStore::with_schema(home, &config, schema).unwrap()
}

fn made_by(entry: Entry, fingerprint: Fingerprint) -> Entry {
    Entry { fingerprint, ..entry }
}

/// Of another analysis and schema; of other text.
const OTHER_INDEX: Fingerprint = Fingerprint(fingerprint().0 ^ 0x1_0001);
const OTHER_TEXT: Fingerprint = Fingerprint(fingerprint().0 ^ 0x1_0000_0000);

fn sorted(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by_key(Entry::key);
    entries
}

#[test]
fn every_entry_of_another_schema_is_read_to_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let old = of_another_schema(folder.path());
    let mut entries: Vec<Entry> = (0..40_u32)
        .map(|n| {
            let texts: Vec<String> = (0..n % 4).map(|part| format!("退款 {n} {part}\n")).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            made_by(entry("docs", &format!("docs:///{n}"), &texts), OTHER_INDEX)
        })
        .collect();
    put(&old, entries.clone());
    // What was replaced or removed isn't there any more.
    entries[3] = made_by(entry("docs", "docs:///3", &["newer\n", "text\n"]), OTHER_TEXT);
    put(&old, vec![entries[3].clone()]);
    apply(&old, vec![Change::Remove(key("docs", "docs:///7"))]);
    entries.remove(7);
    drop(old);

    let error = TantivyStore::open(folder.path(), &IndexConfig::default()).err();
    assert!(matches!(error, Some(IndexError::OtherSchema { .. })), "{error:?}");
    let former = Former::open(folder.path()).unwrap();
    let read = former.entries().collect::<Result<Vec<_>, _>>().unwrap();
    assert_eq!(sorted(read), sorted(entries));
    assert!(Former::open(tempfile::tempdir().unwrap().path()).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_stored_is_made_again_without_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let old = of_another_schema(folder.path());
    put(
        &old,
        vec![
            made_by(entry("docs", "a", &["older alpha\n"]), OTHER_INDEX),
            made_by(entry("docs", "b", &["beta\n", "more\n"]), OTHER_INDEX),
            made_by(entry("wiki", "c", &["gamma\n"]), OTHER_TEXT),
        ],
    );
    drop(old);
    let present = fingerprint();
    let newer = entry("docs", "a", &["newer alpha\n"]);
    let store = Arc::new(store(vec![
        newer.clone(),
        made_by(entry("docs", "d", &["delta\n"]), OTHER_INDEX),
        made_by(entry("docs", "e", &["epsilon\n"]), OTHER_TEXT),
    ]));
    let (writer, _thread) = Writer::start(store.clone()).unwrap();
    let former = Former::open(folder.path()).unwrap();
    let made = rebuild(store.clone(), Some(former), &writer, present, |_| ()).await;
    assert_eq!(made, Ok(3));

    for (on, uri, words, by) in [
        ("docs", "a", "newer alpha", present),
        ("docs", "b", "beta", present),
        // The sync reads these again; until then they are found.
        ("wiki", "c", "gamma", OTHER_TEXT),
        ("docs", "d", "delta", present),
        ("docs", "e", "epsilon", OTHER_TEXT),
    ] {
        let entry = store.entry(&key(on, uri)).unwrap().unwrap();
        assert_eq!(entry.fingerprint, by, "{uri}");
        assert_eq!(found(&store, words), [format!("{on} {uri}")], "{uri}");
    }
    assert_eq!(store.entry(&newer.key()).unwrap(), Some(newer));
    assert_eq!(store.entry(&key("docs", "b")).unwrap().unwrap().chunks.len(), 2);
    // Once is enough.
    assert_eq!(rebuild(store, None, &writer, present, |_| ()).await, Ok(0));
}
