//! How bytes get to a server and back: over a pipe (a child's stdio, or a folder of our own), or over
//! Streamable HTTP. Both put the framing layer between the wire and rmcp.

pub mod child;
pub mod http;
pub mod lines;
pub mod pipe;
