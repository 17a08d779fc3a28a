//! Documents on their way to the indexing threads, held to a budget of bytes.
//!
//! Tantivy's own queue is held to a number of batches, and a batch is a resource, which may be a line or
//! a book. What comes in faster than it can be indexed would fill the memory.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ::tantivy::TantivyDocument;
use ::tantivy::schema::Document;

/// Text that may wait for the indexing threads; bytes.
const BUDGET: usize = 32 << 20;
/// Longest wait for room. Threads that take nothing for so long are dead, which tantivy reports at the
/// next call.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// How much is on its way. Clones share.
#[derive(Clone, Default)]
pub struct Queue(Arc<(Mutex<usize>, Condvar)>);

impl Queue {
    /// Waits until there is room for more. A batch is taken whole, so the budget may be exceeded by
    /// one resource.
    pub fn wait(&self) {
        let (waiting, taken) = &*self.0;
        let deadline = Instant::now() + MAX_WAIT;
        let mut bytes = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while *bytes >= BUDGET {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                tracing::warn!(bytes = *bytes, "the indexing threads take nothing");
                return;
            }
            bytes = taken.wait_timeout(bytes, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Counts a document of about so many bytes until an indexing thread takes it.
    pub fn add(&self, document: TantivyDocument, bytes: usize) -> Queued {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) += bytes;
        Queued { document, _share: Share { queue: self.clone(), bytes } }
    }
}

/// A document that counts while it waits.
pub struct Queued {
    document: TantivyDocument,
    _share: Share,
}

/// A document's part of the budget, given back when it is dropped.
struct Share {
    queue: Queue,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        let (waiting, taken) = &*self.queue.0;
        let mut bytes = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        *bytes = bytes.saturating_sub(self.bytes);
        taken.notify_all();
    }
}

impl Document for Queued {
    type Value<'a> = <TantivyDocument as Document>::Value<'a>;
    type FieldsValuesIter<'a> = <TantivyDocument as Document>::FieldsValuesIter<'a>;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        self.document.iter_fields_and_values()
    }

    fn into_tantivy_document(self) -> TantivyDocument {
        self.document
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_waits_until_something_is_taken() {
        let queue = Queue::default();
        queue.wait();
        let first = queue.add(TantivyDocument::default(), BUDGET);
        let waiting = {
            let queue = queue.clone();
            std::thread::spawn(move || queue.wait())
        };
        assert!(!waiting.is_finished());
        drop(first.into_tantivy_document());
        waiting.join().unwrap();
        assert_eq!(*queue.0.0.lock().unwrap(), 0);
    }
}
