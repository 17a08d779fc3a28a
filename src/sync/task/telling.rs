//! What a server's task tells the rest of the daemon: events, the log, its status.

use chrono::Utc;
use tokio::time::Instant;

use super::super::control::{self, TemplateRow};
use super::super::hint;
use super::super::machine::{MAX_WARNINGS, Machine, Notice};
use super::super::plan;
use super::{PROGRESS, Task};
use crate::config::mask;
use crate::model::{Listing, Resource, ServerError, ServerState, ServerStatus};
use crate::source::mcp::Session;

impl Task {
    pub(super) fn notice(&mut self, notice: Notice) {
        let server = self.server.name.to_string();
        let event = match notice {
            Notice::Listing { cause, resources, complete } => {
                tracing::debug!(%server, ?cause, resources, complete, "listed");
                control::Event::Listing { server, cause, resources, complete }
            }
            Notice::Withheld(removals) => {
                let line = format!("{removals} removals");
                if let Some(untold) = self.quiet.ask(&line, Instant::now().into_std()) {
                    tracing::warn!(%server, removals, untold, "a mass removal waits for a second listing, or for `resdex sync --confirm`");
                }
                control::Event::Withheld { server, removals }
            }
            Notice::Reconnect { attempt } => control::Event::Reconnect { server, attempt },
            Notice::Error(message) => {
                let message = self.masker.mask(&message).into_owned();
                if let Some(untold) = self.quiet.ask(&message, Instant::now().into_std()) {
                    tracing::warn!(%server, error = %message, untold, "an error of the server");
                }
                control::Event::Error { server, message }
            }
            Notice::ReadFailed(message) => {
                let message = self.masker.mask(&message).into_owned();
                // There may be one for each resource; the status has the last.
                tracing::debug!(%server, error = %message, "a read failed");
                control::Event::Error { server, message }
            }
            Notice::Warning(message) => {
                let message = self.masker.mask(&mask::uri(&message)).into_owned();
                if let Some(untold) = self.quiet.ask(&message, Instant::now().into_std()) {
                    tracing::warn!(%server, warning = %message, untold, "for the server's owner");
                }
                control::Event::Warning { server, message }
            }
            Notice::Searchable(lag) => {
                self.shared.lag.observe(lag);
                control::Event::Pushed { server, lag_ms: lag.as_millis() as u64 }
            }
            Notice::Synced { cause } => {
                self.last_sync = Some(Utc::now());
                if let Some(untold) = self.calm.ask("reconciled", Instant::now().into_std()) {
                    tracing::info!(%server, ?cause, untold, "reconciled");
                }
                return;
            }
        };
        self.context.control.publish(event);
    }

    pub(super) fn show_templates(&self, listing: &Listing) {
        let expanded = |template: &str| {
            let of = |resource: &&Resource| plan::template_of(&resource.origin) == Some(template);
            listing.resources.iter().filter(of).count() as u64
        };
        let rows = listing.templates.iter().map(|template| TemplateRow {
            template: template.clone(),
            expanded: expanded(&template.uri_template),
        });
        *control::write(&self.shared.templates) = rows.collect();
    }

    /// Shows the machine's state to the rest of the daemon.
    pub(super) fn publish(&mut self, machine: &mut Machine) {
        let flips = machine.take_stale_flips();
        if !flips.is_empty() {
            let mut stale = control::write(&self.shared.stale);
            for (uri, is_stale) in flips {
                match is_stale {
                    true => stale.insert(uri),
                    false => stale.remove(&uri),
                };
            }
        }
        if machine.withheld() == 0 && !control::read(&self.shared.withheld).is_empty() {
            control::write(&self.shared.withheld).clear();
        }
        let (state, now) = (machine.state(), Instant::now());
        let changed = control::read(&self.shared.status).state != state;
        // While reads come in by the thousand, the counts are shown ten times a second.
        let early = now.duration_since(self.published) < PROGRESS;
        self.unpublished = !changed && early && machine.is_reading();
        if self.unpublished {
            return;
        }
        self.published = now;
        let server = || self.server.name.to_string();
        if changed {
            tracing::debug!(server = server(), ?state, "the server's state");
            self.context.control.publish(control::Event::State { server: server(), state });
        }
        if state == ServerState::Syncing {
            let (done, total) = machine.progress();
            self.context.control.publish(control::Event::Progress {
                server: server(),
                done,
                total,
            });
        }
        self.keep_error(machine);
        let status = self.status(machine, state);
        *control::write(&self.shared.status) = status;
    }

    /// Keeps the time at which an error was first seen.
    fn keep_error(&mut self, machine: &Machine) {
        match (machine.last_error(), &self.last_error) {
            (Some(new), Some((old, _))) if new == old => {}
            (Some(new), _) => self.last_error = Some((new.clone(), Utc::now())),
            (None, _) => self.last_error = None,
        }
    }

    fn status(&self, machine: &Machine, state: ServerState) -> ServerStatus {
        let catalog = machine.catalog().counts();
        let session = self.session.as_ref();
        let noise = session.map_or(0, Session::noise);
        let mut warnings: Vec<String> = machine.warnings().take(MAX_WARNINGS).cloned().collect();
        let more = machine.warnings().count() - warnings.len();
        if more > 0 {
            warnings.push(format!("and {more} more faults of its listing"));
        }
        if noise > 0 {
            warnings.push(format!(
                "{noise} messages were none of the protocol (logs on stdout?) and were dropped"
            ));
        }
        let last_error = self.last_error.as_ref().map(|(error, at)| ServerError {
            message: self.masker.mask(&error.to_string()).into_owned(),
            hint: hint::of(error, &self.server).map(|hint| self.masker.mask(&hint).into_owned()),
            at: *at,
        });
        ServerStatus {
            name: self.server.name.to_string(),
            state,
            protocol: session.map(|session| session.protocol().to_owned()),
            push: session.map(Session::push).into_iter().flatten().map(str::to_owned).collect(),
            listed: catalog.listed,
            indexed: catalog.indexed,
            skipped: catalog.skipped,
            stale: catalog.stale,
            last_sync: self.last_sync,
            next_sync: *self.next_sync.borrow(),
            last_error,
            withheld_removals: machine.withheld(),
            warnings: warnings
                .iter()
                .map(|warning| self.masker.mask(&mask::uri(warning)).into_owned())
                .collect(),
            queue: machine.queue(),
            counts: machine.counts(),
        }
    }
}
