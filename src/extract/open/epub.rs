//! EPUB (IDPF 2 and 3): the chapters in the order of reading, each as HTML.

use std::collections::HashMap;

use super::package::Package;
use super::slides::resolve;
use super::xml::{self, Node};
use super::{Draft, Task};
use crate::extract::html;

/// # Errors
/// It unpacks to more than the limits let, or has no text.
pub fn read(package: &mut Package<'_>, task: &Task<'_>) -> Result<Draft, String> {
    let mut draft = Draft::new(task.budget);
    draft.mime_type = Some("application/epub+zip");
    if package.text("META-INF/encryption.xml")?.is_some_and(|xml| xml.contains("EncryptedKey")) {
        return Err("the book is encrypted".into());
    }
    let container = package.text("META-INF/container.xml")?.unwrap_or_default();
    let mut opf = String::new();
    xml::walk(&container, |node| {
        if let Node::Open("rootfile", attributes) = node {
            opf = attributes.get("full-path").unwrap_or_default();
        }
        opf.is_empty()
    });
    let folder = opf.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
    let book = package.text(&opf)?.unwrap_or_default();
    if let Some(title) = xml::text_of(&book, "title") {
        draft.title(&title);
    }
    let (mut items, mut spine) = (HashMap::new(), vec![]);
    xml::walk(&book, |node| {
        match node {
            Node::Open("item", attributes) => {
                let is_navigation = attributes
                    .get("properties")
                    .is_some_and(|properties| properties.contains("nav"));
                if let (Some(id), Some(href), false) =
                    (attributes.get("id"), attributes.get("href"), is_navigation)
                {
                    items.insert(id, href);
                }
            }
            Node::Open("itemref", attributes) => spine.extend(attributes.get("idref")),
            _ => {}
        }
        true
    });
    for href in spine.iter().filter_map(|id| items.get(id)) {
        let name = percent_encoding::percent_decode_str(href).decode_utf8_lossy();
        let name = resolve(&folder, name.split('#').next().unwrap_or_default());
        if let Some(chapter) = package.text(&name)? {
            let chapter = html::convert(&chapter);
            draft.append(&chapter.text, &chapter.outline.headings, 0);
        }
        if draft.is_full() {
            break;
        }
    }
    if draft.is_blank() {
        return Err("the book has no text".into());
    }
    Ok(draft)
}
