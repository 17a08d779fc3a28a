//! What bots, agents and programs do with a running daemon: the snippets of `docs/clients.md`, requests of
//! the shapes that others defined, and what it costs a model to find something.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a panic is how a test fails, and what was measured is worth knowing"
)]

mod budget;
#[path = "../common/daemon.rs"]
mod daemon;
mod dify;
mod guides;
mod http;
