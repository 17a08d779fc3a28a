//! Text that is too large for one atom → where text-splitter cuts it.

use std::ops::Range;

use text_splitter::{ChunkConfig, ChunkSizer, MarkdownSplitter, TextSplitter};

use super::tokens;

/// A piece ends at the first of the best boundaries that fit above the lower bound. Both are
/// tokens.
const PIECE: std::ops::RangeInclusive<usize> = 60..=120;
/// No piece costs more.
pub(super) const LARGEST: u64 = *PIECE.end() as u64 * tokens::UNIT;
/// What text-splitter is given at once, in bytes and in line breaks: it takes more than linear time
/// for text without breaks, and for many tiny lines.
const WINDOW: usize = 2 << 10;
const WINDOW_LINES: usize = 64;

/// Measures text as the rest of the chunker does.
struct Tokens;

impl ChunkSizer for Tokens {
    fn size(&self, chunk: &str) -> usize {
        tokens::tokens(chunk)
    }
}

pub(super) struct Cutter {
    markdown: MarkdownSplitter<Tokens>,
    text: TextSplitter<Tokens>,
}

impl Cutter {
    pub(super) fn new() -> Self {
        // Untrimmed, pieces partition the text.
        let config = || ChunkConfig::new(PIECE).with_sizer(Tokens).with_trim(false);
        Self { markdown: MarkdownSplitter::new(config()), text: TextSplitter::new(config()) }
    }

    /// The ends of the pieces of a range: of prose in Markdown at blocks, else at inline elements
    /// and lines; of other text at empty lines, else lines, sentences, words, graphemes.
    ///
    /// The range is cut window by window. Where a window ends is no place for a cut, so the piece
    /// before begins the next window.
    pub(super) fn ends(&self, text: &str, range: Range<usize>, is_prose: bool) -> Vec<usize> {
        let mut ends = vec![];
        let mut at = range.start;
        while at < range.end {
            let window = window(&text[at..range.end]);
            let end = at + window.len();
            let before = ends.len();
            let end_of = |(start, piece): (usize, &str)| at + start + piece.len();
            if is_prose {
                ends.extend(self.markdown.chunk_indices(window).map(end_of));
            } else {
                ends.extend(self.text.chunk_indices(window).map(end_of));
            }
            if end < range.end && ends.len() > before + 1 {
                ends.pop();
            }
            at = ends[before..].last().copied().unwrap_or(end);
        }
        ends
    }
}

fn window(text: &str) -> &str {
    let mut len = text.len().min(WINDOW);
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    let window = &text[..len];
    let mut breaks = window.bytes().enumerate().filter(|(_, byte)| matches!(byte, b'\n' | b'\r'));
    breaks.nth(WINDOW_LINES - 1).map_or(window, |(at, _)| &window[..=at])
}
