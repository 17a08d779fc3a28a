//! What systemd is told, and the units that come along.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Signal, kill_process};

use crate::daemon::{self, Stopped};
use crate::folder;

fn listen(path: &Path) -> UnixDatagram {
    let socket = UnixDatagram::bind(path).unwrap();
    // Generous, as everywhere: nothing waits this long unless it is broken.
    socket.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    socket
}

/// The lines of the messages that come until one begins or ends like this.
fn until(socket: &UnixDatagram, wanted: &str) -> Vec<String> {
    let mut seen = vec![];
    loop {
        let mut buffer = [0; 4096];
        let length = socket.recv(&mut buffer);
        let length = length.unwrap_or_else(|error| panic!("{error}: no {wanted} after {seen:?}"));
        let message = String::from_utf8(buffer[..length].to_vec()).unwrap();
        let lines: Vec<&str> = message.lines().collect();
        let is_it = lines.iter().any(|line| line.starts_with(wanted) || line.ends_with(wanted));
        seen.extend(lines.into_iter().map(str::to_owned));
        if is_it {
            return seen;
        }
    }
}

#[test]
fn the_service_manager_knows_how_it_is() {
    let root = tempfile::tempdir().unwrap();
    let notify = root.path().join("notify");
    let socket = listen(&notify);
    let limits = "[limits]\nmin_free_disk_percent = 0\nmin_free_disk_bytes = ";
    let first = folder(root.path(), "first", &["feldspar"]);
    let config = format!("{limits}0\n{first}");
    let stopped = Stopped::new(&config);
    let mut daemon = stopped
        .start_with(&[("NOTIFY_SOCKET", notify.to_str().unwrap()), ("WATCHDOG_USEC", "600000")]);

    until(&socket, "READY=1");
    assert!(daemon.ask(&["status"]).is_some(), "ready is said when it answers");
    until(&socket, "STATUS=1 of 1 servers live, 1 resources indexed");
    for _ in 0..3 {
        until(&socket, "WATCHDOG=1");
    }

    // A reload is begun and ended, with a broken config too, which the status then says.
    daemon.configure("[servers.first]\nfiles = \"/nowhere");
    let seen = until(&socket, "RELOADING=1");
    assert!(seen.iter().any(|line| line.starts_with("MONOTONIC_USEC=")), "{seen:?}");
    until(&socket, "READY=1");
    until(&socket, "; the changed config can't be used");
    daemon.configure(&config);
    until(&socket, "RELOADING=1");
    until(&socket, "READY=1");

    // Without room it may not write, and is alive all the same.
    daemon.configure(&format!("{limits}\"1000TiB\"\n{first}"));
    until(&socket, "RELOADING=1");
    until(&socket, "READY=1");
    fs::write(root.path().join("first/gneiss.md"), "The gneiss is here.\n").unwrap();
    until(&socket, "; nothing is written to the index");
    for _ in 0..3 {
        until(&socket, "WATCHDOG=1");
    }

    kill_process(daemon.pid(), Signal::TERM).unwrap();
    until(&socket, "STOPPING=1");
    assert_eq!(daemon.ended(), Some(0));
}

/// A writer that is stuck is no longer said to be alive, whatever else still answers.
#[test]
fn a_writer_that_hangs_is_not_said_to_be_alive() {
    let root = tempfile::tempdir().unwrap();
    let notify = root.path().join("notify");
    let socket = listen(&notify);
    let daemon = Stopped::new(&folder(root.path(), "first", &["feldspar"])).start_with(&[
        ("NOTIFY_SOCKET", notify.to_str().unwrap()),
        ("WATCHDOG_USEC", "600000"),
        ("RESDEX_FAIL_POINT", "writer.applied:1:hang"),
    ]);
    let log = daemon.folder().join("log");
    daemon.wait_until("it notices", |_| {
        fs::read_to_string(&log).ok()?.contains("the index's writer").then_some(())
    });
    assert!(daemon.ask(&["status"]).is_some(), "all else answers");
    // Nothing comes any more, once what was on its way has come.
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut last = String::new();
    for _ in 0..1_000 {
        let mut buffer = [0; 4096];
        let Ok(length) = socket.recv(&mut buffer) else { break };
        last = String::from_utf8_lossy(&buffer[..length]).into_owned();
    }
    let silent = socket.recv(&mut [0; 4096]).is_err();
    assert!(silent, "still told: {last}");
    daemon.kill();
}

#[test]
fn systemd_accepts_the_units() {
    let runs = Command::new("systemd-analyze").arg("--version").output();
    if !runs.is_ok_and(|output| output.status.success()) {
        assert!(
            std::env::var_os("RESDEX_SYSTEMD").is_none(),
            "systemd-analyze is required here and missing"
        );
        eprintln!("skipped: there is no systemd-analyze");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let packaging = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/systemd");
    for manager in ["system", "user"] {
        let unit = fs::read_to_string(packaging.join(manager).join("resdex.service")).unwrap();
        // It checks that the program is there.
        let unit = unit.replace("/usr/local/bin/resdex", env!("CARGO_BIN_EXE_resdex"));
        fs::create_dir(root.path().join(manager)).unwrap();
        let file = root.path().join(manager).join("resdex.service");
        fs::write(&file, unit).unwrap();
        let analyze = |arguments: &[&str]| {
            let mut command = Command::new("systemd-analyze");
            command.env("XDG_RUNTIME_DIR", root.path()).args(arguments).arg(&file);
            let output = command.output().unwrap();
            let said = [output.stdout, output.stderr].concat();
            (output.status.success(), String::from_utf8_lossy(&said).into_owned())
        };
        let (accepted, said) = analyze(&[&format!("--{manager}"), "verify", "--man=no"]);
        // What it ignores it says, and accepts.
        assert!(accepted && said.trim().is_empty(), "{manager}: {said}");
        if manager == "system" {
            let (safe, said) =
                analyze(&["security", "--offline=true", "--no-pager", "--threshold=25"]);
            assert!(safe, "{said}");
        }
    }
    // What the units start is a command line that the program takes.
    let words = ["serve", "--config", "x", "--state", "x", "--socket", "x", "--help"];
    assert!(daemon::resdex(root.path()).args(words).output().unwrap().status.success());
}
