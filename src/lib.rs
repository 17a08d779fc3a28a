//! resdex makes everything that MCP servers can *read* searchable.
//!
//! ```text
//! MCP server ──notifications──▶ dirty set ──plan──▶ read ──▶ extract ──▶ chunk ──▶ writer ──commit──▶ searchable
//!            ◀──list/read/subscribe──  sync (one task a server)              (one writer)          │
//! bot, agent, shell ──HTTP on a Unix socket / TCP, MCP──▶ serve ──▶ search ◀────────────────────────┘
//! ```
//!
//! The modules stand in the order of that flow. `ARCHITECTURE.md` says what each must *not* know.

pub mod model;

pub mod metrics;

pub mod config;

pub mod source;

pub mod sync;

pub mod extract;

pub mod worker;

pub mod chunk;

pub mod analyze;

pub mod index;

pub mod search;

pub mod serve;

pub mod client;

pub mod eval;

pub mod cli;

pub mod daemon;

mod fault;

mod kept;

mod outbox;

mod quiet;

#[cfg(any(test, fuzzing))]
pub mod fuzz;
