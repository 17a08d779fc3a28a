//! Where resources come from: an MCP session, be it with a child process, a server over HTTP, or a
//! folder that resdex serves to itself.
//!
//! This room is the only one besides `serve/mcp` that knows rmcp. It must not know the index, the
//! search or the schedule.

pub mod files;
pub mod mcp;

/// What went wrong between us and a server, in the terms in which the sync decides.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The server says that this resource doesn't exist. A hint to list, not a removal.
    #[error("the server does not know {uri}: {message}")]
    NotFound { uri: String, message: String },
    /// The server answered with a JSON-RPC error.
    #[error("{what}: the server answered with error {code}: {message}")]
    Refused { what: String, code: i32, message: String },
    #[error("{what}: no answer within {seconds} s")]
    TimedOut { what: String, seconds: u64 },
    /// The server wants credentials, or other ones.
    #[error("{message}")]
    NeedsAuth { message: String },
    /// The answer was over a limit of ours, or not what the protocol says.
    #[error("{what}: {reason}")]
    BadAnswer { what: String, reason: String },
    /// The server asks to be left alone for a while (HTTP 429, 503).
    #[error("{what}: the server is overloaded")]
    Overloaded {
        what: String,
        /// Seconds, as the server says.
        retry_after: Option<u64>,
    },
    #[error("{command} can't be started: {reason}")]
    CannotStart { command: String, reason: String },
    /// The connection is gone, or never was.
    #[error("{reason}")]
    Disconnected { reason: String },
}
