//! A list that is changed while the daemon runs, and kept in a file of the state folder.

use std::fmt::Debug;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// In memory only, until it is told where to keep itself.
#[derive(Debug)]
pub struct Kept<T> {
    inner: Mutex<Inner<T>>,
}

#[derive(Debug)]
struct Inner<T> {
    items: Vec<T>,
    file: Option<PathBuf>,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self { inner: Mutex::new(Inner { items: vec![], file: None }) }
    }
}

impl<T: Clone + Serialize + DeserializeOwned> Kept<T> {
    /// Takes up what a file holds, and keeps the list there from now on. One that isn't understood is
    /// set aside under the name it has with `.broken` after it, and the list begins anew.
    ///
    /// # Errors
    /// The file can't be read, or not be set aside.
    pub fn keep_in(&self, file: PathBuf) -> io::Result<()> {
        let items = match fs::read(&file) {
            Ok(text) => match serde_json::from_slice(&text) {
                Ok(items) => items,
                Err(error) => {
                    let mut aside = file.clone().into_os_string();
                    aside.push(".broken");
                    fs::rename(&file, &aside)?;
                    let (file, aside) = (file.display(), Path::new(&aside).display());
                    tracing::error!(%error, %file, %aside, "the file can't be understood, and is set aside");
                    vec![]
                }
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => vec![],
            Err(error) => return Err(error),
        };
        *self.lock() = Inner { items, file: Some(file) };
        Ok(())
    }

    /// Those that are wanted, in the order in which they were added.
    pub fn of(&self, mut wanted: impl FnMut(&T) -> bool) -> Vec<T> {
        self.lock().items.iter().filter(|item| wanted(item)).cloned().collect()
    }

    /// Changes the list, in the file first. What refuses the change leaves both as they are.
    ///
    /// # Errors
    /// The file can't be written; within, what the change refuses for.
    pub fn change<R, E>(
        &self,
        change: impl FnOnce(&mut Vec<T>) -> Result<R, E>,
    ) -> io::Result<Result<R, E>> {
        let mut inner = self.lock();
        let mut items = inner.items.clone();
        let changed = match change(&mut items) {
            Ok(changed) => changed,
            Err(refused) => return Ok(Err(refused)),
        };
        if let Some(file) = &inner.file {
            write(file, &serde_json::to_vec_pretty(&items)?)?;
        }
        inner.items = items;
        Ok(Ok(changed))
    }

    /// A change is one assignment, so a poisoned lock is sound.
    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts a whole new file in the place of the old one.
fn write(file: &Path, text: &[u8]) -> io::Result<()> {
    let new = file.with_extension("json.new");
    let mut options = fs::OpenOptions::new();
    let mut open = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    open.write_all(text)?;
    open.sync_all()?;
    fs::rename(&new, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(kept: &Kept<String>, item: &str) -> Result<(), &'static str> {
        kept.change(|items| {
            if items.len() == 2 {
                return Err("two are enough");
            }
            items.push(item.into());
            Ok(())
        })
        .unwrap()
    }

    #[test]
    fn a_list_outlives_the_daemon_and_a_broken_file_is_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("list.json");
        let kept = Kept::<String>::default();
        add(&kept, "before there is a file").unwrap();
        kept.keep_in(file.clone()).unwrap();
        assert!(kept.of(|_| true).is_empty());
        add(&kept, "退款").unwrap();
        add(&kept, "b").unwrap();
        assert_eq!(add(&kept, "c"), Err("two are enough"));

        let again = Kept::<String>::default();
        again.keep_in(file.clone()).unwrap();
        assert_eq!(again.of(|_| true), ["退款", "b"]);
        assert_eq!(again.of(|item| item.as_str() == "b"), ["b"]);

        fs::write(&file, "[\"half").unwrap();
        again.keep_in(file.clone()).unwrap();
        assert!(again.of(|_| true).is_empty());
        assert_eq!(fs::read_to_string(folder.path().join("list.json.broken")).unwrap(), "[\"half");
        add(&again, "new").unwrap();
        let third = Kept::<String>::default();
        third.keep_in(file).unwrap();
        assert_eq!(third.of(|_| true), ["new"]);
    }

    #[test]
    fn what_cannot_be_written_is_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::<String>::default();
        kept.keep_in(folder.path().join("list.json")).unwrap();
        add(&kept, "a").unwrap();
        folder.close().unwrap();
        let cleared = kept.change(|items| {
            items.clear();
            Ok::<_, ()>(())
        });
        assert!(cleared.is_err());
        assert_eq!(kept.of(|_| true), ["a"]);
    }
}
