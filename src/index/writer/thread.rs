//! The thread behind the handles.
//!
//! **When it wakes, and what it then does.** The writer is a thread that lives as long as the daemon
//! and sleeps until a change arrives.
//!
//! 1. A change arrives: it is handed to the store.
//! 2. Another is waiting already: that is handed over too, until a second has passed since the first
//!    that isn't committed yet, or five while nobody waits for the commit.
//! 3. None is waiting and somebody waits for the commit ([`super::WriterHandle::apply`],
//!    [`super::WriterHandle::flush`]): it commits at once. While it does, new changes queue up and share the
//!    next commit, so a busy time makes few commits and a quiet one answers fast.
//! 4. None is waiting and nobody waits ([`super::WriterHandle::submit`]): it sleeps until the next change,
//!    or until a second has passed since the first, and commits then.
//! 5. What is committed is visible. It is made durable ([`IndexStore::persist`]) right after, but not more
//!    than once a second, and on another thread, so that changes go on meanwhile. A removal is durable
//!    before it is told to be done: what was deleted must not come back after a power cut.
//! 6. The store fails: everything since the last commit is rolled back, all who wait for it are told
//!    (those who don't, at their next `flush`), and the writer goes on. Trying again is the caller's.
//!    When it fails to persist, nothing is rolled back, and the writer tries again every second.
//! 7. It has been idle for two seconds, then four, and so on up to a few minutes after the last commit:
//!    the store may take up what it did in the background ([`IndexStore::settle`]). Then it sleeps.
//! 8. There is no room ([`Guard`]), or the store failed: that is told, and told again when it is over. Without
//!    room it looks again every second, and what arrives meanwhile waits.
//! 9. [`super::Writer::stop`], or the last handle is gone: what is queued is applied, committed and persisted,
//!    and the thread ends.
//!
//! Searches go first: where there is more work than cores, this thread and those that it starts (the
//! engine's) yield to the others.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;

use super::super::{Change, IndexError, IndexStore};
use super::{Guard, Message, Report, lock};
use crate::fault;

/// Longest time that a change waits for its commit while others keep arriving.
const MAX_UNCOMMITTED: Duration = Duration::from_secs(1);
/// The same while nobody waits for a commit. Every commit ends segments that are still small, which
/// costs a large load more time than anything else that could be spared.
const MAX_UNCOMMITTED_LOAD: Duration = Duration::from_secs(5);
/// Shortest time from one time that all is made durable to the next, so that many changes share it.
const PERSIST_EVERY: Duration = Duration::from_secs(1);
/// How often to look whether all is durable, while that is under way on another thread.
const LOOK: Duration = Duration::from_millis(10);
/// What is added to the niceness of the threads that index.
const NICER: i32 = 5;
/// Idle times after which the store may settle: the first, doubled up to the last.
const FIRST_SETTLE: Duration = Duration::from_secs(2);
const LAST_SETTLE: Duration = Duration::from_secs(256);

/// How often a disk without room is looked at again.
const ROOM_WAIT: Duration = Duration::from_secs(1);

const PANICKED: &str = "the index's engine panicked (the log says where)";

/// Why nothing is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Paused {
    NoRoom,
    /// Until the next commit that succeeds; trying again is the callers'.
    Failed,
    /// What is committed can't be made durable, which is tried again.
    Volatile,
}

pub(super) struct Loop {
    store: Arc<dyn IndexStore>,
    receiver: Receiver<Message>,
    guard: Guard,
    paused: Option<Paused>,
    /// What arrived while there was no room.
    backlog: VecDeque<Message>,
    /// When the first change was applied that isn't committed.
    since: Option<Instant>,
    /// Whom the next commit or failure concerns.
    reports: Vec<Report>,
    /// Whether the next commit has to be durable before it is told to anybody.
    durable: bool,
    /// When what is committed is made durable; `None` when it is.
    persist_at: Option<Instant>,
    /// When it may be made durable the next time.
    may_persist: Instant,
    /// The thread that does it.
    persisting: Option<JoinHandle<Result<(), IndexError>>>,
    /// When the store may settle, and how long the writer is idle by then; `None` when it has.
    settle_at: Option<(Instant, Duration)>,
    stopping: bool,
}

impl Loop {
    pub(super) fn new(
        store: Arc<dyn IndexStore>,
        receiver: Receiver<Message>,
        guard: Guard,
    ) -> Self {
        Self {
            store,
            receiver,
            guard,
            paused: None,
            backlog: VecDeque::new(),
            since: None,
            reports: vec![],
            durable: false,
            persist_at: None,
            may_persist: Instant::now(),
            persisting: None,
            settle_at: None,
            stopping: false,
        }
    }

