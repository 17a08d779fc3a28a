//! A client that other people wrote, with resdex as its MCP server: `resdex mcp` in front of a daemon
//! that runs, in both eras, up to a pushed update.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::daemon::{Daemon, resdex};
use crate::peers::{Kind, is_installed};

#[test]
fn the_python_sdk_lists_reads_calls_and_is_told() {
    if !is_installed(Kind::PythonMcp) {
        return;
    }
    let daemon = Daemon::start("");
    let folder = daemon.folder();
    fs::create_dir_all(folder.join("notes")).unwrap();
    fs::write(folder.join("notes/退款.md"), "# 退款\n\n退款需要十四天。\n").unwrap();
    daemon.configure("[servers.notes]\nfiles = \"notes\"\n");
    daemon.found("退款", "notes:///%E9%80%80%E6%AC%BE.md");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for era in ["legacy", "2026-07-28"] {
        let output = Command::new(root.join("target/interop/python-mcp/bin/python"))
            .arg(root.join("tests/interop/peers/python-mcp/client.py"))
            .arg(era)
            .arg(resdex(folder).get_program())
            .args(["mcp", "--no-start", "--socket"])
            .arg(folder.join("sock"))
            .current_dir(folder)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.trim() == "ok", "{era}: {said}{wrong}");
    }
}
