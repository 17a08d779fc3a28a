//! The framing layer under rmcp's transports: bytes from a server → what rmcp may see, and hints.
//!
//! Everything that a server can get wrong in one message is dealt with here, so that it costs that
//! message or the request it answers, never the connection:
//!
//! * byte order marks, blank lines, banners, log lines and JSON that isn't JSON-RPC are noise,
//!   counted and never answered;
//! * broken UTF-8 and lone surrogates become U+FFFD;
//! * JSON nested too deep fails the request that it answers;
//! * batches (revision 2025-03-26) are taken apart;
//! * `resources/updated` and `resources/list_changed` become [`Push`]es and go no further: rmcp would
//!   run a task for each, and ends a modern subscription at a legal sub-resource's URI;
//! * results pass as raw JSON under [`RAW`], because rmcp's untagged decoding fails a whole page for
//!   one bad item and may take one kind of result for another. Only the results that rmcp itself
//!   acts on (`initialize`, `server/discover`, the end of `subscriptions/listen`) keep their shape.

use serde_json::{Map, Value, json};

/// The key under which a raw result is handed through rmcp.
pub const RAW: &str = "resdex/raw";

/// Our own error code for an answer that couldn't be used: outside of what JSON-RPC reserves.
pub const UNUSABLE: i64 = -1_000_001;

/// A server's hint that something changed; never data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Push {
    ListChanged,
    Updated(String),
}

/// One message of a server, sorted.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// A JSON-RPC message that rmcp understands.
    Message(Value),
    Push(Push),
    /// Nothing of the protocol.
    Noise,
}

/// Sorts what stood on one line, in one event's data or in one HTTP body.
///
/// `max_depth` above serde_json's own limit of 128 has no effect.
pub fn sort(bytes: &[u8], max_depth: usize) -> Vec<Frame> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes).trim_ascii();
    match bytes.first() {
        None => return vec![],
        Some(b'{' | b'[') => {}
        Some(_) => return vec![Frame::Noise],
    }
    let text = String::from_utf8_lossy(bytes);
    if max_depth < SERDE_DEPTH && depth(&text) > max_depth {
        return vec![unusable(&text, &format!("JSON nested deeper than {max_depth}"))];
    }
    let parsed = serde_json::from_str(&text).or_else(|error| match repair_surrogates(&text) {
        Some(repaired) => serde_json::from_str(&repaired),
        None => Err(error),
    });
    match parsed {
        Ok(Value::Array(batch)) => batch.into_iter().map(sort_value).collect(),
        Ok(value) => vec![sort_value(value)],
        Err(error) if depth(&text) > SERDE_DEPTH => {
            vec![unusable(&text, &format!("JSON nested deeper than {SERDE_DEPTH} ({error})"))]
        }
        Err(error) => vec![unusable(&text, &format!("broken JSON: {error}"))],
    }
}

/// serde_json refuses deeper nesting by itself.
const SERDE_DEPTH: usize = 128;

fn sort_value(value: Value) -> Frame {
    let Value::Object(mut message) = value else { return Frame::Noise };
    let id = message.get("id").filter(|id| id.is_number() || id.is_string()).cloned();
    if let Some(method) = message.get("method").and_then(Value::as_str) {
        // Logs are JSON with a "method" at times; JSON-RPC says what it is.
        if !message.contains_key("jsonrpc") {
            return Frame::Noise;
        }
        return match (method, &id) {
            ("notifications/resources/list_changed", None) => Frame::Push(Push::ListChanged),
            ("notifications/resources/updated", None) => match message
                .get("params")
                .and_then(|params| params.get("uri"))
                .and_then(Value::as_str)
            {
                Some(uri) => Frame::Push(Push::Updated(uri.to_owned())),
                None => Frame::Noise,
            },
            _ => Frame::Message(Value::Object(message)),
        };
    }
    if let Some(error) = message.remove("error").filter(|error| !error.is_null()) {
        return Frame::Message(error_message(id, &error));
    }
    match (id, message.remove("result")) {
        (Some(id), Some(result)) => {
            Frame::Message(json!({"jsonrpc": "2.0", "id": id, "result": wrap(result)}))
        }
        _ => Frame::Noise,
    }
}

