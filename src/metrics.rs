//! How often and how long, as Prometheus reads it: histograms that many threads fill, and the text
//! format. What is measured is each room's own matter; `serve/metrics` puts it together.

use std::fmt::{Display, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The `Content-Type` of [`Text`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Upper bounds of the buckets in seconds: from a search in a small index to a slow server's read.
const BOUNDS: [f64; 16] = [
    0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0,
];

/// Durations, counted by how long they were. Never blocks.
#[derive(Debug, Default)]
pub struct Histogram {
    /// Each counts what is in no bucket before it; the last one is without a bound.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl Histogram {
    pub fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }
}

/// What a family of samples is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// Labels of a sample: names, and values that may be anything.
pub type Labels<'l> = &'l [(&'l str, &'l str)];

/// Prometheus' text format, version 0.0.4, written family by family.
/// <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>
#[derive(Debug, Default)]
pub struct Text {
    text: String,
}

impl Text {
    /// Begins a family: its samples follow, and no others may stand between them.
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    pub fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        self.text.push_str(name);
        if !labels.is_empty() {
            self.text.push('{');
            for (at, (label, value)) in labels.iter().enumerate() {
                let comma = if at > 0 { "," } else { "" };
                let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
                let _ = write!(self.text, "{comma}{label}=\"{value}\"");
            }
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    /// The samples of one histogram.
    pub fn histogram(&mut self, name: &str, labels: Labels<'_>, histogram: &Histogram) {
        let bucket = format!("{name}_bucket");
        let mut so_far = 0;
        let bounds = BOUNDS.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
        for (count, bound) in histogram.buckets.iter().zip(bounds) {
            so_far += count.load(Ordering::Relaxed);
            self.sample(&bucket, &[labels, &[("le", &bound)]].concat(), so_far);
        }
        let seconds = histogram.micros.load(Ordering::Relaxed) as f64 / 1_000_000.0;
        self.sample(&format!("{name}_sum"), labels, seconds);
        self.sample(&format!("{name}_count"), labels, so_far);
    }

    pub fn finish(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_help_are_escaped() {
        let mut text = Text::default();
        text.family("a_total", Kind::Counter, "one\nline \\ only");
        text.sample("a_total", &[], 7);
        text.sample("a_total", &[("server", "退款 \"x\"\\\n"), ("b", "c")], 0.5);
        assert_eq!(
            text.finish(),
            "# HELP a_total one\\nline \\\\ only\n# TYPE a_total counter\na_total 7\n\
             a_total{server=\"退款 \\\"x\\\"\\\\\\n\",b=\"c\"} 0.5\n"
        );
    }

    #[test]
    fn buckets_add_up() {
        let histogram = Histogram::default();
        for millis in [1, 1, 3, 60_000, 61_000] {
            histogram.observe(Duration::from_millis(millis));
        }
        let mut text = Text::default();
        text.histogram("h", &[("a", "b")], &histogram);
        let text = text.finish();
        for line in [
            "h_bucket{a=\"b\",le=\"0.0005\"} 0",
            "h_bucket{a=\"b\",le=\"0.001\"} 2",
            "h_bucket{a=\"b\",le=\"0.0025\"} 2",
            "h_bucket{a=\"b\",le=\"0.005\"} 3",
            "h_bucket{a=\"b\",le=\"60\"} 4",
            "h_bucket{a=\"b\",le=\"+Inf\"} 5",
            "h_sum{a=\"b\"} 121.005",
            "h_count{a=\"b\"} 5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} isn't in\n{text}");
        }
    }
}
