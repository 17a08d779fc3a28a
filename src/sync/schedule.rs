//! When servers are reconciled, whether they push or not.
//!
//! `tokio-cron-scheduler` waits; which time is next is asked of `croner` before each wait, in the
//! zone's own clock. (The scheduler's own cron jobs keep the offset that the zone had when they were
//! made, and are an hour off after its clocks change.) A run that was missed, because the machine
//! slept or the clock was set, is made up for once: the next time is always counted from now.

use std::time::Duration;

use chrono::{DateTime, Local, TimeZone, Utc};
use chrono_tz::Tz;
use croner::Cron;
use croner::parser::{CronParser, Seconds};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};
use tokio_util::sync::CancellationToken;

use super::backoff::random_unit;

/// The most that a run is put off, so that many servers aren't read at the same second.
const MOST_JITTER: Duration = Duration::from_secs(30);

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
}

impl Schedule {
    /// # Errors
    /// What is wrong with the expression, or the zone's name.
    pub fn new(cron: &str, zone: Option<&str>) -> Result<Self, String> {
        let parser = CronParser::builder().seconds(Seconds::Required).build();
        let cron = parser.parse(cron).map_err(|error| error.to_string())?;
        let zone = match zone {
            None => Zone::Local,
            Some(name) => {
                Zone::Named(name.parse().map_err(|_| format!("{name} is not a time zone"))?)
            }
        };
        Ok(Self { cron, zone })
    }

    /// The first time after `now`; none when there will never be one.
    pub fn after(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match self.zone {
            Zone::Local => self.after_in(&now.with_timezone(&Local)),
            Zone::Named(zone) => self.after_in(&now.with_timezone(&zone)),
        }
    }

    fn after_in<Z: TimeZone>(&self, now: &DateTime<Z>) -> Option<DateTime<Utc>> {
        let next = self.cron.find_next_occurrence(now, false).ok()?;
        Some(next.with_timezone(&Utc))
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
        while let Some(at) = schedule.next_run(Utc::now(), random_unit()) {
            next.send_replace(Some(at));
            tokio::select! {
                waited = self.wait_until(at) => {
                    if let Err(error) = waited {
                        tracing::error!(%error, "the scheduler failed; this server is no longer reconciled by schedule");
                        break;
                    }
                }
                () = stop.cancelled() => break,
            }
            // A full channel holds a tick that does the same.
            let _ = ticks.try_send(());
        }
        next.send_replace(None);
    }

    /// Waits by the wall clock: a machine that slept through the time is told at once.
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
        // The sender goes only when the scheduler does.
        rung.await.map_err(|_| JobSchedulerError::TickError)
    }
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
