//! A store in a map: membership and manifests only; what is found contains the words.

use std::collections::BTreeMap;
use std::sync::Mutex;

use chrono::{DateTime, Utc};

use crate::index::{
    Change, Entry, IndexError, IndexStats, IndexStore, Match, ResourceRow, ResourcesPage,
    ResourcesRequest, StoreAnswer, StoreHit, StorePassage, StoreRequest,
};
use crate::model::{
    Chunk, ContentHash, Fingerprint, Manifest, Outcome, Resource, ResourceKey, ServerName,
};

#[derive(Default)]
pub struct FakeStore {
    entries: Mutex<BTreeMap<ResourceKey, Entry>>,
}

pub fn time() -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000, 0).unwrap()
}

pub fn key(server: &str, uri: &str) -> ResourceKey {
    ResourceKey { server: ServerName::new(server).unwrap(), uri: uri.into() }
}

/// An entry with one chunk for each paragraph.
pub fn entry(server: &str, uri: &str, title: &str, text: &str) -> Entry {
    let mut chunks = vec![];
    let (mut at, mut line) = (0, 1);
    for paragraph in text.split_inclusive("\n\n") {
        let lines = u32::try_from(paragraph.matches('\n').count()).unwrap();
        chunks.push(Chunk {
            part: 0,
            heading_path: vec![title.to_owned()],
            lines: (line, line + lines),
            bytes: at..at + u32::try_from(paragraph.len()).unwrap(),
            page: None,
            text: paragraph.to_owned(),
            lead: None,
            noise: vec![],
        });
        at += u32::try_from(paragraph.len()).unwrap();
        line += lines;
    }
    Entry {
        server: ServerName::new(server).unwrap(),
        resource: Resource {
            name: title.to_owned(),
            title: Some(title.to_owned()),
            mime_type: Some("text/markdown".into()),
            size: Some(text.len() as u64),
            ..Resource::new(uri)
        },
        document_title: None,
        mime_type: Some("text/markdown".into()),
        content_hash: ContentHash([7; 16]),
        fingerprint: Fingerprint(1),
        outcome: Outcome::Indexed,
        chunks,
        indexed_at: time(),
    }
}

pub fn skipped(server: &str, uri: &str, reason: &str) -> Entry {
    let outcome = Outcome::Skipped(reason.into());
    Entry {
        outcome,
        mime_type: Some("image/png".into()),
        chunks: vec![],
        ..entry(server, uri, "A picture", "")
    }
}

impl FakeStore {
    pub fn of(entries: impl IntoIterator<Item = Entry>) -> Self {
        let entries = entries.into_iter().map(|entry| (entry.key(), entry)).collect();
        Self { entries: Mutex::new(entries) }
    }
}

impl IndexStore for FakeStore {
    fn apply(&self, changes: Vec<Change>) -> Result<(), IndexError> {
        let mut entries = self.entries.lock().unwrap();
        for change in changes {
            match change {
                Change::Replace(entry) => drop(entries.insert(entry.key(), *entry)),
                Change::Remove(key) => drop(entries.remove(&key)),
                Change::RemoveServer(server) => entries.retain(|key, _| key.server != server),
            }
        }
        Ok(())
    }

    fn commit(&self) -> Result<(), IndexError> {
        Ok(())
    }

    fn persist(&self) -> Result<(), IndexError> {
        Ok(())
    }

    fn rollback(&self) -> Result<(), IndexError> {
        Ok(())
    }

    fn manifests(&self, _: &ServerName) -> Result<Vec<Manifest>, IndexError> {
        Ok(vec![])
    }

    fn servers(&self) -> Result<Vec<ServerName>, IndexError> {
        let mut servers: Vec<_> =
            self.entries.lock().unwrap().keys().map(|key| key.server.clone()).collect();
        servers.dedup();
        Ok(servers)
    }

    fn entry(&self, key: &ResourceKey) -> Result<Option<Entry>, IndexError> {
        Ok(self.entries.lock().unwrap().get(key).cloned())
    }

    fn keys_of_uri(&self, uri: &str) -> Result<Vec<ResourceKey>, IndexError> {
        let entries = self.entries.lock().unwrap();
        Ok(entries.keys().filter(|key| &*key.uri == uri).cloned().collect())
    }

    fn resources(&self, request: &ResourcesRequest) -> Result<ResourcesPage, IndexError> {
        let entries = self.entries.lock().unwrap();
        let mut rows = entries
            .values()
            .filter(|entry| request.after.as_ref().is_none_or(|after| entry.key() > *after))
            .filter(|e| {
                request.filter.allows(e.server.as_str(), &e.resource.uri, e.mime_type.as_deref())
            })
            .filter(|entry| !request.skipped_only || entry.outcome != Outcome::Indexed)
            .filter(|e| request.is_about(e.server.as_str(), &e.resource.uri))
            .map(|entry| ResourceRow {
                key: entry.key(),
                title: entry.resource.label().into(),
                mime_type: entry.mime_type.clone(),
                size: entry.resource.size,
                resource: entry.resource.clone(),
                outcome: entry.outcome.clone(),
                indexed_at: entry.indexed_at,
            });
        let resources = rows.by_ref().take(request.limit).collect();
        Ok(ResourcesPage { resources, more: rows.next().is_some() })
    }

    fn search(&self, request: &StoreRequest) -> Result<StoreAnswer, IndexError> {
        let entries = self.entries.lock().unwrap();
        let mut hits = entries
            .values()
            .filter(|e| {
                request.filter.allows(e.server.as_str(), &e.resource.uri, e.mime_type.as_deref())
            })
            .filter_map(|entry| {
                let passages: Vec<_> = (0..)
                    .zip(&entry.chunks)
                    .filter_map(|(ordinal, chunk)| {
                        let from = chunk.text.find(&request.query.text)?;
                        let to = from + request.query.text.len();
                        let matches = vec![Match { bytes: from..to, word: 0, weight: 1.0 }];
                        Some(StorePassage {
                            ordinal,
                            score: 2.5,
                            chunk: chunk.clone(),
                            matches,
                            instead: None,
                        })
                    })
                    .take(request.passages)
                    .collect();
                (!passages.is_empty()).then(|| StoreHit {
                    key: entry.key(),
                    title: entry.resource.label().into(),
                    mime_type: entry.mime_type.clone(),
                    content_hash: entry.content_hash,
                    last_modified: None,
                    indexed_at: entry.indexed_at,
                    outcome: entry.outcome.clone(),
                    audience: entry.resource.audience,
                    description: None,
                    score: 2.5,
                    relevance: 0.75,
                    passages,
                    duplicates: vec![],
                    explanation: None,
                })
            })
            .skip(request.offset);
        let answer = hits.by_ref().take(request.limit).collect();
        Ok(StoreAnswer { hits: answer, more: hits.next().is_some() })
    }

    fn stats(&self) -> Result<IndexStats, IndexError> {
        let entries = self.entries.lock().unwrap();
        Ok(IndexStats {
            resources: entries.len() as u64,
            chunks: entries.values().map(|entry| entry.chunks.len() as u64).sum(),
            bytes: 4096,
            last_commit: Some(time()),
        })
    }
}
