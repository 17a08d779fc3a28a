//! Points at which a test lets the daemon die. Nothing of it is in a release.
//!
//! `RESDEX_FAIL_POINT=name:n` kills the process, as a power cut would, when it passes the point of
//! that name for the n-th time (the first, without `:n`). `name:n:panic` panics there instead, as a
//! fault of our own would, and `name:n:hang` stands still there.

/// Dies here, if this is the point and the time.
#[cfg(debug_assertions)]
pub fn point(name: &str) {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static CHOSEN: LazyLock<Option<(String, AtomicU64, String)>> = LazyLock::new(|| {
        let chosen = std::env::var("RESDEX_FAIL_POINT").ok()?;
        let mut fields = chosen.split(':');
        let (name, times) = (fields.next()?, fields.next().unwrap_or("1"));
        let what = fields.next().unwrap_or("kill");
        Some((name.to_owned(), AtomicU64::new(times.parse().ok()?), what.to_owned()))
    });
    if let Some((chosen, left, what)) = &*CHOSEN
        && chosen == name
        && left.fetch_sub(1, Ordering::Relaxed) == 1
    {
        use rustix::process::{Signal, getpid, kill_process};
        #[expect(clippy::panic, reason = "it is what was asked for, in a test")]
        match what.as_str() {
            "panic" => panic!("at the fail point {name}"),
            "hang" => loop {
                std::thread::park();
            },
            _ => drop(kill_process(getpid(), Signal::KILL)),
        }
    }
}

/// Nothing, in a release.
#[cfg(not(debug_assertions))]
#[inline]
pub fn point(_: &str) {}
