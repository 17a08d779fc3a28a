//! The index in tantivy, and the only place that knows it.
//!
//! * `schema`: how a resource lies in the index; `manifest`: its manifest as bytes.
//! * `view`: one commit as readers see it.
//! * `query`: what was asked → tantivy's query; `words`: what its words mean for relevance and
//!   highlights; `collect`: the best resources of a query; `search`: all of it together.
//! * `analyzer`: our analyzers as tantivy's tokenizers; `queue`: what waits for its threads.
//! * `former`: an index of another schema, of which the stored text is still good.
//! * `directory`: the folder, with commits that are visible at once and durable a little later.
//!
//! What a killed process leaves behind (lock files, half-written segments) is harmless: locks are the
//! kernel's, and files that no commit names are collected at the next one.

pub mod analyzer;
mod collect;
mod directory;
mod former;
mod manifest;
mod query;
mod queue;
mod schema;
mod search;
mod statistics;
#[cfg(test)]
mod tests;
mod view;
mod visible;
mod words;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ::tantivy::directory::{Directory, MmapDirectory, RamDirectory};
use ::tantivy::indexer::{IndexWriterOptions, LogMergePolicy, UserOperation};
use ::tantivy::schema::{Schema, Term};
use ::tantivy::tokenizer::{TextAnalyzer, TokenizerManager};
use ::tantivy::{
    Index, IndexBuilder, IndexReader, IndexSettings, IndexWriter, Opstamp, ReloadPolicy,
    TantivyError,
};
use arc_swap::ArcSwap;
use chrono::{DateTime, Utc};

pub use self::former::Former;

use self::analyzer::{Pool, PooledTokenizer};
use self::directory::Deferred;
use self::queue::{Queue, Queued};
use self::schema::Fields;
use self::view::View;
use super::{
    Change, Entry, IndexError, IndexStats, IndexStore, ResourcesPage, ResourcesRequest,
    StoreAnswer, StoreRequest,
};
use crate::config::IndexConfig;
use crate::model::{Fingerprint, Manifest, ResourceKey, ServerName};
use crate::{analyze, chunk, extract, fault};

/// The least memory that tantivy takes for an indexing thread; bytes.
const MIN_HEAP_PER_THREAD: usize = 15_000_000;
/// The most; bytes.
const MAX_HEAP_PER_THREAD: usize = 4_000_000_000;

/// Blocks of stored text (16 KiB each) that are kept unpacked for each segment.
const CACHED_BLOCKS: usize = 16;

/// What entries are made of at present. An entry with another fingerprint is to be made again.
pub const fn fingerprint() -> Fingerprint {
    Fingerprint::of(extract::VERSION, chunk::VERSION, analyze::VERSION, schema::VERSION)
}

/// Where the index's files are.
enum Home {
    Folder(PathBuf, Deferred),
    Memory(RamDirectory),
}

impl Home {
    fn directory(&self) -> Box<dyn Directory> {
        match self {
            Self::Folder(_, directory) => Box::new(directory.clone()),
            Self::Memory(directory) => Box::new(directory.clone()),
        }
    }

    /// Bytes of all files. A file may vanish meanwhile: segments are merged all the time.
    fn bytes(&self) -> std::io::Result<u64> {
        let (folder, mut bytes) = match self {
            Self::Folder(folder, directory) => (folder, directory.held_bytes()),
            Self::Memory(memory) => return Ok(memory.total_mem_usage() as u64),
        };
        for file in std::fs::read_dir(folder)? {
            bytes += file?.metadata().map_or(0, |metadata| metadata.len());
        }
        Ok(bytes)
    }
}

/// An index in a folder, or in memory.
pub struct TantivyStore {
    index: Index,
    fields: Fields,
    pool: Pool,
    home: Home,
    threads: usize,
    heap_per_thread: usize,
    reader: IndexReader,
    /// What searches see. Replaced as the last step of a commit.
    view: ArcSwap<View>,
    last_commit: Mutex<Option<DateTime<Utc>>>,
    /// Made when there is something to write, thrown away when writing failed.
    writer: Mutex<Option<IndexWriter<Queued>>>,
    queue: Queue,
}

