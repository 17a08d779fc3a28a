//! Keeps the index equal to what the servers have: one task a server.
//!
//! ```text
//! hints, schedule, requests ──▶ machine ──commands──▶ task ──▶ connect, list, follow, read ──▶ writer
//!                                  ▲  plan, dirty, backoff       │
//!                                  └────────── events ───────────┘
//! ```
//!
//! The machine decides and is pure; the task carries out. Must not know how a server is talked to,
//! nor how the index is made.

pub mod added;
mod backoff;
mod catalog;
pub mod control;
mod dirty;
mod eras;
mod hint;
mod indexing;
mod machine;
mod plan;
mod schedule;
mod task;
mod trust;
mod warnings;

pub use eras::Eras;
pub use schedule::Clock;
pub use task::{Context, Running, start};
