//! The words that a user typed → a query. Pure; nothing that can be typed is an error.

/// A parsed query: what must, may and must not occur.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// Free text, in the user's order, without quotes, exclusions and filters.
    pub text: String,
    /// Quoted phrases; each must occur as it stands.
    pub phrases: Vec<String>,
    /// `-word` and `-"a phrase"`: must not occur.
    pub excluded: Vec<String>,
    /// `server:`, `mime:`, `uri:` filters, each kind's values as alternatives.
    pub servers: Vec<String>,
    pub mime_types: Vec<String>,
    pub uris: Vec<String>,
}
