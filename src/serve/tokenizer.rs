//! Exact counts of tokens, by the vocabularies that models use.
//!
//! A vocabulary costs tens of megabytes, so it is loaded when it is first asked for.

use tiktoken_rs::CoreBPE;

use super::error::ApiError;

/// What counts when nobody says.
pub const DEFAULT: &str = "o200k_base";

/// What loads a vocabulary, once.
type Load = fn() -> &'static CoreBPE;

/// The names that can be asked for, each with what loads it.
const KNOWN: &[(&str, Load)] = &[
    (DEFAULT, tiktoken_rs::o200k_base_singleton),
    ("o200k_harmony", tiktoken_rs::o200k_harmony_singleton),
    ("cl100k_base", tiktoken_rs::cl100k_base_singleton),
    ("p50k_base", tiktoken_rs::p50k_base_singleton),
    ("r50k_base", tiktoken_rs::r50k_base_singleton),
];

/// Longest text that is counted in one go: what splits words looks back and forth in it.
const PIECE: usize = 64 << 10;

/// A vocabulary by its name.
#[derive(Clone, Copy)]
pub struct Tokenizer {
    pub name: &'static str,
    load: Load,
}

impl Default for Tokenizer {
    fn default() -> Self {
        Self { name: DEFAULT, load: tiktoken_rs::o200k_base_singleton }
    }
}

impl Tokenizer {
    /// # Errors
    /// No vocabulary has this name; the error lists those there are.
    pub fn named(name: Option<&str>) -> Result<Self, ApiError> {
        let name = name.unwrap_or(DEFAULT);
        // `o200k` is what people say.
        let found = KNOWN.iter().find(|(known, _)| {
            *known == name || known.strip_suffix("_base").is_some_and(|short| short == name)
        });
        let names = || KNOWN.iter().map(|(name, _)| *name);
        found.map(|(name, load)| Self { name, load: *load }).ok_or_else(|| {
            ApiError::bad_request(format!("tokenizer: none is called {name:?}"))
                .hint(super::nearest::hint("tokenizers", name, names()))
        })
    }

    pub fn count(&self, text: &str) -> usize {
        let vocabulary = (self.load)();
        pieces(text).map(|piece| vocabulary.encode_ordinary(piece).len()).sum()
    }
}

/// A text in pieces that can be counted one by one; whole where it is short.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = if rest.len() <= PIECE {
            rest.len()
        } else {
            let most = super::cut::floor(rest, PIECE);
            // After a line's end the count starts afresh anyway.
            rest[..most].rfind('\n').map_or(most, |at| at + 1)
        };
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_the_vocabulary() {
        for (name, text, count) in [
            (None, "", 0),
            (None, "hello world", 2),
            (Some("o200k"), "退款申请须在购买后三十天内提交，商品应保持完好，运费由买家承担。", 24),
            (Some("o200k_base"), "fn main() {}", 4),
            (Some("cl100k_base"), "hello world", 2),
            // A vocabulary's own signs are text like any other.
            (None, "<|endoftext|>", 7),
        ] {
            assert_eq!(Tokenizer::named(name).unwrap().count(text), count, "{name:?} {text}");
        }
        let error = Tokenizer::named(Some("cl200k")).err().unwrap().detail;
        assert!(error.hint.unwrap().contains("cl100k_base"));
    }

    #[test]
    fn a_long_text_is_counted_in_pieces() {
        let line = "Refunds take fourteen days, 退款需要十四天。\n";
        let tokenizer = Tokenizer::named(None).unwrap();
        let one = tokenizer.count(line);
        assert_eq!(tokenizer.count(&line.repeat(5_000)), one * 5_000);
        for text in ["a".repeat(200_000), " ".repeat(200_000), "退".repeat(100_000)] {
            assert!(tokenizer.count(&text) > 0);
            assert_eq!(pieces(&text).collect::<String>(), text);
        }
    }
}
