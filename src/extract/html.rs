//! HTML → Markdown-like text with headings, lists, tables and code.
//!
//! Works on the tokens of html5ever's tokenizer, without a tree: one pass, linear, and nesting of
//! any depth costs nothing. Text isn't escaped, so `snake_case` stays a word that can be found.

mod convert;
mod elements;
mod out;
mod table;

use html5ever::tokenizer::{BufferQueue, Tokenizer, TokenizerOpts};

use super::outline::Outline;
use convert::Sink;

/// The text of an HTML document.
#[derive(Debug, Default, PartialEq)]
pub struct Html {
    pub outline: Outline,
    pub text: String,
    /// Whether the markup was such that only its tags were taken out.
    pub stripped: bool,
}

/// Converts a document. Scripts, styles and navigation go, unless nothing else would be left.
pub fn convert(html: &str) -> Html {
    if has_attribute_flood(html) {
        return strip(html);
    }
    let found = tokenize(html, true);
    if !found.text.is_empty() {
        return found;
    }
    let found = tokenize(html, false);
    if !found.text.is_empty() {
        return found;
    }
    strip(html)
}

fn tokenize(html: &str, skip_navigation: bool) -> Html {
    let input = BufferQueue::default();
    input.push_back(html.into());
    let tokenizer = Tokenizer::new(Sink::new(skip_navigation), TokenizerOpts::default());
    // The sink never asks for a script to be run, so one call reads everything.
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.into_html()
}

/// Most attributes of one tag; the tokenizer compares each with all before it.
const MAX_ATTRIBUTES: usize = 128;

fn has_attribute_flood(html: &str) -> bool {
    let bytes = html.as_bytes();
    let mut at = 0;
    while let Some(open) = find(bytes, at, b'<') {
        at = open + 1;
        if !bytes.get(at).is_some_and(|b| b.is_ascii_alphabetic() || *b == b'/') {
            continue;
        }
        let mut attributes = 0;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'>' => break,
                b'"' | b'\'' if bytes[..at - 1].trim_ascii_end().ends_with(b"=") => {
                    at = find(bytes, at, byte).map_or(bytes.len(), |end| end + 1);
                    attributes += 1;
                }
                b' ' | b'\t' | b'\n' | b'\r' | b'\x0c' | b'/'
                    if !bytes.get(at).is_some_and(|b| b.is_ascii_whitespace()) =>
                {
                    attributes += 1;
                }
                _ => {}
            }
            if attributes > 2 * MAX_ATTRIBUTES {
                return true;
            }
        }
    }
    false
}

fn find(bytes: &[u8], from: usize, byte: u8) -> Option<usize> {
    bytes.get(from..)?.iter().position(|b| *b == byte).map(|at| from + at)
}

/// The last resort: everything between tags, but for scripts and styles that end.
fn strip(html: &str) -> Html {
    let mut text = String::new();
    let mut rest = html;
    let mut has_end = true;
    while !rest.is_empty() {
        let (visible, tag) = rest.split_once('<').unwrap_or((rest, ""));
        for word in visible.split_whitespace() {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(word);
        }
        rest = tag.split_once('>').map_or("", |(_, after)| after);
        for raw in ["script", "style"] {
            let is_raw = tag.get(..raw.len()).is_some_and(|name| name.eq_ignore_ascii_case(raw));
            if is_raw && has_end {
                match rest.split_once("</") {
                    Some((_, after)) => rest = after.split_once('>').map_or("", |(_, after)| after),
                    None => has_end = false,
                }
            }
        }
    }
    Html { text, stripped: true, ..Html::default() }
}

#[cfg(test)]
mod tests;
