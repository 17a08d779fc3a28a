//! What a server's task does next: a state machine over a closed set of events. Pure: it sends,
//! reads and waits for nothing, and the clock is the caller's.
//!
//! Every way back to truth is one way: *connected, listed, subscribed, read*. A start, a lost
//! connection, a lost stream, a schedule's tick, a request and a notification differ only in how much
//! of the listing they have read ([`Depth`]) and how soon they are due.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use tokio::time::Instant;

use super::backoff::{self, Backoff};
use super::catalog::{Catalog, Known, Reading};
use super::dirty::{Dirty, Line};
use super::plan::{self, Depth, Terms};
use crate::index::description_hash;
use crate::model::{ContentHash, Resource, ServerState, SyncCause, SyncCounts, Uri};
use crate::source::SourceError;
use crate::source::mcp::Listed;
use crate::source::mcp::hints::Marks;

/// What a server's task is told.
#[derive(Debug)]
pub enum Event {
    /// The task begins, or its commands have to be asked for again.
    Woken,
    Connected,
    ConnectFailed(SourceError),
    /// What the server said may have changed, or that the session has ended.
    Hinted(Marks),
    /// The schedule, a reload or somebody asks for a reconciliation.
    Asked {
        cause: SyncCause,
        confirm: bool,
    },
    Listed {
        session: u64,
        result: Result<Listed, SourceError>,
    },
    Followed {
        session: u64,
        result: Result<Vec<Uri>, SourceError>,
    },
    Read {
        ticket: Ticket,
        uri: Uri,
        outcome: ReadOutcome,
    },
    /// All that was handed to the index before is on disk, or isn't.
    Flushed(Result<(), String>),
    /// The catalog was loaded anew, after the index failed.
    Reloaded(Catalog),
}

/// What was so when a read began, to tell what comes too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    session: u64,
    /// Counts failures of the index: what was handed over before one is lost.
    epoch: u64,
    line: Line,
}

/// How a read ended.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadOutcome {
    /// The content and the description are those that the index holds.
    Unchanged,
    /// Handed to the index.
    Replaced {
        hash: ContentHash,
        description: u64,
        skipped: bool,
    },
    Failed(SourceError),
}

/// What a server's task is to do. Each leads to an event, but for those that say otherwise.
#[derive(Debug, PartialEq)]
pub enum Command {
    Connect,
    /// Ends the session. No event.
    Disconnect,
    List,
    Follow(BTreeSet<Uri>),
    Read(ReadJob),
    /// Enters a resource that can't be read by its name, with the reason. No event.
    EnterByName {
        resource: Box<Resource>,
        reason: String,
    },
    /// Removes from the index. No event.
    Remove(Vec<Uri>),
    /// Makes the index durable.
    Flush,
    /// Loads the catalog anew.
    Reload,
    Notice(Notice),
}

/// A resource to be read, and what the index holds of it.
#[derive(Debug, PartialEq)]
pub struct ReadJob {
    pub ticket: Ticket,
    pub uri: Uri,
    pub hash: Option<ContentHash>,
    pub description: u64,
    /// The newest description; none when the index's own is.
    pub resource: Option<Box<Resource>>,
}

/// What is worth telling.
#[derive(Debug, PartialEq)]
pub enum Notice {
    Listing {
        cause: SyncCause,
        resources: u64,
        complete: bool,
    },
    Withheld(u64),
    Reconnect {
        attempt: u32,
    },
    Error(String),
    /// A reconciliation has ended: every read was tried, and it is on disk.
    Synced {
        cause: SyncCause,
    },
}

/// What the machine is made of.
pub struct Options {
    /// A folder of our own: its listings are believed.
    pub own_folder: bool,
    pub reads_in_flight: usize,
    pub relist_interval: Duration,
    pub reread_interval: Duration,
    pub removal_confirmation: Duration,
    pub backoff: Backoff,
    pub max_subscriptions: usize,
    /// A number from 0 to 1, anew at each call: what back-offs are spread by.
    pub random: fn() -> f64,
    /// Whether the config lets a URI in.
    pub wanted: Box<dyn Fn(&str) -> bool + Send>,
    /// Whether the config wants a URI subscribed to.
    pub subscribed: Box<dyn Fn(&str) -> bool + Send>,
}

