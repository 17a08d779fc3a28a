//! The servers' tasks, kept equal to the config: a start is a change from none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio_util::task::TaskTracker;

use crate::config::{Config, diff};
use crate::fault;
use crate::index::writer::WriterHandle;
use crate::index::{Change, IndexError};
use crate::model::{ServerName, SyncCause};
use crate::source::mcp::{ConnectOptions, Grace};
use crate::sync::control::{Control, Event};
use crate::sync::{self, Context, Running};

/// Sections of the config that the servers' tasks hold a copy of.
const OF_TASKS: &[&str] = &["sync", "limits"];

/// Sections that are read at the start only.
const AT_START: &[&str] = &["index", "http", "socket"];

/// How long a failed removal is left alone.
const FORGET_WAIT: Duration = Duration::from_secs(5);

/// Removes what the index holds of servers that the config doesn't have any more. Waits for its turn
/// only: the index may be unable to write for long, and is asked again until it has.
pub async fn forget(gone: Vec<ServerName>, writer: &WriterHandle, control: &Arc<Control>) {
    if gone.is_empty() {
        return;
    }
    let changes = |gone: &[ServerName]| gone.iter().cloned().map(Change::RemoveServer).collect();
    // Its own account of what was lost.
    let (writer, control) = (writer.clone(), control.clone());
    let _ = writer.submit(changes(&gone)).await;
    tokio::spawn(async move {
        while let Err(error) = writer.flush().await {
            if error == IndexError::Stopped {
                return;
            }
            tokio::time::sleep(FORGET_WAIT).await;
            // One that has come back meanwhile looks after itself.
            let still: Vec<ServerName> =
                gone.iter().filter(|name| !control.contains(name.as_str())).cloned().collect();
            let _ = writer.submit(changes(&still)).await;
        }
    });
}

/// The running tasks.
pub struct Servers {
    context: Arc<Context>,
    writer: WriterHandle,
    children: TaskTracker,
    running: BTreeMap<ServerName, Running>,
}

impl Servers {
    pub fn new(context: Arc<Context>, writer: WriterHandle, children: TaskTracker) -> Self {
        Self { context, writer, children, running: BTreeMap::new() }
    }

    pub fn start_all(&mut self, config: &Config) {
        for name in config.servers.keys() {
            self.start(name, config, SyncCause::Startup);
        }
    }

    fn start(&mut self, name: &ServerName, config: &Config, cause: SyncCause) {
        let Some(server) = config.servers.get(name) else { return };
        let options = ConnectOptions {
            limits: config.limits.clone(),
            grace: Grace::default(),
            remembered: None,
            children: self.children.clone(),
        };
        let context = self.context.clone();
        let running =
            sync::start(server.clone(), config, context, self.writer.clone(), options, cause);
        if let Some(running) = running {
            self.running.insert(name.clone(), running);
        }
    }

    /// Brings the tasks from one config to another: only what differs is touched.
    pub async fn reload(&mut self, old: &Config, new: &Config) {
        let diff = diff(old, new);
        if diff.is_empty() {
            return;
        }
        let late: Vec<_> =
            diff.global_changed.iter().filter(|section| AT_START.contains(section)).collect();
        if !late.is_empty() {
            tracing::warn!(sections = ?late, "these sections take effect at the next start");
        }
        let everywhere = diff.global_changed.iter().any(|section| OF_TASKS.contains(section));
        let changed: Vec<ServerName> = match everywhere {
            true => {
                new.servers.keys().filter(|name| old.servers.contains_key(*name)).cloned().collect()
            }
            false => diff.changed.clone(),
        };
        self.end(diff.removed.iter().chain(&changed)).await;
        fault::point("reload.ended");
        for name in &diff.removed {
            self.context.control.remove(name);
        }
        forget(diff.removed.clone(), &self.writer, &self.context.control).await;
        fault::point("reload.forgotten");
        for name in diff.added.iter().chain(&changed) {
            self.start(name, new, SyncCause::Reload);
        }
        let names =
            |names: &[ServerName]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (added, changed, removed) = (names(&diff.added), names(&changed), names(&diff.removed));
        tracing::info!(?added, ?changed, ?removed, "the changed config is in force");
        self.context.control.publish(Event::Reload { added, changed, removed, error: None });
    }

    /// Tells that a changed config can't be used.
    pub fn tell_broken(&self, error: &str) {
        self.context.control.publish(Event::Reload {
            added: vec![],
            changed: vec![],
            removed: vec![],
            error: Some(error.to_owned()),
        });
    }

    async fn end<'n>(&mut self, names: impl Iterator<Item = &'n ServerName>) {
        let ending: Vec<Running> = names.filter_map(|name| self.running.remove(name)).collect();
        ending.iter().for_each(Running::stop);
        join_all(ending.into_iter().map(Running::stopped)).await;
    }

    /// Stops all at once; answers those that have not ended by the deadline.
    pub async fn stop_all(&mut self, deadline: Duration) -> Vec<ServerName> {
        let ending = std::mem::take(&mut self.running);
        ending.values().for_each(Running::stop);
        let stop = |(name, running): (ServerName, Running)| async move {
            tokio::time::timeout(deadline, running.stopped()).await.err().map(|_| name)
        };
        join_all(ending.into_iter().map(stop)).await.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;
    use crate::index::writer::Writer;
    use crate::model::Fingerprint;
    use crate::serve::fake::FakeStore;
    use crate::sync::{Clock, Eras};

    #[tokio::test]
    async fn who_does_not_end_in_time_is_named() {
        let store = Arc::new(FakeStore::default());
        let (writer, _thread) = Writer::start(store.clone()).unwrap();
        let context = Arc::new(Context {
            store,
            control: Arc::default(),
            clock: Clock::start().await.unwrap(),
            eras: Eras::default(),
            fingerprint: Fingerprint(1),
            reads: Arc::new(Semaphore::new(1)),
            workers: crate::worker::Workers::none(),
        });
        let mut servers = Servers::new(context, writer, TaskTracker::new());
        for (name, ends) in [("quick", true), ("slow", false), ("stuck", false)] {
            let task = async move {
                if !ends {
                    std::future::pending::<()>().await;
                }
            };
            let running = Running::of(tokio::spawn(task));
            servers.running.insert(ServerName::new(name).unwrap(), running);
        }
        let named = servers.stop_all(Duration::from_millis(500)).await;
        let named: Vec<&str> = named.iter().map(ServerName::as_str).collect();
        assert_eq!(named, ["slow", "stuck"]);
        assert!(servers.stop_all(Duration::ZERO).await.is_empty());
    }
}
