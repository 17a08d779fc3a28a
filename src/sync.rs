//! Keeps the index equal to what the servers have: one task a server.

pub mod backoff;
pub mod catalog;
pub mod control;
pub mod dirty;
pub mod machine;
pub mod plan;
pub mod schedule;
