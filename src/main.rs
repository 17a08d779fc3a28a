//! The binary: arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    resdex::cli::main(std::env::args_os())
}
