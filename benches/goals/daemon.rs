//! The daemon as a child, its memory and wake-ups, and a connection to it that stays open.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use resdex::client::Client;
use resdex::model::ServerState;
use resdex::serve::api::SyncRequest;
use tokio::net::UnixStream;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_resdex");

pub struct Daemon {
    child: Child,
    pub started: Instant,
    pub socket: PathBuf,
    pub client: Client,
    /// The most anonymous memory that was seen; bytes.
    pub peak: u64,
}

impl Daemon {
    /// With its config, state and socket in one folder.
    pub fn start(folder: &Path) -> Self {
        let socket = folder.join("sock");
        let mut command = Command::new(PROGRAM);
        command.arg("serve").arg("--config").arg(folder.join("resdex.toml"));
        command.arg("--state").arg(folder.join("state")).arg("--socket").arg(&socket);
        command.env("RESDEX_LOG", "error").stdin(Stdio::null());
        let started = Instant::now();
        let child = command.spawn().unwrap();
        Self { child, started, client: Client::new(socket.clone()), socket, peak: 0 }
    }

    /// Waits until everything is listed, read and on disk; answers how long after the start that was.
    pub async fn live(&mut self, resources: u64) -> Duration {
        loop {
            self.peak = self.peak.max(self.anonymous());
            if let Ok(status) = self.client.status().await
                && !status.servers.is_empty()
                && status.servers.iter().all(|server| server.state == ServerState::Live)
            {
                let took = self.started.elapsed();
                assert!(status.index.resources >= resources, "not all are in the index");
                return took;
            }
            assert!(self.started.elapsed() < Duration::from_secs(3_600), "it never gets live");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Reconciles one server; answers how long that takes.
    pub async fn sync(&self, server: &str) -> Duration {
        let last = || async {
            let status = self.client.status().await.unwrap();
            let server = status.servers.into_iter().find(|found| found.name == server).unwrap();
            (server.last_sync, server.state)
        };
        let (before, _) = last().await;
        let started = Instant::now();
        let request = SyncRequest { servers: Some(vec![server.into()]), confirm: false };
        self.client.sync(&request).await.unwrap();
        loop {
            let (after, state) = last().await;
            if after != before && state == ServerState::Live {
                return started.elapsed();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Anonymous memory now; bytes.
    pub fn anonymous(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        1024 * number_after(&status.unwrap_or_default(), "RssAnon:")
    }

    /// How often each of its threads has slept so far, and how much processor time all took.
    pub fn wakes(&self) -> (BTreeMap<OsString, u64>, Duration) {
        let process = format!("/proc/{}", self.child.id());
        let tasks = fs::read_dir(format!("{process}/task")).unwrap().flatten();
        let wakes = tasks.filter_map(|task| {
            let status = fs::read_to_string(task.path().join("status")).ok()?;
            Some((task.file_name(), number_after(&status, "\nvoluntary_ctxt_switches:")))
        });
        let stat = fs::read_to_string(format!("{process}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: u64 = fields[11..13].iter().filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        let took = Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second());
        (wakes.collect(), took)
    }

    /// Ends it and waits for its end.
    pub fn stop(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // After `stop` there is nothing left to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn number_after(text: &str, name: &str) -> u64 {
    let rest = text.split_once(name).map_or("", |(_, rest)| rest);
    rest.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// A connection that is kept.
pub struct Kept(SendRequest<Full<bytes::Bytes>>);

impl Kept {
    pub async fn open(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).await.unwrap();
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    /// Searches; answers the body.
    pub async fn search(&mut self, body: &serde_json::Value) -> bytes::Bytes {
        self.0.ready().await.unwrap();
        let request = Request::post("/v1/search")
            .header(header::HOST, "localhost")
            .body(Full::new(body.to_string().into()))
            .unwrap();
        let response = self.0.send_request(request).await.unwrap();
        assert!(response.status().is_success());
        response.into_body().collect().await.unwrap().to_bytes()
    }
}
