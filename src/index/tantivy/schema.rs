//! How a resource lies in the index: one document a chunk, in the order of the chunks, side by side
//! in one segment. The first carries the resource itself; a resource without text has just that one.
//!
//! All documents of a resource are written in one batch and deleted by one term, and merges keep the
//! order, so the first document of a resource is always `doc - ordinal`.

use std::borrow::Cow;
use std::ops::Range;

use ::tantivy::TantivyDocument;
use ::tantivy::schema::{
    BytesOptions, FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, SchemaBuilder,
    TextFieldIndexing, TextOptions, Value,
};
use chrono::{DateTime, NaiveDate};
use serde::{Deserialize, Serialize};

use super::manifest;
use crate::index::{Entry, IndexError};
use crate::model::{Chunk, Resource, ResourceKey, ServerName};

/// Changes whenever the same entry is written otherwise; part of the index's fingerprint.
pub const VERSION: u32 = 2;

/// Longest key that tantivy takes as a term; far above the limit of a URI. What has a longer one
/// couldn't be removed again.
pub const MAX_KEY_BYTES: usize = 65_000;

/// Names of the two analyzers in tantivy's registry.
pub const BODY: &str = "resdex_body";
pub const WORD: &str = "resdex_word";

/// The fields of the index.
#[derive(Clone, Copy, Debug)]
pub struct Fields {
    /// Server and URI: the term by which a resource is replaced, and its place in orders.
    pub key: Field,
    pub server: Field,
    pub mime: Field,
    /// The chunk's place in its resource, from 0.
    pub ordinal: Field,
    /// On the first document: how many chunks the resource has.
    pub chunks: Field,
    /// On the first document of a resource with text: a hash of the text, by which resources with
    /// the same text are one hit.
    pub text_hash: Field,
    /// On the first document: what breaks ties, more is better; see [`tie`].
    pub tie: Field,
    /// On the first document: the manifest, readable without the stored text.
    pub manifest: Field,

    /// Title, the document's own title, and name.
    pub title: Field,
    /// The headings above the chunk.
    pub heading: Field,
    /// The words of the URI.
    pub uri: Field,
    /// On the first document: the server's description.
    pub description: Field,
    pub body: Field,
    pub word: Field,

    /// Stored: the chunk's exact text, the rest of the chunk, and (on the first) the resource.
    pub text: Field,
    pub place: Field,
    pub head: Field,
}

/// The schema and its fields.
pub fn schema() -> (Schema, Fields) {
    after(Schema::builder())
}

/// The same, after what a test has put before it.
pub(super) fn after(mut builder: SchemaBuilder) -> (Schema, Fields) {
    let analyzed = |analyzer: &str, record| {
        let indexing =
            TextFieldIndexing::default().set_tokenizer(analyzer).set_index_option(record);
        TextOptions::default().set_indexing_options(indexing)
    };
    let positions = analyzed(BODY, IndexRecordOption::WithFreqsAndPositions);
    let words = analyzed(WORD, IndexRecordOption::WithFreqs);
    let raw_column = TextOptions::default().set_fast("raw");
    let fields = Fields {
        key: builder.add_bytes_field("key", BytesOptions::default().set_indexed().set_fast()),
        server: builder.add_text_field("server", STRING | FAST),
        mime: builder.add_text_field("mime", raw_column),
        ordinal: builder.add_u64_field("ordinal", FAST),
        chunks: builder.add_u64_field("chunks", FAST),
        text_hash: builder.add_u64_field("text_hash", INDEXED | FAST),
        tie: builder.add_u64_field("tie", FAST),
        manifest: builder.add_bytes_field("manifest", FAST),
        title: builder.add_text_field("title", positions.clone()),
        heading: builder.add_text_field("heading", positions.clone()),
        uri: builder.add_text_field("uri", positions.clone()),
        description: builder.add_text_field("description", positions.clone()),
        body: builder.add_text_field("body", positions),
        word: builder.add_text_field("word", words),
        text: builder.add_text_field("text", STORED),
        place: builder.add_bytes_field("place", STORED),
        head: builder.add_bytes_field("head", STORED),
    };
    (builder.build(), fields)
}

/// A key as bytes whose order is the order of keys: a server's name holds no control character.
pub fn key_bytes(server: &str, uri: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(server.len() + 1 + uri.len());
    bytes.extend_from_slice(server.as_bytes());
    bytes.push(0);
    bytes.extend_from_slice(uri.as_bytes());
    bytes
}

/// Server and URI of a key.
pub fn split_key(bytes: &[u8]) -> Result<(&str, &str), IndexError> {
    let text = std::str::from_utf8(bytes).ok();
    text.and_then(|text| text.split_once('\0')).ok_or_else(|| damaged("a key"))
}

