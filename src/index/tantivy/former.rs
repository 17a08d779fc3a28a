//! An index of another schema: its fields may be others, but what is stored of each resource is still
//! good, and spares reading everything from the servers again.

use std::path::Path;

use ::tantivy::directory::MmapDirectory;
use ::tantivy::{DocAddress, Index, ReloadPolicy, Searcher, TantivyDocument};

use super::schema::{self, Fields};
use super::view::read_error;
use crate::index::{Entry, IndexError};

/// The last commit of an index that only has to be read to its end, once.
pub struct Former {
    searcher: Searcher,
    /// Those of the present schema, with the places of the stored ones in the old.
    fields: Fields,
}

impl Former {
    /// # Errors
    /// [`IndexError::Open`] when there is no such index, or it stores something else.
    pub fn open(folder: &Path) -> Result<Self, IndexError> {
        let failed =
            |reason: String| IndexError::Open { folder: folder.display().to_string(), reason };
        let open = || -> ::tantivy::Result<Self> {
            let index = Index::open(MmapDirectory::open(folder)?)?;
            let old = index.schema();
            let (_, mut fields) = schema::schema();
            fields.text = old.get_field("text")?;
            fields.place = old.get_field("place")?;
            fields.head = old.get_field("head")?;
            let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
            let reader: ::tantivy::IndexReader = reader;
            Ok(Self { searcher: reader.searcher(), fields })
        };
        open().map_err(|error| failed(error.to_string()))
    }

    /// How many documents it has: one a passage, at least one a resource.
    pub fn documents(&self) -> u64 {
        self.searcher.num_docs()
    }

    /// Every resource, one at a time.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry, IndexError>> {
        let mut documents = self.stored().peekable();
        std::iter::from_fn(move || {
            let head = match documents.next()? {
                Ok(head) => head,
                Err(error) => return Some(Err(error)),
            };
            let mut entry = match schema::read_head(&self.fields, &head) {
                Ok(entry) => entry,
                Err(error) => return Some(Err(error)),
            };
            let mut chunk = Some(head);
            // The further documents of a resource lie behind its first.
            while let Some(document) = chunk {
                match schema::read_chunk(&self.fields, &document) {
                    Ok(read) => entry.chunks.extend(read),
                    Err(error) => return Some(Err(error)),
                }
                let is_further = |next: &Result<TantivyDocument, IndexError>| {
                    next.as_ref().is_ok_and(|next| next.get_first(self.fields.head).is_none())
                };
                chunk = documents.next_if(is_further).and_then(Result::ok);
            }
            Some(Ok(entry))
        })
    }

    /// What each document stores, in the order in which they lie.
    fn stored(&self) -> impl Iterator<Item = Result<TantivyDocument, IndexError>> {
        let segments = self.searcher.segment_readers().iter().zip(0..);
        segments.flat_map(move |(segment, ord)| {
            let alive = segment.doc_ids_alive();
            alive.map(move |doc| self.searcher.doc(DocAddress::new(ord, doc)).map_err(read_error))
        })
    }
}
