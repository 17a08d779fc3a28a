//! What was handed to the index: on disk, or lost and begun again.

use tokio::time::Instant;

use super::{Command, INDEX_FAILURES, Machine, Notice, Phase, Want};
use crate::model::{ServerState, SyncCause};
use crate::source::SourceError;
use crate::sync::catalog::{Catalog, Reading};
use crate::sync::plan::Depth;
use crate::sync::warnings;

impl Machine {
    pub(super) fn flushed(&mut self, result: Result<(), String>, now: Instant) {
        self.flushing = false;
        match result {
            Ok(()) => {
                self.saved = self.flushes;
                for lag in self.lags.saved(self.flushes, now) {
                    self.commands.push(Command::Notice(Notice::Searchable(lag)));
                }
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
                self.lags.lost();
                let due = now + self.options.backoff.delay(INDEX_FAILURES);
                self.begin_again(SyncCause::Startup, due);
                self.commands.push(Command::Reload);
                self.failed(SourceError::BadAnswer { what: "the index".into(), reason });
            }
        }
    }

    /// Begins again from what the index holds. What was handed over since the last good flush may be
    /// there or may still come, so it counts as there with a content that isn't known.
    pub(super) fn reloaded(&mut self, catalog: Catalog, now: Instant) {
        let mut old = std::mem::replace(&mut self.catalog, catalog);
        self.catalog.adopt_stale_flips(&mut old);
        for (uri, known) in old.iter() {
            let (reading, handed) = (known.reading != Reading::No, known.handed);
            if known.due {
                self.catalog.change(uri, |new| new.due = true);
            }
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

    /// Looked at when a reconciliation ends: there may be a million resources.
    fn warn_of_types(&mut self) {
        let many = self.catalog.counts().mislabelled;
        let wrong = self.catalog.iter().filter(|(_, known)| known.stored && known.mislabelled);
        let first = if many > 0 { wrong.map(|(uri, _)| uri).min() } else { None };
        let warning = first.map(|first| warnings::mislabelled(many, first));
        if let Some(new) = warning.as_ref().filter(|new| self.mislabelled.as_ref() != Some(*new)) {
            self.commands.push(Command::Notice(Notice::Warning(new.clone())));
        }
        self.mislabelled = warning;
    }

    pub(super) fn settle(&mut self, want: Want, now: Instant) {
        self.phase = Phase::Idle;
        self.synced_once = true;
        if want.depth == Depth::All {
            self.recheck_from = now + self.options.recheck_interval;
        }
        self.warn_of_types();
        let failing = self.catalog.counts().stale > 0;
        if self.settled() == ServerState::Live && !failing {
            self.last_error = None;
        }
        self.commands.push(Command::Notice(Notice::Synced { cause: want.cause }));
    }
}
