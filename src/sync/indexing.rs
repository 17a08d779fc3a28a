//! Snapshot → entry of the index: the stretch of the flow between a read and the writer.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::machine::{ReadJob, ReadOutcome};
use crate::chunk::chunk;
use crate::config::Limits;
use crate::extract::{Extraction, extract};
use crate::index::writer::WriterHandle;
use crate::index::{Change, Entry, IndexStore, description_hash, is_mislabelled};
use crate::model::{
    ContentHash, Fingerprint, Outcome, Resource, ResourceKey, ServerName, Snapshot,
};
use crate::source::SourceError;

/// What the stretch needs to know.
pub struct Indexing {
    pub server: ServerName,
    pub limits: Limits,
    pub fingerprint: Fingerprint,
    pub store: Arc<dyn IndexStore>,
}

impl Indexing {
    /// Compares what was read with what the index holds, and hands it over if it differs.
    pub async fn index(
        self,
        job: ReadJob,
        snapshot: Snapshot,
        read_at: DateTime<Utc>,
        writer: &WriterHandle,
    ) -> ReadOutcome {
        let redescribed = job
            .resource
            .as_ref()
            .is_some_and(|resource| description_hash(resource) != job.description);
        if job.hash == Some(snapshot.hash) && !redescribed {
            return ReadOutcome::Unchanged;
        }
        // Extraction and chunking take as long as they take; other tasks go on meanwhile.
        let made = tokio::task::spawn_blocking(move || self.entry(job, &snapshot, read_at)).await;
        let entry = match made {
            Ok(Ok(entry)) => entry,
            Ok(Err(reason)) => return failed(reason),
            Err(panic) => return failed(format!("its text can't be extracted: {panic}")),
        };
        let outcome = ReadOutcome::Replaced {
            hash: entry.content_hash,
            description: description_hash(&entry.resource),
            skipped: matches!(entry.outcome, Outcome::Skipped(_)),
            mislabelled: is_mislabelled(&entry),
        };
        match writer.submit(vec![Change::Replace(Box::new(entry))]).await {
            Ok(()) => outcome,
            Err(error) => failed(error.to_string()),
        }
    }

    fn entry(
        &self,
        job: ReadJob,
        snapshot: &Snapshot,
        read_at: DateTime<Utc>,
    ) -> Result<Entry, String> {
        let resource = match job.resource {
            Some(resource) => *resource,
            None => {
                let key = ResourceKey { server: self.server.clone(), uri: job.uri.clone() };
                let known = self.store.entry(&key).map_err(|error| error.to_string())?;
                known.map_or_else(|| Resource::new(job.uri), |entry| entry.resource)
            }
        };
        let (outcome, mime_type, title, chunks) = match extract(&resource, snapshot, &self.limits) {
            Extraction::Document(document) => {
                let chunks = chunk(&document);
                (Outcome::Indexed, Some(document.mime_type), document.title, chunks)
            }
            Extraction::Skipped(reason) => {
                (Outcome::Skipped(reason), resource.mime_type.clone(), None, vec![])
            }
        };
        Ok(Entry {
            server: self.server.clone(),
            document_title: title,
            mime_type,
            content_hash: snapshot.hash,
            fingerprint: self.fingerprint,
            outcome,
            chunks,
            // What changed later isn't in it.
            indexed_at: read_at,
            resource,
        })
    }

    /// The entry of a resource that couldn't be read.
    pub fn by_name(&self, resource: Resource, reason: String) -> Entry {
        Entry {
            server: self.server.clone(),
            document_title: None,
            mime_type: resource.mime_type.clone(),
            content_hash: ContentHash([0; 16]),
            fingerprint: self.fingerprint,
            outcome: Outcome::Skipped(reason),
            chunks: vec![],
            indexed_at: Utc::now(),
            resource,
        }
    }
}

fn failed(reason: String) -> ReadOutcome {
    ReadOutcome::Failed(SourceError::BadAnswer { what: "indexing".into(), reason })
}
