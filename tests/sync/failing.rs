//! A store whose n-th write fails, for every n of a sync of thirty resources.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::bench::Bench;
use crate::peers::{Peer, stdio};
use resdex::index::tantivy::TantivyStore;
use resdex::index::{
    Change, Entry, IndexError, IndexStats, IndexStore, ResourcesPage, ResourcesRequest,
    StoreAnswer, StoreRequest,
};
use resdex::model::{Manifest, ResourceKey, ServerName};

/// Fails once, at the write whose turn it is.
struct Failing {
    store: TantivyStore,
    /// Writes until the one that fails.
    left: AtomicUsize,
}

impl Failing {
    fn write(&self) -> Result<(), IndexError> {
        let next = self.left.load(SeqCst).checked_sub(1);
        if let Some(next) = next {
            self.left.store(next, SeqCst);
        }
        match next {
            Some(0) => Err(IndexError::Write { reason: "no space left on device".into() }),
            _ => Ok(()),
        }
    }
}

impl IndexStore for Failing {
    /// Change by change, so that a batch can fail in the middle.
    fn apply(&self, changes: Vec<Change>) -> Result<(), IndexError> {
        for change in changes {
            self.write()?;
            self.store.apply(vec![change])?;
        }
        Ok(())
    }

    fn commit(&self) -> Result<(), IndexError> {
        self.write()?;
        self.store.commit()
    }

    fn persist(&self) -> Result<(), IndexError> {
        self.store.persist()
    }

    fn rollback(&self) -> Result<(), IndexError> {
        self.store.rollback()
    }

    fn manifests(&self, server: &ServerName) -> Result<Vec<Manifest>, IndexError> {
        self.store.manifests(server)
    }

    fn servers(&self) -> Result<Vec<ServerName>, IndexError> {
        self.store.servers()
    }

    fn entry(&self, key: &ResourceKey) -> Result<Option<Entry>, IndexError> {
        self.store.entry(key)
    }

    fn keys_of_uri(&self, uri: &str) -> Result<Vec<ResourceKey>, IndexError> {
        self.store.keys_of_uri(uri)
    }

    fn resources(&self, request: &ResourcesRequest) -> Result<ResourcesPage, IndexError> {
        self.store.resources(request)
    }

    fn search(&self, request: &StoreRequest) -> Result<StoreAnswer, IndexError> {
        self.store.search(request)
    }

    fn stats(&self) -> Result<IndexStats, IndexError> {
        self.store.stats()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whichever_write_fails_the_index_ends_right() {
    const COUNT: usize = 30;
    let texts: Vec<(String, String)> =
        (0..COUNT).map(|at| (format!("a://{at:02}"), format!("tuff number{at}"))).collect();
    // Thirty replacements and a commit, a removal, another replacement and a commit.
    for fails_at in 1..=COUNT + 4 {
        let peer = Peer::of(texts.iter().map(|(uri, text)| (uri.as_str(), text.as_str())));
        let served = stdio::Served::new(peer.clone());
        let store =
            Failing { store: TantivyStore::in_memory().unwrap(), left: AtomicUsize::new(fails_at) };
        let store = Arc::new(store);
        let mut bench =
            Bench::on(store.clone(), "", served.config("s", "protocol = \"legacy\"")).await;
        bench
            .until("all is found", |bench| (bench.hits("tuff").len() == COUNT).then_some(()))
            .await;
        // A removal and a change, which the later failures meet.
        peer.remove("a://00");
        peer.put("a://01", "changed chert");
        bench.sync("s").await;
        bench
            .until("it has settled", |bench| {
                let status = bench.status("s");
                let settled = status.indexed == COUNT as u64 - 1 && status.last_error.is_none();
                (settled && bench.uris("chert") == ["a://01"]).then_some(())
            })
            .await;
        assert_eq!(store.left.load(SeqCst), 0, "write {fails_at} was never made");
        bench.stop("s").await;
        bench.writer.flush().await.unwrap();
        assert_eq!(bench.resources("s").len(), COUNT - 1, "write {fails_at} failed");
        assert_eq!(bench.hits("tuff").len(), COUNT - 2, "write {fails_at} failed");
        let chunks = store.stats().unwrap().chunks;
        assert_eq!(chunks, COUNT as u64 - 1, "write {fails_at} failed: orphans");
    }
}
