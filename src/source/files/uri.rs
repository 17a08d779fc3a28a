//! A folder's URIs: `<scheme>:///<percent-encoded relative path>`.
//!
//! Everything but RFC 3986's unreserved characters is encoded, byte by byte. So a URI survives every
//! parser unchanged, and a name that isn't UTF-8, or not in a normal form, comes back as it was.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};

/// A file's place below the root, its parts joined by `/`; never empty, never absolute, without `.`
/// and `..`.
pub type RelPath = OsString;

/// Schemes that mean something else to a client: it would open another file, or go to the network.
const TAKEN: [&str; 10] =
    ["about", "blob", "data", "file", "ftp", "http", "https", "javascript", "ws", "wss"];

const KEPT: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// The scheme that a server of this name has: lower case, with `-` for `_`.
///
/// # Errors
/// Says why the name makes no valid scheme (RFC 3986, 3.1), or one that clients take for another.
pub fn scheme_of(name: &str) -> Result<String, String> {
    let scheme = name.to_ascii_lowercase().replace('_', "-");
    if !scheme.starts_with(|first: char| first.is_ascii_lowercase()) {
        return Err(format!(
            "{name:?} makes no URI scheme: the name of a folder's server begins with a letter from a to z"
        ));
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    if let Some(bad) = scheme.chars().find(|c| !fits(*c)) {
        return Err(format!(
            "{name:?} makes no URI scheme because of {bad:?}: the name of a folder's server has letters \
             from a to z, digits, '-', '_', '+' and '.'"
        ));
    }
    if TAKEN.contains(&scheme.as_str()) {
        return Err(format!(
            "{name:?} can't name a folder's server: clients take {scheme}: for something else"
        ));
    }
    Ok(scheme)
}

/// The URI of a file.
pub fn encode(scheme: &str, path: &OsStr) -> String {
    format!("{scheme}:///{}", percent_encode(path.as_bytes(), &KEPT))
}

/// The file that a URI names, whichever characters of it a client has encoded; `None` when no file of
/// this server can have that URI. Nothing that leads upwards or elsewhere gets through, encoded or not.
pub fn decode(scheme: &str, uri: &str) -> Option<RelPath> {
    let (head, rest) = uri.split_once(":///")?;
    if !head.eq_ignore_ascii_case(scheme) || rest.contains(['?', '#']) {
        return None;
    }
    let mut path = Vec::with_capacity(rest.len());
    for part in rest.split('/') {
        let start = path.len();
        path.extend(percent_decode(part.as_bytes()));
        let name = path.get(start..)?;
        if matches!(name, b"" | b"." | b"..") || name.contains(&b'/') || name.contains(&0) {
            return None;
        }
        path.push(b'/');
    }
    path.pop();
    Some(OsString::from_vec(path))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_become_schemes() {
        for (name, scheme) in [
            ("handbook", "handbook"),
            ("Team_Docs", "team-docs"),
            ("a1+b.c-d", "a1+b.c-d"),
            ("HTTP2", "http2"),
        ] {
            assert_eq!(scheme_of(name).unwrap(), scheme, "{name}");
        }
        for name in ["", "1st", "my docs", "文档", "a:b", "-a", "_a", "http", "File", "a\n"] {
            assert!(scheme_of(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn paths_become_uris_and_back() {
        for (path, uri) in [
            (&b"refunds.md"[..], "handbook:///refunds.md"),
            (b"a b/c+d (1).md", "handbook:///a%20b/c%2Bd%20%281%29.md"),
            ("退款.md".as_bytes(), "handbook:///%E9%80%80%E6%AC%BE.md"),
            (b"100%25.txt", "handbook:///100%2525.txt"),
            (b"a\\b?c#d:e", "handbook:///a%5Cb%3Fc%23d%3Ae"),
            (b"bad\xff\xfename", "handbook:///bad%FF%FEname"),
            // NFC and NFD are two names to most file systems, so they are two URIs.
            ("\u{e9}.md".as_bytes(), "handbook:///%C3%A9.md"),
            ("e\u{301}.md".as_bytes(), "handbook:///e%CC%81.md"),
        ] {
            let path = OsStr::from_bytes(path);
            assert_eq!(encode("handbook", path), uri);
            assert_eq!(decode("handbook", uri).as_deref(), Some(path), "{uri}");
        }
    }

    #[test]
    fn clients_may_encode_differently() {
        for uri in ["h:///退款 a.md", "H:///%e9%80%80款%20a%2emd", "h:///%E9%80%80%E6%AC%BE%20a.md"]
        {
            assert_eq!(decode("h", uri).as_deref(), Some(OsStr::new("退款 a.md")), "{uri}");
        }
    }

    #[test]
    fn nothing_leads_out() {
        for uri in [
            "h:///../etc/passwd",
            "h:///a/../../b",
            "h:///%2e%2e/b",
            "h:///%2E%2E%2Fb",
            "h:///a%2fb",
            "h:///..%2f..%2fb",
            "h:///.",
            "h:///a/./b",
            "h:////etc/passwd",
            "h:///%2Fetc%2Fpasswd",
            "h:///a//b",
            "h:///a/",
            "h:///",
            "h://a/b",
            "h:/a",
            "h:a",
            "other:///a",
            "file:///etc/passwd",
            "h:///a%00b",
            "h:///a\0b",
            "h:///a?b",
            "h:///a#b",
            "",
        ] {
            assert_eq!(decode("h", uri), None, "{uri}");
        }
    }

    proptest! {
        #[test]
        fn every_name_comes_back(parts in prop::collection::vec(prop::collection::vec(1u8.., 1..12), 1..4)) {
            let path = parts.join(&b'/');
            let legal = path.split(|b| *b == b'/').all(|part| !matches!(part, b"" | b"." | b".."));
            let uri = encode("h", OsStr::from_bytes(&path));
            prop_assert!(uri.is_ascii());
            let back = decode("h", &uri).map(OsString::into_vec);
            prop_assert_eq!(back, legal.then_some(path));
            // What a URL parser of the WHATWG kind does to it: nothing.
            if legal {
                let parsed = url::Url::parse(&uri).unwrap();
                prop_assert_eq!(parsed.as_str(), uri.as_str());
            }
        }

        #[test]
        fn what_is_decoded_stays_below(rest in "(\\.|/|%2e|%2F|%2f|a|%00|\\\\|%){0,12}") {
            if let Some(path) = decode("h", &format!("h:///{rest}")) {
                let path = std::path::PathBuf::from(path);
                prop_assert!(path.components().all(|c| matches!(c, std::path::Component::Normal(_))));
            }
        }
    }
}
