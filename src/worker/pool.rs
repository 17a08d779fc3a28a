//! The daemon's side: a few workers, one document at a time each.

use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::frame::{self, Answer, Hello};
use crate::config::Limits;
use crate::extract::{self, Extraction};
use crate::model::{Resource, Snapshot};

/// How often a document is tried whose worker crashed: the fault may have been another's.
const ATTEMPTS: usize = 3;
/// How many documents a worker reads before it is replaced, so that what leaks is bounded.
const JOBS: usize = 200;
/// How long a worker waits for work before it is let go.
const IDLE: Duration = Duration::from_secs(30);
/// How long a worker may take to start, on a busy machine.
const START: Duration = Duration::from_secs(60);
/// An answer's JSON may be this much longer than the text in it: six bytes for an escaped one.
const JSON: usize = 6;
/// And it has headings, pages and notes beside the text.
const MARKS: usize = 16 << 20;

/// The workers. Cheap to clone.
#[derive(Clone)]
pub struct Workers(Arc<Pool>);

struct Pool {
    /// How a worker is started; nothing can be opened without.
    command: Option<(OsString, Vec<OsString>)>,
    /// One permit for each worker that may be busy.
    slots: Semaphore,
    idle: Mutex<Vec<Worker>>,
    /// Whether a task looks after the idle ones.
    tended: AtomicBool,
}

/// Why a worker gave no answer.
#[derive(Debug, PartialEq)]
enum Fault {
    /// The same document may fare better with another worker.
    Crashed(String),
    /// It won't.
    Exceeded(String),
    /// No fault of the document.
    NotStarted(String),
}

impl Workers {
    /// At most `count` workers, each this very program.
    pub fn new(count: usize) -> Self {
        // Also right after the program's file was replaced by another version's.
        let program = if cfg!(target_os = "linux") {
            Ok("/proc/self/exe".into())
        } else {
            std::env::current_exe()
        };
        let command = program.ok().map(|program| (program.into(), vec![WORKER.into()]));
        Self::with(command, count)
    }

    /// At most `count` workers of another program, which is resdex as well.
    pub fn of(program: impl Into<OsString>, count: usize) -> Self {
        Self::with(Some((program.into(), vec![WORKER.into()])), count)
    }

    /// No worker: binary input isn't read.
    pub fn none() -> Self {
        Self::with(None, 1)
    }

    fn with(command: Option<(OsString, Vec<OsString>)>, count: usize) -> Self {
        Self(Arc::new(Pool {
            command,
            slots: Semaphore::new(count.max(1)),
            idle: Mutex::default(),
            tended: AtomicBool::new(false),
        }))
    }

    /// As [`Workers::extract`], for a thread that may block.
    ///
    /// # Errors
    /// As [`Workers::extract`].
    pub fn extract_blocking(
        &self,
        resource: &Resource,
        snapshot: &Snapshot,
        limits: &Limits,
    ) -> Result<Extraction, String> {
        if !extract::needs_worker(resource, snapshot, limits) {
            return Ok(extract::extract(resource, snapshot, limits));
        }
        let runtime = Handle::try_current().map_err(|error| error.to_string())?;
        runtime.block_on(self.extract(resource, snapshot, limits))
    }

    /// The text of a snapshot: at once where it is text, else by a worker. Whatever a document does
    /// to its worker, it is skipped with the reason.
    ///
    /// # Errors
    /// No worker can be had, which says nothing of the document.
    pub async fn extract(
        &self,
        resource: &Resource,
        snapshot: &Snapshot,
        limits: &Limits,
    ) -> Result<Extraction, String> {
        if !extract::needs_worker(resource, snapshot, limits) {
            return Ok(extract::extract(resource, snapshot, limits));
        }
        let request = frame::encode(&(resource, snapshot, limits));
        let request = request.map_err(|error| error.to_string())?;
        let _slot = self.0.slots.acquire().await.map_err(|error| error.to_string())?;
        let mut crash = String::new();
        for _ in 0..ATTEMPTS {
            match self.attempt(&request, limits).await {
                Ok(extraction) => return Ok(extraction),
                Err(Fault::Crashed(reason)) => crash = reason,
                Err(Fault::Exceeded(reason)) => return Ok(Extraction::Skipped(reason)),
                Err(Fault::NotStarted(reason)) => return Err(reason),
            }
        }
        Ok(Extraction::Skipped(crash))
    }