pub fn key_of_bytes(bytes: &[u8]) -> Result<ResourceKey, IndexError> {
    let (server, uri) = split_key(bytes)?;
    let server = ServerName::new(server).map_err(|_| damaged("a server's name"))?;
    Ok(ResourceKey { server, uri: uri.into() })
}

/// What is said when stored bytes don't have the shape that this version writes.
pub fn damaged(what: &str) -> IndexError {
    IndexError::Read {
        reason: format!(
            "{what} in it is damaged; delete the index, it is made again from the servers"
        ),
    }
}

/// A chunk without its text, as every document stores it; a tuple, because names would be stored
/// with each.
#[derive(Serialize, Deserialize)]
struct Place(
    u32,
    Vec<String>,
    (u32, u32),
    Range<u32>,
    Option<u32>,
    Option<String>,
    Vec<Range<u32>>,
);

/// The documents of an entry: one a chunk, at least one.
///
/// # Errors
/// [`IndexError::Write`] when a part of it can't be written as JSON.
pub fn documents(fields: &Fields, mut entry: Entry) -> Result<Vec<TantivyDocument>, IndexError> {
    let key = key_bytes(entry.server.as_str(), &entry.resource.uri);
    let manifest = manifest::encode(&entry);
    let chunks = std::mem::take(&mut entry.chunks);
    let common = common(fields, &entry, &key);
    let title = own_title(&entry).map(str::to_owned);

    let mut first = common.clone();
    first.add_u64(fields.chunks, chunks.len() as u64);
    if let Some(hash) = text_hash(&chunks) {
        first.add_u64(fields.text_hash, hash);
    }
    first.add_u64(fields.tie, tie(&entry.resource));
    first.add_bytes(fields.manifest, &manifest);
    if let Some(description) = &entry.resource.description {
        first.add_text(fields.description, description);
    }
    let head =
        serde_json::to_vec(&entry).map_err(|e| IndexError::Write { reason: e.to_string() })?;
    first.add_bytes(fields.head, &head);

    let mut documents = Vec::with_capacity(chunks.len().max(1));
    let mut first = Some(first);
    for (ordinal, chunk) in chunks.into_iter().enumerate() {
        let mut document = first.take().unwrap_or_else(|| common.clone());
        document.add_u64(fields.ordinal, ordinal as u64);
        add_chunk(fields, &mut document, title.as_deref(), chunk)?;
        documents.push(document);
    }
    if let Some(mut alone) = first {
        alone.add_u64(fields.ordinal, 0);
        documents.push(alone);
    }
    Ok(documents)
}

/// A hash of a resource's text; nothing for one without.
fn text_hash(chunks: &[Chunk]) -> Option<u64> {
    let mut hasher = blake3::Hasher::new();
    for chunk in chunks {
        // A new part begins where the bytes start again.
        hasher.update(&chunk.bytes.start.to_le_bytes());
        hasher.update(chunk.text.as_bytes());
    }
    let mut first = [0; 8];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    let has_text = chunks.iter().any(|chunk| !chunk.text.trim().is_empty());
    has_text.then(|| u64::from_le_bytes(first))
}

/// What decides between resources that score the same: the priority that the server gives
/// (`annotations.priority`), then the later change (`annotations.lastModified`).
fn tie(resource: &Resource) -> u64 {
    const SECONDS: u32 = 40;
    let priority = (resource.priority.unwrap_or_default().clamp(0.0, 1.0) * 1000.0) as u64;
    let modified = resource.last_modified.as_deref().and_then(|text| {
        let time = DateTime::parse_from_rfc3339(text).map(|time| time.timestamp());
        let day = || NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0);
        time.ok().or_else(|| Some(day()?.and_utc().timestamp()))
    });
    let seconds = u64::try_from(modified.unwrap_or_default()).unwrap_or_default();
    priority << SECONDS | seconds.min((1 << SECONDS) - 1)
}

/// What each document of a resource has.
fn common(fields: &Fields, entry: &Entry, key: &[u8]) -> TantivyDocument {
    let resource = &entry.resource;
    let mut document = TantivyDocument::default();
    document.add_bytes(fields.key, key);
    document.add_text(fields.server, entry.server.as_str());
    document.add_text(fields.mime, mime_type(entry).unwrap_or_default());
    for title in titles(entry) {
        document.add_text(fields.title, title);
    }
    document.add_text(fields.uri, uri_words(&resource.uri));
    document
}

/// The MIME type that was acted on, else the one that the server gave.
pub fn mime_type(entry: &Entry) -> Option<&str> {
    entry.mime_type.as_deref().or(entry.resource.mime_type.as_deref())
}

