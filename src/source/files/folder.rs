//! The folder's state: the last good snapshot, what is wrong, and who wants to know of changes.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::FilesOptions;
use super::scan::{self, Changes, ScanError, Snapshot};
use super::uri::RelPath;
use crate::outbox::Outbox;

/// How long an empty folder that took the place of a full one isn't believed.
const EMPTIED_FOR: Duration = Duration::from_secs(60);

pub struct Folder {
    pub scheme: String,
    pub root: PathBuf,
    pub options: FilesOptions,
    state: Mutex<State>,
    /// Held during a scan: one at a time, so that each compares with the one before it.
    turn: tokio::sync::Mutex<()>,
    outboxes: Mutex<Vec<Weak<Outbox<RelPath>>>>,
    /// Told when a scan found other folders than the one before.
    pub folders_changed: Notify,
}

#[derive(Default)]
struct State {
    good: Option<Arc<Snapshot>>,
    /// Why the last scan failed; `good` is older than it.
    error: Option<ScanError>,
    emptied: Option<Instant>,
    took: Duration,
}

impl Folder {
    pub fn new(root: PathBuf, scheme: String, options: FilesOptions) -> Self {
        Self {
            scheme,
            root,
            options,
            state: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            outboxes: Mutex::default(),
            folders_changed: Notify::new(),
        }
    }

    /// The last good snapshot, even when the folder can't be listed at the moment.
    pub fn last_good(&self) -> Option<Arc<Snapshot>> {
        self.lock().good.clone()
    }

    /// What the last scan came to; `None` before the first.
    pub fn current(&self) -> Option<Result<Arc<Snapshot>, ScanError>> {
        let state = self.lock();
        state.error.clone().map(Err).or_else(|| state.good.clone().map(Ok))
    }

    /// How long the last scan took: what waits for a scan is spaced by it.
    pub fn scan_took(&self) -> Duration {
        self.lock().took
    }