impl TantivyStore {
    /// Opens the index in a folder, or makes one there. The caller holds the folder's lock.
    ///
    /// # Errors
    /// [`IndexError::OtherSchema`] when another version made what is there, which [`Former`] may
    /// read; [`IndexError::Open`] when it can't be read. The index is derived, so it may be set aside
    /// and made again.
    pub fn open(folder: &Path, config: &IndexConfig) -> Result<Self, IndexError> {
        let shown = || folder.display().to_string();
        let failed = |reason: String| IndexError::Open { folder: shown(), reason };
        std::fs::create_dir_all(folder).map_err(|e| failed(e.to_string()))?;
        let directory = MmapDirectory::open(folder).map_err(|e| failed(e.to_string()))?;
        let home = Home::Folder(folder.to_owned(), Deferred::new(directory));
        let opened = Self::with_home(home, config);
        opened.map_err(|error| match error {
            TantivyError::SchemaError(_) if Former::open(folder).is_ok() => {
                IndexError::OtherSchema { folder: shown() }
            }
            other => failed(other.to_string()),
        })
    }

    /// An index that lives in memory only, for tests and `eval`.
    ///
    /// # Errors
    /// [`IndexError::Open`], which would be a fault of the engine.
    pub fn in_memory() -> Result<Self, IndexError> {
        let config = IndexConfig { threads: 1, ..IndexConfig::default() };
        Self::with_home(Home::Memory(RamDirectory::create()), &config)
            .map_err(|e| IndexError::Open { folder: "memory".into(), reason: e.to_string() })
    }

    fn with_home(home: Home, config: &IndexConfig) -> ::tantivy::Result<Self> {
        Self::with_schema(home, config, schema::schema())
    }

    fn with_schema(
        home: Home,
        config: &IndexConfig,
        (schema, fields): (Schema, Fields),
    ) -> ::tantivy::Result<Self> {
        let pool = Pool::default();
        let tokenizers = TokenizerManager::default();
        for (name, field) in
            [(schema::BODY, analyze::Field::Body), (schema::WORD, analyze::Field::Word)]
        {
            let tokenizer = PooledTokenizer::new(pool.clone(), field);
            tokenizers.register(name, TextAnalyzer::builder(tokenizer).build());
        }
        let index = IndexBuilder::new()
            .schema(schema)
            .settings(IndexSettings::default())
            .tokenizers(tokenizers)
            .open_or_create(home.directory())?;
        // Reloading is the last step of our own commit; nothing else may change what searches see.
        let reader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .doc_store_cache_num_blocks(CACHED_BLOCKS)
            .try_into()?;
        let view = View::new(reader.searcher(), fields, None)?;
        let payload = index.load_metas()?.payload;
        let last_commit = payload.and_then(|payload| payload.parse().ok());
        // Fewer threads, rather than more memory than was allowed.
        let threads = config.threads.min(config.heap_bytes / MIN_HEAP_PER_THREAD).clamp(1, 64);
        let heap = (config.heap_bytes / threads).clamp(MIN_HEAP_PER_THREAD, MAX_HEAP_PER_THREAD);
        Ok(Self {
            index,
            fields,
            pool,
            home,
            threads,
            heap_per_thread: heap,
            reader,
            view: ArcSwap::from_pointee(view),
            last_commit: Mutex::new(last_commit),
            writer: Mutex::new(None),
            queue: Queue::default(),
        })
    }

