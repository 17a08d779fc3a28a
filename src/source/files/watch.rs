//! Following the folder live.
//!
//! The system's events are hints: they say where to look, and a scan says what is. One watch for each
//! served folder, none for ignored ones. A new folder's watch is followed by a scan, so that what was
//! created in it before the watch isn't missed. Where watches can't be had, the folder is scanned
//! regularly instead, and the watches are asked for again each time.
//!
//! The task wakes on events (then waits for a quiet moment), when a scan found other folders, and,
//! only while the folder is unreadable or not wholly watched, on a timer.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::folder::Folder;
use super::scan::{FolderId, Snapshot, below};
use super::walk::{is_hidden, is_ignore_file};

/// Events are acted on after this long without another one …
const QUIET: Duration = Duration::from_millis(50);
/// … but no later than this after the first.
const PATIENCE: Duration = Duration::from_millis(500);
/// Bounds of the timer; within them it leaves scanning one fiftieth of the time.
const POLL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// More paths than these aren't kept; a whole scan finds them.
const MAX_PATHS: usize = 10_000;

/// Follows the folder until it is told to stop.
pub async fn run(folder: Arc<Folder>, stop: CancellationToken) {
    let mailbox = Arc::new(Mailbox::default());
    let mut watches = Watches::new(mailbox.clone(), folder.options.polling, folder.scheme.clone());
    let mut whole = true;
    let mut touched = HashSet::new();
    let mut next_scan = Instant::now();
    loop {
        if whole {
            // However busy the folder is, scanning takes a third of the time at most.
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep_until(next_scan) => {}
            }
        }
        if whole || !touched.is_empty() {
            // The error is kept in the folder's state and reported there.
            let _ = folder.refresh(std::mem::take(&mut touched), whole).await;
            next_scan = Instant::now() + folder.scan_took().saturating_mul(2).min(POLL.1);
        }
        if let Some(snapshot) = folder.last_good() {
            let follow = tokio::task::spawn_blocking(move || {
                let added = watches.follow(&snapshot);
                (watches, added)
            });
            let added;
            (watches, added) = match follow.await {
                Ok(followed) => followed,
                Err(e) => {
                    tracing::error!(server = %folder.scheme, "the folder is no longer followed: {e}");
                    return;
                }
            };
            whole = added;
            if added {
                continue;
            }
        }
        whole = false;
        let failing = folder.current().is_none_or(|current| current.is_err());
        let due = (failing || !watches.complete)
            .then(|| folder.scan_took().saturating_mul(50).clamp(POLL.0, POLL.1));
        tokio::select! {
            () = stop.cancelled() => return,
            () = folder.folders_changed.notified() => {}
            () = sleep(due.unwrap_or_default()), if due.is_some() => whole = true,
            () = mailbox.ready.notified() => {
                settle(&mailbox).await;
                let hints = mailbox.take();
                watches.forget(&hints);
                (touched, whole) = look_at(hints, folder.last_good().as_deref());
            }
        }
    }
}

/// Waits until no event has come for a while.
async fn settle(mailbox: &Mailbox) {
    let latest = Instant::now() + PATIENCE;
    loop {
        tokio::select! {
            () = sleep_until(latest.min(Instant::now() + QUIET)) => return,
            () = mailbox.ready.notified() => if Instant::now() >= latest { return },
        }
    }
}

/// Events that weren't acted on yet. Filled by the watcher's thread, which it never holds up.
#[derive(Default)]
struct Mailbox {
    hints: Mutex<Hints>,
    ready: Notify,
}

impl Mailbox {
    fn put(&self, event: notify::Result<notify::Event>) {
        if self.hints.lock().unwrap_or_else(PoisonError::into_inner).add(event) {
            self.ready.notify_one();
        }
    }

