//! The machine against a simulated server and index: whatever happens in whatever order, once the
//! server is quiet the index is the server's resources.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::index::description_hash;
use crate::model::{Fingerprint, Listing, Manifest, Origin, Outcome, ResourceKey, ServerName};

fn uri(at: u8) -> Uri {
    format!("a://{at}").into()
}

fn hash(version: u8) -> ContentHash {
    ContentHash([version; 16])
}

/// One operation on the index that isn't on disk yet.
#[derive(Clone, Debug)]
enum Op {
    Replace(Uri, u8),
    EnterByName(Uri),
    Remove(Uri),
}

/// `None`: found by name only.
type Index = BTreeMap<Uri, Option<u8>>;

struct World {
    machine: Machine,
    now: Instant,
    server: BTreeMap<Uri, u8>,
    index: Index,
    unwritten: Vec<Op>,
    connected: bool,
    /// Commands that have not been answered.
    open: Vec<Command>,
    session: u64,
    fail_next: Option<SourceError>,
    fail_flush: bool,
    /// Commands so far, by kind.
    listings: usize,
    reads: usize,
    lags: Vec<Duration>,
    started: Instant,
    /// Whether the server has `resources/list`.
    lists: bool,
    /// What the server says of itself, if the config trusts it: how often each was modified.
    trusted: Option<BTreeMap<Uri, u32>>,
}

fn options() -> Options {
    Options {
        own_folder: false,
        reads_in_flight: 3,
        relist_interval: Duration::from_secs(10),
        reread_interval: Duration::from_secs(1),
        recheck_interval: Duration::from_secs(60),
        removal_confirmation: Duration::from_secs(60),
        backoff: Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(300) },
        max_subscriptions: 100,
        trust: Trust::default(),
        random: || 0.5,
        wanted: Box::new(|_| true),
        subscribed: Box::new(|_| true),
    }
}

impl World {
    /// A server whose word is trusted: reads are fresh for an hour, and what it doesn't push changes
    /// its `lastModified`.
    fn trusting() -> Self {
        let mut world = Self::new();
        world.machine.options.trust = Trust { last_modified: true, ttl: true };
        world.trusted = Some(BTreeMap::new());
        world
    }

    fn resource(&self, uri: &Uri) -> Resource {
        // Long ago, so that no clock's skew matters.
        let modified = |times: &u32| format!("1990-01-01T00:00:00.{times:03}Z");
        let trusted = self.trusted.as_ref();
        let last_modified = trusted.map(|trusted| modified(trusted.get(uri).unwrap_or(&0)));
        Resource { name: uri.to_string(), last_modified, ..Resource::new(uri.clone()) }
    }

    fn got(&self) -> Got {
        let fresh = self.trusted.as_ref().map(|_| Duration::from_secs(3_600));
        let at = chrono::DateTime::from_timestamp(1_790_000_000, 0).unwrap()
            + self.now.duration_since(self.started);
        Got { bytes: 10, at, fresh }
    }

    fn new() -> Self {
        let now = Instant::now();
        let mut world = World {
            machine: Machine::new(options(), Catalog::default(), now),
            now,
            server: BTreeMap::new(),
            index: Index::new(),
            unwritten: vec![],
            connected: false,
            open: vec![],
            session: 0,
            fail_next: None,
            fail_flush: false,
            listings: 0,
            reads: 0,
            lags: vec![],
            started: now,
            lists: true,
            trusted: None,
        };
        world.tell(Event::Woken);
        world
    }

    fn tell(&mut self, event: Event) {
        let commands = self.machine.on(event, self.now);
        self.session = self.machine.session();
        for command in commands {
            match command {
                Command::Disconnect => self.connected = false,
                Command::Remove(uris) => self.unwritten.extend(uris.into_iter().map(Op::Remove)),
                Command::EnterByName { resource, .. } => {
                    self.unwritten.push(Op::EnterByName(resource.uri))
                }
                Command::Notice(Notice::Searchable(lag)) => self.lags.push(lag),
                Command::Notice(_) => {}
                Command::List => {
                    self.listings += 1;
                    self.open.push(Command::List);
                }
                Command::Read(job) => {
                    self.reads += 1;
                    let beside = |open: &Command| matches!(open, Command::Read(other) if other.uri == job.uri);
                    assert!(!self.open.iter().any(beside), "two reads of {} at a time", job.uri);
                    self.open.push(Command::Read(job));
                }
                other => self.open.push(other),
            }
        }
    }

