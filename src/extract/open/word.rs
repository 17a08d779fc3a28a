//! DOCX (ECMA-376, WordprocessingML): paragraphs, headings, lists, tables, footnotes.

use std::collections::HashMap;

use super::package::Package;
use super::xml::{self, Node};
use super::{Draft, Task};

/// Word itself has no table with more columns.
const MAX_COLUMNS: u32 = 63;

/// # Errors
/// It unpacks to more than the limits let, or has no text.
pub fn read(package: &mut Package<'_>, task: &Task<'_>) -> Result<Draft, String> {
    let mut draft = Draft::new(task.budget);
    draft.mime_type =
        Some("application/vnd.openxmlformats-officedocument.wordprocessingml.document");
    if let Some(properties) = package.text("docProps/core.xml")?
        && let Some(title) = xml::text_of(&properties, "title")
    {
        draft.title(&title);
    }
    let styles = package.text("word/styles.xml")?.map(|xml| styles(&xml)).unwrap_or_default();
    let document = package.text("word/document.xml")?.unwrap_or_default();
    body(&document, &styles, &mut draft);
    // What is said beside the text; headers and footers repeat on every page and say little.
    for (name, heading) in
        [("footnotes", "Footnotes"), ("endnotes", "Endnotes"), ("comments", "Comments")]
    {
        if let Some(xml) = package.text(&format!("word/{name}.xml"))? {
            let mut notes = Draft::new(task.budget);
            body(&xml, &styles, &mut notes);
            if !notes.is_blank() {
                draft.heading(1, heading);
                draft.append(&notes.text, &[], 0);
            }
        }
    }
    if draft.is_blank() {
        return Err("the Word document has no text".into());
    }
    if draft.title.is_none()
        && let Some(first) = draft.headings.first().map(|heading| heading.text.clone())
    {
        draft.title(&first);
    }
    Ok(draft)
}

/// The outline level of a paragraph style, 0 that of a title.
type Styles = HashMap<String, u8>;

fn styles(xml: &str) -> Styles {
    let mut styles = Styles::new();
    let mut id = String::new();
    xml::walk(xml, |node| {
        if let Node::Open(name, attributes) = node {
            match name {
                "style" => id = attributes.get("styleId").unwrap_or_default(),
                "name" => {
                    let name = attributes.get("val").unwrap_or_default().to_lowercase();
                    let level = name.strip_prefix("heading ").and_then(|n| n.parse().ok());
                    if let Some(level) = level.or((name == "title").then_some(0)) {
                        styles.insert(id.clone(), level);
                    }
                }
                "outlineLvl" => {
                    if let Some(level @ 0..=8) = attributes.number("val") {
                        styles.entry(id.clone()).or_insert(level as u8 + 1);
                    }
                }
                _ => {}
            }
        }
        true
    });
    styles
}

/// A paragraph while it is read.
#[derive(Default)]
struct Paragraph {
    text: String,
    style: String,
    outline: Option<u8>,
    list: Option<u32>,
}

