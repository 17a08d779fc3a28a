//! Keeps the index equal to what the servers have: one task a server.

pub mod control;
