#![allow(dead_code, reason = "each test target uses its part")]

//! A running daemon, asked through the command line as a user would.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Generous: the machine may be busy. Nothing waits this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(120);

/// `resdex serve` with a folder of its own for config, state, socket and log.
pub struct Daemon {
    folder: TempDir,
    child: Child,
}

impl Daemon {
    /// Starts one with this configuration and waits until it answers.
    pub fn start(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("resdex.toml"), config).unwrap();
        let child = spawn(folder.path());
        Self { folder, child }.answering()
    }

    /// Its folder: `resdex.toml`, `state`, `sock` and `log` are in there.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its process.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Puts a configuration in the place of the present one, in one step, as editors do.
    pub fn configure(&self, config: &str) {
        let new = self.folder().join("resdex.toml.new");
        fs::write(&new, config).unwrap();
        fs::rename(new, self.folder().join("resdex.toml")).unwrap();
    }

    /// Waits until it has ended by itself; answers its exit code.
    pub fn ended(&mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "it never ends\n{}", self.report());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether it has ended by itself.
    pub fn is_dead(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Ends it as a system does, with everything on disk.
    pub fn stop(mut self) -> Stopped {
        kill_process(self.pid(), Signal::TERM).unwrap();
        assert_eq!(self.ended(), Some(0));
        self.kill()
    }

    /// Kills it as `kill -9` does; what it had on disk stays.
    pub fn kill(mut self) -> Stopped {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        Stopped { folder }
    }

    fn answering(self) -> Self {
        self.wait_until("the daemon answers", |daemon| daemon.ask(&["status"]));
        self
    }

    /// The hits for a query, best first.
    pub fn search(&self, query: &str) -> Vec<Hit> {
        let answer = self.ask(&["search", "-n", "20", "--", query]).expect("search answers");
        let hits = answer["hits"].as_array().expect("an answer has hits");
        hits.iter().map(Hit::new).collect()
    }

    /// One server of `status`; right after a start it may not be there yet.
    pub fn server(&self, name: &str) -> Value {
        self.wait_until(&format!("{name} is known"), |daemon| {
            let status = daemon.ask(&["status"])?;
            let mut servers = status["servers"].as_array()?.iter();
            servers.find(|server| server["name"] == name).cloned()
        })
    }

    /// Waits until a server is `live`; answers its status.
    pub fn live(&self, name: &str) -> Value {
        self.wait_until(&format!("{name} is live"), |daemon| {
            Some(daemon.server(name)).filter(|server| server["state"] == "live")
        })
    }

    /// Waits until the best hit for a query is this URI; answers the hit.
    pub fn found(&self, query: &str, uri: &str) -> Hit {
        self.wait_until(&format!("{query:?} finds {uri}"), |daemon| {
            daemon.search(query).into_iter().next().filter(|hit| hit.uri == uri)
        })
    }

    /// Runs a command with `--json`; nothing when it doesn't exit with 0.
    pub fn ask(&self, arguments: &[&str]) -> Option<Value> {
        let (command, rest) = arguments.split_first().expect("a command");
        let output = resdex(self.folder.path())
            .args([command, "--json", "--socket"])
            .arg(self.folder.path().join("sock"))
            .args(rest)
            .output()
            .expect("resdex runs");
        if !output.status.success() {
            return None;
        }
        let text = String::from_utf8(output.stdout).expect("output is UTF-8");
        Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text:?}")))
    }

    /// Looks again and again until there is something; says what was missed, and the state of
    /// things, when there never is.
    pub fn wait_until<T>(&self, what: &str, mut look: impl FnMut(&Self) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(seen) = look(self) {
                return seen;
            }
            assert!(
                Instant::now() < deadline,
                "not within {PATIENCE:?}: {what}\n{}",
                self.report()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Whether its log has these words.
    pub fn logged(&self, words: &str) -> bool {
        fs::read_to_string(self.folder().join("log")).unwrap_or_default().contains(words)
    }

    fn report(&self) -> String {
        let status = self.ask(&["status"]);
        let status = status.map_or("no status".into(), |status| format!("{status:#}"));
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        format!("{status}\n{}", lines[lines.len().saturating_sub(40)..].join("\n"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // Politely, so that it ends its children too.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let deadline = Instant::now() + Duration::from_secs(15);
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A daemon that is gone, and what it left on disk.
pub struct Stopped {
    folder: TempDir,
}

impl Stopped {
    /// What it left is there.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A start that is to fail; answers the exit code and what was said.
    pub fn refuses(&self) -> (Option<i32>, String) {
        let output = serve(self.folder.path()).output().expect("resdex runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    pub fn start(self) -> Daemon {
        let child = spawn(self.folder.path());
        Daemon { folder: self.folder, child }.answering()
    }
}

impl Stopped {
    /// A daemon that has never run.
    pub fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("resdex.toml"), config).unwrap();
        Self { folder }
    }

    /// Starts it by way of another program, which takes the command line as its last arguments.
    pub fn start_in(self, wrapper: &[&str]) -> Daemon {
        let direct = serve(self.folder.path());
        let log = log(self.folder.path());
        let (program, arguments) = wrapper.split_first().expect("a program");
        let mut command = Command::new(program);
        command.args(arguments).arg(direct.get_program()).args(direct.get_args());
        for (name, value) in direct.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        Daemon { child: command.spawn().expect("it starts"), folder: self.folder }.answering()
    }

    /// Starts it with more in its environment, and doesn't wait for it: it may die soon.
    pub fn start_with(self, more: &[(&str, &str)]) -> Daemon {
        let log = log(self.folder.path());
        let mut command = serve(self.folder.path());
        command.envs(more.iter().copied()).stdout(log.try_clone().unwrap()).stderr(log);
        Daemon { child: command.spawn().expect("resdex starts"), folder: self.folder }
    }
}

/// A hit, with what the tests look at.
#[derive(Debug)]
pub struct Hit {
    pub server: String,
    pub uri: String,
    pub snippet: String,
    pub mime_type: String,
}

impl Hit {
    fn new(hit: &Value) -> Self {
        let text = |field: &str| hit[field].as_str().unwrap_or_default().to_owned();
        Self {
            server: text("server"),
            uri: text("uri"),
            snippet: text("snippet"),
            mime_type: text("mime_type"),
        }
    }
}

fn spawn(folder: &Path) -> Child {
    let log = log(folder);
    serve(folder).stdout(log.try_clone().unwrap()).stderr(log).spawn().expect("resdex starts")
}

fn log(folder: &Path) -> File {
    File::options().create(true).append(true).open(folder.join("log")).unwrap()
}

/// `resdex serve` in its folder. The machine's disk may be fuller than a daemon's should be, so the
/// limit on that is off unless a test sets it.
pub fn serve(folder: &Path) -> Command {
    let config = folder.join("resdex.toml");
    let sets_it = fs::read_to_string(&config).is_ok_and(|text| text.contains("min_free_disk"));
    let mut command = resdex(folder);
    command.args(["serve", "--config"]).arg(config);
    if !sets_it {
        let any_disk = folder.join("any-disk.toml");
        fs::write(&any_disk, "[limits]\nmin_free_disk_bytes = 0\nmin_free_disk_percent = 0\n")
            .unwrap();
        command.arg("--config").arg(any_disk);
    }
    command
        .arg("--state")
        .arg(folder.join("state"))
        .arg("--socket")
        .arg(folder.join("sock"))
        .stdin(Stdio::null());
    command
}

/// The binary, out of reach of the user's own configuration: the one that was built with the tests, or
/// that of `RESDEX_BINARY`, so that a release can be put to the same tests.
pub fn resdex(folder: &Path) -> Command {
    let binary = std::env::var_os("RESDEX_BINARY").map(PathBuf::from);
    let mut command =
        Command::new(binary.unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_resdex"))));
    command.current_dir(folder);
    for name in ["RESDEX_CONFIG", "RESDEX_STATE", "RESDEX_SOCKET", "RUST_LOG"] {
        command.env_remove(name);
    }
    command
}
