//! Atoms → even pieces, each ending at the best cut near its fair share.

use std::cmp::Reverse;
use std::ops::Range;

use super::atoms::{Atom, Cut};
use super::{CAP, WHOLE};

/// The last piece may be a little larger: the cuts before it seldom fall just where they should.
const LAST: u64 = WHOLE + WHOLE / 5;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Packed {
    pub range: Range<usize>,
    pub cost: u64,
    /// The header row that the piece lacks.
    pub lead: Option<Range<usize>>,
}

/// Packs the atoms of one section, which begins at `start`, into pieces that partition it.
pub(super) fn pack(start: usize, atoms: &[Atom]) -> Vec<Packed> {
    let mut packed = vec![];
    let mut remaining: u64 = atoms.iter().map(|atom| atom.cost).sum();
    let (mut first, mut at) = (0, start);
    while first < atoms.len() {
        let share = remaining / remaining.div_ceil(WHOLE).max(1);
        let (count, cost) = piece_len(&atoms[first..], share, remaining);
        let last = first + count - 1;
        let lead = atoms[first].lead.clone();
        packed.push(Packed { range: at..atoms[last].end, cost, lead });
        at = atoms[last].end;
        remaining -= cost;
        first = last + 1;
    }
    packed
}

/// How good an end is: the cut after it, then its nearness to the share.
type Rank = (Option<Cut>, Reverse<u64>);

/// How many atoms the next piece has, and what they cost: within 0.6 to 1.3 of the share those up to
/// the best cut, of equal ones the nearest to the share.
fn piece_len(atoms: &[Atom], share: u64, remaining: u64) -> (usize, u64) {
    if remaining <= LAST {
        return (atoms.len(), remaining);
    }
    let mut best: Option<(Rank, usize, u64)> = None;
    let mut fallback = (1, atoms[0].cost);
    let mut cost = 0;
    for (n, atom) in atoms.iter().enumerate() {
        cost += atom.cost;
        if n > 0 && cost > CAP {
            break;
        }
        let count = n + 1;
        // Up to the share there is always a piece, however poor its end.
        if cost <= share || count == 1 {
            fallback = (count, cost);
        }
        if cost * 10 > share * 13 {
            break;
        }
        if cost * 10 >= share * 6 {
            let cut = atoms.get(count).map(|next| next.cut);
            let rank = (cut, Reverse(cost.abs_diff(share)));
            if best.is_none_or(|(known, ..)| rank > known) {
                best = Some((rank, count, cost));
            }
        }
    }
    best.map_or(fallback, |(_, count, cost)| (count, cost))
}
