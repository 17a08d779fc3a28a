//! Which resource may be meant by a URI that no server has as it stands.

use url::Url;

use super::error::ApiError;
use super::{App, cut};
use crate::model::ResourceKey;
use crate::search::filter::Filter;

/// Most resources that are looked through for a URI that no server has as it stands.
const MAX_CANDIDATES: usize = 200_000;
/// Of those, how many are compared for likeness.
const MAX_COMPARED: usize = 20_000;
const NEAREST_SHOWN: usize = 3;

impl App {
    /// Looks through what a filter lets through for what may be meant; bounded.
    pub(super) fn candidates(&self, uri: &str, filter: &Filter) -> Result<Candidates, ApiError> {
        let mut search = CandidateSearch::new(uri);
        self.each_resource(filter, |row| {
            search.see(&row.key);
            search.seen < MAX_CANDIDATES
        })?;
        Ok(search.finish())
    }
}

/// What the index knows that may be meant by a URI that no server has.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Candidates {
    /// Equal after WHATWG parsing.
    pub equal: Vec<ResourceKey>,
    /// The most alike, best first.
    pub nearest: Vec<ResourceKey>,
}

struct CandidateSearch<'a> {
    uri: &'a str,
    parsed: Option<Url>,
    seen: usize,
    equal: Vec<ResourceKey>,
    nearest: Vec<(f64, ResourceKey)>,
}

impl<'a> CandidateSearch<'a> {
    fn new(uri: &'a str) -> Self {
        Self { uri, parsed: Url::parse(uri).ok(), seen: 0, equal: vec![], nearest: vec![] }
    }

    fn see(&mut self, key: &ResourceKey) {
        const ALIKE: f64 = 0.5;
        self.seen += 1;
        if self.parsed.is_some() && Url::parse(&key.uri).ok() == self.parsed {
            self.equal.push(key.clone());
        }
        if self.seen <= MAX_COMPARED {
            let likeness = strsim::sorensen_dice(head(self.uri), head(&key.uri));
            let worst = self.nearest.last().map_or(0.0, |(likeness, _)| *likeness);
            if likeness >= ALIKE && (self.nearest.len() < NEAREST_SHOWN || likeness > worst) {
                self.nearest.push((likeness, key.clone()));
                self.nearest.sort_by(|a, b| b.0.total_cmp(&a.0));
                self.nearest.truncate(NEAREST_SHOWN);
            }
        }
    }

    fn finish(self) -> Candidates {
        let nearest = self.nearest.into_iter().map(|(_, key)| key).collect();
        Candidates { equal: self.equal, nearest }
    }
}

/// As much of a URI as is worth comparing.
fn head(uri: &str) -> &str {
    &uri[..cut::floor(uri, 256)]
}
