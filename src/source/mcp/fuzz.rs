//! What must hold of whatever a server sends: its bytes, its pages, its templates.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::framing::{self, Frame};
use super::listing;
use super::template;
use super::transport::lines::{Endless, Line, Lines};
use crate::config::Limits;
use crate::model::Listing;

/// Bytes of a connection: cut into lines wherever they are torn, and each line sorted.
pub fn frames(data: &[u8]) {
    /// Shorter than what is kept of a long line, so that all paths are taken.
    const LIMIT: usize = 1_100;
    let cut = |size: usize| {
        let (mut lines, mut all) = (Lines::new(LIMIT), vec![]);
        let fed: Result<(), Endless> =
            data.chunks(size).try_for_each(|piece| lines.feed(piece, &mut |line| all.push(line)));
        all.extend(lines.rest().filter(|_| fed.is_ok()));
        (all, fed)
    };
    let whole = cut(data.len().max(1));
    for size in [1, 7, 1_500] {
        let (lines, fed) = cut(size);
        let short = |line: &Line| matches!(line, Line::Whole(_));
        assert_eq!(fed, whole.1, "whether it ends doesn't hang on how it is torn");
        assert!(
            lines.iter().filter(|line| short(line)).eq(whole.0.iter().filter(|line| short(line))),
            "torn into pieces of {size} bytes it has other lines"
        );
    }
    for line in &whole.0 {
        let Line::Whole(line) = line else { continue };
        for depth in [4, 128] {
            sorted(line, depth);
        }
    }
    // What HTTP hands over isn't cut into lines.
    sorted(data, 128);
}

fn sorted(bytes: &[u8], max_depth: usize) {
    let frames = framing::sort(bytes, max_depth);
    assert!(frames.len() <= bytes.len(), "there are more messages than bytes");
    for frame in &frames {
        let Frame::Message(message) = frame else { continue };
        let fields = message.as_object();
        assert!(fields.is_some_and(|fields| fields.contains_key("jsonrpc")), "{message}");
        let answers = fields.is_some_and(|fields| !fields.contains_key("method"));
        if answers && message.get("error").is_none() {
            let id = &message["id"];
            assert!(id.is_number() || id.is_string(), "it answers nothing: {message}");
        }
        let again: Result<Value, _> = serde_json::from_str(&message.to_string());
        assert!(
            again.is_ok_and(|again| same(&again, message)),
            "it can be written and read: {message}"
        );
    }
}

/// Whether two values are equal, but for the last digits of a number, which reading may round.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => match (a.as_f64(), b.as_f64()) {
            (Some(x), Some(y)) => a == b || (x - y).abs() <= x.abs() * 1e-12,
            _ => a == b,
        },
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && same(a.1, b.1))
        }
        _ => a == b,
    }
}

/// The pages of both lists.
pub fn listings(data: &[u8]) {
    let Ok(page) = serde_json::from_slice::<Value>(data) else { return };
    let limits = Limits { max_uri_bytes: 64, max_name_bytes: 16, ..Limits::default() };
    let mut listing = Listing::default();
    let (items, _) = listing::split_page(page.clone(), "resources");
    let items = items.unwrap_or_default();
    let uris: HashSet<&str> = items
        .iter()
        .filter_map(|item| item.get("uri")?.as_str())
        .filter(|uri| !uri.is_empty() && uri.len() <= limits.max_uri_bytes)
        .collect();
    listing::add_resources(&mut listing, items.clone(), &limits);
    let listed: HashSet<&str> = listing.resources.iter().map(|resource| &*resource.uri).collect();
    assert_eq!(listed, uris, "every good URI is listed");
    assert_eq!(listed.len(), listing.resources.len(), "each once");
    for resource in &listing.resources {
        assert!(resource.name.len() <= limits.max_name_bytes);
        assert!(resource.priority.is_none_or(|priority| (0.0..=1.0).contains(&priority)));
    }
    let (templates, _) = listing::split_page(page, "resourceTemplates");
    let templates = templates.unwrap_or_default();
    let (count, told) = (templates.len(), listing.problems.len());
    listing::add_templates(&mut listing, templates);
    assert_eq!(listing.templates.len() + listing.problems.len() - told, count);
}

/// A template in the first line, and `name=value` in the others.
pub fn templates(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.lines();
    let template = lines.next().unwrap_or_default();
    let mut values: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let Ok(names) = template::variables(template) else {
        assert!(template::expand(template, &values).is_err(), "one reading of templates");
        return;
    };
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "each variable once");
    for name in &names {
        assert!(template.contains(name.as_str()));
        values.entry(name.clone()).or_insert_with(|| "值/ 1".into());
    }
    let Ok(uri) = template::expand(template, &values) else { return };
    assert!(!uri.contains(char::is_whitespace), "{template:?} gives {uri:?}");
    // Each variable may stand in it any number of times, each byte as three.
    let longest = values.values().map(String::len).max().unwrap_or_default();
    assert!(uri.len() <= (template.len() + 1) * (3 * longest + 3), "{template:?} explodes");
}
