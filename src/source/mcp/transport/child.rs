//! A server that is a child process: its environment, its process group, its last words, its end.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::source::mcp::hints::Hints;

/// What a child gets of the daemon's environment without being asked; and `LC_*`.
const INHERITED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "TZ",
    "TMPDIR",
    "TERM",
    "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_DATA_HOME",
    "XDG_DATA_DIRS",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
];

/// How long the rest of stderr is waited for.
const LAST_WORDS_WAIT: Duration = Duration::from_millis(200);

/// How much of stderr is remembered.
const LAST_WORDS: usize = 4 << 10;

/// How long a child has after its stdin closed, and again after SIGTERM.
#[derive(Clone, Copy, Debug)]
pub struct Grace(pub Duration);

impl Default for Grace {
    fn default() -> Self {
        Self(Duration::from_secs(3))
    }
}

/// What is to be run.
pub struct ChildCommand<'a> {
    pub command: &'a str,
    pub args: Vec<&'a str>,
    /// The whole environment, see [`environment`].
    pub env: BTreeMap<OsString, OsString>,
    pub cwd: &'a Path,
}

/// The environment of a child: the short list, what the config passes on, and what it sets.
pub fn environment(
    daemon: impl Iterator<Item = (OsString, OsString)>,
    passed_on: &[String],
    set: impl Iterator<Item = (String, String)>,
) -> BTreeMap<OsString, OsString> {
    let inherited = daemon.filter(|(name, _)| {
        name.to_str().is_some_and(|name| {
            INHERITED.contains(&name)
                || name.starts_with("LC_")
                || passed_on.iter().any(|p| p == name)
        })
    });
    inherited.chain(set.map(|(name, value)| (name.into(), value.into()))).collect()
}

/// A running child. Its task ends when the child has ended and has been reaped.
pub struct Running {
    pub stdout: ChildStdout,
    pub stdin: ChildStdin,
    /// Ends with the child; tells why, for people.
    pub ended: JoinHandle<()>,
}

/// Starts a child in a process group of its own.
///
/// When `closed` is cancelled the child is ended: its stdin is closed by whoever holds it, and what
/// of the group is left after `grace` gets SIGTERM, after another SIGKILL. `hints` learn of the end, and
/// `tasks` count the child until it has been reaped.
///
/// # Errors
/// The system's, when the program can't be started.
pub fn start(
    command: &ChildCommand<'_>,
    grace: Grace,
    hints: Arc<Hints>,
    closed: CancellationToken,
    tasks: &TaskTracker,
) -> std::io::Result<Running> {
    let mut builder = Command::new(command.command);
    builder
        .args(&command.args)
        .env_clear()
        .envs(&command.env)
        .current_dir(command.cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    #[cfg(target_os = "linux")]
    #[expect(
        unsafe_code,
        reason = "the closure runs between fork and exec and makes one system call"
    )]
    // SAFETY: prctl is async-signal-safe, and nothing is allocated.
    unsafe {
        // A daemon that is killed takes its children along.
        builder
            .pre_exec(|| Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?));
    }
    let mut child = builder.spawn()?;
    let missing = || std::io::Error::other("the child has no pipes");
    let (stdin, stdout, stderr) = (
        child.stdin.take().ok_or_else(missing)?,
        child.stdout.take().ok_or_else(missing)?,
        child.stderr.take().ok_or_else(missing)?,
    );
    let words = Arc::new(Mutex::new(VecDeque::new()));
    let listener = tokio::spawn(listen(stderr, words.clone()));
    let ended = tasks.spawn(async move {
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let status = tokio::select! {
            status = child.wait() => status.map(Some),
            () = closed.cancelled() => end(&mut child, group, grace).await,
        };
        // Whatever the child started and left: npx and uvx do.
        signal(group, Signal::KILL);
        // The last words are in the pipe; a grandchild that escaped may hold it open.
        let _ = tokio::time::timeout(LAST_WORDS_WAIT, listener).await;
        hints.closed(obituary(status, &last_words(&words)));
        closed.cancel();
    });
    Ok(Running { stdout, stdin, ended })
}

/// Ends a child whose stdin has been closed; its status, if it ended by itself.
async fn end(
    child: &mut Child,
    group: Option<Pid>,
    grace: Grace,
) -> std::io::Result<Option<ExitStatus>> {
    if let Ok(status) = tokio::time::timeout(grace.0, child.wait()).await {
        return status.map(Some);
    }
    signal(group, Signal::TERM);
    if tokio::time::timeout(grace.0, child.wait()).await.is_err() {
        signal(group, Signal::KILL);
        child.wait().await?;
    }
    Ok(None)
}

fn signal(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // No such group: all have ended, which is what was wanted.
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

async fn listen(mut stderr: impl AsyncRead + Unpin, words: Arc<Mutex<VecDeque<u8>>>) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
        words.extend(&buffer[..read]);
        let over = words.len().saturating_sub(LAST_WORDS);
        words.drain(..over);
    }
}