/// Wraps a result so that rmcp hands it through, but for those that rmcp acts on.
fn wrap(result: Value) -> Value {
    let acted_on = result.as_object().is_some_and(|fields| {
        fields.contains_key("protocolVersion")
            || fields.contains_key("supportedVersions")
            || is_end_of_listen(fields)
    });
    if acted_on { result } else { json!({ RAW: result }) }
}

/// The result of `subscriptions/listen` has nothing but its type and the subscription's id.
fn is_end_of_listen(fields: &Map<String, Value>) -> bool {
    fields.keys().all(|key| key == "resultType" || key == "_meta")
        && fields.get("_meta").is_some_and(|meta| {
            meta.as_object()
                .is_some_and(|meta| meta.keys().any(|key| key.ends_with("subscriptionId")))
        })
}

/// A JSON-RPC error as rmcp accepts it, from whatever the server made of one.
fn error_message(id: Option<Value>, error: &Value) -> Value {
    let code = error.get("code");
    let code = code.and_then(|c| c.as_i64().or_else(|| c.as_str()?.parse().ok())).unwrap_or(0);
    let message = match error.get("message").and_then(Value::as_str) {
        Some(message) => message.to_owned(),
        None => error.as_str().map_or_else(|| error.to_string(), str::to_owned),
    };
    let mut fields = json!({
        "code": i32::try_from(code).unwrap_or(0),
        "message": message,
    });
    if let Some(data) = error.get("data") {
        fields["data"] = data.clone();
    }
    match id {
        Some(id) => json!({"jsonrpc": "2.0", "id": id, "error": fields}),
        None => json!({"jsonrpc": "2.0", "error": fields}),
    }
}

/// What becomes of a message that can't be parsed: the failure of the request that it seems to
/// answer, or noise.
fn unusable(text: &str, reason: &str) -> Frame {
    match find_id(text) {
        Some(id) => Frame::Message(failure(id, reason)),
        None => Frame::Noise,
    }
}

/// An error of ours in the place of the answer to request `id`.
pub fn failure(id: Value, reason: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": UNUSABLE, "message": reason}})
}

/// Finds the id of a message by its looks: `"id":` with a number or a short string, near the start
/// or the end, where servers put it. A guess; the worst of a wrong one is a failed request.
pub fn find_id(text: &str) -> Option<Value> {
    const REACH: usize = 256;
    let head = &text[..text.floor_char_boundary(REACH)];
    let tail = &text[text.ceil_char_boundary(text.len().saturating_sub(REACH))..];
    // At the end it is the last one that is the message's own, at the start the first.
    id_at(head, head.find("\"id\"")).or_else(|| id_at(tail, tail.rfind("\"id\"")))
}

fn id_at(text: &str, at: Option<usize>) -> Option<Value> {
    let rest = text[at? + 4..].trim_start().strip_prefix(':')?.trim_start();
    let end = match rest.strip_prefix('"') {
        Some(string) => string.find('"')? + 2,
        None => rest.find(|c: char| !c.is_ascii_digit())?,
    };
    serde_json::from_str(&rest[..end]).ok()
}

