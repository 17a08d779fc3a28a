//! As much of a chunk as there is room for, around what matters most in it.

use std::ops::Range;

use super::super::snippet;

/// Sentences of more characters are taken in pieces.
const PIECE_CHARS: usize = 160;

/// The bytes of a text that fit into so many tokens: whole sentences around the focus, or the beginning
/// of the first that doesn't fit. Nothing of a text without any.
pub fn around(
    text: &str,
    focus: &Range<usize>,
    room: usize,
    count: &dyn Fn(&str) -> usize,
) -> Option<Range<usize>> {
    let pieces = snippet::sentences(text, PIECE_CHARS);
    let last = pieces.len().checked_sub(1)?;
    let piece_of = |byte: usize| pieces.partition_point(|piece| piece.end <= byte).min(last);
    let (mut from, focus_end) = (piece_of(focus.start), piece_of(focus.end.saturating_sub(1)));
    let mut to = from;
    let cost = |piece: usize| pieces.get(piece).map(|piece| count(&text[piece.clone()]));
    let mut left = match room.checked_sub(cost(from)?) {
        Some(left) => left,
        None => {
            let first = pieces[from].clone();
            let length = prefix(&text[first.clone()], room, count).len();
            return (length > 0).then(|| first.start..first.start + length);
        }
    };
    let mut take = |piece: usize| {
        let fits = cost(piece).and_then(|cost| left.checked_sub(cost));
        left = fits.unwrap_or(left);
        fits.is_some()
    };
    // First to the end of the focus, then on both sides as long as there is room.
    while to < focus_end && take(to + 1) {
        to += 1;
    }
    let (mut up, mut down) = (true, to >= focus_end);
    while up || down {
        down = down && to < last && take(to + 1);
        to += usize::from(down);
        up = up && from > 0 && take(from - 1);
        from -= usize::from(up);
    }
    Some(pieces[from].start..pieces[to].end)
}

/// The longest beginning of a text that fits, by halving.
fn prefix<'t>(text: &'t str, room: usize, count: &dyn Fn(&str) -> usize) -> &'t str {
    let ends: Vec<usize> =
        text.char_indices().map(|(at, _)| at).skip(1).chain([text.len()]).collect();
    let (mut fits, mut over) = (0, ends.len() + 1);
    while over - fits > 1 {
        let middle = fits.midpoint(over);
        if count(&text[..ends[middle - 1]]) <= room { fits = middle } else { over = middle }
    }
    &text[..if fits == 0 { 0 } else { ends[fits - 1] }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_is_shown_with_what_stands_around_it() {
        let count = |text: &str| text.chars().count();
        let english = "One is first. Two is next. Three is here. Four is last.";
        let chinese = "第一句。第二句在此。第三句。第四句。";
        for (text, focus, room, expected) in [
            (english, "Three", 14, Some("Three is here.")),
            (english, "Three", 15, Some("Three is here. ")),
            (english, "Three", 28, Some("Three is here. Four is last.")),
            (english, "Three", 1_000, Some(english)),
            (english, "Four", 29, Some("Three is here. Four is last.")),
            (english, "Two is next. Three", 30, Some("Two is next. Three is here. ")),
            (english, "Two", 5, Some("Two i")),
            (chinese, "此", 6, Some("第二句在此。")),
            (chinese, "此", 10, Some("第二句在此。第三句。")),
            (chinese, "此", 14, Some("第一句。第二句在此。第三句。")),
            ("a\n\nb\nc", "b", 2, Some("b\n")),
            ("", "", 9, None),
            ("word", "word", 0, None),
        ] {
            let start = text.find(focus).unwrap();
            let shown = around(text, &(start..start + focus.len()), room, &count);
            assert_eq!(shown.map(|shown| &text[shown]), expected, "{text} {focus} {room}");
        }
        let endless = "字".repeat(5_000);
        let shown = around(&endless, &(3_000..3_300), 500, &count).unwrap();
        assert!(shown.contains(&3_000) && shown.contains(&3_299), "{shown:?}");
    }
}
