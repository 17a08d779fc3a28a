//! The MCP client: one session with one server, in either era of the protocol.
//!
//! rmcp does the protocol; what it can't be trusted with is done here: time limits on every request,
//! paging by hand with guards, items read one by one, no response cache, no silent renewal of a
//! session, and hints that can't be lost without being told (`framing`, `hints`).

mod connect;
mod framing;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
pub mod hints;
mod listing;
pub mod session;
mod subscribe;
pub mod template;
mod transport;

pub use connect::{ConnectOptions, Connection, connect};
pub use listing::Listed;
pub use session::Session;
pub use transport::child::Grace;
