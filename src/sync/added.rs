//! Expansions of templates that were chosen at run time to be followed: kept in the state folder, and
//! added to each listing of their server.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::model::{Listing, Origin, Resource, ServerName};

/// Most that are kept, of all servers.
const MAX_ADDED: usize = 10_000;

#[derive(Debug, Default)]
pub struct Added {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    expansions: Vec<Expansion>,
    file: Option<PathBuf>,
}

/// One expansion of a server's template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expansion {
    pub server: String,
    pub uri_template: String,
    pub uri: String,
    /// Of the template's variables in their order, for its title.
    pub values: Vec<String>,
}

impl Added {
    /// Takes up what a state folder holds, and keeps it there from now on.
    ///
    /// # Errors
    /// The file can't be read. One that isn't understood is begun anew.
    pub fn keep_in(&self, state: &Path) -> io::Result<()> {
        let file = state.join("expansions.json");
        let expansions = match fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text).unwrap_or_else(|error| {
                tracing::error!(%error, file = %file.display(), "the chosen expansions can't be understood, and are begun anew");
                vec![]
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => vec![],
            Err(error) => return Err(error),
        };
        *self.lock() = Kept { expansions, file: Some(file) };
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of a server, in the order in which they were added.
    pub fn of(&self, server: &ServerName) -> Vec<Expansion> {
        let kept = self.lock();
        kept.expansions.iter().filter(|e| e.server == server.as_str()).cloned().collect()
    }

    /// Adds an expansion; one that is there already stays as it is.
    ///
    /// # Errors
    /// There are too many, or the file can't be written.
    pub fn add(&self, expansion: Expansion) -> io::Result<()> {
        self.change(|expansions| {
            let same =
                |other: &Expansion| other.server == expansion.server && other.uri == expansion.uri;
            if expansions.iter().any(same) {
                return Ok(());
            }
            if expansions.len() >= MAX_ADDED {
                let message = format!("{MAX_ADDED} expansions are followed already");
                return Err(io::Error::new(io::ErrorKind::QuotaExceeded, message));
            }
            expansions.push(expansion);
            Ok(())
        })
    }

    /// Takes an expansion away; answers whether there was one.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn remove(&self, server: &ServerName, uri: &str) -> io::Result<bool> {
        self.change(|expansions| {
            let before = expansions.len();
            expansions.retain(|e| !(e.server == server.as_str() && e.uri == uri));
            Ok(before != expansions.len())
        })
    }

    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<Expansion>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut kept = self.lock();
        let mut expansions = kept.expansions.clone();
        let changed = change(&mut expansions)?;
        if let Some(file) = &kept.file {
            write(file, &expansions)?;
        }
        kept.expansions = expansions;
        Ok(changed)
    }
}

/// Puts a whole new file in the place of the old one.
fn write(file: &Path, expansions: &[Expansion]) -> io::Result<()> {
    let new = file.with_extension("json.new");
    let mut options = fs::OpenOptions::new();
    let mut open = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    open.write_all(&serde_json::to_vec_pretty(expansions)?)?;
    open.sync_all()?;
    fs::rename(&new, file)
}

/// Adds to a listing what was chosen of the templates that it has. What it lists itself stays as it is.
pub fn extend(listing: &mut Listing, added: &[Expansion]) {
    if added.is_empty() {
        return;
    }
    let mut known: HashSet<_> = listing.resources.iter().map(|r| r.uri.clone()).collect();
    for expansion in added {
        let of = listing.templates.iter().find(|t| t.uri_template == expansion.uri_template);
        let Some(template) = of else { continue };
        if !known.insert(expansion.uri.as_str().into()) {
            continue;
        }
        let label = |text: &str| format!("{text} ({})", expansion.values.join(", "));
        listing.resources.push(Resource {
            name: label(&template.name),
            title: template.title.as_deref().map(label),
            description: template.description.clone(),
            mime_type: template.mime_type.clone(),
            origin: Origin::Template(template.uri_template.clone()),
            ..Resource::new(expansion.uri.as_str())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ResourceTemplate;

    fn expansion(uri: &str, template: &str) -> Expansion {
        Expansion {
            server: "wiki".into(),
            uri_template: template.into(),
            uri: uri.into(),
            values: vec!["权限".into(), "v1".into()],
        }
    }

    #[test]
    fn what_was_chosen_outlives_the_daemon() {
        let state = tempfile::tempdir().unwrap();
        let wiki = ServerName::new("wiki").unwrap();
        let added = Added::default();
        added.keep_in(state.path()).unwrap();
        added.add(expansion("d://1", "d://{x}")).unwrap();
        added.add(expansion("d://1", "d://{x}")).unwrap();
        added.add(expansion("d://2", "d://{x}")).unwrap();
        let again = Added::default();
        again.keep_in(state.path()).unwrap();
        assert_eq!(again.of(&wiki).len(), 2);
        assert!(again.of(&ServerName::new("docs").unwrap()).is_empty());
        assert!(again.remove(&wiki, "d://1").unwrap());
        assert!(!again.remove(&wiki, "d://1").unwrap());
        fs::write(state.path().join("expansions.json"), "{").unwrap();
        again.keep_in(state.path()).unwrap();
        assert!(again.of(&wiki).is_empty(), "begun anew");
    }

    #[test]
    fn a_listing_is_extended_by_expansions_of_its_templates_only() {
        let template = ResourceTemplate {
            uri_template: "d://{x}".into(),
            name: "design".into(),
            title: Some("设计".into()),
            description: None,
            mime_type: Some("text/markdown".into()),
        };
        let mut listing = Listing {
            resources: vec![Resource::new("d://listed")],
            templates: vec![template],
            ..Listing::default()
        };
        let added = ["d://listed", "d://1", "e://1"]
            .map(|uri| expansion(uri, if uri.starts_with('e') { "e://{x}" } else { "d://{x}" }));
        extend(&mut listing, &added);
        let [listed, new] = &listing.resources[..] else { panic!("{listing:?}") };
        assert_eq!(listed.origin, Origin::Listed);
        assert_eq!((&*new.uri, new.title.as_deref()), ("d://1", Some("设计 (权限, v1)")));
        assert_eq!(new.origin, Origin::Template("d://{x}".into()));
    }
}
