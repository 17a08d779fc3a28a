//! Bytes in a format that has to be opened → a draft of their text.
//!
//! Which reader opens them is decided by their first bytes, and by type and suffix where these don't
//! tell. Every reader is a pure function of the bytes and the limits; what a hostile file can do to
//! one (a panic, an overflow, a hang) is survived by the worker process in which it runs.

mod archive;
mod draft;
mod epub;
mod film;
mod image;
mod mail;
mod media;
mod opendocument;
mod package;
mod pdf;
mod rtf;
mod sheet;
mod slides;
mod word;
mod xml;

use super::content::binary_type;
use super::mime::{self, MimeType};
use super::{clean, decode};
use crate::config::Limits;
use crate::model::{Body, Content};
pub use draft::Draft;

/// What opens a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    Pdf,
    Rtf,
    /// A ZIP archive, or one of the formats that are one.
    Zip,
    Gzip,
    Tar,
    /// OLE compound files: Office before 2007.
    Ole,
    Mail,
    Mailbox,
    Image,
    Media,
}

/// What a reader is told beside the bytes.
pub struct Task<'a> {
    pub uri: &'a str,
    pub limits: &'a Limits,
    /// Most bytes of text.
    pub budget: usize,
    /// How many archives stand around it.
    pub depth: usize,
}

/// How much of a content tells what it is: a TAR's mark ends at 262.
const HEAD: usize = 1024;

/// What opens a content, `None` when it is text or nothing that is opened.
pub fn reader(content: &Content, uri: &str, declared: &MimeType) -> Option<Reader> {
    match &content.body {
        // The bytes of a binary are lost in a string; these three are text.
        Body::Text(text) => reader_of(clean::head(text, HEAD).as_bytes(), uri, declared)
            .filter(|reader| matches!(reader, Reader::Rtf | Reader::Mail | Reader::Mailbox)),
        Body::Blob(blob) => reader_of(&decode::base64_head(blob, HEAD)?, uri, declared),
    }
}

/// The same by the first bytes.
pub fn reader_of(bytes: &[u8], uri: &str, declared: &MimeType) -> Option<Reader> {
    let head = &bytes[..bytes.len().min(HEAD)];
    let begins = |mark: &[u8]| head.starts_with(mark);
    // Readers forgive what stands before a PDF's first line (ISO 32000-1, implementation note 13).
    if begins(b"%PDF-") || head.windows(5).any(|five| five == b"%PDF-") && !is_text(head) {
        return Some(Reader::Pdf);
    }
    if begins(b"{\\rtf") {
        return Some(Reader::Rtf);
    }
    if begins(b"PK\x03\x04") || begins(b"PK\x05\x06") {
        return Some(Reader::Zip);
    }
    if begins(b"\x1f\x8b\x08") {
        return Some(Reader::Gzip);
    }
    if begins(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1") {
        return Some(Reader::Ole);
    }
    if head.get(257..262) == Some(b"ustar") {
        return Some(Reader::Tar);
    }
    match binary_type(head) {
        Some(found) if found.starts_with("image/") => return Some(Reader::Image),
        Some(found) if found.starts_with("audio/") || found.starts_with("video/") => {
            return Some(Reader::Media);
        }
        Some("application/ogg") => return Some(Reader::Media),
        Some(_) => return None,
        None => {}
    }
    let named = |essence: &str| {
        declared.essence == essence
            || mime::kind_of_type(&declared.essence).is_none_or(|kind| kind == mime::Kind::Plain)
                && mime::type_of_name(uri) == Some(essence)
    };
    if named("application/mbox") && begins(b"From ") {
        return Some(Reader::Mailbox);
    }
    (named("message/rfc822") && mail::has_headers(head)).then_some(Reader::Mail)
}

fn is_text(head: &[u8]) -> bool {
    std::str::from_utf8(head).is_ok_and(|text| !text.contains('\0'))
}

/// The type that a reader stands for where the bytes don't say more.
pub fn essence(reader: Reader, bytes: &[u8]) -> &'static str {
    match reader {
        Reader::Pdf => "application/pdf",
        Reader::Rtf => "application/rtf",
        Reader::Zip => "application/zip",
        Reader::Gzip => "application/gzip",
        Reader::Tar => "application/x-tar",
        Reader::Ole => "application/x-ole-storage",
        Reader::Mail => "message/rfc822",
        Reader::Mailbox => "application/mbox",
        Reader::Image | Reader::Media => binary_type(bytes).unwrap_or("application/octet-stream"),
    }
}

/// Opens bytes.
///
/// # Errors
/// Why there is no text, in words that tell a user what to expect.
pub fn open(reader: Reader, bytes: &[u8], task: &Task<'_>) -> Result<Draft, String> {
    match reader {
        Reader::Pdf => pdf::read(bytes, task),
        Reader::Rtf => rtf::read(bytes, task),
        Reader::Zip => package::read(bytes, task),
        Reader::Gzip => archive::gzip(bytes, task),
        Reader::Tar => archive::tar(bytes, task),
        Reader::Ole => sheet::old(bytes, task),
        Reader::Mail => mail::message(bytes, task),
        Reader::Mailbox => mail::mailbox(bytes, task),
        Reader::Image => Ok(image::read(bytes, task)),
        Reader::Media => media::read(bytes, task),
    }
}
