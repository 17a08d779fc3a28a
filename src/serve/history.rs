//! What happened lately: changes of each resource, and figures of each minute, in memory only.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::App;
use super::api::{ChangeItem, ChangeKind, SeriesPoint, SeriesResponse};
use super::error::ApiError;
use super::fill::owner_only;
use super::scope::Caller;
use crate::model::ResourceKey;
use crate::sync::control::Event;

/// Changes that are remembered, of all resources.
const MAX_CHANGES: usize = 20_000;
/// Changes of one resource that are told.
const MAX_TOLD: usize = 50;
const MINUTES: usize = 120;
/// Times that are kept of one minute; of more, every second one is.
const MAX_TIMES: usize = 2_000;
/// How often the index is looked at.
const SAMPLED: Duration = Duration::from_secs(20);

#[derive(Debug, Default)]
pub struct History {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    changes: VecDeque<(DateTime<Utc>, String, String, ChangeKind)>,
    minutes: VecDeque<Minute>,
    errors: BTreeMap<String, u64>,
    lags: BTreeMap<String, Times>,
}

#[derive(Debug, Default)]
struct Minute {
    /// Since the epoch.
    number: i64,
    searches: u64,
    took: Times,
    lags: Times,
    errors: u64,
    resources: Option<u64>,
    index_bytes: Option<u64>,
}

/// Times in milliseconds, thinned out when there are too many.
#[derive(Debug, Default)]
struct Times {
    kept: Vec<f64>,
    seen: usize,
    /// One of so many is kept, less one.
    skip: usize,
}

impl Times {
    fn add(&mut self, ms: f64) {
        self.seen += 1;
        if !self.seen.is_multiple_of(self.skip + 1) {
            return;
        }
        if self.kept.len() == MAX_TIMES {
            let mut at = 0;
            self.kept.retain(|_| {
                at += 1;
                at % 2 == 0
            });
            self.skip = self.skip * 2 + 1;
        }
        self.kept.push(ms);
    }

    /// The time that this share of all stays within.
    fn within(&self, share: f64) -> Option<f64> {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = (sorted.len() as f64 * share).ceil() as usize;
        sorted.get(at.saturating_sub(1)).copied()
    }
}

impl History {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What became of a resource, the newest first.
    pub fn of(&self, key: &ResourceKey) -> Vec<ChangeItem> {
        let kept = self.lock();
        let mine = kept.changes.iter().rev().filter(|(_, server, uri, _)| {
            server == key.server.as_str() && uri.as_str() == &*key.uri
        });
        mine.take(MAX_TOLD).map(|(at, _, _, kind)| ChangeItem { at: *at, kind: *kind }).collect()
    }

    /// A search or a context took so long.
    pub fn searched(&self, took_ms: f64, now: DateTime<Utc>) {
        let mut kept = self.lock();
        let minute = kept.minute(now);
        minute.searches += 1;
        minute.took.add(took_ms);
    }

    fn happened(&self, event: Event, now: DateTime<Utc>) {
        let mut kept = self.lock();
        let (server, uri, kind) = match event {
            Event::Indexed { server, uri } => (server, uri, ChangeKind::Indexed),
            Event::Removed { server, uri } => (server, uri, ChangeKind::Removed),
            Event::Pushed { server, lag_ms } => {
                kept.lags.entry(server).or_default().add(lag_ms as f64);
                return kept.minute(now).lags.add(lag_ms as f64);
            }
            Event::Error { server, .. } => {
                *kept.errors.entry(server).or_default() += 1;
                kept.minute(now).errors += 1;
                return;
            }
            _ => return,
        };
        if kept.changes.len() == MAX_CHANGES {
            kept.changes.pop_front();
        }
        kept.changes.push_back((now, server, uri, kind));
    }

    fn sampled(&self, resources: u64, bytes: u64, now: DateTime<Utc>) {
        let mut kept = self.lock();
        let minute = kept.minute(now);
        (minute.resources, minute.index_bytes) = (Some(resources), Some(bytes));
    }

    fn series(&self) -> SeriesResponse {
        let kept = self.lock();
        let points = kept.minutes.iter().map(|minute| SeriesPoint {
            at: DateTime::from_timestamp(minute.number * 60, 0).unwrap_or_default(),
            searches: minute.searches,
            search_p50_ms: minute.took.within(0.5),
            search_p99_ms: minute.took.within(0.99),
            lag_p50_ms: minute.lags.within(0.5),
            lag_max_ms: minute.lags.within(1.0),
            errors: minute.errors,
            resources: minute.resources,
            index_bytes: minute.index_bytes,
        });
        let lags = kept.lags.iter();
        SeriesResponse {
            points: points.collect(),
            errors: kept.errors.clone(),
            lag_p50_ms: lags
                .filter_map(|(server, lags)| Some((server.clone(), lags.within(0.5)?)))
                .collect(),
        }
    }
}

