//! What a server's task does next: a state machine over a closed set of events. Pure: it sends,
//! reads and waits for nothing, and the clock is the caller's.
//!
//! Every way back to truth is one way: *connected, listed, subscribed, read*. A start, a lost
//! connection, a lost stream, a schedule's tick, a request and a notification differ only in how much
//! of the listing they have read ([`Depth`]) and how soon they are due.

mod connection;
mod hints;
mod lag;
mod listing;
mod reading;
mod saving;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::backoff::Backoff;
use super::catalog::Catalog;
use super::dirty::{Dirty, Line};
use super::plan::Depth;
use super::trust::Sparing;
use crate::config::Trust;
use crate::model::{ContentHash, Resource, ServerState, SyncCause, SyncCounts, SyncQueue, Uri};
use crate::source::SourceError;
use crate::source::mcp::Listed;
use crate::source::mcp::hints::Marks;
use lag::Lags;
pub(super) use listing::MAX_WARNINGS;

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
        got: Got,
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
    /// When the read began.
    begun: Instant,
    /// When the first notification came that this read answers.
    told: Option<Instant>,
}

/// What a read brought, besides its content.
#[derive(Clone, Copy, Debug, Default)]
pub struct Got {
    /// Bytes of content.
    pub bytes: u64,
    /// When it began.
    pub at: DateTime<Utc>,
    /// How long it stays as it is, as the server says.
    pub fresh: Option<Duration>,
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
        mislabelled: bool,
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
    /// One of many, perhaps.
    ReadFailed(String),
    /// For the server's owner; said once, until it has been otherwise.
    Warning(String),
    /// What a notification told is searchable now, so long after it.
    Searchable(Duration),
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
    /// After hints were lost, everything is read again, but not more often than this.
    pub recheck_interval: Duration,
    pub removal_confirmation: Duration,
    pub backoff: Backoff,
    pub max_subscriptions: usize,
    pub trust: Trust,
    /// A number from 0 to 1, anew at each call: what back-offs are spread by.
    pub random: fn() -> f64,
    /// Whether the config lets a URI in.
    pub wanted: Box<dyn Fn(&str) -> bool + Send>,
    /// Whether the config wants a URI subscribed to.
    pub subscribed: Box<dyn Fn(&str) -> bool + Send>,
}

/// A session that held for so long wipes out the failures before it.
const HEALTHY: Duration = Duration::from_secs(600);

/// Time-outs in a row after which a connection is built anew.
const TIMEOUTS: u32 = 3;

/// The longest that something waits for its flush while others are read.
const FLUSH: Duration = Duration::from_secs(1);

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
    /// What of [`Depth::All`] may be left out.
    sparing: Sparing,
    confirm: bool,
    due: Instant,
}

impl Want {
    fn merge(self, other: Want) -> Want {
        let deeper = if other.depth > self.depth { other } else { self };
        let sparing = match self.depth == other.depth {
            true => self.sparing.min(other.sparing),
            false => deeper.sparing,
        };
        Want {
            cause: deeper.cause,
            depth: deeper.depth,
            sparing,
            confirm: self.confirm || other.confirm,
            due: self.due.min(other.due),
        }
    }
}

impl Want {
    fn new(cause: SyncCause, depth: Depth, due: Instant) -> Want {
        Want { cause, depth, sparing: Sparing::of(cause), confirm: false, due }
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

impl Phase {
    fn want(self) -> Option<Want> {
        match self {
            Self::Idle => None,
            Self::Listing(want)
            | Self::Following(want)
            | Self::Reading(want)
            | Self::Flushing(want) => Some(want),
        }
    }
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
    lags: Lags,
    /// Until when resources stay as they were read, as the server says and the config trusts.
    fresh: HashMap<Uri, Instant>,
    /// When the first notification came that the next listing answers, and the present one.
    list_told: Option<Instant>,
    listing_told: Option<Instant>,
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
    /// When what was handed over is flushed, though reads are still under way.
    flush_from: Option<Instant>,
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
    /// What is said of resources of another MIME type than is declared.
    mislabelled: Option<String>,
    planned: u64,
    counts: SyncCounts,
    commands: Vec<Command>,
}

impl Machine {
    pub fn new(options: Options, catalog: Catalog, now: Instant) -> Self {
        let want = Want::new(SyncCause::Startup, Depth::All, now);
        Self {
            dirty: Dirty::new(options.reread_interval),
            allowed: options.reads_in_flight,
            options,
            catalog,
            lags: Lags::default(),
            fresh: HashMap::new(),
            list_told: None,
            listing_told: None,
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
            flush_from: None,
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
            mislabelled: None,
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
            Event::Read { ticket, uri, got, outcome } => {
                self.counts.bytes_read += got.bytes;
                self.read(ticket, &uri, got, outcome, now);
            }
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
        let flush = self.flush_from.filter(|_| up && !self.flushing && !self.index_failed);
        [connect, list, read, flush].into_iter().flatten().min()
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

    /// What the server's owner should know, be it one fault or a kind of them with a count.
    pub fn warnings(&self) -> impl Iterator<Item = &String> {
        self.problems.iter().chain(&self.mislabelled)
    }

    /// The URIs whose removal waits for a second listing, sorted.
    pub fn withheld_uris(&self) -> Vec<Uri> {
        let mut uris: Vec<Uri> =
            self.withheld.iter().flat_map(|withheld| withheld.uris.iter().cloned()).collect();
        uris.sort_unstable();
        uris
    }

    pub fn withheld(&self) -> u64 {
        self.withheld.as_ref().map_or(0, |withheld| withheld.uris.len() as u64)
    }

    /// What isn't done yet.
    pub fn queue(&self) -> SyncQueue {
        let waiting = self.dirty.len() + self.reads.len();
        SyncQueue { waiting: waiting as u64, in_flight: self.in_flight as u64 }
    }

    /// The last error, until the server is `live` again.
    pub fn last_error(&self) -> Option<&SourceError> {
        self.last_error.as_ref()
    }

    /// Whether reads are under way.
    pub fn is_reading(&self) -> bool {
        self.in_flight > 0
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
            () if self.no_listing && self.catalog.counts().listed == 0 => ServerState::NoListing,
            () => ServerState::Live,
        }
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
            self.listing_told = self.list_told.take();
            self.commands.push(Command::List);
        }
        while self.may_read() && self.in_flight < self.allowed && now >= self.pause_until {
            let Some((uri, line)) = self.dirty.next(now) else { break };
            self.start_read(&uri, line, now);
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
        self.flush(now);
    }

    /// What was handed to the index is made durable when nothing more is on its way, and at least
    /// about once a second.
    fn flush(&mut self, now: Instant) {
        if !self.unflushed || self.flushing || self.index_failed {
            return;
        }
        let late = *self.flush_from.get_or_insert(now + FLUSH) <= now;
        if late || self.in_flight == 0 || matches!(self.phase, Phase::Flushing(_)) {
            (self.unflushed, self.flushing, self.flush_from) = (false, true, None);
            self.flushes += 1;
            self.commands.push(Command::Flush);
        }
    }
}

#[cfg(test)]
mod tests;