/// After hints were lost, everything is read again, but not more often than this.
const RECHECK_INTERVAL: Duration = Duration::from_secs(60);

/// A session that held for so long wipes out the failures before it.
const HEALTHY: Duration = Duration::from_secs(600);

/// Time-outs in a row after which a connection is built anew.
const TIMEOUTS: u32 = 3;

/// A failed index is left alone as long as a connection that failed so many times.
const INDEX_FAILURES: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Link {
    Down { until: Instant, state: ServerState },
    Connecting,
    Up { since: Instant },
}

/// A reconciliation that is wanted or under way.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Want {
    cause: SyncCause,
    depth: Depth,
    confirm: bool,
    due: Instant,
}

impl Want {
    fn merge(self, other: Want) -> Want {
        let deeper = if other.depth > self.depth { other } else { self };
        Want {
            cause: deeper.cause,
            depth: deeper.depth,
            confirm: self.confirm || other.confirm,
            due: self.due.min(other.due),
        }
    }
}

/// Where a reconciliation stands.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// None is under way.
    Idle,
    Listing(Want),
    Following(Want),
    Reading(Want),
    Flushing(Want),
}

struct Withheld {
    uris: HashSet<Uri>,
    /// When a listing that agrees is believed.
    from: Instant,
}

/// The state of one server's task.
pub struct Machine {
    options: Options,
    catalog: Catalog,
    dirty: Dirty,
    link: Link,
    /// Counts sessions, so that what an old one brings late is told apart.
    session: u64,
    phase: Phase,
    want: Option<Want>,
    /// Before this, notifications lead to no listing.
    relist_from: Instant,
    recheck_from: Instant,
    withheld: Option<Withheld>,
    /// What the present plan wants read; waits for the subscriptions.
    reads: Vec<Uri>,
    in_flight: usize,
    /// Reads in flight that belong to the present plan.
    planned_in_flight: usize,
    allowed: usize,
    /// No read is started before this: the server is overloaded.
    pause_until: Instant,
    unflushed: bool,
    flushing: bool,
    /// Counts flushes from 1; what was handed over after the n-th is on disk with the next.
    flushes: u32,
    /// The last flush that succeeded; 1 is the beginning.
    saved: u32,
    /// What was removed since, and after which flush.
    removed: Vec<(u32, Uri)>,
    index_failed: bool,
    epoch: u64,
    connect_failures: u32,
    list_failures: u32,
    timeouts: u32,
    no_listing: bool,
    incomplete: bool,
    synced_once: bool,
    last_error: Option<SourceError>,
    problems: Vec<String>,
    planned: u64,
    counts: SyncCounts,
    commands: Vec<Command>,
}

impl Machine {
    pub fn new(options: Options, catalog: Catalog, now: Instant) -> Self {
        let want = Want { cause: SyncCause::Startup, depth: Depth::All, confirm: false, due: now };
        Self {
            dirty: Dirty::new(options.reread_interval),
            allowed: options.reads_in_flight,
            options,
            catalog,
            link: Link::Down { until: now, state: ServerState::Connecting },
            session: 0,
            phase: Phase::Idle,
            want: Some(want),
            relist_from: now,
            recheck_from: now,
            withheld: None,
            reads: vec![],
            in_flight: 0,
            planned_in_flight: 0,
            pause_until: now,
            unflushed: false,
            flushing: false,
            flushes: 1,
            saved: 1,
            removed: vec![],
            index_failed: false,
            epoch: 0,
            connect_failures: 0,
            list_failures: 0,
            timeouts: 0,
            no_listing: false,
            incomplete: false,
            synced_once: false,
            last_error: None,
            problems: vec![],
            planned: 0,
            counts: SyncCounts::default(),
            commands: vec![],
        }
    }

