//! Parts of a text: lines, a budget of tokens, an outline. Pure.
//!
//! Tokens are counted by whoever asks. A line ends with `\n` and belongs to it; lines count from 1.

use super::api::OutlineItem;
use crate::model::Heading;

/// Lines from `first` to `last`, both inclusive; to the end without `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    pub first: u32,
    pub last: Option<u32>,
}

impl Lines {
    pub const ALL: Self = Self { first: 1, last: None };

    /// Takes `A-B`, `A-` or `A`.
    ///
    /// # Errors
    /// What is expected instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|line| *line > 0);
        let lines = match text.split_once('-') {
            None => number(text).map(|line| Self { first: line, last: Some(line) }),
            Some((first, last)) if last.trim().is_empty() => {
                number(first).map(|first| Self { first, last: None })
            }
            Some((first, last)) => number(first)
                .zip(number(last))
                .filter(|(first, last)| first <= last)
                .map(|(first, last)| Self { first, last: Some(last) }),
        };
        lines.ok_or_else(|| format!("lines: A-B, A- or A with 1 ≤ A ≤ B, not {text:?}"))
    }

    /// These lines of `text`; the empty text where it has fewer.
    pub fn of<'a>(&self, text: &'a str) -> &'a str {
        let after = |line: u32| {
            if line == 0 {
                return 0;
            }
            text.match_indices('\n').nth(line as usize - 1).map_or(text.len(), |(at, _)| at + 1)
        };
        &text[after(self.first - 1)..self.last.map_or(text.len(), after)]
    }
}

/// What fits of a text into a budget.
#[derive(Debug, PartialEq, Eq)]
pub struct Cut<'a> {
    pub text: &'a str,
    pub tokens: usize,
    /// Lines that fitted as a whole; text is left out where that isn't all of them.
    pub whole_lines: u32,
    pub complete: bool,
}

/// Whole lines of `text` as far as `max_tokens` go, or a piece of the first one if that alone is
/// too long.
pub fn budget<'t>(text: &'t str, max_tokens: usize, count: &dyn Fn(&str) -> usize) -> Cut<'t> {
    let (mut at, mut tokens, mut whole_lines) = (0, 0, 0);
    for line in text.split_inclusive('\n') {
        let more = count(line);
        if tokens + more > max_tokens {
            if at == 0 {
                let piece = longest_prefix(line, max_tokens, count);
                let tokens = count(piece);
                return Cut { text: piece, tokens, whole_lines, complete: false };
            }
            return Cut { text: &text[..at], tokens, whole_lines, complete: false };
        }
        (at, tokens, whole_lines) = (at + line.len(), tokens + more, whole_lines + 1);
    }
    Cut { text, tokens, whole_lines, complete: true }
}

/// The last character boundary at or before byte `at`.
pub fn floor(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// By halving: the count grows with the text, or nearly so.
fn longest_prefix<'t>(line: &'t str, max_tokens: usize, count: &dyn Fn(&str) -> usize) -> &'t str {
    // No token is longer than some hundred bytes, so what is far beyond needn't be counted.
    let (mut fits, mut over) = (0, line.len().min(max_tokens.saturating_mul(256)) + 1);
    while over - fits > 1 {
        let middle = floor(line, fits + (over - fits) / 2);
        if middle <= fits {
            break;
        }
        if count(&line[..middle]) <= max_tokens { fits = middle } else { over = middle }
    }
    &line[..fits]
}

/// Leaves out the deepest headings until the others cost no more than `max_tokens`; all of them if
/// even the topmost do.
pub fn shallow(mut items: Vec<OutlineItem>, max_tokens: usize) -> Vec<OutlineItem> {
    // With its numbers, about what one heading costs.
    let cost = |item: &OutlineItem| crate::chunk::estimate_tokens(&item.heading) + 12;
    while items.iter().map(cost).sum::<usize>() > max_tokens {
        let deepest = items.iter().map(|item| item.level).max().unwrap_or_default();
        items.retain(|item| item.level < deepest);
    }
    items
}

