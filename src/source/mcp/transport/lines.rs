//! Bytes → lines, with a limit on a line that costs the line and not the connection.

/// What a stream of bytes was cut into.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line without its end.
    Whole(Vec<u8>),
    /// A line over the limit, as its first and last bytes: enough to tell which request it answers.
    TooLong { start: Vec<u8>, end: Vec<u8> },
}

/// Nothing but more bytes comes after this many limits without a line's end.
const ENDLESS: usize = 4;

/// How much of a line that is too long is kept, at either end.
const KEPT: usize = 512;

/// A line went on for ever: the stream is of no use any more.
#[derive(Debug, PartialEq, Eq)]
pub struct Endless;

/// Cuts lines; holds at most one line up to the limit.
pub struct Lines {
    limit: usize,
    line: Vec<u8>,
    /// Bytes of the current line that were dropped, once it is over the limit.
    dropped: usize,
}

impl Lines {
    /// `limit` in bytes, without the line's end.
    pub fn new(limit: usize) -> Self {
        Self { limit, line: vec![], dropped: 0 }
    }

    /// Takes the next bytes and hands over the lines that they end.
    ///
    /// # Errors
    /// [`Endless`] when a line doesn't end.
    pub fn feed(&mut self, mut bytes: &[u8], sink: &mut impl FnMut(Line)) -> Result<(), Endless> {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.take(&bytes[..end])?;
            sink(self.finish());
            bytes = &bytes[end + 1..];
        }
        self.take(bytes)
    }

    /// What stands after the last line's end, when the stream has ended.
    pub fn rest(&mut self) -> Option<Line> {
        (!self.line.is_empty()).then(|| self.finish())
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Endless> {
        self.line.extend_from_slice(bytes);
        // Once over the limit, a line shrinks to its two ends.
        let most = if self.dropped == 0 { self.limit.max(2 * KEPT) } else { 2 * KEPT };
        if self.line.len() > most {
            let gone = self.line.len() - 2 * KEPT;
            self.line.drain(KEPT..KEPT + gone);
            self.dropped += gone;
        }
        if self.dropped > ENDLESS.saturating_mul(self.limit) { Err(Endless) } else { Ok(()) }
    }

    fn finish(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        match std::mem::take(&mut self.dropped) {
            0 => Line::Whole(line),
            _ => Line::TooLong {
                start: line[..KEPT.min(line.len())].to_vec(),
                end: line[line.len().saturating_sub(KEPT)..].to_vec(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(limit: usize, pieces: &[&[u8]]) -> (Vec<Line>, bool) {
        let (mut lines, mut out) = (Lines::new(limit), vec![]);
        let endless =
            pieces.iter().any(|piece| lines.feed(piece, &mut |line| out.push(line)).is_err());
        out.extend(lines.rest());
        (out, endless)
    }

    #[test]
    fn a_long_line_keeps_its_ends_and_the_next_is_whole() {
        let long = [b"start".as_slice(), &[b'x'; 5_000], b"end"].concat();
        let (lines, endless) = cut(2_000, &[b"one\n", &long, b"\ntwo\nrest"]);
        assert!(!endless);
        let [Line::Whole(one), Line::TooLong { start, end }, Line::Whole(two), Line::Whole(rest)] =
            &lines[..]
        else {
            panic!("{lines:?}")
        };
        assert_eq!((&one[..], &two[..], &rest[..]), (&b"one"[..], &b"two"[..], &b"rest"[..]));
        assert!(start.starts_with(b"startx") && end.ends_with(b"xend"));
    }

    #[test]
    fn a_line_without_end_is_told() {
        let piece = [b'A'; 1 << 16];
        let pieces: Vec<&[u8]> = std::iter::repeat_n(&piece[..], 100).collect();
        assert!(cut(1 << 20, &pieces).1);
        assert!(!cut(1 << 22, &pieces).1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn cutting_does_not_depend_on_the_pieces(
            text in proptest::collection::vec(prop_oneof![3 => Just(b'\n'), 20 => any::<u8>()], 0..6_000),
            at in 0_usize..6_000,
        ) {
            let at = at.min(text.len());
            let whole = cut(1_500, &[&text]);
            prop_assert_eq!(&whole, &cut(1_500, &[&text[..at], &text[at..]]));
            let joined: Vec<Line> = text.split(|b| *b == b'\n').filter(|l| l.len() <= 1_500).map(|l| Line::Whole(l.to_vec())).collect();
            let short: Vec<&Line> = whole.0.iter().filter(|l| matches!(l, Line::Whole(_))).collect();
            // The last, empty piece is no line.
            prop_assert!(short.len() == joined.len() || short.len() + 1 == joined.len());
        }
    }
}
