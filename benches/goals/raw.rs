//! Tantivy without resdex around it: the same chunks, schema, analyzers, threads and memory.

use std::path::Path;
use std::time::{Duration, Instant};

use resdex::analyze;
use resdex::config::IndexConfig;
use resdex::index::Entry;
use resdex::index::tantivy::analyzer::{Pool, PooledTokenizer};
use tantivy::schema::{Field, Schema};
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{Index, IndexReader, IndexWriter, ReloadPolicy, TantivyDocument, Term};

pub struct Raw {
    writer: IndexWriter,
    reader: IndexReader,
    schema: Schema,
}

impl Raw {
    /// An empty index with the schema of the one in a folder.
    pub fn like(other: &Path, folder: &Path, config: &IndexConfig) -> Self {
        let schema = Index::open_in_dir(other).unwrap().schema();
        std::fs::create_dir_all(folder).unwrap();
        let index = Index::create_in_dir(folder, schema.clone()).unwrap();
        let pool = Pool::default();
        let analyzers =
            [("resdex_body", analyze::Field::Body), ("resdex_word", analyze::Field::Word)];
        for (name, field) in analyzers {
            let tokenizer = PooledTokenizer::new(pool.clone(), field);
            index.tokenizers().register(name, TextAnalyzer::builder(tokenizer).build());
        }
        let writer = index.writer_with_num_threads(config.threads, config.heap_bytes).unwrap();
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().unwrap();
        Self { writer, reader, schema }
    }

    fn field(&self, name: &str) -> Field {
        self.schema.get_field(name).unwrap()
    }

    pub fn add(&self, entry: &Entry) {
        let title = entry.document_title.as_deref().unwrap_or_default();
        for (ordinal, chunk) in entry.chunks.iter().enumerate() {
            let mut document = TantivyDocument::default();
            document.add_bytes(self.field("key"), entry.resource.uri.as_bytes());
            document.add_text(self.field("server"), entry.server.as_str());
            document.add_text(self.field("mime"), entry.mime_type.as_deref().unwrap_or_default());
            document.add_u64(self.field("ordinal"), ordinal as u64);
            document.add_text(self.field("title"), title);
            document.add_text(self.field("title"), &entry.resource.name);
            document.add_text(self.field("uri"), &*entry.resource.uri);
            for heading in &chunk.heading_path {
                document.add_text(self.field("heading"), heading);
            }
            for field in ["body", "word"] {
                document.add_text(self.field(field), title);
                document.add_text(self.field(field), &chunk.text);
            }
            document.add_text(self.field("text"), &chunk.text);
            self.writer.add_document(document).unwrap();
        }
    }

    /// Adds entries and commits.
    pub fn index(&mut self, entries: &[Entry]) -> Duration {
        let started = Instant::now();
        for entry in entries {
            self.add(entry);
        }
        self.writer.commit().unwrap();
        started.elapsed()
    }

    /// Replaces an entry, commits and reloads.
    pub fn update(&mut self, entry: &Entry) -> Duration {
        let started = Instant::now();
        let key = Term::from_field_bytes(self.field("key"), entry.resource.uri.as_bytes());
        self.writer.delete_term(key);
        self.add(entry);
        self.writer.commit().unwrap();
        self.reader.reload().unwrap();
        started.elapsed()
    }
}