    /// Has every change told to this client until it drops its outbox.
    pub fn register(&self, outbox: &Arc<Outbox<RelPath>>) {
        self.outboxes.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(outbox));
    }

    /// Scans the folder, or only looks at `touched` again where `whole` isn't asked and that is enough,
    /// and tells everybody what changed.
    ///
    /// # Errors
    /// The folder can't be listed, and no file may be taken for gone.
    pub async fn refresh(
        self: &Arc<Self>,
        touched: HashSet<PathBuf>,
        whole: bool,
    ) -> Result<Arc<Snapshot>, ScanError> {
        let _turn = self.turn.lock().await;
        let folder = self.clone();
        tokio::task::spawn_blocking(move || {
            let started = Instant::now();
            let previous = folder.last_good();
            let simple = previous.as_deref().filter(|p| !whole && !p.links);
            let found = match simple.and_then(|previous| scan::touch(previous, &touched)) {
                Some(found) => Ok(found),
                None => {
                    let found =
                        scan::scan(&folder.root, previous.as_deref(), folder.options.max_files);
                    folder.lock().took = started.elapsed();
                    found
                }
            };
            folder.accept(found, &touched)
        })
        .await
        .unwrap_or_else(|e| {
            Err(ScanError::Unreadable { path: self.root.clone(), reason: e.to_string() })
        })
    }

    fn accept(
        &self,
        found: Result<Snapshot, ScanError>,
        touched: &HashSet<PathBuf>,
    ) -> Result<Arc<Snapshot>, ScanError> {
        let mut state = self.lock();
        let found = found.and_then(|found| {
            if !state.is_suspicious(&found) {
                state.emptied = None;
            } else if state.emptied.get_or_insert_with(Instant::now).elapsed() < EMPTIED_FOR {
                return Err(ScanError::Emptied(self.root.clone()));
            }
            Ok(found)
        });
        let (result, changes) = match found {
            Ok(found) => {
                let recovered = state.error.take().is_some();
                let found = Arc::new(found);
                let mut changes = match &state.good {
                    Some(previous) => scan::changes(previous, &found, touched),
                    None => Changes::default(),
                };
                changes.listed |= recovered;
                if state.good.as_ref().is_none_or(|previous| previous.folders != found.folders) {
                    self.folders_changed.notify_one();
                }
                state.good = Some(found.clone());
                (Ok(found), changes)
            }
            Err(error) => {
                // A client that lists again learns why it can't.
                let news = state.error.as_ref() != Some(&error);
                if news {
                    tracing::warn!(server = %self.scheme, "{error}");
                    self.folders_changed.notify_one();
                }
                state.error = Some(error.clone());
                (Err(error), Changes { listed: news, ..Changes::default() })
            }
        };
        drop(state);
        self.publish(&changes);
        result
    }

    fn publish(&self, changes: &Changes) {
        if *changes == Changes::default() {
            return;
        }
        self.outboxes.lock().unwrap_or_else(PoisonError::into_inner).retain(|outbox| {
            let outbox = outbox.upgrade();
            outbox
                .inspect(|outbox| {
                    if changes.listed {
                        outbox.list_changed();
                    }
                    outbox.updated(&changes.updated);
                })
                .is_some()
        });
    }

    /// Every change of the state is one assignment, so a poisoned lock is sound.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// An empty folder where a full one was: a mount that went away looks like this.
    fn is_suspicious(&self, found: &Snapshot) -> bool {
        found.files.is_empty()
            && self.good.as_ref().is_some_and(|good| {
                !good.files.is_empty() && (good.id != found.id || self.error.is_some())
            })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::outbox::Pending;

    async fn refresh(folder: &Arc<Folder>) -> Result<usize, ScanError> {
        folder.refresh(HashSet::new(), true).await.map(|found| found.files.len())
    }

    fn follow(folder: &Folder) -> Arc<Outbox<RelPath>> {
        let outbox = Arc::new(Outbox::new(true, 9));
        assert!(outbox.subscribe("a.md".into(), "h:///a.md".into()));
        folder.register(&outbox);
        outbox
    }

    fn list_changed() -> Pending {
        Pending { list_changed: true, ..Pending::default() }
    }

    #[tokio::test]
    async fn an_emptied_folder_is_believed_after_a_while() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("a.md"), "").unwrap();
        let folder = Arc::new(Folder::new(root.clone(), "h".into(), FilesOptions::default()));
        let outbox = follow(&folder);
        assert_eq!(refresh(&folder).await, Ok(1));

        fs::rename(&root, base.path().join("away")).unwrap();
        fs::create_dir(&root).unwrap();
        assert_eq!(refresh(&folder).await, Err(ScanError::Emptied(root.clone())));
        assert_eq!(outbox.next().await, list_changed());
        assert_eq!(refresh(&folder).await, Err(ScanError::Emptied(root)));
        assert!(folder.last_good().unwrap().files.contains_key(std::ffi::OsStr::new("a.md")));

        folder.lock().emptied = Instant::now().checked_sub(EMPTIED_FOR);
        assert_eq!(refresh(&folder).await, Ok(0));
        assert_eq!(outbox.next().await, list_changed());
        assert!(folder.current().unwrap().is_ok());
    }

    #[tokio::test]
    async fn a_folder_that_comes_back_is_to_be_listed_again() {
        let base = tempfile::tempdir().unwrap();
        let (root, away) = (base.path().join("root"), base.path().join("away"));
        fs::create_dir(&root).unwrap();
        fs::write(root.join("a.md"), "").unwrap();
        let folder = Arc::new(Folder::new(root.clone(), "h".into(), FilesOptions::default()));
        let outbox = follow(&folder);
        assert_eq!(refresh(&folder).await, Ok(1));
        fs::rename(&root, &away).unwrap();
        assert_eq!(refresh(&folder).await, Err(ScanError::Missing(root.clone())));
        assert_eq!(outbox.next().await, list_changed());
        fs::rename(&away, &root).unwrap();
        assert_eq!(refresh(&folder).await, Ok(1));
        assert_eq!(outbox.next().await, list_changed(), "and its files didn't change");
    }
}
