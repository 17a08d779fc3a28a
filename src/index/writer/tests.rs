//! The writer on a store that counts and fails on command.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::*;
use crate::index::{IndexStats, ResourcesPage, ResourcesRequest, StoreAnswer, StoreRequest};
use crate::model::{
    Audience, ContentHash, Fingerprint, Manifest, Origin, Outcome, Resource, ResourceKey,
    ServerName,
};

/// Remembers what was applied and what was committed.
#[derive(Default)]
struct Fake {
    pending: Mutex<Vec<Change>>,
    committed: Mutex<Vec<Change>>,
    commits: AtomicUsize,
    fails_to_apply: AtomicBool,
    fails_to_commit: AtomicBool,
    fails_to_persist: AtomicBool,
    /// What of the committed is durable.
    durable: Mutex<Vec<Change>>,
    /// Set by a test to keep `persist` busy.
    persist_waits: AtomicBool,
    persists_begun: AtomicUsize,
    /// Held by a test to keep the writer busy in `commit`.
    gate: Mutex<()>,
    /// Commits that were begun, though they may wait at the gate.
    begun: AtomicUsize,
}

fn broken() -> IndexError {
    IndexError::Write { reason: "disk full".into() }
}

impl IndexStore for Fake {
    fn apply(&self, changes: Vec<Change>) -> Result<(), IndexError> {
        if self.fails_to_apply.load(SeqCst) {
            return Err(broken());
        }
        lock(&self.pending).extend(changes);
        Ok(())
    }

    fn commit(&self) -> Result<(), IndexError> {
        self.begun.fetch_add(1, SeqCst);
        let _gate = lock(&self.gate);
        if self.fails_to_commit.load(SeqCst) {
            return Err(broken());
        }
        lock(&self.committed).append(&mut lock(&self.pending));
        self.commits.fetch_add(1, SeqCst);
        Ok(())
    }

    fn persist(&self) -> Result<(), IndexError> {
        let committed = lock(&self.committed).clone();
        self.persists_begun.fetch_add(1, SeqCst);
        while self.persist_waits.load(SeqCst) {
            std::thread::yield_now();
        }
        if self.fails_to_persist.load(SeqCst) {
            return Err(broken());
        }
        *lock(&self.durable) = committed;
        Ok(())
    }

    fn rollback(&self) -> Result<(), IndexError> {
        lock(&self.pending).clear();
        Ok(())
    }

    fn manifests(&self, _: &ServerName) -> Result<Vec<Manifest>, IndexError> {
        Ok(vec![])
    }

    fn servers(&self) -> Result<Vec<ServerName>, IndexError> {
        Ok(vec![])
    }

    fn entry(&self, _: &ResourceKey) -> Result<Option<Entry>, IndexError> {
        Ok(None)
    }

    fn keys_of_uri(&self, _: &str) -> Result<Vec<ResourceKey>, IndexError> {
        Ok(vec![])
    }

    fn resources(&self, _: &ResourcesRequest) -> Result<ResourcesPage, IndexError> {
        Ok(ResourcesPage::default())
    }

    fn search(&self, _: &StoreRequest) -> Result<StoreAnswer, IndexError> {
        Ok(StoreAnswer::default())
    }

    fn stats(&self) -> Result<IndexStats, IndexError> {
        Ok(IndexStats::default())
    }
}

fn change(uri: &str) -> Change {
    Change::Remove(ResourceKey { server: ServerName::new("s").unwrap(), uri: uri.into() })
}

/// A change that isn't a removal.
fn replacement(uri: &str) -> Change {
    Change::Replace(Box::new(Entry {
        server: ServerName::new("s").unwrap(),
        resource: Resource {
            uri: uri.into(),
            name: uri.into(),
            title: None,
            description: None,
            mime_type: None,
            size: None,
            audience: Audience::Both,
            priority: None,
            last_modified: None,
            origin: Origin::Listed,
        },
        document_title: None,
        mime_type: None,
        content_hash: ContentHash([0; 16]),
        fingerprint: Fingerprint(0),
        outcome: Outcome::Indexed,
        chunks: vec![],
        indexed_at: chrono::DateTime::UNIX_EPOCH,
    }))
}

