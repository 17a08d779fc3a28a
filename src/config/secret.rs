//! Texts that must not be printed.

use std::fmt;

/// A text of which parts must not be printed: they came from a secret reference, or it stands where
/// secrets stand. Two are equal when their texts are.
#[derive(Clone, Default)]
pub struct Secret {
    text: String,
    shown: String,
    parts: Vec<String>,
}

impl Secret {
    /// A text that is a secret as a whole.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { parts: vec![text.clone()], shown: "***".into(), text }
    }

    /// A text that may be shown as it is.
    pub fn plain(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { shown: text.clone(), parts: vec![], text }
    }

    /// The text itself, for a child's environment, a header or an argument only.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// The text with `***` for what must not be printed.
    pub fn masked(&self) -> &str {
        &self.shown
    }

    /// What of it must not be printed; for the masker.
    pub(super) fn parts(&self) -> &[String] {
        &self.parts
    }

    /// A reference that couldn't be expanded: shown as it stands, and no text to send.
    pub(super) fn unexpanded(written: impl Into<String>) -> Self {
        Self { text: String::new(), shown: written.into(), parts: vec![] }
    }

    pub(super) fn is_unexpanded(&self) -> bool {
        self.text.is_empty() && self.parts.is_empty() && !self.shown.is_empty()
    }

    pub(super) fn push_plain(&mut self, text: &str) {
        self.text.push_str(text);
        self.shown.push_str(text);
    }

    pub(super) fn push_secret(&mut self, text: &str) {
        self.text.push_str(text);
        self.shown.push_str("***");
        self.parts.push(text.to_owned());
    }

    /// The same text, of which everything from a byte on is a secret; for a literal that stands where
    /// secrets stand.
    pub(super) fn hide_from(self, at: usize) -> Self {
        let (Some(before), Some(hidden)) = (self.text.get(..at), self.text.get(at..)) else {
            return self;
        };
        if hidden.is_empty() {
            return self;
        }
        let mut parts = self.parts;
        parts.push(hidden.to_owned());
        // `Bearer X` is usually echoed without its scheme.
        parts.extend(hidden.split_once(' ').map(|(_, credential)| credential.trim().to_owned()));
        Self { shown: format!("{before}***"), parts, text: self.text }
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && (!self.text.is_empty() || self.shown == other.shown)
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}
