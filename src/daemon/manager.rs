//! What a service manager is told (systemd's `sd_notify` protocol): ready, reloading, stopping, a line
//! of status, and that the daemon is alive. Without a `NOTIFY_SOCKET` nothing of it happens.
//!
//! **When it wakes, and what it then does.** Three times within the watchdog's time, else every ten
//! seconds, it asks each part that could stand still: the runtime for a task, the pool of blocking
//! threads for one, every server's status, and the index's writer for an answer. Only when all have
//! answered is the watchdog told. A writer that waits for room on the disk answers; one that is stuck in
//! a commit doesn't.

use std::sync::Arc;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio_util::sync::CancellationToken;

use crate::index::writer::WriterHandle;
use crate::model::{ServerState, ServerStatus};
use crate::serve::App;

/// How often the line of status is looked at, where there is no watchdog.
const SELDOM: Duration = Duration::from_secs(10);

/// The whole start is done: searches are answered, and the servers are being followed.
pub fn ready() {
    tell(&[NotifyState::Ready]);
}

/// The config is read again; [`ready`] follows.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(error) => tracing::debug!(%error, "the service manager isn't told of a reload"),
    }
}

pub fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager can't be told");
    }
}

/// Keeps the service manager informed until `stop`.
pub async fn inform(app: Arc<App>, writer: WriterHandle, stop: CancellationToken) {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return;
    }
    let watchdog = sd_notify::watchdog_enabled();
    let interval = watchdog.map_or(SELDOM, |limit| (limit / 3).max(Duration::from_millis(1)));
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut told = String::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        match alive(&app, &writer, interval).await {
            Ok(statuses) => {
                if watchdog.is_some() {
                    tell(&[NotifyState::Watchdog]);
                }
                let line =
                    line(&statuses, app.paused.load().is_some(), app.config_error.load().is_some());
                if line != told {
                    tell(&[NotifyState::Status(&line)]);
                    told = line;
                }
            }
            Err(part) => tracing::error!(part, ?interval, "no answer from a part of the daemon"),
        }
    }
}

/// Asks every part for an answer within a time; the servers' statuses, or the part that gave none.
async fn alive(
    app: &Arc<App>,
    writer: &WriterHandle,
    within: Duration,
) -> Result<Vec<ServerStatus>, &'static str> {
    let deadline = tokio::time::Instant::now() + within;
    let task = tokio::spawn(async {});
    tokio::time::timeout_at(deadline, task)
        .await
        .map_err(|_| "the runtime")?
        .map_err(|_| "the runtime")?;
    let control = app.control.clone();
    let statuses = tokio::task::spawn_blocking(move || control.statuses());
    let statuses = tokio::time::timeout_at(deadline, statuses).await;
    let statuses = statuses.map_err(|_| "the blocking threads")?.map_err(|_| "the statuses")?;
    let answer = tokio::time::timeout_at(deadline, writer.ping()).await;
    answer.map_err(|_| "the index's writer")?.map_err(|_| "the index's writer")?;
    Ok(statuses)
}

/// What `systemctl status` shows.
fn line(statuses: &[ServerStatus], paused: bool, broken: bool) -> String {
    let live = statuses.iter().filter(|status| status.state == ServerState::Live).count();
    let indexed: u64 = statuses.iter().map(|status| status.indexed).sum();
    let mut line =
        format!("{live} of {} servers live, {indexed} resources indexed", statuses.len());
    if paused {
        line += "; nothing is written to the index";
    }
    if broken {
        line += "; the changed config can't be used";
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::writer::Writer;
    use crate::serve::fake::FakeStore;
    use crate::serve::tests::{app, server_status};

    #[test]
    fn one_line_says_how_it_is() {
        let statuses =
            [server_status("a", ServerState::Live), server_status("b", ServerState::Backoff)];
        assert_eq!(line(&statuses, false, false), "1 of 2 servers live, 4 resources indexed");
        let bad = line(&[], true, true);
        assert!(bad.contains("nothing is written") && bad.contains("config"), "{bad}");
    }

    #[tokio::test]
    async fn a_writer_that_has_ended_is_not_alive() {
        let (handle, writer) = Writer::start(Arc::new(FakeStore::default())).unwrap();
        let (app, within) = (app(), Duration::from_secs(60));
        assert_eq!(alive(&app, &handle, within).await.unwrap().len(), 2);
        tokio::task::spawn_blocking(|| writer.stop()).await.unwrap();
        assert_eq!(alive(&app, &handle, within).await, Err("the index's writer"));
    }
}
