//! `resdex files`: the folder on stdin and stdout.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream as StdStream;
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};

use super::{FilesError, FilesOptions, FilesServer};

/// How long the last answers may take to be written once the connection is closed.
const FLUSH: Duration = Duration::from_secs(2);

/// Serves a folder on stdin and stdout until stdin ends, or SIGTERM or SIGINT comes. Nothing else is
/// written to stdout.
///
/// Two threads of our own copy the streams. The runtime's stdin would keep the process from ending on
/// a signal until somebody writes to it.
///
/// # Errors
/// The name makes no URI scheme, the client doesn't speak MCP, or there is no socket pair to be had.
pub async fn serve_stdio(root: PathBuf, name: &str) -> Result<(), FilesError> {
    let server = FilesServer::new(root, name, FilesOptions::default())?;
    let (mut terminated, mut interrupted) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (ours, theirs) = StdStream::pair()?;
    ours.set_nonblocking(true)?;
    let (mut from_us, mut to_us) = (theirs.try_clone()?, theirs);
    let (written, all_written) = tokio::sync::oneshot::channel();
    std::thread::Builder::new().name("stdin".into()).spawn(move || {
        pump(&mut std::io::stdin().lock(), &mut to_us);
        // Stdin's end becomes the end of what the server reads; it may still write.
        let _ = to_us.shutdown(Shutdown::Write);
    })?;
    std::thread::Builder::new().name("stdout".into()).spawn(move || {
        pump(&mut from_us, &mut std::io::stdout().lock());
        // A client that no longer reads has closed the connection as well.
        let _ = from_us.shutdown(Shutdown::Both);
        let _ = written.send(());
    })?;
    let result = tokio::select! {
        result = server.serve(UnixStream::from_std(ours)?) => result,
        _ = terminated.recv() => Ok(()),
        _ = interrupted.recv() => Ok(()),
    };
    // Whether the time ran out or all is written, the process ends now.
    let _ = tokio::time::timeout(FLUSH, all_written).await;
    result
}

/// Copies until either side ends, and passes each piece on at once.
fn pump(from: &mut impl Read, to: &mut impl Write) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(n) => {
                let piece = buffer.get(..n).unwrap_or_default();
                if to.write_all(piece).and_then(|()| to.flush()).is_err() {
                    return;
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
