//! PPTX (ECMA-376, PresentationML): a page for each slide, its title, text, tables and notes.

use super::package::Package;
use super::xml::{self, Node};
use super::{Draft, Task};

/// # Errors
/// It unpacks to more than the limits let, or has no text.
pub fn read(package: &mut Package<'_>, task: &Task<'_>) -> Result<Draft, String> {
    let mut draft = Draft::new(task.budget);
    draft.mime_type =
        Some("application/vnd.openxmlformats-officedocument.presentationml.presentation");
    if let Some(properties) = package.text("docProps/core.xml")?
        // The name that one common writer gives every file.
        && let Some(title) = xml::text_of(&properties, "title").filter(|t| t != "PowerPoint Presentation")
    {
        draft.title(&title);
    }
    for (number, path) in (1..).zip(order(package)?) {
        let Some(xml) = package.text(&path)? else { continue };
        let slide = slide(&xml);
        draft.page(number, Some(&slide.title));
        if slide.title.is_empty() {
            // Each slide has a heading, so that none stands under its neighbour's.
            draft.heading(2, &format!("{number}"));
        } else {
            draft.heading(2, &slide.title);
        }
        for block in &slide.blocks {
            match block {
                Block::Text(0, text) => draft.paragraph(text),
                Block::Text(depth, text) => draft.item(depth - 1, "-", text),
                Block::Table(rows) => draft.table(rows),
            }
        }
        let name = path.rsplit('/').next().unwrap_or_default();
        let rels = package.text(&format!("ppt/slides/_rels/{name}.rels"))?.unwrap_or_default();
        if let Some(notes) = targets(&rels).into_iter().find(|t| t.1.contains("notesSlide"))
            && let Some(xml) = package.text(&resolve("ppt/slides", &notes.1))?
        {
            for block in notes_text(&xml) {
                draft.paragraph(&block);
            }
        }
        if draft.is_full() {
            break;
        }
    }
    if draft.is_blank() {
        return Err("the slides have no text".into());
    }
    if let Some(first) = draft.headings.first().map(|heading| heading.text.clone()) {
        draft.title(&first);
    }
    Ok(draft)
}

/// The slides' paths in the order in which they are shown.
fn order(package: &mut Package<'_>) -> Result<Vec<String>, String> {
    let presentation = package.text("ppt/presentation.xml")?.unwrap_or_default();
    let rels = package.text("ppt/_rels/presentation.xml.rels")?.unwrap_or_default();
    let targets = targets(&rels);
    let mut ids = vec![];
    xml::walk(&presentation, |node| {
        if let Node::Open("sldId", attributes) = node {
            // The attribute of that name with a prefix stands last.
            let id = attributes.last("id").unwrap_or_default();
            ids.push(id);
        }
        true
    });
    let path =
        |id: &String| targets.iter().find(|(of, _)| of == id).map(|(_, t)| resolve("ppt", t));
    let mut paths: Vec<String> = ids.iter().filter_map(path).collect();
    if paths.is_empty() {
        let is_slide = |name: &String| name.starts_with("ppt/slides/slide");
        paths = package.names().into_iter().filter(is_slide).collect();
        paths.sort_by_key(|name| (name.len(), name.clone()));
    }
    Ok(paths)
}

/// Relationships: id and target.
pub fn targets(rels: &str) -> Vec<(String, String)> {
    let mut targets = vec![];
    xml::walk(rels, |node| {
        if let Node::Open("Relationship", attributes) = node
            && let (Some(id), Some(target)) = (attributes.get("Id"), attributes.get("Target"))
        {
            targets.push((id, target));
        }
        true
    });
    targets
}

/// A member's name from a relative target.
pub fn resolve(folder: &str, target: &str) -> String {
    if let Some(absolute) = target.strip_prefix('/') {
        return absolute.to_owned();
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

enum Block {
    /// Its level, 0 where it is no item.
    Text(usize, String),
    Table(Vec<Vec<String>>),
}

#[derive(Default)]
struct Slide {
    title: String,
    blocks: Vec<Block>,
}

fn slide(xml: &str) -> Slide {
    let mut slide = Slide::default();
    let (mut kind, mut paragraph, mut level) = (String::new(), String::new(), 0);
    let mut in_text = false;
    let mut table: Option<Vec<Vec<String>>> = None;
    xml::walk(xml, |node| {
        match node {
            Node::Open("sp", _) => kind.clear(),
            Node::Open("ph", attributes) => {
                kind = attributes.get("type").unwrap_or_else(|| "body".into());
            }
            Node::Open("p", _) => (paragraph, level) = (String::new(), 0),
            Node::Open("pPr", attributes) => level = attributes.number("lvl").unwrap_or(0) as usize,
            Node::Open("t", _) => in_text = true,
            Node::Close("t") => in_text = false,
            Node::Open("br", _) => paragraph.push(' '),
            Node::Text(text) if in_text => paragraph.push_str(text),
            Node::Close("p") => {
                let text = std::mem::take(&mut paragraph);
                let text = text.trim();
                if let Some(rows) = &mut table {
                    if let Some(cell) = rows.last_mut().and_then(|row| row.last_mut()) {
                        if !cell.is_empty() {
                            cell.push(' ');
                        }
                        cell.push_str(text);
                    }
                } else if !text.is_empty() {
                    match kind.as_str() {
                        "title" | "ctrTitle" => {
                            if !slide.title.is_empty() {
                                slide.title.push(' ');
                            }
                            slide.title.push_str(text);
                        }
                        // Number and date of the slide say nothing.
                        "sldNum" | "dt" | "ftr" => {}
                        "body" | "obj" => slide.blocks.push(Block::Text(level + 1, text.into())),
                        _ => slide.blocks.push(Block::Text(0, text.into())),
                    }
                }
            }
            Node::Open("tbl", _) => table = Some(vec![]),
            Node::Open("tr", _) => {
                if let Some(rows) = &mut table {
                    rows.push(vec![]);
                }
            }
            Node::Open("tc", _) => {
                if let Some(row) = table.as_mut().and_then(|rows| rows.last_mut()) {
                    row.push(String::new());
                }
            }
            Node::Close("tbl") => slide.blocks.extend(table.take().map(Block::Table)),
            _ => {}
        }
        true
    });
    slide
}

/// What the speaker notes say; their slide's number isn't it.
fn notes_text(xml: &str) -> Vec<String> {
    let texts = slide(xml).blocks.into_iter().filter_map(|block| match block {
        Block::Text(_, text) => Some(text),
        Block::Table(_) => None,
    });
    texts.collect()
}