    fn hint(&mut self, marks: Marks) {
        if self.connected {
            self.tell(Event::Hinted(marks));
        }
    }

    fn write(&mut self) {
        for op in std::mem::take(&mut self.unwritten) {
            match op {
                Op::Replace(uri, version) => drop(self.index.insert(uri, Some(version))),
                Op::EnterByName(uri) => drop(self.index.insert(uri, None)),
                Op::Remove(uri) => drop(self.index.remove(&uri)),
            }
        }
    }

    /// Answers the open command at a place, perhaps with a failure.
    fn answer(&mut self, at: usize) {
        if self.open.is_empty() {
            return;
        }
        let command = self.open.swap_remove(at % self.open.len());
        let session = self.session;
        let failure = match command {
            Command::Flush | Command::Reload => None,
            _ => self.fail_next.take(),
        };
        match command {
            Command::Connect => {
                self.connected = failure.is_none();
                self.tell(failure.map_or(Event::Connected, Event::ConnectFailed));
            }
            Command::List => {
                let listed = self.server.keys().filter(|_| self.lists);
                let resources: Vec<Resource> = listed.map(|uri| self.resource(uri)).collect();
                let no_listing = !self.lists;
                let result = match failure {
                    // Half a listing is a failure of its own kind.
                    Some(SourceError::BadAnswer { .. }) => {
                        let resources = resources.into_iter().step_by(2).collect();
                        Ok(Listing { resources, expansions_complete: true, ..Listing::default() })
                    }
                    Some(error) => Err(error),
                    None => Ok(Listing {
                        resources,
                        complete: true,
                        expansions_complete: true,
                        ..Listing::default()
                    }),
                };
                let result = result.map(|listing| Listed { listing, no_listing });
                self.tell(Event::Listed { session, result });
            }
            Command::Follow(_) => {
                self.tell(Event::Followed { session, result: failure.map_or(Ok(vec![]), Err) });
            }
            Command::Read(job) => {
                let gone =
                    SourceError::NotFound { uri: job.uri.to_string(), message: String::new() };
                let outcome = match (failure, self.server.get(&job.uri)) {
                    (Some(error), _) => ReadOutcome::Failed(error),
                    (None, _) if !self.connected => {
                        ReadOutcome::Failed(SourceError::Disconnected { reason: "gone".into() })
                    }
                    (None, None) => ReadOutcome::Failed(gone),
                    (None, Some(version))
                        if job.hash == Some(hash(*version)) && job.resource.is_none() =>
                    {
                        ReadOutcome::Unchanged
                    }
                    (None, Some(version)) => {
                        self.unwritten.push(Op::Replace(job.uri.clone(), *version));
                        // As it was described when the read was planned.
                        let described = job.resource.as_deref().map(description_hash);
                        let description = described.unwrap_or(job.description);
                        ReadOutcome::Replaced {
                            hash: hash(*version),
                            description,
                            skipped: false,
                            mislabelled: false,
                        }
                    }
                };
                self.tell(Event::Read {
                    ticket: job.ticket,
                    uri: job.uri,
                    got: self.got(),
                    outcome,
                });
            }
            Command::Flush => match std::mem::take(&mut self.fail_flush) {
                true => {
                    self.unwritten.clear();
                    self.tell(Event::Flushed(Err("disk full".into())));
                }
                false => {
                    self.write();
                    self.tell(Event::Flushed(Ok(())));
                }
            },
            Command::Reload => {
                let catalog = self.manifests();
                self.tell(Event::Reloaded(catalog));
            }
            _ => unreachable!("answered when given"),
        }
    }

    fn manifests(&self) -> Catalog {
        let manifest = |(uri, version): (&Uri, &Option<u8>)| Manifest {
            key: ResourceKey { server: ServerName::new("s").unwrap(), uri: uri.clone() },
            content_hash: hash(version.unwrap_or(255)),
            description_hash: description_hash(&self.resource(uri)),
            fingerprint: Fingerprint(1),
            chunks: 1,
            outcome: version.map_or(Outcome::Skipped(String::new()), |_| Outcome::Indexed),
            mislabelled: false,
            indexed_at: chrono::DateTime::UNIX_EPOCH,
            origin: Origin::Listed,
        };
        Catalog::load(self.index.iter().map(manifest).collect(), Fingerprint(1))
    }

