//! The folder of an index, with commits that are visible at once and durable a little later.
//!
//! A commit of tantivy makes about ten files, and syncs each, and the list of files for each. That is
//! nearly all that an update costs. So here new files stay in memory, with the `meta.json` that names them,
//! until [`Deferred::persist`] writes and syncs all of them: once for many commits, and beside the thread
//! that makes them. A file that outgrows its buffer, or all of them together theirs, goes to the disk
//! as it is written; so a large load takes no more memory than before.
//!
//! What holds at every moment, whatever dies:
//!
//! * The disk's `meta.json` names only files that are on the disk, whole and synced: it is written after
//!   them and after their names, and files that it may name are deleted after its successor is safe.
//!   (Tantivy itself syncs the folder before it renames a new `meta.json` into place, not after. A
//!   disk may carry out deletions first: a power cut would leave the old `meta.json` without its files.)
//! * The disk's list of managed files (`.managed.json`) has every file that is on the disk, so that
//!   what no commit names is collected after the next start.
//! * A process that dies loses the commits since the last `persist`, whole ones and the newest first.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use ::tantivy::Directory;
use ::tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use ::tantivy::directory::{
    AntiCallToken, DirectoryLock, FileHandle, Lock, OwnedBytes, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr,
};

use super::lock;
use crate::fault;

/// The file that names the segments of the present commit.
const META: &str = "meta.json";
/// The file that lists every file that tantivy made and hasn't deleted.
const MANAGED: &str = ".managed.json";

/// How much may be in memory; bytes.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// Of one file, before it goes to the disk.
    pub file: usize,
    /// Of all files together.
    pub all: usize,
}

const ROOM: Room = Room { file: 1 << 20, all: 16 << 20 };

/// A directory over a disk.
#[derive(Clone)]
pub(super) struct Deferred {
    disk: Arc<dyn Directory>,
    room: Room,
    state: Arc<Mutex<State>>,
    /// One writes the list of files at a time, so that an older one never replaces a newer one.
    listing: Arc<Mutex<()>>,
    /// One persists at a time.
    persisting: Arc<Mutex<()>>,
}

#[derive(Default)]
struct State {
    /// Files that are complete, and in memory only.
    held: HashMap<PathBuf, OwnedBytes>,
    held_bytes: usize,
    /// Newer than on the disk.
    meta: Option<Arc<[u8]>>,
    managed: Option<Arc<[u8]>>,
    /// Deleted, and still on the disk, since its `meta.json` may name them.
    doomed: HashSet<PathBuf>,
    /// Whether files went to the disk that readers may still have in memory.
    moved: bool,
}

impl State {
    fn hold(&mut self, path: PathBuf, bytes: OwnedBytes) {
        self.held_bytes += bytes.len();
        self.doomed.remove(&path);
        self.held.insert(path, bytes);
    }

    fn let_go(&mut self, path: &Path) -> Option<OwnedBytes> {
        let bytes = self.held.remove(path)?;
        self.held_bytes -= bytes.len();
        Some(bytes)
    }

    /// The newer content of one of the two files that are replaced whole.
    fn replaced(&mut self, path: &Path) -> Option<&mut Option<Arc<[u8]>>> {
        match path.to_str() {
            Some(META) => Some(&mut self.meta),
            Some(MANAGED) => Some(&mut self.managed),
            _ => None,
        }
    }
}

impl std::fmt::Debug for Deferred {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Deferred")
    }
}

impl Deferred {
    pub(super) fn new(disk: impl Directory) -> Self {
        Self::with_room(disk, ROOM)
    }

    pub(super) fn with_room(disk: impl Directory, room: Room) -> Self {
        let (state, listing, persisting) = Default::default();
        Self { disk: Arc::new(disk), room, state, listing, persisting }
    }

    /// Makes everything durable that was committed before the call. Commits may go on meanwhile.
    ///
    /// # Errors
    /// The disk's. Everything is still there and visible, and the next call tries again.
    pub(super) fn persist(&self) -> io::Result<()> {
        let _one = lock(&self.persisting);
        let (files, meta, doomed) = {
            let state = self.state();
            (state.held.clone(), state.meta.clone(), state.doomed.clone())
        };
        if files.is_empty() && meta.is_none() && doomed.is_empty() {
            return Ok(());
        }
        self.list()?;
        for (path, bytes) in &files {
            self.write_whole(path, bytes)?;
            // At once, so that no later attempt touches a file that a `meta.json` may name by then.
            let mut state = self.state();
            match state.let_go(path) {
                Some(_) => state.moved = true,
                // Deleted meanwhile, and named by the `meta.json` that is about to be written.
                None => drop(state.doomed.insert(path.clone())),
            }
        }
        fault::point("index.written");
        self.disk.sync_directory()?;
        if let Some(meta) = meta {
            self.disk.atomic_write(Path::new(META), &meta)?;
            self.disk.sync_directory()?;
            let newest = &mut self.state().meta;
            if newest.as_ref().is_some_and(|newest| Arc::ptr_eq(newest, &meta)) {
                *newest = None;
            }
        }
        fault::point("index.persisted");
        for path in doomed {
            self.delete_doomed(&path)?;
        }
        Ok(())
    }

    /// Bytes of what is in memory only.
    pub(super) fn held_bytes(&self) -> u64 {
        let state = self.state();
        (state.held_bytes + state.meta.as_ref().map_or(0, |meta| meta.len())) as u64
    }

