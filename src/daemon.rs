//! The one place where everything is wired, supervised, reloaded and shut down.
//!
//! In order: the config, the state folder's lock, the index, the socket (searches are answered from here
//! on), what another version left of the index, the servers. At the end the other way around, each step within a deadline.

mod disk;
mod lock;
mod manager;
mod rebuild;
mod reload;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cli::{CliError, progress};
use crate::config::{Config, ConfigWatch};
use crate::index::tantivy::{Former, TantivyStore, fingerprint};
use crate::index::writer::{Guard, Writer};
use crate::index::{IndexError, IndexStore};
use crate::serve::socket::Socket;
use crate::serve::tcp::Tcp;
use crate::serve::{App, history, http};
use crate::sync::control::Control;
use crate::sync::{Clock, Context, Eras};
use crate::worker::Workers;
use lock::StateLock;
use reload::Servers;

/// What `resdex serve` was told; nothing more is taken from the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServeOptions {
    /// In the order of the command line; all are merged.
    pub config_files: Vec<PathBuf>,
    /// The state folder.
    pub state: PathBuf,
    pub socket: PathBuf,
    /// `--http ADDR`, instead of the config's `http.listen`.
    pub http: Option<String>,
}

/// How long the servers have to end, their children included.
const ENDING: Duration = Duration::from_secs(10);

/// Runs the daemon until it is told to stop.
///
/// # Errors
/// With the exit code: 2 a config that can't be used, 75 another daemon holds the state folder.
pub fn serve(options: ServeOptions) -> Result<(), CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(run(options));
    // What blocks by now (a read of a file that hangs) is not waited for.
    runtime.shutdown_background();
    result
}

async fn run(options: ServeOptions) -> Result<(), CliError> {
    let mut signals = Signals::new()?;
    // Before the config is read, so that a change in between isn't missed.
    let watch = ConfigWatch::start(options.config_files.clone());
    let config = load(&options)?;
    watch.follow(config.watched.clone());
    let _lock = StateLock::take(&options.state)?;
    let (store, former) = open_index(&options.state, &config)?;
    let store: Arc<dyn IndexStore> = Arc::new(store);
    let control = Arc::new(Control::default());
    let workers = Workers::new(config.limits.extract_workers);
    let mut app = App::new(store.clone(), control.clone(), Arc::new(config.clone()));
    app.workers = workers.clone();
    let app = Arc::new(app);
    let (writer, writer_thread) = Writer::guarded(store.clone(), guard(&app, &options.state))?;
    let _ = app.write_queue.set(writer.queue());
    app.keep_in(&options.state)?;
    let stop = CancellationToken::new();

    let socket = Socket::bind(&options.socket, &config.socket);
    let socket = socket.map_err(|error| CliError::failed(error.to_string()).hint(error.hint()))?;
    tracing::info!(socket = %socket.path().display(), "searches are answered");
    let router = http::router(app.clone(), stop.clone());
    let connections = config.limits.max_connections;
    let serving = tokio::spawn(socket.serve(router, connections, stop.clone()));
    let listen = options.http.as_deref().or(config.http.listen.as_deref());
    let on_tcp = match listen {
        None => None,
        Some(listen) => {
            let tcp = Tcp::bind(listen).await.map_err(|error| {
                CliError::failed(format!("{listen}: {error}"))
                    .hint("choose another address with --http, or in [http] listen")
            })?;
            tracing::info!(address = %tcp.address(), "HTTP is answered");
            app.http.store(Some(Arc::new(tcp.address())));
            Some(tokio::spawn(tcp.serve(app.clone(), connections, stop.clone())))
        }
    };

    tokio::spawn(history::keep(app.clone(), stop.clone()));
    manager::ready();
    tokio::spawn(manager::inform(app.clone(), writer.clone(), stop.clone()));
    let told_to_end = tokio::select! {
        () = signals.end.received() => true,
        () = rebuild::run(&app, former, &writer, &options.state) => false,
    };
    let gone = store.servers()?.into_iter().filter(|name| !config.servers.contains_key(name));
    reload::forget(gone.collect(), &writer, &control).await;
    let context = Arc::new(Context {
        store,
        control: control.clone(),
        clock: Clock::start().await.map_err(|error| CliError::failed(error.to_string()))?,
        eras: Eras::load(options.state.join("eras.json")),
        fingerprint: fingerprint(),
        reads: Arc::new(Semaphore::new(config.limits.reads_in_flight_total)),
        workers,
    });
    let children = TaskTracker::new();
    let mut servers = Servers::new(context, writer.clone(), children.clone());
    if !told_to_end {
        servers.start_all(&config);
    }
    let shown = progress::is_wanted().then(|| {
        let (control, socket, stop) = (control.clone(), options.socket.clone(), stop.clone());
        tokio::spawn(async move { progress::show(control, &socket, stop).await })
    });

    if !told_to_end {
        follow(&options, &app, &mut servers, watch, &mut signals).await;
    }

    tracing::info!("stopping");
    manager::stopping();
    tokio::spawn(async move {
        signals.end.received().await;
        tracing::warn!("told twice: ended at once");
        std::process::exit(1);
    });
    stop.cancel();
    if let Some(shown) = shown {
        let _ = shown.await;
    }
    let stragglers = servers.stop_all(ENDING).await;
    children.close();
    if tokio::time::timeout(ENDING, children.wait()).await.is_err() || !stragglers.is_empty() {
        tracing::warn!(servers = ?stragglers, "these servers did not end in time");
    }
    let _ = serving.await;
    if let Some(on_tcp) = on_tcp {
        let _ = on_tcp.await;
    }
    // What was handed over is committed.
    let stopped = tokio::task::spawn_blocking(move || writer_thread.stop()).await;
    stopped.map_err(|panic| CliError::failed(panic.to_string()))
}

