//! What changes, told on: to each client the resources that it subscribed to, and that the list is
//! another one. Hints collapse, so a slow client costs one entry a resource and holds up nobody.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use super::super::App;
use super::super::scope::{Caller, View};
use crate::model::{ResourceKey, ServerName};
use crate::outbox::Outbox;
use crate::sync::control::Event;

/// How long changes are gathered before the list is compared.
const GATHER: Duration = Duration::from_millis(300);
/// Comparing the list may take this part of the time.
const SHARE: u32 = 20;
/// How often it is looked whether anybody still listens.
const IDLE: Duration = Duration::from_secs(60);

/// The outboxes of all clients that see the same.
pub struct Hub {
    pub app: Arc<App>,
    pub caller: Caller,
    state: Mutex<Registered>,
}

#[derive(Default)]
struct Registered {
    outboxes: Vec<Weak<Outbox<ResourceKey>>>,
    following: bool,
}

impl Hub {
    pub fn new(app: Arc<App>, caller: Caller) -> Self {
        Self { app, caller, state: Mutex::default() }
    }

    /// Tells an outbox what happens from now on, until it is dropped.
    pub fn register(self: &Arc<Self>, outbox: &Arc<Outbox<ResourceKey>>) {
        let mut state = self.lock();
        state.outboxes.push(Arc::downgrade(outbox));
        if !state.following {
            state.following = true;
            tokio::spawn(Arc::clone(self).follow());
        }
    }

    /// Whoever is still there. With nobody left, whoever follows is to end.
    fn listening(&self) -> Vec<Arc<Outbox<ResourceKey>>> {
        let mut state = self.lock();
        state.outboxes.retain(|outbox| outbox.strong_count() > 0);
        let listening: Vec<_> = state.outboxes.iter().filter_map(Weak::upgrade).collect();
        state.following = !listening.is_empty();
        listening
    }

    fn lock(&self) -> MutexGuard<'_, Registered> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn follow(self: Arc<Self>) {
        let mut events = self.app.control.events();
        // What happened meanwhile may be in it already, and not in the list that a client has.
        let mut known = self.digest().await.filter(|_| events.is_empty());
        let mut compare_at: Option<Instant> = None;
        let mut took = Duration::ZERO;
        loop {
            let wake = compare_at.unwrap_or_else(|| Instant::now() + IDLE);
            let event = tokio::time::timeout_at(wake, events.recv()).await;
            let listening = self.listening();
            if listening.is_empty() {
                return;
            }
            let changed = match event {
                Ok(Ok(event)) => self.pass_on(&event, &listening),
                Ok(Err(RecvError::Lagged(_))) => {
                    listening.iter().for_each(|outbox| outbox.all_updated());
                    true
                }
                Ok(Err(RecvError::Closed)) => return,
                Err(_) => {
                    if compare_at.take().is_some() {
                        let started = Instant::now();
                        let now = self.digest().await;
                        took = started.elapsed();
                        if now != known {
                            known = now;
                            listening.iter().for_each(|outbox| outbox.list_changed());
                        }
                    }
                    false
                }
            };
            if changed && compare_at.is_none() {
                compare_at = Some(Instant::now() + GATHER.max(took * SHARE));
            }
        }
    }

    /// Tells whom it concerns; whether the list may be another one now.
    fn pass_on(&self, event: &Event, listening: &[Arc<Outbox<ResourceKey>>]) -> bool {
        let (server, uri) = match event {
            Event::Indexed { server, uri } | Event::Removed { server, uri } => (server, uri),
            Event::Listing { .. } | Event::Reload { .. } | Event::State { .. } => return true,
            _ => return false,
        };
        let Ok(view) = self.app.view(&self.caller, None) else { return true };
        let Ok(server) = ServerName::new(server) else { return false };
        if !view.sees_server(&server) || !view.filter.allows_uri(uri) {
            return false;
        }
        let key = ResourceKey { server, uri: uri.as_str().into() };
        listening.iter().for_each(|outbox| outbox.updated([&key]));
        true
    }

    /// What tells one list from another: nothing that a change of content changes.
    async fn digest(&self) -> Option<blake3::Hash> {
        let view: View = self.app.view(&self.caller, None).ok()?;
        self.app
            .blocking(move |app| {
                let mut hasher = blake3::Hasher::new();
                app.each_resource(&view.filter, |row| {
                    for field in [row.key.server.as_str(), &row.key.uri, &row.title] {
                        hasher.update(&(field.len() as u64).to_le_bytes());
                        hasher.update(field.as_bytes());
                    }
                    hasher.update(row.mime_type.unwrap_or_default().as_bytes());
                    true
                })?;
                for (server, row) in app.templates_in(&view) {
                    hasher.update(server.as_str().as_bytes());
                    hasher.update(row.template.uri_template.as_bytes());
                }
                Ok(hasher.finalize())
            })
            .await
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Change;
    use crate::outbox::Pending;
    use crate::serve::fake::{entry, key};
    use crate::serve::tests::app;

    #[tokio::test]
    async fn the_list_is_another_one_only_when_it_is() {
        let app = app();
        let hub = Arc::new(Hub::new(app.clone(), Caller::of_scope("bot", "test")));
        let outbox = Arc::new(Outbox::new(true, 9));
        let uri = "handbook:///refunds.md";
        outbox.subscribe(key("handbook", uri), uri.into());
        hub.register(&outbox);
        let pushed = |server: &str, uri: &str| {
            app.control.publish(Event::Indexed { server: server.into(), uri: uri.into() });
        };
        while app.control.receivers() == 0 {
            tokio::task::yield_now().await;
        }
        // The first may come before the list was looked at, which then counts as another one.
        pushed("handbook", uri);
        while tokio::time::timeout(GATHER * 4, outbox.next()).await.is_ok() {}
        // Its own content, and something that the scope doesn't show.
        pushed("wiki", "wiki://pages/hr/pay");
        pushed("handbook", uri);
        assert_eq!(
            outbox.next().await,
            Pending { list_changed: false, updated: [uri.to_owned()].into() }
        );
        assert!(tokio::time::timeout(GATHER * 4, outbox.next()).await.is_err());
        let new = entry("handbook", "handbook:///new.md", "New", "new\n");
        app.store.apply(vec![Change::Replace(Box::new(new))]).unwrap();
        pushed("handbook", "handbook:///new.md");
        assert!(outbox.next().await.list_changed);
    }
}
