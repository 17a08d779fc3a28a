//! The MCP client: one session with one server, in either era of the protocol.

pub mod session;
