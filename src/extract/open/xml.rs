//! One walk over a document's XML for all the formats that are made of it.

use quick_xml::Reader;
use quick_xml::escape::{resolve_predefined_entity, unescape};
use quick_xml::events::{BytesStart, Event};

/// What a walk meets. Names are without their prefix.
pub enum Node<'a> {
    Open(&'a str, Attributes<'a>),
    Close(&'a str),
    Text(&'a str),
}

/// An element's attributes, looked up by their name without prefix.
pub struct Attributes<'a>(&'a BytesStart<'a>);

impl Attributes<'_> {
    pub fn get(&self, name: &str) -> Option<String> {
        self.0.attributes().with_checks(false).flatten().find_map(|attribute| {
            let key: &str = attribute.key.as_ref();
            let local = key.rsplit_once(':').map_or(key, |(_, local)| local);
            (local == name).then(|| unescape(&attribute.value).unwrap_or_default().into_owned())
        })
    }

    /// The last attribute of a name, where one with a prefix follows one without.
    pub fn last(&self, name: &str) -> Option<String> {
        let mut attributes = self.0.attributes();
        let all = attributes.with_checks(false).flatten().filter(|attribute| {
            let key: &str = attribute.key.as_ref();
            key.rsplit_once(':').map_or(key, |(_, local)| local) == name
        });
        all.last().map(|attribute| unescape(&attribute.value).unwrap_or_default().into_owned())
    }

    pub fn number(&self, name: &str) -> Option<u32> {
        self.get(name)?.parse().ok()
    }
}

/// Walks a document in order until its end, its first fault, or until the visitor says `false`.
/// Nesting costs nothing: no tree is built.
pub fn walk(xml: &str, mut visit: impl FnMut(Node<'_>) -> bool) {
    let mut reader = Reader::from_str(xml);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    let mut goes_on = true;
    while goes_on {
        goes_on = match reader.read_event() {
            Ok(Event::Start(element)) => {
                visit(Node::Open(element.local_name().as_ref(), Attributes(&element)))
            }
            Ok(Event::Empty(element)) => {
                visit(Node::Open(element.local_name().as_ref(), Attributes(&element)))
                    && visit(Node::Close(element.local_name().as_ref()))
            }
            Ok(Event::End(element)) => visit(Node::Close(element.local_name().as_ref())),
            Ok(Event::Text(text)) => visit(Node::Text(&text.xml10_content())),
            Ok(Event::CData(text)) => visit(Node::Text(&text.xml10_content())),
            Ok(Event::GeneralRef(reference)) => match reference.resolve_char_ref() {
                Ok(Some(c)) => visit(Node::Text(c.encode_utf8(&mut [0; 4]))),
                _ => {
                    let name = reference.xml10_content();
                    resolve_predefined_entity(&name).is_none_or(|text| visit(Node::Text(text)))
                }
            },
            Ok(Event::Eof) | Err(_) => false,
            Ok(_) => true,
        };
    }
}

/// The text of the first element of a name.
pub fn text_of(xml: &str, wanted: &str) -> Option<String> {
    let (mut text, mut inside) = (String::new(), false);
    walk(xml, |node| match node {
        Node::Open(name, _) => {
            inside |= name == wanted;
            true
        }
        Node::Close(name) => !(inside && name == wanted),
        Node::Text(words) => {
            if inside {
                text.push_str(words);
            }
            true
        }
    });
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
