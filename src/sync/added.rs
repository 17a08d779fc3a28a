//! Expansions of templates that were chosen at run time to be followed: kept in the state folder, and
//! added to each listing of their server.

use std::collections::HashSet;
use std::convert::Infallible;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::kept::Kept;
use crate::model::{Listing, Origin, Resource, ServerName};

/// Most that are kept, of all servers.
const MAX_ADDED: usize = 10_000;

#[derive(Debug, Default)]
pub struct Added {
    kept: Kept<Expansion>,
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
    /// See [`Kept::keep_in`].
    pub fn keep_in(&self, state: &Path) -> io::Result<()> {
        self.kept.keep_in(state.join("expansions.json"))
    }

    /// Those of a server, in the order in which they were added.
    pub fn of(&self, server: &ServerName) -> Vec<Expansion> {
        self.kept.of(|e| e.server == server.as_str())
    }

    /// Adds an expansion; one that is there already stays as it is.
    ///
    /// # Errors
    /// There are too many, or the file can't be written.
    pub fn add(&self, expansion: Expansion) -> io::Result<()> {
        self.kept.change(|expansions| {
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
        })?
    }

    /// Takes an expansion away; answers whether there was one.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn remove(&self, server: &ServerName, uri: &str) -> io::Result<bool> {
        let removed = self.kept.change(|expansions| {
            let before = expansions.len();
            expansions.retain(|e| !(e.server == server.as_str() && e.uri == uri));
            Ok::<_, Infallible>(before != expansions.len())
        })?;
        Ok(removed.unwrap_or_else(|never| match never {}))
    }
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
