//! XML and SVG → their text in document order. Entities aren't expanded, so nothing blows up.

use quick_xml::Reader;
use quick_xml::escape::{resolve_predefined_entity, unescape};
use quick_xml::events::{BytesStart, Event};

use super::clean;
use super::outline::title_line;

/// Text of an XML document.
#[derive(Debug, Default, PartialEq)]
pub struct Xml {
    pub title: Option<String>,
    pub text: String,
    /// Where the document is broken, and reading ended.
    pub broken_at: Option<u64>,
}

/// Takes the text of all elements, a line for each that doesn't stand in running text. A document
/// that has its text in attributes only gives those.
pub fn convert(xml: &str) -> Xml {
    let mut reader = Reader::from_str(xml);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    let mut writer = Writer::default();
    let mut attributes = String::new();
    let mut broken_at = None;
    loop {
        match reader.read_event() {
            Ok(Event::Start(element)) => {
                add_attributes(&element, &mut attributes);
                writer.open(&element);
            }
            Ok(Event::Empty(element)) => add_attributes(&element, &mut attributes),
            Ok(Event::End(_)) => writer.close(),
            Ok(Event::Text(text)) => writer.text(&text.xml10_content()),
            Ok(Event::CData(text)) => writer.text(&text.xml10_content()),
            Ok(Event::GeneralRef(reference)) => match reference.resolve_char_ref() {
                Ok(Some(c)) => writer.text(c.encode_utf8(&mut [0; 4])),
                _ => {
                    let name = reference.xml10_content();
                    match resolve_predefined_entity(&name) {
                        Some(text) => writer.text(text),
                        None => writer.text(&format!("&{name};")),
                    }
                }
            },
            Ok(Event::Eof) => break,
            Ok(_) => {}
            Err(_) => {
                broken_at = Some(reader.error_position());
                break;
            }
        }
    }
    let text = if writer.text.is_empty() { attributes } else { writer.text };
    Xml { title: writer.title.map(|title| title_line(&title)), text, broken_at }
}

fn add_attributes(element: &BytesStart<'_>, lines: &mut String) {
    for attribute in element.attributes().with_checks(false).flatten() {
        let key: &str = attribute.key.as_ref();
        if key.starts_with("xmlns") {
            continue;
        }
        let value = unescape(&attribute.value).unwrap_or_default();
        let value = clean::decoded(&value).split_whitespace().collect::<Vec<_>>().join(" ");
        if !value.is_empty() {
            lines.push_str(key);
            lines.push_str(": ");
            lines.push_str(&value);
            lines.push('\n');
        }
    }
}

#[derive(Default)]
struct Writer {
    text: String,
    /// For each open element, whether it had text of its own yet: then its children are inline.
    mixed: Vec<bool>,
    wants_line: bool,
    wants_space: bool,
    title: Option<String>,
    /// Depth of the `title` element that is being read.
    title_depth: Option<usize>,
}

impl Writer {
    fn open(&mut self, element: &BytesStart<'_>) {
        self.wants_line |= !self.mixed.last().copied().unwrap_or_default();
        self.mixed.push(false);
        let name = element.local_name();
        let name: &str = name.as_ref();
        if name == "title" && self.title.is_none() {
            self.title = Some(String::new());
            self.title_depth = Some(self.mixed.len());
        }
    }

    fn close(&mut self) {
        if self.title_depth == Some(self.mixed.len()) {
            self.title_depth = None;
        }
        self.mixed.pop();
        self.wants_line |= !self.mixed.last().copied().unwrap_or_default();
    }

    fn text(&mut self, text: &str) {
        let text = &*clean::decoded(text);
        if self.title_depth.is_some()
            && let Some(title) = &mut self.title
        {
            title.push_str(text);
        }
        self.wants_space |= text.starts_with(char::is_whitespace);
        for (n, word) in text.split_whitespace().enumerate() {
            if let Some(mixed) = self.mixed.last_mut() {
                *mixed = true;
            }
            if self.wants_line && !self.text.is_empty() {
                self.text.push('\n');
            } else if (self.wants_space || n > 0) && !self.text.is_empty() {
                self.text.push(' ');
            }
            self.text.push_str(word);
            (self.wants_line, self.wants_space) = (false, false);
        }
        self.wants_space |= text.ends_with(char::is_whitespace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_in_document_order() {
        let rows = [
            ("<a><b>one</b><c>two</c></a>", None, "one\ntwo"),
            ("<p>Some <b>bold</b>, <i>fine</i> text</p>", None, "Some bold, fine text"),
            ("<r><t>R&amp;D &#36864;&#x6b3e; &unknown;</t></r>", None, "R&D 退款 &unknown;"),
            ("<r><![CDATA[a < b]]></r>", None, "a < b"),
            (
                "<?xml version=\"1.0\"?><!-- no --><svg xmlns=\"http://x\"><title>図</title><g><text>返金</text></g></svg>",
                Some("図"),
                "図\n返金",
            ),
            (
                "<rss><channel><title>News</title><item><title>One</title></item></channel></rss>",
                Some("News"),
                "News\nOne",
            ),
            (
                "<r xmlns=\"u\"><s name=\"app\" value=\"Возврат &amp; co\"/></r>",
                None,
                "name: app\nvalue: Возврат & co\n",
            ),
            ("<!DOCTYPE l [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><l>&b;</l>", None, "&b;"),
            ("<a><b>unclosed", None, "unclosed"),
            ("<a>one</b>two</a>", None, "one\ntwo"),
            ("", None, ""),
        ];
        for (xml, title, text) in rows {
            let found = convert(xml);
            assert_eq!((found.title.as_deref(), found.text.as_str()), (title, text), "{xml}");
        }
    }

    #[test]
    fn what_stands_before_a_fault_is_kept() {
        let found = convert("<a>kept</a><b <<<");
        assert_eq!(found.text, "kept");
        assert!(found.broken_at.is_some());
    }

    #[test]
    fn depth_is_no_danger() {
        let deep = "<a>".repeat(200_000) + "deep" + &"</a>".repeat(200_000);
        assert_eq!(convert(&deep).text, "deep");
    }
}