    pub(super) fn run(mut self) {
        yield_to_others();
        while let Some(message) = self.next() {
            match message {
                Message::Changes { changes, report, permit } => self.apply(changes, report, permit),
                Message::Flush { done, durable } => {
                    self.reports.push(Report::Waiting(done));
                    self.durable |= durable;
                }
                // [`Loop::receive`] has answered them.
                Message::Ping(_) => {}
                // What is queued behind it came too late only if its sender is told so: a sender
                // that got in before the channel closed is still served.
                Message::Stop => self.stopping = true,
            }
            if self.is_late() {
                self.commit();
            }
            self.look_after_persisting();
        }
        self.durable = true;
        self.commit();
    }

    /// The next message; does what is due when none is waiting.
    fn next(&mut self) -> Option<Message> {
        loop {
            let waiting = self.backlog.pop_front();
            if let Some(message) = waiting.or_else(|| self.receive(Some(Duration::ZERO)).ok()) {
                return Some(message);
            }
            if self.stopping {
                return None;
            }
            if self.is_awaited() {
                self.commit();
            }
            match self.receive(
                self.next_deadline().map(|at| at.saturating_duration_since(Instant::now())),
            ) {
                Ok(message) => return Some(message),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => self.do_what_is_due(),
            }
        }
    }

    /// When something is to be done though no message comes.
    fn next_deadline(&self) -> Option<Instant> {
        let commit = self.since.map(|since| since + MAX_UNCOMMITTED);
        let persist = match self.persisting {
            Some(_) => Some(Instant::now() + LOOK),
            None => self.persist_at,
        };
        let settle = self.settle_at.map(|(at, _)| at);
        [commit, persist, settle].into_iter().flatten().min()
    }

    fn do_what_is_due(&mut self) {
        let now = Instant::now();
        if self.since.is_some_and(|since| since + MAX_UNCOMMITTED <= now) {
            self.commit();
        }
        if let Some((_, idle)) = self.settle_at.filter(|(at, _)| *at <= now) {
            self.settle(idle);
        }
        self.look_after_persisting();
    }

    /// Begins to make durable what is committed, when it is time, and takes note of the end.
    fn look_after_persisting(&mut self) {
        if let Some(thread) = self.persisting.take_if(|thread| thread.is_finished()) {
            let panicked = |_| Err(IndexError::Write { reason: PANICKED.into() });
            let result = thread.join().unwrap_or_else(panicked);
            self.persisted(&result);
        }
        let is_due = self.persist_at.is_some_and(|at| at <= Instant::now());
        if is_due && self.persisting.is_none() {
            self.persist_at = None;
            self.may_persist = Instant::now() + PERSIST_EVERY;
            let store = self.store.clone();
            let thread = std::thread::Builder::new()
                .name("index-persist".into())
                .spawn(move || store.persist());
            match thread {
                Ok(thread) => self.persisting = Some(thread),
                Err(error) => self.persisted(&Err(IndexError::Write { reason: error.to_string() })),
            }
        }
    }

    fn persisted(&mut self, result: &Result<(), IndexError>) {
        match result {
            Ok(()) if self.paused == Some(Paused::Volatile) => self.go_on(),
            Ok(()) => {}
            Err(error) => {
                self.persist_at = Some(self.may_persist);
                self.pause(&error.to_string(), Paused::Volatile);
            }
        }
    }

