//! What a query asks for: the terms of documents, and what only the asking side needs.
//!
//! A document has each word once, a compound also by parts. All that makes spellings meet beyond
//! that happens here, where it costs a few look-ups instead of a larger index:
//!
//! | asked | in the document | meet by |
//! |---|---|---|
//! | `userName`, `user_name` | `user name` | the parts |
//! | `user name` | `username`, `userName` | neighbours joined: `username` |
//! | `username` | `userName`, `user_name` | the document's compound as a whole |
//! | `username` | `user name` | [`QueryTerm::splits`]: a phrase of two terms |

use std::collections::HashSet;

use super::emit::Kind;
use super::{Analyzer, Field, Token};

/// A word shorter than this isn't worth a guess at what was meant.
const MIN_FUZZY: usize = 4;
/// Halves of a split word are at least this long, and the word no longer than that.
const MIN_HALF: usize = 3;
const MAX_SPLIT: usize = 24;

/// A term to look for. Any of a query's terms may match; the more, the better.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryTerm {
    pub field: Field,
    pub term: String,
    /// The bytes of the query it stands for.
    pub from: usize,
    pub to: usize,
    /// A plain word of four letters or more: if the index doesn't have it, it may be misspelt, and
    /// a fuzzy or prefix clause may find what was meant.
    pub fuzzy: bool,
    /// A single character of a script that is indexed by pairs: every place of it in any text is
    /// the beginning of a term of this field, so a prefix clause finds all of them.
    pub prefix: bool,
    /// Ways to read the word as two, as `username` is `user name`: pairs of terms that count when
    /// they stand next to each other.
    pub splits: Vec<[String; 2]>,
}

/// A term of a phrase, at its place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhraseTerm {
    pub term: String,
    /// From 0; a phrase matches where all terms keep their distances.
    pub position: usize,
    /// As [`QueryTerm::prefix`]; only a phrase's last term has it, since only there the text may
    /// go on with the same script.
    pub prefix: bool,
}

impl Analyzer {
    /// The distinct terms of a query in both fields, in the order of the query, `body` first.
    pub fn query(&mut self, text: &str) -> Vec<QueryTerm> {
        let mut terms = Vec::new();
        for field in [Field::Body, Field::Word] {
            let mut found = Vec::new();
            self.tokens(field, text, &mut |token, kind| {
                // Where a run of pairs ends in a query says nothing.
                if kind != Kind::Tail {
                    found.push((token.clone(), kind));
                }
            });
            drop_inflections(text, &mut found);
            let joined = if field == Field::Body { self.joined(text, &found) } else { Vec::new() };
            let mut seen = HashSet::new();
            for (token, kind) in found.into_iter().chain(joined) {
                if seen.insert(token.term.clone()) {
                    terms.push(self.query_term(field, text, token, kind));
                }
            }
        }
        terms
    }

    /// The terms of a phrase in the field `body`: a text has it if they stand there in this order.
    pub fn phrase(&mut self, text: &str) -> Vec<PhraseTerm> {
        let mut terms: Vec<PhraseTerm> = Vec::new();
        let mut whole = None;
        self.tokens(Field::Body, text, &mut |token, kind| {
            let term = || PhraseTerm {
                term: token.term.clone(),
                position: token.position,
                prefix: kind == Kind::Lone,
            };
            match kind {
                Kind::Tail => {}
                // Only a hash has a whole without parts.
                Kind::Whole => whole = Some(term()),
                _ => terms.push(term()),
            }
        });
        if terms.is_empty() {
            terms.extend(whole);
        }
        let first = terms.first().map_or(0, |term| term.position);
        let last = terms.len().saturating_sub(1);
        for (index, term) in terms.iter_mut().enumerate() {
            term.position -= first;
            term.prefix &= index == last;
        }
        terms
    }

    /// Neighbouring words of a query as one, for documents that write them so.
    fn joined(&mut self, text: &str, found: &[(Token, Kind)]) -> Vec<(Token, Kind)> {
        let words: Vec<&Token> =
            found.iter().filter(|(_, kind)| *kind == Kind::Word).map(|(token, _)| token).collect();
        let mut joined = Vec::new();
        for pair in words.windows(2) {
            let [a, b] = pair else { continue };
            let (Some(left), Some(right)) = (text.get(a.from..a.to), text.get(b.from..b.to)) else {
                continue;
            };
            let is_near = a.position + 1 == b.position && text.get(a.to..b.from) == Some(" ");
            if !is_near || left.len() < 2 || right.len() < 2 {
                continue;
            }
            let name = format!("{}{}", left.to_lowercase(), right.to_lowercase());
            let mut terms = Vec::new();
            self.tokens(Field::Body, &name, &mut |token, kind| terms.push((token.clone(), kind)));
            if let [(token, Kind::Word)] = terms.as_slice() {
                let token = Token { from: a.from, to: b.to, ..token.clone() };
                joined.push((token, Kind::Whole));
            }
        }
        joined
    }

    fn query_term(&mut self, field: Field, text: &str, token: Token, kind: Kind) -> QueryTerm {
        let word = text.get(token.from..token.to).unwrap_or_default();
        let splits = match (field, kind) {
            (Field::Body, Kind::Word) => self.splits(word),
            _ => Vec::new(),
        };
        QueryTerm {
            field,
            fuzzy: kind == Kind::Word && token.term.chars().count() >= MIN_FUZZY,
            prefix: field == Field::Body && kind == Kind::Lone,
            splits,
            term: token.term,
            from: token.from,
            to: token.to,
        }
    }

    fn splits(&mut self, word: &str) -> Vec<[String; 2]> {
        if !word.bytes().all(|byte| byte.is_ascii_alphabetic()) || word.len() > MAX_SPLIT {
            return Vec::new();
        }
        let word = word.to_ascii_lowercase();
        (MIN_HALF..=word.len().saturating_sub(MIN_HALF))
            .filter_map(|at| {
                let (left, right) = word.split_at_checked(at)?;
                Some([self.word(left)?, self.word(right)?])
            })
            .collect()
    }

    /// The body's term for a single word.
    pub fn word(&mut self, word: &str) -> Option<String> {
        let mut term = None;
        self.tokens(Field::Body, word, &mut |token, _| term = Some(token.term.clone()));
        term
    }
}

/// Drops the pairs of hiragana of a query that says more than these: most are particles and
/// endings, which every text has, and the field `word` has those that are words. Those of a word with a
/// drawn-out vowel (`らーめん`) stay: endings have none.
fn drop_inflections(text: &str, found: &mut Vec<(Token, Kind)>) {
    let is_inflection = |(token, kind): &(Token, Kind)| {
        let pair = text.get(token.from..token.to).unwrap_or_default();
        *kind == Kind::Pair && pair.chars().all(is_hiragana) && !is_drawn_out(text, token)
    };
    if !found.iter().all(is_inflection) {
        found.retain(|found| !is_inflection(found));
    }
}

fn is_hiragana(c: char) -> bool {
    ('ぁ'..='ゖ').contains(&c)
}

/// Whether the run of hiragana in which a token lies draws out a vowel of its own.
fn is_drawn_out(text: &str, token: &Token) -> bool {
    let is_in = |c: char| is_hiragana(c) || c == 'ー';
    let before = text.get(..token.from).unwrap_or_default().trim_end_matches(is_in).len();
    let after = text.get(token.to..).unwrap_or_default();
    let end = text.len() - after.trim_start_matches(is_in).len();
    // One at the beginning belongs to what stands before (`データーを`).
    text.get(before..end).is_some_and(|run| run.trim_start_matches('ー').contains('ー'))
}
