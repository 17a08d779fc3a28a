//! Reconciles the warehouse's stock with the shop's, every ten minutes.
//!
//! The warehouse in Liège is right about what is on the shelf; the shop is right about what is
//! reserved. An article that differs by more than `ALARM_AT` pieces is counted by hand.

use std::collections::BTreeMap;

/// Pieces of difference from which a person looks at it.
const ALARM_AT: i64 = 25;

#[derive(Debug, PartialEq)]
pub enum Action {
    SetAvailable { sku: String, pieces: i64 },
    RecountByHand { sku: String, difference: i64 },
}

/// What to do about each article, in the order of the article numbers.
pub fn reconcile(
    shelf: &BTreeMap<String, i64>,
    reserved: &BTreeMap<String, i64>,
    shown: &BTreeMap<String, i64>,
) -> Vec<Action> {
    shelf
        .iter()
        .filter_map(|(sku, pieces)| {
            let available = (pieces - reserved.get(sku).copied().unwrap_or(0)).max(0);
            let difference = available - shown.get(sku).copied().unwrap_or(0);
            match difference.abs() {
                0 => None,
                d if d > ALARM_AT => Some(Action::RecountByHand { sku: sku.clone(), difference }),
                _ => Some(Action::SetAvailable { sku: sku.clone(), pieces: available }),
            }
        })
        .collect()
}
