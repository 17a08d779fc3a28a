//! What `serve` shows on a terminal: a bar for each server that is syncing, then one calm line.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::render;
use super::text;
use crate::model::{ServerState, ServerStatus};
use crate::sync::control::{Control, Event};

/// All bars of this process; the log writes above them.
static BARS: LazyLock<MultiProgress> =
    LazyLock::new(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(8)));

/// Whether anybody would see bars.
pub fn is_wanted() -> bool {
    io::stderr().is_terminal()
}

/// Runs `write` while the bars are out of the way.
pub fn above<T>(write: impl FnOnce() -> T) -> T {
    if is_wanted() { BARS.suspend(write) } else { write() }
}

/// Shows the servers' progress until `stop`.
///
/// Wakes with each event; what was missed is made up from the statuses.
pub async fn show(control: Arc<Control>, socket: &Path, stop: CancellationToken) {
    let mut events = control.events();
    let mut bars: BTreeMap<String, ProgressBar> = BTreeMap::new();
    let mut calm = false;
    loop {
        let statuses = control.statuses();
        for status in &statuses {
            follow(&mut bars, status);
        }
        let rests = !statuses.is_empty() && statuses.iter().all(|status| rests(status.state));
        if rests && !calm {
            let line = calm_line(&statuses, socket);
            above(|| super::note(&line));
        }
        calm = rests;
        let event = tokio::select! {
            () = stop.cancelled() => break,
            event = events.recv() => event,
            // Nothing tells that a server was added or taken away.
            () = tokio::time::sleep(Duration::from_secs(1)) => continue,
        };
        match event {
            Ok(Event::Progress { server, done, total }) => {
                if let Some(bar) = bars.get(&server) {
                    bar.set_length(total);
                    bar.set_position(done);
                }
            }
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => break,
        }
    }
    bars.values().for_each(ProgressBar::finish_and_clear);
}

fn rests(state: ServerState) -> bool {
    !matches!(state, ServerState::Connecting | ServerState::Listing | ServerState::Syncing)
}

fn follow(bars: &mut BTreeMap<String, ProgressBar>, status: &ServerStatus) {
    if rests(status.state) {
        if let Some(bar) = bars.remove(&status.name) {
            bar.finish_and_clear();
            BARS.remove(&bar);
        }
        return;
    }
    let bar = bars.entry(status.name.clone()).or_insert_with(|| {
        let bar = BARS.add(ProgressBar::new(0).with_style(style()));
        bar.set_prefix(text::line(&status.name).into_owned());
        bar
    });
    bar.set_message(render::state_name(status.state));
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{prefix:20!} {bar:30} {pos}/{len} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// What there is to say once everything has come to rest.
fn calm_line(statuses: &[ServerStatus], socket: &Path) -> String {
    let indexed: u64 = statuses.iter().map(|status| status.indexed + status.skipped).sum();
    let trouble = statuses
        .iter()
        .filter(|s| {
            !matches!(s.state, ServerState::Live | ServerState::NoListing | ServerState::Disabled)
        })
        .count();
    let mut line = format!(
        "{} of {}, searchable at {}",
        render::count(indexed, "resource"),
        render::count(statuses.len() as u64, "server"),
        socket.display()
    );
    if trouble > 0 {
        line += &format!("; {trouble} need a look: resdex status");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::tests::server_status;

    #[test]
    fn the_calm_line_counts() {
        let live = server_status("a", ServerState::Live);
        let failed = server_status("b", ServerState::Failed);
        let off =
            ServerStatus { indexed: 0, skipped: 0, ..server_status("c", ServerState::Disabled) };
        let socket = Path::new("/run/x/sock");
        assert_eq!(
            calm_line(&[live.clone(), off], socket),
            "3 resources of 2 servers, searchable at /run/x/sock"
        );
        assert_eq!(
            calm_line(&[live, failed], socket),
            "6 resources of 2 servers, searchable at /run/x/sock; 1 need a look: resdex status"
        );
    }
}