/// The names under which people may look for a resource, each once.
pub fn titles(entry: &Entry) -> Vec<&str> {
    let mut titles: Vec<&str> = vec![];
    let all = [entry.resource.title.as_deref(), entry.document_title.as_deref()];
    for title in all.into_iter().flatten().chain([entry.resource.name.as_str()]) {
        if !title.is_empty() && !titles.contains(&title) {
            titles.push(title);
        }
    }
    titles
}

/// What people are shown as a hit's title.
pub fn label(entry: &Entry) -> String {
    own_title(entry).unwrap_or_else(|| entry.resource.label()).to_owned()
}

/// The title that the server gives, else the document's own.
fn own_title(entry: &Entry) -> Option<&str> {
    let titles = [entry.resource.title.as_deref(), entry.document_title.as_deref()];
    titles.into_iter().flatten().find(|title| !title.is_empty())
}

/// The part of a URI in which people's words are: all after the scheme, percent-decoded.
pub fn uri_words(uri: &str) -> String {
    let path = uri.split_once(':').map_or(uri, |(_, rest)| rest).trim_start_matches('/');
    percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned()
}

fn add_chunk(
    fields: &Fields,
    document: &mut TantivyDocument,
    title: Option<&str>,
    chunk: Chunk,
) -> Result<(), IndexError> {
    for heading in &chunk.heading_path {
        document.add_text(fields.heading, heading);
    }
    let language = without_noise(&chunk.text, &chunk.noise);
    let body = match &chunk.lead {
        Some(lead) => &format!("{lead}\n{language}"),
        None => language.as_ref(),
    };
    // A chunk is read under its document's title, which often has the word that the chunk leaves out.
    if let Some(title) = title {
        document.add_text(fields.body, title);
        document.add_text(fields.word, title);
    }
    document.add_text(fields.body, body);
    document.add_text(fields.word, body);
    document.add_text(fields.text, &chunk.text);
    let Chunk { part, heading_path, lines, bytes, page, text: _, lead, noise } = chunk;
    let place = Place(part, heading_path, lines, bytes, page, lead, noise);
    let place =
        serde_json::to_vec(&place).map_err(|e| IndexError::Write { reason: e.to_string() })?;
    document.add_bytes(fields.place, &place);
    Ok(())
}

/// The text with its noise blanked out byte by byte, so that places in it stay the same.
pub fn without_noise<'a>(text: &'a str, noise: &[Range<u32>]) -> Cow<'a, str> {
    let mut blanked = Cow::Borrowed(text);
    for range in noise {
        let range = range.start as usize..range.end as usize;
        // A range that isn't one of this text blanks nothing.
        if text.get(range.clone()).is_some() {
            blanked.to_mut().replace_range(range.clone(), &" ".repeat(range.len()));
        }
    }
    blanked
}

/// The chunk that a document stores; `None` on that of a resource without text.
pub fn read_chunk(
    fields: &Fields,
    document: &TantivyDocument,
) -> Result<Option<Chunk>, IndexError> {
    let Some(place) = document.get_first(fields.place) else { return Ok(None) };
    let place = place.as_bytes().ok_or_else(|| damaged("a chunk"))?;
    let Place(part, heading_path, lines, bytes, page, lead, noise) =
        serde_json::from_slice(place).map_err(|_| damaged("a chunk"))?;
    let text = document.get_first(fields.text).and_then(|text| text.as_str()).unwrap_or_default();
    Ok(Some(Chunk { part, heading_path, lines, bytes, page, text: text.to_owned(), lead, noise }))
}

/// The entry, without its chunks, that a resource's first document stores.
pub fn read_head(fields: &Fields, document: &TantivyDocument) -> Result<Entry, IndexError> {
    let head = document.get_first(fields.head).and_then(|head| head.as_bytes());
    let head = head.ok_or_else(|| damaged("a resource"))?;
    serde_json::from_slice(head).map_err(|_| damaged("a resource"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Audience, Origin};

    #[test]
    fn priority_goes_before_the_last_change() {
        let tie = |priority, last_modified: Option<&str>| {
            tie(&Resource {
                uri: "u".into(),
                name: String::new(),
                title: None,
                description: None,
                mime_type: None,
                size: None,
                audience: Audience::Both,
                priority,
                last_modified: last_modified.map(str::to_owned),
                origin: Origin::Listed,
            })
        };
        let order = [
            tie(None, None),
            tie(None, Some("2025-06-18")),
            tie(None, Some("2025-06-18T00:00:01Z")),
            tie(Some(0.5), Some("nonsense")),
            tie(Some(0.5), Some("1999-01-01T00:00:00+02:00")),
            tie(Some(1.0), None),
        ];
        assert!(order.is_sorted_by(|a, b| a < b), "{order:?}");
    }
}
