//! One daemon for a state folder: a lock that the system gives back however the daemon ends.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::cli::CliError;

/// How long a lock is tried for before another daemon is taken to hold it.
const DYING: Duration = Duration::from_secs(1);

/// Holds the state folder while it lives.
pub struct StateLock {
    _file: File,
}

impl StateLock {
    /// Makes the folder if need be, takes its lock, and writes our pid into it.
    ///
    /// # Errors
    /// Code 75 with the holder's pid when another daemon has it.
    pub fn take(folder: &Path) -> Result<Self, CliError> {
        let failed = |error: std::io::Error| {
            CliError::failed(format!(
                "the state folder {} can't be used: {error}",
                folder.display()
            ))
            .hint("choose another with --state")
        };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        let file = folder.join("lock");
        let mut open = OpenOptions::new();
        let file = open.read(true).write(true).create(true).truncate(false).mode(0o600).open(file);
        let mut file = file.map_err(failed)?;
        // A daemon that was just killed holds it for as long as it takes the system to clear it away.
        let deadline = Instant::now() + DYING;
        let mut taken = flock(&file, FlockOperation::NonBlockingLockExclusive);
        while taken.is_err() && Instant::now() < deadline {
            std::thread::sleep(DYING / 20);
            taken = flock(&file, FlockOperation::NonBlockingLockExclusive);
        }
        if taken.is_err() {
            let mut pid = String::new();
            let _ = file.read_to_string(&mut pid);
            let held = format!("another daemon (pid {}) holds {}", pid.trim(), folder.display());
            return Err(CliError::held(held)
                .hint("stop it first, or give this one its own --state and --socket"));
        }
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            write!(file, "{}", std::process::id())
        };
        write(&mut file).map_err(failed)?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_daemon_is_told_who_the_first_is() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("a/b");
        let first = StateLock::take(&state).unwrap();
        let Err(error) = StateLock::take(&state) else { panic!("two hold it") };
        assert_eq!(error.code, 75);
        assert!(
            error.message.contains(&format!("(pid {})", std::process::id())),
            "{}",
            error.message
        );
        drop(first);
        StateLock::take(&state).unwrap();
    }
}
