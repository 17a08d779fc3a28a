//! The best resources of a query, and the order in which they come.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use ::tantivy::DocId;
use ::tantivy::query::Weight;
use ::tantivy::schema::{IndexRecordOption, Term};

use super::view::{Columns, View, alive, read_error};
use super::visible::Visible;
use crate::index::IndexError;

/// What is one hit: a resource, with all others of the same text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Group {
    Text(u64),
    Resource(DocId),
}

/// A resource with its best document.
#[derive(Clone, Debug)]
pub struct Found {
    pub segment: u32,
    pub first: DocId,
    pub doc: DocId,
    pub score: f32,
    pub tie: u64,
    pub key: Vec<u8>,
    /// Nothing for a resource without text.
    pub text_hash: Option<u64>,
}

impl Found {
    /// The best first: by score, then by what breaks ties, then by key.
    pub fn compare(&self, other: &Self) -> Ordering {
        let by_score = other.score.total_cmp(&self.score);
        by_score.then_with(|| other.tie.cmp(&self.tie)).then_with(|| self.key.cmp(&other.key))
    }
}

/// The best `wanted` resources, each with its best document. Of resources with the same text the best
/// stands for all.
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
        let mut best = Best { wanted, ranks: BTreeMap::new(), groups: HashMap::new() };
        let mut collect = |doc: DocId, score: f32| {
            if visible.allows(doc) {
                best.offer(columns, doc, score);
                threshold = threshold.max(best.threshold());
            }
            threshold
        };
        weight.for_each_pruning(start, reader, &mut collect).map_err(read_error)?;
        let keys = columns.keys(best.ranks.keys().map(|rank| rank.key_ord))?;
        for (rank, key) in best.ranks.into_keys().zip(keys) {
            found.push(Found {
                segment,
                first: rank.first,
                doc: rank.doc,
                score: rank.score,
                tie: rank.tie,
                key,
                text_hash: columns.text_hash(rank.first),
            });
        }
        found.sort_by(Found::compare);
        let mut seen = HashSet::new();
        found.retain(|found| found.text_hash.is_none_or(|hash| seen.insert(hash)));
        found.truncate(wanted);
        threshold = threshold_of(&found, wanted);
    }
    Ok(found)
}

/// Just below the score of the last of the wanted, so that equal ones are still compared.
fn threshold_of(found: &[Found], wanted: usize) -> f32 {
    found.get(wanted - 1).map_or(f32::MIN, |last| last.score.next_down())
}

/// The best resources of one segment, in which a resource lies whole.
struct Best {
    wanted: usize,
    ranks: BTreeMap<Rank, Group>,
    groups: HashMap<Group, Rank>,
}

impl Best {
    fn threshold(&self) -> f32 {
        match self.ranks.last_key_value() {
            Some((last, _)) if self.ranks.len() >= self.wanted => last.score.next_down(),
            _ => f32::MIN,
        }
    }

    fn offer(&mut self, columns: &Columns, doc: DocId, score: f32) {
        let first = columns.first_of(doc);
        let group = columns.text_hash(first).map_or(Group::Resource(first), Group::Text);
        let key_ord = columns.key_ord(doc);
        let rank = Rank { score, tie: columns.tie(first), key_ord, first, doc };
        if let Some(old) = self.groups.get(&group).copied() {
            if rank >= old {
                return;
            }
            self.ranks.remove(&old);
        }
        self.groups.insert(group, rank);
        self.ranks.insert(rank, group);
        if self.ranks.len() > self.wanted
            && let Some((_, group)) = self.ranks.pop_last()
        {
            self.groups.remove(&group);
        }
    }
}

/// The best first; of equal documents of a resource the earlier.
#[derive(Clone, Copy, Debug)]
struct Rank {
    score: f32,
    tie: u64,
    key_ord: u64,
    first: DocId,
    doc: DocId,
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = other.score.total_cmp(&self.score).then_with(|| other.tie.cmp(&self.tie));
        by_score
            .then_with(|| self.key_ord.cmp(&other.key_ord))
            .then_with(|| self.doc.cmp(&other.doc))
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

/// The resources with the text of one that was found, without that one, by key.
pub fn duplicates(
    view: &View,
    visible: &[Visible<'_>],
    found: &Found,
    most: usize,
) -> Result<Vec<Vec<u8>>, IndexError> {
    let Some(hash) = found.text_hash else { return Ok(vec![]) };
    let term = Term::from_field_u64(view.fields.text_hash, hash);
    let mut keys = BTreeSet::new();
    for ((segment, reader, columns), visible) in view.segments().zip(visible) {
        let index = reader.inverted_index(view.fields.text_hash).map_err(read_error)?;
        let postings = index.read_postings(&term, IndexRecordOption::Basic).map_err(read_error)?;
        for first in postings.into_iter().flat_map(|postings| alive(reader, postings)) {
            if (segment, first) != (found.segment, found.first) && visible.allows(first) {
                keys.insert(columns.key_bytes(columns.key_ord(first))?);
            }
        }
    }
    Ok(keys.into_iter().take(most).collect())
}

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