    /// One try with one worker, which is kept only if it answered as it should.
    async fn attempt(&self, request: &[u8], limits: &Limits) -> Result<Extraction, Fault> {
        let idle = self.idle().pop();
        let mut worker = match idle {
            Some(worker) => worker,
            None => self.start().await.map_err(Fault::NotStarted)?,
        };
        let asked = tokio::time::timeout(limits.extract_timeout, worker.ask(request, limits));
        match asked.await {
            Err(_) => Err(Fault::Exceeded(format!(
                "reading it took longer than {} s (limits.extract_timeout)",
                limits.extract_timeout.as_secs_f64()
            ))),
            Ok(Ok(Answer { result: Ok(extraction) })) => {
                self.keep(worker);
                Ok(extraction)
            }
            Ok(Ok(Answer { result: Err(panic) })) => {
                tracing::warn!(%panic, "a worker panicked over a document");
                Err(Fault::Crashed(
                    "its reader failed: the file is broken in an unexpected way".into(),
                ))
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::FileTooLarge => {
                Err(Fault::Exceeded("its reader returned too much".into()))
            }
            Ok(Err(error)) => Err(worker.obituary(&error, limits).await),
        }
    }

    async fn start(&self) -> Result<Worker, String> {
        let (program, arguments) = self.0.command.clone().ok_or("no worker can be started here")?;
        // A process dies with the thread that started it, and only the runtime's own threads stay.
        let started = tokio::spawn(async move { Worker::start(&program, &arguments).await }).await;
        let started = started.map_err(|error| error.to_string())?;
        started.map_err(|error| format!("no worker process can be started: {error}"))
    }

    fn keep(&self, mut worker: Worker) {
        worker.jobs += 1;
        worker.since = Instant::now();
        if worker.jobs >= JOBS {
            return;
        }
        self.idle().push(worker);
        if !self.0.tended.swap(true, Ordering::AcqRel) {
            tokio::spawn(tend(Arc::downgrade(&self.0)));
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets idle workers go when they have waited for long, until none is left.
async fn tend(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(IDLE).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut idle = pool.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|worker| worker.since.elapsed() < IDLE);
        if idle.is_empty() {
            pool.tended.store(false, Ordering::Release);
            return;
        }
    }
}

/// The hidden command that makes this program a worker.
const WORKER: &str = "extract-worker";

/// A running worker. Dropped, it is killed.
struct Worker {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    jobs: usize,
    /// When it was last of use.
    since: Instant,
}

impl Worker {
    async fn start(program: &OsString, arguments: &[OsString]) -> io::Result<Self> {
        let mut command = Command::new(program);
        command
            .arg0("resdex")
            .args(arguments)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        #[cfg(target_os = "linux")]
        #[expect(
            unsafe_code,
            reason = "the closure runs between fork and exec and makes one system call"
        )]
        // SAFETY: prctl is async-signal-safe, and nothing is allocated.
        unsafe {
            // A daemon that is killed takes its workers along.
            command.pre_exec(|| {
                Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?)
            });
        }
        let mut child = command.spawn()?;
        let missing = || io::Error::other("it has no pipes");
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let mut stdout = child.stdout.take().ok_or_else(missing)?;
        let hello = tokio::time::timeout(START, frame::receive::<Hello>(&mut stdout, 4096)).await;
        let hello = hello.map_err(|_| io::Error::other("it doesn't begin"))??;
        if hello.version != env!("CARGO_PKG_VERSION") {
            return Err(io::Error::other(format!("it is of version {}", hello.version)));
        }
        if !hello.confined {
            tracing::warn!(
                "this system has neither Landlock nor seccomp: workers have limits on time and memory only"
            );
        }
        Ok(Self { child, stdin, stdout, jobs: 0, since: Instant::now() })
    }

    async fn ask(&mut self, request: &[u8], limits: &Limits) -> io::Result<Answer> {
        self.stdin.write_all(request).await?;
        self.stdin.flush().await?;
        frame::receive(&mut self.stdout, limits.max_text_bytes.saturating_mul(JSON) + MARKS).await
    }

    /// How a worker ended that gave no answer.
    async fn obituary(mut self, error: &io::Error, limits: &Limits) -> Fault {
        // It may be alive, and have said something that is no answer.
        let _ = self.child.start_kill();
        let mut words = vec![];
        if let Some(stderr) = self.child.stderr.take() {
            let _ = stderr.take(4096).read_to_end(&mut words).await;
        }
        let status = self.child.wait().await.ok();
        tracing::warn!(%error, status = status.map(tracing::field::display), words = %String::from_utf8_lossy(&words), "a worker ended over a document");
        fault(status, &String::from_utf8_lossy(&words), limits)
    }
}

fn fault(status: Option<ExitStatus>, words: &str, limits: &Limits) -> Fault {
    use std::os::unix::process::ExitStatusExt as _;
    if words.contains("memory allocation of") || words.contains("out of memory") {
        return Fault::Exceeded(format!(
            "reading it takes more than {} MiB of memory (limits.extract_memory_bytes)",
            limits.extract_memory_bytes >> 20
        ));
    }
    if words.contains("overflowed its stack") {
        return Fault::Exceeded("it is nested too deeply to be read".into());
    }
    match status.and_then(|status| status.signal()) {
        Some(signal) if signal == Signal::XCPU.as_raw() => Fault::Exceeded(format!(
            "reading it took longer than {} s (limits.extract_timeout)",
            limits.extract_timeout.as_secs_f64()
        )),
        _ => Fault::Crashed("its reader crashed: the file is broken in an unexpected way".into()),
    }
}
