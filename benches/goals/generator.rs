//! An MCP server on stdio that makes its resources up, and may take its time over each read. It is this
//! program again, called as `goals generator RESOURCES MILLISECONDS`.

use std::fmt::Write as _;
use std::io::{BufRead, Write};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::corpus::scatter;

const PAGE: usize = 1_000;

pub fn run(resources: usize, delay: Duration) {
    let (sender, receiver) = mpsc::channel::<(Instant, Value)>();
    let writer = std::thread::spawn(move || {
        let mut out = std::io::stdout().lock();
        for (due, answer) in receiver {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if writeln!(out, "{answer}").and_then(|()| out.flush()).is_err() {
                return;
            }
        }
    });
    for line in std::io::stdin().lock().lines() {
        let Ok(request) = line.map_err(drop).and_then(|l| serde_json::from_str(&l).map_err(drop))
        else {
            break;
        };
        let request: Value = request;
        let Some(id) = request.get("id") else { continue };
        let is_read = request["method"] == "resources/read";
        let mut answer = json!({ "jsonrpc": "2.0", "id": id });
        match result(&request, resources) {
            Some(result) => answer["result"] = result,
            None => answer["error"] = json!({ "code": -32601, "message": "Method not found" }),
        }
        let due = Instant::now() + if is_read { delay } else { Duration::ZERO };
        if sender.send((due, answer)).is_err() {
            break;
        }
    }
    drop(sender);
    writer.join().unwrap();
}

fn result(request: &Value, resources: usize) -> Option<Value> {
    let parameters = &request["params"];
    Some(match request["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": parameters["protocolVersion"],
            "capabilities": { "resources": { "listChanged": true } },
            "serverInfo": { "name": "generator", "version": "1" },
        }),
        "ping" => json!({}),
        "resources/templates/list" => json!({ "resourceTemplates": [] }),
        "resources/list" => {
            let cursor = parameters["cursor"].as_str().and_then(|cursor| cursor.parse().ok());
            let start: usize = cursor.unwrap_or_default();
            let end = (start + PAGE).min(resources);
            let listed: Vec<Value> = (start..end)
                .map(|n| json!({ "uri": uri(n), "name": format!("page {n}"), "mimeType": "text/plain" }))
                .collect();
            let mut page = json!({ "resources": listed });
            if end < resources {
                page["nextCursor"] = json!(end.to_string());
            }
            page
        }
        "resources/read" => {
            let uri = parameters["uri"].as_str()?;
            let number = uri.rsplit('/').next()?.parse().ok()?;
            json!({ "contents": [{ "uri": uri, "mimeType": "text/plain", "text": text(number) }] })
        }
        _ => return None,
    })
}

fn uri(number: usize) -> String {
    format!("gen://pages/{number}")
}

/// About 600 bytes of made-up words, of which low ranks are frequent.
fn text(number: usize) -> String {
    let mut text = format!("Page {number}.");
    for at in 0..90 {
        let seed = scatter((number * 97 + at) as u64);
        write!(text, " w{}", (seed % 300) * (seed / 300 % 300)).unwrap();
    }
    text
}
