//! The sync, the writer and an index in memory, wired as the daemon wires them, with the waits of a
//! test instead of a day's.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use resdex::config::Config;
use resdex::index::IndexStore;
use resdex::index::tantivy::{TantivyStore, fingerprint};
use resdex::index::writer::{Writer, WriterHandle};
use resdex::model::{ServerName, ServerState, ServerStatus, SyncCause};
use resdex::serve::App;
use resdex::serve::api::{Hit, ResourceItem, ResourcesQuery, SearchRequest};
use resdex::serve::scope::Caller;
use resdex::source::mcp::{ConnectOptions, Grace};
use resdex::sync::control::Control;
use resdex::sync::{Clock, Context, Eras, Running, start};
use resdex::worker::Workers;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

/// Generous: the machine may be busy. Nothing waits this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(120);

/// Far away, so that only what a test does leads to a listing.
const NEVER: &str = "[sync]\nschedule = \"0 0 0 1 1 *\"\n";

const QUICK: &str = "[limits]\nrelist_interval = \"50ms\"\nreread_interval = \"50ms\"\n\
    recheck_interval = \"50ms\"\n\
    removal_confirmation = \"100ms\"\nretry_delay = \"20ms\"\nmax_retry_delay = \"2s\"\n";

pub struct Bench {
    pub app: Arc<App>,
    pub control: Arc<Control>,
    pub config: Config,
    pub context: Arc<Context>,
    pub writer: WriterHandle,
    pub children: TaskTracker,
    pub running: BTreeMap<String, Running>,
    _thread: Writer,
}

impl Bench {
    /// Starts the servers of a config. A `[limits]` of its own stands in the way of the quick ones,
    /// so a test that wants some says them with [`Bench::with_limits`].
    pub async fn start(servers: impl AsRef<str>) -> Self {
        Self::with_limits("", servers).await
    }

    pub async fn with_limits(limits: &str, servers: impl AsRef<str>) -> Self {
        Self::on(Arc::new(TantivyStore::in_memory().unwrap()), limits, servers).await
    }

    /// With more keys of `[sync]`.
    pub async fn with_sync(sync: &str, servers: impl AsRef<str>) -> Self {
        let store = Arc::new(TantivyStore::in_memory().unwrap());
        Self::of(store, &format!("{NEVER}{sync}"), "", servers).await
    }

    pub async fn on(store: Arc<dyn IndexStore>, limits: &str, servers: impl AsRef<str>) -> Self {
        Self::of(store, NEVER, limits, servers).await
    }

    async fn of(
        store: Arc<dyn IndexStore>,
        sync: &str,
        limits: &str,
        servers: impl AsRef<str>,
    ) -> Self {
        let quick: String = QUICK
            .lines()
            // A limit that is said again replaces the quick one.
            .filter(|line| {
                let key = line.split('=').next().unwrap_or_default().trim();
                !limits.lines().any(|own| own.split('=').next().unwrap_or_default().trim() == key)
            })
            .map(|line| format!("{line}\n"))
            .collect();
        let text = format!("{sync}{quick}{limits}\n{}", servers.as_ref());
        let config =
            Config::from_texts(&[(PathBuf::from("/tmp/resdex.toml"), text)], &|_| None).unwrap();
        let (writer, thread) = Writer::start(store.clone()).unwrap();
        let control = Arc::new(Control::default());
        let context = Arc::new(Context {
            store: store.clone(),
            control: control.clone(),
            clock: Clock::start().await.unwrap(),
            eras: Eras::default(),
            fingerprint: fingerprint(),
            reads: Arc::new(Semaphore::new(config.limits.reads_in_flight_total)),
            workers: Workers::of(env!("CARGO_BIN_EXE_resdex"), 2),
        });
        let app = Arc::new(App::new(store, control.clone(), Arc::new(config.clone())));
        let children = TaskTracker::new();
        let mut bench = Self {
            app,
            control,
            config,
            context,
            writer,
            children,
            running: BTreeMap::new(),
            _thread: thread,
        };
        let names: Vec<ServerName> = bench.config.servers.keys().cloned().collect();
        for name in names {
            let options = ConnectOptions {
                limits: bench.config.limits.clone(),
                grace: Grace(Duration::from_millis(200)),
                remembered: None,
                children: bench.children.clone(),
            };
            let server = bench.config.servers[&name].clone();
            let (context, writer) = (bench.context.clone(), bench.writer.clone());
            let running =
                start(server, &bench.config, context, writer, options, SyncCause::Startup);
            let running = running.unwrap_or_else(|| panic!("{:?}", bench.status(name.as_str())));
            bench.running.insert(name.to_string(), running);
        }
        bench
    }

    pub fn status(&self, name: &str) -> ServerStatus {
        let mut statuses = self.control.statuses().into_iter();
        statuses.find(|status| status.name == name).expect("the server is known")
    }

    /// Looks again and again until there is something; says what was missed when there never is.
    pub async fn until<T>(&self, what: &str, mut look: impl FnMut(&Self) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        let mut ticks = tokio::time::interval(Duration::from_millis(10));
        loop {
            ticks.tick().await;
            if let Some(seen) = look(self) {
                return seen;
            }
            let statuses = || format!("{:#?}", self.control.statuses());
            assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}\n{}", statuses());
        }
    }

    /// Waits until a server is `live`.
    pub async fn live(&self, name: &str) -> ServerStatus {
        self.until(&format!("{name} is live"), |bench| {
            Some(bench.status(name)).filter(|status| status.state == ServerState::Live)
        })
        .await
    }

    /// Waits until a server's error says something.
    pub async fn error(&self, name: &str, words: &str) -> ServerStatus {
        self.until(&format!("{name}'s error says {words:?}"), |bench| {
            let status = bench.status(name);
            let error = status.last_error.as_ref()?;
            error.message.contains(words).then_some(status)
        })
        .await
    }

    /// A whole reconciliation that begins now, waited for.
    pub async fn sync(&self, name: &str) -> ServerStatus {
        let before = self.status(name).last_sync;
        let server = ServerName::new(name).unwrap();
        self.control.request_sync(&[server], false);
        self.until(&format!("{name} is reconciled"), |bench| {
            Some(bench.status(name)).filter(|status| status.last_sync > before)
        })
        .await
    }

    /// The hits for a query, best first.
    pub fn hits(&self, query: &str) -> Vec<Hit> {
        let request = serde_json::json!({"query": query, "limit": 100});
        let request: SearchRequest = serde_json::from_value(request).unwrap();
        self.app.search(&Caller::owner("test"), &request, "test").unwrap().hits
    }

    /// The URIs of the hits, in their own order.
    pub fn uris(&self, query: &str) -> Vec<String> {
        let mut uris: Vec<String> = self.hits(query).into_iter().map(|hit| hit.uri).collect();
        uris.sort_unstable();
        uris
    }

    /// Waits until a query finds exactly these.
    pub async fn finds(&self, query: &str, uris: &[&str]) {
        self.until(&format!("{query:?} finds {uris:?}"), |bench| {
            (bench.uris(query) == uris).then_some(())
        })
        .await;
    }

    /// What the index holds of a server.
    pub fn resources(&self, name: &str) -> Vec<ResourceItem> {
        let query = ResourcesQuery { server: Some(name.into()), ..ResourcesQuery::default() };
        self.app.resources(&Caller::owner("test"), &query).unwrap().resources
    }

    /// Stops a server and waits until nothing is left of it.
    pub async fn stop(&mut self, name: &str) {
        let running = self.running.remove(name).unwrap();
        running.stop();
        running.stopped().await;
    }
}