    fn take(&self) -> Hints {
        std::mem::take(&mut self.hints.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug, Default, PartialEq)]
struct Hints {
    /// Files that were written to.
    touched: HashSet<PathBuf>,
    /// Files and folders that came or went.
    moved: HashSet<PathBuf>,
    /// Events were lost: everything is to be looked at.
    lost: bool,
}

impl Hints {
    /// Whether the event says anything; that somebody reads a file, such as we ourselves, doesn't.
    fn add(&mut self, event: notify::Result<notify::Event>) -> bool {
        match event {
            Err(_) => self.lost = true,
            Ok(event) if event.need_rescan() => self.lost = true,
            Ok(event) => match event.kind {
                EventKind::Access(AccessKind::Close(AccessMode::Write)) => {
                    self.touched.extend(event.paths)
                }
                EventKind::Access(_) => return false,
                EventKind::Modify(ModifyKind::Name(_)) => self.moved.extend(event.paths),
                EventKind::Modify(_) => self.touched.extend(event.paths),
                EventKind::Create(_) | EventKind::Remove(_) | EventKind::Any | EventKind::Other => {
                    self.moved.extend(event.paths);
                }
            },
        }
        if self.touched.len() + self.moved.len() > MAX_PATHS {
            *self = Self { lost: true, ..Self::default() };
        }
        true
    }
}

/// Which files to look at again, and whether only a whole scan will do.
///
/// What happens to hidden and ignored files is nobody's business, unless they are ignore files or a
/// link may lead to them: an editor's swap file or a busy log costs no scan.
fn look_at(hints: Hints, last: Option<&Snapshot>) -> (HashSet<PathBuf>, bool) {
    let Some(last) = last.filter(|_| !hints.lost) else { return (hints.touched, true) };
    let hidden = |path: &Path| {
        path.strip_prefix(&last.root).is_ok_and(|path| path.iter().any(is_hidden))
            && !is_ignore_file(path)
    };
    let known =
        |path: &Path| below(&last.root, path).is_some_and(|path| last.files.contains_key(&path));
    if last.links {
        let whole = !hints.touched.is_empty() || !hints.moved.is_empty();
        return (hints.touched, whole);
    }
    // A folder's permissions may have changed.
    let decides = |path: &PathBuf| is_ignore_file(path) || last.folders.contains(path);
    let whole = hints.moved.iter().any(|path| !hidden(path)) || hints.touched.iter().any(decides);
    (hints.touched.into_iter().filter(|path| known(path)).collect(), whole)
}

/// The watches that we hold.
struct Watches {
    mailbox: Arc<Mailbox>,
    polling: bool,
    server: String,
    inner: Option<RecommendedWatcher>,
    watched: HashSet<PathBuf>,
    root: Option<FolderId>,
    /// Whether every folder is watched.
    complete: bool,
    warned: bool,
}

impl Watches {
    fn new(mailbox: Arc<Mailbox>, polling: bool, server: String) -> Self {
        let watched = HashSet::new();
        Self {
            mailbox,
            polling,
            server,
            inner: None,
            watched,
            root: None,
            complete: false,
            warned: false,
        }
    }

    /// The system ends the watch of a folder that went away; another one of its name needs a new one.
    fn forget(&mut self, hints: &Hints) {
        if hints.lost {
            self.watched.clear();
        }
        for gone in &hints.moved {
            if self.watched.contains(gone) {
                self.watched.retain(|folder| !folder.starts_with(gone));
            }
        }
    }

    /// Watches what the snapshot's folders are. Returns whether a folder wasn't watched before.
    fn follow(&mut self, snapshot: &Snapshot) -> bool {
        if self.polling {
            return false;
        }
        if self.root != Some(snapshot.id) {
            self.root = Some(snapshot.id);
            self.watched.clear();
            self.inner = None;
        }
        let result = self.add(snapshot);
        self.complete = result.is_ok();
        match result {
            Ok(added) => {
                self.warned = false;
                added
            }
            Err(e) => {
                if !std::mem::replace(&mut self.warned, true) {
                    tracing::warn!(
                        server = %self.server,
                        "the folder {} can't be watched ({e}), so it is scanned every few seconds instead; \
                         more watches: sysctl fs.inotify.max_user_watches and max_user_instances",
                        snapshot.root.display(),
                    );
                }
                false
            }
        }
    }

