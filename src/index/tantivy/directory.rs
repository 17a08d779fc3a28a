//! The folder of an index, with a commit that is durable before anything follows from it.
//!
//! Tantivy syncs the folder before it renames a new `meta.json` into place, not after. It then
//! deletes the files that only the old one names, and a disk may carry out the deletions first: a
//! power cut in between would leave the old `meta.json` and not its files. So the rename is synced
//! here, before it returns, for commits and for merges alike.

use std::io;
use std::path::Path;
use std::sync::Arc;

use ::tantivy::Directory;
use ::tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use ::tantivy::directory::{
    DirectoryLock, FileHandle, FileSlice, Lock, WatchCallback, WatchHandle, WritePtr,
};

/// The file that names the segments of the present commit.
const META: &str = "meta.json";

/// A directory whose commits are durable.
#[derive(Clone, Debug)]
pub(super) struct Synced<D>(pub D);

impl<D: Directory + Clone> Directory for Synced<D> {
    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.0.atomic_write(path, data)?;
        if path == Path::new(META) {
            self.0.sync_directory()?;
        }
        Ok(())
    }

    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.0.get_file_handle(path)
    }

    fn open_read(&self, path: &Path) -> Result<FileSlice, OpenReadError> {
        self.0.open_read(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.0.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.0.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        self.0.open_write(path)
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.0.atomic_read(path)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.0.sync_directory()
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.0.acquire_lock(lock)
    }

    fn watch(&self, watch_callback: WatchCallback) -> ::tantivy::Result<WatchHandle> {
        self.0.watch(watch_callback)
    }
}
