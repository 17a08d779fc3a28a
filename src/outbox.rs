//! What one client of an MCP server of ours is still to be told, and telling it. Hints collapse here:
//! however slow a client is, a change that it hasn't been told of yet costs one entry, and never holds up
//! anybody.
//!
//! Up to 2025-11-25 a client subscribes URI by URI, and changes of the list come unasked; since
//! 2026-07-28 it opens `subscriptions/listen` streams. Each way has an outbox.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, SubscriptionContext, SubscriptionSendError};
use tokio::sync::Notify;

/// Of one client, whose subscriptions are told apart by `K`.
#[derive(Debug)]
pub struct Outbox<K> {
    state: Mutex<State<K>>,
    ready: Notify,
    most: usize,
}

#[derive(Debug)]
struct State<K> {
    /// Each with the URI as the client wrote it, which is what it gets back.
    subscribed: HashMap<K, String>,
    lists: bool,
    pending: Pending,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pending {
    pub list_changed: bool,
    pub updated: BTreeSet<String>,
}

impl<K: Eq + Hash> Outbox<K> {
    /// Of a client that is told of changes of the list or not, and subscribes to so many URIs at `most`.
    pub fn new(lists: bool, most: usize) -> Self {
        let state = State { subscribed: HashMap::new(), lists, pending: Pending::default() };
        Self { state: Mutex::new(state), ready: Notify::new(), most }
    }

    /// Whether there was room for it.
    pub fn subscribe(&self, key: K, uri: String) -> bool {
        let mut state = self.lock();
        let fits = state.subscribed.len() < self.most || state.subscribed.contains_key(&key);
        if fits {
            state.subscribed.insert(key, uri);
        }
        fits
    }

    pub fn unsubscribe(&self, key: &K) {
        let mut state = self.lock();
        if let Some(uri) = state.subscribed.remove(key) {
            state.pending.updated.remove(&uri);
        }
    }

    pub fn list_changed(&self) {
        self.offer(|state| state.pending.list_changed |= state.lists);
    }

    /// Of these, the client is told of those that it subscribed to.
    pub fn updated<'k>(&self, keys: impl IntoIterator<Item = &'k K>)
    where
        K: 'k,
    {
        self.offer(|State { subscribed, pending, .. }| {
            if !subscribed.is_empty() {
                let uris = keys.into_iter().filter_map(|key| subscribed.get(key));
                pending.updated.extend(uris.cloned());
            }
        });
    }

    /// All may have changed: what happened isn't known.
    pub fn all_updated(&self) {
        self.offer(|State { subscribed, pending, .. }| {
            pending.updated.extend(subscribed.values().cloned());
        });
    }

    fn offer(&self, change: impl FnOnce(&mut State<K>)) {
        let mut state = self.lock();
        change(&mut state);
        if state.pending != Pending::default() {
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

    /// Tells a legacy client, until it is gone.
    pub async fn push_to(&self, peer: &Peer<RoleServer>) {
        loop {
            let pending = self.next().await;
            if pending.list_changed && peer.notify_resource_list_changed().await.is_err() {
                return;
            }
            for uri in pending.updated {
                let params = ResourceUpdatedNotificationParam::new(uri);
                if peer.notify_resource_updated(params).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Tells a client through its stream, until that is closed.
    pub async fn push_into(&self, stream: &SubscriptionContext) {
        let push = async {
            loop {
                let pending = self.next().await;
                if pending.list_changed {
                    stream.sink().notify_resource_list_changed().await?;
                }
                for uri in pending.updated {
                    stream.sink().notify_resource_updated(uri).await?;
                }
            }
        };
        let pushed: Result<(), SubscriptionSendError> = tokio::select! {
            () = stream.cancelled() => Ok(()),
            pushed = push => pushed,
        };
        // A connection or stream that was closed; nobody is left to be told.
        if let Err(error) = pushed {
            tracing::debug!(%error, "a subscription ended");
        }
    }

    /// The state is whole at every point where a panic could happen, so a poisoned lock is sound.
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(list_changed: bool, updated: &[&str]) -> Pending {
        Pending { list_changed, updated: updated.iter().map(|uri| (*uri).to_owned()).collect() }
    }

    #[tokio::test]
    async fn hints_collapse() {
        let outbox = Outbox::new(true, 2);
        assert!(outbox.subscribe("a", "h:///a".into()));
        assert!(outbox.subscribe("b", "h:///%62".into()));
        assert!(!outbox.subscribe("c", "h:///c".into()));
        assert!(outbox.subscribe("a", "h:///a".into()), "it is there already");
        outbox.updated(&["a"]);
        outbox.updated(&["a", "c"]);
        outbox.list_changed();
        outbox.updated(&["b"]);
        assert_eq!(outbox.next().await, pending(true, &["h:///%62", "h:///a"]));

        outbox.updated(&["a"]);
        outbox.unsubscribe(&"a");
        outbox.updated(&["a"]);
        outbox.all_updated();
        assert_eq!(outbox.next().await, pending(false, &["h:///%62"]));
    }

    #[tokio::test]
    async fn who_did_not_ask_for_lists_is_not_told_of_them() {
        let outbox = Outbox::new(false, 1);
        outbox.subscribe("a", "h:///a".into());
        outbox.list_changed();
        outbox.updated(&["a"]);
        assert_eq!(outbox.next().await, pending(false, &["h:///a"]));
    }
}
