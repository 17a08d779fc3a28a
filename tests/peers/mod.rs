//! An MCP server under a test's control, in either era, over stdio and Streamable HTTP. It speaks
//! JSON-RPC by hand, so that it can get wrong whatever a server can get wrong.
//!
//! By itself it behaves: it lists what it was given, answers reads, and pushes what it is told to. A
//! test makes it misbehave with a [hook](Peer::hook), which sees every request first.

pub mod http;
pub mod stdio;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// A server; clones are the same one.
#[derive(Clone, Default)]
pub struct Peer(Arc<Mutex<State>>);

#[derive(Default)]
pub struct State {
    /// Items of `resources/list`, in order.
    pub listed: Vec<Value>,
    /// `contents` by URI.
    pub contents: BTreeMap<String, Value>,
    /// `capabilities.resources`; push of both kinds when null.
    pub resources_capability: Value,
    /// Every message that came in, requests and notifications.
    pub log: Vec<Value>,
    /// The status with which HTTP's GET is answered instead of an event stream.
    pub get_status: Option<u16>,
    /// GETs so far.
    pub gets: usize,
    /// Bytes of endless bodies that were taken by the client.
    pub endless_bytes: usize,
    /// The present legacy session over HTTP; counts up.
    pub session: u64,
    session_dropped: bool,
    hook: Option<Hook>,
    outlets: Vec<Outlet>,
}

type Hook = Arc<dyn Fn(&Request<'_>) -> Option<Reply> + Send + Sync>;

/// A request as a hook sees it.
pub struct Request<'a> {
    pub method: &'a str,
    /// `params.uri`, or empty.
    pub uri: &'a str,
    /// `params.cursor`.
    pub cursor: Option<&'a str>,
    pub id: &'a Value,
}

/// What is sent in answer to a request.
pub enum Reply {
    Result(Value),
    /// A JSON-RPC error.
    Error(i32, &'static str),
    /// No answer, ever.
    Silence,
    /// These bytes as they are: a line (its end included), or a body.
    Bytes(Vec<u8>),
    /// A body of so many bytes that begins like an answer; HTTP only.
    Endless {
        status: u16,
        bytes: usize,
    },
    /// The connection is closed; stdio only.
    Close,
}

/// Where pushes go: a stdio connection, or an event stream.
struct Outlet {
    sender: mpsc::UnboundedSender<Bytes>,
    events: bool,
    /// The modern era's subscription.
    subscription: Option<Value>,
}

pub const NOT_FOUND: Reply = Reply::Error(-32002, "Unknown resource");

impl Peer {
    /// A server of plain texts: (URI, text).
    pub fn of<'a>(texts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let peer = Self::default();
        for (uri, text) in texts {
            peer.put(uri, text);
        }
        peer
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Adds a resource, or changes its text.
    pub fn put(&self, uri: &str, text: &str) {
        let mut state = self.state();
        if !state.contents.contains_key(uri) {
            state.listed.push(json!({"uri": uri, "name": uri, "mimeType": "text/plain"}));
        }
        let text = served(uri, text);
        let contents = json!([{"uri": uri, "mimeType": "text/plain", "text": text}]);
        state.contents.insert(uri.into(), contents);
    }

    /// Takes a resource away.
    pub fn remove(&self, uri: &str) {
        let mut state = self.state();
        state.listed.retain(|item| item["uri"] != uri);
        state.contents.remove(uri);
    }