/// The last lines that a child wrote to stderr, controls aside: enough for a message to a person.
fn last_words(words: &Mutex<VecDeque<u8>>) -> String {
    const LINES: usize = 5;
    const CHARS: usize = 600;
    let bytes: Vec<u8> =
        words.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let shown = lines[lines.len().saturating_sub(LINES)..].join(" ⏎ ");
    let shown: Vec<char> = shown.chars().filter(|c| !c.is_control()).collect();
    match shown.len().checked_sub(CHARS) {
        None | Some(0) => shown.into_iter().collect(),
        Some(over) => std::iter::once('…').chain(shown.into_iter().skip(over)).collect(),
    }
}

fn obituary(status: std::io::Result<Option<ExitStatus>>, words: &str) -> String {
    let how = match status {
        Ok(None) => "had to be stopped".to_owned(),
        Ok(Some(status)) => match status.code() {
            Some(code) => format!("exited with status {code}"),
            None => format!("was ended by {status}"),
        },
        Err(error) => format!("ended ({error})"),
    };
    match words {
        "" => format!("the server {how}"),
        words => format!("the server {how}; its last words on stderr: {words}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> ChildCommand<'_> {
        let env = environment(std::env::vars_os(), &[], std::iter::empty());
        ChildCommand { command: "sh", args: vec!["-c", script], env, cwd: Path::new("/") }
    }

    #[test]
    fn a_child_gets_the_list_and_what_the_config_says() {
        let daemon = [
            ("PATH", "/bin"),
            ("AWS_SECRET", "x"),
            ("HTTPS_PROXY", "p"),
            ("LC_ALL", "C"),
            ("HOME", "/h"),
        ];
        let daemon = daemon.map(|(name, value)| (name.into(), value.into())).into_iter();
        let set = [("TOKEN".to_owned(), "t".to_owned()), ("HOME".to_owned(), "/other".to_owned())];
        let env = environment(daemon, &["HTTPS_PROXY".into()], set.into_iter());
        let shown: Vec<String> =
            env.iter().map(|(n, v)| format!("{}={}", n.display(), v.display())).collect();
        assert_eq!(shown, ["HOME=/other", "HTTPS_PROXY=p", "LC_ALL=C", "PATH=/bin", "TOKEN=t"]);
    }

    #[tokio::test]
    async fn an_early_end_has_its_status_and_its_last_words() {
        let hints = Arc::new(Hints::default());
        let closed = CancellationToken::new();
        let child = start(
            &sh("echo its last words >&2; exit 3"),
            Grace::default(),
            hints.clone(),
            closed.clone(),
            &TaskTracker::new(),
        );
        let _child = child.unwrap();
        closed.cancelled().await;
        let reason = hints.take().await.closed.unwrap();
        assert_eq!(
            reason,
            "the server exited with status 3; its last words on stderr: its last words"
        );
    }

    #[tokio::test]
    async fn the_stubborn_are_killed_with_their_children() {
        let hints = Arc::new(Hints::default());
        let closed = CancellationToken::new();
        // The child and its own child ignore SIGTERM and the end of stdin; both are named on stdout.
        let script = "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo $! ; while :; do sleep 1; done";
        let mut child = start(
            &sh(script),
            Grace(Duration::from_millis(50)),
            hints.clone(),
            closed.clone(),
            &TaskTracker::new(),
        )
        .unwrap();
        let mut line = vec![];
        while !line.ends_with(b"\n") {
            line.push(child.stdout.read_u8().await.unwrap());
        }
        let grandchild: i32 = String::from_utf8(line).unwrap().trim().parse().unwrap();
        closed.cancel();
        child.ended.await.unwrap();
        let grandchild = Pid::from_raw(grandchild).unwrap();
        // The grandchild's reaping is init's; until then it is a zombie, which is dead enough.
        let path = format!("/proc/{}/stat", grandchild.as_raw_nonzero());
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while let Ok(stat) = std::fs::read_to_string(&path)
            && !stat.contains(") Z ")
        {
            assert!(std::time::Instant::now() < deadline, "the grandchild lives");
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn much_on_stderr_is_drained_and_forgotten() {
        let lines = "i=0; while [ $i -lt 2000 ]; do echo 0123456789012345678901234567890123456789 >&2; i=$((i+1)); done; echo end >&2";
        let one_line = "head -c 20000 /dev/zero | tr '\\0' E >&2; echo end >&2";
        for (script, most) in [(lines, 400), (one_line, 700)] {
            let hints = Arc::new(Hints::default());
            let closed = CancellationToken::new();
            let child = start(
                &sh(script),
                Grace::default(),
                hints.clone(),
                closed.clone(),
                &TaskTracker::new(),
            );
            let _child = child.unwrap();
            closed.cancelled().await;
            let reason = hints.take().await.closed.unwrap();
            assert!(reason.ends_with("end") && reason.len() < most, "{reason}");
        }
    }
}
