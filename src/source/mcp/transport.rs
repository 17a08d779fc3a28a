//! How bytes get to a server and back: over a pipe (a child's stdio, or a folder of our own), or over
//! Streamable HTTP. Both put the framing layer between the wire and rmcp.

pub mod child;
pub mod http;
pub mod lines;
pub mod pipe;

use rmcp::model::{CustomResult, RequestId, ServerJsonRpcMessage, ServerResult};
use serde_json::Value;

use super::framing::RAW;

/// A sorted message as rmcp takes it. A raw result is put into rmcp's type by hand: reading it as any
/// kind of message and of result, one after the other, copies what was read at each try.
fn decode(mut message: Value) -> Option<ServerJsonRpcMessage> {
    let result = message.get("result");
    if result.is_none_or(|result| result.get(RAW).is_none()) {
        return serde_json::from_value(message).ok();
    }
    let id: RequestId = serde_json::from_value(message.get_mut("id")?.take()).ok()?;
    let result = CustomResult(message.get_mut("result")?.take());
    Some(ServerJsonRpcMessage::response(ServerResult::CustomResult(result), id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::mcp::framing::{self, Frame};

    #[test]
    fn a_message_is_the_one_that_rmcp_reads() {
        let lines = [
            r#"{"jsonrpc":"2.0","id":7,"result":{"contents":[{"uri":"a:b","text":"x"}]}}"#,
            r#"{"jsonrpc":"2.0","id":"seven","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7.0,"result":[]}"#,
            r#"{"jsonrpc":"2.0","id":7.5,"result":{"resources":[]}}"#,
            r#"{"jsonrpc":"2.0","id":99999999999999999999,"result":{"resources":[]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"none"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"n","version":"1"}}}"#,
        ];
        for line in lines {
            for frame in framing::sort(line.as_bytes(), 128) {
                let Frame::Message(message) = frame else { panic!("{line}") };
                let read: Option<ServerJsonRpcMessage> =
                    serde_json::from_value(message.clone()).ok();
                let shown = [decode(message), read].map(|message| format!("{message:?}"));
                assert_eq!(shown[0], shown[1], "{line}");
            }
        }
    }
}
