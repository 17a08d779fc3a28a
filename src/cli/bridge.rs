//! `resdex mcp`: stdin and stdout in front of the daemon, which is started if none runs.

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hyper_util::rt::TokioIo;

use super::args;
use super::{CliError, note, paths};
use crate::client::{Client, ClientError};

/// How long a daemon that was just started may take to answer.
const START: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);
/// Another daemon holds the state folder: the one that was started has lost a race, and that is fine.
const HELD: i32 = 75;

pub fn mcp(args: args::Mcp) -> Result<(), CliError> {
    let state = paths::state(args.state)?;
    let socket = paths::socket(args.socket.socket, || Ok(state.clone()))?;
    let client = Client::new(&socket);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let scope = args.scope.as_deref();
        let connection = match client.mcp(scope).await {
            Err(ClientError::NoDaemon { reason, .. })
                if !args.no_start && reason.kind() != std::io::ErrorKind::PermissionDenied =>
            {
                let files = paths::config(args.config.files)?;
                start(&files, &state, &socket, &client).await?;
                client.mcp(scope).await?
            }
            connected => connected?,
        };
        let mut streams = tokio::io::join(tokio::io::stdin(), tokio::io::stdout());
        let copied =
            tokio::io::copy_bidirectional(&mut TokioIo::new(connection), &mut streams).await;
        copied.map(|_| ()).map_err(|error| {
            CliError::failed(format!("the daemon or the client broke off: {error}"))
        })
    });
    // A read of stdin that hangs is not waited for.
    runtime.shutdown_background();
    result
}

/// Starts a daemon that outlives us, and waits until it answers.
async fn start(
    files: &[PathBuf],
    state: &Path,
    socket: &Path,
    client: &Client,
) -> Result<(), CliError> {
    DirBuilder::new().recursive(true).mode(0o700).create(state)?;
    let log = state.join("serve.log");
    let mut daemon = spawn(files, state, socket, &log)?;
    note(&format!("started a daemon; its log is {}", log.display()));
    let begun = Instant::now();
    loop {
        match client.status().await {
            Err(ClientError::NoDaemon { .. }) => {}
            answered => return Ok(answered.map(|_| ())?),
        }
        let ended = daemon.try_wait()?.filter(|status| status.code() != Some(HELD));
        if let Some(status) = ended {
            return Err(CliError::failed(format!("the daemon ended at its start: {status}"))
                .hint(format!("{} says why", log.display())));
        }
        if begun.elapsed() > START {
            let seconds = START.as_secs();
            return Err(CliError::failed(format!("the daemon doesn't answer within {seconds} s"))
                .hint(format!("{} may say why", log.display())));
        }
        tokio::time::sleep(POLL).await;
    }
}

fn spawn(files: &[PathBuf], state: &Path, socket: &Path, log: &Path) -> Result<Child, CliError> {
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(log)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("serve");
    for file in files {
        command.arg("--config").arg(file);
    }
    command.arg("--state").arg(state).arg("--socket").arg(socket);
    // Its own group: what the client does to us at its end is not meant for the daemon.
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
    Ok(command.spawn()?)
}