/// Waits for something that another thread brings about.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

fn start() -> (Arc<Fake>, WriterHandle, Writer) {
    let store = Arc::new(Fake::default());
    let (handle, writer) = Writer::start(store.clone()).unwrap();
    (store, handle, writer)
}

#[tokio::test]
async fn what_was_applied_is_committed() {
    let (store, handle, _writer) = start();
    handle.apply(vec![change("a"), change("b")]).await.unwrap();
    assert_eq!(*lock(&store.committed), [change("a"), change("b")]);
    handle.apply(vec![change("c")]).await.unwrap();
    assert_eq!(lock(&store.committed).len(), 3);
    assert_eq!(store.commits.load(SeqCst), 2);
}

#[tokio::test]
async fn a_flush_without_changes_commits_nothing() {
    let (store, handle, _writer) = start();
    handle.flush().await.unwrap();
    assert_eq!(store.commits.load(SeqCst), 0);
}

#[tokio::test]
async fn what_arrives_during_a_commit_shares_the_next() {
    let (store, handle, _writer) = start();
    let waiting: Vec<_> = {
        let _gate = lock(&store.gate);
        let tasks = (0..20).map(|n| {
            let handle = handle.clone();
            tokio::spawn(async move { handle.apply(vec![change(&n.to_string())]).await })
        });
        tasks.collect()
    };
    for task in waiting {
        task.await.unwrap().unwrap();
    }
    assert_eq!(lock(&store.committed).len(), 20);
    assert!(store.commits.load(SeqCst) < 20);
}

#[tokio::test]
async fn what_was_submitted_is_committed_by_a_flush() {
    let (store, handle, _writer) = start();
    for n in 0..5 {
        handle.submit(vec![change(&n.to_string())]).await.unwrap();
    }
    handle.flush().await.unwrap();
    assert_eq!(lock(&store.committed).len(), 5);
    assert_eq!(store.commits.load(SeqCst), 1);
}

