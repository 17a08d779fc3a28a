//! The one writer: takes changes from all servers, batches them, commits, and acknowledges.
//!
//! `thread` is the thread behind it: when it wakes, and what it then does.
//!
//! Changes that wait are held to a budget of bytes; who brings more waits asynchronously.

mod thread;

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use self::thread::Loop;
use super::{Change, Entry, IndexError, IndexStore};

/// Bytes of changes that may wait for the writer.
const BUDGET: u32 = 64 << 20;
/// Takes the reason of a pause, or none.
type Tell = dyn FnMut(Option<&str>) + Send;

/// What the writer asks and tells while it works.
pub struct Guard {
    /// Asked before changes are applied; the error says why nothing may be written now.
    pub room: Box<dyn FnMut() -> Result<(), String> + Send>,
    /// Told why writing pauses, and with none that it goes on.
    pub tell: Box<Tell>,
}

impl Default for Guard {
    /// Always room, and nobody to tell.
    fn default() -> Self {
        Self { room: Box::new(|| Ok(())), tell: Box::new(|_| ()) }
    }
}

/// The thread. Dropped, it goes on until the last handle is gone.
pub struct Writer {
    sender: Sender<Message>,
    thread: JoinHandle<()>,
}

/// Where changes are handed in. A clone has its own account of what was lost, so each task that
/// submits changes takes one.
pub struct WriterHandle {
    sender: Sender<Message>,
    budget: Arc<Semaphore>,
    /// Why changes that were submitted here, and for which nobody waits, were lost.
    lost: Lost,
}

/// How much waits for the writer.
#[derive(Clone, Debug)]
pub struct WriteQueue(Arc<Semaphore>);

impl WriteQueue {
    /// About how many bytes of changes wait.
    pub fn bytes(&self) -> u64 {
        (BUDGET as usize).saturating_sub(self.0.available_permits()) as u64
    }
}

type Lost = Arc<Mutex<Option<IndexError>>>;
type Done = oneshot::Sender<Result<(), IndexError>>;

impl Clone for WriterHandle {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), budget: self.budget.clone(), lost: Lost::default() }
    }
}

enum Message {
    Changes {
        changes: Vec<Change>,
        report: Report,
        /// Given back when the store has taken the changes.
        permit: OwnedSemaphorePermit,
    },
    Flush {
        done: Done,
        /// Whether it is for what is durable, not only for what is visible.
        durable: bool,
    },
    /// Answered at once by a writer that isn't stuck, whether or not it may write.
    Ping(oneshot::Sender<()>),
    Stop,
}

/// Who is told what became of changes.
enum Report {
    /// Somebody who waits, for whom the writer hurries.
    Waiting(Done),
    /// The handle's account, read at its next flush.
    Account(Lost),
}

impl Writer {
    /// Starts the writer of a store.
    ///
    /// # Errors
    /// [`IndexError::Write`] when the system gives no thread.
    pub fn start(store: Arc<dyn IndexStore>) -> Result<(WriterHandle, Writer), IndexError> {
        Self::guarded(store, Guard::default())
    }

    /// Starts the writer of a store, with somebody who watches over it.
    ///
    /// # Errors
    /// [`IndexError::Write`] when the system gives no thread.
    pub fn guarded(
        store: Arc<dyn IndexStore>,
        guard: Guard,
    ) -> Result<(WriterHandle, Writer), IndexError> {
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new()
            .name("index-writer".into())
            .spawn(move || Loop::new(store, receiver, guard).run())
            .map_err(|e| IndexError::Write { reason: e.to_string() })?;
        let handle = WriterHandle {
            sender: sender.clone(),
            budget: Arc::new(Semaphore::new(BUDGET as usize)),
            lost: Lost::default(),
        };
        Ok((handle, Writer { sender, thread }))
    }

    /// Makes what was handed in so far durable and ends the thread; later changes meet
    /// [`IndexError::Stopped`]. Blocking: not for an asynchronous task's thread.
    pub fn stop(self) {
        // A closed channel means that the thread has ended already.
        let _ = self.sender.send(Message::Stop);
        drop(self.sender);
        if self.thread.join().is_err() {
            tracing::error!("the index writer ended with a panic");
        }
    }
}

