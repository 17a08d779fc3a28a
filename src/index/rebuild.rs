//! Entries that another version made, made again from the text that is stored of them. No server is
//! asked, and what they replace is found until then.
//!
//! Of an index with another schema, which can't be searched any more, every entry is taken over; of
//! the present one those whose analysis is another. What was extracted or cut in another way has to be
//! read anew: it is taken over as it is, and the sync reads it again.

use std::collections::HashSet;
use std::sync::Arc;

use super::tantivy::Former;
use super::writer::WriterHandle;
use super::{Change, Entry, IndexError, IndexStore};
use crate::fault;
use crate::model::{Fingerprint, ResourceKey};

/// Makes again what can be; answers how many resources. Blocks on the index and, for room, on the
/// writer. `tell` is told how many were handed over so far.
///
/// # Errors
/// The index can't be read, or didn't take what was made: what is missing is read from its server.
pub async fn rebuild(
    store: Arc<dyn IndexStore>,
    former: Option<Former>,
    writer: &WriterHandle,
    present: Fingerprint,
    tell: impl Fn(u64) + Send + 'static,
) -> Result<u64, IndexError> {
    let (handle, runtime) = (writer.clone(), tokio::runtime::Handle::current());
    let work = move || {
        let mut made = 0;
        let mut put = |mut entry: Entry| {
            if entry.fingerprint.has_text_of(present) {
                entry.fingerprint = present;
            }
            made += 1;
            tell(made);
            let handed = runtime.block_on(handle.submit(vec![Change::Replace(Box::new(entry))]));
            fault::point("rebuild.handed");
            handed
        };
        if let Some(former) = &former {
            take_over(&*store, former, &mut put)?;
        }
        for key in outdated(&*store, present)? {
            if let Some(entry) = store.entry(&key)? {
                put(entry)?;
            }
        }
        // Before anybody deletes what it was made from.
        runtime.block_on(handle.persist())?;
        Ok(made)
    };
    let worked = tokio::task::spawn_blocking(work).await;
    worked.unwrap_or_else(|panic| Err(IndexError::Read { reason: panic.to_string() }))
}

/// Takes over what the present index doesn't hold: what it does is newer.
fn take_over(
    store: &dyn IndexStore,
    former: &Former,
    put: &mut impl FnMut(Entry) -> Result<(), IndexError>,
) -> Result<(), IndexError> {
    let mut held = HashSet::new();
    for server in store.servers()? {
        held.extend(store.manifests(&server)?.into_iter().map(|manifest| manifest.key));
    }
    for entry in former.entries() {
        let entry = entry?;
        if !held.contains(&entry.key()) {
            put(entry)?;
        }
    }
    Ok(())
}

/// Entries of which the stored text is good, and nothing else.
fn outdated(store: &dyn IndexStore, present: Fingerprint) -> Result<Vec<ResourceKey>, IndexError> {
    let mut keys = vec![];
    for server in store.servers()? {
        let manifests = store.manifests(&server)?.into_iter().filter(|manifest| {
            manifest.fingerprint != present && manifest.fingerprint.has_text_of(present)
        });
        keys.extend(manifests.map(|manifest| manifest.key));
    }
    Ok(keys)
}
