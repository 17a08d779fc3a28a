//! Newline-delimited JSON-RPC over a pair of pipes (the protocol's stdio transport).
//!
//! One task reads and one writes, so that what rmcp drops (a send that timed out, a receive that
//! lost a race) never leaves half a message on the wire.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rmcp::RoleClient;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::lines::{Line, Lines};
use crate::source::mcp::framing::{self, Frame};
use crate::source::mcp::hints::Hints;

/// Messages that wait for the writer, or for rmcp. Beyond, whoever sends waits.
const QUEUE: usize = 64;

/// The most of a pipe that is read at once.
const READ_BYTES: usize = 64 << 10;

/// Limits of one message.
#[derive(Clone, Copy, Debug)]
pub struct MessageLimits {
    pub bytes: usize,
    pub depth: usize,
}

/// The client's end of a pair of pipes. Dropping it closes both.
pub struct Pipe {
    incoming: mpsc::Receiver<ServerJsonRpcMessage>,
    outgoing: Option<mpsc::Sender<Vec<u8>>>,
    closed: CancellationToken,
    _close: DropGuard,
}

impl Pipe {
    /// Starts to read and write. `noise` counts what isn't of the protocol; `closed` is cancelled when
    /// the pipe is to be closed, by us or because the other side has gone.
    pub fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        limits: MessageLimits,
        hints: Arc<Hints>,
        noise: Arc<AtomicU64>,
        closed: CancellationToken,
    ) -> Self {
        let (to_rmcp, incoming) = mpsc::channel(QUEUE);
        let (outgoing, to_server) = mpsc::channel(QUEUE);
        tokio::spawn(read_all(reader, limits, hints, noise, to_rmcp, closed.clone()));
        tokio::spawn(write_all(writer, to_server, closed.clone()));
        Self { incoming, outgoing: Some(outgoing), _close: closed.clone().drop_guard(), closed }
    }
}

/// The pipe is closed.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed")]
pub struct PipeClosed;

impl Transport<RoleClient> for Pipe {
    type Error = PipeClosed;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), PipeClosed>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        async move {
            let mut line = serde_json::to_vec(&message).map_err(|_| PipeClosed)?;
            line.push(b'\n');
            outgoing.ok_or(PipeClosed)?.send(line).await.map_err(|_| PipeClosed)
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), PipeClosed> {
        self.outgoing = None;
        self.closed.cancel();
        Ok(())
    }
}

async fn write_all(
    mut writer: impl AsyncWrite + Unpin,
    mut lines: mpsc::Receiver<Vec<u8>>,
    closed: CancellationToken,
) {
    let write = async {
        // What waits is written at once: a pipe's other end wakes for each write.
        let mut waiting = Vec::with_capacity(QUEUE);
        while lines.recv_many(&mut waiting, QUEUE).await > 0 {
            let joined = waiting.concat();
            waiting.clear();
            if writer.write_all(&joined).await.is_err() || writer.flush().await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = write => closed.cancel(),
        () = closed.cancelled() => {}
    }
    // Dropping the writer closes the server's stdin, its sign to end.
}

async fn read_all(
    mut reader: impl AsyncRead + Unpin,
    limits: MessageLimits,
    hints: Arc<Hints>,
    noise: Arc<AtomicU64>,
    to_rmcp: mpsc::Sender<ServerJsonRpcMessage>,
    closed: CancellationToken,
) {
    let mut lines = Lines::new(limits.bytes);
    let mut buffer = vec![0; READ_BYTES];
    let mut messages = vec![];
    let take = |line: Line, messages: &mut Vec<ServerJsonRpcMessage>| {
        for frame in frames_of(line, limits) {
            match frame {
                Frame::Push(push) => hints.push(push),
                // What parses as JSON-RPC and not for rmcp is of no protocol that we know.
                Frame::Message(value) => match super::decode(value) {
                    Some(message) => messages.push(message),
                    None => drop(noise.fetch_add(1, Ordering::Relaxed)),
                },
                Frame::Noise => drop(noise.fetch_add(1, Ordering::Relaxed)),
            }
        }
    };
    loop {
        let read = tokio::select! {
            read = reader.read(&mut buffer) => read.unwrap_or(0),
            () = closed.cancelled() => break,
        };
        let fed = lines.feed(&buffer[..read], &mut |line| take(line, &mut messages));
        if read == 0
            && let Some(line) = lines.rest()
        {
            take(line, &mut messages);
        }
        for message in messages.drain(..) {
            let sent = tokio::select! {
                sent = to_rmcp.send(message) => sent.is_ok(),
                () = closed.cancelled() => false,
            };
            if !sent {
                return closed.cancel();
            }
        }
        if fed.is_err() {
            hints.ends(format!(
                "it wrote a line that doesn't end; a message has {} bytes at most (limits.max_message_bytes)",
                limits.bytes
            ));
        }
        if read == 0 || fed.is_err() {
            break;
        }
    }
    closed.cancel();
}

fn frames_of(line: Line, limits: MessageLimits) -> Vec<Frame> {
    match line {
        Line::Whole(line) => framing::sort(&line, limits.depth),
        Line::TooLong { start, end } => {
            let text = [String::from_utf8_lossy(&start), String::from_utf8_lossy(&end)].concat();
            let reason = format!("the answer is longer than {} bytes", limits.bytes);
            match framing::find_id(&text) {
                Some(id) => vec![Frame::Message(framing::failure(id, &reason))],
                None => vec![Frame::Noise],
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::pin::Pin;
    use std::sync::Mutex;
    use std::task::{Context, Poll};

    use super::*;

    /// Keeps what each call wrote.
    #[derive(Clone, Default)]
    struct Writes(Arc<Mutex<Vec<Vec<u8>>>>);

    impl AsyncWrite for Writes {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.0.lock().unwrap().push(bytes.to_vec());
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn what_waits_is_written_at_once() {
        let (lines, waiting) = mpsc::channel(QUEUE);
        for line in ["one\n", "two\n", "three\n"] {
            lines.send(line.into()).await.unwrap();
        }
        drop(lines);
        let writes = Writes::default();
        write_all(writes.clone(), waiting, CancellationToken::new()).await;
        assert_eq!(*writes.0.lock().unwrap(), [b"one\ntwo\nthree\n"]);
    }
}
