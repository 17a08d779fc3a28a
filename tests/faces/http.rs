//! One HTTP request and its answer, no more.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};

/// A port that nobody has.
pub fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// Posts a body to a port of this machine; answers the status and the JSON that came.
pub fn post(port: u16, route: &str, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
    ask(TcpStream::connect(("127.0.0.1", port)).unwrap(), route, headers, body)
}

fn ask(
    mut stream: impl Read + Write,
    route: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, Value) {
    // HTTP/1.0 has neither chunks nor a connection that is kept.
    let mut head = format!("POST {route} HTTP/1.0\r\nHost: localhost\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    // A stream of one event has the message in its line of data.
    let data = body.lines().find_map(|line| line.strip_prefix("data: {"));
    let json = data.map_or(body.to_owned(), |data| format!("{{{data}"));
    (status, serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error} in {answer}")))
}

/// Calls a tool through the daemon's socket, as a client of the modern era does; answers what a model
/// gets to see.
pub fn call_tool(socket: &Path, name: &str, arguments: &Value) -> String {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": name,
        "arguments": arguments,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }});
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", name),
    ];
    let stream = UnixStream::connect(socket).unwrap();
    let (_, answer) = ask(stream, "/mcp", &headers, &body.to_string());
    let content = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("{answer:#}"));
    let [content] = &content[..] else { panic!("exactly one content: {answer:#}") };
    content["text"].as_str().unwrap().to_owned()
}
