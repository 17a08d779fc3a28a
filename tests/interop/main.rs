//! The real binary against servers that other people wrote, and small ones on the SDKs that people
//! use. `tests/interop/setup` installs them; a test whose server isn't there says so and passes,
//! unless `RESDEX_INTEROP=required`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a panic is how a test fails, and a skipped one says why"
)]

mod complete;
mod console;
#[path = "../common/daemon.rs"]
mod daemon;
mod documents;
mod faults;
mod follow;
mod peers;
mod plug;
mod restart;
