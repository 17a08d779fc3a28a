//! From terms in folded text to tokens in the original.

use super::Token;
use super::fold::Folded;

/// What a term is, for those who build queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A whole word of letters, of a script with spaces.
    Word,
    /// A part of a longer word, digits, an emoji, a word found by the dictionary.
    Part,
    /// Two neighbouring characters.
    Pair,
    /// A character that has no neighbour.
    Lone,
    /// The last character of a run of pairs: an alternative, so that each character begins a term.
    Tail,
    /// A compound as a whole: an alternative to its parts.
    Whole,
}

/// Hands tokens on.
pub(super) struct Emit<'a> {
    pub(super) token: &'a mut Token,
    /// Where the window begins in the text.
    pub(super) base: usize,
    /// Nothing if the window is what it folds to.
    pub(super) folded: Option<&'a Folded>,
    pub(super) sink: &'a mut dyn FnMut(&Token, Kind),
}

impl Emit<'_> {
    /// The term to emit next, empty.
    pub(super) fn start(&mut self) -> &mut String {
        self.token.term.clear();
        &mut self.token.term
    }

    /// Emits the term for the bytes of the window, at the present position.
    pub(super) fn emit(&mut self, kind: Kind, from: usize, to: usize) {
        let (from, to) = self.folded.map_or((from, to), |folded| folded.span(from, to));
        (self.token.from, self.token.to) = (self.base + from, self.base + to);
        (self.sink)(self.token, kind);
    }

    /// The next token stands for the next word.
    pub(super) fn advance(&mut self) {
        self.token.position += 1;
    }
}

/// Appends `text` in lower case.
pub(super) fn push_lower(term: &mut String, text: &str) {
    if text.is_ascii() {
        let from = term.len();
        term.push_str(text);
        if let Some(new) = term.get_mut(from..) {
            new.make_ascii_lowercase();
        }
    } else {
        term.extend(text.chars().flat_map(char::to_lowercase));
    }
}
