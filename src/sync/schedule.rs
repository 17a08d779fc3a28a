//! When servers are reconciled, whether they push or not.
//!
//! `tokio-cron-scheduler` waits; which time is next is asked of `croner` before each wait, in the
//! zone's own clock. (The scheduler's own cron jobs keep the offset that the zone had when they were
//! made, and are an hour off after its clocks change.) A run that was missed, because the machine
//! slept or the clock was set, is made up for once: the next time is always counted from now.

use std::time::Duration;

use chrono::{DateTime, Local, Offset as _, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;
use croner::Cron;
use croner::parser::{CronParser, Seconds};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};
use tokio_util::sync::CancellationToken;

use super::backoff::random_unit;

/// The most that a run is put off, so that many servers aren't read at the same second.
const MOST_JITTER: Duration = Duration::from_secs(30);

/// The longest that a clock that was set back goes unnoticed.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// The zone of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// The machine's.
    Local,
    Named(Tz),
}

/// A cron expression, seconds first, in its zone.
#[derive(Clone, Debug)]
pub struct Schedule {
    cron: Cron,
    zone: Zone,
    /// Whether it runs in every hour.
    hourly: bool,
}

impl Schedule {
    /// # Errors
    /// What is wrong with the expression, or the zone's name.
    pub fn new(cron: &str, zone: Option<&str>) -> Result<Self, String> {
        let hourly = cron.trim() == "@hourly" || cron.split_whitespace().nth(2) == Some("*");
        let parser = CronParser::builder().seconds(Seconds::Required).build();
        let cron = parser.parse(cron).map_err(|error| error.to_string())?;
        let zone = match zone {
            None => Zone::Local,
            Some(name) => {
                Zone::Named(name.parse().map_err(|_| format!("{name} is not a time zone"))?)
            }
        };
        Ok(Self { cron, zone, hourly })
    }

    /// The first time after `now`; none when there will never be one.
    pub fn after(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match self.zone {
            Zone::Local => self.after_in(&now.with_timezone(&Local)),
            Zone::Named(zone) => self.after_in(&now.with_timezone(&zone)),
        }
    }

    fn after_in<Z: TimeZone>(&self, now: &DateTime<Z>) -> Option<DateTime<Utc>> {
        let find =
            |from: &DateTime<Z>| Some(self.cron.find_next_occurrence(from, false).ok()?.to_utc());
        // In the hour that comes a second time when a clock is set back, croner answers with the first:
        // what is next is found from behind it.
        let mut from = now.clone();
        let mut next = find(&from)?;
        while next <= now.to_utc() {
            from += TimeDelta::minutes(30);
            next = find(&from)?;
        }
        if !self.hourly {
            return Some(next);
        }
        // What runs in every hour runs in that one too: as if the clock went on, if it then shows a
        // time that is meant.
        let straight_on = now.with_timezone(&now.offset().fix());
        let straight_on = self.cron.find_next_occurrence(&straight_on, false).ok()?;
        let shown = straight_on.with_timezone(&now.timezone());
        let is_meant = self.cron.is_time_matching(&shown).unwrap_or(false);
        Some(if is_meant { next.min(straight_on.to_utc()) } else { next })
    }

    /// When to run next: a little after the time that the expression names. `unit` is from 0 to 1.
    fn next_run(&self, now: DateTime<Utc>, unit: f64) -> Option<DateTime<Utc>> {
        let next = self.after(now)?;
        let interval = self.after(next).and_then(|later| (later - next).to_std().ok());
        let most = interval.map_or(MOST_JITTER, |interval| (interval / 10).min(MOST_JITTER));
        let jitter = chrono::Duration::from_std(most.mul_f64(unit)).ok()?;
        Some(next + jitter)
    }
}

/// Waits for all schedules of the daemon.
#[derive(Clone)]
pub struct Clock {
    scheduler: JobScheduler,
}

impl Clock {
    /// # Errors
    /// The scheduler's.
    pub async fn start() -> Result<Self, JobSchedulerError> {
        let scheduler = JobScheduler::new().await?;
        scheduler.start().await?;
        Ok(Self { scheduler })
    }

    /// Sends a tick at each of a schedule's times, until `stop`. Ticks that nobody has taken yet are
    /// not added to. `next` tells when the next one comes.
    pub async fn follow(
        &self,
        schedule: &Schedule,
        ticks: mpsc::Sender<()>,
        next: watch::Sender<Option<DateTime<Utc>>>,
        stop: CancellationToken,
    ) {
        let runs = runs(schedule, Utc::now, |at| self.wait_until(at), &ticks, &next);
        tokio::select! {
            Err(error) = runs => {
                tracing::error!(%error, "the scheduler failed; this server is no longer reconciled by schedule");
            }
            () = stop.cancelled() => {}
        }
        next.send_replace(None);
    }

