//! What a changed config changes. Pure: startup is a diff from the empty config.

use super::{Config, ServerConfig};
use crate::model::ServerName;

/// The difference between two configs, server by server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigDiff {
    pub added: Vec<ServerName>,
    /// Anything but the place of the entry in its file.
    pub changed: Vec<ServerName>,
    pub removed: Vec<ServerName>,
    /// The sections for the whole daemon that differ: `sync`, `limits`, `index`, `http`, `socket`,
    /// `trace`, `scopes`.
    pub global_changed: Vec<&'static str>,
}

impl ConfigDiff {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Compares two configs.
pub fn diff(old: &Config, new: &Config) -> ConfigDiff {
    let added = new.servers.keys().filter(|name| !old.servers.contains_key(*name));
    let removed = old.servers.keys().filter(|name| !new.servers.contains_key(*name));
    let changed = new
        .servers
        .iter()
        .filter(|(name, new)| old.servers.get(*name).is_some_and(|old| !same(old, new)));
    let sections = [
        ("sync", old.sync != new.sync),
        ("limits", old.limits != new.limits),
        ("index", old.index != new.index),
        ("http", old.http != new.http),
        ("socket", old.socket != new.socket),
        ("trace", old.trace != new.trace),
        ("scopes", old.scopes != new.scopes),
    ];
    ConfigDiff {
        added: added.cloned().collect(),
        changed: changed.map(|(name, _)| name.clone()).collect(),
        removed: removed.cloned().collect(),
        global_changed: sections
            .into_iter()
            .filter_map(|(name, differs)| differs.then_some(name))
            .collect(),
    }
}

/// Whether a server needn't be restarted. A new field has to be considered here.
fn same(old: &ServerConfig, new: &ServerConfig) -> bool {
    let ServerConfig { name: _, origin: _, readiness, transport, follow } = old;
    *readiness == new.readiness && *transport == new.transport && *follow == new.follow
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn load(text: &str, env: &str) -> Config {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        // Another folder each time would change where children run.
        let mut config =
            Config::load(&[path], &|name| (name == "TOKEN").then(|| env.to_owned())).unwrap();
        for server in config.servers.values_mut() {
            if let super::super::Transport::Stdio { cwd, .. } = &mut server.transport {
                *cwd = PathBuf::from("/");
            }
        }
        config
    }

    #[test]
    fn differences() {
        let base = "[servers.a]\ncommand = \"x\"\nenv = { T = \"${TOKEN}\" }\n[servers.b]\nurl = \"http://b/\"\n";
        let names =
            |list: &[ServerName]| list.iter().map(ServerName::as_str).collect::<Vec<_>>().join(",");
        for (new, env, wanted) in [
            (base.to_owned(), "1", "+ ~ - []"),
            (format!("# moved a line down\n{base}"), "1", "+ ~ - []"),
            (base.to_owned(), "2", "+ ~a - []"),
            (base.replace("http://b/", "http://c/"), "1", "+ ~b - []"),
            (base.replace("[servers.b]", "[servers.c]"), "1", "+c ~ -b []"),
            (format!("{base}enabled = false\n"), "1", "+ ~b - []"),
            (
                format!("{base}exclude = [\"x\"]\n[limits]\nmax_pages = 2"),
                "1",
                "+ ~b - [\"limits\"]",
            ),
            (
                format!("{base}[sync]\ntimezone = \"UTC\"\n[scopes.s]"),
                "1",
                "+ ~ - [\"sync\", \"scopes\"]",
            ),
            (String::new(), "1", "+ ~ -a,b []"),
        ] {
            let found = diff(&load(base, "1"), &load(&new, env));
            let shown = format!(
                "+{} ~{} -{} {:?}",
                names(&found.added),
                names(&found.changed),
                names(&found.removed),
                found.global_changed
            );
            assert_eq!(shown, wanted, "{new}");
        }
        assert!(diff(&Config::default(), &Config::default()).is_empty());
    }
}
