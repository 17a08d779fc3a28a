//! `console`: the link that signs in, opened in a browser where there is one.

use std::process::Stdio;
use std::time::Duration;

use super::{CliError, Out, args, ask, note, text};

/// How long a browser's starter is waited for; one that goes on runs.
const STARTING: Duration = Duration::from_secs(3);

pub fn open(args: args::Console, out: &Out) -> Result<(), CliError> {
    ask::talk(args.output.socket, async |client| {
        let link = client.console().await?;
        if args.output.json {
            return out.json(&link);
        }
        if !args.print && has_screen() && opened(&link.url).await {
            // Not the link itself: it is used by now.
            let address = link.url.split("/sign-in").next().unwrap_or_default();
            note(&format!(
                "opened {address} in your browser; `resdex console --print` gives a link"
            ));
            return Ok(());
        }
        out.print(&format!("{}\n", text::line(&link.url)))?;
        note(&format!("the link works once, within {} s", link.expires_in_s));
        Ok(())
    })
}

fn has_screen() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|v| !v.is_empty()))
}

async fn opened(url: &str) -> bool {
    let mut command = tokio::process::Command::new("xdg-open");
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match tokio::time::timeout(STARTING, command.status()).await {
        Ok(Ok(status)) => status.success(),
        Ok(Err(_)) => false,
        Err(_) => true,
    }
}
