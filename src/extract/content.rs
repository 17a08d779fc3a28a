//! A content as a server sent it → its text before its kind is known, or why it has none.

use super::mime::{self, Kind, MimeType};
use super::{clean, decode, sniff};
use crate::config::Limits;
use crate::model::{Body, Content};

/// A content's text before its kind is known.
pub struct Source {
    pub text: String,
    /// The charset of a blob that wasn't UTF-8 or not what was declared.
    pub note: Option<String>,
}

/// Text of a content, or why it has none.
pub fn read(content: &Content, uri: &str, declared: &MimeType) -> Result<Source, String> {
    let declared_binary = mime::kind_of_type(&declared.essence) == Some(Kind::Binary);
    match &content.body {
        Body::Text(text) => {
            // A server may have turned a PDF or a picture into text, or have sent its bytes as text.
            if declared_binary && !reads_like_text(text) {
                return Err(mime::why_no_text(&declared.essence));
            }
            Ok(Source { text: text.clone(), note: None })
        }
        // Text over a limit is cut like any other, however it came.
        Body::Blob(blob) => from_bytes(blob_bytes(blob, uri)?, declared),
    }
}

fn blob_bytes(blob: &str, uri: &str) -> Result<Vec<u8>, String> {
    decode::base64(blob).map_err(|fault| format!("the blob of {uri} isn't base64: {fault}"))
}

/// A blob that has to be whole to be opened.
pub fn whole_blob(blob: &str, uri: &str, limits: &Limits) -> Result<Vec<u8>, String> {
    let len = decode::decoded_len(blob);
    if len > limits.max_blob_bytes {
        return Err(format!(
            "a blob of {len} bytes is over the limit of {} (limits.max_blob_bytes)",
            limits.max_blob_bytes
        ));
    }
    blob_bytes(blob, uri)
}

pub fn from_bytes(bytes: Vec<u8>, declared: &MimeType) -> Result<Source, String> {
    let essence = declared.essence.as_str();
    let binary = binary_type(&bytes);
    if let Some(found) = binary {
        let reason = mime::why_no_text(found);
        let named = mime::kind_of_type(essence);
        return Err(match named {
            // "application/zip" for a DOCX is no lie worth a word, "text/plain" for a picture is.
            Some(Kind::Binary) if found == "application/zip" || found.contains("ole-storage") => {
                mime::why_no_text(essence)
            }
            Some(kind) if kind != Kind::Binary => format!("declared {essence}, but {reason}"),
            _ => reason,
        });
    }
    let text = decode::text(bytes, declared.charset.as_deref());
    match text {
        Some(decoded) => {
            let charset = decoded.charset;
            let note = match &declared.charset {
                Some(label) if decoded.corrected => {
                    Some(format!("declared charset {label}, is {charset}"))
                }
                None if charset != "UTF-8" => Some(format!("decoded from {charset}")),
                _ => None,
            };
            Ok(Source { text: decoded.text, note })
        }
        None if mime::kind_of_type(essence).is_some_and(|kind| kind != Kind::Binary) => {
            Err(format!("declared {essence}, but it is binary data without text"))
        }
        None => Err(mime::why_no_text(essence)),
    }
}

/// The type of bytes that begin like a known binary format. Bytes that read like text aren't
/// matched against the formats whose mark is two or three letters ("BM", "MZ").
pub fn binary_type(bytes: &[u8]) -> Option<&'static str> {
    let head = &bytes[..bytes.len().min(8192)];
    if let Some(film) = film_type(head) {
        return Some(film);
    }
    let found = infer::get(head).filter(|found| {
        !matches!(found.matcher_type(), infer::MatcherType::Text)
            && found.mime_type() != "application/x-x509-ca-cert"
    })?;
    let unmistakable = matches!(found.mime_type(), "application/pdf" | "application/rtf");
    let is_text = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    (unmistakable || !is_text || decode::looks_binary_or_wide(head)).then(|| found.mime_type())
}

/// The type of an EBML file by its header's DocType (RFC 8794 11.2.6), wherever it stands in it.
fn film_type(head: &[u8]) -> Option<&'static str> {
    let header = head.strip_prefix(b"\x1a\x45\xdf\xa3")?;
    let is_webm = header.windows(4).take(64).any(|four| four == b"webm");
    Some(if is_webm { "video/webm" } else { "video/x-matroska" })
}

/// Whether a string sent under a binary type is prose, and not bytes or base64 in a string.
fn reads_like_text(text: &str) -> bool {
    let head = clean::head(text, 4096);
    let chars = head.chars().count();
    let odd = head
        .chars()
        .filter(|c| *c == char::REPLACEMENT_CHARACTER || (c.is_control() && !c.is_whitespace()))
        .count();
    let longest = head.split_whitespace().map(str::len).max().unwrap_or(0);
    odd * 20 <= chars
        && sniff::unmistakable(text).is_none_or(|(_, kind)| kind != Kind::Binary)
        && (longest < 200 || decode::base64(head).is_err())
        && !head.starts_with("data:")
}