    /// Takes an event and says what is to be done.
    pub fn on(&mut self, event: Event, now: Instant) -> Vec<Command> {
        match event {
            Event::Woken => {}
            Event::Connected => self.connected(now),
            Event::ConnectFailed(error) => self.down(error, now),
            Event::Hinted(marks) => self.hinted(marks, now),
            Event::Asked { cause, confirm } => self.asked(cause, confirm, now),
            Event::Listed { session, result } if session == self.session => {
                self.listed(result, now)
            }
            Event::Followed { session, result } if session == self.session => {
                self.followed(result, now)
            }
            Event::Listed { .. } | Event::Followed { .. } => {}
            Event::Read { ticket, uri, outcome } => self.read(ticket, &uri, outcome, now),
            Event::Flushed(result) => self.flushed(result, now),
            Event::Reloaded(catalog) => self.reloaded(catalog, now),
        }
        self.proceed(now);
        std::mem::take(&mut self.commands)
    }

    /// When [`Event::Woken`] is due, if nothing else comes before.
    pub fn wake(&self, now: Instant) -> Option<Instant> {
        let connect = match self.link {
            Link::Down { until, .. } => Some(until),
            _ => None,
        };
        let up = matches!(self.link, Link::Up { .. });
        let list = self.want.filter(|_| up && self.phase == Phase::Idle).map(|want| want.due);
        let read =
            self.dirty.next_due(now).filter(|_| self.may_read() && self.in_flight < self.allowed);
        let read = read.map(|due| due.max(self.pause_until));
        [connect, list, read].into_iter().flatten().min()
    }

