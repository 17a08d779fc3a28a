//! `/metrics`: what each room measures, put together for Prometheus.

use super::App;
use super::api::{ErrorCode, TraceVerb};
use super::error::ApiError;
use super::scope::Caller;
use crate::metrics::{Histogram, Kind, Text};
use crate::model::{ServerState, ServerStatus};
use crate::sync::control;

/// How long answers took, by verb and whatever the face.
#[derive(Debug, Default)]
pub(super) struct Latency {
    search: Histogram,
    context: Histogram,
    read: Histogram,
}

impl Latency {
    pub fn of(&self, verb: TraceVerb) -> &Histogram {
        match verb {
            TraceVerb::Search => &self.search,
            TraceVerb::Context => &self.context,
            TraceVerb::Read => &self.read,
        }
    }
}

const STATES: [ServerState; 10] = [
    ServerState::Connecting,
    ServerState::Listing,
    ServerState::Syncing,
    ServerState::Live,
    ServerState::NoListing,
    ServerState::Backoff,
    ServerState::Failed,
    ServerState::NeedsConfig,
    ServerState::NeedsAuth,
    ServerState::Disabled,
];

/// A number of each server.
type PerServer = (&'static str, Kind, &'static str, fn(&ServerStatus) -> u64);

const PER_SERVER: &[PerServer] = {
    use Kind::{Counter, Gauge};
    &[
        ("resdex_listed_resources", Gauge, "Resources that the server lists.", |s| s.listed),
        ("resdex_indexed_resources", Gauge, "Resources whose text is searchable.", |s| s.indexed),
        ("resdex_skipped_resources", Gauge, "Resources found by name only.", |s| s.skipped),
        ("resdex_stale_resources", Gauge, "Resources whose text may be out of date.", |s| s.stale),
        ("resdex_withheld_removals", Gauge, "Removals that wait for a second listing.", |s| {
            s.withheld_removals
        }),
        ("resdex_reads_waiting", Gauge, "Reads that wait for their turn.", |s| s.queue.waiting),
        ("resdex_reads_in_flight", Gauge, "Reads under way.", |s| s.queue.in_flight),
        ("resdex_connects_total", Counter, "Connections made.", |s| s.counts.connects),
        ("resdex_listings_total", Counter, "Listings taken.", |s| s.counts.listings),
        ("resdex_notifications_total", Counter, "Notifications of changes received.", |s| {
            s.counts.notifications
        }),
        ("resdex_reads_total", Counter, "Reads that ended, failed ones included.", |s| {
            s.counts.reads
        }),
        ("resdex_read_failures_total", Counter, "Reads that failed.", |s| s.counts.read_failures),
        ("resdex_read_bytes_total", Counter, "Bytes of content that reads brought.", |s| {
            s.counts.bytes_read
        }),
        ("resdex_indexings_total", Counter, "Resources written to the index.", |s| {
            s.counts.indexed
        }),
        ("resdex_unchanged_reads_total", Counter, "Reads that brought what was there.", |s| {
            s.counts.unchanged
        }),
        ("resdex_spared_reads_total", Counter, "Reads that the server's word spared.", |s| {
            s.counts.spared
        }),
        ("resdex_removals_total", Counter, "Resources removed from the index.", |s| {
            s.counts.removed
        }),
    ]
};

