//! The best resources of a query: which documents count, and which come first.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use ::tantivy::columnar::StrColumn;
use ::tantivy::query::Weight;
use ::tantivy::{DocId, SegmentReader};

use super::schema;
use super::view::{Columns, View, read_error};
use crate::index::IndexError;
use crate::search::filter::Filter;

/// Which documents of a segment a caller may see.
///
/// Asked for each document that scores well enough, instead of being a clause of the query: a clause
/// would cost the query its skipping over blocks that can't score well enough. Servers and MIME types
/// are few, so they are decided once; a URI is decided when it is first met.
pub struct Visible<'a> {
    reader: &'a SegmentReader,
    columns: &'a Columns,
    filter: &'a Filter,
    /// By the column's ordinals; `None` when all are let through.
    servers: Option<Vec<bool>>,
    mime_types: Option<Vec<bool>>,
    looks_at_uri: bool,
    uris: RefCell<HashMap<u64, bool>>,
    /// First documents of the resources that hold an excluded word.
    excluded: HashSet<DocId>,
}

impl<'a> Visible<'a> {
    pub fn new(
        reader: &'a SegmentReader,
        columns: &'a Columns,
        filter: &'a Filter,
    ) -> Result<Self, IndexError> {
        let everything = filter.is_everything();
        let decide = |column: &StrColumn, allows: &dyn Fn(&str) -> bool| {
            if everything { Ok(None) } else { decide_each(column, allows) }
        };
        Ok(Self {
            reader,
            columns,
            filter,
            servers: decide(&columns.server, &|server| filter.allows_server(server))?,
            mime_types: decide(&columns.mime, &|mime| filter.allows_mime_type(mime))?,
            looks_at_uri: filter.looks_at_uri(),
            uris: RefCell::default(),
            excluded: HashSet::new(),
        })
    }

    /// Hides every resource of which a document matches.
    pub fn exclude(&mut self, weight: &dyn Weight) -> ::tantivy::Result<()> {
        let mut docs = weight.scorer(self.reader, 1.0)?;
        let mut doc = docs.doc();
        while doc != ::tantivy::TERMINATED {
            if !self.reader.is_deleted(doc) {
                self.excluded.insert(self.columns.first_of(doc));
            }
            doc = docs.advance();
        }
        Ok(())
    }

    pub fn allows(&self, doc: DocId) -> bool {
        if self.reader.is_deleted(doc) {
            return false;
        }
        let is_in = |allowed: &Option<Vec<bool>>, column: &StrColumn| {
            let Some(allowed) = allowed else { return true };
            let ord = column.ords().first(doc);
            ord.and_then(|ord| allowed.get(ord as usize)).copied().unwrap_or_default()
        };
        is_in(&self.servers, &self.columns.server)
            && is_in(&self.mime_types, &self.columns.mime)
            && (!self.looks_at_uri || self.allows_uri(self.columns.key_ord(doc)))
            && (self.excluded.is_empty() || !self.excluded.contains(&self.columns.first_of(doc)))
    }

    fn allows_uri(&self, key_ord: u64) -> bool {
        *self.uris.borrow_mut().entry(key_ord).or_insert_with(|| {
            // What can't be read isn't shown.
            let key = self.columns.key_bytes(key_ord).unwrap_or_default();
            schema::split_key(&key).is_ok_and(|(_, uri)| self.filter.allows_uri(uri))
        })
    }
}

/// Asks for each value of a column; `None` when all are let through.
fn decide_each(
    column: &StrColumn,
    allows: &dyn Fn(&str) -> bool,
) -> Result<Option<Vec<bool>>, IndexError> {
    let mut allowed = Vec::with_capacity(column.num_terms());
    let mut values = column.dictionary().stream().map_err(read_error)?;
    while values.advance() {
        allowed.push(std::str::from_utf8(values.key()).is_ok_and(allows));
    }
    Ok((!allowed.iter().all(|allowed| *allowed)).then_some(allowed))
}

/// A resource with its best document.
#[derive(Clone, Debug)]
pub struct Found {
    pub segment: u32,
    pub first: DocId,
    pub doc: DocId,
    pub score: f32,
    pub key: Vec<u8>,
}

