//! The peer as a child process: the test's own executable, started again, passes its stdin and stdout
//! on to a socket of the test, where the peer answers. What the test harness prints before is noise on
//! stdout, which a client has to bear.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixListener;
use tokio::sync::mpsc;

use super::{Peer, Reply, acknowledgment, message};

/// Where the child finds the test.
const SOCKET: &str = "RESDEX_TEST_PEER";

/// A peer that can be started as a child.
pub struct Served {
    folder: TempDir,
}

impl Served {
    /// Waits for children of this peer to be started. Within a tokio runtime.
    pub fn new(peer: Peer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("peer")).unwrap();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(serve(peer.clone(), connection));
            }
        });
        Self { folder }
    }

    /// The table of a server in a config.
    pub fn config(&self, name: &str, more: &str) -> String {
        config(name, &self.folder.path().join("peer"), more)
    }
}

fn config(name: &str, socket: &Path, more: &str) -> String {
    let program = std::env::current_exe().unwrap();
    // Through a shell: an entry that starts the very program that reads it is taken for a mistake.
    format!(
        "[servers.{name}]\ncommand = \"sh\"\n\
         args = ['-c', 'exec \"$PEER\" --exact {CHILD} --nocapture']\n\
         env = {{ PEER = {program:?}, {SOCKET} = {socket:?} }}\n{more}\n"
    )
}

/// The path of the test that is the child, which every test program with peers has.
const CHILD: &str = "child";

/// What the test named `child` does: nothing, when it isn't one.
pub fn be_a_child() {
    let Some(socket) = std::env::var_os(SOCKET).map(PathBuf::from) else { return };
    let mut to_test = UnixStream::connect(socket).unwrap();
    let mut from_test = to_test.try_clone().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 64 << 10];
        while let Ok(read @ 1..) = std::io::stdin().read(&mut buffer) {
            if to_test.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        // The end of stdin is a server's sign to end.
        std::process::exit(0);
    });
    let mut buffer = [0; 64 << 10];
    while let Ok(read @ 1..) = from_test.read(&mut buffer) {
        let mut stdout = std::io::stdout().lock();
        if stdout.write_all(&buffer[..read]).and_then(|()| stdout.flush()).is_err() {
            break;
        }
    }
    std::process::exit(0);
}

async fn serve(peer: Peer, connection: tokio::net::UnixStream) {
    let (reader, mut writer) = connection.into_split();
    let mut pushed = peer.connect(false, None);
    let (answers, mut answered) = mpsc::unbounded_channel::<Vec<u8>>();
    let writing = tokio::spawn(async move {
        loop {
            let bytes = tokio::select! {
                bytes = answered.recv() => bytes,
                bytes = pushed.recv() => bytes.map(Vec::from),
            };
            let Some(bytes) = bytes else { return };
            if writer.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(request) = serde_json::from_str::<Value>(&line) else { continue };
        if request["method"] == "subscriptions/listen" {
            peer.take(&request);
            let _ = answers.send(line_of(&acknowledgment(&request)));
            continue;
        }
        let Some(reply) = peer.take(&request) else { continue };
        let sent = match (message(&request["id"], &reply), reply) {
            (Some(message), _) => answers.send(line_of(&message)),
            (None, Reply::Bytes(bytes)) => answers.send(bytes),
            (None, Reply::Close) => break,
            (None, _) => Ok(()),
        };
        if sent.is_err() {
            break;
        }
    }
    writing.abort();
}

fn line_of(message: &Value) -> Vec<u8> {
    format!("{message}\n").into_bytes()
}
