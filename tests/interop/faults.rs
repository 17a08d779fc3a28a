//! Servers that are broken, each in its own way, harm nobody else, and `status` says what to do.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use crate::daemon::Daemon;
use crate::peers::{Kind, Note, Over, Peer};

const NOTE: Note =
    Note { uri: "notes://well", title: "Well", text: "The well is cleaned with pumice." };

#[test]
fn four_broken_servers_beside_a_good_one() {
    let Some(peer) = Peer::new(Kind::Typescript, Over::Stdio) else { return };
    peer.write(&[NOTE]);
    let guarded = unauthorized();
    let config = [
        "[limits]\nconnect_timeout = 10\n".into(),
        peer.config("good", ""),
        "[servers.hangs]\ncommand = \"sleep\"\nargs = [\"3600\"]\n".into(),
        "[servers.crashes]\ncommand = \"sh\"\nargs = [\"-c\", \"echo cannot open the ledger >&2; exit 3\"]\n".into(),
        "[servers.unset]\ncommand = \"true\"\nenv = { TOKEN = \"${RESDEX_INTEROP_UNSET}\" }\n".into(),
        format!("[servers.guarded]\nurl = \"http://{guarded}/mcp\"\n"),
    ];
    let daemon = Daemon::start(&config.join("\n"));
    daemon.live("good");
    daemon.found("pumice", NOTE.uri);

    // (server, its states, what its error or hint says)
    let broken: [(&str, &[&str], &str); 4] = [
        ("hangs", &["connecting", "backoff", "failed"], " s"), // how long it was waited for
        ("crashes", &["backoff", "failed"], "cannot open the ledger"),
        ("unset", &["needs_config"], "RESDEX_INTEROP_UNSET"),
        ("guarded", &["needs_auth"], "headers"),
    ];
    for (name, states, words) in broken {
        daemon.wait_until(&format!("status says what is wrong with {name}"), |daemon| {
            let status = daemon.server(name);
            let error = &status["last_error"];
            let (message, hint) = (error["message"].as_str()?, error["hint"].as_str()?);
            let state = status["state"].as_str()?;
            let told = states.contains(&state) && !hint.is_empty();
            (told && (message.contains(words) || hint.contains(words))).then_some(())
        });
    }
    assert_eq!(daemon.server("good")["state"], "live");
    daemon.found("pumice", NOTE.uri);
}

/// Answers every request with 401, as an MCP server does that wants a token; its address.
fn unauthorized() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { return };
            thread::spawn(move || {
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                while !whole(&request) {
                    match connection.read(&mut buffer) {
                        Ok(n @ 1..) => request.extend_from_slice(&buffer[..n]),
                        _ => return,
                    }
                }
                let _ = connection.write_all(
                    b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\n\
                      Content-Length: 0\r\nConnection: close\r\n\r\n",
                );
            });
        }
    });
    address
}

/// Whether a request has come whole, its body included: closing before that would reset the
/// connection, and the client would see no answer.
fn whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    if head.contains("transfer-encoding: chunked") {
        return body.ends_with("0\r\n\r\n");
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
    body.len() >= length
}