/// The best `wanted` resources, each with its best document: by score, then by key.
///
/// The order doesn't depend on how the index happens to be cut into segments.
pub fn best(
    view: &View,
    weight: &dyn Weight,
    visible: &[Visible<'_>],
    wanted: usize,
) -> Result<Vec<Found>, IndexError> {
    let mut found: Vec<Found> = vec![];
    if wanted == 0 {
        return Ok(found);
    }
    // What the last of the wanted scores so far; documents below it are skipped unread.
    let mut threshold = f32::MIN;
    for ((segment, reader, columns), visible) in view.segments().zip(visible) {
        let start = threshold;
        let mut best = Best { wanted, ranks: BTreeSet::new(), scores: HashMap::new() };
        let mut collect = |doc: DocId, score: f32| {
            if visible.allows(doc) {
                best.offer(columns, doc, score);
                threshold = threshold.max(best.threshold());
            }
            threshold
        };
        weight.for_each_pruning(start, reader, &mut collect).map_err(read_error)?;
        for rank in best.ranks {
            let doc = best.scores.get(&rank.first).map_or(rank.first, |(_, doc)| *doc);
            let key = columns.key_bytes(rank.key_ord)?;
            found.push(Found { segment, first: rank.first, doc, score: rank.score, key });
        }
        found.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.key.cmp(&b.key)));
        found.truncate(wanted);
        threshold = threshold_of(&found, wanted);
    }
    Ok(found)
}

/// Just below the score of the last of the wanted, so that equal ones are still compared by key.
fn threshold_of(found: &[Found], wanted: usize) -> f32 {
    found.get(wanted - 1).map_or(f32::MIN, |last| last.score.next_down())
}

/// The best resources of one segment, in which a resource lies whole.
struct Best {
    wanted: usize,
    ranks: BTreeSet<Rank>,
    /// By the resource's first document: score and place of its best.
    scores: HashMap<DocId, (f32, DocId)>,
}

impl Best {
    fn threshold(&self) -> f32 {
        match self.ranks.last() {
            Some(last) if self.ranks.len() >= self.wanted => last.score.next_down(),
            _ => f32::MIN,
        }
    }

    fn offer(&mut self, columns: &Columns, doc: DocId, score: f32) {
        let first = columns.first_of(doc);
        let key_ord = columns.key_ord(doc);
        if let Some((old, _)) = self.scores.get(&first).copied() {
            // Documents come in their order, so of equal ones the first stays.
            if score <= old {
                return;
            }
            self.ranks.remove(&Rank { score: old, key_ord, first });
        }
        self.scores.insert(first, (score, doc));
        self.ranks.insert(Rank { score, key_ord, first });
        if self.ranks.len() > self.wanted
            && let Some(last) = self.ranks.pop_last()
        {
            self.scores.remove(&last.first);
        }
    }
}

/// The best first.
#[derive(Clone, Copy, Debug)]
struct Rank {
    score: f32,
    key_ord: u64,
    first: DocId,
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = other.score.total_cmp(&self.score);
        by_score
            .then_with(|| self.key_ord.cmp(&other.key_ord))
            .then_with(|| self.first.cmp(&other.first))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Rank {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Rank {}

/// The `wanted` best documents of one resource, by score, then in their order.
pub fn passages(
    view: &View,
    weight: &dyn Weight,
    found: &Found,
    wanted: usize,
) -> ::tantivy::Result<Vec<(DocId, f32)>> {
    let mut passages = vec![(found.doc, found.score)];
    if wanted <= 1 {
        return Ok(passages);
    }
    let reader = view.searcher.segment_reader(found.segment);
    let columns = &view.segments[found.segment as usize];
    let mut scorer = weight.scorer(reader, 1.0)?;
    let mut doc = scorer.doc();
    if doc < found.first {
        doc = scorer.seek(found.first);
    }
    let mut others = BTreeMap::new();
    while doc != ::tantivy::TERMINATED && columns.first_of(doc) == found.first {
        if doc != found.doc {
            others.insert(doc, scorer.score());
        }
        doc = scorer.advance();
    }
    let mut others: Vec<_> = others.into_iter().collect();
    others.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    passages.extend(others.into_iter().take(wanted - 1));
    Ok(passages)
}
