//! One server's task: carries out what its machine decides.
//!
//! **When it wakes, and what it then does.** It sleeps until one of these, tells the machine, and
//! starts what the machine answers; nothing that it starts is waited for in place.
//!
//! 1. Something that it started has ended: a connection, a listing, subscriptions, a read, a flush.
//! 2. The server said that something may have changed, or the session has ended.
//! 3. The schedule ticks, or somebody asks for a reconciliation.
//! 4. A time comes that the machine named: a back-off is over, a mark falls due.
//! 5. It is told to stop: the session is closed, and the task ends when nothing of it is left.

mod telling;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{Mutex, Semaphore, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::added;
use super::backoff::{self, Backoff};
use super::catalog::Catalog;
use super::control::{self, Control, Shared, SyncRequest};
use super::eras::Eras;
use super::indexing::{self, Indexing};
use super::machine::{Command, Event, Got, Machine, Notice, Options, ReadJob, ReadOutcome};
use super::schedule::{Clock, Schedule};
use crate::config::{self, Readiness, ServerConfig};
use crate::fault;
use crate::index::writer::WriterHandle;
use crate::index::{Change, IndexStore};
use crate::model::{
    Fingerprint, ResourceKey, ServerError, ServerName, ServerState, ServerStatus, SyncCause,
    SyncCounts, SyncQueue, Uri,
};
use crate::quiet::Quiet;
use crate::source::SourceError;
use crate::source::mcp::hints::Marks;
use crate::source::mcp::{ConnectOptions, Connection, Session, connect};
use crate::worker::Workers;

/// While reads are under way, the status is shown and progress told this often.
const PROGRESS: Duration = Duration::from_millis(100);

/// URIs whose events wait for the index; beyond, only the end of the reconciliation is told.
const MAX_TOLD: usize = 10_000;

/// What all servers' tasks share.
pub struct Context {
    pub store: Arc<dyn IndexStore>,
    pub control: Arc<Control>,
    pub clock: Clock,
    pub eras: Eras,
    pub fingerprint: Fingerprint,
    /// Reads in flight, of all servers.
    pub reads: Arc<Semaphore>,
    pub workers: Workers,
}

/// A server's task, running.
pub struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    /// Begins to stop: the session is closed, and reads under way are dropped.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Of a task that a test brings.
    #[cfg(test)]
    pub fn of(task: JoinHandle<()>) -> Self {
        Self { stop: CancellationToken::new(), task }
    }

    /// Waits until nothing is left of it, its children included.
    pub async fn stopped(self) {
        // It ends by itself, and a panic of the supervisor would have ended it as well.
        let _ = self.task.await;
    }
}

/// Starts a server's task, or enters one that can't run with the reason.
pub fn start(
    server: ServerConfig,
    config: &config::Config,
    context: Arc<Context>,
    writer: WriterHandle,
    connect_options: ConnectOptions,
    cause: SyncCause,
) -> Option<Running> {
    let (requests, asked) = mpsc::channel(1);
    let (state, error) = match &server.readiness {
        Readiness::Ready => (ServerState::Connecting, None),
        Readiness::NeedsConfig { message, hint } => {
            (ServerState::NeedsConfig, Some((message.clone(), Some(hint.clone()))))
        }
        Readiness::Disabled { reason } => (ServerState::Disabled, Some((reason.clone(), None))),
    };
    let last_error = error.map(|(message, hint)| ServerError { message, hint, at: Utc::now() });
    let name = server.name.clone();
    let shared = Arc::new(Shared::new(first_status(&name, state, last_error), requests));
    context.control.insert(name, shared.clone());
    if server.readiness != Readiness::Ready {
        return None;
    }
    let schedule = server.follow.schedule.as_ref().unwrap_or(&config.sync.schedule);
    let schedule = match Schedule::new(schedule, config.sync.timezone.as_deref()) {
        Ok(schedule) => Some(schedule),
        Err(reason) => {
            tracing::error!(server = %server.name, %reason, "the schedule can't be used");
            None
        }
    };
    let stop = CancellationToken::new();
    let policies = [
        (config.sync.mime_types.clone(), "[sync] mime_types, exclude_mime_types"),
        (server.follow.mime_types.clone(), "the server's mime_types, exclude_mime_types"),
    ];
    let fingerprint = indexing::fingerprint_with(context.fingerprint, &policies);
    let (limits, masker, writer) = (config.limits.clone(), config.masker.clone(), Arc::new(writer));
    let token = stop.clone();
    let make = move || Task {
        next_sync: watch::channel(None).1,
        stop: token.clone(),
        limits: limits.clone(),
        fingerprint,
        policies: policies.clone(),
        server: server.clone(),
        context: context.clone(),
        writer: writer.clone(),
        line: Arc::default(),
        shared: shared.clone(),
        connect_options: connect_options.clone(),
        masker: masker.clone(),
        session: None,
        jobs: FuturesUnordered::new(),
        untold: vec![],
        published: Instant::now(),
        unpublished: false,
        last_sync: None,
        last_error: None,
        quiet: Quiet::default(),
        calm: Quiet::default(),
    };
    let task = tokio::spawn(supervise(make, asked, schedule, cause));
    Some(Running { stop, task })
}

