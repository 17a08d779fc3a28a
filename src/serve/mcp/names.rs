//! The URIs under which clients see resources: the resource's own where only one has it, else
//! `resdex://SERVER/URI`, both parts percent-encoded, which stays the same whatever else there is.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::model::ResourceKey;

const SCHEME: &str = "resdex://";
/// RFC 3986's unreserved characters stay.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

pub fn wrapped(key: &ResourceKey) -> String {
    let encode = |text| utf8_percent_encode(text, ENCODED);
    format!("{SCHEME}{}/{}", encode(key.server.as_str()), encode(&key.uri))
}

/// The server and the URI in a wrapped one.
pub fn unwrapped(uri: &str) -> Option<(String, String)> {
    let (server, uri) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    let decode = |text| Some(percent_decode_str(text).decode_utf8().ok()?.into_owned());
    Some((decode(server)?, decode(uri)?))
}

/// Whether a URI can't be shown as it is, because it looks like a wrapped one.
pub fn looks_wrapped(uri: &str) -> bool {
    uri.starts_with(SCHEME)
}

/// Whether a template (RFC 6570) may have given a URI: what stands between its variables occurs in
/// this order, and each variable has something.
pub fn fits(template: &str, uri: &str) -> bool {
    let mut literals = vec![];
    let mut rest = template;
    while let Some((literal, after)) = rest.split_once('{') {
        let Some((_, after)) = after.split_once('}') else { return false };
        literals.push(literal);
        rest = after;
    }
    let last = rest;
    let Some((first, between)) = literals.split_first() else { return template == uri };
    let Some(mut left) = uri.strip_prefix(first) else { return false };
    for literal in between {
        // Two variables side by side share what there is.
        let from = left.chars().next().map_or(0, char::len_utf8);
        let Some(at) = left.get(from..).and_then(|tail| tail.find(literal)) else { return false };
        left = &left[from + at + literal.len()..];
    }
    left.len() > last.len() && left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::fake::key;

    #[test]
    fn a_wrapped_uri_gives_its_key_back() {
        for (server, uri) in [
            ("wiki", "shared://note"),
            ("我的 wiki", "a://b/c?d=%20#é"),
            ("a%2Fb", "resdex://x/y"),
            ("x", ""),
        ] {
            let wrapped = wrapped(&key(server, uri));
            assert_eq!(unwrapped(&wrapped), Some((server.into(), uri.into())), "{wrapped}");
            // Clients put URIs through a parser.
            assert_eq!(url::Url::parse(&wrapped).unwrap().as_str(), wrapped);
        }
        assert_eq!(wrapped(&key("wiki", "shared://note")), "resdex://wiki/shared%3A%2F%2Fnote");
        for other in ["wiki://a", "resdex://wiki", "resdex://%ff/x"] {
            assert_eq!(unwrapped(other), None, "{other}");
        }
    }

    #[test]
    fn templates_fit_what_they_may_have_given() {
        for (template, uri, expected) in [
            ("docs://{id}", "docs://1", true),
            ("docs://{id}", "docs://", false),
            ("docs://{id}/raw", "docs://1/raw", true),
            ("docs://{id}/raw", "docs:///raw", false),
            ("w://{space}/{+path}", "w://eng/a/b", true),
            ("w://{space}/{+path}", "w://eng", false),
            ("w://{space}/{+path}", "v://eng/a", false),
            ("w://手册/{x}", "w://手册/退款", true),
            ("plain://x", "plain://x", true),
            ("plain://x", "plain://y", false),
            ("{+uri}", "any://thing", true),
            ("broken://{x", "broken://1", false),
        ] {
            assert_eq!(fits(template, uri), expected, "{template} {uri}");
        }
    }
}
