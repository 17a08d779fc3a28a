//! The handle by which the rest of the daemon sees and steers the servers' tasks.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, RwLock};

use arc_swap::ArcSwap;
use serde::{Deserialize, Serialize};
use tokio::sync::{broadcast, mpsc};

use super::added::Added;
use crate::metrics::Histogram;
use crate::model::{
    ResourceKey, ResourceTemplate, ServerName, ServerState, ServerStatus, Snapshot, SyncCause, Uri,
};
use crate::source::SourceError;
use crate::source::mcp::session::Session;
use crate::source::mcp::template::Completion;

/// What a server's task and everybody else share. The task writes, the others read.
pub struct Shared {
    pub status: RwLock<ServerStatus>,
    /// Resources whose last read failed while older text of theirs is still searchable.
    pub stale: RwLock<HashSet<Uri>>,
    pub templates: RwLock<Vec<TemplateRow>>,
    /// URIs whose removal waits for a second listing, sorted.
    pub withheld: RwLock<Vec<Uri>>,
    /// The live session, while there is one.
    pub session: RwLock<Option<Session>>,
    /// Requests to the task; a full channel means that one is waiting already.
    pub requests: mpsc::Sender<SyncRequest>,
    /// From a notification to what it told being searchable.
    pub lag: Histogram,
}

impl Shared {
    /// What is known before the task runs.
    pub fn new(status: ServerStatus, requests: mpsc::Sender<SyncRequest>) -> Self {
        Self {
            status: RwLock::new(status),
            stale: RwLock::default(),
            templates: RwLock::default(),
            withheld: RwLock::default(),
            session: RwLock::default(),
            requests,
            lag: Histogram::default(),
        }
    }
}

/// A template as `/v1/templates` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateRow {
    pub template: ResourceTemplate,
    /// How many of its expansions are followed.
    pub expanded: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncRequest {
    pub cause: SyncCause,
    /// Believe a withheld mass removal now.
    pub confirm: bool,
}

/// What happens in the sync, for `events` and the console.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    State {
        server: String,
        state: ServerState,
    },
    Listing {
        server: String,
        cause: SyncCause,
        resources: u64,
        complete: bool,
    },
    /// Progress of the reads of one plan.
    Progress {
        server: String,
        done: u64,
        total: u64,
    },
    /// Its content came, be it changed or not.
    Read {
        server: String,
        uri: String,
    },
    Indexed {
        server: String,
        uri: String,
    },
    /// What a server told to have changed is searchable, so long after it told.
    Pushed {
        server: String,
        lag_ms: u64,
    },
    Removed {
        server: String,
        uri: String,
    },
    Withheld {
        server: String,
        removals: u64,
    },
    Error {
        server: String,
        message: String,
    },
    /// For the server's owner: what is odd about what it lists.
    Warning {
        server: String,
        message: String,
    },
    Reconnect {
        server: String,
        attempt: u32,
    },
    Reload {
        added: Vec<String>,
        changed: Vec<String>,
        removed: Vec<String>,
        error: Option<String>,
    },
}

/// A live read that failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReadError {
    #[error("no server is called {0}")]
    UnknownServer(ServerName),
    /// There is no session; the state says why.
    #[error("{server} is {state:?}")]
    Away { server: ServerName, state: ServerState },
    #[error(transparent)]
    Source(#[from] SourceError),
}

/// All servers' tasks. Cheap to share; never blocks on a server.
pub struct Control {
    servers: ArcSwap<BTreeMap<ServerName, Arc<Shared>>>,
    events: broadcast::Sender<Event>,
    /// Expansions of templates that were chosen at run time.
    pub added: Added,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            servers: ArcSwap::default(),
            events: broadcast::channel(8192).0,
            added: Added::default(),
        }
    }
}

impl Control {
    pub fn insert(&self, name: ServerName, shared: Arc<Shared>) {
        self.servers.rcu(|old| {
            let mut new = BTreeMap::clone(old);
            new.insert(name.clone(), shared.clone());
            new
        });
    }

