//! List items → the items that they are part of, which say what they are about.

use std::ops::Range;

use super::atoms::{Lines, MAX_LEAD, is_item};
use super::tokens;
use crate::extract::markdown::Fence;

/// Deeper lists keep the nearest of their parents.
const MAX_PARENTS: usize = 8;

/// An item whose list goes on.
struct Item {
    indent: usize,
    line: Range<usize>,
}

/// The first lines of the items above each place in a section where a piece begins, the outermost first.
/// `starts` ascend. One linear pass.
pub(super) fn parents(
    text: &str,
    section: Range<usize>,
    starts: &[usize],
) -> Vec<Vec<Range<usize>>> {
    let mut open: Vec<Item> = vec![];
    let mut fence: Option<Fence> = None;
    // That of the block to which a line belongs.
    let mut indent = 0;
    let mut is_after_blank = true;
    let mut starts = starts.iter().peekable();
    let mut found = vec![];
    for line in Lines::new(text, section) {
        let content = text[line.clone()].trim_end();
        let body = content.trim_start();
        let is_item = fence.is_none() && is_item(body);
        if let Some(opening) = fence {
            fence = Some(opening).filter(|opening| !opening.is_closed_by(content));
        } else if !body.is_empty() {
            fence = Fence::open(content);
            // A line below another one goes on with its block, however it is indented.
            if is_item || is_after_blank || fence.is_some() {
                indent = content.len() - body.len();
                while open.pop_if(|last| last.indent >= indent).is_some() {}
            }
        }
        while starts.next_if(|start| **start < line.end).is_some() {
            found.push(shown(text, open.iter().filter(|item| item.indent < indent)));
        }
        if is_item {
            open.push(Item { indent, line });
        }
        is_after_blank = body.is_empty();
    }
    found.resize_with(found.len() + starts.count(), Vec::new);
    found
}

/// The nearest items that together are no more than a lead may be.
fn shown<'a>(text: &str, open: impl DoubleEndedIterator<Item = &'a Item>) -> Vec<Range<usize>> {
    let mut room = MAX_LEAD;
    let mut shown = vec![];
    for item in open.rev().take(MAX_PARENTS) {
        let cost = tokens::cost(&text[item.line.clone()]);
        if cost <= room {
            room -= cost;
            shown.push(item.line.clone());
        }
    }
    shown.reverse();
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_those_above_them() {
        let text = "intro\n\n- 退款\n  - в течение\n    1. one\n\n       more\n    2. two\n  lazy\n  - b\n\n    ```\n    - x\n    ```\n- c\nlazy\n\nend\n  - d\n- e\n";
        let rows = [
            ("intro", vec![]),
            ("- 退款", vec![]),
            ("  - в", vec!["- 退款"]),
            ("    1. one", vec!["- 退款", "  - в течение"]),
            // A paragraph of an item.
            ("       more", vec!["- 退款", "  - в течение", "    1. one"]),
            ("    2. two", vec!["- 退款", "  - в течение"]),
            // The middle of one, by a line or a word.
            ("  lazy", vec!["- 退款", "  - в течение"]),
            ("wo\n", vec!["- 退款", "  - в течение"]),
            ("  - b", vec!["- 退款"]),
            // A fence is no list, and ends none.
            ("    - x", vec!["- 退款", "  - b"]),
            ("- c", vec![]),
            ("end", vec![]),
            ("  - d", vec![]),
            ("- e", vec![]),
        ];
        for (start, expected) in rows {
            let at = text.find(start).unwrap();
            let found = parents(text, 0..text.len(), &[at]);
            let found: Vec<_> =
                found[0].iter().map(|range| text[range.clone()].trim_end()).collect();
            assert_eq!(found, expected, "{start:?}");
        }
        let all: Vec<usize> = (0..=text.len()).collect();
        assert_eq!(parents(text, 0..text.len(), &all).len(), all.len());
    }

    #[test]
    fn what_is_too_long_or_too_deep_is_left_out() {
        let long = format!("- {}\n  - short\n    - x\n", "word ".repeat(400));
        let found = parents(&long, 0..long.len(), &[long.find("    - x").unwrap()]);
        assert_eq!(found[0].len(), 1);
        let deep: String = (0..2000).map(|n| " ".repeat(n) + "- a\n").collect();
        let found = parents(&deep, 0..deep.len(), &[deep.len() - 3]);
        assert!(found[0].len() <= MAX_PARENTS);
    }
}
