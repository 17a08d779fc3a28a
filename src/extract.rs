//! Snapshot → document: what is text in a resource, with its title and structure.
//!
//! By MIME type (parameters and case tolerated), else by the URI's suffix, else by looking at the
//! content. What has no text says why. Must not know servers, the index or the clock.
//!
//! Lines are counted in the text that a read returns, so a part's text is that text, but for controls
//! and the paths that values of JSON, YAML and TOML get, which keep the lines. Markup is converted, and
//! binary formats are opened.
//!
//! What opens them may panic, overflow the stack or exhaust the memory over a hostile file:
//! [`needs_worker`] tells what has to be extracted in a process of its own.

mod clean;
mod content;
mod decode;
mod flat;
mod html;
mod json;
pub mod markdown;
pub mod mime;
mod notebook;
mod open;
mod outline;
mod sniff;
mod subtitles;
mod xml;

use serde::{Deserialize, Serialize};

use crate::config::Limits;
use crate::model::{Body, Content, Document, Format, Part, Resource, Snapshot};
use content::Source;
use mime::{Kind, MimeType};
use open::{Draft, Reader, Task};
use outline::Outline;

/// Changes whenever the same snapshot gives another document; part of the index's fingerprint.
pub const VERSION: u32 = 4;

/// What could be made of a snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Extraction {
    Document(Document),
    /// No text; the reason in words that tell a user what to expect ("image/png has no text").
    Skipped(String),
}

/// Extracts the text of a snapshot. All its contents belong to the resource that was read; those
/// without text are named in the document's notes, or are the reason if no other is left.
pub fn extract(resource: &Resource, snapshot: &Snapshot, limits: &Limits) -> Extraction {
    let mut document = Document::default();
    let mut reasons: Vec<String> = vec![];
    // Spans in a part are 32 bits wide, and conversion may add a little.
    let mut budget = limits.max_text_bytes.min(u32::MAX as usize / 4);
    for (index, content) in snapshot.contents.iter().take(limits.max_parts).enumerate() {
        let (uri, declared) = described(resource, snapshot, content);
        let mut notes = vec![];
        if [&content.mime_type, &resource.mime_type].into_iter().flatten().any(|mime| is_app(mime))
        {
            add_notes(
                &mut reasons,
                vec!["an MCP app's user interface is no text to search".into()],
            );
            continue;
        }
        let found = match open::reader(content, uri, &declared) {
            Some(reader) => opened(content, reader, uri, &declared, budget, limits, &mut notes),
            None => content::read(content, uri, &declared)
                .and_then(|source| part(source, uri, &declared, budget, &mut notes)),
        };
        match found {
            Ok(found) => {
                budget -= found.consumed;
                document.truncated |= found.truncated || content.left_out.is_some();
                notes.extend(content.left_out.clone());
                if document.parts.is_empty() {
                    document.mime_type = found.mime_type;
                }
                document.title = document.title.or(found.title);
                document.parts.push(Part { index: index as u32, ..found.part });
                add_notes(&mut document.notes, notes);
            }
            Err(reason) => add_notes(&mut reasons, vec![reason]),
        }
    }
    if document.parts.is_empty() {
        if snapshot.contents.is_empty() {
            reasons.push("the server returned no contents".into());
        }
        return Extraction::Skipped(reasons.join("; "));
    }
    add_notes(&mut document.notes, reasons);
    let dropped = snapshot.contents.len().saturating_sub(limits.max_parts);
    if dropped > 0 {
        document.truncated = true;
        document.notes.push(format!(
            "{dropped} contents are left out: a read has at most {} (limits.max_parts)",
            limits.max_parts
        ));
    }
    Extraction::Document(document)
}

/// Whether a snapshot holds anything that has to be opened, which is only safe in a worker.
pub fn needs_worker(resource: &Resource, snapshot: &Snapshot, limits: &Limits) -> bool {
    snapshot.contents.iter().take(limits.max_parts).any(|content| {
        let (uri, declared) = described(resource, snapshot, content);
        open::reader(content, uri, &declared).is_some()
    })
}

/// A content's URI and declared type, or the resource's where it has none of its own.
fn described<'a>(
    resource: &'a Resource,
    snapshot: &Snapshot,
    content: &'a Content,
) -> (&'a str, MimeType) {
    let alone = snapshot.contents.len() == 1 || content.uri == *resource.uri;
    let own = content.mime_type.as_deref();
    let declared = own.or(if alone { resource.mime_type.as_deref() } else { None });
    let uri = if content.uri.is_empty() { &resource.uri } else { content.uri.as_str() };
    (uri, declared.map(MimeType::parse).unwrap_or_default())
}

