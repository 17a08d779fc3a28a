//! What one client is still to be told. Hints collapse here: however slow a client is, a change that
//! it hasn't been told of yet costs one entry, and never holds up anybody.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::scan::Changes;
use super::uri::RelPath;

/// Most URIs that one client may be subscribed to.
const MAX_SUBSCRIPTIONS: usize = 1_000_000;

#[derive(Debug, Default)]
pub struct Outbox {
    state: Mutex<State>,
    ready: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Subscribed files, each with the URI as the client wrote it, which is what it gets back.
    subscribed: HashMap<RelPath, String>,
    lists: bool,
    pending: Pending,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pending {
    pub list_changed: bool,
    pub updated: BTreeSet<String>,
}

impl Outbox {
    pub fn new(lists: bool) -> Self {
        Self { state: Mutex::new(State { lists, ..State::default() }), ready: Notify::new() }
    }

    /// Whether there was room for it.
    pub fn subscribe(&self, path: RelPath, uri: String) -> bool {
        let mut state = self.lock();
        let fits =
            state.subscribed.len() < MAX_SUBSCRIPTIONS || state.subscribed.contains_key(&path);
        if fits {
            state.subscribed.insert(path, uri);
        }
        fits
    }

    pub fn unsubscribe(&self, path: &RelPath) {
        let mut state = self.lock();
        if let Some(uri) = state.subscribed.remove(path) {
            state.pending.updated.remove(&uri);
        }
    }

    pub fn offer(&self, changes: &Changes) {
        let mut state = self.lock();
        let State { subscribed, lists, pending } = &mut *state;
        pending.list_changed |= *lists && changes.listed;
        if !subscribed.is_empty() {
            pending
                .updated
                .extend(changes.updated.iter().filter_map(|path| subscribed.get(path)).cloned());
        }
        if *pending != Pending::default() {
            self.ready.notify_one();
        }
    }

    /// Waits for something to tell and takes it.
    pub async fn next(&self) -> Pending {
        loop {
            let pending = std::mem::take(&mut self.lock().pending);
            if pending != Pending::default() {
                return pending;
            }
            self.ready.notified().await;
        }
    }

    /// The state is whole at every point where a panic could happen, so a poisoned lock is sound.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(listed: bool, updated: &[&str]) -> Changes {
        Changes { listed, updated: updated.iter().map(RelPath::from).collect() }
    }

    #[tokio::test]
    async fn hints_collapse() {
        let outbox = Outbox::new(true);
        assert!(outbox.subscribe("a".into(), "h:///a".into()));
        assert!(outbox.subscribe("b".into(), "h:///%62".into()));
        outbox.offer(&changes(false, &["a"]));
        outbox.offer(&changes(true, &["a", "c"]));
        outbox.offer(&changes(true, &["b"]));
        let updated = ["h:///%62", "h:///a"].map(String::from).into();
        assert_eq!(outbox.next().await, Pending { list_changed: true, updated });

        outbox.unsubscribe(&"a".into());
        outbox.offer(&changes(false, &["a"]));
        outbox.offer(&changes(true, &[]));
        assert_eq!(outbox.next().await, Pending { list_changed: true, updated: BTreeSet::new() });
    }

    #[tokio::test]
    async fn only_what_was_asked_for() {
        let outbox = Outbox::new(false);
        assert!(outbox.subscribe("a".into(), "h:///a".into()));
        outbox.offer(&changes(true, &["b"]));
        outbox.offer(&changes(true, &["a"]));
        assert_eq!(
            outbox.next().await,
            Pending { list_changed: false, updated: ["h:///a".into()].into() }
        );
    }
}