#[tokio::test]
async fn what_was_submitted_is_committed_soon_without_a_flush() {
    let (store, handle, _writer) = start();
    handle.submit(vec![change("a")]).await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while lock(&store.committed).is_empty() {
        assert!(Instant::now() < deadline, "nothing was committed");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_change_is_told_when_it_is_visible_and_durable_soon_after() {
    let (store, handle, _writer) = start();
    store.persist_waits.store(true, SeqCst);
    handle.apply(vec![replacement("a")]).await.unwrap();
    until("nothing makes it durable", || store.persists_begun.load(SeqCst) > 0);
    // Commits go on meanwhile.
    handle.apply(vec![replacement("b")]).await.unwrap();
    assert_eq!(lock(&store.committed).len(), 2);
    assert!(lock(&store.durable).is_empty());
    store.persist_waits.store(false, SeqCst);
    until("the second isn't durable", || lock(&store.durable).len() == 2);
}

#[tokio::test]
async fn a_removal_is_told_when_it_is_durable() {
    let (store, handle, _writer) = start();
    store.persist_waits.store(true, SeqCst);
    let removal = tokio::spawn({
        let handle = handle.clone();
        async move { handle.apply(vec![change("a")]).await }
    });
    while store.persists_begun.load(SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    assert!(!removal.is_finished());
    store.persist_waits.store(false, SeqCst);
    removal.await.unwrap().unwrap();
    assert_eq!(*lock(&store.durable), [change("a")]);
}

#[tokio::test]
async fn what_is_to_be_durable_is_so_when_that_is_told() {
    let (store, handle, _writer) = start();
    handle.submit(vec![replacement("a")]).await.unwrap();
    handle.persist().await.unwrap();
    assert_eq!(*lock(&store.durable), [replacement("a")]);
    store.fails_to_persist.store(true, SeqCst);
    assert_eq!(handle.persist().await, Err(broken()));
}

#[tokio::test]
async fn what_cannot_be_made_durable_is_told_and_tried_again() {
    let (store, handle, _writer, _, told) = start_guarded();
    store.fails_to_persist.store(true, SeqCst);
    handle.apply(vec![replacement("a")]).await.unwrap();
    let mut said = None;
    until("no failure is told", || {
        said = told.try_recv().ok();
        said.is_some()
    });
    assert!(said.unwrap().unwrap().contains("disk full"));
    // A commit that succeeds is no sign that it is over.
    handle.apply(vec![replacement("b")]).await.unwrap();
    assert!(told.try_iter().all(|said| said.is_some()));
    store.fails_to_persist.store(false, SeqCst);
    until("it isn't told that it goes on", || told.try_iter().any(|said| said.is_none()));
    assert_eq!(lock(&store.durable).len(), 2);
}

#[tokio::test]
async fn a_failure_is_told_to_whoever_waits_and_the_writer_goes_on() {
    let (store, handle, _writer) = start();
    for fails in [&store.fails_to_apply, &store.fails_to_commit] {
        fails.store(true, SeqCst);
        assert_eq!(handle.apply(vec![change("lost")]).await, Err(broken()));
        fails.store(false, SeqCst);
        handle.apply(vec![change("kept")]).await.unwrap();
    }
    assert_eq!(*lock(&store.committed), [change("kept"), change("kept")]);
}

#[tokio::test]
async fn a_loss_is_told_to_the_handle_that_submitted() {
    let (store, mine, _writer) = start();
    let theirs = mine.clone();
    store.fails_to_apply.store(true, SeqCst);
    mine.submit(vec![change("lost")]).await.unwrap();
    // Another's waiting apply tells that the writer has got so far.
    assert_eq!(theirs.apply(vec![change("lost too")]).await, Err(broken()));
    store.fails_to_apply.store(false, SeqCst);
    assert_eq!(theirs.flush().await, Ok(()));
    assert_eq!(mine.flush().await, Err(broken()));
    assert_eq!(mine.flush().await, Ok(()), "told once");
}

#[tokio::test]
async fn a_stop_commits_what_was_handed_in() {
    let (store, handle, writer) = start();
    handle.submit(vec![change("a")]).await.unwrap();
    writer.stop();
    assert_eq!(*lock(&store.committed), [change("a")]);
    assert_eq!(*lock(&store.durable), [change("a")]);
    assert_eq!(handle.apply(vec![change("b")]).await, Err(IndexError::Stopped));
    assert_eq!(handle.flush().await, Err(IndexError::Stopped));
}

#[tokio::test]
async fn the_last_handle_gone_ends_the_writer() {
    let (store, handle, writer) = start();
    handle.submit(vec![change("a")]).await.unwrap();
    let Writer { sender, thread } = writer;
    drop((handle, sender));
    thread.join().unwrap();
    assert_eq!(*lock(&store.committed), [change("a")]);
}

#[tokio::test]
async fn more_than_the_budget_waits_for_room() {
    let (store, handle, _writer) = start();
    let gate = lock(&store.gate);
    let held = handle.budget.clone().try_acquire_many_owned(BUDGET).unwrap();
    drop(gate);
    let task = {
        let handle = handle.clone();
        tokio::spawn(async move { handle.apply(vec![change("a")]).await })
    };
    tokio::task::yield_now().await;
    assert!(lock(&store.committed).is_empty() && !task.is_finished());
    drop(held);
    task.await.unwrap().unwrap();
}

/// A writer on a disk whose room a test decides on, and what was told of pauses.
fn start_guarded() -> (Arc<Fake>, WriterHandle, Writer, Arc<AtomicBool>, Receiver<Option<String>>) {
    let store = Arc::new(Fake::default());
    let full = Arc::new(AtomicBool::new(false));
    let (tell, told) = channel();
    let is_full = full.clone();
    let guard = Guard {
        room: Box::new(move || match is_full.load(SeqCst) {
            true => Err("the disk is full".into()),
            false => Ok(()),
        }),
        tell: Box::new(move |reason| drop(tell.send(reason.map(str::to_owned)))),
    };
    let (handle, writer) = Writer::guarded(store.clone(), guard).unwrap();
    (store, handle, writer, full, told)
}

#[tokio::test]
async fn without_room_changes_wait_and_go_on_by_themselves() {
    let (store, handle, _writer, full, told) = start_guarded();
    handle.submit(vec![change("before")]).await.unwrap();
    handle.flush().await.unwrap();
    full.store(true, SeqCst);
    let waiting: Vec<_> = ["a", "b", "c"]
        .into_iter()
        .map(|uri| {
            let handle = handle.clone();
            tokio::spawn(async move { handle.apply(vec![change(uri)]).await })
        })
        .collect();
    let (told, reason) = tokio::task::spawn_blocking(move || {
        let reason = told.recv();
        (told, reason)
    })
    .await
    .unwrap();
    assert_eq!(reason, Ok(Some("the disk is full".to_owned())));
    assert_eq!(*lock(&store.committed), [change("before")]);
    full.store(false, SeqCst);
    for task in waiting {
        task.await.unwrap().unwrap();
    }
    assert_eq!(lock(&store.committed).len(), 4);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [None], "told once that it goes on");
}

#[tokio::test]
async fn a_stop_does_not_wait_for_room() {
    let (store, handle, writer, full, told) = start_guarded();
    full.store(true, SeqCst);
    let waiting = tokio::spawn({
        let handle = handle.clone();
        async move { handle.apply(vec![change("a")]).await }
    });
    tokio::task::spawn_blocking(move || {
        told.recv().unwrap();
        writer.stop();
    })
    .await
    .unwrap();
    let said = waiting.await.unwrap();
    assert_eq!(said, Err(IndexError::Write { reason: "the disk is full".into() }));
    assert!(lock(&store.committed).is_empty());
}

#[tokio::test]
async fn a_failure_is_shown_until_a_commit_succeeds() {
    let (store, handle, _writer, _, told) = start_guarded();
    store.fails_to_commit.store(true, SeqCst);
    handle.apply(vec![change("a")]).await.unwrap_err();
    assert!(told.try_recv().unwrap().unwrap().contains("disk full"));
    // A flush of nothing shows nothing.
    handle.flush().await.unwrap();
    assert!(told.try_recv().is_err());
    store.fails_to_commit.store(false, SeqCst);
    handle.apply(vec![change("a")]).await.unwrap();
    assert_eq!(told.try_recv(), Ok(None));
}

#[tokio::test]
async fn a_ping_is_answered_by_a_writer_that_waits_and_not_by_one_that_is_stuck() {
    let (store, handle, _writer) = start();
    handle.ping().await.unwrap();
    assert_eq!(store.commits.load(SeqCst), 0);
    // Stuck in a commit.
    let (gate, held) = std::sync::mpsc::channel::<()>();
    let (ready, is_held) = std::sync::mpsc::channel();
    let holder = std::thread::spawn({
        let store = store.clone();
        move || {
            let _gate = lock(&store.gate);
            ready.send(()).unwrap();
            let _ = held.recv();
        }
    });
    is_held.recv().unwrap();
    let applying = tokio::spawn({
        let handle = handle.clone();
        async move { handle.apply(vec![change("a")]).await }
    });
    while store.begun.load(SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    let ping = handle.ping();
    tokio::pin!(ping);
    let early = tokio::time::timeout(Duration::from_millis(50), ping.as_mut()).await;
    assert!(early.is_err(), "answered in the middle of a commit");
    drop(gate);
    ping.await.unwrap();
    applying.await.unwrap().unwrap();
    holder.join().unwrap();
}

#[tokio::test]
async fn a_writer_without_room_answers_pings() {
    let (told, paused) = std::sync::mpsc::channel();
    let guard = Guard {
        room: Box::new(|| Err("full".into())),
        tell: Box::new(move |reason| drop(told.send(reason.map(str::to_owned)))),
    };
    let (handle, _writer) = Writer::guarded(Arc::new(Fake::default()), guard).unwrap();
    handle.submit(vec![change("a")]).await.unwrap();
    assert_eq!(paused.recv().unwrap().as_deref(), Some("full"));
    handle.ping().await.unwrap();
}
