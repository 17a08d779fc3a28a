//! Which era of the protocol worked with each server: a small file that can be lost.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::fault;
use crate::model::{Era, ServerName};

/// The memory of all servers.
#[derive(Default)]
pub struct Eras {
    file: Option<PathBuf>,
    known: Mutex<BTreeMap<ServerName, Era>>,
}

impl Eras {
    /// Reads the file; one that is missing or broken is as good as empty.
    pub fn load(file: PathBuf) -> Self {
        let text = std::fs::read(&file).unwrap_or_default();
        let known = serde_json::from_slice(&text).unwrap_or_default();
        Self { file: Some(file), known: Mutex::new(known) }
    }

    pub fn of(&self, server: &ServerName) -> Option<Era> {
        self.lock().get(server).copied()
    }

    /// Remembers an era, in the file too when it is a new one. The file is written under the lock:
    /// servers connect at the same time, and the last to write must know of all.
    pub fn remember(&self, server: &ServerName, era: Era) {
        let mut known = self.lock();
        if known.insert(server.clone(), era) == Some(era) {
            return;
        }
        if let Some(file) = &self.file
            && let Err(error) = write(file, &known)
        {
            // It costs the next start a second handshake.
            tracing::warn!(file = %file.display(), %error, "the servers' eras can't be remembered");
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<ServerName, Era>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write(file: &std::path::Path, known: &BTreeMap<ServerName, Era>) -> std::io::Result<()> {
    let new = file.with_extension("new");
    std::fs::write(&new, serde_json::to_vec_pretty(known)?)?;
    fault::point("eras.written");
    std::fs::rename(new, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_connect_at_once_are_all_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("eras.json");
        let names: Vec<ServerName> =
            (0..64).map(|n| ServerName::new(format!("s{n}")).unwrap()).collect();
        let eras = Eras::load(file.clone());
        std::thread::scope(|scope| {
            for name in &names {
                scope.spawn(|| eras.remember(name, Era::Legacy));
            }
        });
        let eras = Eras::load(file);
        assert!(names.iter().all(|name| eras.of(name) == Some(Era::Legacy)));
    }

    #[test]
    fn eras_are_remembered_and_a_broken_file_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("eras.json");
        let name = ServerName::new("wiki").unwrap();
        Eras::load(file.clone()).remember(&name, Era::Modern);
        assert_eq!(Eras::load(file.clone()).of(&name), Some(Era::Modern));
        std::fs::write(&file, "{").unwrap();
        assert_eq!(Eras::load(file).of(&name), None);
    }
}