impl WriterHandle {
    /// Hands changes in and waits until they are visible to searches; removals, until they are durable.
    ///
    /// # Errors
    /// The store's error when they were rolled back, [`IndexError::Stopped`] when the writer is gone.
    pub async fn apply(&self, changes: Vec<Change>) -> Result<(), IndexError> {
        let (done, result) = oneshot::channel();
        self.send(changes, Report::Waiting(done)).await?;
        result.await.unwrap_or(Err(IndexError::Stopped))
    }

    /// Hands changes in and waits only for room. They are visible a second later, or five while more
    /// keep coming, or at the next [`flush`](Self::flush), which tells if they were lost.
    ///
    /// # Errors
    /// [`IndexError::Stopped`] when the writer is gone.
    pub async fn submit(&self, changes: Vec<Change>) -> Result<(), IndexError> {
        self.send(changes, Report::Account(self.lost.clone())).await
    }

    /// Waits until all that was handed in before is visible, and safe from anything but the end of the
    /// process; removals, until they are durable.
    ///
    /// # Errors
    /// The store's error when anything submitted through this handle since its last flush was
    /// rolled back; all of that is to be handed in again.
    pub async fn flush(&self) -> Result<(), IndexError> {
        self.flush_until(false).await
    }

    /// As [`flush`](Self::flush), until all of it is durable.
    ///
    /// # Errors
    /// As there, and the store's when it can't be made durable now.
    pub async fn persist(&self) -> Result<(), IndexError> {
        self.flush_until(true).await
    }

    async fn flush_until(&self, durable: bool) -> Result<(), IndexError> {
        let (done, result) = oneshot::channel();
        let message = Message::Flush { done, durable };
        self.sender.send(message).map_err(|_| IndexError::Stopped)?;
        let flushed = result.await.unwrap_or(Err(IndexError::Stopped));
        let lost = lock(&self.lost).take();
        lost.map_or(flushed, Err)
    }

    /// Waits for a sign of life, which a writer gives that waits for work or for room, and between
    /// two of its steps; it changes nothing.
    ///
    /// # Errors
    /// [`IndexError::Stopped`] when the writer is gone.
    pub async fn ping(&self) -> Result<(), IndexError> {
        let (answer, answered) = oneshot::channel();
        self.sender.send(Message::Ping(answer)).map_err(|_| IndexError::Stopped)?;
        answered.await.map_err(|_| IndexError::Stopped)
    }

    /// A look at what waits, for as long as there are handles.
    pub fn queue(&self) -> WriteQueue {
        WriteQueue(self.budget.clone())
    }

    async fn send(&self, changes: Vec<Change>, report: Report) -> Result<(), IndexError> {
        let bytes = changes.iter().map(bytes_of).fold(0, usize::saturating_add);
        let permits = u32::try_from(bytes).unwrap_or(BUDGET).clamp(1, BUDGET);
        let permit = self.budget.clone().acquire_many_owned(permits).await;
        let permit = permit.map_err(|_| IndexError::Stopped)?;
        let message = Message::Changes { changes, report, permit };
        self.sender.send(message).map_err(|_| IndexError::Stopped)
    }
}

/// About what a change takes in memory.
fn bytes_of(change: &Change) -> usize {
    const OVERHEAD: usize = 512;
    let text = match change {
        Change::Replace(entry) => {
            let Entry { chunks, resource, .. } = entry.as_ref();
            let chunks = chunks.iter().map(|chunk| OVERHEAD + chunk.text.len()).sum::<usize>();
            chunks + resource.uri.len() + resource.description.as_ref().map_or(0, String::len)
        }
        Change::Remove(key) => key.uri.len(),
        Change::RemoveServer(_) => 0,
    };
    OVERHEAD + text
}

/// What is in there is replaced whole, so it stays whole when a thread dies with the lock.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