impl Kept {
    /// The present minute. A clock that was set back goes on in the last one.
    fn minute(&mut self, now: DateTime<Utc>) -> &mut Minute {
        let number = now.timestamp().div_euclid(60);
        if self.minutes.back().is_none_or(|last| last.number < number) {
            self.minutes.push_back(Minute { number, ..Minute::default() });
            while self
                .minutes
                .front()
                .is_some_and(|first| first.number + (MINUTES as i64) <= number)
            {
                self.minutes.pop_front();
            }
        }
        let last = self.minutes.len() - 1;
        &mut self.minutes[last]
    }
}

impl App {
    /// How things went lately.
    ///
    /// # Errors
    /// The caller isn't the owner.
    pub fn series(&self, caller: &Caller) -> Result<SeriesResponse, ApiError> {
        owner_only(&self.view(caller, None)?, "only the daemon's owner sees its figures")?;
        Ok(self.history.series())
    }
}

/// Keeps the history until it is told to stop.
pub async fn keep(app: Arc<App>, stop: CancellationToken) {
    let mut events = app.control.events();
    let mut samples = tokio::time::interval(SAMPLED);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            event = events.recv() => match event {
                Ok(event) => app.history.happened(event, Utc::now()),
                // What was missed is missing from the history, and nowhere else.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            },
            _ = samples.tick() => {
                let stats = app.blocking(|app| Ok(app.store.stats()?)).await;
                if let Ok(stats) = stats {
                    app.history.sampled(stats.resources, stats.bytes, Utc::now());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::api::ErrorCode;
    use crate::serve::fake::{key, time};
    use crate::serve::tests::{app, owner};

    #[test]
    fn changes_are_kept_by_resource_and_bounded() {
        let history = History::default();
        let indexed = |uri: &str| Event::Indexed { server: "wiki".into(), uri: uri.into() };
        history.happened(indexed("a"), time());
        history.happened(Event::Removed { server: "wiki".into(), uri: "a".into() }, time());
        history.happened(indexed("b"), time());
        let kinds: Vec<_> =
            history.of(&key("wiki", "a")).iter().map(|change| change.kind).collect();
        assert_eq!(kinds, [ChangeKind::Removed, ChangeKind::Indexed]);
        assert!(history.of(&key("docs", "a")).is_empty());
        for n in 0..MAX_CHANGES {
            history.happened(indexed(&n.to_string()), time());
        }
        assert!(history.of(&key("wiki", "a")).is_empty());
        assert_eq!(history.lock().changes.len(), MAX_CHANGES);
    }

    #[test]
    fn minutes_are_summed_up_and_let_go() {
        let app = app();
        let history = &app.history;
        let minute = chrono::TimeDelta::minutes(1);
        for n in 1..=100 {
            history.searched(f64::from(n), time());
        }
        history.happened(Event::Pushed { server: "wiki".into(), lag_ms: 40 }, time() + minute);
        let error = Event::Error { server: "wiki".into(), message: "x".into() };
        history.happened(error, time() + minute);
        history.sampled(7, 4_096, time() + minute);
        let series = app.series(&owner()).unwrap();
        let [first, second] = &series.points[..] else { panic!("{series:?}") };
        assert_eq!(
            (first.searches, first.search_p50_ms, first.search_p99_ms),
            (100, Some(50.0), Some(99.0))
        );
        assert_eq!((second.lag_p50_ms, second.errors, second.resources), (Some(40.0), 1, Some(7)));
        assert_eq!((series.errors["wiki"], series.lag_p50_ms["wiki"]), (1, 40.0));
        history.searched(1.0, time() + minute * 200);
        assert_eq!(history.series().points.len(), 1);
        let refused = app.series(&Caller::of_scope("bot", "test")).unwrap_err();
        assert_eq!(refused.detail.code, ErrorCode::Forbidden);
    }

    #[test]
    fn many_times_are_thinned_out_evenly() {
        let mut times = Times::default();
        for n in 0..100_000 {
            times.add(f64::from(n));
        }
        assert!(times.kept.len() <= MAX_TIMES);
        let median = times.within(0.5).unwrap();
        assert!((45_000.0..55_000.0).contains(&median), "{median}");
    }
}
