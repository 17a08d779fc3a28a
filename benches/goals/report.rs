//! One line for each goal, with the denominator from the same run.

use std::time::Duration;

/// What a ratio has to be.
#[derive(Clone, Copy)]
pub enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

/// Prints `G<n> <value> <denominator> <ratio> <met|missed>`, and what that is about.
pub fn goal(number: u8, value: String, denominator: String, ratio: f64, goal: Goal, what: &str) {
    let (is_met, sign, bound) = match goal {
        Goal::AtMost(most) => (ratio <= most, "≤", most),
        Goal::AtLeast(least) => (ratio >= least, "≥", least),
    };
    let verdict = if is_met { "met" } else { "missed" };
    println!("G{number} {value} {denominator} {ratio:.2} {verdict:<6} {sign} {bound:.2}: {what}");
}

/// A goal about times, as value and denominator.
pub fn times(number: u8, value: Duration, denominator: Duration, bound: Goal, what: &str) {
    let ratio = value.as_secs_f64() / denominator.as_secs_f64();
    goal(number, shown(value), shown(denominator), ratio, bound, what);
}

/// A figure that no goal is about, or that goals are derived from.
pub fn figure(name: &str, value: &str) {
    println!("-- {name}: {value}");
}

pub fn shown(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds >= 1.0 => format!("{seconds:.2}s"),
        seconds => format!("{:.2}ms", seconds * 1e3),
    }
}

/// Times of the same thing, many times.
#[derive(Default)]
pub struct Times(Vec<Duration>);

impl Times {
    pub fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    pub fn p50(&self) -> Duration {
        self.at(0.5)
    }

    pub fn p99(&self) -> Duration {
        self.at(0.99)
    }

    fn at(&self, share: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        sorted[((sorted.len() - 1) as f64 * share).round() as usize]
    }
}
