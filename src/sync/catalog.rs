//! What the index and the last listing hold of one server's resources. No I/O, no clock.

use std::collections::HashMap;
use std::sync::Arc;

use crate::model::{ContentHash, Fingerprint, Manifest, Origin, Outcome, Resource, Uri};

/// One resource of a server, as small as it can be: there may be a million.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// Hash of the content that the index holds; none when it holds none, or one that another
    /// version of resdex made and that is to be made again.
    pub hash: Option<ContentHash>,
    /// Hash of the description that the index holds.
    pub description: u64,
    /// The template that it is an expansion of.
    pub template: Option<Arc<str>>,
    /// Whether the index holds an entry of it, be it by name only.
    pub stored: bool,
    /// Whether the entry is by name only.
    pub skipped: bool,
    /// Whether its text is of another kind than its MIME type says.
    pub mislabelled: bool,
    /// Whether the last listing, or expansion, held it.
    pub listed: bool,
    /// Whether its last read failed, or it is missing from a listing that removes nothing.
    pub stale: bool,
    pub reading: Reading,
    /// A change was told since the last good read began.
    pub due: bool,
    /// When the last good read began, in Unix time; 0 when that isn't known.
    pub read_at: i64,
    /// Removed while it is read: it goes when the read has ended, if it isn't listed again.
    pub doomed: bool,
    /// Failed reads in a row.
    pub failures: u16,
    /// How many of these said that it doesn't exist.
    pub not_found: u16,
    /// After which flush it was last handed to the index; 0 is never.
    pub handed: u32,
    /// A description that the index doesn't hold yet.
    pub pending: Option<Box<Resource>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    #[default]
    No,
    Yes,
    /// Marked again meanwhile: to be read once more afterwards.
    Again,
}

/// All resources of one server, with their counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    known: HashMap<Uri, Known>,
    counts: Counts,
    /// Which resources became stale, or no longer are, since this was last taken.
    stale_flips: Vec<(Uri, bool)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub listed: u64,
    pub indexed: u64,
    pub skipped: u64,
    pub stale: u64,
    pub mislabelled: u64,
}

impl Catalog {
    /// What the index holds at the start. Entries of another fingerprint count as of no content.
    pub fn load(manifests: Vec<Manifest>, fingerprint: Fingerprint) -> Self {
        let mut catalog = Self::default();
        let mut templates: HashMap<String, Arc<str>> = HashMap::new();
        for manifest in manifests {
            let template = match manifest.origin {
                Origin::Listed => None,
                Origin::Template(template) => {
                    let shared =
                        templates.entry(template).or_insert_with_key(|t| t.as_str().into());
                    Some(shared.clone())
                }
            };
            let known = Known {
                hash: (manifest.fingerprint == fingerprint).then_some(manifest.content_hash),
                description: manifest.description_hash,
                template,
                stored: true,
                skipped: matches!(manifest.outcome, Outcome::Skipped(_)),
                mislabelled: manifest.mislabelled,
                read_at: manifest.indexed_at.timestamp(),
                ..Known::default()
            };
            catalog.change(&manifest.key.uri, |entry| *entry = known);
        }
        catalog
    }

    pub fn get(&self, uri: &str) -> Option<&Known> {
        self.known.get(uri)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Uri, &Known)> {
        self.known.iter()
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The resource's own URI, when it is known, else the nearest one above it: the server may
    /// push `docs://guide/chapter` for a subscription to `docs://guide`.
    pub fn owner(&self, uri: &str) -> Option<Uri> {
        let mut rest = uri;
        loop {
            if let Some((known, _)) = self.known.get_key_value(rest) {
                return Some(known.clone());
            }
            // The last separator goes, then what stands before it is tried with and without it.
            let cut = rest.rfind(['/', '#', '?'])?;
            rest = match cut + 1 < rest.len() {
                true => &rest[..=cut],
                false => &rest[..cut],
            };
        }
    }

    /// Changes an entry, making it when it is new, and keeps the counts.
    pub fn change<T>(&mut self, uri: &Uri, change: impl FnOnce(&mut Known) -> T) -> T {
        let known = self.known.entry(uri.clone()).or_default();
        self.counts.take(known);
        let was_stale = known.is_stale();
        let result = change(known);
        self.counts.add(known);
        if known.is_stale() != was_stale {
            self.stale_flips.push((uri.clone(), !was_stale));
        }
        result
    }

    pub fn remove(&mut self, uri: &Uri) -> Option<Known> {
        let known = self.known.remove(uri)?;
        self.counts.take(&known);
        if known.is_stale() {
            self.stale_flips.push((uri.clone(), false));
        }
        Some(known)
    }

    /// Takes the place of another catalog: what was stale in it no longer is.
    pub fn adopt_stale_flips(&mut self, old: &mut Catalog) {
        self.stale_flips = old.take_stale_flips();
        let stale = old.iter().filter(|(_, known)| known.is_stale());
        self.stale_flips.extend(stale.map(|(uri, _)| (uri.clone(), false)));
    }

    pub fn take_stale_flips(&mut self) -> Vec<(Uri, bool)> {
        std::mem::take(&mut self.stale_flips)
    }
}

impl Known {
    /// Whether older text of it is served than there may be.
    pub fn is_stale(&self) -> bool {
        self.stored && self.stale
    }
}

impl Counts {
    fn add(&mut self, known: &Known) {
        for (count, one) in self.of(known) {
            *count += one;
        }
    }

    fn take(&mut self, known: &Known) {
        for (count, one) in self.of(known) {
            *count -= one;
        }
    }

    fn of(&mut self, known: &Known) -> [(&mut u64, u64); 5] {
        [
            (&mut self.listed, known.listed.into()),
            (&mut self.indexed, (known.stored && !known.skipped).into()),
            (&mut self.skipped, (known.stored && known.skipped).into()),
            (&mut self.stale, known.is_stale().into()),
            (&mut self.mislabelled, (known.stored && known.mislabelled).into()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_every_change() {
        let mut catalog = Catalog::default();
        let (a, b): (Uri, Uri) = ("a://1".into(), "a://2".into());
        catalog.change(&a, |known| (known.stored, known.listed) = (true, true));
        catalog.change(&b, |known| (known.stored, known.skipped, known.stale) = (true, true, true));
        assert_eq!(
            catalog.counts(),
            Counts { listed: 1, indexed: 1, skipped: 1, stale: 1, mislabelled: 0 }
        );
        catalog.change(&b, |known| (known.skipped, known.mislabelled) = (false, true));
        catalog.remove(&a);
        assert_eq!(
            catalog.counts(),
            Counts { listed: 0, indexed: 1, skipped: 0, stale: 1, mislabelled: 1 }
        );
    }

    #[test]
    fn a_sub_resource_leads_to_its_owner() {
        let mut catalog = Catalog::default();
        for uri in ["docs://guide", "docs://list/", "docs://page?v=1", "a"] {
            catalog.change(&uri.into(), |_| ());
        }
        for (pushed, owner) in [
            ("docs://guide", Some("docs://guide")),
            ("docs://guide/", Some("docs://guide")),
            ("docs://guide/1/2#x", Some("docs://guide")),
            ("docs://list/7", Some("docs://list/")),
            ("docs://page?v=1#top", Some("docs://page?v=1")),
            ("docs://guides", None),
            ("", None),
            ("a/文書", Some("a")),
        ] {
            assert_eq!(catalog.owner(pushed).as_deref(), owner, "{pushed}");
        }
    }
}
