//! The values of one line of JSON, written with their paths.

use crate::extract::flat;

/// A value of the line that is being read.
pub struct Entry {
    pub above: String,
    pub kind: Kind,
    /// Whether its position in an array is left out.
    pub is_terse: bool,
    pub value: String,
}

pub enum Kind {
    Member(String),
    /// An object or an array without anything in it.
    Empty,
    Element {
        serial: usize,
        first: usize,
        last: usize,
        is_whole: bool,
    },
    Comment,
}

/// Writes what a line holds.
pub fn write(entries: &[Entry], out: &mut String) {
    let mut base: Option<&str> = None;
    for entry in entries.iter().filter(|entry| !matches!(entry.kind, Kind::Comment)) {
        base = Some(base.map_or(&*entry.above, |base| shared(base, &entry.above)));
    }
    let base = base.unwrap_or_default();
    let mut is_first = true;
    for (n, entry) in entries.iter().enumerate() {
        let is_comment = matches!(entry.kind, Kind::Comment);
        let name = entry.name();
        // After the first one, what they share isn't said again.
        let name = if is_first { &*name } else { name.strip_prefix(base).unwrap_or(&name) };
        is_first &= is_comment;
        if n > 0 {
            out.push_str(if is_comment { "  " } else { "; " });
        }
        out.push_str(name);
        if !name.is_empty() {
            out.push_str(if entry.value.is_empty() { ":" } else { ": " });
        }
        out.push_str(&entry.value);
    }
}

impl Entry {
    fn name(&self) -> String {
        let above = &self.above;
        match &self.kind {
            Kind::Comment => String::new(),
            Kind::Empty => above.clone(),
            Kind::Member(key) => joined(above, key),
            Kind::Element { .. } if self.is_terse => above.clone(),
            Kind::Element { is_whole: true, first, last, .. } if first < last => above.clone(),
            Kind::Element { first, last, .. } if first == last => format!("{above}[{first}]"),
            Kind::Element { first, last, .. } => format!("{above}[{first}…{last}]"),
        }
    }
}

/// A key below a path, which is empty for a value that stands alone.
fn joined(above: &str, key: &str) -> String {
    if key.is_empty() { above.to_owned() } else { flat::joined(above, key) }
}

/// The steps that two paths share at their beginning.
fn shared<'a>(a: &'a str, b: &str) -> &'a str {
    let is_end =
        |path: &str, at: usize| path[at..].is_empty() || path[at..].starts_with(['.', '[']);
    let same = a.char_indices().zip(b.chars()).find(|((_, a), b)| a != b).map(|((at, _), _)| at);
    let mut at = same.unwrap_or(a.len().min(b.len()));
    while at > 0 && !(a.is_char_boundary(at) && is_end(a, at) && is_end(b, at)) {
        at -= 1;
    }
    &a[..at]
}
