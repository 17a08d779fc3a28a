//! Where things are when nobody says, by the XDG rules.

use std::env;
use std::path::PathBuf;

use super::CliError;

/// `--state` or `RESDEX_STATE` (both come as `given`), else `$XDG_STATE_HOME/resdex`, else
/// `~/.local/state/resdex`.
pub fn state(given: Option<PathBuf>) -> Result<PathBuf, CliError> {
    let given = given.or_else(|| set("RESDEX_STATE"));
    if let Some(path) = given {
        return Ok(std::path::absolute(path)?);
    }
    let base = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    Ok(base
        .ok_or_else(|| {
            CliError::usage("neither XDG_STATE_HOME nor HOME is set")
                .hint("name a folder with --state")
        })?
        .join("resdex"))
}

/// `--socket` or `RESDEX_SOCKET` (both come as `given`), else `$XDG_RUNTIME_DIR/resdex/sock`, else
/// `run/sock` in the state folder.
pub fn socket(
    given: Option<PathBuf>,
    state: impl FnOnce() -> Result<PathBuf, CliError>,
) -> Result<PathBuf, CliError> {
    if let Some(path) = given {
        return Ok(std::path::absolute(path)?);
    }
    match absolute("XDG_RUNTIME_DIR") {
        Some(folder) => Ok(folder.join("resdex/sock")),
        None => Ok(state()?.join("run/sock")),
    }
}

fn set(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The XDG rules want a relative path ignored.
fn absolute(name: &str) -> Option<PathBuf> {
    set(name).filter(|path| path.is_absolute())
}

/// The config files: `--config` and `RESDEX_CONFIG` (both come as `given`), else the default one.
pub fn config(given: Vec<PathBuf>) -> Result<Vec<PathBuf>, CliError> {
    if !given.is_empty() {
        return Ok(given);
    }
    let file = crate::config::default_file(&variable).ok_or_else(|| {
        CliError::usage("neither XDG_CONFIG_HOME nor HOME is set").hint("name a file with --config")
    })?;
    if file.exists() {
        return Ok(vec![file]);
    }
    Err(CliError::usage(format!("there is no config: {} doesn't exist", file.display())).hint(
        "name one with --config: resdex's own TOML, or an MCP client's file such as .mcp.json",
    ))
}

/// A variable of the environment, for references in configs.
pub fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}
