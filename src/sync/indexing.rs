//! Snapshot → entry of the index: the stretch of the flow between a read and the writer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use chrono::{DateTime, Utc};

use super::machine::{ReadJob, ReadOutcome};
use crate::chunk::chunk;
use crate::config::{Limits, MimePolicy};
use crate::extract::{Extraction, needs_worker};
use crate::index::writer::WriterHandle;
use crate::index::{Change, Entry, IndexStore, description_hash, is_mislabelled};
use crate::model::{
    ContentHash, Fingerprint, Outcome, Resource, ResourceKey, ServerName, Snapshot,
};
use crate::source::SourceError;
use crate::worker::Workers;

/// Text of so many bytes takes about 100 µs from a snapshot to chunks.
const QUICK: u64 = 8 << 10;

/// What the stretch needs to know.
pub struct Indexing {
    pub server: ServerName,
    pub limits: Limits,
    pub fingerprint: Fingerprint,
    pub store: Arc<dyn IndexStore>,
    pub workers: Workers,
    /// That of all servers and this one's own, each with its name in the config.
    pub policies: [(MimePolicy, &'static str); 2],
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
        let made = if self.is_quick(&job, &snapshot) {
            let made = AssertUnwindSafe(|| self.entry(job, &snapshot, read_at));
            catch_unwind(made).map_err(|_| "it panicked (the log says where)".to_owned())
        } else {
            // Extraction and chunking take as long as they take; other tasks go on meanwhile.
            let made = tokio::task::spawn_blocking(move || self.entry(job, &snapshot, read_at));
            made.await.map_err(|panic| panic.to_string())
        };
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

    /// Whether an entry is made in less time than it takes to wake another thread for it.
    fn is_quick(&self, job: &ReadJob, snapshot: &Snapshot) -> bool {
        let Some(resource) = &job.resource else { return false };
        snapshot.bytes() <= QUICK && !needs_worker(resource, snapshot, &self.limits)
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
        let extraction = self.workers.extract_blocking(&resource, snapshot, &self.limits)?;
        let (outcome, mime_type, title, chunks) = match extraction {
            Extraction::Document(document)
                if let Some(reason) = refusal(&self.policies, &document.mime_type) =>
            {
                (Outcome::Skipped(reason), Some(document.mime_type), None, vec![])
            }
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

/// Why the config doesn't want a type's text.
fn refusal(policies: &[(MimePolicy, &'static str)], essence: &str) -> Option<String> {
    let (_, place) = policies.iter().find(|(policy, _)| !policy.allows(essence))?;
    Some(format!("{essence} isn't indexed by the config ({place})"))
}

/// What entries are made of, the policies included: other ones make them anew.
pub fn fingerprint_with(base: Fingerprint, policies: &[(MimePolicy, &'static str)]) -> Fingerprint {
    if policies.iter().all(|(policy, _)| policy.is_empty()) {
        return base;
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(&base.0.to_le_bytes());
    for (MimePolicy { allow, deny }, _) in policies {
        for patterns in [allow, deny] {
            hasher.update(&(patterns.len() as u64).to_le_bytes());
            for pattern in patterns {
                hasher.update(&(pattern.len() as u64).to_le_bytes());
                hasher.update(pattern.as_bytes());
            }
        }
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    Fingerprint(u64::from_le_bytes(bytes))
}

fn failed(reason: String) -> ReadOutcome {
    ReadOutcome::Failed(SourceError::BadAnswer { what: "indexing".into(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(allow: &[&str], deny: &[&str]) -> MimePolicy {
        let owned = |patterns: &[&str]| patterns.iter().map(|p| (*p).to_owned()).collect();
        MimePolicy { allow: owned(allow), deny: owned(deny) }
    }

    #[test]
    fn both_policies_hold() {
        let policies = [
            (policy(&[], &["application/zip"]), "sync"),
            (policy(&["text/*"], &["text/CSV"]), "servers"),
        ];
        let rows = [
            ("text/plain", None),
            ("text/csv", Some("text/csv isn't indexed by the config (servers)")),
            ("application/pdf", Some("application/pdf isn't indexed by the config (servers)")),
            ("application/zip", Some("application/zip isn't indexed by the config (sync)")),
        ];
        for (essence, expected) in rows {
            assert_eq!(refusal(&policies, essence).as_deref(), expected);
        }
    }

    #[test]
    fn a_star_is_any_type() {
        let rows = [
            ("*/*", "text/plain", true),
            ("text/*", "text/plain", true),
            ("text/*", "image/png", false),
        ];
        for (pattern, essence, expected) in rows {
            assert_eq!(policy(&[pattern], &[]).allows(essence), expected, "{pattern} {essence}");
            assert_eq!(policy(&[], &[pattern]).allows(essence), !expected, "{pattern} {essence}");
        }
    }

    #[test]
    fn other_policies_are_another_fingerprint() {
        let base = Fingerprint(7);
        let of = |global: MimePolicy, own: MimePolicy| {
            fingerprint_with(base, &[(global, "sync"), (own, "servers")])
        };
        assert_eq!(of(policy(&[], &[]), policy(&[], &[])), base);
        let some = [
            of(policy(&["text/*"], &[]), policy(&[], &[])),
            of(policy(&[], &["text/*"]), policy(&[], &[])),
            of(policy(&[], &[]), policy(&["text/*"], &[])),
        ];
        assert!(
            some[0] != some[1] && some[1] != some[2] && some[0] != some[2] && !some.contains(&base)
        );
    }
}