/// Runs a server's task, and once more after a fault of our own: a server that nobody follows any
/// longer must neither stay so nor look alive.
async fn supervise(
    make: impl Fn() -> Task,
    mut asked: mpsc::Receiver<SyncRequest>,
    schedule: Option<Schedule>,
    cause: SyncCause,
) {
    for failures in 1.. {
        let task = make();
        let (stop, shared, server) =
            (task.stop.clone(), task.shared.clone(), task.server.name.to_string());
        let (control, backoff) = (task.context.control.clone(), task.backoff());
        // What was told before the fault isn't known any more, so nothing is spared after it.
        let cause = if failures == 1 { cause } else { SyncCause::Reload };
        let run = AssertUnwindSafe(task.run(&mut asked, schedule.clone(), cause)).catch_unwind();
        if run.await.is_ok() {
            return;
        }
        let message = "resdex itself failed on this server, and begins with it anew".to_owned();
        tracing::error!(%server, failures, "{message}: the log above says where");
        control::write(&shared.session).take();
        {
            let mut status = control::write(&shared.status);
            let hint = Some("what the log says of a panic is worth a report".to_owned());
            status.state = ServerState::Backoff;
            status.last_error =
                Some(ServerError { message: message.clone(), hint, at: Utc::now() });
        }
        control
            .publish(control::Event::State { server: server.clone(), state: ServerState::Backoff });
        control.publish(control::Event::Error { server, message });
        let pause = backoff::jittered(backoff.delay(failures), backoff::random_unit());
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

fn first_status(
    name: &ServerName,
    state: ServerState,
    last_error: Option<ServerError>,
) -> ServerStatus {
    ServerStatus {
        name: name.to_string(),
        state,
        protocol: None,
        push: vec![],
        listed: 0,
        indexed: 0,
        skipped: 0,
        stale: 0,
        last_sync: None,
        next_sync: None,
        last_error,
        withheld_removals: 0,
        warnings: vec![],
        queue: SyncQueue::default(),
        counts: SyncCounts::default(),
    }
}

/// What a job ends in.
enum Done {
    Connected(Result<Connection, SourceError>),
    Event(Event),
    /// Nothing that the machine waits for.
    Nothing,
}

struct Task {
    server: ServerConfig,
    limits: config::Limits,
    policies: [(config::MimePolicy, &'static str); 2],
    /// The context's, with the policies.
    fingerprint: Fingerprint,
    context: Arc<Context>,
    /// Its account of what was lost is this task's.
    writer: Arc<WriterHandle>,
    /// Hand-overs and flushes that nothing waits for keep their order by it: it is fair.
    line: Arc<Mutex<()>>,
    shared: Arc<Shared>,
    connect_options: ConnectOptions,
    masker: config::Masker,
    stop: CancellationToken,
    session: Option<Session>,
    jobs: FuturesUnordered<BoxFuture<'static, Done>>,
    /// What was handed to the index and is told when it is on disk.
    untold: Vec<control::Event>,
    /// When the status was last shown, and whether that is not its last word.
    published: Instant,
    unpublished: bool,
    next_sync: watch::Receiver<Option<DateTime<Utc>>>,
    last_sync: Option<DateTime<Utc>>,
    last_error: Option<(SourceError, DateTime<Utc>)>,
    /// What the log has been told of the server's errors, and of its reconciliations.
    quiet: Quiet,
    calm: Quiet,
}

impl Task {
    async fn run(
        mut self,
        asked: &mut mpsc::Receiver<SyncRequest>,
        schedule: Option<Schedule>,
        cause: SyncCause,
    ) {
        let loaded =
            load_catalog(self.context.clone(), self.server.name.clone(), self.fingerprint).await;
        let catalog = loaded.unwrap_or_else(|reason| {
            // Everything is read again, and replaces what is there.
            tracing::error!(server = %self.server.name, %reason, "what the index holds can't be told");
            Catalog::default()
        });
        let mut machine = Machine::new(self.machine_options(), catalog, Instant::now());
        // However this ends, nobody follows its schedule any longer.
        let ended = self.stop.child_token();
        let _ended = ended.clone().drop_guard();
        let (ticks, mut ticked) = mpsc::channel(1);
        let (next, next_sync) = watch::channel(None);
        self.next_sync = next_sync;
        if let Some(schedule) = schedule {
            let (clock, stop) = (self.context.clock.clone(), ended.child_token());
            tokio::spawn(async move { clock.follow(&schedule, ticks, next, stop).await });
        }
        if cause != SyncCause::Startup {
            self.step(&mut machine, Event::Asked { cause, confirm: false });
        }
        self.step(&mut machine, Event::Woken);
        loop {
            let shown = self.unpublished.then(|| self.published + PROGRESS);
            let wake = machine.wake(Instant::now()).into_iter().chain(shown).min();
            let event = tokio::select! {
                () = self.stop.cancelled() => break,
                Some(done) = self.jobs.next(), if !self.jobs.is_empty() => match done {
                    Done::Connected(result) => self.connected(result),
                    Done::Event(event) => event,
                    Done::Nothing => continue,
                },
                marks = marks(self.session.clone()) => {
                    if marks.stream_ended && let Some(session) = self.session.clone() {
                        session.forget_stream().await;
                    }
                    Event::Hinted(marks)
                }
                Some(request) = asked.recv() => {
                    Event::Asked { cause: request.cause, confirm: request.confirm }
                }
                Some(()) = ticked.recv() => Event::Asked { cause: SyncCause::Schedule, confirm: false },
                () = tokio::time::sleep_until(wake.unwrap_or_else(far)), if wake.is_some() => Event::Woken,
            };
            self.step(&mut machine, event);
        }
        self.close().await;
    }

    fn machine_options(&self) -> Options {
        let follow = &self.server.follow;
        let limits = &self.limits;
        Options {
            own_folder: matches!(self.server.transport, config::Transport::Files { .. }),
            reads_in_flight: limits.reads_in_flight,
            relist_interval: limits.relist_interval,
            reread_interval: limits.reread_interval,
            recheck_interval: limits.recheck_interval,
            removal_confirmation: limits.removal_confirmation,
            backoff: self.backoff(),
            max_subscriptions: follow.max_subscriptions,
            trust: follow.trust,
            random: backoff::random_unit,
            wanted: url_filter(&follow.include, &follow.exclude),
            subscribed: url_filter(&follow.subscribe, &[]),
        }
    }

    fn backoff(&self) -> Backoff {
        Backoff { first: self.limits.retry_delay, longest: self.limits.max_retry_delay }
    }

    fn connected(&mut self, result: Result<Connection, SourceError>) -> Event {
        match result {
            Ok(Connection { session, certain }) => {
                if certain {
                    self.context.eras.remember(&self.server.name, session.era());
                }
                *control::write(&self.shared.session) = Some(session.clone());
                self.session = Some(session);
                Event::Connected
            }
            Err(error) => Event::ConnectFailed(error),
        }
    }

    /// Tells the machine, does what it says, and shows what has become of it.
    fn step(&mut self, machine: &mut Machine, event: Event) {
        match &event {
            Event::Read { uri, outcome, .. } => {
                let (server, uri) = (self.server.name.to_string(), uri.to_string());
                if let ReadOutcome::Replaced { .. } = outcome {
                    let (server, uri) = (server.clone(), uri.clone());
                    self.tell_later(control::Event::Indexed { server, uri });
                }
                if !matches!(outcome, ReadOutcome::Failed(_)) {
                    self.context.control.publish(control::Event::Read { server, uri });
                }
            }
            Event::Flushed(Ok(())) => {
                fault::point("sync.flushed");
                for told in self.untold.drain(..) {
                    self.context.control.publish(told);
                }
            }
            Event::Listed { result: Ok(listed), .. } => {
                fault::point("sync.listed");
                self.show_templates(&listed.listing);
            }
            _ => {}
        }
        for command in machine.on(event, Instant::now()) {
            self.carry_out(machine, command);
        }
        self.publish(machine);
    }

    fn tell_later(&mut self, event: control::Event) {
        if self.untold.len() < MAX_TOLD {
            self.untold.push(event);
        }
    }

    fn carry_out(&mut self, machine: &Machine, command: Command) {
        let session_number = machine.session();
        match command {
            Command::Connect => {
                let (server, mut options) = (self.server.clone(), self.connect_options.clone());
                options.remembered = self.context.eras.of(&server.name);
                self.job(async move { Done::Connected(connect(&server, &options).await) });
            }
            Command::Disconnect => {
                control::write(&self.shared.session).take();
                if let Some(session) = self.session.take() {
                    self.job(async move {
                        session.close().await;
                        Done::Nothing
                    });
                }
            }
            Command::List => {
                let configured = self.server.follow.templates.clone();
                let (control, name) = (self.context.control.clone(), self.server.name.clone());
                self.ask(move |session| async move {
                    let mut result = match session {
                        Some(session) => session.list(&configured).await,
                        None => Err(gone()),
                    };
                    if let Ok(listed) = &mut result {
                        added::extend(&mut listed.listing, &control.added.of(&name));
                    }
                    Event::Listed { session: session_number, result }
                });
            }
            Command::Follow(wanted) => self.ask(move |session| async move {
                let result = match session {
                    Some(session) => session.follow(&wanted).await,
                    None => Err(gone()),
                };
                Event::Followed { session: session_number, result }
            }),
            Command::Read(job) => self.read(job),
            Command::EnterByName { resource, reason } => {
                let entry = self.indexing().by_name(*resource, reason);
                self.hand_over(vec![Change::Replace(Box::new(entry))]);
            }
            Command::Remove(uris) => {
                fault::point("sync.removed");
                let server = self.server.name.clone();
                let key = |uri: &Uri| ResourceKey { server: server.clone(), uri: uri.clone() };
                let changes = uris.iter().map(|uri| Change::Remove(key(uri))).collect();
                for uri in &uris {
                    let (server, uri) = (server.to_string(), uri.to_string());
                    self.tell_later(control::Event::Removed { server, uri });
                }
                self.hand_over(changes);
            }
            Command::Flush => {
                let (writer, line) = (self.writer.clone(), self.line.clone());
                self.job(async move {
                    let _place = line.lock().await;
                    Done::Event(Event::Flushed(
                        writer.flush().await.map_err(|error| error.to_string()),
                    ))
                });
            }
            Command::Reload => {
                let (context, name) = (self.context.clone(), self.server.name.clone());
                let fingerprint = self.fingerprint;
                self.job(async move {
                    match load_catalog(context, name, fingerprint).await {
                        Ok(catalog) => Done::Event(Event::Reloaded(catalog)),
                        Err(_) => Done::Event(Event::Reloaded(Catalog::default())),
                    }
                });
            }
            Command::Notice(notice) => {
                if let Notice::Withheld(_) = notice {
                    *control::write(&self.shared.withheld) = machine.withheld_uris();
                }
                self.notice(notice);
            }
        }
    }

    fn job(&self, job: impl Future<Output = Done> + Send + 'static) {
        self.jobs.push(job.boxed());
    }

    /// Starts something that is asked of the server.
    fn ask<F>(&self, question: impl FnOnce(Option<Session>) -> F)
    where
        F: Future<Output = Event> + Send + 'static,
    {
        let answer = question(self.session.clone());
        self.job(answer.map(Done::Event));
    }

    fn hand_over(&self, changes: Vec<Change>) {
        let (writer, line) = (self.writer.clone(), self.line.clone());
        self.job(async move {
            let _place = line.lock().await;
            // A writer that has stopped tells so at the flush that follows.
            let _ = writer.submit(changes).await;
            Done::Nothing
        });
    }

    fn indexing(&self) -> Indexing {
        Indexing {
            server: self.server.name.clone(),
            limits: self.limits.clone(),
            fingerprint: self.fingerprint,
            policies: self.policies.clone(),
            store: self.context.store.clone(),
            workers: self.context.workers.clone(),
        }
    }

    fn read(&self, job: ReadJob) {
        let (indexing, writer) = (self.indexing(), self.writer.clone());
        let permits = self.context.reads.clone();
        self.ask(move |session| async move {
            let (ticket, uri) = (job.ticket, job.uri.clone());
            let mut got = Got::default();
            let outcome = match session {
                Some(session) => {
                    // The permit is for the server's answer only; it is never closed.
                    let permit = permits.acquire_owned().await.ok();
                    let at = Utc::now();
                    let snapshot = session.read(&uri).await;
                    drop(permit);
                    fault::point("sync.read");
                    match snapshot {
                        Ok(snapshot) => {
                            got = Got { bytes: snapshot.bytes(), at, fresh: snapshot.fresh };
                            indexing.index(job, snapshot, at, &writer).await
                        }
                        Err(error) => ReadOutcome::Failed(error),
                    }
                }
                None => ReadOutcome::Failed(gone()),
            };
            Event::Read { ticket, uri, got, outcome }
        });
    }

    /// Ends the session and waits for what is left of it.
    async fn close(mut self) {
        control::write(&self.shared.session).take();
        // Connections under way end with their futures, their children in the background.
        self.jobs.clear();
        if let Some(session) = self.session.take() {
            session.close().await;
        }
    }
}

/// The marks of the present session; never, while there is none.
async fn marks(session: Option<Session>) -> Marks {
    match session {
        Some(session) => session.hints().take().await,
        None => std::future::pending().await,
    }
}

async fn load_catalog(
    context: Arc<Context>,
    name: ServerName,
    fingerprint: Fingerprint,
) -> Result<Catalog, String> {
    let load =
        move || context.store.manifests(&name).map(|found| Catalog::load(found, fingerprint));
    match tokio::task::spawn_blocking(load).await {
        Ok(loaded) => loaded.map_err(|error| error.to_string()),
        Err(panic) => Err(panic.to_string()),
    }
}

fn gone() -> SourceError {
    SourceError::Disconnected { reason: "the session has ended".into() }
}

fn far() -> Instant {
    Instant::now() + Duration::from_secs(3_600)
}

/// Whether a URI passes the config's globs. The config has checked them, so one that can't be read
/// here lets everything pass.
fn url_filter(include: &[String], exclude: &[String]) -> Box<dyn Fn(&str) -> bool + Send> {
    let set = |patterns: &[String]| config::globs(patterns).ok().flatten();
    let (include, exclude) = (set(include), set(exclude));
    Box::new(move |uri| {
        include.as_ref().is_none_or(|set| set.is_match(uri))
            && !exclude.as_ref().is_some_and(|set| set.is_match(uri))
    })
}