/// The deepest nesting of a JSON text, strings aside.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Replaces `\uD800`–`\uDFFF` escapes that are not one half of a pair by `\uFFFD`; none if there is
/// none.
fn repair_surrogates(text: &str) -> Option<String> {
    let unit = |at: usize| -> Option<u16> {
        let hex = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(hex, 16).ok()
    };
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = text[at..].find('\\') {
        at += found;
        match unit(at) {
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(0xD800..=0xDFFF) => {
                out.push_str(&text[copied..at]);
                out.push_str("\\uFFFD");
                at += 6;
                copied = at;
            }
            // Any other escape: it and the (ASCII or not) character after it.
            _ => at = text.ceil_char_boundary(at + 2),
        }
        if at >= text.len() {
            break;
        }
    }
    (copied > 0).then(|| out + &text[copied..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted(line: &str) -> Vec<Frame> {
        sort(line.as_bytes(), 128)
    }

    /// One line a frame, short enough to read.
    fn shown(frames: &[Frame]) -> String {
        let lines = frames.iter().map(|frame| match frame {
            Frame::Message(value) => value.to_string(),
            Frame::Push(push) => format!("{push:?}"),
            Frame::Noise => "noise".into(),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn messages_are_sorted() {
        let deep = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}1{}}}",
            "[".repeat(200),
            "]".repeat(200)
        );
        let cases: &[(&str, &str)] = &[
            ("", ""),
            ("  \r", ""),
            ("Server v1.2 ready", "noise"),
            ("\u{1b}[32minfo\u{1b}[0m started", "noise"),
            (r#"{"level":"info","msg":"hello"}"#, "noise"),
            (r#"{"method":"GET","path":"/","id":4}"#, "noise"),
            (r#""a string""#, "noise"),
            ("[]", ""),
            (
                "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":1}}\r",
                r#"{"jsonrpc":"2.0","id":1,"result":{"resdex/raw":{"a":1}}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":"x","result":{"protocolVersion":"2025-06-18"}}"#,
                r#"{"jsonrpc":"2.0","id":"x","result":{"protocolVersion":"2025-06-18"}}"#,
            ),
            (r#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#, "ListChanged"),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a://b"}}"#,
                "Updated(\"a://b\")",
            ),
            (r#"{"jsonrpc":"2.0","method":"notifications/resources/updated"}"#, "noise"),
            (
                r#"[{"jsonrpc":"2.0","method":"notifications/resources/list_changed"},3,{"jsonrpc":"2.0","id":2,"result":{}}]"#,
                "ListChanged\nnoise\n{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"resdex/raw\":{}}}",
            ),
            (
                r#"{"jsonrpc":"2.0","id":3,"error":"went wrong"}"#,
                r#"{"jsonrpc":"2.0","id":3,"error":{"code":0,"message":"went wrong"}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":"-32600","message":"no"}}"#,
                r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":5,"result":{"t":"\ud83d\ude00 \ud83d \\ud83d"}}"#,
                "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"resdex/raw\":{\"t\":\"😀 \u{fffd} \\\\ud83d\"}}}",
            ),
            (
                r#"{"jsonrpc":"2.0","id":6,"result":{"t":"cut off"#,
                r#"{"jsonrpc":"2.0","id":6,"error":{"code":-1000001,"message":"broken JSON: EOF while parsing a string at line 1 column 46"}}"#,
            ),
            (
                &deep,
                r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1000001,"message":"JSON nested deeper than 128 (recursion limit exceeded at line 1 column 160)"}}"#,
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(&shown(&sorted(line)), expected, "{line}");
        }
    }

    #[test]
    fn broken_utf8_is_repaired_in_place() {
        let line = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"t\":\"a\xE9\xFF\xFEb\"}}";
        let [Frame::Message(message)] = &sort(line, 128)[..] else { panic!("one message") };
        assert_eq!(message["result"][RAW]["t"], "a\u{fffd}\u{fffd}\u{fffd}b");
    }

    #[test]
    fn a_smaller_depth_limit_holds() {
        let line = r#"{"result":{"a":[[[[1]]]]},"jsonrpc":"2.0","id":9}"#;
        let [Frame::Message(message)] = &sort(line.as_bytes(), 4)[..] else {
            panic!("one message")
        };
        assert_eq!(message["id"], 9);
        assert_eq!(message["error"]["message"], "JSON nested deeper than 4");
        assert!(
            matches!(&sort(line.as_bytes(), 8)[..], [Frame::Message(m)] if m.get("result").is_some())
        );
    }

    #[test]
    fn an_id_is_found_at_either_end() {
        let long = "x".repeat(5_000);
        for (text, id) in [
            (format!(r#"{{"jsonrpc":"2.0","id":12,"result":"{long}"#), Some(json!(12))),
            (
                format!(r#"{{"result":"{long} \"id\":3 ","jsonrpc":"2.0","id":"b"}}"#),
                Some(json!("b")),
            ),
            (format!(r#"{{"jsonrpc":"2.0","method":"m","params":"{long}"}}"#), None),
            ("é\"id\":".repeat(100), None),
        ] {
            assert_eq!(find_id(&text), id);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_sorted_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            sort(&bytes, 128);
            let mut json = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"".to_vec();
            json.extend(&bytes);
            sort(&json, 16);
        }

        #[test]
        fn repaired_escapes_always_parse(units in proptest::collection::vec(0xD000_u16.., 0..20)) {
            let escapes: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"{escapes}\"}}");
            prop_assert!(matches!(&sort(line.as_bytes(), 128)[..], [Frame::Message(m)] if m.get("result").is_some()));
        }
    }
}