    /// Waits for a message, for so long or for ever. Pings are answered on the way: to be asked
    /// whether it lives mustn't keep the writer from what it does when it is idle.
    fn receive(&self, wait: Option<Duration>) -> Result<Message, RecvTimeoutError> {
        let deadline = wait.map(|wait| Instant::now() + wait);
        loop {
            let message = match deadline {
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    self.receiver.recv_timeout(left)?
                }
                None => self.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected)?,
            };
            match message {
                Message::Ping(answer) => drop(answer.send(())),
                other => return Ok(other),
            }
        }
    }

    /// Waits until there is room; the reason, when the end comes first. What was applied by then is
    /// committed: that little always finds room in what is kept free.
    fn wait_for_room(&mut self) -> Result<(), String> {
        while let Err(reason) = (self.guard.room)() {
            if self.stopping {
                return Err(reason);
            }
            if self.paused != Some(Paused::NoRoom) {
                self.commit();
                self.pause(&reason, Paused::NoRoom);
            }
            self.look_after_persisting();
            match self.receive(Some(ROOM_WAIT)) {
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => self.stopping = true,
                Ok(message) => self.backlog.push_back(message),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        if self.paused == Some(Paused::NoRoom) {
            self.go_on();
        }
        Ok(())
    }

    fn pause(&mut self, reason: &str, why: Paused) {
        if self.paused != Some(why) {
            tracing::warn!(%reason, "nothing is written to the index for now");
        }
        self.paused = Some(why);
        (self.guard.tell)(Some(reason));
    }

    fn go_on(&mut self) {
        if self.paused.take().is_some() {
            tracing::info!("the index is written again");
            (self.guard.tell)(None);
        }
    }

    fn settle(&mut self, idle: Duration) {
        let next = Some(idle * 2).filter(|next| *next <= LAST_SETTLE);
        self.settle_at = next.map(|next| (Instant::now() + next, next));
        if let Err(error) = self.store.settle() {
            tracing::warn!(%error, "the index stays as it was at the last commit");
        }
        // Merged segments, which replace those on the disk.
        self.persist_at.get_or_insert_with(Instant::now);
    }

    fn is_late(&self) -> bool {
        let most = if self.is_awaited() { MAX_UNCOMMITTED } else { MAX_UNCOMMITTED_LOAD };
        self.since.is_some_and(|since| since.elapsed() >= most)
    }

    /// Whether somebody waits for the next commit.
    fn is_awaited(&self) -> bool {
        self.reports.iter().any(|report| matches!(report, Report::Waiting(_)))
    }

    fn apply(&mut self, changes: Vec<Change>, report: Report, permit: OwnedSemaphorePermit) {
        if let Err(reason) = self.wait_for_room() {
            self.reports.push(report);
            return self.finish(&Err(IndexError::Write { reason }));
        }
        self.reports.push(report);
        self.since.get_or_insert_with(Instant::now);
        self.durable |= changes.iter().any(|change| !matches!(change, Change::Replace(_)));
        let applied = unpanicked(|| {
            self.store.apply(changes)?;
            fault::point("writer.applied");
            Ok(())
        });
        drop(permit);
        if let Err(error) = applied {
            self.fail(error);
        }
    }

    fn commit(&mut self) {
        match self.commit_store() {
            Ok(()) => self.finish(&Ok(())),
            Err(error) => self.fail(error),
        }
    }

    fn commit_store(&mut self) -> Result<(), IndexError> {
        if self.since.is_some() {
            unpanicked(|| self.store.commit())?;
            self.settle_at = Some((Instant::now() + FIRST_SETTLE, FIRST_SETTLE));
            self.persist_at.get_or_insert(self.may_persist);
            if self.paused != Some(Paused::Volatile) {
                self.go_on();
            }
        }
        if self.durable {
            self.may_persist = Instant::now() + PERSIST_EVERY;
            let result = unpanicked(|| self.store.persist());
            if result.is_ok() {
                self.persist_at = None;
            }
            self.persisted(&result);
            result?;
        }
        Ok(())
    }

    fn fail(&mut self, error: IndexError) {
        // While it fails again and again, once is enough.
        if self.paused.is_none() {
            tracing::warn!(%error, "changes to the index were rolled back");
        }
        if let Err(again) = self.store.rollback() {
            tracing::error!(error = %again, "the index can't be rolled back");
        }
        if self.paused != Some(Paused::Volatile) {
            self.pause(&error.to_string(), Paused::Failed);
        }
        self.finish(&Err(error));
    }

    fn finish(&mut self, result: &Result<(), IndexError>) {
        (self.since, self.durable) = (None, false);
        for report in self.reports.drain(..) {
            match (report, result) {
                // Whoever stopped waiting doesn't want to know.
                (Report::Waiting(done), _) => drop(done.send(result.clone())),
                (Report::Account(lost), Err(error)) => *lock(&lost) = Some(error.clone()),
                (Report::Account(_), Ok(())) => {}
            }
        }
    }
}

/// A panic of the engine is an error like any other: the writer has to outlive it, and a roll-back
/// throws away whatever it left half done.
fn unpanicked(call: impl FnOnce() -> Result<(), IndexError>) -> Result<(), IndexError> {
    catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|_| Err(IndexError::Write { reason: PANICKED.into() }))
}

/// Lets other threads go first. On Linux niceness is a thread's own, and goes on to the threads that
/// it starts.
fn yield_to_others() {
    #[cfg(target_os = "linux")]
    {
        let lower = || {
            let niceness = rustix::process::getpriority_process(None)?;
            rustix::process::setpriority_process(None, niceness + NICER)
        };
        if let Err(error) = lower() {
            tracing::debug!(%error, "the index writer runs like any other thread");
        }
    }
}
