//! What a server said may have changed, collapsed: notifications mark, the sync takes.
//!
//! Marking never blocks and never piles up, whatever the server sends: a URI is marked once, and past
//! [`MAX_URIS`] marks of URIs the whole server is marked instead.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use super::framing::Push;

/// Marks kept apart; more than that and everything is marked.
const MAX_URIS: usize = 20_000;

/// What was marked since the last take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The listing may have changed.
    pub list: bool,
    /// These resources may have changed. They needn't be listed, nor exist.
    pub uris: BTreeSet<String>,
    /// Hints may have been lost: anything may have changed.
    pub everything: bool,
    /// The modern era's stream has ended and is to be opened again.
    pub stream_ended: bool,
    /// How many notifications these marks stand for.
    pub notifications: u64,
    /// The session has ended, and why; nothing follows.
    pub closed: Option<String>,
}

impl Marks {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes up what was marked later.
    pub fn merge(&mut self, later: Marks) {
        self.list |= later.list;
        self.everything |= later.everything;
        self.stream_ended |= later.stream_ended;
        self.uris.extend(later.uris);
        self.notifications += later.notifications;
        self.closed = self.closed.take().or(later.closed);
    }
}

/// The marks of one session, shared by its transport and the sync.
#[derive(Default)]
pub struct Hints {
    marks: Mutex<Marks>,
    marked: Notify,
    /// Kept after it was taken, for the errors of requests that were under way.
    ending: Mutex<Option<String>>,
}

impl Hints {
    pub fn push(&self, push: Push) {
        self.mark(|marks| {
            marks.notifications += 1;
            match push {
                Push::ListChanged => marks.list = true,
                Push::Updated(_) if marks.everything => {}
                Push::Updated(uri) => {
                    marks.uris.insert(uri);
                    if marks.uris.len() > MAX_URIS {
                        marks.uris.clear();
                        marks.everything = true;
                    }
                }
            }
        });
    }

    /// Hints may have been lost while a stream was away.
    pub fn everything(&self) {
        self.mark(|marks| {
            marks.uris.clear();
            marks.everything = true;
        });
    }

    /// The modern era's stream has ended; what it would have brought is lost.
    pub fn stream_ended(&self) {
        self.mark(|marks| {
            marks.stream_ended = true;
            marks.everything = true;
        });
    }

    /// The session has ended. The first reason given is the one that is kept.
    pub fn closed(&self, reason: impl Into<String>) {
        let reason = reason.into();
        let first = {
            let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
            ending.get_or_insert(reason).clone()
        };
        self.mark(|marks| marks.closed = Some(first));
    }

    /// The session is going to end for this reason; it has when [`Hints::closed`] says so, whatever
    /// reason it gives.
    pub fn ends(&self, reason: impl Into<String>) {
        let mut ending = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        ending.get_or_insert(reason.into());
    }

    /// Why the session has ended, if it has.
    pub fn ending(&self) -> Option<String> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn mark(&self, change: impl FnOnce(&mut Marks)) {
        // A change is whole or, after a panic in `insert`, a mark short: a hint lost.
        change(&mut self.marks.lock().unwrap_or_else(PoisonError::into_inner));
        self.marked.notify_one();
    }

    /// Takes the marks, waiting for the first. Safe to drop and call again: nothing is lost.
    pub async fn take(&self) -> Marks {
        loop {
            let marks =
                std::mem::take(&mut *self.marks.lock().unwrap_or_else(PoisonError::into_inner));
            if !marks.is_empty() {
                return marks;
            }
            self.marked.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_flood_collapses() {
        let hints = Hints::default();
        for at in 0..50_000 {
            hints.push(Push::Updated(format!("a://{}", at % 3)));
            hints.push(Push::ListChanged);
        }
        let marks = hints.take().await;
        assert_eq!(marks.uris.len(), 3);
        assert!(marks.list && !marks.everything);
        assert_eq!(marks.notifications, 100_000);
        assert!(futures::FutureExt::now_or_never(hints.take()).is_none());
    }

    #[tokio::test]
    async fn too_many_uris_mark_everything() {
        let hints = Hints::default();
        for at in 0..=MAX_URIS {
            hints.push(Push::Updated(format!("a://{at}")));
        }
        let marks = hints.take().await;
        assert!(marks.everything && marks.uris.is_empty());
    }

    #[tokio::test]
    async fn the_first_reason_of_an_end_is_kept() {
        let hints = Hints::default();
        hints.closed("first");
        hints.closed("second");
        assert_eq!(hints.take().await.closed.as_deref(), Some("first"));
        let hints = Hints::default();
        hints.ends("before");
        assert!(hints.marks.lock().unwrap().is_empty());
        hints.closed("then");
        assert_eq!(hints.take().await.closed.as_deref(), Some("before"));
    }
}
