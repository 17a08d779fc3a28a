//! A listing: what it changes, what it can't be believed about, and what is subscribed to.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::{Command, Machine, Notice, Phase, Want, Withheld};
use crate::index::description_hash;
use crate::model::{Listing, Resource, SyncCause, Uri};
use crate::source::SourceError;
use crate::source::mcp::Listed;
use crate::sync::catalog::{Known, Reading};
use crate::sync::plan;
use crate::sync::plan::{Depth, Terms};
use crate::sync::trust::is_spared;
use crate::sync::warnings;

/// Warnings that a listing tells at once; the status has no more of them either.
pub(crate) const MAX_WARNINGS: usize = 20;

impl Machine {
    pub(super) fn listed(&mut self, result: Result<Listed, SourceError>, now: Instant) {
        let Phase::Listing(want) = self.phase else { return };
        let Listed { listing, no_listing } = match result {
            Ok(listed) => listed,
            Err(error) => {
                self.phase = Phase::Idle;
                if self.connection_failed(&error, now) {
                    return;
                }
                self.list_failures += 1;
                let due = now + self.options.backoff.delay(self.list_failures);
                self.add_want(Want { due, ..want });
                return self.failed(error);
            }
        };
        self.timeouts = 0;
        self.counts.listings += 1;
        self.no_listing = no_listing;
        let mut problems = warnings::of(&listing.resources, self.options.own_folder);
        problems.extend(listing.problems.iter().cloned());
        let old = std::mem::replace(&mut self.problems, problems);
        let new = self.problems.iter().filter(|problem| !old.contains(problem));
        for problem in new.take(MAX_WARNINGS) {
            self.commands.push(Command::Notice(Notice::Warning(problem.clone())));
        }
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
                let reason = listing
                    .problems
                    .first()
                    .cloned()
                    .unwrap_or_else(|| "no reason is known".into());
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
        // A server that lists nothing any more says nothing about what it listed.
        let says_all = listing.complete && (!no_listing || want.confirm);
        let listing = Listing { complete: says_all, ..listing };
        let plan = plan::plan(
            &self.catalog,
            listing,
            Terms {
                depth: want.depth,
                absent_before,
                trusting: self.options.own_folder || want.confirm,
                wanted: &*self.options.wanted,
                spared: &|known, resource| {
                    let (trust, fresh) = (self.options.trust, self.fresh.get(&resource.uri));
                    is_spared((trust, want.sparing), known, resource, fresh.copied(), now)
                },
            },
        );
        self.withhold(plan.withheld, now);
        self.apply_listing(plan.listed, &plan.unconfirmed);
        self.remove(plan.removals);
        if let Some(told) = self.listing_told.take().filter(|_| want.depth == Depth::New) {
            for uri in &plan.reads {
                self.lags.told(uri, told);
            }
        }
        self.counts.spared += plan.spared;
        self.planned = plan.reads.len() as u64;
        self.reads = plan.reads;
        self.phase = Phase::Following(want);
        let followed = self.followable();
        self.commands.push(Command::Follow(followed));
    }

    /// Keeps what a listing says of each resource that the index doesn't hold as described.
    pub(super) fn apply_listing(&mut self, listed: Vec<Resource>, unconfirmed: &[Uri]) {
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

    pub(super) fn withhold(&mut self, uris: Vec<Uri>, now: Instant) {
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

    pub(super) fn remove(&mut self, uris: Vec<Uri>) {
        for uri in &uris {
            self.dirty.forget(uri);
            self.lags.forget(uri);
            self.fresh.remove(uri);
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

    pub(super) fn hand_removals(&mut self, uris: Vec<Uri>) {
        self.unflushed = true;
        self.removed.extend(uris.iter().map(|uri| (self.flushes, uri.clone())));
        self.commands.push(Command::Remove(uris));
    }

    /// What is to be subscribed to: what is listed and the config wants, up to its cap.
    pub(super) fn followable(&self) -> BTreeSet<Uri> {
        let listed = self.catalog.iter().filter(|(_, known)| known.listed);
        let mut uris: Vec<&Uri> =
            listed.map(|(uri, _)| uri).filter(|uri| (self.options.subscribed)(uri)).collect();
        uris.sort_unstable();
        uris.truncate(self.options.max_subscriptions);
        uris.into_iter().cloned().collect()
    }

    pub(super) fn followed(&mut self, result: Result<Vec<Uri>, SourceError>, now: Instant) {
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
}