/// The type of user interfaces that hosts show (MCP Apps), which hold markup and scripts.
fn is_app(mime_type: &str) -> bool {
    MimeType::parse(mime_type).profile.as_deref() == Some("mcp-app")
}

/// Most notes of a document: 64 contents may each have the same fault.
const MAX_NOTES: usize = 16;

fn add_notes(notes: &mut Vec<String>, more: Vec<String>) {
    for note in more {
        if notes.len() < MAX_NOTES && !notes.contains(&note) {
            notes.push(note);
        }
    }
}

/// Opens a content.
fn opened(
    content: &Content,
    reader: Reader,
    uri: &str,
    declared: &MimeType,
    budget: usize,
    limits: &Limits,
    notes: &mut Vec<String>,
) -> Result<Found, String> {
    let bytes = match &content.body {
        Body::Text(text) => text.as_bytes().to_vec(),
        Body::Blob(blob) => content::whole_blob(blob, uri, limits)?,
    };
    let task = Task { uri, limits, budget, depth: 0 };
    let draft = open::open(reader, &bytes, &task)?;
    let mime_type = draft.mime_type.unwrap_or_else(|| open::essence(reader, &bytes));
    let named = declared.essence.as_str();
    if !named.is_empty() && !mime::is_same_type(named, mime_type) {
        notes.push(format!("declared {named}, is {mime_type}"));
    }
    notes.extend(draft.notes);
    if draft.truncated {
        notes.push("the text goes on: a limit cut it (limits.max_text_bytes)".into());
    }
    let consumed = draft.text.len();
    let part = Part {
        index: 0,
        format: draft.format,
        text: draft.text,
        headings: draft.headings,
        pages: draft.pages,
    };
    Ok(Found {
        part,
        title: draft.title,
        mime_type: mime_type.to_owned(),
        truncated: draft.truncated,
        consumed,
    })
}

/// The text of a file within another: opened, or read as text.
fn member(bytes: &[u8], name: &str, task: &Task<'_>) -> Result<Draft, String> {
    let declared = MimeType::default();
    if let Some(reader) = open::reader_of(bytes, name, &declared) {
        return open::open(reader, bytes, task);
    }
    let mut draft = Draft::new(task.budget);
    let source = content::from_bytes(bytes.to_vec(), &declared)?;
    let found = part(source, name, &declared, task.budget, &mut draft.notes)?;
    draft.title = found.title;
    draft.truncated = found.truncated;
    match found.part.format {
        // Code and lines keep theirs among the paragraphs of others.
        Format::Code | Format::Lines => draft.code("", &found.part.text),
        Format::Plain | Format::Markdown => {
            draft.append(&found.part.text, &found.part.headings, 0);
        }
    }
    Ok(draft)
}

struct Found {
    part: Part,
    title: Option<String>,
    mime_type: String,
    truncated: bool,
    /// Bytes of the resource's text budget.
    consumed: usize,
}

/// Makes a part of a content's text.
fn part(
    source: Source,
    uri: &str,
    declared: &MimeType,
    budget: usize,
    notes: &mut Vec<String>,
) -> Result<Found, String> {
    notes.extend(source.note);
    let whole = source.text;
    let truncated = whole.len() > budget;
    let text = if truncated { shortened(&whole, budget, uri, declared, notes) } else { whole };
    let consumed = text.len();
    let text = clean::clean(text);
    let (mime_type, kind) = kind(&text, uri, &declared.essence);
    if !declared.essence.is_empty() && mime::kind_of_type(&declared.essence) != Some(kind) {
        notes.push(format!("declared {}, is {mime_type}", declared.essence));
    }
    if kind == Kind::Binary {
        return Err(mime::why_no_text(&mime_type));
    }
    let mut found = Found { part: Part::default(), title: None, mime_type, truncated, consumed };
    let (format, outline, text) = match kind {
        Kind::Markdown => (Format::Markdown, markdown::outline(&text), text),
        Kind::ReStructuredText => (Format::Markdown, outline::restructured(&text), text),
        Kind::AsciiDoc => (Format::Markdown, outline::marked(&text, b'='), text),
        Kind::Org => (Format::Markdown, outline::marked(&text, b'*'), text),
        Kind::Html => {
            let html = html::convert(&text);
            if html.stripped && !html.text.is_empty() {
                notes.push("the HTML is so broken that only its tags were taken out".into());
            }
            (Format::Markdown, html.outline, html.text)
        }
        Kind::Xml => {
            let xml = xml::convert(&text);
            if let Some(at) = xml.broken_at {
                notes.push(format!(
                    "the XML is broken at byte {at}; what stands before it was read"
                ));
            }
            let outline = Outline { title: xml.title, headings: vec![] };
            // What can't be read as XML at all is shown as it is.
            let text = if xml.text.is_empty() { text } else { xml.text };
            (Format::Plain, outline, text)
        }
        Kind::Notebook => match notebook::convert(&text) {
            Some(notebook) => {
                let outline = Outline { title: notebook.title, headings: notebook.headings };
                (Format::Markdown, outline, notebook.text)
            }
            None => (Format::Code, Outline::default(), text),
        },
        Kind::Subtitles => (Format::Plain, Outline::default(), subtitles::convert(&text)),
        Kind::Json => match flat::json::flatten(&text) {
            Some(flat) => {
                if !flat.keeps_lines {
                    notes.push(
                        "long lines of JSON are taken apart: lines count in the extracted text"
                            .into(),
                    );
                }
                (Format::Lines, Outline::default(), flat.text)
            }
            None => (Format::Code, Outline::default(), json::readable(&text).into_owned()),
        },
        Kind::JsonLines => (Format::Lines, Outline::default(), flat::json::flatten_lines(&text)),
        Kind::Yaml => (Format::Code, Outline::default(), flat::yaml::flatten(&text)),
        Kind::Toml => (Format::Code, Outline::default(), flat::toml::flatten(&text)),
        Kind::Config | Kind::Code => (Format::Code, Outline::default(), text),
        Kind::Csv | Kind::Log => (Format::Lines, Outline::default(), text),
        Kind::Plain | Kind::Binary => (Format::Plain, Outline::default(), text),
    };
    found.title = outline.title;
    found.part = Part { format, headings: outline.headings, text, ..Part::default() };
    Ok(found)
}

