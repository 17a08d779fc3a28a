//! A file's content as the protocol has it, or why there is none.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::ErrorData;
use rmcp::model::{MetaObject, ResourceContents};

use super::folder::Folder;
use super::mime;
use super::open::{self, OpenError};
use super::scan::{self, ScanError};
use super::uri::RelPath;
use crate::model::LEFT_OUT;

/// The code is the legacy era's; rmcp gives the modern one to clients of that era.
pub fn not_found(uri: &str) -> ErrorData {
    let data = serde_json::json!({ "uri": uri });
    ErrorData::resource_not_found("there is no such file, or it isn't served", Some(data))
}

pub fn cannot_list(error: ScanError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// A file can't be said to be gone while its folder is.
pub fn missing(root: &Path, uri: &str) -> ErrorData {
    if root.is_dir() {
        not_found(uri)
    } else {
        cannot_list(ScanError::Missing(PathBuf::from(root)))
    }
}

/// The content of a file that a client asked for; of a text over the limit its first part, of a log and
/// of plain text its last lines too.
pub fn read(folder: &Folder, path: &RelPath, uri: String) -> Result<ResourceContents, ErrorData> {
    let options = &folder.options;
    let cannot = |error: OpenError| match error {
        OpenError::NotFound => missing(&folder.root, &uri),
        OpenError::TooLarge { size, limit } => too_large(&uri, size, limit),
        OpenError::Io(e) => ErrorData::internal_error(format!("{uri} can't be read: {e}"), None),
    };
    let most = options.max_text_bytes.max(options.max_blob_bytes);
    let (mime, content, size) = match open::read(&folder.root, path, most) {
        Ok(bytes) => {
            let head = bytes.get(..scan::HEAD_BYTES).unwrap_or(&bytes);
            let mime = mime::of_name(path).unwrap_or_else(|| mime::of_head(head));
            let size = bytes.len() as u64;
            (mime, as_text(mime, bytes), size)
        }
        Err(OpenError::TooLarge { size, .. }) => {
            let head = open::head(&folder.root, path, scan::HEAD_BYTES as u64).map_err(cannot)?;
            let mime = mime::of_name(path).unwrap_or_else(|| mime::of_head(&head));
            (mime, as_text(mime, head), size)
        }
        Err(error) => return Err(cannot(error)),
    };
    let limit = match &content {
        Ok(_) => options.max_text_bytes,
        Err(_) => options.max_blob_bytes,
    };
    let (content, left_out) = match content {
        content if size <= limit => (content, None),
        Ok(_) => {
            let ends = open::ends(&folder.root, path, shares(mime, limit)).map_err(cannot)?;
            let (text, left_out) = ends_of(ends).ok_or_else(|| too_large(&uri, size, limit))?;
            let said = format!("{left_out} of {size} bytes are left out (limits.max_text_bytes)");
            (Ok(text), Some(said))
        }
        Err(_) => return Err(too_large(&uri, size, limit)),
    };
    let line = match &content {
        Ok(text) => json_bytes(text),
        Err(bytes) => bytes.len().div_ceil(3) as u64 * 4,
    };
    if line > options.max_message_bytes {
        return Err(too_large(&uri, line, options.max_message_bytes));
    }
    let contents = match content {
        Ok(text) => ResourceContents::text(text, uri),
        Err(bytes) => ResourceContents::blob(STANDARD.encode(bytes), uri),
    };
    let contents = match left_out {
        None => contents,
        Some(said) => {
            contents.with_meta(MetaObject([(LEFT_OUT.into(), said.into())].into_iter().collect()))
        }
    };
    Ok(contents.with_mime_type(mime))
}

fn too_large(uri: &str, size: u64, limit: u64) -> ErrorData {
    let message = format!(
        "{uri} takes {size} bytes, and the limit is {limit}; it can be raised under [limits]"
    );
    ErrorData::internal_error(message, None)
}

/// Room for the line that says what was left out; bytes.
const GAP: u64 = 64;

/// How many bytes of a text's beginning and of its end are within the limit. The end of a log says as
/// much as its beginning; that of a document or of data says nothing without what is before it.
fn shares(mime: &str, limit: u64) -> (u64, u64) {
    let room = limit.saturating_sub(GAP);
    let last = if matches!(mime, "text/plain" | "text/x-log") { room / 4 } else { 0 };
    (room - last, last)
}

/// Both ends of a text in whole lines, with the bytes that are left out; none if it isn't UTF-8.
fn ends_of((head, tail, size): (Vec<u8>, Vec<u8>, u64)) -> Option<(String, u64)> {
    let head = match std::str::from_utf8(&head) {
        Ok(head) => head,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let head = head.rfind('\n').map_or(head, |end| &head[..=end]);
    let cut = tail.iter().position(|byte| *byte == b'\n').map_or(tail.len(), |end| end + 1);
    let tail = std::str::from_utf8(&tail[cut..]).ok()?;
    if head.is_empty() {
        return None;
    }
    let left_out = size.saturating_sub((head.len() + tail.len()) as u64);
    let end = if head.ends_with('\n') { "" } else { "\n" };
    Some((format!("{head}{end}[… {left_out} bytes are left out …]\n{tail}"), left_out))
}

/// The content as text, or as bytes where it isn't UTF-8 or its type isn't text. What is a quarter NULs
/// is UTF-16, which is valid UTF-8 by accident: its bytes let the reader find that out.
fn as_text(mime: &str, bytes: Vec<u8>) -> Result<String, Vec<u8>> {
    let nuls = bytes.iter().filter(|byte| **byte == 0).count();
    if !mime::is_textual(mime) || nuls > bytes.len() / 4 {
        return Err(bytes);
    }
    String::from_utf8(bytes).map_err(std::string::FromUtf8Error::into_bytes)
}

/// Length of the text in a JSON message: a client drops a line over its limit without a word.
fn json_bytes(text: &str) -> u64 {
    text.bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
            0..0x20 => 6,
            _ => 1,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        let utf16: Vec<u8> = "hello".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (mime, bytes, text) in [
            ("text/plain", "退款".as_bytes(), true),
            ("text/plain", b"one\0nul in a text", true),
            ("application/json", b"{}", true),
            ("image/svg+xml", b"<svg/>", true),
            ("text/plain", b"", true),
            ("text/plain", b"caf\xe9", false),
            ("text/plain", &utf16, false),
            ("application/pdf", b"%PDF-1.4 ascii only", false),
            ("application/octet-stream", b"abc", false),
        ] {
            assert_eq!(as_text(mime, bytes.to_vec()).is_ok(), text, "{mime} {bytes:?}");
        }
    }

    #[test]
    fn json_length_is_exact() {
        for text in ["", "plain", "a\"b\\c\n\t\r", "\u{0}\u{1f}\u{7f}", "退款 😀", "\u{8}\u{c}"]
        {
            assert_eq!(
                json_bytes(text) + 2,
                serde_json::to_string(text).unwrap().len() as u64,
                "{text:?}"
            );
        }
    }
}
