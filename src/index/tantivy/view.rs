//! The index at one commit, as readers see it: manifests, lists, whole entries.

use std::sync::{Arc, OnceLock};

use ::tantivy::columnar::{BytesColumn, Column, StrColumn};
use ::tantivy::index::SegmentId;
use ::tantivy::schema::{IndexRecordOption, Term};
use ::tantivy::{DocAddress, DocId, Searcher, SegmentReader, TERMINATED, TantivyDocument};

use super::manifest;
use super::schema::{self, Fields};
use super::visible::Decided;
use crate::index::{Entry, IndexError, ResourceRow, ResourcesPage, ResourcesRequest};
use crate::model::{Manifest, Outcome, ResourceKey, ServerName};

/// One commit. Immutable; whoever holds it keeps reading it, whatever the writer does.
pub struct View {
    pub searcher: Searcher,
    pub fields: Fields,
    /// In the order of the searcher's segments.
    pub segments: Vec<Arc<Columns>>,
    counts: OnceLock<Counts>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub resources: u64,
    pub chunks: u64,
}

/// The columns of a segment, opened once: they stay as they are for as long as there is the segment.
pub struct Columns {
    segment: SegmentId,
    /// What scopes let through.
    pub decided: Decided,
    pub key: BytesColumn,
    pub server: StrColumn,
    pub mime: StrColumn,
    pub ordinal: Column<u64>,
    chunks: Column<u64>,
    text_hash: Column<u64>,
    tie: Column<u64>,
    manifest: BytesColumn,
}

impl Columns {
    fn open(segment: &SegmentReader) -> ::tantivy::Result<Self> {
        let columns = segment.fast_fields();
        let docs = segment.max_doc();
        let empty = || BytesColumn::empty(docs);
        Ok(Self {
            segment: segment.segment_id(),
            decided: Decided::default(),
            key: columns.bytes("key")?.unwrap_or_else(empty),
            server: columns.str("server")?.unwrap_or_else(|| StrColumn::wrap(empty())),
            mime: columns.str("mime")?.unwrap_or_else(|| StrColumn::wrap(empty())),
            ordinal: columns.u64("ordinal")?,
            chunks: columns.u64("chunks")?,
            text_hash: columns.u64("text_hash")?,
            tie: columns.u64("tie")?,
            manifest: columns.bytes("manifest")?.unwrap_or_else(empty),
        })
    }

    /// The first document of the resource to which a document belongs.
    pub fn first_of(&self, doc: DocId) -> DocId {
        doc.saturating_sub(self.ordinal.first(doc).unwrap_or_default() as DocId)
    }

    /// The hash of a resource's text, by its first document; nothing for one without text.
    pub fn text_hash(&self, first: DocId) -> Option<u64> {
        self.text_hash.first(first)
    }

    /// What breaks ties, by a resource's first document; more is better.
    pub fn tie(&self, first: DocId) -> u64 {
        self.tie.first(first).unwrap_or_default()
    }

    pub fn key_ord(&self, doc: DocId) -> u64 {
        self.key.ords().first(doc).unwrap_or(u64::MAX)
    }

    /// The keys of many ordinals, for less than one by one.
    pub fn keys(&self, ords: impl Iterator<Item = u64>) -> Result<Vec<Vec<u8>>, IndexError> {
        resolve(&self.key, ords)
    }

    pub fn key_bytes(&self, ord: u64) -> Result<Vec<u8>, IndexError> {
        let mut bytes = vec![];
        self.key.ord_to_bytes(ord, &mut bytes).map_err(read_error)?;
        Ok(bytes)
    }
}

pub fn read_error(error: impl std::fmt::Display) -> IndexError {
    IndexError::Read { reason: error.to_string() }
}

impl View {
    /// The view of a commit; `before` is the one before it, of which it takes over what is the same.
    pub fn new(
        searcher: Searcher,
        fields: Fields,
        before: Option<&Self>,
    ) -> ::tantivy::Result<Self> {
        let known = before.map_or(&[][..], |before| &before.segments);
        let segments = searcher.segment_readers().iter().map(|reader| {
            match known.iter().find(|columns| columns.segment == reader.segment_id()) {
                Some(columns) => Ok(columns.clone()),
                None => Columns::open(reader).map(Arc::new),
            }
        });
        let segments = segments.collect::<::tantivy::Result<_>>()?;
        Ok(Self { searcher, fields, segments, counts: OnceLock::new() })
    }

