//! Reads: begun, ended, failed, and tried again.

use std::time::Duration;

use tokio::time::Instant;

use super::{Command, Got, Link, Machine, Notice, ReadJob, ReadOutcome, Ticket};
use crate::index::description_hash;
use crate::model::Uri;
use crate::source::SourceError;
use crate::sync::catalog::{Known, Reading};
use crate::sync::dirty::Line;

/// The longest that a resource is taken to stay as it is.
const LONGEST_FRESH: Duration = Duration::from_secs(24 * 3_600);

impl Machine {
    pub(super) fn may_read(&self) -> bool {
        matches!(self.link, Link::Up { .. }) && !self.index_failed
    }

    pub(super) fn start_read(&mut self, uri: &Uri, line: Line, now: Instant) {
        let Some(known) = self.catalog.get(uri) else { return };
        if known.reading != Reading::No {
            // One at a time; what is under way may have begun before the change.
            return self.catalog.change(uri, |known| known.reading = Reading::Again);
        }
        self.in_flight += 1;
        self.planned_in_flight += usize::from(line == Line::Bulk);
        let told = self.lags.begun(uri);
        let ticket = Ticket { session: self.session, epoch: self.epoch, line, begun: now, told };
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

    pub(super) fn read(
        &mut self,
        ticket: Ticket,
        uri: &Uri,
        got: Got,
        outcome: ReadOutcome,
        now: Instant,
    ) {
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
                self.lags.failed(uri, ticket.told);
                self.catalog.change(uri, |known| {
                    (known.stored, known.hash, known.handed) = (true, None, handed)
                });
                self.dirty.mark(uri.clone(), now);
            }
            ReadOutcome::Unchanged => {
                self.counts.unchanged += 1;
                self.succeeded(uri, ticket, got, |_| ());
            }
            ReadOutcome::Replaced { hash, description, skipped, mislabelled } => {
                self.counts.indexed += 1;
                self.unflushed = true;
                let flushes = self.flushes;
                self.lags.handed(uri, flushes, ticket.told);
                self.succeeded(uri, ticket, got, |known| {
                    known.handed = flushes;
                    (known.hash, known.description) = (Some(hash), description);
                    (known.stored, known.skipped) = (true, skipped);
                    known.mislabelled = mislabelled;
                    if known
                        .pending
                        .as_ref()
                        .is_some_and(|new| description_hash(new) == description)
                    {
                        known.pending = None;
                    }
                });
            }
            ReadOutcome::Failed(error) => {
                self.lags.failed(uri, ticket.told);
                self.read_failed(ticket.session, uri, error, now);
            }
        }
        if again {
            self.mark(uri, now);
        }
    }

    fn succeeded(&mut self, uri: &Uri, ticket: Ticket, got: Got, change: impl FnOnce(&mut Known)) {
        self.timeouts = 0;
        self.allowed = (self.allowed + 1).min(self.options.reads_in_flight);
        self.catalog.change(uri, |known| {
            (known.failures, known.not_found, known.stale) = (0, 0, false);
            (known.due, known.read_at) = (false, got.at.timestamp());
            change(known);
        });
        if !self.options.trust.ttl {
            return;
        }
        // What an old session said is as good as what it pushed.
        match got.fresh.filter(|_| ticket.session == self.session) {
            Some(fresh) => {
                self.fresh.insert(uri.clone(), ticket.begun + fresh.min(LONGEST_FRESH));
            }
            None => {
                self.fresh.remove(uri);
            }
        }
    }

    pub(super) fn read_failed(
        &mut self,
        session: u64,
        uri: &Uri,
        error: SourceError,
        now: Instant,
    ) {
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
        self.commands.push(Command::Notice(Notice::ReadFailed(format!("{uri}: {error}"))));
        self.last_error = Some(error);
    }

    /// What was never read is found by its name at least.
    pub(super) fn enter_by_name(&mut self, uri: &Uri, error: &SourceError) {
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
}