/// Follows the config until the daemon is told to stop.
async fn follow(
    options: &ServeOptions,
    app: &App,
    servers: &mut Servers,
    mut watch: ConfigWatch,
    signals: &mut Signals,
) {
    loop {
        tokio::select! {
            () = signals.end.received() => return,
            () = watch.changed() => {}
            _ = signals.reload.recv() => tracing::info!("SIGHUP: the config is read again"),
        }
        manager::reloading();
        match load(options) {
            Ok(config) => {
                watch.follow(config.watched.clone());
                app.config_error.store(None);
                let config = Arc::new(config);
                let old = app.config.swap(config.clone());
                // A stop isn't held up by servers that are slow to end.
                tokio::select! {
                    () = signals.end.received() => return,
                    () = servers.reload(&old, &config) => {}
                }
            }
            Err(error) => {
                tracing::error!(error = %error.message, "the changed config can't be used; the old one stays in force");
                servers.tell_broken(&error.message);
                app.config_error.store(Some(Arc::new(error.message)));
            }
        }
        manager::ready();
    }
}

fn load(options: &ServeOptions) -> Result<Config, CliError> {
    let loaded = Config::load(&options.config_files, &|name| std::env::var(name).ok());
    let mut config = loaded.map_err(|errors| CliError::usage(errors.to_string()))?;
    if let Some(listen) = &options.http {
        config.check_listen(listen).map_err(CliError::usage)?;
    }
    config.disable_own_addresses(options.http.as_deref(), Some(&options.socket));
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    Ok(config)
}

/// Opens the index. One that can't be opened is set aside and made anew: it is derived, and what is
/// set aside may still be looked into. One of another schema is the second of the answer, to be taken
/// over.
fn open_index(state: &Path, config: &Config) -> Result<(TantivyStore, Option<Former>), CliError> {
    let folder = state.join("index");
    let error = match TantivyStore::open(&folder, &config.index) {
        Ok(store) => return Ok((store, rebuild::former(state))),
        Err(IndexError::OtherSchema { .. }) => {
            tracing::info!("another version made the index; a new one is made of its text");
            rebuild::set_aside(state, &folder)?;
            let store = TantivyStore::open(&folder, &config.index)?;
            return Ok((store, rebuild::former(state)));
        }
        Err(error) => error,
    };
    let aside = state.join(format!("index.unusable-{}", Utc::now().format("%Y%m%dT%H%M%S")));
    std::fs::rename(&folder, &aside).map_err(|_| CliError::from(error.clone()))?;
    tracing::error!(%error, aside = %aside.display(), "the index is made anew; the old one is set aside, and can be deleted");
    Ok((TantivyStore::open(&folder, &config.index)?, None))
}

/// Pauses the writing of the index by the limits that are in force, and shows it in `status`.
fn guard(app: &Arc<App>, state: &Path) -> Guard {
    let (asked, told, folder) = (app.clone(), app.clone(), state.to_owned());
    Guard {
        room: Box::new(move || disk::room(&folder, &asked.config.load().limits)),
        tell: Box::new(move |reason| {
            told.paused.store(reason.map(|reason| Arc::new(reason.into())))
        }),
    }
}

impl From<IndexError> for CliError {
    fn from(error: IndexError) -> Self {
        Self::failed(error.to_string())
    }
}

/// What the system tells the daemon.
struct Signals {
    end: End,
    reload: Signal,
}

/// SIGTERM, or Ctrl-C.
struct End {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        let end = End {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        };
        Ok(Self { end, reload: signal(SignalKind::hangup())? })
    }
}

impl End {
    async fn received(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
