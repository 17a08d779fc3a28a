//! Words → stems, with a cache: a text's words are few, and a stemmer is slow.

use frostem::{Algorithm, Stemmer};

use super::class::Script;

/// Words of more bytes are stemmed anew each time; they're rare.
const KEY: usize = 30;
/// A power of two. With 64 bytes a slot the cache takes half a megabyte.
const SLOTS: usize = 8192;

#[derive(Clone, Copy)]
struct Slot {
    len: u8,
    stem_len: u8,
    word: [u8; KEY],
    stem: [u8; KEY],
}

const EMPTY: Slot = Slot { len: 0, stem_len: 0, word: [0; KEY], stem: [0; KEY] };

/// A direct-mapped cache in front of the stemmers of all scripts.
pub(super) struct Stems {
    slots: Vec<Slot>,
    english: Stemmer,
    russian: Stemmer,
    arabic: Stemmer,
    greek: Stemmer,
    hindi: Stemmer,
    tamil: Stemmer,
}

impl Stems {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            english: Stemmer::new(Algorithm::English),
            russian: Stemmer::new(Algorithm::Russian),
            arabic: Stemmer::new(Algorithm::Arabic),
            greek: Stemmer::new(Algorithm::Greek),
            hindi: Stemmer::new(Algorithm::Hindi),
            tamil: Stemmer::new(Algorithm::Tamil),
        }
    }

    /// Puts its stem in the place of a lower-case word. A stem is never empty.
    pub(super) fn stem(&mut self, script: Script, word: &mut String) {
        let stemmer = match script {
            Script::Latin => &self.english,
            Script::Cyrillic => &self.russian,
            Script::Arabic => &self.arabic,
            Script::Greek => &self.greek,
            Script::Devanagari => &self.hindi,
            Script::Tamil => &self.tamil,
            Script::Other => return,
        };
        // No stemmer touches a word of two letters.
        if word.len() < 3 {
            return;
        }
        if word.len() > KEY {
            let stem = stemmer.stem(word);
            if !stem.is_empty() && *stem != **word {
                *word = stem.into_owned();
            }
            return;
        }
        if self.slots.is_empty() {
            self.slots = vec![EMPTY; SLOTS];
        }
        let index = hash(word.as_bytes()) as usize % SLOTS;
        let Some(slot) = self.slots.get_mut(index) else { return };
        if slot.word.get(..usize::from(slot.len)) != Some(word.as_bytes()) {
            let stem = stemmer.stem(word);
            let stem = if stem.is_empty() { word.as_str() } else { &*stem };
            let (Ok(len), Ok(stem_len)) = (u8::try_from(word.len()), u8::try_from(stem.len()))
            else {
                return;
            };
            let (Some(to), Some(stem_to)) =
                (slot.word.get_mut(..word.len()), slot.stem.get_mut(..stem.len()))
            else {
                // A stem longer than any slot: no stemmer makes one, and the word will do.
                return;
            };
            to.copy_from_slice(word.as_bytes());
            stem_to.copy_from_slice(stem.as_bytes());
            (slot.len, slot.stem_len) = (len, stem_len);
        }
        let stem = slot.stem.get(..usize::from(slot.stem_len)).unwrap_or_default();
        match word.as_bytes().starts_with(stem) {
            true => word.truncate(stem.len()),
            false => {
                if let Ok(stem) = std::str::from_utf8(stem) {
                    word.clear();
                    word.push_str(stem);
                }
            }
        }
    }
}

/// Cheap and good enough for choosing a slot; what a slot holds is compared whole.
fn hash(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut hash = bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        if let Some(to) = word.get_mut(..chunk.len()) {
            to.copy_from_slice(chunk);
        }
        hash = (hash.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(FACTOR);
    }
    hash >> 40
}
