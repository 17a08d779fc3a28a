//! A file's content as the protocol has it, or why there is none.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::ErrorData;
use rmcp::model::ResourceContents;

use super::folder::Folder;
use super::mime;
use super::open::{self, OpenError};
use super::scan::{self, ScanError};
use super::uri::RelPath;

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

/// The content of a file that a client asked for.
pub fn read(folder: &Folder, path: &RelPath, uri: String) -> Result<ResourceContents, ErrorData> {
    let options = &folder.options;
    let too_large = |size: u64, limit: u64| {
        let message = format!(
            "{uri} takes {size} bytes, and the limit is {limit}; it can be raised under [limits]"
        );
        ErrorData::internal_error(message, None)
    };
    let bytes = open::read(&folder.root, path, options.max_text_bytes.max(options.max_blob_bytes))
        .map_err(|error| match error {
            OpenError::NotFound => missing(&folder.root, &uri),
            OpenError::TooLarge { size, limit } => too_large(size, limit),
            OpenError::Io(e) => {
                ErrorData::internal_error(format!("{uri} can't be read: {e}"), None)
            }
        })?;
    let head = bytes.get(..scan::HEAD_BYTES).unwrap_or(&bytes);
    let mime = mime::of_name(path).unwrap_or_else(|| mime::of_head(head));
    let size = bytes.len() as u64;
    let content = as_text(mime, bytes);
    let (limit, line) = match &content {
        Ok(text) => (options.max_text_bytes, json_bytes(text)),
        Err(bytes) => (options.max_blob_bytes, bytes.len().div_ceil(3) as u64 * 4),
    };
    if size > limit {
        return Err(too_large(size, limit));
    }
    if line > options.max_message_bytes {
        return Err(too_large(line, options.max_message_bytes));
    }
    let contents = match content {
        Ok(text) => ResourceContents::text(text, uri),
        Err(bytes) => ResourceContents::blob(STANDARD.encode(bytes), uri),
    };
    Ok(contents.with_mime_type(mime))
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
