//! What asks for work: hints of the server, the schedule, people.

use tokio::time::Instant;

use super::{Link, Machine, Want};
use crate::model::{SyncCause, Uri};
use crate::source::SourceError;
use crate::source::mcp::hints::Marks;
use crate::sync::catalog::Reading;
use crate::sync::plan::Depth;

impl Machine {
    pub(super) fn hinted(&mut self, marks: Marks, now: Instant) {
        self.counts.notifications += marks.notifications;
        if let Some(reason) = marks.closed {
            return self.down(SourceError::Disconnected { reason }, now);
        }
        for uri in marks.uris {
            match self.catalog.owner(&uri) {
                Some(owner) => {
                    // The server says that the owner changed, or something that it stands above.
                    self.lags.told(&owner, now);
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
            self.list_told.get_or_insert(now);
            self.want_relisting(now);
        }
        if marks.everything {
            let due = self.recheck_from.max(now);
            self.want(SyncCause::Notification, Depth::All, due);
        }
    }

    pub(super) fn mark(&mut self, uri: &Uri, now: Instant) {
        let in_flight = self.catalog.change(uri, |known| {
            known.due = true;
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

    pub(super) fn want_relisting(&mut self, now: Instant) {
        let due = self.relist_from.max(now);
        self.want(SyncCause::Notification, Depth::New, due);
    }

    pub(super) fn want(&mut self, cause: SyncCause, depth: Depth, due: Instant) {
        self.add_want(Want::new(cause, depth, due));
    }

    pub(super) fn add_want(&mut self, want: Want) {
        self.want = Some(self.want.map_or(want, |old| old.merge(want)));
    }

    pub(super) fn asked(&mut self, cause: SyncCause, confirm: bool, now: Instant) {
        self.add_want(Want { confirm, ..Want::new(cause, Depth::All, now) });
        // Whoever asks has perhaps mended what was wrong.
        if let Link::Down { until, .. } = &mut self.link
            && cause != SyncCause::Schedule
        {
            *until = now;
        }
    }
}
