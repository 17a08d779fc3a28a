//! What `tests/interop/setup` has installed: each thing in an environment of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The environment of this name.
pub fn environment(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/interop").join(name)
}

/// Node 22, which newer clients need.
pub fn node22() -> PathBuf {
    let modules = environment("node22").join("node_modules");
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    modules.join(format!("node-linux-{architecture}/bin/node"))
}

/// Whether an environment can be used with its interpreter; says why not.
pub fn is_installed(name: &str, interpreter: &Path) -> bool {
    let Err(reason) = installed(name, interpreter) else { return true };
    let required = std::env::var("RESDEX_INTEROP").is_ok_and(|value| value == "required");
    assert!(!required, "{reason}");
    println!("skipped: {reason}");
    false
}

fn installed(name: &str, interpreter: &Path) -> Result<(), String> {
    let environment = environment(name);
    if !environment.join(".stamp").exists() {
        return Err(format!("{name} isn't in {environment:?}; run tests/interop/setup"));
    }
    match Command::new(interpreter).arg("--version").stdout(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!("{interpreter:?} doesn't run")),
    }
}