    /// The segments, each with its number and its columns.
    pub fn segments(&self) -> impl Iterator<Item = (u32, &SegmentReader, &Columns)> {
        let readers = self.searcher.segment_readers().iter().zip(&self.segments);
        readers.zip(0..).map(|((reader, columns), ord)| (ord, reader, columns.as_ref()))
    }

    pub fn counts(&self) -> Counts {
        *self.counts.get_or_init(|| {
            let mut counts = Counts::default();
            for (_, reader, columns) in self.segments() {
                for doc in reader.doc_ids_alive() {
                    if let Some(chunks) = columns.chunks.first(doc) {
                        counts.resources += 1;
                        counts.chunks += chunks;
                    }
                }
            }
            counts
        })
    }

    pub fn servers(&self) -> Result<Vec<ServerName>, IndexError> {
        let mut names = std::collections::BTreeSet::new();
        for (_, reader, _) in self.segments() {
            let index = reader.inverted_index(self.fields.server).map_err(read_error)?;
            let mut terms = index.terms().stream().map_err(read_error)?;
            while let Some((name, info)) = terms.next() {
                let name =
                    std::str::from_utf8(name).map_err(|_| schema::damaged("a server's name"))?;
                if names.contains(name) {
                    continue;
                }
                let postings = index.read_postings_from_terminfo(info, IndexRecordOption::Basic);
                if alive(reader, postings.map_err(read_error)?).next().is_some() {
                    let name = ServerName::new(name);
                    names.insert(name.map_err(|_| schema::damaged("a server's name"))?);
                }
            }
        }
        Ok(names.into_iter().collect())
    }

    pub fn manifests(&self, server: &ServerName) -> Result<Vec<Manifest>, IndexError> {
        let term = Term::from_field_text(self.fields.server, server.as_str());
        let mut manifests = vec![];
        for (_, reader, columns) in self.segments() {
            let index = reader.inverted_index(self.fields.server).map_err(read_error)?;
            let postings = index.read_postings(&term, IndexRecordOption::Basic);
            let Some(postings) = postings.map_err(read_error)? else { continue };
            // Only the first document of a resource has a manifest.
            let rows: Vec<(u64, u64)> = alive(reader, postings)
                .filter_map(|doc| {
                    columns.manifest.ords().first(doc).map(|ord| (columns.key_ord(doc), ord))
                })
                .collect();
            let keys = resolve(&columns.key, rows.iter().map(|row| row.0))?;
            let bodies = resolve(&columns.manifest, rows.iter().map(|row| row.1))?;
            for (key, body) in keys.iter().zip(&bodies) {
                manifests.push(manifest::decode(schema::key_of_bytes(key)?, body)?);
            }
        }
        Ok(manifests)
    }

    /// Where the first document of a resource is.
    fn find(&self, key: &[u8]) -> Result<Option<DocAddress>, IndexError> {
        let term = Term::from_field_bytes(self.fields.key, key);
        for (segment, reader, columns) in self.segments() {
            let index = reader.inverted_index(self.fields.key).map_err(read_error)?;
            let postings = index.read_postings(&term, IndexRecordOption::Basic);
            let Some(postings) = postings.map_err(read_error)? else { continue };
            if let Some(doc) = alive(reader, postings).next() {
                return Ok(Some(DocAddress::new(segment, columns.first_of(doc))));
            }
        }
        Ok(None)
    }

    pub fn holds(&self, key: &ResourceKey) -> Result<bool, IndexError> {
        let key = schema::key_bytes(key.server.as_str(), &key.uri);
        Ok(self.find(&key)?.is_some())
    }

    pub fn entry(&self, key: &ResourceKey) -> Result<Option<Entry>, IndexError> {
        let key = schema::key_bytes(key.server.as_str(), &key.uri);
        let Some(first) = self.find(&key)? else { return Ok(None) };
        let document = self.document(first)?;
        let mut entry = schema::read_head(&self.fields, &document)?;
        let columns = &self.segments[first.segment_ord as usize];
        let chunks = columns.chunks.first(first.doc_id).unwrap_or_default() as DocId;
        for ordinal in 0..chunks {
            let address = DocAddress::new(first.segment_ord, first.doc_id + ordinal);
            let chunk = schema::read_chunk(&self.fields, &self.document(address)?)?;
            entry.chunks.push(chunk.ok_or_else(|| schema::damaged("a chunk"))?);
        }
        Ok(Some(entry))
    }

    pub fn document(&self, address: DocAddress) -> Result<TantivyDocument, IndexError> {
        self.searcher.doc(address).map_err(read_error)
    }

