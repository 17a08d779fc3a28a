//! What another version left: its index beside the new one until that holds its text, and entries that
//! are made again. The servers wait for it, searches don't.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cli::CliError;
use crate::index::IndexError;
use crate::index::rebuild::rebuild;
use crate::index::tantivy::{Former, fingerprint};
use crate::index::writer::WriterHandle;
use crate::serve::App;

/// How many resources lie between two words about the progress.
const TOLD: u64 = 100;

fn folder(state: &Path) -> PathBuf {
    state.join("index.former")
}

/// Puts an index of another schema aside, for [`former`] to find.
///
/// # Errors
/// The state folder can't be changed.
pub fn set_aside(state: &Path, index: &Path) -> Result<(), CliError> {
    let former = folder(state);
    remove(&former);
    std::fs::rename(index, former)?;
    Ok(())
}

/// The index that was put aside, now or at a start that was cut short.
pub fn former(state: &Path) -> Option<Former> {
    let folder = folder(state);
    if !folder.exists() {
        return None;
    }
    match Former::open(&folder) {
        Ok(former) => Some(former),
        Err(error) => {
            tracing::error!(%error, "what it holds is read from the servers instead");
            remove(&folder);
            None
        }
    }
}

/// Makes again what can be made of stored text.
pub async fn run(app: &Arc<App>, former: Option<Former>, writer: &WriterHandle, state: &Path) {
    let told = app.clone();
    let tell = move |made: u64| {
        if made % TOLD == 1 {
            let progress = format!("{made} resources so far are made again from their stored text");
            told.rebuilding.store(Some(Arc::new(progress)));
        }
    };
    let made = rebuild(app.store.clone(), former, writer, fingerprint(), tell).await;
    app.rebuilding.store(None);
    match made {
        Ok(0) => {}
        Ok(resources) => tracing::info!(resources, "the index is made again from its text"),
        Err(error) => {
            tracing::error!(%error, "what is missing of the index is read from the servers");
            if matches!(error, IndexError::Write { .. } | IndexError::Stopped) {
                // Whole as it is, it is tried again at the next start.
                return;
            }
        }
    }
    remove(&folder(state));
}

fn remove(folder: &Path) {
    if let Err(error) = std::fs::remove_dir_all(folder)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(%error, folder = %folder.display(), "it can't be removed, and isn't needed any more");
    }
}
