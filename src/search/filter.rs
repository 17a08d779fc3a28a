//! Which resources a caller may see: a scope, narrowed by a request.

use std::sync::Arc;

use crate::model::ServerName;

/// A conjunction of clauses; the empty one lets everything through. A scope's clause is shared by all
/// requests, so that what a store found out about it can be kept.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    clauses: Vec<Arc<Clause>>,
}

/// What one scope or one request lets through: within each field any of the values, all fields together.
#[derive(Clone, Debug, Default)]
pub struct Clause {
    pub servers: Option<Vec<ServerName>>,
    pub include: Option<globset::GlobSet>,
    pub exclude: Option<globset::GlobSet>,
    /// `type/subtype`, `*` as a wildcard, lower case.
    pub mime_types: Option<Vec<String>>,
    pub uri_prefix: Option<String>,
}

impl Filter {
    pub fn and(mut self, clause: impl Into<Arc<Clause>>) -> Self {
        self.clauses.push(clause.into());
        self
    }

    /// Whether nothing is filtered.
    pub fn is_everything(&self) -> bool {
        self.clauses.is_empty()
    }

    pub fn clauses(&self) -> &[Arc<Clause>] {
        &self.clauses
    }

    /// Whether a resource is let through.
    pub fn allows(&self, server: &str, uri: &str, mime_type: Option<&str>) -> bool {
        self.allows_server(server)
            && self.allows_mime_type(mime_type.unwrap_or_default())
            && self.allows_uri(uri)
    }

    // The three parts, for a store that decides each once for many resources.

    pub fn allows_server(&self, server: &str) -> bool {
        self.clauses.iter().all(|clause| {
            let servers = clause.servers.as_ref();
            servers.is_none_or(|servers| servers.iter().any(|s| s.as_str() == server))
        })
    }

    /// An unknown type is the empty one.
    pub fn allows_mime_type(&self, mime_type: &str) -> bool {
        self.clauses.iter().all(|clause| {
            let types = clause.mime_types.as_ref();
            types.is_none_or(|types| types.iter().any(|pattern| mime_matches(pattern, mime_type)))
        })
    }

    pub fn allows_uri(&self, uri: &str) -> bool {
        self.clauses.iter().all(|clause| clause.allows_uri(uri))
    }

    /// Whether any clause looks at the URI.
    pub fn looks_at_uri(&self) -> bool {
        self.clauses.iter().any(|clause| clause.looks_at_uri())
    }
}

impl Clause {
    pub fn allows_uri(&self, uri: &str) -> bool {
        self.uri_prefix.as_ref().is_none_or(|prefix| uri.starts_with(prefix.as_str()))
            && self.include.as_ref().is_none_or(|globs| globs.is_match(uri))
            && !self.exclude.as_ref().is_some_and(|globs| globs.is_match(uri))
    }

    pub fn looks_at_uri(&self) -> bool {
        self.uri_prefix.is_some() || self.include.is_some() || self.exclude.is_some()
    }
}

/// Whether a MIME type (its parameters aside) matches `type/subtype`, `type/*`, `*/*` or `*`.
pub fn mime_matches(pattern: &str, mime_type: &str) -> bool {
    let essence = mime_type.split(';').next().unwrap_or_default().trim();
    match pattern.trim_start_matches("*/").strip_suffix('*') {
        Some(prefix) => essence.get(..prefix.len()).is_some_and(|p| p.eq_ignore_ascii_case(prefix)),
        None => pattern.eq_ignore_ascii_case(essence),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mime_types_match_by_pattern() {
        let cases = [
            ("text/plain", "text/plain", true),
            ("text/plain", "TEXT/Plain; charset=utf-8", true),
            ("text/plain", "text/plain2", false),
            ("text/*", "text/markdown", true),
            ("text/*", "Text/HTML", true),
            ("text/*", "image/png", false),
            ("*", "image/png", true),
            ("*", "", true),
            ("*/*", "image/png", true),
            ("*/*", "", true),
            ("text/plain", "", false),
            ("text/*", "té", false),
        ];
        for (pattern, mime_type, expected) in cases {
            assert_eq!(mime_matches(pattern, mime_type), expected, "{pattern} {mime_type}");
        }
    }

    #[test]
    fn clauses_only_ever_narrow() {
        let prefix = |prefix: &str| Clause { uri_prefix: Some(prefix.into()), ..Clause::default() };
        let servers = ["a", "b"].map(|name| ServerName::new(name).unwrap());
        let scope = Clause { servers: Some(servers.to_vec()), ..prefix("x://") };
        let filter = Filter::default().and(scope).and(prefix("x://1"));
        assert!(filter.allows("a", "x://12", None));
        assert!(!filter.allows("a", "x://2", None));
        assert!(!filter.allows("c", "x://1", None));
        assert!(Filter::default().allows("any", "", None));
    }
}
