//! The best window of a passage, with what matched highlighted. Pure.
//!
//! A text is cut into sentences (a line's end ends one too, which keeps code as lines), and the window
//! is the run of whole sentences that shows the most of the query's words, the rare ones first. A sentence
//! that is longer than the window is cut at spaces or, where a script has none, between words.

use std::borrow::Cow;
use std::ops::Range;

use icu_segmenter::options::{SentenceBreakInvariantOptions, WordBreakInvariantOptions};
use icu_segmenter::{SentenceSegmenter, WordSegmenter};

use crate::index::Match;

/// Longest snippet, in characters.
pub const MAX_CHARS: usize = 400;
/// About how long the pieces of an overlong sentence are, in characters; less in a small window.
const PIECE_CHARS: usize = 80;
/// Marks text that was cut within a sentence.
const ELLIPSIS: &str = "…";
/// Words that tell less than this share of the best one that matched aren't highlighted.
const MIN_WEIGHT: f32 = 0.15;

/// A text to show, safe to print.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snippet {
    pub text: String,
    /// Unicode scalar values of `text`, in order, not overlapping.
    pub highlights: Vec<(u32, u32)>,
    /// Bytes of the original that are shown.
    pub bytes: Range<usize>,
}

/// Cuts the best window of at most `max_chars` characters out of a text.
///
/// Shows at least one match whenever there is one.
pub fn cut(text: &str, matches: &[Match], max_chars: usize) -> Snippet {
    // The marks at both ends count.
    let room = max_chars.saturating_sub(2).max(1);
    let matches = telling(matches);
    let units = units(text, &matches, room);
    let Some(window) = best_window(&units, &matches, room) else { return Snippet::default() };
    let whole = units[window.start].bytes.start..units[window.end - 1].bytes.end;
    let bytes = trim(text, whole.clone(), room);
    let cut_after = units.get(window.end).is_some_and(|next| next.cut_before)
        || !text[bytes.end..whole.end].trim().is_empty();

    let mut shown = Shown::default();
    if units[window.start].cut_before {
        shown.push_plain(ELLIPSIS);
    }
    shown.push(text, bytes.clone(), &matches);
    if cut_after {
        shown.push_plain(ELLIPSIS);
    }
    Snippet { text: shown.text, highlights: shown.highlights, bytes }
}

/// The best window of a snippet, for those who have less room; `highlights` as in [`Snippet`].
pub fn shorten(snippet: &str, highlights: &[(usize, usize)], max_chars: usize) -> String {
    let starts: Vec<usize> =
        snippet.char_indices().map(|(at, _)| at).chain([snippet.len()]).collect();
    let mut words: Vec<String> = vec![];
    let matches = highlights.iter().filter_map(|(from, to)| {
        let bytes = *starts.get(*from)?..*starts.get(*to)?;
        let word = snippet.get(bytes.clone())?.to_lowercase();
        let known = words.iter().position(|other| *other == word);
        let number = known.unwrap_or(words.len());
        if known.is_none() {
            words.push(word);
        }
        Some(Match { bytes, word: number as u32, weight: 1.0 })
    });
    let matches: Vec<Match> = matches.collect();
    cut(snippet, &matches, max_chars).text
}

/// Joins snippets of different texts, one below the other; the place is the second's.
pub fn below(first: Snippet, second: Snippet) -> Snippet {
    if first.text.is_empty() || second.text.is_empty() {
        return if first.text.is_empty() { second } else { first };
    }
    let shift = first.text.chars().count() as u32 + 1;
    let mut highlights = first.highlights;
    highlights.extend(second.highlights.iter().map(|(from, to)| (from + shift, to + shift)));
    Snippet { text: format!("{}\n{}", first.text, second.text), highlights, bytes: second.bytes }
}

/// Whether a character may be shown. Controls could steer a terminal; bidirectional controls,
/// zero-width and tag characters could hide text from people that a model reads.
pub fn is_shown(c: char) -> bool {
    match c {
        '\t' | '\n' => true,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{feff}' => false,
        '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{e0000}'..='\u{e007f}' => false,
        _ => !c.is_control(),
    }
}

