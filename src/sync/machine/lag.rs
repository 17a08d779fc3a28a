//! How long it takes from a notification until what it told is searchable.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::model::Uri;

/// The first notification of each resource that isn't answered yet.
#[derive(Debug, Default)]
pub(super) struct Lags {
    /// No read has begun since.
    told: HashMap<Uri, Instant>,
    /// Handed to the index, after which flush.
    handed: HashMap<Uri, (u32, Instant)>,
}

impl Lags {
    pub fn told(&mut self, uri: &Uri, at: Instant) {
        self.told.entry(uri.clone()).or_insert(at);
    }

    /// A read begins that answers what was told before it.
    pub fn begun(&mut self, uri: &Uri) -> Option<Instant> {
        self.told.remove(uri)
    }

    /// A read failed that would have answered it.
    pub fn failed(&mut self, uri: &Uri, told: Option<Instant>) {
        if let Some(told) = told {
            let first = self.told.entry(uri.clone()).or_insert(told);
            *first = told.min(*first);
        }
    }

    pub fn handed(&mut self, uri: &Uri, flushes: u32, told: Option<Instant>) {
        if let Some(told) = told {
            self.handed.entry(uri.clone()).or_insert((flushes, told));
        }
    }

    /// What was handed over before this flush is searchable: answers how long that took.
    pub fn saved(&mut self, flushes: u32, now: Instant) -> Vec<Duration> {
        let saved = self.handed.extract_if(|_, (handed, _)| *handed < flushes);
        saved.map(|(_, (_, told))| now.saturating_duration_since(told)).collect()
    }

    /// What was handed over is lost, and will be read again.
    pub fn lost(&mut self) {
        for (uri, (_, told)) in std::mem::take(&mut self.handed) {
            self.failed(&uri, Some(told));
        }
    }

    pub fn forget(&mut self, uri: &Uri) {
        self.told.remove(uri);
        self.handed.remove(uri);
    }
}