    /// The number of the present session.
    pub fn session(&self) -> u64 {
        self.session
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Which resources became stale, or no longer are, since this was last asked.
    pub fn take_stale_flips(&mut self) -> Vec<(Uri, bool)> {
        self.catalog.take_stale_flips()
    }

    pub fn counts(&self) -> SyncCounts {
        self.counts
    }

    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    pub fn withheld(&self) -> u64 {
        self.withheld.as_ref().map_or(0, |withheld| withheld.uris.len() as u64)
    }

    /// The last error, until the server is `live` again.
    pub fn last_error(&self) -> Option<&SourceError> {
        self.last_error.as_ref()
    }

    /// Reads of the present plan: how many are done, of how many.
    pub fn progress(&self) -> (u64, u64) {
        let left = (self.reads.len() + self.dirty.planned() + self.planned_in_flight) as u64;
        (self.planned.saturating_sub(left), self.planned)
    }

    pub fn state(&self) -> ServerState {
        match (self.link, self.phase) {
            (Link::Down { state, .. }, _) => state,
            (Link::Connecting, _) => ServerState::Connecting,
            (Link::Up { .. }, Phase::Listing(_)) => match self.synced_once {
                // A look at a listing that turns out unchanged isn't worth a change of state.
                true => self.settled(),
                false => ServerState::Listing,
            },
            (
                Link::Up { .. },
                Phase::Following(want) | Phase::Reading(want) | Phase::Flushing(want),
            ) => match self.synced_once && want.depth == Depth::New {
                true => self.settled(),
                false => ServerState::Syncing,
            },
            (Link::Up { .. }, Phase::Idle) => self.settled(),
        }
    }

    /// The state between reconciliations.
    fn settled(&self) -> ServerState {
        match () {
            () if !self.synced_once && self.list_failures == 0 => ServerState::Listing,
            () if self.list_failures > 0 || self.incomplete || self.index_failed => {
                ServerState::Backoff
            }
            () if self.no_listing && self.catalog.is_empty() => ServerState::NoListing,
            () => ServerState::Live,
        }
    }

    fn connected(&mut self, now: Instant) {
        self.session += 1;
        self.counts.connects += 1;
        self.timeouts = 0;
        self.link = Link::Up { since: now };
        self.want(SyncCause::Startup, Depth::All, now);
    }

    /// The connection is gone, or can't be had.
    fn down(&mut self, error: SourceError, now: Instant) {
        match self.link {
            Link::Down { .. } => return,
            Link::Up { since } if now.duration_since(since) >= HEALTHY => self.connect_failures = 0,
            _ => {}
        }
        self.connect_failures += 1;
        let longest = self.options.backoff.longest;
        let (state, wait) = match &error {
            // Whoever has to mend that asks for another attempt by hand.
            SourceError::NeedsAuth { .. } => (ServerState::NeedsAuth, longest),
            SourceError::CannotStart { .. } => {
                (ServerState::Failed, self.options.backoff.delay(self.connect_failures))
            }
            SourceError::Overloaded { retry_after: Some(seconds), .. } => {
                (ServerState::Backoff, Duration::from_secs((*seconds).clamp(1, 300)))
            }
            _ => (ServerState::Backoff, self.options.backoff.delay(self.connect_failures)),
        };
        let wait = backoff::jittered(wait, (self.options.random)());
        self.link = Link::Down { until: now + wait, state };
        // What the old session brings late is not for the next one.
        self.session += 1;
        self.phase = Phase::Idle;
        self.commands.push(Command::Disconnect);
        self.commands.push(Command::Notice(Notice::Reconnect { attempt: self.connect_failures }));
        self.want(SyncCause::Startup, Depth::All, now);
        self.failed(error);
    }

    fn failed(&mut self, error: SourceError) {
        self.commands.push(Command::Notice(Notice::Error(error.to_string())));
        self.last_error = Some(error);
    }

    fn hinted(&mut self, marks: Marks, now: Instant) {
        self.counts.notifications += marks.notifications;
        if let Some(reason) = marks.closed {
            return self.down(SourceError::Disconnected { reason }, now);
        }
        for uri in marks.uris {
            match self.catalog.owner(&uri) {
                Some(owner) => {
                    // The server says that the owner changed, or something that it stands above.
                    self.mark(&owner, now);
                    if *owner != *uri {
                        self.want_relisting(now);
                    }
                }
                None if (self.options.wanted)(&uri) => self.want_relisting(now),
                None => {}
            }
        }
        if marks.list {
            self.want_relisting(now);
        }
        if marks.everything {
            let due = self.recheck_from.max(now);
            self.add_want(Want {
                cause: SyncCause::Notification,
                depth: Depth::All,
                confirm: false,
                due,
            });
        }
    }

    fn mark(&mut self, uri: &Uri, now: Instant) {
        let in_flight = self.catalog.change(uri, |known| {
            let in_flight = known.reading != Reading::No;
            if in_flight {
                known.reading = Reading::Again;
            }
            in_flight
        });
        if !in_flight {
            self.dirty.mark(uri.clone(), now);
        }
    }

    fn want_relisting(&mut self, now: Instant) {
        let due = self.relist_from.max(now);
        self.add_want(Want {
            cause: SyncCause::Notification,
            depth: Depth::New,
            confirm: false,
            due,
        });
    }

    fn want(&mut self, cause: SyncCause, depth: Depth, due: Instant) {
        self.add_want(Want { cause, depth, confirm: false, due });
    }

    fn add_want(&mut self, want: Want) {
        self.want = Some(self.want.map_or(want, |old| old.merge(want)));
    }

    fn asked(&mut self, cause: SyncCause, confirm: bool, now: Instant) {
        self.add_want(Want { cause, depth: Depth::All, confirm, due: now });
        // Whoever asks has perhaps mended what was wrong.
        if let Link::Down { until, .. } = &mut self.link
            && cause != SyncCause::Schedule
        {
            *until = now;
        }
    }

    /// A request failed with something that concerns the connection as a whole.
    fn connection_failed(&mut self, error: &SourceError, now: Instant) -> bool {
        match error {
            SourceError::Disconnected { .. } | SourceError::NeedsAuth { .. } => {
                self.down(error.clone(), now);
                true
            }
            SourceError::TimedOut { .. } => {
                self.timeouts += 1;
                let enough = self.timeouts >= TIMEOUTS;
                if enough {
                    self.down(error.clone(), now);
                }
                enough
            }
            _ => {
                self.timeouts = 0;
                false
            }
        }
    }

    fn listed(&mut self, result: Result<Listed, SourceError>, now: Instant) {
        let Phase::Listing(want) = self.phase else { return };
        let Listed { listing, no_listing } = match result {
            Ok(listed) => listed,
            Err(error) => {
                self.phase = Phase::Idle;
                if self.connection_failed(&error, now) {
                    return;
                }
                self.list_failures += 1;
                self.want(
                    want.cause,
                    want.depth,
                    now + self.options.backoff.delay(self.list_failures),
                );
                return self.failed(error);
            }
        };
        self.timeouts = 0;
        self.counts.listings += 1;
        self.no_listing = no_listing;
        self.problems.clone_from(&listing.problems);
        let complete = listing.complete && listing.expansions_complete;
        self.incomplete = !complete;
        match complete {
            true => self.list_failures = 0,
            false => {
                self.list_failures += 1;
                self.want(
                    want.cause,
                    Depth::New,
                    now + self.options.backoff.delay(self.list_failures + 4),
                );
                let reason =
                    self.problems.first().cloned().unwrap_or_else(|| "no reason is known".into());
                self.last_error = Some(SourceError::BadAnswer {
                    what: "the listing is incomplete".into(),
                    reason,
                });
            }
        }
        let resources = listing.resources.len() as u64;
        self.commands.push(Command::Notice(Notice::Listing {
            cause: want.cause,
            resources,
            complete,
        }));
        let absent_before =
            self.withheld.as_ref().filter(|withheld| now >= withheld.from).map(|w| &w.uris);
        let plan = plan::plan(
            &self.catalog,
            listing,
            Terms {
                depth: want.depth,
                absent_before,
                trusting: self.options.own_folder || want.confirm,
                wanted: &*self.options.wanted,
            },
        );
        self.withhold(plan.withheld, now);
        self.apply_listing(plan.listed, &plan.unconfirmed);
        self.remove(plan.removals);
        self.planned = plan.reads.len() as u64;
        self.reads = plan.reads;
        self.phase = Phase::Following(want);
        let followed = self.followable();
        self.commands.push(Command::Follow(followed));
    }

    /// Keeps what a listing says of each resource that the index doesn't hold as described.
    fn apply_listing(&mut self, listed: Vec<Resource>, unconfirmed: &[Uri]) {
        let missing: Vec<Uri> = self
            .catalog
            .iter()
            .filter(|(_, known)| known.listed)
            .map(|(uri, _)| uri.clone())
            .collect();
        for uri in missing {
            self.catalog.change(&uri, |known| known.listed = false);
        }
        for resource in listed {
            let description = description_hash(&resource);
            let template = plan::template_of(&resource.origin).map(Into::into);
            self.catalog.change(&resource.uri.clone(), |known| {
                known.listed = true;
                known.doomed = false;
                // Absent before and back again, it is as good as its last read.
                known.stale &= known.failures > 0;
                known.template = template;
                if !known.stored || known.hash.is_none() || known.description != description {
                    known.pending = Some(Box::new(resource));
                }
            });
        }
        for uri in unconfirmed {
            self.catalog.change(uri, |known| known.stale = true);
        }
    }

    fn withhold(&mut self, uris: Vec<Uri>, now: Instant) {
        if uris.is_empty() {
            self.withheld = None;
            return;
        }
        for uri in &uris {
            self.catalog.change(uri, |known| known.stale = true);
        }
        let count = uris.len() as u64;
        let from = match &self.withheld {
            Some(earlier) if earlier.from > now => earlier.from,
            _ => now + self.options.removal_confirmation,
        };
        self.withheld = Some(Withheld { uris: uris.into_iter().collect(), from });
        self.want(SyncCause::Confirmation, Depth::New, from);
        self.commands.push(Command::Notice(Notice::Withheld(count)));
    }

    fn remove(&mut self, uris: Vec<Uri>) {
        for uri in &uris {
            self.dirty.forget(uri);
            if self.catalog.get(uri).is_some_and(|known| known.reading != Reading::No) {
                // The read that is under way may still hand something over.
                self.catalog.change(uri, |known| {
                    *known = Known { reading: known.reading, doomed: true, ..Known::default() };
                });
            } else {
                self.catalog.remove(uri);
            }
        }
        if !uris.is_empty() {
            self.counts.removed += uris.len() as u64;
            self.hand_removals(uris);
        }
    }

    fn hand_removals(&mut self, uris: Vec<Uri>) {
        self.unflushed = true;
        self.removed.extend(uris.iter().map(|uri| (self.flushes, uri.clone())));
        self.commands.push(Command::Remove(uris));
    }

    /// What is to be subscribed to: what is listed and the config wants, up to its cap.
    fn followable(&self) -> BTreeSet<Uri> {
        let listed = self.catalog.iter().filter(|(_, known)| known.listed);
        let mut uris: Vec<&Uri> =
            listed.map(|(uri, _)| uri).filter(|uri| (self.options.subscribed)(uri)).collect();
        uris.sort_unstable();
        uris.truncate(self.options.max_subscriptions);
        uris.into_iter().cloned().collect()
    }

    fn followed(&mut self, result: Result<Vec<Uri>, SourceError>, now: Instant) {
        let Phase::Following(want) = self.phase else { return };
        match result {
            Ok(failed) => {
                if let Some(first) = failed.first() {
                    let all = failed.len();
                    self.problems
                        .push(format!("{all} subscriptions were refused, the first is {first}"));
                }
            }
            Err(error) => {
                if self.connection_failed(&error, now) {
                    return;
                }
                // Without push, the schedule keeps it true.
                self.problems.push(format!("changes can't be subscribed to: {error}"));
            }
        }
        // Only now, so that no change falls between a read and its subscription.
        self.dirty.plan(std::mem::take(&mut self.reads));
        self.phase = Phase::Reading(want);
    }

    fn may_read(&self) -> bool {
        matches!(self.link, Link::Up { .. }) && !self.index_failed
    }

    fn read(&mut self, ticket: Ticket, uri: &Uri, outcome: ReadOutcome, now: Instant) {
        self.in_flight -= 1;
        self.planned_in_flight -= usize::from(ticket.line == Line::Bulk);
        self.counts.reads += 1;
        let (again, doomed) = self.catalog.change(uri, |known| {
            let again = std::mem::take(&mut known.reading) == Reading::Again;
            (again, known.doomed)
        });
        if doomed {
            self.catalog.remove(uri);
            if matches!(outcome, ReadOutcome::Replaced { .. }) {
                self.hand_removals(vec![uri.clone()]);
            }
            return;
        }
        match outcome {
            ReadOutcome::Replaced { .. } if ticket.epoch != self.epoch => {
                // The index failed about when it was handed over: it may be there or not.
                self.unflushed = true;
                let handed = self.flushes;
                self.catalog.change(uri, |known| {
                    (known.stored, known.hash, known.handed) = (true, None, handed)
                });
                self.dirty.mark(uri.clone(), now);
            }
            ReadOutcome::Unchanged => {
                self.counts.unchanged += 1;
                self.succeeded(uri, |_| ());
            }
            ReadOutcome::Replaced { hash, description, skipped } => {
                self.counts.indexed += 1;
                self.unflushed = true;
                let flushes = self.flushes;
                self.succeeded(uri, |known| {
                    known.handed = flushes;
                    (known.hash, known.description) = (Some(hash), description);
                    (known.stored, known.skipped) = (true, skipped);
                    if known
                        .pending
                        .as_ref()
                        .is_some_and(|new| description_hash(new) == description)
                    {
                        known.pending = None;
                    }
                });
            }
            ReadOutcome::Failed(error) => self.read_failed(ticket.session, uri, error, now),
        }
        if again {
            self.mark(uri, now);
        }
    }

    fn succeeded(&mut self, uri: &Uri, change: impl FnOnce(&mut Known)) {
        self.timeouts = 0;
        self.allowed = (self.allowed + 1).min(self.options.reads_in_flight);
        self.catalog.change(uri, |known| {
            (known.failures, known.not_found, known.stale) = (0, 0, false);
            change(known);
        });
    }

    fn read_failed(&mut self, session: u64, uri: &Uri, error: SourceError, now: Instant) {
        if session != self.session {
            // The session ended under it. The next one reads everything anyway.
            return;
        }
        match &error {
            SourceError::Disconnected { .. } => return self.down(error, now),
            SourceError::Overloaded { retry_after, .. } => {
                let wait = Duration::from_secs(retry_after.unwrap_or(1).clamp(1, 300));
                self.allowed = (self.allowed / 2).max(1);
                self.pause_until = now + wait;
                self.dirty.mark_at(uri.clone(), self.pause_until);
                return;
            }
            _ => {}
        }
        self.counts.read_failures += 1;
        let is_not_found = matches!(error, SourceError::NotFound { .. });
        let (failures, not_found, gone) = self.catalog.change(uri, |known| {
            known.stale = true;
            known.failures = known.failures.saturating_add(1);
            known.not_found = if is_not_found { known.not_found.saturating_add(1) } else { 0 };
            (known.failures, known.not_found, known.template.is_some() && known.not_found >= 2)
        });
        if self.connection_failed(&error, now) {
            return;
        }
        if gone && !self.index_failed {
            // No listing holds an expansion, so its own word counts, the second time.
            return self.remove(vec![uri.clone()]);
        }
        if not_found.is_power_of_two() {
            // Gone, or a server that lists what it doesn't find: seldomer and seldomer.
            self.want_relisting(now);
        }
        // Not once more a second for ever: ten seconds, twenty, … up to five minutes.
        let wait = self
            .options
            .backoff
            .delay(u32::from(failures))
            .saturating_mul(10)
            .min(self.options.backoff.longest);
        self.dirty.mark_at(uri.clone(), now + wait);
        self.enter_by_name(uri, &error);
        self.last_error = Some(error);
    }

    /// What was never read is found by its name at least.
    fn enter_by_name(&mut self, uri: &Uri, error: &SourceError) {
        if self.index_failed {
            // It will be read again when the index is well.
            return;
        }
        let flushes = self.flushes;
        let resource = self.catalog.change(uri, |known| {
            if known.stored {
                return None;
            }
            let resource = known.pending.clone()?;
            (known.stored, known.skipped, known.handed) = (true, true, flushes);
            known.description = description_hash(&resource);
            Some(resource)
        });
        if let Some(resource) = resource {
            self.unflushed = true;
            let reason = format!("it couldn't be read: {error}");
            self.commands.push(Command::EnterByName { resource, reason });
        }
    }

    fn flushed(&mut self, result: Result<(), String>, now: Instant) {
        self.flushing = false;
        match result {
            Ok(()) => {
                self.saved = self.flushes;
                self.removed.retain(|(handed, _)| *handed >= self.flushes);
                if let Phase::Flushing(want) = self.phase
                    && !self.unflushed
                {
                    self.settle(want, now);
                }
            }
            Err(reason) => {
                // What the index holds is not what was handed over: begin from what it holds.
                self.index_failed = true;
                self.epoch += 1;
                self.phase = Phase::Idle;
                self.commands.push(Command::Reload);
                self.failed(SourceError::BadAnswer { what: "the index".into(), reason });
            }
        }
    }

    /// Begins again from what the index holds. What was handed over since the last good flush may be
    /// there or may still come, so it counts as there with a content that isn't known.
    fn reloaded(&mut self, catalog: Catalog, now: Instant) {
        let mut old = std::mem::replace(&mut self.catalog, catalog);
        self.catalog.adopt_stale_flips(&mut old);
        for (uri, known) in old.iter() {
            let (reading, handed) = (known.reading != Reading::No, known.handed);
            if handed >= self.saved {
                self.catalog
                    .change(uri, |new| (new.stored, new.hash, new.handed) = (true, None, handed));
            }
            if reading {
                // It keeps its place, so that no other read is started beside it.
                self.catalog.change(uri, |new| new.reading = Reading::Again);
            }
        }
        for (_, uri) in &self.removed {
            if self.catalog.get(uri).is_some() {
                self.catalog.change(uri, |new| new.hash = None);
            }
        }
        self.reads.clear();
        self.dirty.plan([]);
        self.index_failed = false;
        self.want(SyncCause::Startup, Depth::All, now + self.options.backoff.delay(INDEX_FAILURES));
    }

    fn settle(&mut self, want: Want, now: Instant) {
        self.phase = Phase::Idle;
        self.synced_once = true;
        if want.depth == Depth::All {
            self.recheck_from = now + RECHECK_INTERVAL;
        }
        let failing = self.catalog.counts().stale > 0;
        if self.settled() == ServerState::Live && !failing {
            self.last_error = None;
        }
        self.commands.push(Command::Notice(Notice::Synced { cause: want.cause }));
    }

    /// Does all that can be done now.
    fn proceed(&mut self, now: Instant) {
        if let Link::Down { until, .. } = self.link
            && until <= now
        {
            self.link = Link::Connecting;
            self.commands.push(Command::Connect);
        }
        if !matches!(self.link, Link::Up { .. }) {
            return;
        }
        if self.phase == Phase::Idle
            && !self.index_failed
            && let Some(want) = self.want.take_if(|want| want.due <= now)
        {
            self.relist_from = now + self.options.relist_interval;
            self.phase = Phase::Listing(want);
            self.commands.push(Command::List);
        }
        while self.may_read() && self.in_flight < self.allowed && now >= self.pause_until {
            let Some((uri, line)) = self.dirty.next(now) else { break };
            self.start_read(&uri, line);
        }
        if let Phase::Reading(want) = self.phase
            && self.dirty.planned() == 0
            && self.planned_in_flight == 0
        {
            self.phase = Phase::Flushing(want);
            if !self.unflushed && !self.flushing {
                self.settle(want, now);
            }
        }
        let asked_for = self.in_flight == 0 || matches!(self.phase, Phase::Flushing(_));
        if self.unflushed && !self.flushing && !self.index_failed && asked_for {
            (self.unflushed, self.flushing) = (false, true);
            self.flushes += 1;
            self.commands.push(Command::Flush);
        }
    }

    fn start_read(&mut self, uri: &Uri, line: Line) {
        let Some(known) = self.catalog.get(uri) else { return };
        if known.reading != Reading::No {
            // One at a time; what is under way may have begun before the change.
            return self.catalog.change(uri, |known| known.reading = Reading::Again);
        }
        self.in_flight += 1;
        self.planned_in_flight += usize::from(line == Line::Bulk);
        let ticket = Ticket { session: self.session, epoch: self.epoch, line };
        let job = self.catalog.change(uri, |known| {
            known.reading = Reading::Yes;
            ReadJob {
                ticket,
                uri: uri.clone(),
                hash: known.hash.filter(|_| known.stored),
                description: known.description,
                resource: known.pending.clone(),
            }
        });
        self.commands.push(Command::Read(job));
    }
}

#[cfg(test)]
mod tests;
