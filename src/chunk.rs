//! Document → chunks: passages of about 400 tokens with heading path and span.
//!
//! A part is cut at its headings and pages into sections. A section that is small enough stays
//! whole; another one is taken apart into atoms that are packed again into even pieces. Its lines tell
//! what belongs together (a fence, a table, a record), and text-splitter cuts prose and whatever else is
//! too large. A piece that begins within a table, a fence or a list carries the header row, the opening or
//! the items above it as its lead. At last tiny neighbours are put together. Every step is linear in the text, also without
//! any break in it.
//!
//! Knows of the extract room only the registry of types and what a fence is. Must not know servers,
//! the index or the clock.

mod atoms;
mod cutter;
mod items;
mod merge;
mod noise;
mod pack;
mod tokens;

use std::ops::Range;

use crate::extract::mime::{self, Kind};
use crate::model::{Chunk, Document, Format, Part};
use merge::{Merger, Piece};
use tokens::UNIT;

/// Changes whenever the same document gives other chunks; part of the index's fingerprint.
pub const VERSION: u32 = 4;

/// A section of at most this cost stays whole, and larger ones are cut into the fewest pieces that
/// are not above it, which makes them about 400 tokens.
const WHOLE: u64 = 500 * UNIT;
/// No chunk costs more.
const CAP: u64 = 800 * UNIT;
/// Smaller pieces are put together with a neighbour.
const SMALL: u64 = 80 * UNIT;

/// Cuts a document into chunks that partition the text of each part. An empty document has none.
pub fn chunk(document: &Document) -> Vec<Chunk> {
    let has_header = mime::kind_of_type(&document.mime_type) == Some(Kind::Csv);
    document.parts.iter().flat_map(|part| chunk_part(part, has_header)).collect()
}

/// Estimates a text's length in tokens (of o200k) by script, without a vocabulary.
pub fn estimate_tokens(text: &str) -> usize {
    tokens::tokens(text)
}

fn chunk_part(part: &Part, has_header: bool) -> Vec<Chunk> {
    let text = part.text.as_str();
    let mut merger = Merger::default();
    let mut atoms = vec![];
    for section in sections(part) {
        let range = section.range.clone();
        let cost = tokens::cost(&text[range.clone()]);
        if cost <= WHOLE {
            let bare = section.is_bare(text);
            let (path, page) = (section.path, section.page);
            merger.push(Piece { range, cost, path, page, lead: vec![], bare });
            continue;
        }
        atoms.clear();
        let header = has_header && part.format == Format::Lines && range.start == 0;
        atoms::split(text, range, part.format, header, &mut atoms);
        let pieces = pack::pack(section.range.start, &atoms);
        let starts: Vec<usize> = pieces.iter().map(|piece| piece.range.start).collect();
        let parents = match part.format {
            Format::Markdown => items::parents(text, section.range.clone(), &starts),
            _ => vec![],
        };
        let parents = parents.into_iter().chain(std::iter::repeat_with(Vec::new));
        for (piece, mut lead) in pieces.into_iter().zip(parents) {
            let path = section.path.clone();
            lead.extend(piece.lead);
            merger.push(Piece {
                range: piece.range,
                cost: piece.cost,
                path,
                page: section.page,
                lead,
                bare: false,
            });
        }
    }
    finish(part, merger.finish())
}

/// What stands between two headings or page breaks.
struct Section {
    range: Range<usize>,
    /// Positions in the part's headings, the topmost first; the section's own heading is the last.
    path: Vec<u32>,
    /// How many pages began before it, its own included.
    page: u32,
    has_heading: bool,
}

impl Section {
    /// Whether the section is a heading (of one line, or of two with an underline) and nothing else.
    fn is_bare(&self, text: &str) -> bool {
        let body = text[self.range.clone()].split_once('\n').map_or("", |(_, body)| body);
        self.has_heading
            && body.trim_matches(|c: char| c.is_whitespace() || "=-~".contains(c)).is_empty()
    }
}

fn sections(part: &Part) -> Vec<Section> {
    let text = part.text.as_str();
    let mut sections: Vec<Section> = vec![];
    let mut begin = |at: usize, path: &[u32], page: u32, has_heading: bool| {
        if let Some(last) = sections.last_mut() {
            last.range.end = at;
            if last.range.is_empty() {
                sections.pop();
            }
        }
        sections.push(Section { range: at..text.len(), path: path.to_vec(), page, has_heading });
    };
    begin(0, &[], 0, false);
    let mut page = 0;
    let mut path: Vec<u32> = vec![];
    let mut pages = part.pages.iter().map(|page| page.at).peekable();
    let mut last = 0;
    let is_break = |at: usize, last: usize| at >= last && text.is_char_boundary(at);
    for (n, heading) in part.headings.iter().enumerate() {
        while let Some(at) = pages.next_if(|at| *at <= heading.at) {
            if is_break(at, last) {
                page += 1;
                begin(at, &path, page, false);
                last = at;
            }
        }
        if !is_break(heading.at, last) {
            continue;
        }
        while path.last().is_some_and(|n| part.headings[*n as usize].level >= heading.level) {
            path.pop();
        }
        path.push(n as u32);
        begin(heading.at, &path, page, true);
        last = heading.at;
    }
    for at in pages {
        if is_break(at, last) {
            page += 1;
            begin(at, &path, page, false);
            last = at;
        }
    }
    sections.retain(|section| !section.range.is_empty());
    sections
}

/// Gives pieces their lines, page, noise and text.
fn finish(part: &Part, pieces: Vec<Piece>) -> Vec<Chunk> {
    let text = part.text.as_str();
    let noise = noise::find(text);
    let mut noise = noise.as_slice();
    let mut line = 1;
    let mut pages = part.pages.iter().peekable();
    let mut page = None;
    let mut chunks = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let Range { start, end } = piece.range;
        let slice = &text[start..end];
        while let Some(next) = pages.next_if(|next| next.at <= start) {
            page = Some(next.number);
        }
        let breaks = slice.matches('\n').count() as u32;
        // A line break belongs to the line that it ends.
        let last_line = line + breaks - u32::from(slice.ends_with('\n'));
        while noise.first().is_some_and(|range| range.end <= start) {
            noise = &noise[1..];
        }
        let inside = noise.iter().take_while(|range| range.start < end);
        chunks.push(Chunk {
            part: part.index,
            heading_path: piece
                .path
                .iter()
                .map(|n| part.headings[*n as usize].text.clone())
                .collect(),
            lines: (line, last_line),
            bytes: start as u32..end as u32,
            page,
            text: slice.to_owned(),
            lead: (!piece.lead.is_empty())
                .then(|| piece.lead.into_iter().map(|range| &text[range]).collect()),
            noise: inside
                .map(|range| {
                    (range.start.max(start) - start) as u32..(range.end.min(end) - start) as u32
                })
                .collect(),
        });
        line += breaks;
    }
    chunks
}

#[cfg(test)]
mod tests;