    /// Waits by the wall clock, so that a machine that slept through the time is told at once, and
    /// not longer than [`LONGEST_WAIT`].
    async fn wait_until(&self, at: DateTime<Utc>) -> Result<(), JobSchedulerError> {
        let (ring, rung) = oneshot::channel();
        let mut ring = Some(ring);
        let wait = (at - Utc::now()).to_std().unwrap_or_default();
        let job = Job::new_one_shot(wait, move |_, _| {
            if let Some(ring) = ring.take() {
                let _ = ring.send(());
            }
        })?;
        let _remove =
            RemoveOnDrop { scheduler: self.scheduler.clone(), id: self.scheduler.add(job).await? };
        match tokio::time::timeout(LONGEST_WAIT, rung).await {
            // The sender goes only when the scheduler does.
            Ok(rung) => rung.map_err(|_| JobSchedulerError::TickError),
            Err(_) => Ok(()),
        }
    }
}

/// Waits for one time after the other, by a clock and a wait of the caller's, which may end early.
async fn runs<E, W: Future<Output = Result<(), E>>>(
    schedule: &Schedule,
    now: impl Fn() -> DateTime<Utc>,
    wait_until: impl Fn(DateTime<Utc>) -> W,
    ticks: &mpsc::Sender<()>,
    next: &watch::Sender<Option<DateTime<Utc>>>,
) -> Result<(), E> {
    while let Some(at) = schedule.next_run(now(), random_unit()) {
        next.send_replace(Some(at));
        let mut looked = now();
        while looked < at {
            wait_until(at).await?;
            let earlier = std::mem::replace(&mut looked, now());
            if looked < earlier {
                // The clock was set back, perhaps from years ahead: what is next is another time now.
                break;
            }
        }
        if looked >= at {
            // A full channel holds a tick that does the same.
            let _ = ticks.try_send(());
        }
    }
    next.send_replace(None);
    std::future::pending().await
}

