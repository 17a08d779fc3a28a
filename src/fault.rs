//! Points at which a test lets the daemon die. Nothing of it is in a release.
//!
//! `RESDEX_FAIL_POINT=name:n` kills the process, as a power cut would, when it passes the point of
//! that name for the n-th time (the first, without `:n`). `name:n:panic` panics there instead, as a
//! fault of our own would.

/// Dies here, if this is the point and the time.
#[cfg(debug_assertions)]
pub fn point(name: &str) {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static CHOSEN: LazyLock<Option<(String, AtomicU64, bool)>> = LazyLock::new(|| {
        let chosen = std::env::var("RESDEX_FAIL_POINT").ok()?;
        let (chosen, panics) =
            chosen.strip_suffix(":panic").map_or((chosen.as_str(), false), |point| (point, true));
        let (name, times) = chosen.split_once(':').unwrap_or((chosen, "1"));
        Some((name.to_owned(), AtomicU64::new(times.parse().ok()?), panics))
    });
    if let Some((chosen, left, panics)) = &*CHOSEN
        && chosen == name
        && left.fetch_sub(1, Ordering::Relaxed) == 1
    {
        #[expect(clippy::panic, reason = "it is what was asked for, in a test")]
        if *panics {
            panic!("at the fail point {name}");
        }
        use rustix::process::{Signal, getpid, kill_process};
        let _ = kill_process(getpid(), Signal::KILL);
    }
}

/// Nothing, in a release.
#[cfg(not(debug_assertions))]
#[inline]
pub fn point(_: &str) {}
