//! What was read → what was asked for: one content, some lines, an outline, as much as a budget takes. Pure.

use crate::chunk;
use crate::index::Entry;
use crate::model::{Body, Document, Heading, ResourceKey, Snapshot};
use crate::serve::api::{ReadContent, ReadRequest, ReadResponse};
use crate::serve::cut::{self, Lines};
use crate::serve::error::ApiError;
use crate::serve::tokenizer::Tokenizer;

/// One of a read's contents before it is cut to what was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub index: u32,
    pub uri: String,
    pub mime_type: Option<String>,
    pub body: Body,
    /// Of `body`'s text.
    pub headings: Vec<Heading>,
}

/// What was read, and how.
#[derive(Default)]
pub struct Reading {
    pub items: Vec<Item>,
    pub stale: bool,
    pub truncated: bool,
    pub notes: Vec<String>,
}

/// What the outline of a text that was cut may cost beside it: this part of the budget.
const OUTLINE_SHARE: usize = 4;
/// But no less than a few headings.
const LEAST_OUTLINE: usize = 32;

pub fn raw(snapshot: &Snapshot) -> Vec<Item> {
    (0..)
        .zip(&snapshot.contents)
        .map(|(index, content)| Item {
            index,
            uri: content.uri.clone(),
            mime_type: content.mime_type.clone(),
            body: content.body.clone(),
            headings: vec![],
        })
        .collect()
}

pub fn fits(item: &Item, max_tokens: usize) -> bool {
    match &item.body {
        // The estimate may be off by half.
        Body::Text(text) => chunk::estimate_tokens(text) <= max_tokens / 2,
        Body::Blob(_) => true,
    }
}

/// Headings tell lines of the extracted text, so they hold only where that is the text itself.
pub fn add_headings(items: &mut [Item], document: Document) {
    for part in document.parts {
        let item = items.iter_mut().find(|item| item.index == part.index);
        if let Some(item) = item
            && matches!(&item.body, Body::Text(text) if *text == part.text)
        {
            item.headings = part.headings;
        }
    }
}

pub fn differs(document: &Document, snapshot: &Snapshot) -> bool {
    document.parts.iter().any(|part| {
        let content = snapshot.contents.get(part.index as usize);
        !content.is_some_and(|c| matches!(&c.body, Body::Text(text) if *text == part.text))
    })
}

/// Chunks partition the text of each part, so put together they are it again.
pub fn stored(entry: &Entry) -> Vec<Item> {
    let mut items: Vec<Item> = vec![];
    let mut path: &[String] = &[];
    for chunk in &entry.chunks {
        let mime_type = match entry.mime_type.as_deref() {
            Some("text/markdown" | "text/html" | "application/xhtml+xml") => "text/markdown",
            _ => "text/plain",
        };
        if items.last().is_none_or(|item| item.index != chunk.part) {
            path = &[];
            items.push(Item {
                index: chunk.part,
                uri: entry.resource.uri.to_string(),
                mime_type: Some(mime_type.into()),
                body: Body::Text(String::new()),
                headings: vec![],
            });
        }
        let Some(Item { body: Body::Text(text), headings, .. }) = items.last_mut() else {
            continue;
        };
        if chunk.heading_path != path
            && let Some(heading) = chunk.heading_path.last()
        {
            let level = u8::try_from(chunk.heading_path.len()).unwrap_or(u8::MAX);
            headings.push(Heading { level, text: heading.clone(), at: text.len() });
        }
        path = &chunk.heading_path;
        text.push_str(&chunk.text);
    }
    items
}

/// Cuts what was read to what was asked for.
pub fn answer(
    key: &ResourceKey,
    request: &ReadRequest,
    lines: Lines,
    reading: Reading,
) -> Result<ReadResponse, ApiError> {
    let Reading { mut items, stale, mut truncated, mut notes } = reading;
    let several = items.len() > 1;
    if let Some(part) = request.part {
        let count = items.len();
        items.retain(|item| item.index == part);
        if items.is_empty() {
            return Err(ApiError::bad_request(format!(
                "part: the resource has {count} contents, counted from 0, and none is {part}"
            )));
        }
    }
    let tokenizer = Tokenizer::named(None)?;
    let count = |text: &str| tokenizer.count(text);
    let has_blob = items.iter().any(|item| matches!(item.body, Body::Blob(_)));
    if request.lines.is_some() && has_blob {
        return Err(ApiError::bad_request("lines: this resource isn't text")
            .hint(Some("ask with `extracted` for the lines of its text")));
    }
    let outline = |items: &[Item]| {
        let all = items.iter().flat_map(|item| match &item.body {
            Body::Text(text) => {
                cut::outline(text, &item.headings, several.then_some(item.index), &count)
            }
            Body::Blob(_) => vec![],
        });
        all.collect::<Vec<_>>()
    };
    let mut response = ReadResponse {
        server: key.server.to_string(),
        uri: key.uri.to_string(),
        contents: vec![],
        stale,
        truncated,
        next_lines: None,
        outline: None,
        notes: vec![],
    };
    if request.outline {
        response.outline = Some(outline(&items));
        response.notes = notes;
        return Ok(response);
    }
    let mut left = request.max_tokens.unwrap_or(usize::MAX);
    let mut cut_here = false;
    for item in &items {
        let text = match &item.body {
            Body::Blob(blob) => {
                response.contents.push(content(item, None, Some(blob.clone())));
                continue;
            }
            Body::Text(text) => lines.of(text),
        };
        if cut_here {
            notes.push(format!("contents {} left out: ask with `part`", item.index));
            continue;
        }
        if request.max_tokens.is_none() {
            response.contents.push(content(item, Some(text.to_owned()), None));
            continue;
        }
        let cut = cut::budget(text, left, &count);
        left -= cut.tokens.min(left);
        response.contents.push(content(item, Some(cut.text.to_owned()), None));
        if !cut.complete {
            cut_here = true;
            if cut.whole_lines == 0 {
                notes.push(format!(
                    "line {} alone is longer than max_tokens: ask with more",
                    lines.first
                ));
            } else {
                let next = lines.first + cut.whole_lines;
                let last = lines.last.map(|last| last.to_string()).unwrap_or_default();
                response.next_lines = Some(format!("{next}-{last}"));
            }
        }
    }
    if cut_here {
        truncated = true;
        let most = (request.max_tokens.unwrap_or(usize::MAX) / OUTLINE_SHARE).max(LEAST_OUTLINE);
        let outline = cut::shallow(outline(&items), most);
        response.outline = (!outline.is_empty()).then_some(outline);
    }
    (response.truncated, response.notes) = (truncated, notes);
    Ok(response)
}

fn content(item: &Item, text: Option<String>, blob: Option<String>) -> ReadContent {
    ReadContent { uri: item.uri.clone(), mime_type: item.mime_type.clone(), text, blob }
}
