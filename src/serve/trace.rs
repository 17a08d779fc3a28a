//! The trace: who searched, read and was given what. A ring of two files in the state folder, one line
//! of JSON for each search, context and read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use chrono::Utc;

use super::App;
use super::api::{TraceEntry, TraceQuery, TraceResource, TraceResponse, TraceVerb};
use super::error::ApiError;
use super::scope::Caller;

/// When the newer file is this large it becomes the older one.
const MAX_FILE_BYTES: u64 = 8 << 20;
const MAX_ENTRIES: usize = 1_000;
const ENTRIES: usize = 50;
/// Resources that one entry names.
const MAX_RESOURCES: usize = 100;

/// Where entries go; nowhere until a state folder is known.
#[derive(Debug, Default)]
pub struct Trace {
    ring: Mutex<Option<Ring>>,
}

#[derive(Debug)]
struct Ring {
    newer: PathBuf,
    older: PathBuf,
    file: File,
    bytes: u64,
    key: [u8; 32],
    /// Whether it was said that it can't be written.
    complained: bool,
}

impl Trace {
    /// Keeps the trace in a folder from now on.
    ///
    /// # Errors
    /// The folder's files can't be had.
    pub fn keep_in(&self, state: &Path) -> io::Result<()> {
        let ring = Ring::open(state, state_key(state)?)?;
        *self.lock() = Some(ring);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Ring>> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, entry: &TraceEntry) {
        if let Some(ring) = self.lock().as_mut() {
            let added = ring.add(entry, MAX_FILE_BYTES);
            match added {
                Ok(()) => ring.complained = false,
                Err(error) if !ring.complained => {
                    ring.complained = true;
                    tracing::error!(%error, "the trace can't be written");
                }
                Err(_) => {}
            }
        }
    }

    fn hash(&self, query: &str) -> Option<String> {
        let key = self.lock().as_ref()?.key;
        Some(blake3::keyed_hash(&key, query.as_bytes()).to_hex()[..16].to_owned())
    }

    /// The newest entries first, as far as `wanted` says so.
    fn entries(
        &self,
        limit: usize,
        wanted: impl Fn(&TraceEntry) -> bool,
    ) -> io::Result<Vec<TraceEntry>> {
        // Read outside of the lock: a search must not wait for this.
        let files = match self.lock().as_ref() {
            Some(ring) => [ring.newer.clone(), ring.older.clone()],
            None => return Ok(vec![]),
        };
        let mut entries = vec![];
        for file in files {
            let text = match fs::read(&file) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            for line in text.rsplit(|byte| *byte == b'\n') {
                // A line that a crash cut short says nothing.
                let Ok(entry) = serde_json::from_slice(line) else { continue };
                if wanted(&entry) {
                    entries.push(entry);
                    if entries.len() == limit {
                        return Ok(entries);
                    }
                }
            }
        }
        Ok(entries)
    }
}

impl Ring {
    fn open(state: &Path, key: [u8; 32]) -> io::Result<Self> {
        let (newer, older) = (state.join("trace.jsonl"), state.join("trace.1.jsonl"));
        let (file, bytes) = open_end(&newer)?;
        Ok(Self { newer, older, file, bytes, key, complained: false })
    }

    fn add(&mut self, entry: &TraceEntry, most: u64) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        if self.bytes > 0 && self.bytes + line.len() as u64 > most {
            fs::rename(&self.newer, &self.older)?;
            (self.file, self.bytes) = open_end(&self.newer)?;
        }
        self.file.write_all(&line)?;
        self.bytes += line.len() as u64;
        Ok(())
    }
}

/// Opens a file to append to, for nobody but us; a line that was cut short is ended first.
fn open_end(path: &Path) -> io::Result<(File, u64)> {
    let mut file =
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    let bytes = file.metadata()?.len();
    if bytes > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok((file, bytes))
}

/// A secret of this state folder's, so that hashes of short queries can't be guessed from outside.
fn state_key(state: &Path) -> io::Result<[u8; 32]> {
    let path = state.join("trace.key");
    if let Ok(bytes) = fs::read(&path)
        && let Ok(key) = <[u8; 32]>::try_from(bytes)
    {
        return Ok(key);
    }
    let mut key = [0; 32];
    rustix::rand::getrandom(&mut key[..], rustix::rand::GetRandomFlags::empty())?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(&path)?.write_all(&key)?;
    Ok(key)
}

/// A verb that is being carried out, to be told of at its end.
pub(super) struct Doing<'a> {
    app: &'a App,
    started: Instant,
    entry: TraceEntry,
}

