//! How long to wait after the n-th failure in a row.

use std::time::Duration;

/// Waits that double.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub first: Duration,
    pub longest: Duration,
}

impl Backoff {
    /// The first wait after the first failure, doubled with each further one, up to the longest.
    pub fn delay(self, failures: u32) -> Duration {
        let doubled = self.first.saturating_mul(1 << failures.saturating_sub(1).min(16));
        doubled.min(self.longest)
    }
}

/// Spreads waits by a quarter either way, so that many who failed together don't return together.
/// `unit` is from 0 to 1.
pub fn jittered(delay: Duration, unit: f64) -> Duration {
    delay.mul_f64(0.75 + unit.clamp(0.0, 1.0) / 2.0)
}

/// A number from 0 to 1 that differs from call to call and process to process. Not for secrets.
pub fn random_unit() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    #[expect(clippy::cast_precision_loss, reason = "a few bits are enough")]
    let unit = (RandomState::new().hash_one(0) >> 11) as f64 / (1_u64 << 53) as f64;
    unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let (first, longest) = (Duration::from_secs(1), Duration::from_secs(300));
        let backoff = Backoff { first, longest };
        let seconds: Vec<u64> = (0..12).map(|failures| backoff.delay(failures).as_secs()).collect();
        assert_eq!(seconds, [1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(backoff.delay(u32::MAX), longest);
    }

    #[test]
    fn jitter_stays_within_a_quarter() {
        let base = Duration::from_secs(100);
        assert_eq!(jittered(base, 0.0).as_secs(), 75);
        assert_eq!(jittered(base, 1.0).as_secs(), 125);
        for _ in 0..100 {
            assert!((0.0..1.0).contains(&random_unit()));
        }
    }
}
