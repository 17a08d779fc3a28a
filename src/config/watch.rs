//! Notices that config files changed.
//!
//! The task wakes when the system reports something in a folder of a watched file, after a while
//! anyway, and when it is given other files. It then looks at the files themselves, and sends an
//! event only if what they hold is different: a report is a hint, so it doesn't matter how an editor
//! saves (in place, by renaming, by swapping a symlink above the file).

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::task::AbortOnDropHandle;

/// A change is reported once no more of them come for this long.
const QUIET: Duration = Duration::from_millis(100);
/// However busy the folder is, the files are looked at after this long.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the files are looked at where the system doesn't report changes.
const POLL: Duration = Duration::from_secs(2);
/// How often they are looked at where it does: network file systems report nothing.
const SAFETY_POLL: Duration = Duration::from_secs(30);
/// A chain of symlinks longer than this isn't followed.
const MAX_SYMLINKS: usize = 16;

/// Watches files until it is dropped.
pub struct ConfigWatch {
    events: mpsc::Receiver<()>,
    files: watch::Sender<Vec<PathBuf>>,
    _task: AbortOnDropHandle<()>,
}

impl ConfigWatch {
    /// Begins to watch; [`super::Config::watched`] says what. Begin before loading the config, so
    /// that a change in between isn't missed. Needs a tokio runtime.
    pub fn start(files: Vec<PathBuf>) -> Self {
        Self::with(files, true)
    }

    fn with(files: Vec<PathBuf>, notified: bool) -> Self {
        let (changed, events) = mpsc::channel(1);
        let seen = see(&files, &[]);
        let (files, given) = watch::channel(files);
        let task = tokio::spawn(run(given, seen, changed, notified));
        Self { events, files, _task: AbortOnDropHandle::new(task) }
    }

    /// Waits until a file holds something else than before. Changes that come together, or while
    /// nobody waits, are one.
    pub async fn changed(&mut self) {
        if self.events.recv().await.is_none() {
            // The task has ended, which it does only together with the runtime.
            std::future::pending::<()>().await;
        }
    }

    /// Watches other files from now on, for a config that refers to others than before.
    pub fn follow(&self, files: Vec<PathBuf>) {
        self.files.send_if_modified(|known| {
            let other = *known != files;
            *known = files;
            other
        });
    }
}

async fn run(
    mut given: watch::Receiver<Vec<PathBuf>>,
    mut seen: Vec<Seen>,
    changed: mpsc::Sender<()>,
    notified: bool,
) {
    let (hint, mut hints) = mpsc::channel(1);
    let mut watcher = if notified { watcher(hint.clone()) } else { None };
    loop {
        let files = given.borrow_and_update().clone();
        // Watch first, look afterwards: a change in between is then seen one way or the other.
        if let Some(active) = &mut watcher
            && let Err(error) = watch_folders(active, &files)
        {
            tracing::warn!(
                %error,
                "config files can't be watched; they are looked at every {} s instead",
                POLL.as_secs()
            );
            watcher = None;
        }
        let before = seen;
        let look = move || {
            let now = see(&files, &before);
            let differs = before
                .iter()
                .filter_map(|old| Some((old, now.iter().find(|new| new.path == old.path)?)))
                .any(|(old, new)| old.content != new.content);
            (now, differs)
        };
        let Ok((now, differs)) = tokio::task::spawn_blocking(look).await else { return };
        seen = now;
        if differs {
            // A full channel holds an event that nobody has taken yet; it stands for this one too.
            let _ = changed.try_send(());
        }
        let pause = if watcher.is_some() { SAFETY_POLL } else { POLL };
        tokio::select! {
            Some(()) = hints.recv() => settle(&mut hints).await,
            () = tokio::time::sleep(pause) => {}
            other = given.changed() => if other.is_err() { return },
        }
    }
}

/// Waits until hints stop coming, so that a file that is being written is read once, and whole.
async fn settle(hints: &mut mpsc::Receiver<()>) {
    let end = Instant::now() + PATIENCE;
    let _ = timeout_at(end, async {
        while timeout(QUIET, hints.recv()).await.is_ok_and(|hint| hint.is_some()) {}
    })
    .await;
}

fn watcher(hint: mpsc::Sender<()>) -> Option<RecommendedWatcher> {
    let made = notify::recommended_watcher(move |event: notify::Result<Event>| {
        // Reading a file is reported as well, and this task reads them.
        let reading = matches!(
            &event,
            Ok(Event { kind: EventKind::Access(access), .. })
                if *access != AccessKind::Close(AccessMode::Write)
        );
        if !reading {
            let _ = hint.try_send(());
        }
    });
    made.inspect_err(|error| {
        tracing::warn!(
            %error,
            "config files can't be watched; they are looked at every {} s instead",
            POLL.as_secs()
        );
    })
    .ok()
}

/// Folders are watched, not files: a renamed file is another one. Watching one twice does nothing,
/// and one that was replaced is watched anew.
fn watch_folders(watcher: &mut RecommendedWatcher, files: &[PathBuf]) -> notify::Result<()> {
    let mut folders = BTreeSet::new();
    for file in files {
        folders_of(file, MAX_SYMLINKS, &mut folders);
    }
    for folder in folders {
        match watcher.watch(&folder, RecursiveMode::NonRecursive) {
            // It went away just now; its parent is looked at next time.
            Err(error) if matches!(error.kind, notify::ErrorKind::PathNotFound) => {}
            Err(error) if !folder.exists() => drop(error),
            result => result?,
        }
    }
    Ok(())
}

