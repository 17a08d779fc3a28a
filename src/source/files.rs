//! A folder as an MCP resource server of our own, in both eras of the protocol.
//!
//! Each served file is a resource `<scheme>:///<percent-encoded relative path>`. Hidden files, what a
//! `.gitignore` or `.ignore` in the folder excludes, links that lead out of it, and everything that is
//! no regular file aren't served. Changes are pushed as they happen. While the folder is missing or
//! can't be listed, listing is an error and never an empty list, so that nobody takes its files for gone.
//!
//! The daemon connects to it as to any other server, over a pipe in memory; `resdex files` serves the
//! same on stdio.
//!
//! ```text
//! system events ─▶ watch ─▶ folder (scan, compare) ─▶ outbox ─▶ handler ─▶ client
//!                                    ▲ list                       │ read ─▶ open
//! ```

mod content;
mod folder;
mod handler;
mod mime;
mod open;
mod scan;
mod stdio;
mod title;
pub(crate) mod uri;
mod walk;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;

use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::sync::Semaphore;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::config::Limits;
use folder::Folder;
use handler::Connection;
pub use stdio::serve_stdio;
pub use uri::scheme_of;

/// Reads at a time, of all clients.
const READS_IN_FLIGHT: usize = 32;
/// What a message holds besides its content, at most.
const ENVELOPE_BYTES: u64 = 64 << 10;
/// Buffer of a pipe in memory.
const PIPE_BYTES: usize = 256 << 10;

#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error("{0}")]
    Name(String),
    #[error("the client doesn't speak MCP: {0}")]
    Protocol(String),
    #[error("stdin or stdout can't be used: {0}")]
    Io(#[from] std::io::Error),
}

/// How a folder is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesOptions {
    /// Resources on a page of the list.
    pub page_size: usize,
    /// Largest file that is read as text; bytes.
    pub max_text_bytes: u64,
    /// Largest file that is read as a blob; bytes, before base64.
    pub max_blob_bytes: u64,
    /// Largest text once it is escaped for JSON; bytes. Clients have a limit for a message.
    pub max_message_bytes: u64,
    /// More files than these aren't listed but an error.
    pub max_files: usize,
    /// Scan regularly instead of asking the system for events, as some network file systems need.
    pub polling: bool,
}

impl Default for FilesOptions {
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        Self {
            page_size: 500,
            max_text_bytes: 8 * MIB,
            max_blob_bytes: 11 * MIB,
            max_message_bytes: 16 * MIB - ENVELOPE_BYTES,
            max_files: 1_000_000,
            polling: false,
        }
    }
}

impl From<&Limits> for FilesOptions {
    fn from(limits: &Limits) -> Self {
        let message = (limits.max_message_bytes as u64).saturating_sub(ENVELOPE_BYTES);
        Self {
            max_text_bytes: limits.max_text_bytes as u64,
            max_blob_bytes: limits.max_blob_bytes as u64,
            max_message_bytes: message,
            ..Self::default()
        }
    }
}

/// A folder that is served and followed. Cheap to clone; it is followed until the last clone, and the
/// last connection, is gone.
#[derive(Clone)]
pub struct FilesServer {
    folder: Arc<Folder>,
    reads: Arc<Semaphore>,
    _following: Arc<DropGuard>,
}

impl FilesServer {
    /// Begins to follow a folder. It need not exist yet. To be called within a tokio runtime.
    ///
    /// # Errors
    /// The name makes no URI scheme; see [`scheme_of`].
    pub fn new(root: PathBuf, name: &str, options: FilesOptions) -> Result<Self, FilesError> {
        let scheme = scheme_of(name).map_err(FilesError::Name)?;
        let folder = Arc::new(Folder::new(root, scheme, options));
        let stop = CancellationToken::new();
        tokio::spawn(watch::run(folder.clone(), stop.clone()));
        let reads = Arc::new(Semaphore::new(READS_IN_FLIGHT));
        Ok(Self { folder, reads, _following: Arc::new(stop.drop_guard()) })
    }

    /// The scheme of the folder's URIs.
    pub fn scheme(&self) -> &str {
        &self.folder.scheme
    }

    /// Serves one client until it closes the connection.
    ///
    /// # Errors
    /// What came first wasn't MCP.
    pub async fn serve<T>(&self, connection: T) -> Result<(), FilesError>
    where
        T: AsyncRead + AsyncWrite + Send + 'static,
    {
        match Connection::new(self.clone()).serve(connection).await {
            Ok(running) => match running.waiting().await {
                Ok(_) => Ok(()),
                Err(e) => Err(FilesError::Protocol(e.to_string())),
            },
            // A client that leaves before it says anything, or while it does, has done nothing wrong.
            Err(
                ServerInitializeError::ConnectionClosed(_)
                | ServerInitializeError::TransportError { .. },
            ) => Ok(()),
            Err(e) => Err(FilesError::Protocol(e.to_string())),
        }
    }

    /// A connection within this process; the server's side ends when the returned one is dropped.
    pub fn connect(&self) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let server = self.clone();
        tokio::spawn(async move {
            if let Err(e) = server.serve(ours).await {
                tracing::warn!(server = %server.scheme(), "{e}");
            }
        });
        theirs
    }
}

#[cfg(test)]
mod tests;