fn body(xml: &str, styles: &Styles, draft: &mut Draft) {
    let mut paragraph = Paragraph::default();
    let mut in_text = false;
    // What is shown as deleted, or a second time for older programs.
    let mut hidden = 0_usize;
    let mut tables: Vec<Vec<Vec<String>>> = vec![];
    // How many columns the cell spans that is read in each open table.
    let mut spans: Vec<u32> = vec![];
    xml::walk(xml, |node| {
        match node {
            Node::Open("del" | "moveFrom" | "Fallback" | "instrText", _) => hidden += 1,
            Node::Close("del" | "moveFrom" | "Fallback" | "instrText") => {
                hidden = hidden.saturating_sub(1);
            }
            _ if hidden > 0 => {}
            // A text box stands within a paragraph, and its words with that one's.
            Node::Open("p", _) if !paragraph.text.is_empty() => paragraph.text.push('\n'),
            Node::Open("pStyle", attributes) => {
                paragraph.style = attributes.get("val").unwrap_or_default();
            }
            Node::Open("outlineLvl", attributes) => {
                paragraph.outline =
                    attributes.number("val").filter(|n| *n < 9).map(|n| n as u8 + 1);
            }
            Node::Open("ilvl", attributes) => paragraph.list = attributes.number("val"),
            Node::Open("t", _) => in_text = true,
            Node::Close("t") => in_text = false,
            Node::Open("tab", _) => paragraph.text.push('\t'),
            Node::Open("br" | "cr", _) => paragraph.text.push('\n'),
            Node::Open("noBreakHyphen", _) => paragraph.text.push('-'),
            Node::Text(text) if in_text => paragraph.text.push_str(text),
            Node::Close("p") => {
                let done = std::mem::take(&mut paragraph);
                match tables.last_mut() {
                    Some(rows) => {
                        if let Some(cell) = rows.last_mut().and_then(|row| row.last_mut()) {
                            if !cell.is_empty() {
                                cell.push(' ');
                            }
                            cell.push_str(done.text.trim());
                        }
                    }
                    None => place(&done, styles, draft),
                }
            }
            Node::Open("tbl", _) => {
                tables.push(vec![]);
                spans.push(1);
            }
            Node::Open("tr", _) => {
                if let Some(rows) = tables.last_mut() {
                    rows.push(vec![]);
                }
            }
            Node::Open("tc", _) => {
                if let Some(row) = tables.last_mut().and_then(|rows| rows.last_mut()) {
                    row.push(String::new());
                }
                if let Some(span) = spans.last_mut() {
                    *span = 1;
                }
            }
            Node::Open("gridSpan", attributes) => {
                if let Some(span) = spans.last_mut() {
                    *span = attributes.number("val").unwrap_or(1);
                }
            }
            // Columns stay in their places beside what spans several, and where a row begins later.
            Node::Close("tc") => {
                let span = spans.last().map_or(1, |span| (*span).min(MAX_COLUMNS));
                if let Some(row) = tables.last_mut().and_then(|rows| rows.last_mut()) {
                    row.extend((1..span).map(|_| String::new()));
                }
            }
            Node::Open("gridBefore", attributes) => {
                let columns = attributes.number("val").unwrap_or(0).min(MAX_COLUMNS);
                if let Some(row) = tables.last_mut().and_then(|rows| rows.last_mut()) {
                    row.extend((0..columns).map(|_| String::new()));
                }
            }
            Node::Close("tbl") => {
                spans.pop();
                let Some(rows) = tables.pop() else { return true };
                match tables.last_mut().and_then(|rows| rows.last_mut()?.last_mut()) {
                    // A table within a cell: its cells are words of that one.
                    Some(cell) => {
                        for word in rows.iter().flatten() {
                            cell.push(' ');
                            cell.push_str(word);
                        }
                    }
                    None => draft.table(&rows),
                }
            }
            _ => {}
        }
        !draft.is_full()
    });
    // What an unclosed table or paragraph held.
    for rows in tables {
        draft.table(&rows);
    }
    draft.paragraph(&paragraph.text);
}

fn place(paragraph: &Paragraph, styles: &Styles, draft: &mut Draft) {
    let level = paragraph.outline.or_else(|| styles.get(&paragraph.style).copied());
    match (level, paragraph.list) {
        (Some(0), _) => {
            draft.title(&paragraph.text);
            draft.heading(1, &paragraph.text);
        }
        (Some(level), _) => draft.heading(level, &paragraph.text),
        (None, Some(depth)) => draft.item(depth as usize, "-", &paragraph.text),
        // Word's own names for what has its numbering in the style.
        (None, None) if paragraph.style.starts_with("List") => {
            let depth = paragraph.style.chars().last().and_then(|c| c.to_digit(10)).unwrap_or(1);
            draft.item(depth.saturating_sub(1) as usize, "-", &paragraph.text);
        }
        (None, None) => draft.paragraph(&paragraph.text),
    }
}
