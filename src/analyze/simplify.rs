//! Traditional → Simplified Chinese, character by character.
//!
//! Both what is indexed and what is asked go through it, so a character that stands for two
//! Simplified ones needs no context: it becomes the same on both sides.

use std::sync::LazyLock;

/// One pair a line: a character, then its Simplified form. `NOTICE` names where they come from.
const PAIRS: &str = include_str!("../../data/simplified.txt");

/// The blocks in which all but a few of the pairs lie.
const FIRST: u32 = 0x3400;
const LAST: u32 = 0x9FFF;

struct Table {
    common: Vec<char>,
    /// Sorted.
    rest: Vec<(char, char)>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut common: Vec<char> = (FIRST..=LAST).filter_map(char::from_u32).collect();
    let mut rest = Vec::new();
    for line in PAIRS.lines() {
        let mut chars = line.chars();
        let (Some(from), Some(to)) = (chars.next(), chars.next()) else { continue };
        match (from as u32).checked_sub(FIRST).and_then(|i| common.get_mut(i as usize)) {
            Some(slot) => *slot = to,
            None => rest.push((from, to)),
        }
    }
    rest.sort_unstable();
    Table { common, rest }
});

/// The Simplified form of a Han character, itself if it has no other.
pub(super) fn simplify(c: char) -> char {
    let index = (c as u32).checked_sub(FIRST);
    if let Some(&simple) = index.and_then(|index| TABLE.common.get(index as usize)) {
        return simple;
    }
    match TABLE.rest.binary_search_by_key(&c, |pair| pair.0) {
        Ok(index) => TABLE.rest.get(index).map_or(c, |pair| pair.1),
        Err(_) => c,
    }
}