impl App {
    /// Blocks on the index's folder, never on a server.
    ///
    /// # Errors
    /// A caller that sees only a part, since the numbers are about the whole; or a fault of the index.
    pub fn metrics(&self, caller: &Caller) -> Result<String, ApiError> {
        let view = self.view(caller, None)?;
        if view.bound && !view.is_whole() {
            let message = "the metrics are about all servers, and this token's scope isn't";
            return Err(ApiError::new(ErrorCode::Forbidden, message).hint(Some(
                "ask on the Unix socket, or with the token of a scope without limits",
            )));
        }
        let stats = self.store.stats()?;
        let mut text = Text::default();
        let mut one = |name: &str, kind, help: &str, value: f64| {
            text.family(name, kind, help);
            text.sample(name, &[], value);
        };
        let uptime = self.started.elapsed().as_secs_f64();
        one("resdex_uptime_seconds", Kind::Gauge, "Time since the daemon's start.", uptime);
        one(
            "resdex_index_resources",
            Kind::Gauge,
            "Resources in the index.",
            stats.resources as f64,
        );
        one("resdex_index_chunks", Kind::Gauge, "Passages in the index.", stats.chunks as f64);
        one("resdex_index_bytes", Kind::Gauge, "Size of the index on disk.", stats.bytes as f64);
        if let Some(at) = stats.last_commit {
            let help = "When the index was last written, in Unix time.";
            let at = at.timestamp_millis() as f64 / 1_000.0;
            one("resdex_index_last_commit_timestamp_seconds", Kind::Gauge, help, at);
        }
        let paused = f64::from(u8::from(self.paused.load().is_some()));
        one("resdex_index_paused", Kind::Gauge, "1 while nothing is written to the index.", paused);
        let broken = f64::from(u8::from(self.config_error.load().is_some()));
        let help = "1 while a changed config can't be used.";
        one("resdex_config_broken", Kind::Gauge, help, broken);
        if let Some(queue) = self.write_queue.get() {
            let help = "Bytes of changes that wait for the index's writer.";
            one("resdex_write_queue_bytes", Kind::Gauge, help, queue.bytes() as f64);
        }
        text.family("resdex_build_info", Kind::Gauge, "Always 1; the labels say what runs.");
        text.sample("resdex_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);

        let name = "resdex_answer_seconds";
        text.family(name, Kind::Histogram, "How long searches, contexts and reads took.");
        for (verb, label) in [
            (TraceVerb::Search, "search"),
            (TraceVerb::Context, "context"),
            (TraceVerb::Read, "read"),
        ] {
            text.histogram(name, &[("verb", label)], self.latency.of(verb));
        }
        self.server_metrics(&mut text);
        Ok(text.finish())
    }

    fn server_metrics(&self, text: &mut Text) {
        let servers = self.control.all();
        let statuses: Vec<ServerStatus> =
            servers.iter().map(|server| control::read(&server.status).clone()).collect();
        for (name, kind, help, value) in PER_SERVER {
            text.family(name, *kind, help);
            for status in &statuses {
                text.sample(name, &[("server", &status.name)], value(status));
            }
        }
        let name = "resdex_server_state";
        text.family(name, Kind::Gauge, "1 for the state that the server is in.");
        for status in &statuses {
            for state in STATES {
                let label = serde_json::to_value(state).unwrap_or_default();
                let label = label.as_str().unwrap_or_default();
                let is_it = u8::from(state == status.state);
                text.sample(name, &[("server", &status.name), ("state", label)], is_it);
            }
        }
        let name = "resdex_notification_lag_seconds";
        let help = "From a notification to what it told being searchable.";
        text.family(name, Kind::Histogram, help);
        for (status, server) in statuses.iter().zip(&servers) {
            text.histogram(name, &[("server", &status.name)], &server.lag);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::*;
    use crate::config::{Config, ScopeConfig};
    use crate::serve::api::SearchRequest;
    use crate::serve::tests::{app, owner};

    /// Every line is one that Prometheus reads, and every sample belongs to the family above it.
    fn check(text: &str) -> BTreeSet<String> {
        let mut families = BTreeSet::new();
        let mut family = "";
        assert!(text.ends_with('\n'));
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                family = rest.split(' ').next().unwrap();
                assert!(families.insert(family.to_owned()), "{family} stands twice");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(name == family && ["counter", "gauge", "histogram"].contains(&kind));
                assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
            } else {
                let (sample, value) = line.rsplit_once(' ').unwrap();
                value.parse::<f64>().unwrap_or_else(|error| panic!("{line}: {error}"));
                let name = sample.split('{').next().unwrap();
                assert!(name.starts_with(family), "{line} under {family}");
                assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'), "{line}");
            }
        }
        families
    }

    #[test]
    fn everything_is_there_for_every_server() {
        let app = app();
        for query in ["refund", "退款"] {
            app.search(&owner(), &SearchRequest::new(query), "id").unwrap();
        }
        let text = app.metrics(&owner()).unwrap();
        let families = check(&text);
        for family in [
            "resdex_build_info",
            "resdex_index_bytes",
            "resdex_uptime_seconds",
            "resdex_answer_seconds",
            "resdex_notification_lag_seconds",
            "resdex_reads_waiting",
            "resdex_read_bytes_total",
        ] {
            assert!(families.contains(family), "{family}");
        }
        for line in [
            "resdex_answer_seconds_count{verb=\"search\"} 2",
            "resdex_indexed_resources{server=\"handbook\"} 2",
            "resdex_indexed_resources{server=\"wiki\"} 2",
            "resdex_server_state{server=\"wiki\",state=\"backoff\"} 1",
            "resdex_server_state{server=\"wiki\",state=\"live\"} 0",
            "resdex_notification_lag_seconds_count{server=\"wiki\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} isn't in\n{text}");
        }
    }

    #[test]
    fn the_page_on_running_it_names_every_metric() {
        let page = include_str!("../../docs/operating.md");
        for family in check(&app().metrics(&owner()).unwrap()) {
            assert!(page.contains(&format!("`{family}`")), "{family}");
        }
    }

    #[test]
    fn a_token_sees_all_numbers_or_none() {
        let app = app();
        let mut config = Config::clone(&app.config.load());
        let all = ScopeConfig { pins: vec!["handbook:///tone.md".into()], ..Default::default() };
        config.scopes.insert("all".into(), all);
        for (name, scope) in [
            (
                "servers",
                ScopeConfig {
                    servers: vec![crate::serve::fake::key("wiki", "u").server],
                    ..Default::default()
                },
            ),
            ("include", ScopeConfig { include: vec!["**".into()], ..Default::default() }),
            ("types", ScopeConfig { mime_types: vec!["text/*".into()], ..Default::default() }),
        ] {
            config.scopes.insert(name.into(), scope);
        }
        app.config.store(Arc::new(config));
        assert!(app.metrics(&Caller::of_scope("all", "prometheus")).is_ok());
        for scope in ["bot", "servers", "include", "types"] {
            let refused = app.metrics(&Caller::of_scope(scope, "bot")).unwrap_err().detail;
            assert_eq!(refused.code, ErrorCode::Forbidden, "{scope}");
            assert!(!refused.message.contains("handbook"));
        }
    }
}
