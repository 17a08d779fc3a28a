//! How long to wait after the n-th failure in a row.

use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(300);

/// One second after the first failure, doubled with each further one, five minutes at most.
pub fn delay(failures: u32) -> Duration {
    let doubled = FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(LONGEST)
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
    fn waits_double_up_to_five_minutes() {
        let seconds: Vec<u64> = (0..12).map(|failures| delay(failures).as_secs()).collect();
        assert_eq!(seconds, [1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(delay(u32::MAX), LONGEST);
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
