//! Tiny neighbours put together, with the heading path that is true of them.

use std::ops::Range;

use super::{CAP, SMALL, WHOLE};

/// A chunk before it has its text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    pub range: Range<usize>,
    pub cost: u64,
    /// Positions in the part's headings, the topmost first.
    pub path: Vec<u32>,
    /// Counts the pages of the part; pieces of two pages stay apart, so that a place is true.
    pub page: u32,
    pub lead: Vec<Range<usize>>,
    /// A heading with nothing below it.
    pub bare: bool,
}

/// Takes pieces in order. One that is small waits for its next neighbour, and goes to the one before
/// if that doesn't fit.
#[derive(Default)]
pub(super) struct Merger {
    done: Vec<Piece>,
    waiting: Option<Piece>,
}

impl Merger {
    pub(super) fn push(&mut self, next: Piece) {
        match self.waiting.take() {
            None => self.waiting = Some(next),
            Some(small) if small.fits(&next) => self.waiting = Some(small.merge(next)),
            Some(other) => {
                self.emit(other);
                self.waiting = Some(next);
            }
        }
        if let Some(piece) = self.waiting.take_if(|piece| piece.cost >= SMALL && !piece.bare) {
            self.done.push(piece);
        }
    }

    pub(super) fn finish(mut self) -> Vec<Piece> {
        if let Some(last) = self.waiting.take() {
            self.emit(last);
        }
        self.done
    }

    /// Emits a small piece, with the one before it if they belong together.
    fn emit(&mut self, small: Piece) {
        match self.done.pop_if(|before| before.fits(&small)) {
            Some(before) => self.done.push(before.merge(small)),
            None => self.done.push(small),
        }
    }
}

impl Piece {
    fn fits(&self, next: &Self) -> bool {
        let max = if self.bare { CAP } else { WHOLE };
        // Parent and child, siblings, or the next one a step up; not the ends of two chapters.
        let related = self.shared(next) + 1 >= self.path.len().min(next.path.len());
        related && self.page == next.page && self.cost + next.cost <= max
    }

    /// How many headings the paths of two pieces share.
    fn shared(&self, next: &Self) -> usize {
        self.path.iter().zip(&next.path).take_while(|(a, b)| a == b).count()
    }

    /// The path is that of the only one with a body, or the only one that isn't small; among equals
    /// the headings that both share, and the first one below them.
    fn merge(self, next: Self) -> Self {
        let shared = self.shared(&next);
        let path =
            if self.bare && shared == self.path.len() || self.cost < SMALL && next.cost >= SMALL {
                next.path
            } else if next.cost < SMALL && self.cost >= SMALL {
                self.path
            } else {
                let mut path = self.path;
                path.truncate(shared + 1);
                path
            };
        Self {
            range: self.range.start..next.range.end,
            cost: self.cost + next.cost,
            path,
            page: self.page,
            lead: self.lead,
            bare: self.bare && next.bare,
        }
    }
}
