//! Connections: made, lost, and given up for a while.

use std::time::Duration;

use tokio::time::Instant;

use super::{Command, HEALTHY, Link, Machine, Notice, Phase, TIMEOUTS, Want};
use crate::model::{ServerState, SyncCause};
use crate::source::SourceError;
use crate::sync::backoff;
use crate::sync::plan::Depth;

impl Machine {
    pub(super) fn connected(&mut self, now: Instant) {
        self.session += 1;
        self.counts.connects += 1;
        self.timeouts = 0;
        self.link = Link::Up { since: now };
        self.want(SyncCause::Startup, Depth::All, now);
    }

    /// The connection is gone, or can't be had.
    pub(super) fn down(&mut self, error: SourceError, now: Instant) {
        match self.link {
            Link::Down { .. } => return,
            Link::Up { since } if now.duration_since(since) >= HEALTHY => self.connect_failures = 0,
            _ => {}
        }
        self.connect_failures += 1;
        let longest = self.options.backoff.longest;
        let (state, wait) = match &error {
            // Whoever has to mend that asks for another attempt by hand.
            SourceError::NeedsAuth { .. } => (ServerState::NeedsAuth, longest),
            SourceError::CannotStart { .. } => {
                (ServerState::Failed, self.options.backoff.delay(self.connect_failures))
            }
            SourceError::Overloaded { retry_after: Some(seconds), .. } => {
                (ServerState::Backoff, Duration::from_secs((*seconds).clamp(1, 300)))
            }
            _ => (ServerState::Backoff, self.options.backoff.delay(self.connect_failures)),
        };
        let wait = backoff::jittered(wait, (self.options.random)());
        self.link = Link::Down { until: now + wait, state };
        // What the old session brings late is not for the next one.
        self.session += 1;
        self.begin_again(SyncCause::Startup, now);
        self.fresh.clear();
        self.commands.push(Command::Disconnect);
        self.commands.push(Command::Notice(Notice::Reconnect { attempt: self.connect_failures }));
        self.failed(error);
    }

    /// Gives up the reconciliation that is under way and wants a whole one, which spares no more than
    /// that did.
    pub(super) fn begin_again(&mut self, cause: SyncCause, due: Instant) {
        let unfinished = self.phase.want().filter(|want| want.depth == Depth::All);
        self.phase = Phase::Idle;
        let mut want = Want::new(cause, Depth::All, due);
        if let Some(unfinished) = unfinished {
            want.sparing = want.sparing.min(unfinished.sparing);
        }
        self.add_want(want);
    }

    pub(super) fn failed(&mut self, error: SourceError) {
        self.commands.push(Command::Notice(Notice::Error(error.to_string())));
        self.last_error = Some(error);
    }

    /// A request failed with something that concerns the connection as a whole.
    pub(super) fn connection_failed(&mut self, error: &SourceError, now: Instant) -> bool {
        match error {
            SourceError::Disconnected { .. } | SourceError::NeedsAuth { .. } => {
                self.down(error.clone(), now);
                true
            }
            SourceError::TimedOut { .. } => {
                self.timeouts += 1;
                let enough = self.timeouts >= TIMEOUTS;
                if enough {
                    self.down(error.clone(), now);
                }
                enough
            }
            _ => {
                self.timeouts = 0;
                false
            }
        }
    }
}
