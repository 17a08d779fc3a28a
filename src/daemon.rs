//! The one place where everything is wired, supervised, reloaded and shut down.

use std::path::PathBuf;

use crate::cli::CliError;

/// What `resdex serve` was told; nothing more is taken from the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServeOptions {
    /// In the order of the command line; all are merged.
    pub config_files: Vec<PathBuf>,
    /// The state folder.
    pub state: PathBuf,
    pub socket: PathBuf,
    /// `--http ADDR`, instead of the config's `http.listen`.
    pub http: Option<String>,
}

/// Runs the daemon until it is told to stop.
///
/// # Errors
/// With the exit code: 2 a config that can't be used, 75 another daemon holds the state folder.
pub fn serve(options: ServeOptions) -> Result<(), CliError> {
    let _ = options;
    Err(CliError::failed("the daemon isn't wired yet"))
}
