//! The real binary against servers and clients that other people wrote, and small ones on the SDKs that
//! people use. `tests/interop/setup` installs them; a test whose other side isn't there says so and
//! passes, unless `RESDEX_INTEROP=required`.

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
mod installed;
mod peers;
mod plug;
mod restart;
