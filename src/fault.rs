//! Points at which a test lets the daemon die. Nothing of it is in a release.
//!
//! `RESDEX_FAIL_POINT=name:n` kills the process, as a power cut would, when it passes the point of
//! that name for the n-th time (the first, without `:n`).

/// Dies here, if this is the point and the time.
#[cfg(debug_assertions)]
pub fn point(name: &str) {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static CHOSEN: LazyLock<Option<(String, AtomicU64)>> = LazyLock::new(|| {
        let chosen = std::env::var("RESDEX_FAIL_POINT").ok()?;
        let (name, times) = chosen.split_once(':').unwrap_or((&chosen, "1"));
        Some((name.to_owned(), AtomicU64::new(times.parse().ok()?)))
    });
    if let Some((chosen, left)) = &*CHOSEN
        && chosen == name
        && left.fetch_sub(1, Ordering::Relaxed) == 1
    {
        use rustix::process::{Signal, getpid, kill_process};
        let _ = kill_process(getpid(), Signal::KILL);
    }
}

/// Nothing, in a release.
#[cfg(not(debug_assertions))]
#[inline]
pub fn point(_: &str) {}