    pub fn resources(&self, request: &ResourcesRequest) -> Result<ResourcesPage, IndexError> {
        let after = request.after.as_ref();
        let after = after.map(|key| schema::key_bytes(key.server.as_str(), &key.uri));
        let within = request.within.as_ref();
        let within = within.map(|key| schema::key_bytes(key.server.as_str(), &key.uri));
        let wanted = request.limit.saturating_add(1);
        // Each segment's first rows hold the first rows of all.
        let mut found: Vec<(Vec<u8>, DocAddress)> = vec![];
        for (segment, reader, columns) in self.segments() {
            let index = reader.inverted_index(self.fields.key).map_err(read_error)?;
            let range = index.terms().range();
            let range = match (&after, &within) {
                (Some(after), Some(within)) if after < within => range.ge(within),
                (Some(after), _) => range.gt(after),
                (None, Some(within)) => range.ge(within),
                (None, None) => range,
            };
            let mut keys = range.into_stream().map_err(read_error)?;
            let mut here = 0;
            while here < wanted && keys.advance() {
                if within.as_ref().is_some_and(|within| !keys.key().starts_with(within)) {
                    break;
                }
                let postings =
                    index.read_postings_from_terminfo(keys.value(), IndexRecordOption::Basic);
                let Some(doc) = alive(reader, postings.map_err(read_error)?).next() else {
                    continue;
                };
                let first = columns.first_of(doc);
                if self.is_listed(request, columns, keys.key(), first)? {
                    found.push((keys.key().to_vec(), DocAddress::new(segment, first)));
                    here += 1;
                }
            }
        }
        found.sort_unstable();
        let more = found.len() > request.limit;
        found.truncate(request.limit);
        let rows = found.into_iter().map(|(_, address)| self.row(address));
        Ok(ResourcesPage { resources: rows.collect::<Result<_, _>>()?, more })
    }

    fn is_listed(
        &self,
        request: &ResourcesRequest,
        columns: &Columns,
        key: &[u8],
        first: DocId,
    ) -> Result<bool, IndexError> {
        if !request.filter.is_everything() || request.contains.is_some() {
            let (server, uri) = schema::split_key(key)?;
            if !request.is_about(server, uri) {
                return Ok(false);
            }
            let mut mime = String::new();
            if let Some(ord) = columns.mime.ords().first(first) {
                columns.mime.ord_to_str(ord, &mut mime).map_err(read_error)?;
            }
            if !request.filter.allows(server, uri, Some(&mime)) {
                return Ok(false);
            }
        }
        if !request.skipped_only {
            return Ok(true);
        }
        let mut body = vec![];
        if let Some(ord) = columns.manifest.ords().first(first) {
            columns.manifest.ord_to_bytes(ord, &mut body).map_err(read_error)?;
        }
        let manifest = manifest::decode(schema::key_of_bytes(key)?, &body)?;
        Ok(matches!(manifest.outcome, Outcome::Skipped(_)))
    }

    fn row(&self, address: DocAddress) -> Result<ResourceRow, IndexError> {
        let entry = schema::read_head(&self.fields, &self.document(address)?)?;
        Ok(ResourceRow {
            key: entry.key(),
            title: schema::label(&entry),
            mime_type: schema::mime_type(&entry).map(str::to_owned),
            size: entry.resource.size,
            resource: entry.resource.clone(),
            outcome: entry.outcome,
            indexed_at: entry.indexed_at,
        })
    }
}

/// The documents of a posting list that aren't deleted.
pub fn alive<'a>(
    reader: &'a SegmentReader,
    mut docs: impl ::tantivy::DocSet + 'a,
) -> impl Iterator<Item = DocId> + 'a {
    let mut next = docs.doc();
    std::iter::from_fn(move || {
        while next != TERMINATED {
            let doc = next;
            next = docs.advance();
            if !reader.is_deleted(doc) {
                return Some(doc);
            }
        }
        None
    })
}

/// The values of many ordinals, read in one pass through the dictionary.
fn resolve(
    column: &BytesColumn,
    ords: impl Iterator<Item = u64>,
) -> Result<Vec<Vec<u8>>, IndexError> {
    let mut order: Vec<(u64, usize)> = ords.zip(0..).collect();
    order.sort_unstable();
    let sorted: Vec<u64> = order.iter().map(|(ord, _)| *ord).collect();
    let mut values = vec![vec![]; sorted.len()];
    let mut places = order.iter();
    let all = column.dictionary().sorted_ords_to_term_cb(&sorted, |bytes| {
        if let Some((_, place)) = places.next() {
            values[*place] = bytes.to_vec();
        }
    });
    if all.map_err(read_error)? { Ok(values) } else { Err(schema::damaged("a column")) }
}
