//! ODT, ODS and ODP (OASIS OpenDocument): one XML for all three.

use std::mem::take;

use super::package::Package;
use super::sheet::Rows;
use super::xml::{self, Node};
use super::{Draft, Task};

/// A repeated cell or row is written this often at most: sheets repeat empty ones to their end.
const MAX_REPEATS: u32 = 64;

/// # Errors
/// It unpacks to more than the limits let, or has no text.
pub fn read(package: &mut Package<'_>, kind: &str, task: &Task<'_>) -> Result<Draft, String> {
    let mut draft = Draft::new(task.budget);
    let (mime_type, is_sheet) = match kind.rsplit('.').next().unwrap_or_default() {
        "spreadsheet" | "spreadsheet-template" => ("spreadsheet", true),
        "presentation" | "presentation-template" => ("presentation", false),
        "graphics" => ("graphics", false),
        _ => ("text", false),
    };
    draft.mime_type = Some(match mime_type {
        "spreadsheet" => "application/vnd.oasis.opendocument.spreadsheet",
        "presentation" => "application/vnd.oasis.opendocument.presentation",
        "graphics" => "application/vnd.oasis.opendocument.graphics",
        _ => "application/vnd.oasis.opendocument.text",
    });
    if package.text("META-INF/manifest.xml")?.is_some_and(|xml| xml.contains("encryption-data")) {
        return Err("the document is encrypted".into());
    }
    if let Some(meta) = package.text("meta.xml")?
        && let Some(title) = xml::text_of(&meta, "title")
    {
        draft.title(&title);
    }
    let content = package.text("content.xml")?.unwrap_or_default();
    if is_sheet {
        sheets(&content, &mut draft);
    } else {
        words(&content, &mut draft);
    }
    if draft.text.lines().all(|line| line.starts_with('#') && is_sheet || line.is_empty()) {
        return Err("the document has no text".into());
    }
    if !is_sheet && let Some(first) = draft.headings.first().map(|heading| heading.text.clone()) {
        draft.title(&first);
    }
    Ok(draft)
}