    fn new_writer(&self) -> ::tantivy::Result<IndexWriter<Queued>> {
        let options = IndexWriterOptions::builder()
            .num_worker_threads(self.threads)
            .memory_budget_per_thread(self.heap_per_thread)
            // Merging is for later; it shall not outnumber the threads that index.
            .num_merge_threads(self.threads)
            .build();
        let writer = self.index.writer_with_options(options)?;
        let mut policy = LogMergePolicy::default();
        // Updates of one resource make segments of a few documents. They are merged among
        // themselves first, so that an update doesn't rewrite thousands of neighbours.
        policy.set_min_layer_size(512);
        // What was replaced goes away when it makes up a quarter of a segment.
        policy.set_del_docs_ratio_before_merge(0.25);
        writer.set_merge_policy(Box::new(policy));
        // What a killed process or a failed commit left isn't named by any commit. Should it stay,
        // it is collected after the next one.
        let _ = writer.garbage_collect_files().wait();
        self.outnumber(&writer)?;
        Ok(writer)
    }

    /// Makes the numbers of a new writer's operations higher than those in use.
    ///
    /// Tantivy counts from the number of the last commit on, that one included. Two things would go wrong
    /// with a number that is in use: a merge that starts before the next commit takes a deletion of
    /// that number for one of the last commit's, and loses it for segments that had some, so that the
    /// resource stays twice; and a list of deletions that a killed process or a failed commit left
    /// behind has the name that the next commit wants to give its own, so that no commit succeeds
    /// any more.
    fn outnumber(&self, writer: &IndexWriter<Queued>) -> ::tantivy::Result<()> {
        let files = self.index.directory().list_managed_files();
        let used = files.iter().filter_map(|file| {
            let name = file.to_str()?.strip_suffix(".del")?;
            name.rsplit_once('.')?.1.parse::<Opstamp>().ok()
        });
        let used = used.max().unwrap_or_default();
        while writer.run([])? < used {}
        Ok(())
    }

    /// Runs something with the writer, which is made if there is none.
    fn with_writer<T>(
        &self,
        call: impl FnOnce(&mut IndexWriter<Queued>) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        let mut slot = lock(&self.writer);
        let writer = match slot.as_mut() {
            Some(writer) => writer,
            None => slot.insert(self.new_writer().map_err(write_error)?),
        };
        call(writer)
    }

    /// Shows searches what is committed. Only the writer's thread does, so a view never goes back.
    fn publish(&self) -> Result<(), IndexError> {
        self.reader.reload().map_err(view::read_error)?;
        let before = self.view.load_full();
        let view = View::new(self.reader.searcher(), self.fields, Some(&before));
        let view = view.map_err(view::read_error)?;
        self.view.store(Arc::new(view));
        Ok(())
    }

    fn put(&self, writer: &IndexWriter<Queued>, entry: Entry) -> Result<(), IndexError> {
        self.queue.wait();
        let key = self.key_term(&entry.key());
        if key.serialized_value_bytes().len() > schema::MAX_KEY_BYTES {
            // An error would take the others of the batch with it, again at every attempt.
            tracing::warn!(
                server = %entry.server,
                bytes = entry.resource.uri.len(),
                "a resource isn't indexed: its URI is longer than the index takes"
            );
            return Ok(());
        }
        // Analyzed in two fields and stored: three copies of the text.
        let sizes: Vec<usize> = entry.chunks.iter().map(|chunk| 3 * chunk.text.len()).collect();
        let sizes = sizes.into_iter().chain([0]).map(|text| text + 1024);
        let documents = schema::documents(&self.fields, entry)?;
        // One batch goes to one thread and one segment, in order: what `doc - ordinal` rests on.
        let mut operations = Vec::with_capacity(documents.len() + 1);
        operations.push(UserOperation::Delete(key));
        let queued = documents.into_iter().zip(sizes);
        let queued = queued.map(|(document, bytes)| self.queue.add(document, bytes));
        operations.extend(queued.map(UserOperation::Add));
        writer.run(operations).map_err(write_error)?;
        Ok(())
    }

    fn key_term(&self, key: &ResourceKey) -> Term {
        let bytes = schema::key_bytes(key.server.as_str(), &key.uri);
        Term::from_field_bytes(self.fields.key, &bytes)
    }
}

