//! Pictures: format, size, and what EXIF, XMP and PNG's text say of them.

use std::borrow::Cow;
use std::io::Cursor;
use std::io::Read;

use exif::{In, Tag, Value};
use flate2::read::ZlibDecoder;

use super::xml::{self, Node};
use super::{Draft, Reader, Task, essence};

/// Always has a text: at least format and size.
pub fn read(bytes: &[u8], task: &Task<'_>) -> Draft {
    let mut draft = Draft::new(task.budget);
    let essence = essence(Reader::Image, bytes);
    let format = essence.trim_start_matches("image/").trim_start_matches("x-").to_uppercase();
    draft.mime_type = Some(essence);
    let size = imagesize::blob_size(bytes)
        .map(|size| format!(", {} × {} pixels", size.width, size.height))
        .unwrap_or_default();
    let mut said = vec![];
    exif(bytes, &mut said);
    xmp(bytes, &mut said);
    if bytes.starts_with(b"\x89PNG") {
        png(bytes, &mut said);
    }
    if let Some((_, title)) = said.iter().find(|(label, _)| *label == "Title") {
        draft.title(title);
    }
    draft.line(&format!("{format} image{size}"));
    let mut seen: Vec<&str> = vec![];
    for (label, text) in &said {
        if !seen.contains(&text.as_str()) {
            seen.push(text);
            draft.line(&format!("{label}: {text}"));
        }
    }
    draft
}

type Said = Vec<(&'static str, String)>;

fn say(said: &mut Said, label: &'static str, text: &str) {
    let text = super::draft::one_line(&text.replace('\0', " "));
    if !text.is_empty() && text.len() < 8192 {
        said.push((label, text));
    }
}

fn exif(bytes: &[u8], said: &mut Said) {
    let Ok(exif) = exif::Reader::new().read_from_container(&mut Cursor::new(bytes)) else { return };
    for (tag, label) in [
        (Tag::ImageDescription, "Description"),
        (Tag::UserComment, "Comment"),
        (Tag::Artist, "Artist"),
        (Tag::Copyright, "Copyright"),
        (Tag::DateTimeOriginal, "Date"),
        (Tag::Model, "Camera"),
    ] {
        let Some(field) = exif.get_field(tag, In::PRIMARY) else { continue };
        match &field.value {
            // Cameras write UTF-8 where the standard has ASCII.
            Value::Ascii(parts) => {
                for part in parts {
                    let part = super::super::decode::text(part.clone(), None);
                    say(said, label, &part.map(|d| d.text).unwrap_or_default());
                }
            }
            Value::Undefined(bytes, _) if bytes.len() > 8 => {
                let (charset, body) = bytes.split_at(8);
                let label_of =
                    if charset.starts_with(b"UNICODE") { Some("utf-16le") } else { None };
                let text = super::super::decode::text(body.to_vec(), label_of);
                say(said, label, &text.map(|d| d.text).unwrap_or_default());
            }
            _ => {}
        }
    }
}

/// XMP stands as XML somewhere in the bytes (ISO 16684-1).
fn xmp(bytes: &[u8], said: &mut Said) {
    let find = |mark: &[u8], from: usize| {
        let at = bytes.get(from..)?.windows(mark.len()).position(|window| window == mark)?;
        Some(from + at)
    };
    let Some(start) = find(b"<x:xmpmeta", 0) else { return };
    let Some(end) = find(b"</x:xmpmeta>", start) else { return };
    let packet = String::from_utf8_lossy(&bytes[start..end]);
    let mut label = None;
    xml::walk(&packet, |node| {
        match node {
            Node::Open("title", _) => label = Some("Title"),
            Node::Open("description", _) => label = Some("Description"),
            Node::Open("subject", _) => label = Some("Keyword"),
            Node::Open("creator", _) => label = Some("Artist"),
            Node::Open("Headline", _) => label = Some("Headline"),
            Node::Close("title" | "description" | "subject" | "creator" | "Headline") => {
                label = None
            }
            Node::Text(text) => {
                if let Some(label) = label {
                    say(said, label, text);
                }
            }
            _ => {}
        }
        said.len() < 64
    });
}

/// A compressed text of more bytes is none that is shown.
const MAX_TEXT: u64 = 64 << 10;

/// Unpacks a text of a PNG, as much of it as is sound.
fn inflated(packed: &[u8]) -> Vec<u8> {
    let mut text = vec![];
    let _ = ZlibDecoder::new(packed).take(MAX_TEXT).read_to_end(&mut text);
    text
}

/// PNG's `tEXt`, `zTXt` and `iTXt`, by their keywords (PNG 11.3.3).
fn png(bytes: &[u8], said: &mut Said) {
    let mut at = 8;
    while let Some(head) = bytes.get(at..at + 8) {
        let len = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let Some(data) = bytes.get(at + 8..at.saturating_add(8).saturating_add(len)) else {
            return;
        };
        let mut fields = data.splitn(2, |b| *b == 0);
        let (keyword, rest) =
            (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let label = match keyword {
            b"Title" => "Title",
            b"Author" => "Artist",
            b"Description" => "Description",
            b"Comment" => "Comment",
            b"Copyright" => "Copyright",
            _ => "",
        };
        match &head[4..] {
            _ if label.is_empty() => {}
            b"tEXt" => {
                say(said, label, &encoding_rs::WINDOWS_1252.decode_without_bom_handling(rest).0);
            }
            // A byte for the method of compression.
            b"zTXt" => {
                let text = inflated(rest.get(1..).unwrap_or_default());
                say(said, label, &encoding_rs::WINDOWS_1252.decode_without_bom_handling(&text).0);
            }
            // Two bytes of compression, then language and translated keyword, each ended by a NUL.
            b"iTXt" => {
                let text = rest.get(2..).unwrap_or_default().splitn(3, |b| *b == 0).nth(2);
                let text = text.unwrap_or_default();
                let is_packed = rest.first() == Some(&1);
                let text = if is_packed { Cow::Owned(inflated(text)) } else { Cow::Borrowed(text) };
                say(said, label, &String::from_utf8_lossy(&text));
            }
            _ => {}
        }
        if &head[4..] == b"IEND" || said.len() > 64 {
            return;
        }
        at += 12 + len;
    }
}