struct RemoveOnDrop {
    scheduler: JobScheduler,
    id: uuid::Uuid,
}

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        let (scheduler, id) = (self.scheduler.clone(), self.id);
        tokio::spawn(async move {
            // One that has run is gone by itself.
            let _ = scheduler.remove(&id).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utc(text: &str) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(text).unwrap().with_timezone(&Utc)
    }

    #[test]
    fn times_follow_the_zones_clock() {
        for (cron, zone, now, next) in [
            ("0 */15 * * * *", None, "2026-01-01T00:07:00Z", "2026-01-01T00:15:00Z"),
            // The day on which Dublin's clocks go forward, and the day after.
            ("0 0 18 * * *", Some("Europe/Dublin"), "2025-03-29T12:00:00Z", "2025-03-29T18:00:00Z"),
            ("0 0 18 * * *", Some("Europe/Dublin"), "2025-03-29T18:00:00Z", "2025-03-30T17:00:00Z"),
            // An hour that isn't there: croner takes the first moment after the gap.
            ("0 30 1 * * *", Some("Europe/Dublin"), "2025-03-29T12:00:00Z", "2025-03-30T01:00:00Z"),
            ("0 0 3 * * *", Some("Asia/Shanghai"), "2026-11-30T00:00:00Z", "2026-11-30T19:00:00Z"),
        ] {
            let schedule = Schedule::new(cron, zone.or(Some("UTC"))).unwrap();
            assert_eq!(schedule.after(utc(now)), Some(utc(next)), "{cron} {zone:?} {now}");
        }
        assert!(Schedule::new("nonsense", None).is_err());
        assert!(Schedule::new("0 0 3 * * *", Some("Mars/Olympus")).is_err());
    }

    #[test]
    fn jitter_is_a_tenth_of_the_interval_at_most() {
        let often = Schedule::new("* * * * * *", Some("UTC")).unwrap();
        let seldom = Schedule::new("0 0 0 1 1 *", Some("UTC")).unwrap();
        let now = utc("2026-06-01T00:00:00Z");
        assert_eq!(often.next_run(now, 1.0), Some(utc("2026-06-01T00:00:01.100Z")));
        assert_eq!(seldom.next_run(now, 1.0), Some(utc("2027-01-01T00:00:30Z")));
        assert_eq!(seldom.next_run(now, 0.0), Some(utc("2027-01-01T00:00:00Z")));
    }

    /// The times of a schedule from one moment up to another, in UTC.
    fn times(cron: &str, zone: &str, from: &str, to: &str) -> Vec<String> {
        let schedule = Schedule::new(cron, Some(zone)).unwrap();
        let mut times = vec![];
        let (mut now, to) = (utc(from), utc(to));
        while let Some(at) = schedule.after(now).filter(|at| *at < to) {
            assert!(at > now, "{cron}: {at} after {now}");
            times.push(at.format("%dT%H:%M").to_string());
            now = at;
        }
        times
    }

    #[test]
    fn a_clock_that_is_set_forward_or_back_neither_loses_nor_doubles_a_run() {
        // Clocks go from 01:00 to 02:00, and back from 02:00 to 01:00, summer time.
        for (cron, zone, from, to, expected) in [
            (
                "0 30 1 * * *",
                "Europe/Dublin",
                "2025-03-29T00:00:00Z",
                "2025-04-01T00:00:00Z",
                &["29T01:30", "30T01:00", "31T00:30"][..],
            ),
            (
                "0 30 1 * * *",
                "Europe/Dublin",
                "2025-10-25T00:00:00Z",
                "2025-10-28T00:00:00Z",
                &["25T00:30", "26T00:30", "27T01:30"],
            ),
            (
                "0 0 18 * * *",
                "Europe/Dublin",
                "2025-10-25T00:00:00Z",
                "2025-10-27T00:00:00Z",
                &["25T17:00", "26T18:00"],
            ),
            // At midnight, in the southern hemisphere.
            (
                "0 30 0 * * *",
                "America/Santiago",
                "2025-09-06T00:00:00Z",
                "2025-09-09T00:00:00Z",
                &["06T04:30", "07T04:00", "08T03:30"],
            ),
            // None anywhere near.
            (
                "0 30 2 * * *",
                "Asia/Shanghai",
                "2025-03-29T00:00:00Z",
                "2025-03-31T00:00:00Z",
                &["29T18:30", "30T18:30"],
            ),
        ] {
            assert_eq!(times(cron, zone, from, to), expected, "{cron} {zone} {from}");
        }
        // Asked in the hour that comes again, with the first one's run behind it.
        assert_eq!(
            times("0 30 1 * * *", "Europe/Dublin", "2025-10-26T01:10:00Z", "2025-10-28T00:00:00Z"),
            ["27T01:30"]
        );
        // What runs often runs through both hours, or through none.
        let often = |from: &str, to: &str| times("0 */15 * * * *", "Europe/Dublin", from, to).len();
        assert_eq!(often("2025-03-30T00:07:00Z", "2025-03-30T02:07:00Z"), 8);
        assert_eq!(often("2025-10-26T00:07:00Z", "2025-10-26T02:07:00Z"), 8);
    }

    /// A clock that stands until a test sets it, and sleepers that it wakes.
    struct Hands(watch::Sender<DateTime<Utc>>);

    impl Hands {
        async fn reach(&self, at: DateTime<Utc>) -> Result<(), ()> {
            let asleep = *self.0.borrow();
            let wakes = |now: &DateTime<Utc>| *now >= at || *now < asleep;
            self.0.subscribe().wait_for(wakes).await.map(drop).map_err(drop)
        }
    }

    #[tokio::test]
    async fn a_machine_that_slept_catches_up_once() {
        let schedule = Schedule::new("0 */15 * * * *", Some("UTC")).unwrap();
        let hands = Hands(watch::channel(utc("2026-06-01T00:01:00Z")).0);
        let (ticks, mut ticked) = mpsc::channel(1);
        let (next, mut nexts) = watch::channel(None);
        let now = || *hands.0.borrow();
        let following = runs(&schedule, now, |at| hands.reach(at), &ticks, &next);
        let test = async {
            nexts.wait_for(Option::is_some).await.unwrap();
            for (clock, quarter) in [
                // On time, with the most that it may be put off.
                ("2026-06-01T00:15:30Z", "2026-06-01T00:30"),
                // Asleep for nine hours: 36 times were missed.
                ("2026-06-01T09:20:00Z", "2026-06-01T09:30"),
                // Asleep for a month.
                ("2026-07-03T12:00:00Z", "2026-07-03T12:15"),
            ] {
                nexts.borrow_and_update();
                hands.0.send_replace(utc(clock));
                ticked.recv().await.unwrap();
                nexts.changed().await.unwrap();
                let next = nexts.borrow_and_update().unwrap();
                assert!(next > utc(clock), "{next} isn't after {clock}");
                assert_eq!(next.format("%Y-%m-%dT%H:%M").to_string(), quarter, "{clock}");
                // Whoever is asleep for so long has missed many, and makes up for one.
                assert!(ticked.try_recv().is_err(), "{clock}: a second run");
            }
            // It had run years ahead, and is set right.
            hands.0.send_replace(utc("2024-07-03T08:00:00Z"));
            nexts.changed().await.unwrap();
            let next = nexts.borrow_and_update().unwrap();
            assert_eq!(next.format("%Y-%m-%dT%H:%M").to_string(), "2024-07-03T08:15");
            assert!(ticked.try_recv().is_err());
        };
        tokio::select! {
            ended = following => panic!("{ended:?}"),
            () = test => {}
        }
    }

    #[tokio::test]
    async fn a_schedule_ticks_until_it_is_stopped() {
        let clock = Clock::start().await.unwrap();
        let schedule = Schedule::new("* * * * * *", Some("UTC")).unwrap();
        let (ticks, mut ticked) = mpsc::channel(1);
        let (next, mut nexts) = watch::channel(None);
        let stop = CancellationToken::new();
        let following = tokio::spawn({
            let (clock, stop) = (clock.clone(), stop.clone());
            async move { clock.follow(&schedule, ticks, next, stop).await }
        });
        for _ in 0..2 {
            tokio::time::timeout(Duration::from_secs(30), ticked.recv()).await.unwrap().unwrap();
        }
        assert!(nexts.borrow_and_update().is_some());
        stop.cancel();
        following.await.unwrap();
        assert!(nexts.borrow_and_update().is_none());
    }
}
