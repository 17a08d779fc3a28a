//! What the files mean, as a whole: data in, config or errors out.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::*;

mod any;
mod dialects;
mod documented;
mod own;
mod report;

/// A folder with config files.
struct Folder(tempfile::TempDir);

impl Folder {
    /// Writes the files, for the owner's eyes only.
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn load(&self, names: &[&str], env: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
        let files: Vec<PathBuf> = names.iter().map(|name| self.path(name)).collect();
        Config::load(&files, &env_of(env))
    }

    /// The errors with the folder's own path taken out.
    fn errors(&self, names: &[&str], env: &[(&str, &str)]) -> String {
        let errors = self.load(names, env).unwrap_err().to_string();
        errors.replace(&format!("{}/", self.0.path().display()), "")
    }
}

fn env_of(env: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> + use<> {
    let env: HashMap<String, String> =
        env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    move |name| env.get(name).cloned()
}

/// Loads one file of resdex's own.
fn own(text: &str, env: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
    Folder::with(&[("config.toml", text)]).load(&["config.toml"], env)
}

fn server<'c>(config: &'c Config, name: &str) -> &'c ServerConfig {
    config.servers.get(name).unwrap_or_else(|| panic!("no server {name}: {:?}", config.servers))
}

/// `ready`, or the reason why a server doesn't run.
fn state(server: &ServerConfig) -> String {
    match &server.readiness {
        Readiness::Ready => "ready".into(),
        Readiness::NeedsConfig { message, hint } => format!("needs_config: {message}; {hint}"),
        Readiness::Disabled { reason } => format!("disabled: {reason}"),
    }
}