/// The text without what may not be shown.
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_shown) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.chars().filter(|c| is_shown(*c)).collect())
    }
}

/// The matches worth showing: of common words only when nothing better matched.
fn telling(matches: &[Match]) -> Vec<&Match> {
    let best = matches.iter().map(|found| found.weight).fold(0.0, f32::max);
    matches.iter().filter(|found| found.weight >= best * MIN_WEIGHT).collect()
}

/// The sentences of a text as bytes, overlong ones in pieces of about `most` characters.
pub fn sentences(text: &str, most: usize) -> Vec<Range<usize>> {
    units(text, &[], most).into_iter().map(|unit| unit.bytes).collect()
}

/// What a window is made of.
struct Unit {
    bytes: Range<usize>,
    chars: usize,
    /// Whether it begins within a sentence.
    cut_before: bool,
}

fn units(text: &str, matches: &[&Match], room: usize) -> Vec<Unit> {
    let segmenter = SentenceSegmenter::new(SentenceBreakInvariantOptions::default());
    let mut units = vec![];
    let mut start = 0;
    for end in segmenter.segment_str(text).filter(|end| *end > 0) {
        let chars = text[start..end].chars().count();
        if chars <= room {
            units.push(Unit { bytes: start..end, chars, cut_before: false });
        } else {
            pieces(text, start..end, matches, PIECE_CHARS.min(room.div_ceil(3)), &mut units);
        }
        start = end;
    }
    units
}

/// Cuts an overlong sentence: at a space where there is one, else between words, else anywhere (a
/// piece has to fit the window), and never within a match of sane length.
fn pieces(
    text: &str,
    sentence: Range<usize>,
    matches: &[&Match],
    length: usize,
    units: &mut Vec<Unit>,
) {
    let mut from = sentence.start;
    let mut chars = 0;
    // End of the match that covers the place, if any: pieces aren't cut before it.
    let mut uncut = 0;
    let mut next_match = matches.partition_point(|found| found.bytes.start < sentence.start);
    let mut after_space = false;
    let segmenter = WordSegmenter::new_dictionary(WordBreakInvariantOptions::default());
    let mut breaks = segmenter.segment_str(&text[sentence.clone()]).peekable();
    for (at, c) in text[sentence.clone()].char_indices() {
        while breaks.next_if(|found| *found < at).is_some() {}
        let between_words = breaks.peek() == Some(&at);
        let at = sentence.start + at;
        while let Some(found) = matches.get(next_match).filter(|found| found.bytes.start < at) {
            uncut = uncut.max(found.bytes.end);
            next_match += 1;
        }
        let long = chars >= length && after_space
            || chars >= length + length / 2 && between_words
            || chars >= 2 * length;
        if long && at >= uncut || chars >= 4 * length {
            units.push(Unit { bytes: from..at, chars, cut_before: from > sentence.start });
            (from, chars) = (at, 0);
        }
        chars += 1;
        after_space = c.is_whitespace() || matches!(c, '，' | '、' | '；' | '：');
    }
    let cut_before = from > sentence.start;
    units.push(Unit { bytes: from..sentence.end, chars, cut_before });
}

/// The run of units that shows the most, as numbers of units.
fn best_window(units: &[Unit], matches: &[&Match], room: usize) -> Option<Range<usize>> {
    let mut best: Option<(f32, Range<usize>)> = None;
    for start in 0..units.len() {
        let window = start..grow(units, start, room);
        let value = value(units, &window, matches);
        // Of equal windows the one that begins with the match: what follows it says most about it.
        if best.as_ref().is_none_or(|(old, _)| value > *old || value == *old && value > 0.0) {
            best = Some((value, window));
        }
    }
    let (most, mut window) = best?;
    // A match within a sentence needs what comes right before it, too.
    if units[window.start].cut_before {
        let earlier = window.start - 1..grow(units, window.start - 1, room);
        if value(units, &earlier, matches) >= most {
            window = earlier;
        }
    }
    // Room that the end of the text left goes to what stands before.
    let mut chars: usize = units[window.clone()].iter().map(|unit| unit.chars).sum();
    while window.start > 0 && chars + units[window.start - 1].chars <= room {
        window.start -= 1;
        chars += units[window.start].chars;
    }
    Some(window)
}