/// What of a text is within the limit: its head; of logs and plain text, whose end says as much as
/// their beginning, the tail too.
fn shortened(
    whole: &str,
    budget: usize,
    uri: &str,
    declared: &MimeType,
    notes: &mut Vec<String>,
) -> String {
    let head = clean::head(whole, budget);
    let (_, kind) = kind(head, uri, &declared.essence);
    if matches!(kind, Kind::Log | Kind::Plain) && budget > 4096 {
        let head = clean::head(whole, budget / 4 * 3);
        let tail = clean::tail(whole, budget / 4 - 256);
        let gap = &whole[head.len()..whole.len() - tail.len()];
        let lines = gap.bytes().filter(|b| *b == b'\n').count();
        notes.push(format!(
            "{} of {} bytes of text, {lines} lines in the middle, are left out (limits.max_text_bytes)",
            gap.len(),
            whole.len()
        ));
        let end = if head.ends_with('\n') { "" } else { "\n" };
        return format!("{head}{end}[… {lines} lines are left out …]\n{tail}");
    }
    notes.push(format!(
        "only the first {} of {} bytes of text are indexed (limits.max_text_bytes)",
        head.len(),
        whole.len()
    ));
    head.to_owned()
}

/// Type and kind to act on: the declared one if it says something and isn't plainly wrong, else by
/// suffix, else by look.
fn kind(text: &str, uri: &str, declared: &str) -> (String, Kind) {
    let owned = |(essence, kind): (&str, Kind)| (essence.to_owned(), kind);
    let suffix = mime::by_suffix(uri).filter(|(_, kind)| *kind != Kind::Binary);
    // A template or a test of HTML is code, whatever it begins with.
    let is_code = match mime::kind_of_type(declared) {
        Some(Kind::Plain) | None => suffix.is_some_and(|(_, kind)| kind == Kind::Code),
        Some(kind) => matches!(kind, Kind::Code | Kind::Html),
    };
    if let Some(found) = sniff::unmistakable(text).filter(|_| !is_code) {
        return owned(found);
    }
    match mime::kind_of_type(declared) {
        // Servers call everything text/plain; the suffix knows better.
        Some(Kind::Plain) if declared == "text/plain" => match suffix {
            Some((essence, Kind::Plain)) => (essence.to_owned(), Kind::Plain),
            Some(found) => owned(checked(found, text)),
            None => owned(sniff::guess(text)),
        },
        Some(Kind::Binary) | None => match suffix {
            Some(found) => owned(checked(found, text)),
            None => owned(sniff::guess(text)),
        },
        Some(kind) => {
            let (_, checked) = checked(("", kind), text);
            if checked == kind { (declared.to_owned(), kind) } else { owned(sniff::guess(text)) }
        }
    }
}

/// HTML and XML without a tag would lose their lines in the conversion: they are what they look like.
fn checked(found: (&'static str, Kind), text: &str) -> (&'static str, Kind) {
    match found.1 {
        Kind::Html | Kind::Xml
            if !sniff::has_tags(text) && !text.trim_start().starts_with("<?") =>
        {
            sniff::guess(text)
        }
        _ => found,
    }
}

#[cfg(test)]
mod tests;