impl App {
    pub(super) fn doing(
        &self,
        verb: TraceVerb,
        caller: &Caller,
        scope: Option<&str>,
        query: Option<&str>,
    ) -> Doing<'_> {
        let shown = self.config.load().trace.queries;
        let entry = TraceEntry {
            time: Utc::now(),
            verb,
            client: caller.client.clone(),
            scope: caller.bound.clone().or_else(|| scope.map(str::to_owned)),
            query: query.filter(|_| shown).map(str::to_owned),
            query_hash: query.filter(|_| !shown).and_then(|query| self.trace.hash(query)),
            resources: vec![],
            tokens: 0,
            took_ms: 0.0,
            outcome: "ok".into(),
        };
        Doing { app: self, started: Instant::now(), entry }
    }

    /// What was searched and read lately, as far as the caller may know of it.
    ///
    /// # Errors
    /// An unknown server or scope, or files that can't be read.
    pub fn traced(&self, caller: &Caller, query: &TraceQuery) -> Result<TraceResponse, ApiError> {
        let limit = query.limit.unwrap_or(ENTRIES);
        if !(1..=MAX_ENTRIES).contains(&limit) {
            let message = format!("limit: 1 to {MAX_ENTRIES}, not {limit}");
            return Err(ApiError::bad_request(message));
        }
        let view = self.view(caller, query.scope.as_deref())?;
        if let Some(server) = &query.server {
            self.server_named(&view, server)?;
        }
        let is_it = |resource: &TraceResource| {
            query.server.as_ref().is_none_or(|server| *server == resource.server)
                && query.uri.as_ref().is_none_or(|uri| *uri == resource.uri)
        };
        let any = query.server.is_none() && query.uri.is_none();
        let wanted = |entry: &TraceEntry| {
            (view.scope.is_none() || entry.scope == view.scope)
                && (any || entry.resources.iter().any(is_it))
        };
        let entries = self.trace.entries(limit, wanted);
        let mut entries =
            entries.map_err(|error| ApiError::internal(format!("the trace: {error}")))?;
        if view.bound {
            // The scope may have been narrowed since.
            for entry in &mut entries {
                entry.resources.retain(|resource| {
                    view.filter.allows_server(&resource.server)
                        && view.filter.allows_uri(&resource.uri)
                });
            }
        }
        Ok(TraceResponse { entries })
    }
}

impl Doing<'_> {
    pub fn found<'r>(&mut self, resources: impl IntoIterator<Item = (&'r str, &'r str)>) {
        for (server, uri) in resources {
            let resource = TraceResource { server: server.into(), uri: uri.into() };
            if self.entry.resources.len() < MAX_RESOURCES
                && !self.entry.resources.contains(&resource)
            {
                self.entry.resources.push(resource);
            }
        }
    }

    pub fn tokens(&mut self, tokens: usize) {
        self.entry.tokens = tokens;
    }

    /// Writes it down, and hands the result on.
    pub fn done<T>(mut self, result: Result<T, ApiError>) -> Result<T, ApiError> {
        if let Err(error) = &result {
            self.entry.outcome = error.code();
        }
        self.app.latency.of(self.entry.verb).observe(self.started.elapsed());
        self.entry.took_ms = (self.started.elapsed().as_secs_f64() * 100_000.0).round() / 100.0;
        if self.entry.verb != TraceVerb::Read {
            self.app.history.searched(self.entry.took_ms, Utc::now());
        }
        self.app.trace.add(&self.entry);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::fake::time;

    fn entry(n: usize) -> TraceEntry {
        let resource = TraceResource { server: "wiki".into(), uri: format!("wiki://{n}") };
        TraceEntry {
            time: time(),
            verb: TraceVerb::Read,
            client: "bot".into(),
            scope: None,
            query: None,
            query_hash: None,
            resources: vec![resource],
            tokens: n,
            took_ms: 0.5,
            outcome: "ok".into(),
        }
    }

    #[test]
    fn the_ring_is_bounded_and_outlives_the_daemon() {
        let state = tempfile::tempdir().unwrap();
        let line = serde_json::to_vec(&entry(10)).unwrap().len() as u64 + 1;
        let mut ring = Ring::open(state.path(), [1; 32]).unwrap();
        for n in 10..30 {
            ring.add(&entry(n), line * 5).unwrap();
        }
        drop(ring);
        // A crash in the middle of a line.
        let newer = state.path().join("trace.jsonl");
        let mut text = fs::read(&newer).unwrap();
        text.extend(b"{\"time\":");
        fs::write(&newer, text).unwrap();

        let trace = Trace::default();
        assert!(trace.entries(9, |_| true).unwrap().is_empty());
        trace.keep_in(state.path()).unwrap();
        trace.add(&entry(30));
        let tokens = |limit, wanted: fn(&TraceEntry) -> bool| {
            let entries = trace.entries(limit, wanted).unwrap();
            entries.into_iter().map(|entry| entry.tokens).collect::<Vec<_>>()
        };
        assert_eq!(tokens(3, |_| true), [30, 29, 28]);
        assert_eq!(tokens(100, |_| true).len(), 11, "two files of five, and one more");
        assert_eq!(tokens(2, |entry| entry.tokens % 10 == 0), [30, 20]);

        let hash = trace.hash("退款").unwrap();
        assert_ne!(trace.hash("refund").unwrap(), hash);
        let again = Trace::default();
        again.keep_in(state.path()).unwrap();
        assert_eq!(again.hash("退款").unwrap(), hash, "the same query, the same hash");
    }
}
