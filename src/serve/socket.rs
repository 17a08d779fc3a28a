//! The Unix socket: made so that nobody else ever reaches it, and served with limits.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use axum::Router;
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

use super::listen;
use crate::config::SocketConfig;
use crate::quiet::Quiet;

/// Longest path that a socket's address holds on Linux, without its end mark.
const MAX_PATH_BYTES: usize = 107;

/// Why the socket can't be had, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error("another daemon answers at {}", path.display())]
    Taken { path: PathBuf },
    #[error("{} is in the way: {what} is not a socket, and is left alone", path.display())]
    NotASocket { path: PathBuf, what: &'static str },
    #[error("{} is {} bytes long, and a socket's path has at most {MAX_PATH_BYTES}", path.display(), path.as_os_str().len())]
    TooLong { path: PathBuf },
    #[error("{} can't hold the socket: {reason}", folder.display())]
    Folder { folder: PathBuf, reason: String },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl SocketError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Taken { .. } => "stop it first, or give this one its own --state and --socket",
            Self::NotASocket { .. } => "move it away, or choose another path with --socket",
            Self::TooLong { .. } => "choose a shorter path with --socket",
            Self::Folder { .. } => "choose a folder of your own with --socket",
            Self::Io { .. } => "choose another path with --socket",
        }
    }
}

/// A socket that listens, and is removed again when this is dropped.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// Which file is ours: another daemon may have put its own in the place since.
    identity: (u64, u64),
    allowed: Allowed,
    /// What the log has been told of those who were refused.
    quiet: Mutex<Quiet>,
}

/// Who may connect, beyond what the file's permissions let through.
#[derive(Clone, Debug)]
struct Allowed {
    uids: Vec<u32>,
    /// With a group, the socket's permissions decide, since a peer's groups can't be asked for.
    group: bool,
}

impl Allowed {
    fn allows(&self, uid: u32) -> bool {
        self.group || self.uids.contains(&uid)
    }
}

impl Socket {
    /// Listens at `path`. Must be called inside a runtime, with the state's lock held.
    ///
    /// # Errors
    /// Another daemon answers there, something that isn't a socket is in the way, or the folder
    /// isn't fit to hold it.
    pub fn bind(path: &Path, config: &SocketConfig) -> Result<Self, SocketError> {
        let failed = |source| SocketError::Io { path: path.into(), source };
        let gid = config.group.as_deref().map(group_id).transpose().map_err(failed)?;
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        prepare(folder, gid)?;
        look(path)?;

        // Made in a folder that nobody else can enter and moved from there, so that there is no
        // moment at which others could connect. (A umask would be the whole process's.)
        let nursery = folder.join(format!(".{:x}", std::process::id()));
        let made = nursery.join("s");
        if made.as_os_str().len().max(path.as_os_str().len()) > MAX_PATH_BYTES {
            return Err(SocketError::TooLong { path: path.into() });
        }
        // What a killed daemon of the same pid left behind.
        let _ = fs::remove_dir_all(&nursery);
        DirBuilder::new().mode(0o700).create(&nursery).map_err(failed)?;
        let bound = (|| {
            let listener = UnixListener::bind(&made)?;
            if let Some(gid) = gid {
                std::os::unix::fs::chown(&made, None, Some(gid))?;
            }
            fs::set_permissions(&made, Permissions::from_mode(config.mode))?;
            let metadata = fs::symlink_metadata(&made)?;
            fs::rename(&made, path)?;
            Ok((listener, (metadata.dev(), metadata.ino())))
        })();
        let _ = fs::remove_dir_all(&nursery);
        let (listener, identity) = bound.map_err(failed)?;

        let mut uids = vec![0, rustix::process::geteuid().as_raw()];
        uids.extend(&config.allow_uids);
        let allowed = Allowed { uids, group: gid.is_some() };
        let quiet = Mutex::default();
        Ok(Self { listener, path: path.into(), identity, allowed, quiet })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Serves until `shutdown`, then waits for requests in flight, but not for long.
    pub async fn serve(self, router: Router, connections: usize, shutdown: CancellationToken) {
        listen::serve(&self, router, connections, shutdown).await;
    }

    fn admit(&self, stream: &UnixStream) -> Result<(), String> {
        let peer = rustix::net::sockopt::socket_peercred(stream)
            .map_err(|error| format!("the peer's credentials can't be had: {error}"))?;
        let uid = peer.uid.as_raw();
        if self.allowed.allows(uid) {
            return Ok(());
        }
        Err(format!("the peer's uid {uid} isn't ours; socket.allow_uids lets it in"))
    }
}

impl listen::Accept for Socket {
    type Stream = UnixStream;
    /// Whoever is let in here is let in.
    type Peer = ();

    async fn accept(&self) -> io::Result<Option<(UnixStream, ())>> {
        let (stream, _) = self.listener.accept().await?;
        Ok(match self.admit(&stream) {
            Ok(()) => Some((stream, ())),
            Err(reason) => {
                let mut quiet = self.quiet.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(untold) = quiet.ask(&reason, Instant::now()) {
                    tracing::warn!(reason, untold, "a connection was refused");
                }
                None
            }
        })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == self.identity);
        if ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Makes the folder if there is none; looks at it if there is.
fn prepare(folder: &Path, gid: Option<u32>) -> Result<(), SocketError> {
    let unfit = |reason: String| SocketError::Folder { folder: folder.into(), reason };
    match fs::metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mode = if gid.is_some() { 0o750 } else { 0o700 };
            DirBuilder::new()
                .recursive(true)
                .mode(mode)
                .create(folder)
                .map_err(|error| unfit(error.to_string()))?;
            if gid.is_some() {
                std::os::unix::fs::chown(folder, None, gid)
                    .map_err(|error| unfit(error.to_string()))?;
            }
            Ok(())
        }
        Err(error) => Err(unfit(error.to_string())),
        Ok(metadata) if !metadata.is_dir() => Err(unfit("it is not a folder".into())),
        Ok(metadata) => {
            let (uid, mode) = (metadata.uid(), metadata.mode());
            let me = rustix::process::geteuid().as_raw();
            // In a sticky folder nobody but the owner can replace what is in it.
            let sticky = mode & 0o1000 != 0;
            if uid != me && uid != 0 {
                return Err(unfit(format!("it belongs to the user {uid}")));
            }
            if mode & 0o022 != 0 && !sticky {
                return Err(unfit("others can write to it".into()));
            }
            Ok(())
        }
    }
}

/// Whether the path is free: nothing is there, or a socket at which nobody answers.
fn look(path: &Path) -> Result<(), SocketError> {
    let failed = |source| SocketError::Io { path: path.into(), source };
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(failed)?,
    };
    let kind = metadata.file_type();
    if !kind.is_socket() {
        let what = match () {
            () if kind.is_symlink() => "a symbolic link",
            () if kind.is_dir() => "a folder",
            () => "a file",
        };
        return Err(SocketError::NotASocket { path: path.into(), what });
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => Err(SocketError::Taken { path: path.into() }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// A group's number by its name, from the machine's own list, or the number itself.
fn group_id(group: &str) -> io::Result<u32> {
    if let Ok(gid) = group.parse() {
        return Ok(gid);
    }
    let groups = fs::read_to_string("/etc/group")?;
    let gid = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(group)).then(|| fields.nth(1)?.parse().ok())?
    });
    gid.ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, format!("there is no group {group:?}"))
    })
}

#[cfg(test)]
mod tests;
