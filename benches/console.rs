//! The console's views over an index of 100,000 resources: how long the daemon takes until a page is on its
//! way, which is when a browser can begin to paint. None may take 200 ms.
//!
//! `cargo bench --bench console`

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench stops at a fault, and prints"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use resdex::chunk::chunk;
use resdex::config::{Config, IndexConfig, ScopeConfig};
use resdex::index::tantivy::{TantivyStore, fingerprint};
use resdex::index::{Change, Entry, IndexStore};
use resdex::model::{
    ContentHash, Document, Format, Outcome, Part, Resource, ServerName, ServerState, ServerStatus,
    SyncCounts, SyncQueue,
};
use resdex::serve::App;
use resdex::serve::http::router;
use resdex::sync::control::{Control, Shared};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

const RESOURCES: usize = 100_000;
const SERVERS: [&str; 4] = ["handbook", "wiki", "docs", "tickets"];
const TIMES: usize = 30;
const MOST: Duration = Duration::from_millis(200);

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let store = TantivyStore::open(folder.path(), &IndexConfig::default()).unwrap();
    for batch in (0..RESOURCES).collect::<Vec<_>>().chunks(10_000) {
        store.apply(batch.iter().map(|n| Change::Replace(Box::new(entry(*n)))).collect()).unwrap();
        store.commit().unwrap();
    }
    store.persist().unwrap();
    let control = Control::default();
    for name in SERVERS {
        let shared = Shared::new(status(name), tokio::sync::mpsc::channel(1).0);
        control.insert(ServerName::new(name).unwrap(), Arc::new(shared));
    }
    let mut config = Config::default();
    let scope = ScopeConfig { exclude: vec!["**/secret/**".into()], ..ScopeConfig::default() };
    config.scopes.insert("bot".into(), scope);
    let app = Arc::new(App::new(Arc::new(store), Arc::new(control), Arc::new(config)));
    let router = router(app, CancellationToken::new());

    let mut slow = vec![];
    for view in [
        "/",
        "/?q=refund",
        "/?q=refund&scope=bot",
        "/?q=%E9%80%80%E6%AC%BE",
        "/context?q=refund&scope=bot",
        "/servers",
        "/resources",
        "/resources?server=wiki",
        "/resources?server=wiki&scope=bot",
        "/resources/branch?server=wiki&prefix=wiki%3A%2F%2Fspace-3%2F",
        "/resources/branch?server=wiki&prefix=wiki%3A%2F%2Fspace-3%2Ffolder-1%2F",
        "/resources?contains=99999",
        "/resources?contains=nothing-has-this",
        "/resource?server=wiki&uri=wiki%3A%2F%2Fspace-3%2Ffolder-1%2Fpage-553.md&view=chunks",
        "/templates",
        "/scopes",
        "/trace",
        "/overview",
    ] {
        let mut times = vec![];
        for _ in 0..TIMES {
            let request =
                Request::get(view).header("host", "localhost").body(Body::empty()).unwrap();
            let started = Instant::now();
            let response = router.clone().oneshot(request).await.unwrap();
            let status = response.status();
            response.into_body().collect().await.unwrap();
            times.push(started.elapsed());
            assert_eq!(status, StatusCode::OK, "{view}");
        }
        times.sort_unstable();
        let (p50, worst) = (times[TIMES / 2], times[TIMES - 1]);
        println!("{:>9.2} ms p50 {:>9.2} ms max  {view}", ms(p50), ms(worst));
        if p50 > MOST {
            slow.push(view);
        }
    }
    assert!(slow.is_empty(), "over {MOST:?}: {slow:?}");
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn entry(number: usize) -> Entry {
    let server = SERVERS[number % SERVERS.len()];
    let (space, folder) = (number % 25, number / 500 % 40);
    let uri = format!("{server}://space-{space}/folder-{folder}/page-{number}.md");
    let text = format!(
        "# Page {number}\n\nWhat is said of refund case {number} is said here, and of 退款 as well, in words \
         that are as plain as they are many.\n"
    );
    let document = Document {
        title: Some(format!("Page {number}")),
        mime_type: "text/markdown".into(),
        parts: vec![Part { format: Format::Markdown, text, ..Part::default() }],
        ..Document::default()
    };
    let mut hash = [0; 16];
    hash[..8].copy_from_slice(&(number as u64).to_le_bytes());
    Entry {
        server: ServerName::new(server).unwrap(),
        resource: Resource {
            name: format!("page-{number}.md"),
            mime_type: Some("text/markdown".into()),
            size: Some(document.parts[0].text.len() as u64),
            ..Resource::new(uri)
        },
        document_title: document.title.clone(),
        mime_type: Some("text/markdown".into()),
        content_hash: ContentHash(hash),
        fingerprint: fingerprint(),
        outcome: Outcome::Indexed,
        chunks: chunk(&document),
        indexed_at: chrono::Utc::now(),
    }
}

fn status(name: &str) -> ServerStatus {
    ServerStatus {
        name: name.into(),
        state: ServerState::Live,
        protocol: Some("2026-07-28".into()),
        push: vec!["updated".into()],
        listed: (RESOURCES / SERVERS.len()) as u64,
        indexed: (RESOURCES / SERVERS.len()) as u64,
        skipped: 0,
        stale: 0,
        last_sync: None,
        next_sync: None,
        last_error: None,
        withheld_removals: 0,
        warnings: vec![],
        queue: SyncQueue::default(),
        counts: SyncCounts::default(),
    }
}