    /// A crash: what wasn't written is lost, and the task begins anew from the index.
    fn restart(&mut self) {
        self.unwritten.clear();
        self.open.clear();
        self.connected = false;
        self.machine = Machine::new(options(), self.manifests(), self.now);
        self.tell(Event::Woken);
    }

    /// Answers everything and lets time pass until nothing is left to be done.
    fn settle(&mut self) {
        (self.fail_next, self.fail_flush) = (None, false);
        for _ in 0..10_000 {
            if !self.open.is_empty() {
                self.answer(0);
            } else if let Some(wake) = self.machine.wake(self.now) {
                self.now = self.now.max(wake);
                self.tell(Event::Woken);
            } else {
                return;
            }
        }
        panic!("never quiet: {:?} {:?}", self.machine.phase, self.machine.want);
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Sets a resource's version, and perhaps pushes it.
    Change {
        at: u8,
        version: u8,
        push: bool,
    },
    Remove {
        at: u8,
        push: bool,
    },
    Clear,
    Disconnect,
    Fail(SourceError),
    FailFlush,
    Answer(usize),
    Pass(u64),
    Ask(bool),
    Everything,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let errors = prop_oneof![
        Just(SourceError::Disconnected { reason: "test".into() }),
        Just(SourceError::TimedOut { what: "test".into(), seconds: 1 }),
        Just(SourceError::Refused { what: "test".into(), code: -32603, message: String::new() }),
        Just(SourceError::BadAnswer { what: "test".into(), reason: String::new() }),
        Just(SourceError::NotFound { uri: "a://0".into(), message: String::new() }),
        Just(SourceError::Overloaded { what: "test".into(), retry_after: Some(2) }),
        Just(SourceError::NeedsAuth { message: String::new() }),
    ];
    prop_oneof![
        6 => (0_u8..25, 0_u8..4, any::<bool>()).prop_map(|(at, version, push)| Step::Change { at, version, push }),
        3 => (0_u8..25, any::<bool>()).prop_map(|(at, push)| Step::Remove { at, push }),
        1 => Just(Step::Clear),
        1 => Just(Step::Disconnect),
        4 => errors.prop_map(Step::Fail),
        1 => Just(Step::FailFlush),
        30 => (0_usize..10).prop_map(Step::Answer),
        6 => (0_u64..20_000).prop_map(Step::Pass),
        1 => any::<bool>().prop_map(Step::Ask),
        1 => Just(Step::Everything),
        1 => Just(Step::Restart),
    ]
}

fn run(world: &mut World, step: Step) {
    match step {
        Step::Change { at, version, push } => {
            let is_new = world.server.insert(uri(at), version).is_none();
            let told = push && world.connected;
            if let Some(trusted) = world.trusted.as_mut().filter(|_| !told) {
                *trusted.entry(uri(at)).or_default() += 1;
            }
            if push {
                // A resource that went and came back looks the same in a listing, so a server that
                // pushes says both.
                let uris = [uri(at).to_string()].into();
                world.hint(Marks { list: is_new, uris, notifications: 1, ..Marks::default() });
            }
        }
        Step::Remove { at, push } => {
            world.server.remove(&uri(at));
            if push {
                world.hint(Marks { list: true, notifications: 1, ..Marks::default() });
            }
        }
        Step::Clear => world.server.clear(),
        Step::Disconnect => world.hint(Marks { closed: Some("test".into()), ..Marks::default() }),
        Step::Fail(error) => world.fail_next = Some(error),
        Step::FailFlush => world.fail_flush = true,
        Step::Answer(at) => world.answer(at),
        Step::Pass(millis) => {
            world.now += Duration::from_millis(millis);
            world.tell(Event::Woken);
        }
        Step::Ask(confirm) => world.tell(Event::Asked { cause: SyncCause::Request, confirm }),
        Step::Everything => world.hint(Marks { everything: true, ..Marks::default() }),
        Step::Restart => world.restart(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_index_converges_to_the_server(steps in proptest::collection::vec(step(), 0..120)) {
        let mut world = World::new();
        for step in steps {
            run(&mut world, step);
        }
        // The schedule finds what wasn't pushed; twice, in case the first was spent on a failure.
        for _ in 0..2 {
            world.settle();
            world.tell(Event::Asked { cause: SyncCause::Schedule, confirm: false });
        }
        world.settle();
        let expected: Index = world.server.iter().map(|(uri, version)| (uri.clone(), Some(*version))).collect();
        prop_assert_eq!(&world.index, &expected);
        prop_assert_eq!(world.machine.state(), ServerState::Live);
        let counts = world.machine.catalog().counts();
        prop_assert_eq!((counts.indexed, counts.listed), (expected.len() as u64, expected.len() as u64));
        prop_assert_eq!((counts.stale, counts.skipped), (0, 0));
        prop_assert!(world.machine.last_error().is_none());
    }

    #[test]
    fn pushed_changes_need_no_schedule(steps in proptest::collection::vec((0_u8..12, 0_u8..4, any::<bool>(), 0_u64..3_000), 0..60)) {
        let mut world = World::new();
        world.settle();
        for (at, version, change, pause) in steps {
            let step = match change {
                true => Step::Change { at, version, push: true },
                false => Step::Remove { at, push: true },
            };
            run(&mut world, step);
            run(&mut world, Step::Answer(usize::from(at)));
            run(&mut world, Step::Pass(pause));
        }
        world.settle();
        let expected: Index = world.server.iter().map(|(uri, version)| (uri.clone(), Some(*version))).collect();
        prop_assert_eq!(&world.index, &expected);
    }
}

#[test]
fn a_flood_ends_in_a_handful_of_listings_and_reads() {
    let mut world = World::new();
    world.server.extend((0..5).map(|at| (uri(at), 0)));
    world.settle();
    let (listings, reads) = (world.listings, world.reads);
    for tick in 0..5_000_u32 {
        world.server.insert(uri(1), (tick % 200) as u8);
        let uris = [uri(1).to_string()].into();
        world.hint(Marks { list: true, uris, notifications: 10, ..Marks::default() });
        world.now += Duration::from_millis(1);
        world.answer(0);
    }
    world.settle();
    assert_eq!(world.index[&uri(1)], Some(199));
    assert_eq!(world.machine.counts().notifications, 50_000);
    assert!(world.listings - listings <= 2, "{}", world.listings - listings);
    assert!(world.reads - reads <= 7, "{}", world.reads - reads);
}

#[test]
fn time_outs_in_a_row_build_the_connection_anew() {
    let mut world = World::new();
    world.server.extend((0..5).map(|at| (uri(at), 0)));
    world.settle();
    world.tell(Event::Asked { cause: SyncCause::Request, confirm: false });
    world.answer(0);
    world.answer(0);
    for _ in 0..TIMEOUTS {
        assert_ne!(world.machine.state(), ServerState::Backoff);
        world.fail_next =
            Some(SourceError::TimedOut { what: "resources/read".into(), seconds: 60 });
        world.answer(0);
    }
    assert_eq!(world.machine.state(), ServerState::Backoff);
    world.settle();
    assert_eq!((world.machine.state(), world.machine.counts().connects), (ServerState::Live, 2));
}

#[test]
fn a_mass_removal_waits_for_a_second_look_or_a_word() {
    let fill = |world: &mut World| {
        world.server.extend((0..20).map(|at| (uri(at), 0)));
        world.settle();
        world.server.clear();
    };
    let mut world = World::new();
    fill(&mut world);
    world.hint(Marks { list: true, ..Marks::default() });
    world.now += Duration::from_secs(10);
    world.tell(Event::Woken);
    while !world.open.is_empty() {
        world.answer(0);
    }
    assert_eq!((world.index.len(), world.machine.withheld()), (20, 20));
    assert_eq!(world.machine.catalog().counts().stale, 20);
    let mut confirmed = world.now;
    world.settle();
    assert_eq!((world.index.len(), world.machine.withheld()), (0, 0));
    confirmed += Duration::from_secs(60);
    assert_eq!(world.now, confirmed);

    let mut world = World::new();
    fill(&mut world);
    world.tell(Event::Asked { cause: SyncCause::Request, confirm: true });
    while !world.open.is_empty() {
        world.answer(0);
    }
    assert!(world.index.is_empty());
}

#[test]
fn a_resource_that_is_listed_and_never_found_is_left_alone_for_longer_and_longer() {
    let mut world = World::new();
    world.server.extend((0..3).map(|at| (uri(at), 0)));
    world.settle();
    let lost = |world: &mut World| {
        let at = world
            .open
            .iter()
            .position(|open| matches!(open, Command::Read(job) if job.uri == uri(1)));
        if let Some(at) = at {
            world.fail_next =
                Some(SourceError::NotFound { uri: uri(1).to_string(), message: String::new() });
            world.answer(at);
        } else {
            world.answer(0);
        }
    };
    let (reads, listings) = (world.reads, world.listings);
    world.hint(Marks { uris: [uri(1).to_string()].into(), ..Marks::default() });
    let end = world.now + Duration::from_secs(3_600);
    while world.now < end {
        while !world.open.is_empty() {
            lost(&mut world);
        }
        let Some(wake) = world.machine.wake(world.now) else { break };
        world.now = world.now.max(wake);
        world.tell(Event::Woken);
    }
    assert_eq!(world.index.len(), 3);
    assert!(world.reads - reads < 25, "{}", world.reads - reads);
    assert!(world.listings - listings < 8, "{}", world.listings - listings);
}

#[test]
fn what_cannot_be_read_is_found_by_its_name() {
    let mut world = World::new();
    world.server.insert(uri(1), 0);
    while world.index.is_empty() {
        if matches!(world.open.first(), Some(Command::Read(_))) {
            world.fail_next = Some(SourceError::Refused {
                what: "resources/read".into(),
                code: -32603,
                message: String::new(),
            });
        }
        world.answer(0);
    }
    assert_eq!(world.index[&uri(1)], None);
    assert_eq!(world.machine.catalog().counts().skipped, 1);
    world.settle();
    assert_eq!(world.index[&uri(1)], Some(0));
}

#[test]
fn what_is_subscribed_to_follows_the_patterns_and_the_cap() {
    let mut world = World::new();
    world.machine.options.max_subscriptions = 3;
    world.machine.options.subscribed = Box::new(|uri| uri != "a://1");
    world.server.extend((0..9).map(|at| (uri(at), 0)));
    let followed = loop {
        match world.open.first() {
            Some(Command::Follow(uris)) => break uris.clone(),
            _ => world.answer(0),
        }
    };
    assert_eq!(followed, [uri(0), uri(2), uri(3)].into());
}

#[test]
fn a_lag_runs_from_the_first_notification_to_the_disk() {
    let mut world = World::new();
    world.server.extend((0..3).map(|at| (uri(at), 0)));
    world.settle();
    assert!(world.lags.is_empty(), "nobody told of these");
    let pushed = || Marks { uris: [uri(1).to_string()].into(), ..Marks::default() };
    world.server.insert(uri(1), 1);
    world.hint(pushed());
    world.now += Duration::from_secs(2);
    // Told again while it is read: a second read, whose lag is its own.
    world.server.insert(uri(1), 2);
    world.hint(pushed());
    world.fail_next = Some(SourceError::Refused {
        what: "resources/read".into(),
        code: -32603,
        message: String::new(),
    });
    world.answer(0);
    world.now += Duration::from_secs(1);
    world.settle();
    // The first read failed, and what told of it is answered with the second.
    assert_eq!(world.lags.len(), 1, "{:?}", world.lags);
    assert!(world.lags[0] >= Duration::from_secs(3), "{:?}", world.lags);

    // What is new is told by the listing's notification.
    world.lags.clear();
    world.server.insert(uri(7), 0);
    world.hint(Marks { list: true, ..Marks::default() });
    world.settle();
    assert_eq!(world.lags.len(), 1, "{:?}", world.lags);
    // What turns out unchanged is no news.
    world.hint(pushed());
    world.settle();
    assert_eq!(world.lags.len(), 1, "{:?}", world.lags);
}

#[test]
fn what_was_read_is_flushed_while_others_are_still_read() {
    let mut world = World::new();
    world.server.extend((0..9).map(|at| (uri(at), 0)));
    let reading = |world: &World| {
        world.open.iter().position(|open| matches!(open, Command::Read(job) if job.uri != uri(0)))
    };
    // The read of one never ends; the others' are answered, a tenth of a second each.
    while world.index.len() < 8 {
        let other = world.open.iter().position(|open| !matches!(open, Command::Read(_)));
        match reading(&world).or(other) {
            Some(at) => world.answer(at),
            None => {
                let wake =
                    world.machine.wake(world.now).expect("what was read waits for its flush");
                world.now = world.now.max(wake);
                world.tell(Event::Woken);
            }
        }
        world.now += Duration::from_millis(100);
    }
    assert!(!world.index.contains_key(&uri(0)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Whatever is spared, nothing that was pushed is hidden, and nothing at all for longer than the
    /// server's own word.
    #[test]
    fn trust_hides_no_pushed_change(steps in proptest::collection::vec(step(), 0..120)) {
        let mut world = World::trusting();
        let mut told = BTreeMap::new();
        for step in steps {
            match &step {
                // A daemon that ends forgets what it was told a moment before.
                Step::Restart => continue,
                Step::Change { at, push, .. } => {
                    told.insert(uri(*at), *push && world.connected);
                }
                // Only what is pushed needs no schedule.
                Step::Remove { at, .. } => drop(told.remove(&uri(*at))),
                Step::Clear => told.clear(),
                _ => {}
            }
            run(&mut world, step);
        }
        world.settle();
        for (uri, _) in told.into_iter().filter(|(_, told)| *told) {
            prop_assert_eq!(world.index.get(&uri).copied().flatten(), world.server.get(&uri).copied(), "{}", uri);
        }
        for _ in 0..2 {
            world.now += Duration::from_secs(24 * 3_600);
            world.tell(Event::Asked { cause: SyncCause::Schedule, confirm: false });
            world.settle();
        }
        let expected: Index = world.server.iter().map(|(uri, version)| (uri.clone(), Some(*version))).collect();
        prop_assert_eq!(&world.index, &expected);
    }
}

#[test]
fn the_servers_word_spares_the_schedules_reads_and_no_others() {
    let mut world = World::trusting();
    world.server.extend((0..9).map(|at| (uri(at), 0)));
    world.settle();
    let mut reads = world.reads;
    let mut read = |world: &mut World, cause, many: usize| {
        world.tell(Event::Asked { cause, confirm: false });
        world.settle();
        assert_eq!(world.reads - reads, many, "{cause:?}");
        reads = world.reads;
    };
    read(&mut world, SyncCause::Schedule, 0);
    assert_eq!(world.machine.counts().spared, 9);
    read(&mut world, SyncCause::Request, 9);
    // What is modified is described anew.
    run(&mut world, Step::Change { at: 1, version: 1, push: false });
    read(&mut world, SyncCause::Schedule, 1);
    assert_eq!(world.index[&uri(1)], Some(1));
    // Without `lastModified` it is the time that counts.
    world.machine.options.trust.last_modified = false;
    read(&mut world, SyncCause::Schedule, 0);
    world.now += Duration::from_secs(3_601);
    read(&mut world, SyncCause::Schedule, 9);
    // Lost notifications are no schedule.
    world.now += Duration::from_secs(60);
    world.hint(Marks { everything: true, ..Marks::default() });
    read(&mut world, SyncCause::Schedule, 9);
    world.machine.options.trust = Trust::default();
    read(&mut world, SyncCause::Schedule, 9);
}

#[test]
fn a_listing_that_is_no_longer_offered_removes_nothing_unless_told_so() {
    for many in [2, 20] {
        let mut world = World::new();
        world.server.extend((0..many).map(|at| (uri(at), 0)));
        world.settle();
        world.lists = false;
        for _ in 0..3 {
            world.tell(Event::Asked { cause: SyncCause::Schedule, confirm: false });
            world.settle();
        }
        assert_eq!(world.index.len(), usize::from(many));
        assert_eq!(world.machine.catalog().counts().stale, u64::from(many));
        assert_eq!(world.machine.state(), ServerState::NoListing);
        world.lists = true;
        world.tell(Event::Asked { cause: SyncCause::Schedule, confirm: false });
        world.settle();
        assert_eq!(world.machine.state(), ServerState::Live);
        assert_eq!(world.machine.catalog().counts().stale, 0);
        world.lists = false;
        world.tell(Event::Asked { cause: SyncCause::Request, confirm: true });
        world.settle();
        assert!(world.index.is_empty());
    }
}
