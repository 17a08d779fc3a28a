//! Which reads are spared because the config trusts what a server says of its resources: that they stay
//! as they are for a while (`ttlMs`), or when they last changed (`lastModified`). Pure.
//!
//! Only a reconciliation spares anything, never a notification: what was pushed, or may have been
//! pushed unheard, is read.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use tokio::time::Instant;

use super::catalog::{Known, Reading};
use crate::config::Trust;
use crate::model::{Resource, SyncCause};

/// How much of a server's word is taken, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sparing {
    /// Everything is read: somebody asked for it, or notifications were lost.
    Nothing,
    /// After a time without a connection, in which a notification may have been missed.
    Unmodified,
    /// By schedule, with nothing missed.
    UnmodifiedAndFresh,
}

impl Sparing {
    /// What a reconciliation of this cause may spare.
    pub fn of(cause: SyncCause) -> Self {
        match cause {
            SyncCause::Schedule => Self::UnmodifiedAndFresh,
            SyncCause::Startup => Self::Unmodified,
            SyncCause::Notification
            | SyncCause::Reload
            | SyncCause::Request
            | SyncCause::Confirmation => Self::Nothing,
        }
    }
}

/// The clocks of server and daemon may be apart by so much.
const SKEW: TimeDelta = TimeDelta::minutes(5);

/// Whether a resource that the index holds as described needn't be read.
pub fn is_spared(
    (trust, sparing): (Trust, Sparing),
    known: &Known,
    resource: &Resource,
    fresh_until: Option<Instant>,
    now: Instant,
) -> bool {
    if known.due || known.stale || known.failures > 0 || known.reading != Reading::No {
        return false;
    }
    let fresh = trust.ttl
        && sparing >= Sparing::UnmodifiedAndFresh
        && fresh_until.is_some_and(|until| now < until);
    let unmodified = || {
        let after = after(resource.last_modified.as_deref()?)?;
        let read_at = DateTime::from_timestamp(known.read_at, 0)?;
        // Changed again within the same second, or day, it would say the same.
        Some(after + SKEW <= read_at)
    };
    let unmodified =
        trust.last_modified && sparing >= Sparing::Unmodified && unmodified().unwrap_or(false);
    fresh || unmodified
}

/// The first moment that a `lastModified` (ISO 8601) doesn't stand for any more: a day later for a
/// date, a second later for a time.
fn after(text: &str) -> Option<DateTime<Utc>> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return time.to_utc().checked_add_signed(TimeDelta::seconds(1));
    }
    // Without an offset it may be any zone's day.
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0)?.and_utc();
    day.checked_add_signed(TimeDelta::hours(24 + 14))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_words_worth_depends_on_its_grain_and_on_what_was_missed() {
        const BOTH: Trust = Trust { last_modified: true, ttl: true };
        let read_at = "2026-03-10T12:00:00Z".parse::<DateTime<Utc>>().unwrap().timestamp();
        let read = Known { read_at, ..Known::default() };
        for (modified, spared) in [
            (Some("2026-03-09T12:00:00Z"), true),
            (Some("2026-03-10T11:54:59Z"), true),
            // Within what the clocks may be apart.
            (Some("2026-03-10T11:55:00Z"), false),
            (Some("2026-03-11T00:00:00Z"), false),
            (Some("2026-03-10T13:50:00+02:00"), true),
            (Some("2026-03-08"), true),
            (Some("2026-03-09"), false),
            (Some("2026-03-10"), false),
            (Some("yesterday"), false),
            (None, false),
        ] {
            let last_modified = modified.map(str::to_owned);
            let resource = Resource { last_modified, ..Resource::new("a://1") };
            let now = Instant::now();
            let is = |trust, sparing, known: &Known| {
                is_spared((trust, sparing), known, &resource, None, now)
            };
            assert_eq!(is(BOTH, Sparing::Unmodified, &read), spared, "{modified:?}");
            assert!(!is(BOTH, Sparing::Nothing, &read));
            assert!(!is(Trust { last_modified: false, ..BOTH }, Sparing::Unmodified, &read));
            for doubtful in [
                Known { due: true, ..read.clone() },
                Known { stale: true, ..read.clone() },
                Known { failures: 1, ..read.clone() },
                Known { reading: Reading::Yes, ..read.clone() },
                Known { read_at: 0, ..read.clone() },
            ] {
                assert!(!is(BOTH, Sparing::UnmodifiedAndFresh, &doubtful), "{doubtful:?}");
            }
        }
    }

    #[test]
    fn what_is_fresh_is_spared_by_the_schedule_only() {
        let now = Instant::now();
        let later = now + std::time::Duration::from_secs(1);
        let resource = Resource::new("a://1");
        for (ttl, sparing, until, spared) in [
            (true, Sparing::UnmodifiedAndFresh, Some(later), true),
            (true, Sparing::UnmodifiedAndFresh, Some(now), false),
            (true, Sparing::UnmodifiedAndFresh, None, false),
            (true, Sparing::Unmodified, Some(later), false),
            (false, Sparing::UnmodifiedAndFresh, Some(later), false),
        ] {
            let trust = Trust { last_modified: false, ttl };
            let is = is_spared((trust, sparing), &Known::default(), &resource, until, now);
            assert_eq!(is, spared, "{ttl} {sparing:?}");
        }
    }
}