/// Text and slides.
fn words(content: &str, draft: &mut Draft) {
    let mut text = String::new();
    let mut level: Option<u8> = None;
    let mut lists = 0_usize;
    let mut hidden = 0_usize;
    let mut pages = 0;
    let mut tables: Vec<Vec<Vec<String>>> = vec![];
    // The title's frame on a slide.
    let mut in_title = 0_usize;
    let mut open = 0_usize;
    let mut asides: Vec<Aside> = vec![];
    let (mut notes, mut comments) = (vec![], vec![]);
    // How often the cell is repeated that is read in each open table.
    let mut repeats: Vec<u32> = vec![];
    xml::walk(content, |node| {
        match node {
            Node::Open(
                "tracked-changes" | "scripts" | "font-face-decls" | "automatic-styles",
                _,
            ) => {
                hidden += 1;
            }
            Node::Close("tracked-changes" | "scripts" | "font-face-decls" | "automatic-styles") => {
                hidden = hidden.saturating_sub(1);
            }
            _ if hidden > 0 => {}
            Node::Open("page", attributes) => {
                pages += 1;
                let name = attributes.get("name");
                draft.page(pages, name.as_deref());
            }
            Node::Open("frame", attributes) => {
                let class = attributes.get("class").unwrap_or_default();
                in_title = usize::from(class == "title");
            }
            Node::Close("frame") => in_title = 0,
            // A text box stands within a paragraph, and its words with that one's.
            Node::Open("p" | "h", _) if open > 0 => {
                text.push('\n');
                open += 1;
            }
            Node::Close("p" | "h") if open > 1 => {
                text.push('\n');
                open -= 1;
            }
            Node::Open("p", _) => open += 1,
            Node::Open("h", attributes) => {
                level = Some(attributes.number("outline-level").unwrap_or(1).clamp(1, 6) as u8);
                open += 1;
            }
            Node::Open("note" | "annotation", _) => {
                let (text, level, open) = (take(&mut text), level.take(), take(&mut open));
                asides.push(Aside { text, level, open, said: vec![] });
            }
            Node::Close(name @ ("note" | "annotation")) => {
                let Some(aside) = asides.pop() else { return true };
                let said = aside.said.join(" ");
                if name == "note" {
                    notes.push(said)
                } else {
                    comments.push(said)
                }
                (text, level, open) = (aside.text, aside.level, aside.open);
            }
            Node::Open("list", _) => lists += 1,
            Node::Close("list") => lists = lists.saturating_sub(1),
            Node::Open("s", attributes) => {
                let spaces = attributes.number("c").unwrap_or(1).min(MAX_REPEATS);
                text.push_str(&" ".repeat(spaces as usize));
            }
            Node::Open("tab", _) => text.push('\t'),
            Node::Open("line-break", _) => text.push('\n'),
            Node::Text(words) if open > 0 => text.push_str(words),
            Node::Close("p" | "h") => {
                open = open.saturating_sub(1);
                let done = take(&mut text);
                let level = level.take();
                if let Some(aside) = asides.last_mut() {
                    aside.said.push(done);
                } else if let Some(rows) = tables.last_mut() {
                    if let Some(cell) = rows.last_mut().and_then(|row| row.last_mut()) {
                        if !cell.is_empty() {
                            cell.push(' ');
                        }
                        cell.push_str(done.trim());
                    }
                } else if let Some(level) = level {
                    draft.heading(level, &done);
                } else if in_title > 0 {
                    draft.heading(2, &done);
                } else if lists > 0 {
                    draft.item(lists - 1, "-", &done);
                } else {
                    draft.paragraph(&done);
                }
            }
            Node::Open("table", _) => {
                tables.push(vec![]);
                repeats.push(1);
            }
            Node::Open("table-row", _) => {
                if let Some(rows) = tables.last_mut() {
                    rows.push(vec![]);
                }
            }
            // What a merged cell covers is a cell, so that columns stay in their places.
            Node::Open("table-cell" | "covered-table-cell", attributes) => {
                if let Some(row) = tables.last_mut().and_then(|rows| rows.last_mut()) {
                    row.push(String::new());
                }
                if let Some(repeats) = repeats.last_mut() {
                    *repeats = attributes.number("number-columns-repeated").unwrap_or(1);
                }
            }
            Node::Close("table-cell" | "covered-table-cell") => {
                let times = repeats.last().map_or(1, |times| (*times).min(MAX_REPEATS));
                if let Some(row) = tables.last_mut().and_then(|rows| rows.last_mut())
                    && let Some(cell) = row.last().cloned()
                {
                    row.extend((1..times).map(|_| cell.clone()));
                }
            }
            Node::Close("table") => {
                repeats.pop();
                let Some(rows) = tables.pop() else { return true };
                match tables.last_mut().and_then(|rows| rows.last_mut()?.last_mut()) {
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
    for rows in tables {
        draft.table(&rows);
    }
    draft.paragraph(&text);
    for (heading, said) in [("Footnotes", notes), ("Comments", comments)] {
        if said.iter().any(|words| !words.trim().is_empty()) {
            draft.heading(1, heading);
            said.iter().for_each(|words| draft.paragraph(words));
        }
    }
}

/// What a note or a comment interrupts, and what it says.
struct Aside {
    text: String,
    level: Option<u8>,
    open: usize,
    said: Vec<String>,
}

fn sheets(content: &str, draft: &mut Draft) {
    let mut sheet = 0;
    // Cells in their order, taken to the rows at each table's end.
    let mut cells: Vec<((u32, u32), String)> = vec![];
    let mut name = String::new();
    let (mut row, mut column, mut repeats) = (0_u32, 0_u32, 1_u32);
    let mut text = String::new();
    let mut in_cell = false;
    // Who wrote a comment, and when.
    let mut is_byline = false;
    let mut row_repeats = 1_u32;
    let mut bytes = 0;
    let limit = draft_room(draft);
    xml::walk(content, |node| {
        match node {
            Node::Open("table", attributes) => {
                name = attributes.get("name").unwrap_or_default();
                (row, column) = (0, 0);
            }
            Node::Open("table-row", attributes) => {
                row_repeats = attributes.number("number-rows-repeated").unwrap_or(1);
                column = 0;
            }
            Node::Close("table-row") => row = row.saturating_add(row_repeats),
            Node::Open("table-cell" | "covered-table-cell", attributes) => {
                repeats = attributes.number("number-columns-repeated").unwrap_or(1);
                in_cell = true;
                text.clear();
            }
            Node::Open("p", _) if in_cell && !text.is_empty() => text.push(' '),
            Node::Open("s", _) if in_cell => text.push(' '),
            Node::Open("creator" | "date", _) => is_byline = true,
            Node::Close("creator" | "date") => is_byline = false,
            Node::Text(words) if in_cell && !is_byline => text.push_str(words),
            Node::Close("table-cell" | "covered-table-cell") => {
                in_cell = false;
                if !text.trim().is_empty() {
                    for n in 0..repeats.min(MAX_REPEATS) {
                        bytes += text.len();
                        cells.push(((row, column.saturating_add(n)), text.trim().to_owned()));
                    }
                }
                column = column.saturating_add(repeats);
            }
            Node::Close("table") => {
                sheet += 1;
                let mut rows = Rows::begin(sheet, &name, draft);
                for (at, text) in cells.drain(..) {
                    if !rows.cell(at, text) {
                        break;
                    }
                }
                rows.end();
            }
            _ => {}
        }
        bytes <= limit
    });
}

/// What is read of the cells at most: the text's limit, and a little more so that it is noticed.
fn draft_room(draft: &Draft) -> usize {
    draft.room().saturating_add(1 << 16)
}