/// The folders in which something must change when a file does: its own, and the one of each symlink
/// on the way to it.
fn folders_of(file: &Path, symlinks: usize, folders: &mut BTreeSet<PathBuf>) {
    let existing =
        |path: &Path| path.ancestors().skip(1).find(|path| path.exists()).map(PathBuf::from);
    folders.extend(existing(file));
    let outermost =
        file.ancestors().collect::<Vec<_>>().into_iter().rev().find(|path| path.is_symlink());
    let Some(link) = outermost.filter(|_| symlinks > 0) else { return };
    let (Some(folder), Ok(target), Ok(rest)) =
        (link.parent(), link.read_link(), file.strip_prefix(link))
    else {
        return;
    };
    folders.insert(folder.to_owned());
    // Joining an empty rest would end the path in a slash.
    let target = folder.join(target);
    let target = if rest.as_os_str().is_empty() { target } else { target.join(rest) };
    folders_of(&target, symlinks - 1, folders);
}

/// What a file held when it was last looked at.
#[derive(Clone)]
struct Seen {
    path: PathBuf,
    stat: Option<[i64; 6]>,
    content: Option<blake3::Hash>,
}

/// Looks at files; one whose stat is as before isn't read again.
fn see(files: &[PathBuf], before: &[Seen]) -> Vec<Seen> {
    let look = |path: &PathBuf| {
        let stat = std::fs::metadata(path).ok().filter(|meta| meta.is_file()).map(|meta| {
            [
                meta.dev() as i64,
                meta.ino() as i64,
                meta.size() as i64,
                meta.mtime(),
                meta.mtime_nsec(),
                meta.ctime_nsec(),
            ]
        });
        match before.iter().find(|seen| seen.path == *path) {
            Some(seen) if seen.stat == stat => seen.clone(),
            _ => {
                let content =
                    stat.and_then(|_| std::fs::read(path).ok()).map(|text| blake3::hash(&text));
                Seen { path: path.clone(), stat, content }
            }
        }
    };
    files.iter().map(look).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    async fn wait(watch: &mut ConfigWatch) {
        timeout(Duration::from_secs(10), watch.changed()).await.expect("a change wasn't noticed");
    }

    fn save_by_rename(path: &Path, text: &str) {
        let temp = path.with_extension("tmp");
        std::fs::write(&temp, text).unwrap();
        std::fs::rename(temp, path).unwrap();
    }

    #[tokio::test]
    async fn saving_by_rename_again_and_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, "0").unwrap();
        let mut watch = ConfigWatch::start(vec![path.clone()]);
        for round in 1..=5 {
            save_by_rename(&path, &round.to_string());
            wait(&mut watch).await;
        }
    }

    #[tokio::test]
    async fn a_truncated_file_and_its_return() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, "whole").unwrap();
        let mut watch = ConfigWatch::start(vec![path.clone()]);
        for text in ["who", "whole", ""] {
            std::fs::write(&path, text).unwrap();
            wait(&mut watch).await;
        }
        std::fs::remove_file(&path).unwrap();
        wait(&mut watch).await;
        std::fs::write(&path, "back").unwrap();
        wait(&mut watch).await;
    }

    /// As Kubernetes mounts a config map: the file is a link into `..data`, which is a link to the
    /// folder of a version, and is swapped by renaming.
    #[tokio::test]
    async fn a_symlink_that_is_swapped() {
        let folder = tempfile::tempdir().unwrap();
        let (root, path) = (folder.path(), folder.path().join("config.toml"));
        let version = |n: u32| {
            std::fs::create_dir(root.join(format!("..v{n}"))).unwrap();
            std::fs::write(root.join(format!("..v{n}/config.toml")), n.to_string()).unwrap();
            symlink(format!("..v{n}"), root.join("..data_tmp")).unwrap();
            std::fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
        };
        version(0);
        symlink("..data/config.toml", &path).unwrap();
        let mut watch = ConfigWatch::start(vec![path]);
        for n in 1..4 {
            version(n);
            wait(&mut watch).await;
        }
    }

    #[tokio::test]
    async fn a_folder_on_the_way_that_is_swapped() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for n in ["a", "b"] {
            std::fs::create_dir(root.join(n)).unwrap();
            std::fs::write(root.join(n).join("config.toml"), n).unwrap();
        }
        symlink("a", root.join("current")).unwrap();
        let mut watch = ConfigWatch::start(vec![root.join("current/config.toml")]);
        symlink("b", root.join("next")).unwrap();
        std::fs::rename(root.join("next"), root.join("current")).unwrap();
        wait(&mut watch).await;
    }

    #[tokio::test]
    async fn polling_where_nothing_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, "0").unwrap();
        let mut watch = ConfigWatch::with(vec![path.clone()], false);
        save_by_rename(&path, "1");
        wait(&mut watch).await;
    }

    #[tokio::test]
    async fn other_files_from_now_on() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("a"), folder.path().join("sub/b"));
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        std::fs::write(&one, "0").unwrap();
        std::fs::write(&two, "0").unwrap();
        let mut watch = ConfigWatch::start(vec![one.clone()]);
        watch.follow(vec![one.clone(), two.clone()]);
        // An event for the first shows that the task has taken up both.
        std::fs::write(&one, "1").unwrap();
        wait(&mut watch).await;
        std::fs::write(&two, "1").unwrap();
        wait(&mut watch).await;
    }

    /// What is written again unchanged, and what lies beside, is no change: the event that comes is
    /// the one of the real change after them, and there is no other.
    #[tokio::test]
    async fn no_change_no_event() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, "same").unwrap();
        let mut watch = ConfigWatch::start(vec![path.clone()]);
        save_by_rename(&path, "same");
        std::fs::write(folder.path().join("other"), "x").unwrap();
        let none = timeout(QUIET * 5, watch.changed()).await;
        assert!(none.is_err());
        std::fs::write(&path, "different").unwrap();
        wait(&mut watch).await;
    }
}
