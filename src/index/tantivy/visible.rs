//! Which documents of the index count for a caller.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ::tantivy::columnar::StrColumn;
use ::tantivy::query::Weight;
use ::tantivy::{DocId, SegmentReader};

use super::schema;
use super::view::{Columns, read_error};
use crate::index::IndexError;
use crate::search::filter::{Clause, Filter};

/// URIs of a segment that are decided one by one, before all are in one pass.
const ONE_BY_ONE: usize = 256;

/// Which documents of a segment a caller may see.
///
/// Asked for each document that scores well enough, instead of being a clause of the query: a clause
/// would cost the query its skipping over blocks that can't score well enough. Servers and MIME types
/// are few, so they are decided at once; URIs are decided when they are met, and all of them when many are.
pub struct Visible<'a> {
    reader: &'a SegmentReader,
    columns: &'a Columns,
    /// By the column's ordinals; `None` when all are let through.
    servers: Option<Vec<bool>>,
    mime_types: Option<Vec<bool>>,
    uris: Vec<Uris<'a>>,
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
            servers: decide(&columns.server, &|server| filter.allows_server(server))?,
            mime_types: decide(&columns.mime, &|mime| filter.allows_mime_type(mime))?,
            uris: filter
                .clauses()
                .iter()
                .filter(|clause| clause.looks_at_uri())
                .map(|clause| Uris::new(columns, clause))
                .collect(),
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
            && self.allows_key(doc)
            && (self.excluded.is_empty() || !self.excluded.contains(&self.columns.first_of(doc)))
    }

    fn allows_key(&self, doc: DocId) -> bool {
        if self.uris.is_empty() {
            return true;
        }
        let key_ord = self.columns.key_ord(doc);
        self.uris.iter().all(|uris| uris.allow(self.columns, key_ord))
    }
}

/// What one clause lets through of a segment's resources, by their keys' ordinals.
struct Uris<'a> {
    clause: &'a Arc<Clause>,
    all: OnceCell<Arc<[bool]>>,
    few: RefCell<HashMap<u64, bool>>,
}

impl<'a> Uris<'a> {
    fn new(columns: &Columns, clause: &'a Arc<Clause>) -> Self {
        let all = OnceCell::new();
        if let Some(known) = columns.decided.known(clause) {
            all.get_or_init(|| known);
        }
        Self { clause, all, few: RefCell::default() }
    }

    fn allow(&self, columns: &Columns, key_ord: u64) -> bool {
        let among = |all: &[bool]| all.get(key_ord as usize).copied().unwrap_or_default();
        if let Some(all) = self.all.get() {
            return among(all);
        }
        let mut few = self.few.borrow_mut();
        if few.len() < ONE_BY_ONE {
            return *few.entry(key_ord).or_insert_with(|| {
                // What can't be read isn't shown.
                let key = columns.key_bytes(key_ord).unwrap_or_default();
                allows(self.clause, &key)
            });
        }
        let decide = || columns.decided.decide(columns, self.clause).unwrap_or_default();
        among(self.all.get_or_init(decide))
    }
}

fn allows(clause: &Clause, key: &[u8]) -> bool {
    schema::split_key(key).is_ok_and(|(_, uri)| clause.allows_uri(uri))
}

/// What clauses let through of a segment, kept for as long as the clauses are in use: those of scopes until
/// the config changes, those of one request until it is answered.
#[derive(Default)]
pub struct Decided(Mutex<Vec<Known>>);

/// A clause, with what it lets through.
type Known = (Weak<Clause>, Arc<[bool]>);

impl Decided {
    fn known(&self, clause: &Arc<Clause>) -> Option<Arc<[bool]>> {
        // The weak reference keeps the place from being used for another clause.
        let is_it = |other: &Weak<Clause>| Weak::as_ptr(other) == Arc::as_ptr(clause);
        self.lock().iter().find(|(other, _)| is_it(other)).map(|(_, all)| all.clone())
    }

    /// Reads all keys in one pass.
    fn decide(&self, columns: &Columns, clause: &Arc<Clause>) -> Result<Arc<[bool]>, IndexError> {
        let mut all = Vec::with_capacity(columns.key.num_terms());
        let mut keys = columns.key.dictionary().stream().map_err(read_error)?;
        while keys.advance() {
            all.push(allows(clause, keys.key()));
        }
        let all: Arc<[bool]> = all.into();
        let mut decided = self.lock();
        decided.retain(|(clause, _)| clause.strong_count() > 0);
        decided.push((Arc::downgrade(clause), all.clone()));
        Ok(all)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
