//! The servers of others: how each is started, and how a test changes what the small ones hold.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::installed::{environment, is_installed};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// On the Python SDK; pushes both kinds in the modern era, none in the legacy one.
    PythonMcp,
    /// On fastmcp; pushes list changes in the legacy era, nothing in the modern one.
    Fastmcp,
    /// On the TypeScript SDK; pushes both kinds in both eras.
    Typescript,
    /// `@modelcontextprotocol/server-everything`, legacy.
    Everything,
    /// `@modelcontextprotocol/server-memory`, legacy, stdio.
    Memory,
    /// `mcp-server-sqlite`, legacy, stdio; answers no listing of templates.
    Sqlite,
    /// What the protocol's conformance scenarios expect to find, on the Python SDK.
    Conformance,
}

/// How the daemon reaches a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    Stdio,
    Http,
}

/// A server and the folder with what it holds. Over stdio the daemon runs it, over HTTP we do.
pub struct Peer {
    kind: Kind,
    folder: TempDir,
    http: Option<Running>,
}

/// A note of a small server.
#[derive(Clone, Copy)]
pub struct Note {
    /// Listed when it begins with `notes://`; else the text of what a template expands to.
    pub uri: &'static str,
    pub title: &'static str,
    pub text: &'static str,
}

impl Peer {
    /// Nothing, with a printed reason, when the server isn't installed.
    pub fn new(kind: Kind, over: Over) -> Option<Self> {
        if !is_installed(kind.name(), &kind.interpreter()) {
            return None;
        }
        let mut peer = Self { kind, folder: tempfile::tempdir().unwrap(), http: None };
        peer.write(&[]);
        if over == Over::Http {
            peer.start();
        }
        Some(peer)
    }

    /// Its entry in the daemon's configuration; `more` is TOML of the same table.
    pub fn config(&self, name: &str, more: &str) -> String {
        let entry = match &self.http {
            Some(running) => format!("url = \"http://127.0.0.1:{}/mcp\"", running.port),
            None => {
                let line = self.kind.line(self.folder.path(), None);
                let (program, arguments) = line.split_first().unwrap();
                let memory = self.path("memory.jsonl");
                format!(
                    "command = {}\nargs = {}\nenv = {{ MEMORY_FILE_PATH = {} }}",
                    json!(program),
                    json!(arguments),
                    json!(memory)
                )
            }
        };
        format!("[servers.{name}]\n{entry}\n{more}\n")
    }

    /// Replaces the notes. Nothing is pushed.
    pub fn write(&self, notes: &[Note]) {
        let notes = notes.iter().map(|n| json!({ "uri": n.uri, "title": n.title, "text": n.text }));
        self.put("notes.json", &json!(notes.collect::<Vec<_>>()).to_string());
    }

    /// Replaces a file in the server's folder, whole at once.
    pub fn put(&self, name: &str, text: &str) {
        let draft = self.path("draft");
        fs::write(&draft, text).unwrap();
        fs::rename(draft, self.path(name)).unwrap();
    }

    /// Has the server push `list_changed` or `updated URI`; returns when it has sent it.
    pub fn push(&self, command: &str) {
        let mut control = UnixStream::connect(self.path("control.sock")).expect("the server runs");
        control.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        writeln!(control, "{command}").unwrap();
        let mut answer = String::new();
        BufReader::new(control).read_line(&mut answer).unwrap();
        assert_eq!(answer, "ok\n");
    }

    /// Ends a server that runs over HTTP; its port stays its own.
    pub fn stop(&mut self) {
        self.http.as_mut().expect("runs over HTTP").end();
    }

    /// Starts a server over HTTP, at the port it had before if it had one.
    pub fn start(&mut self) {
        let port = self.http.as_ref().map_or_else(free_port, |running| running.port);
        let line = self.kind.line(self.folder.path(), Some(port));
        let child = Command::new(&line[0])
            .args(&line[1..])
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.http = Some(Running { child, port });
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "{:?} doesn't listen on {port}", self.kind);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Where its notes and its control socket are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::PythonMcp | Self::Conformance => "python-mcp",
            Self::Fastmcp => "fastmcp",
            Self::Typescript => "typescript",
            Self::Everything => "everything",
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
        }
    }

    /// The interpreter in the server's environment.
    fn interpreter(self) -> PathBuf {
        match self {
            Self::PythonMcp | Self::Fastmcp | Self::Sqlite | Self::Conformance => {
                self.environment().join("bin/python")
            }
            Self::Typescript | Self::Everything | Self::Memory => "node".into(),
        }
    }

    fn environment(self) -> PathBuf {
        environment(self.name())
    }

    /// The command line, for Streamable HTTP when there is a port.
    fn line(self, folder: &Path, port: Option<u16>) -> Vec<String> {
        let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/peers");
        let text = |path: PathBuf| path.to_str().expect("paths here are UTF-8").to_owned();
        let module = |path: &str| text(self.environment().join("node_modules").join(path));
        let mut line = vec![text(self.interpreter())];
        match self {
            Self::PythonMcp | Self::Fastmcp => {
                line.push(text(peers.join(self.name()).join("server.py")));
                line.push(text(folder.into()));
                line.extend(port.map(|port| port.to_string()));
            }
            Self::Conformance => line.push(text(peers.join("python-mcp/conformance.py"))),
            Self::Typescript => {
                // The file is linked into its environment, where its modules are.
                line.extend(["--preserve-symlinks", "--preserve-symlinks-main"].map(Into::into));
                line.push(text(self.environment().join("server.mjs")));
                line.push(text(folder.into()));
                line.extend(port.map(|port| port.to_string()));
            }
            Self::Everything => {
                line.push(module("@modelcontextprotocol/server-everything/dist/index.js"));
                line.push(if port.is_some() { "streamableHttp" } else { "stdio" }.into());
            }
            Self::Memory => line.push(module("@modelcontextprotocol/server-memory/dist/index.js")),
            Self::Sqlite => {
                let start = "from mcp_server_sqlite import main; main()";
                line.extend(["-c", start, "--db-path"].map(Into::into));
                line.push(text(folder.join("insights.db")));
            }
        }
        line
    }
}

struct Running {
    child: Child,
    port: u16,
}

impl Running {
    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

pub fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}
