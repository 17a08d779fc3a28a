//! Extraction in processes of their own: what parses binary or nested input can hurt only itself.
//!
//! A worker is this program again, without files, network or environment, and with limits on memory
//! and time. It reads a request on stdin and answers on stdout, one after the other. [`Workers`]
//! keeps a few of them, gives each one document at a time, and replaces what crashed, took too long
//! or has grown. A stack overflow or an exhausted memory can't be caught in a process, but it can be
//! survived by another: the document is skipped, with the reason.
//!
//! Must not know servers, the index, or what is in a document.

mod child;
mod confine;
mod frame;
mod pool;

pub use child::run;
pub use pool::Workers;
