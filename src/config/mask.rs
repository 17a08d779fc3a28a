//! Keeps secrets out of logs, errors, status and captured stderr.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What stands for a secret wherever something is shown.
pub const MASK: &str = "***";

/// A secret shorter than this (in bytes) isn't replaced in texts: it would hit words by chance.
const MIN_SECRET_BYTES: usize = 4;

/// Replaces the config's secrets in any text. Cheap to clone; the empty one masks URIs only.
#[derive(Clone, Default)]
pub struct Masker {
    secrets: Arc<[String]>,
    /// Missing when there is no secret.
    finder: Option<Arc<AhoCorasick>>,
}

impl Masker {
    /// A masker of these values. A value of several lines is also found line by line, since stderr
    /// and logs are, and percent-encoded, as URLs in errors are.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut all: Vec<String> = secrets
            .into_iter()
            .flat_map(|secret| {
                let encoded = utf8_percent_encode(&secret, NON_ALPHANUMERIC).to_string();
                let mut forms: Vec<String> = secret.lines().map(str::to_owned).collect();
                forms.extend([encoded, secret]);
                forms
            })
            .filter(|secret| secret.trim().len() >= MIN_SECRET_BYTES)
            .collect();
        all.sort_unstable();
        all.dedup();
        let finder = (!all.is_empty())
            .then(|| AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&all))
            .and_then(Result::ok)
            .map(Arc::new);
        Self { secrets: all.into(), finder }
    }

    /// The text with `***` for each secret, and with the URIs in it masked as by [`uri`].
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.finder {
            Some(finder) if finder.is_match(text) => {
                let masks = vec![MASK; self.secrets.len()];
                let replaced = finder.replace_all(text, &masks);
                Cow::Owned(uris(&replaced).into_owned())
            }
            _ => uris(text),
        }
    }
}

impl fmt::Debug for Masker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Masker({} secrets)", self.secrets.len())
    }
}

impl PartialEq for Masker {
    fn eq(&self, other: &Self) -> bool {
        self.secrets == other.secrets
    }
}

/// A URI with `***` for its userinfo and for secret-looking values of its query and fragment.
/// Never parsed, so that a broken URI is masked as well.
pub fn uri(uri: &str) -> String {
    let mut masked = String::with_capacity(uri.len());
    let mut done = 0;
    for span in secret_spans(uri) {
        masked.push_str(&uri[done..span.start]);
        masked.push_str(MASK);
        done = span.end;
    }
    masked.push_str(&uri[done..]);
    masked
}

/// What [`uri`] masks, for a [`Masker`]: a server may name a password without its URI.
pub(super) fn secrets_of(uri: &str) -> Vec<String> {
    secret_spans(uri)
        .into_iter()
        .map(|span| {
            // A user's name alone is no secret.
            let text = &uri[span];
            text.split_once(':').map_or(text, |(_, password)| password)
        })
        .map(|text| percent_decode_str(text).decode_utf8_lossy().into_owned())
        .collect()
}

/// Where the secrets of a URI stand, in order.
fn secret_spans(uri: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut at = 0;
    if let Some(scheme) = uri.find("://") {
        let start = scheme + 3;
        let authority = &uri[start..];
        let authority = &authority[..authority.find(['/', '?', '#']).unwrap_or(authority.len())];
        at = start;
        if let Some(userinfo) = authority.rfind('@') {
            spans.push(start..start + userinfo);
            at += userinfo;
        }
    }
    at += uri[at..].find(['?', '#']).unwrap_or(uri.len() - at);
    for field in uri[at..].split_inclusive(['?', '#', '&', ';']) {
        if let Some((key, value)) = field.split_once('=')
            && looks_secret(key)
        {
            let start = at + key.len() + 1;
            let end = start + value.trim_end_matches(['?', '#', '&', ';']).len();
            if start < end {
                spans.push(start..end);
            }
        }
        at += field.len();
    }
    spans
}

/// Whether a URI holds something that [`uri`] masks.
pub fn has_secret(text: &str) -> bool {
    !secret_spans(text).is_empty()
}

/// Masks each URI in a running text.
fn uris(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let ends = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '<' | '>' | '`');
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let (word, after) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
        masked.push_str(&if word.contains("://") { uri(word) } else { word.to_owned() });
        let end = after.chars().next().map_or(0, char::len_utf8);
        masked.push_str(&after[..end]);
        rest = &after[end..];
    }
    if masked == text { Cow::Borrowed(text) } else { Cow::Owned(masked) }
}