    /// Whether files went to the disk since this was last asked: whoever reads them then should read
    /// them there, which lets go of the memory.
    pub(super) fn take_moved(&self) -> bool {
        std::mem::take(&mut self.state().moved)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Brings the disk's list of files up to date: those that are there now, and those to come.
    fn list(&self) -> io::Result<()> {
        let _one = lock(&self.listing);
        let (managed, doomed) = {
            let state = self.state();
            (state.managed.clone(), state.doomed.clone())
        };
        let Some(newest) = managed else { return Ok(()) };
        let mut paths: HashSet<PathBuf> = serde_json::from_slice(&newest)?;
        paths.extend(doomed);
        self.disk.atomic_write(Path::new(MANAGED), &serde_json::to_vec(&paths)?)?;
        let mut state = self.state();
        if state.managed.as_ref().is_some_and(|present| Arc::ptr_eq(present, &newest)) {
            state.managed = None;
        }
        Ok(())
    }

    fn delete_doomed(&self, path: &Path) -> io::Result<()> {
        // Locked meanwhile: a file that is made anew under this name isn't the one that is meant.
        let mut state = self.state();
        if state.doomed.contains(path) {
            self.delete_from_disk(path)?;
            state.doomed.remove(path);
        }
        Ok(())
    }

    fn delete_from_disk(&self, path: &Path) -> io::Result<()> {
        match self.disk.delete(path) {
            Ok(()) | Err(DeleteError::FileDoesNotExist(_)) => Ok(()),
            Err(DeleteError::IoError { io_error, .. }) => Err(plain(&io_error)),
        }
    }

    fn write_whole(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.create(path)?;
        file.write_all(bytes)?;
        file.terminate()
    }

    /// Begins a file on the disk. What may be there under its name is an attempt that failed, or was
    /// left by another process: no commit names it.
    fn create(&self, path: &Path) -> io::Result<WritePtr> {
        self.state().doomed.remove(path);
        self.delete_from_disk(path)?;
        self.disk.open_write(path).map_err(|error| match error {
            OpenWriteError::IoError { io_error, .. } => plain(&io_error),
            OpenWriteError::FileAlreadyExists(_) => io::ErrorKind::AlreadyExists.into(),
        })
    }
}

/// An error of which another has a share.
fn plain(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}

/// A file that is being written: in memory at first.
struct Growing {
    directory: Deferred,
    path: PathBuf,
    bytes: Vec<u8>,
    /// Where it goes on once it has outgrown its buffer.
    spilled: Option<WritePtr>,
}

impl Growing {
    /// Moves what there is to the disk, where the file goes on.
    fn spill(&mut self) -> io::Result<&mut WritePtr> {
        // The list first, so that a file that stays unfinished is collected some day.
        self.directory.list()?;
        let mut file = self.directory.create(&self.path)?;
        file.write_all(&std::mem::take(&mut self.bytes))?;
        Ok(self.spilled.insert(file))
    }
}

impl Write for Growing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(file) = &mut self.spilled {
            return file.write(bytes);
        }
        if self.bytes.len() + bytes.len() > self.directory.room.file {
            return self.spill()?.write(bytes);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.spilled.as_mut().map_or(Ok(()), |file| file.flush())
    }
}

impl TerminatingWrite for Growing {
    fn terminate_ref(&mut self, token: AntiCallToken) -> io::Result<()> {
        if self.spilled.is_none() {
            let mut state = self.directory.state();
            if state.held_bytes + self.bytes.len() <= self.directory.room.all {
                let bytes = std::mem::take(&mut self.bytes);
                state.hold(self.path.clone(), OwnedBytes::new(bytes));
                return Ok(());
            }
            drop(state);
            self.spill()?;
        }
        self.spilled.as_mut().map_or(Ok(()), |file| file.terminate_ref(token))
    }
}

impl Directory for Deferred {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        {
            let state = self.state();
            if let Some(bytes) = state.held.get(path) {
                return Ok(Arc::new(bytes.clone()));
            }
            if state.doomed.contains(path) {
                return Err(OpenReadError::FileDoesNotExist(path.to_owned()));
            }
        }
        self.disk.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        let mut state = self.state();
        if state.let_go(path).is_some() {
            return Ok(());
        }
        let is_there = !state.doomed.contains(path) && self.disk.exists(path).unwrap_or(true);
        if !is_there {
            return Err(DeleteError::FileDoesNotExist(path.to_owned()));
        }
        state.doomed.insert(path.to_owned());
        Ok(())
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        {
            let mut state = self.state();
            if state.held.contains_key(path)
                || state.replaced(path).is_some_and(|newer| newer.is_some())
            {
                return Ok(true);
            }
            if state.doomed.contains(path) {
                return Ok(false);
            }
        }
        self.disk.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let exists = self.exists(path).map_err(|error| {
            OpenWriteError::wrap_io_error(io::Error::other(error.to_string()), path.to_owned())
        })?;
        if exists {
            return Err(OpenWriteError::FileAlreadyExists(path.to_owned()));
        }
        let file = Growing {
            directory: self.clone(),
            path: path.to_owned(),
            bytes: vec![],
            spilled: None,
        };
        Ok(BufWriter::new(Box::new(file)))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        if let Some(newer) = self.state().replaced(path).and_then(|newer| newer.as_ref()) {
            return Ok(newer.to_vec());
        }
        self.disk.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        if let Some(newer) = self.state().replaced(path) {
            *newer = Some(data.into());
            return Ok(());
        }
        self.disk.atomic_write(path, data)
    }

    /// Nothing is to be durable before the next [`persist`](Self::persist).
    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.disk.acquire_lock(lock)
    }

    fn watch(&self, watch_callback: WatchCallback) -> ::tantivy::Result<WatchHandle> {
        self.disk.watch(watch_callback)
    }
}