    /// Shows every request to `hook` first; what it answers is sent instead of the usual.
    pub fn hook(&self, hook: impl Fn(&Request<'_>) -> Option<Reply> + Send + Sync + 'static) {
        self.state().hook = Some(Arc::new(hook));
    }

    pub fn unhook(&self) {
        self.state().hook = None;
    }

    /// How many messages with this method came in.
    pub fn count(&self, method: &str) -> usize {
        self.state().log.iter().filter(|message| message["method"] == method).count()
    }

    /// How often a URI was read.
    pub fn reads(&self, uri: &str) -> usize {
        let read = |message: &&Value| {
            message["method"] == "resources/read" && message["params"]["uri"] == uri
        };
        self.state().log.iter().filter(read).count()
    }

    pub fn list_changed(&self) {
        self.push("notifications/resources/list_changed", json!({}));
    }

    pub fn updated(&self, uri: &str) {
        self.push("notifications/resources/updated", json!({"uri": uri}));
    }

    /// Sends a notification wherever somebody listens.
    fn push(&self, method: &str, params: Value) {
        self.state().outlets.retain(|outlet| {
            let mut params = params.clone();
            if let Some(id) = &outlet.subscription {
                params["_meta"] = json!({SUBSCRIPTION_ID: id});
            }
            let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
            outlet.sender.send(outlet.dressed(&message)).is_ok()
        });
    }

    /// Sends bytes as they are to whoever is connected over stdio.
    pub fn raw(&self, bytes: &[u8]) {
        let bytes = Bytes::copy_from_slice(bytes);
        self.state().outlets.retain(|outlet| outlet.sender.send(bytes.clone()).is_ok());
    }

    /// How many are connected over stdio, or listen to an event stream.
    pub fn listeners(&self) -> usize {
        self.state().outlets.retain(|outlet| !outlet.sender.is_closed());
        self.state().outlets.len()
    }

    /// Closes every event stream, and every connection over stdio.
    pub fn hang_up(&self) {
        self.state().outlets.clear();
    }

    /// Forgets the legacy session over HTTP, as a server does that was restarted.
    pub fn drop_session(&self) {
        let mut state = self.state();
        state.session_dropped = true;
        state.outlets.clear();
    }

    /// Takes a message and says what to send back, if it is a request.
    fn take(&self, message: &Value) -> Option<Reply> {
        let mut state = self.state();
        state.log.push(message.clone());
        let id = message.get("id")?;
        let params = &message["params"];
        let request = Request {
            method: message["method"].as_str().unwrap_or_default(),
            uri: params["uri"].as_str().unwrap_or_default(),
            cursor: params["cursor"].as_str(),
            id,
        };
        // Not under the lock, so that it may look at the state itself.
        let hook = state.hook.clone();
        drop(state);
        let reply = hook.and_then(|hook| hook(&request));
        Some(reply.unwrap_or_else(|| self.state().answer(&request, message)))
    }

    fn connect(&self, events: bool, subscription: Option<Value>) -> mpsc::UnboundedReceiver<Bytes> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let outlet = Outlet { sender, events, subscription };
        self.state().outlets.push(outlet);
        receiver
    }
}

const MODERN: &str = "2026-07-28";
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

impl State {
    /// What a server that behaves would say.
    fn answer(&self, request: &Request<'_>, message: &Value) -> Reply {
        let capability = match &self.resources_capability {
            Value::Null => json!({"subscribe": true, "listChanged": true}),
            other => other.clone(),
        };
        let capabilities = json!({"resources": capability});
        let me = json!({"name": "peer", "version": "1"});
        Reply::Result(match request.method {
            "initialize" => json!({
                "protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": me,
            }),
            "server/discover" => json!({
                "resultType": "complete", "supportedVersions": [MODERN], "capabilities": capabilities,
                "ttlMs": 0, "cacheScope": "private",
                "_meta": {"io.modelcontextprotocol/serverInfo": me},
            }),
            "resources/list" => self.complete(message, json!({"resources": self.listed})),
            "resources/templates/list" => self.complete(message, json!({"resourceTemplates": []})),
            "resources/read" => match self.contents.get(request.uri) {
                Some(contents) => self.complete(message, json!({"contents": contents})),
                None => return NOT_FOUND,
            },
            "resources/subscribe" | "resources/unsubscribe" => json!({}),
            _ => return Reply::Error(-32601, "Method not found"),
        })
    }

    /// In the modern era a result says that it is one, and how long it is fresh.
    fn complete(&self, message: &Value, mut result: Value) -> Value {
        if message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == MODERN {
            result["resultType"] = "complete".into();
            result["ttlMs"] = 0.into();
            result["cacheScope"] = "private".into();
        }
        result
    }
}

impl Outlet {
    fn dressed(&self, message: &Value) -> Bytes {
        match self.events {
            true => format!("data: {message}\n\n").into(),
            false => format!("{message}\n").into(),
        }
    }
}

/// A reply as a JSON-RPC message; none for those that aren't one.
fn message(id: &Value, reply: &Reply) -> Option<Value> {
    match reply {
        Reply::Result(result) => Some(json!({"jsonrpc": "2.0", "id": id, "result": result})),
        Reply::Error(code, text) => {
            let error = json!({"code": code, "message": text});
            Some(json!({"jsonrpc": "2.0", "id": id, "error": error}))
        }
        _ => None,
    }
}

/// The first message on the modern era's stream: what of it is honoured, which is all.
fn acknowledgment(listen: &Value) -> Value {
    let params = json!({
        "notifications": listen["params"]["notifications"],
        "_meta": {SUBSCRIPTION_ID: listen["id"]},
    });
    let method = "notifications/subscriptions/acknowledged";
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// What a read of a resource gives: its text, and its name, since resources of one text share a hit.
pub fn served(uri: &str, text: &str) -> String {
    format!("{text}\n\nThis is {uri}.\n")
}