/// How much of the query a window shows.
fn value(units: &[Unit], window: &Range<usize>, matches: &[&Match]) -> f32 {
    let bytes = units[window.start].bytes.start..units[window.end - 1].bytes.end;
    let first = matches.partition_point(|found| found.bytes.start < bytes.start);
    let mut seen: Vec<(u32, u32)> = vec![];
    let mut value = 0.0;
    for found in matches[first..].iter().take_while(|found| found.bytes.start < bytes.end) {
        let known = seen.iter().position(|(word, _)| *word == found.word);
        let at = known.unwrap_or_else(|| {
            seen.push((found.word, 0));
            seen.len() - 1
        });
        seen[at].1 += 1;
        // Seeing a word again tells little more.
        value += match seen[at].1 {
            1 => found.weight.max(f32::MIN_POSITIVE),
            2..=3 => found.weight * 0.1,
            _ => 0.0,
        };
    }
    value
}

/// The end of the longest window from a unit on; at least that unit itself.
fn grow(units: &[Unit], start: usize, room: usize) -> usize {
    let mut chars = units[start].chars;
    let mut end = start + 1;
    while let Some(unit) = units.get(end).filter(|unit| chars + unit.chars <= room) {
        chars += unit.chars;
        end += 1;
    }
    end
}

/// Without empty lines at its beginning and space at its end; the indentation of code stays.
fn trim(text: &str, bytes: Range<usize>, room: usize) -> Range<usize> {
    let shown = &text[bytes.clone()];
    let content = shown.len() - shown.trim_start().len();
    let line = shown[..content].rfind('\n').map_or(0, |newline| newline + 1);
    let start = bytes.start + line;
    let shown = text[start..bytes.end].trim_end();
    let end = shown.char_indices().nth(room).map_or(shown.len(), |(at, _)| at);
    start..start + end
}

/// Text as it is shown, built up.
#[derive(Default)]
struct Shown {
    text: String,
    chars: u32,
    highlights: Vec<(u32, u32)>,
}

impl Shown {
    fn push_plain(&mut self, text: &str) {
        self.text.push_str(text);
        self.chars += text.chars().count() as u32;
    }

    /// Adds a piece of a text without what may not be shown, and its highlights.
    fn push(&mut self, text: &str, bytes: Range<usize>, matches: &[&Match]) {
        let marked = merged(matches, &bytes);
        let mut marked = marked.iter().peekable();
        let mut open = None;
        for (at, c) in text[bytes.clone()].char_indices() {
            let at = bytes.start + at;
            if let (Some(from), Some(range)) = (open, marked.peek())
                && at >= range.end
            {
                self.highlight(from);
                open = None;
                marked.next();
            }
            if open.is_none() && marked.peek().is_some_and(|range| range.start <= at) {
                open = Some(self.chars);
            }
            if is_shown(c) {
                self.text.push(c);
                self.chars += 1;
            }
        }
        if let Some(from) = open {
            self.highlight(from);
        }
    }

    fn highlight(&mut self, from: u32) {
        if from < self.chars {
            self.highlights.push((from, self.chars));
        }
    }
}

/// The matches within a range, overlapping and touching ones as one.
fn merged(matches: &[&Match], bytes: &Range<usize>) -> Vec<Range<usize>> {
    let mut merged: Vec<Range<usize>> = vec![];
    for found in matches {
        let range = found.bytes.start.max(bytes.start)..found.bytes.end.min(bytes.end);
        if range.is_empty() {
            continue;
        }
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests;