/// Whether a variable, header or query key of this name usually holds a secret: `GITHUB_TOKEN`,
/// `Authorization`, `api-key`, `accessToken`.
pub fn looks_secret(name: &str) -> bool {
    const WORDS: [&str; 25] = [
        "token",
        "secret",
        "secrets",
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "pass",
        "key",
        "apikey",
        "accesskey",
        "auth",
        "authorization",
        "credential",
        "credentials",
        "pat",
        "sig",
        "signature",
        "cookie",
        "bearer",
        "jwt",
        "session",
        "sessionid",
        "authtoken",
        "accesstoken",
    ];
    words(name).iter().any(|word| WORDS.contains(&word.as_str()))
}

/// The words of an identifier, lower case: `X-Api_keyName2` is x, api, key, name2.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut lower_before = false;
    for c in name.chars() {
        if !c.is_alphanumeric() {
            words.push(String::new());
        } else {
            if c.is_uppercase() && lower_before {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(c.to_lowercase());
            }
        }
        lower_before = c.is_lowercase() || c.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn masks_uris() {
        for (given, wanted) in [
            ("docs://a/b", "docs://a/b"),
            ("https://user:pw@host/x", "https://***@host/x"),
            ("https://u@p@host/x", "https://***@host/x"),
            ("https://host/a@b", "https://host/a@b"),
            ("pg://h/db?password=abc&x=1", "pg://h/db?password=***&x=1"),
            ("https://h/?x=1&api_key=abc#f", "https://h/?x=1&api_key=***#f"),
            ("https://h/#access_token=abc", "https://h/#access_token=***"),
            ("https://h/?token=", "https://h/?token="),
            ("https://h/?X-Amz-Signature=ab==", "https://h/?X-Amz-Signature=***"),
            ("https://h/?max_tokens=3&monkey=1", "https://h/?max_tokens=3&monkey=1"),
            ("无效?密码=1&token=退款", "无效?密码=1&token=***"),
            ("", ""),
        ] {
            assert_eq!(uri(given), wanted);
        }
    }

    #[test]
    fn secrets_of_uris() {
        for (given, wanted) in [
            ("https://u:p%20w@h/?token=abc&x=1", &["p w", "abc"][..]),
            ("https://token@h/", &["token"]),
            ("https://h/#key=k", &["k"]),
            ("docs://a?x=1", &[]),
            ("u:p@h", &[]),
        ] {
            assert_eq!(secrets_of(given), wanted, "{given}");
        }
    }

    #[test]
    fn masks_texts() {
        let masker =
            Masker::new(["s3cr3t-value".into(), "s3cr3t".into(), "abc".into(), "a b/c".into()]);
        for (given, wanted) in [
            ("nothing here", "nothing here"),
            ("key s3cr3t-value! and s3cr3t", "key ***! and ***"),
            ("short abc stays", "short abc stays"),
            ("encoded a%20b%2Fc", "encoded ***"),
            ("at https://u:p@h/x, see", "at https://***@h/x, see"),
            ("GET \"http://h/?token=zz\" failed", "GET \"http://h/?token=***\" failed"),
        ] {
            assert_eq!(masker.mask(given), wanted);
        }
        assert_eq!(Masker::new(["-----BEGIN\nMIIabc\n".into()]).mask("x MIIabc y"), "x *** y");
        assert_eq!(Masker::default().mask("s3cr3t"), "s3cr3t");
    }

    #[test]
    fn knows_secret_names() {
        for name in [
            "GITHUB_TOKEN",
            "api-key",
            "Authorization",
            "accessToken",
            "X-API-Key",
            "PGPASSWORD_",
            "DB_PASS",
        ] {
            let wanted = name != "PGPASSWORD_";
            assert_eq!(looks_secret(name), wanted, "{name}");
        }
        for name in ["MAX_TOKENS", "KEYBOARD", "HOME", "", "author", "bypass"] {
            assert!(!looks_secret(name), "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_secret_never_survives(secret in "[a-z0-9]{6,12}", before in ".{0,20}", after in ".{0,20}") {
            let masker = Masker::new([secret.clone()]);
            let text = format!("{before}{secret}{after}");
            prop_assert!(!masker.mask(&text).contains(&secret));
        }

        #[test]
        fn any_uri_is_masked_without_panic(text in ".{0,60}") {
            let once = uri(&text);
            prop_assert_eq!(uri(&once).len(), once.len());
        }
    }
}