/// The headings of a text, each with the lines up to the next one.
pub fn outline(
    text: &str,
    headings: &[Heading],
    part: Option<u32>,
    count: &dyn Fn(&str) -> usize,
) -> Vec<OutlineItem> {
    let mut items = Vec::with_capacity(headings.len());
    // Lines are counted on the way, once over the text.
    let (mut counted, mut line) = (0, 1_u32);
    for (n, heading) in headings.iter().enumerate() {
        let at = floor(text, heading.at).max(counted);
        let end = headings.get(n + 1).map_or(text.len(), |next| next.at);
        let end = floor(text, end).max(at);
        let newlines = |from: usize, to: usize| {
            u32::try_from(text[from..to].matches('\n').count()).unwrap_or(u32::MAX)
        };
        line += newlines(counted, at);
        let body = &text[at..end];
        let lines = newlines(at, end) + u32::from(!body.is_empty() && !body.ends_with('\n'));
        items.push(OutlineItem {
            level: heading.level,
            heading: heading.text.clone(),
            start_line: line,
            end_line: line + lines.saturating_sub(1),
            tokens: count(body),
            part,
        });
        counted = at;
    }
    items
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chunk::estimate_tokens;

    #[test]
    fn lines_are_parsed() {
        for (text, expected) in [
            ("3-7", Some((3, Some(7)))),
            (" 3 - 7 ", Some((3, Some(7)))),
            ("3-", Some((3, None))),
            ("3", Some((3, Some(3)))),
            ("0-3", None),
            ("7-3", None),
            ("-3", None),
            ("", None),
            ("a-b", None),
            ("1-2-3", None),
            ("99999999999", None),
        ] {
            let lines = Lines::parse(text).ok().map(|lines| (lines.first, lines.last));
            assert_eq!(lines, expected, "{text:?}");
        }
    }

    #[test]
    fn lines_are_cut() {
        let text = "退款\nสวัสดี\n\nlast";
        for (lines, expected) in [
            ("1", "退款\n"),
            ("2-3", "สวัสดี\n\n"),
            ("3-", "\nlast"),
            ("4-99", "last"),
            ("5", ""),
            ("1-", text),
        ] {
            assert_eq!(Lines::parse(lines).unwrap().of(text), expected, "{lines}");
        }
        assert_eq!(Lines::ALL.of(""), "");
    }

    #[test]
    fn an_outline_has_lines_and_sizes() {
        let text = "intro\n# A\none\n## Б\n二\n三\n# C";
        let at = |needle: &str| text.find(needle).unwrap();
        let heading = |level, text: &str, at| Heading { level, text: text.into(), at };
        let headings =
            [heading(1, "A", at("# A")), heading(2, "Б", at("## Б")), heading(1, "C", at("# C"))];
        let outline = outline(text, &headings, None, &estimate_tokens);
        let lines: Vec<_> = outline.iter().map(|i| (i.level, i.start_line, i.end_line)).collect();
        assert_eq!(lines, [(1, 2, 3), (2, 4, 6), (1, 7, 7)]);
        assert!(outline.iter().all(|item| item.tokens > 0));
    }

    proptest! {
        #[test]
        fn a_cut_is_a_prefix_within_the_budget(
            text in "[a-z退กй \n]{0,200}",
            max_tokens in 1_usize..40,
        ) {
            let cut = budget(&text, max_tokens, &estimate_tokens);
            prop_assert!(text.starts_with(cut.text));
            prop_assert!(cut.tokens <= max_tokens);
            prop_assert_eq!(cut.complete, cut.text.len() == text.len());
            if cut.whole_lines > 0 && !cut.complete {
                let rest = Lines { first: cut.whole_lines + 1, last: None };
                prop_assert_eq!(format!("{}{}", cut.text, rest.of(&text)), text);
            }
        }

        #[test]
        fn lines_partition_a_text(text in "[a退\n]{0,60}", line in 1_u32..20) {
            let head = Lines { first: 1, last: Some(line) };
            let tail = Lines { first: line + 1, last: None };
            prop_assert_eq!(format!("{}{}", head.of(&text), tail.of(&text)), text);
        }
    }
}