impl IndexStore for TantivyStore {
    fn apply(&self, changes: Vec<Change>) -> Result<(), IndexError> {
        self.with_writer(|writer| {
            for change in changes {
                match change {
                    Change::Replace(entry) => self.put(writer, *entry)?,
                    Change::Remove(key) => {
                        writer.delete_term(self.key_term(&key));
                    }
                    Change::RemoveServer(server) => {
                        let term = Term::from_field_text(self.fields.server, server.as_str());
                        writer.delete_term(term);
                    }
                }
            }
            Ok(())
        })
    }

    fn commit(&self) -> Result<(), IndexError> {
        let now = Utc::now();
        self.with_writer(|writer| {
            let mut commit = writer.prepare_commit().map_err(write_error)?;
            fault::point("index.prepared");
            commit.set_payload(&now.to_rfc3339());
            commit.commit().map_err(write_error)?;
            Ok(())
        })?;
        fault::point("index.committed");
        self.publish()?;
        *lock(&self.last_commit) = Some(now);
        Ok(())
    }

    fn persist(&self) -> Result<(), IndexError> {
        match &self.home {
            Home::Folder(_, directory) => directory.persist().map_err(write_error),
            Home::Memory(_) => Ok(()),
        }
    }

    fn settle(&self) -> Result<(), IndexError> {
        let segments = self.index.searchable_segment_ids().map_err(view::read_error)?;
        let view = self.view.load();
        let shown = view.searcher.segment_readers().iter().map(|segment| segment.segment_id());
        // Segments are merged after a commit, and files go from memory to the disk. Until the view
        // moves on, searches go through the small segments, and the memory and the disk keep them.
        let moved = match &self.home {
            Home::Folder(_, directory) => directory.take_moved(),
            Home::Memory(_) => false,
        };
        if moved || !shown.eq(segments) {
            self.publish()?;
        }
        // A merge that a commit has overtaken comes to nothing, and leaves its files.
        match &*lock(&self.writer) {
            Some(writer) => writer.garbage_collect_files().wait().map(drop).map_err(write_error),
            None => Ok(()),
        }
    }

    fn rollback(&self) -> Result<(), IndexError> {
        // A new writer starts from the last commit, and also works after an error that killed the old.
        *lock(&self.writer) = None;
        Ok(())
    }

    fn manifests(&self, server: &ServerName) -> Result<Vec<Manifest>, IndexError> {
        self.view.load().manifests(server)
    }

    fn servers(&self) -> Result<Vec<ServerName>, IndexError> {
        self.view.load().servers()
    }

    fn entry(&self, key: &ResourceKey) -> Result<Option<Entry>, IndexError> {
        self.view.load().entry(key)
    }

    fn keys_of_uri(&self, uri: &str) -> Result<Vec<ResourceKey>, IndexError> {
        let view = self.view.load();
        let mut keys = vec![];
        for server in view.servers()? {
            let key = ResourceKey { server, uri: uri.into() };
            if view.holds(&key)? {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    fn resources(&self, request: &ResourcesRequest) -> Result<ResourcesPage, IndexError> {
        self.view.load().resources(request)
    }

    fn search(&self, request: &StoreRequest) -> Result<StoreAnswer, IndexError> {
        search::search(&self.view.load(), &self.pool, request)
    }

    fn stats(&self) -> Result<IndexStats, IndexError> {
        let view = self.view.load();
        let counts = view.counts();
        let bytes = self.home.bytes().map_err(view::read_error)?;
        Ok(IndexStats {
            resources: counts.resources,
            chunks: counts.chunks,
            bytes,
            last_commit: *lock(&self.last_commit),
        })
    }
}

fn write_error(error: impl std::fmt::Display) -> IndexError {
    IndexError::Write { reason: error.to_string() }
}

/// A value that is only ever replaced whole stays whole when a thread dies with the lock.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