    fn add(&mut self, snapshot: &Snapshot) -> notify::Result<bool> {
        let inner = match &mut self.inner {
            Some(inner) => inner,
            None => {
                let mailbox = self.mailbox.clone();
                let watcher = notify::recommended_watcher(move |event| mailbox.put(event))?;
                self.inner.insert(watcher)
            }
        };
        self.watched.retain(|folder| {
            let keep = snapshot.folders.contains(folder);
            if !keep {
                // It may be gone already, and its watch with it.
                let _ = inner.unwatch(folder);
            }
            keep
        });
        let mut added = false;
        for folder in &snapshot.folders {
            if self.watched.contains(folder) {
                continue;
            }
            match inner.watch(folder, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(folder.clone());
                    added = true;
                }
                // It vanished since the scan, or nobody may read it; a change of that is an event of
                // the folder above.
                Err(e) if is_denied(&e) || !folder.exists() => {
                    tracing::debug!("{}: {e}", folder.display());
                }
                Err(e) => return Err(e),
            }
        }
        Ok(added)
    }
}

fn is_denied(error: &notify::Error) -> bool {
    matches!(&error.kind, notify::ErrorKind::Io(e) if e.kind() == std::io::ErrorKind::PermissionDenied)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use notify::Event;
    use notify::event::{CreateKind, DataChange, Flag, MetadataKind, RemoveKind, RenameMode};

    use super::super::scan::scan;
    use super::*;

    fn hints(kind: EventKind, path: &Path) -> Option<Hints> {
        let mut hints = Hints::default();
        hints.add(Ok(Event::new(kind).add_path(path.to_owned()))).then_some(hints)
    }

    #[test]
    fn events_say_where_to_look() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.md"), "").unwrap();
        fs::create_dir(folder.path().join("folder")).unwrap();
        let last = scan(folder.path(), None, 9).unwrap();
        let write = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        let create = EventKind::Create(CreateKind::File);
        let (some, nothing, whole) = (Some((1, false)), Some((0, false)), Some((0, true)));
        for (kind, path, expected) in [
            (write, "a.md", some),
            (EventKind::Access(AccessKind::Close(AccessMode::Write)), "a.md", some),
            (EventKind::Access(AccessKind::Open(AccessMode::Any)), "a.md", None),
            (EventKind::Access(AccessKind::Close(AccessMode::Read)), "a.md", None),
            (write, "ignored.log", nothing),
            (write, ".gitignore", whole),
            (EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any)), "folder", whole),
            (write, "sub/.ignore", whole),
            (create, "b.md", whole),
            (create, ".a.md.swp", nothing),
            (create, ".gitignore", whole),
            (create, ".git/index.lock", nothing),
            (EventKind::Remove(RemoveKind::File), "a.md", whole),
            (EventKind::Modify(ModifyKind::Name(RenameMode::To)), "a.md", whole),
        ] {
            let hints = hints(kind, &last.root.join(path));
            let looked = hints
                .map(|hints| look_at(hints, Some(&last)))
                .map(|(files, whole)| (files.len(), whole));
            assert_eq!(looked, expected, "{kind:?} {path}");
        }
    }

    #[test]
    fn lost_events_want_a_whole_scan() {
        let mut hints = Hints::default();
        assert!(hints.add(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan))));
        assert!(look_at(hints, None).1);
        let mut hints = Hints::default();
        for n in 0..=MAX_PATHS {
            hints
                .add(Ok(Event::new(EventKind::Create(CreateKind::File))
                    .add_path(format!("/x/{n}").into())));
        }
        assert_eq!(hints, Hints { lost: true, ..Hints::default() });
    }

    #[test]
    fn a_folder_of_the_same_name_is_watched_anew() {
        let folder = tempfile::tempdir().unwrap();
        let sub = folder.path().join("sub");
        fs::create_dir(&sub).unwrap();
        let snapshot = scan(folder.path(), None, 9).unwrap();
        let mut watches = Watches::new(Arc::default(), false, "h".into());
        assert!(watches.follow(&snapshot));
        assert!(!watches.follow(&snapshot));
        let gone =
            hints(EventKind::Remove(RemoveKind::Folder), &snapshot.root.join("sub")).unwrap();
        watches.forget(&gone);
        assert!(watches.follow(&snapshot));
        assert!(watches.complete);
    }
}