    pub fn remove(&self, name: &ServerName) {
        self.servers.rcu(|old| {
            let mut new = BTreeMap::clone(old);
            new.remove(name);
            new
        });
    }

    pub fn names(&self) -> Vec<ServerName> {
        self.servers.load().keys().cloned().collect()
    }

    pub fn contains(&self, name: &str) -> bool {
        self.servers.load().contains_key(name)
    }

    /// Every configured server's status, in the order of names.
    pub fn statuses(&self) -> Vec<ServerStatus> {
        self.servers.load().values().map(|shared| read(&shared.status).clone()).collect()
    }

    /// What every server's task shows, in the order of names.
    pub fn all(&self) -> Vec<Arc<Shared>> {
        self.servers.load().values().cloned().collect()
    }

    /// The templates of every server.
    pub fn templates(&self) -> Vec<(ServerName, TemplateRow)> {
        let servers = self.servers.load();
        let rows = servers.iter().flat_map(|(name, shared)| {
            read(&shared.templates)
                .iter()
                .map(|row| (name.clone(), row.clone()))
                .collect::<Vec<_>>()
        });
        rows.collect()
    }

    /// The URIs of a server's whose removal waits for a second listing, sorted.
    pub fn withheld(&self, server: &ServerName) -> Vec<Uri> {
        let servers = self.servers.load();
        servers.get(server).map(|shared| read(&shared.withheld).clone()).unwrap_or_default()
    }

    /// Whether the index's text of a resource is older than a read that failed.
    pub fn is_stale(&self, key: &ResourceKey) -> bool {
        let servers = self.servers.load();
        servers.get(&key.server).is_some_and(|shared| read(&shared.stale).contains(&key.uri))
    }

    /// Asks servers (all, when none is named) to be listed and reconciled; answers which were.
    /// Unknown names are left out: the caller has checked them.
    pub fn request_sync(&self, names: &[ServerName], confirm: bool) -> Vec<ServerName> {
        let request = SyncRequest { cause: SyncCause::Request, confirm };
        let servers = self.servers.load();
        let wanted = servers.iter().filter(|(name, _)| names.is_empty() || names.contains(name));
        wanted
            .filter(|(_, shared)| !shared.requests.is_closed())
            .map(|(name, shared)| {
                // A full channel holds a request that does the same.
                let _ = shared.requests.try_send(request);
                name.clone()
            })
            .collect()
    }

    /// A live `resources/read`.
    pub async fn read(&self, key: &ResourceKey) -> Result<Snapshot, ReadError> {
        let shared = self.servers.load().get(&key.server).cloned();
        let shared = shared.ok_or_else(|| ReadError::UnknownServer(key.server.clone()))?;
        let session = read(&shared.session).clone();
        let Some(session) = session else {
            let state = read(&shared.status).state;
            return Err(ReadError::Away { server: key.server.clone(), state });
        };
        Ok(session.read(&key.uri).await?)
    }

    /// A live `completion/complete` for a variable of a server's template.
    pub async fn complete(
        &self,
        server: &ServerName,
        template: &str,
        variable: &str,
        typed: &str,
        chosen: &BTreeMap<String, String>,
    ) -> Result<Completion, ReadError> {
        let shared = self.servers.load().get(server).cloned();
        let shared = shared.ok_or_else(|| ReadError::UnknownServer(server.clone()))?;
        let session = read(&shared.session).clone();
        let Some(session) = session else {
            let state = read(&shared.status).state;
            return Err(ReadError::Away { server: server.clone(), state });
        };
        Ok(session.complete(template, variable, typed, chosen).await?)
    }

    /// How many listen to [`Control::events`].
    pub fn receivers(&self) -> usize {
        self.events.receiver_count()
    }

    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    /// Tells whoever listens; nobody listening is fine.
    pub fn publish(&self, event: Event) {
        let _ = self.events.send(event);
    }
}

/// A lock is only ever held to copy or replace a value, so a poisoned one still holds a whole value.
pub(crate) fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

pub(super) fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}
