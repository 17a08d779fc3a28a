//! Globs over whole URIs, as `include`, `exclude` and `subscribe` hold them.
//!
//! `?` and `*` don't cross a `/`, `**` does, `[…]` is one of these characters and `{a,b}` one of
//! these texts. A URI is matched as it is, never parsed.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

/// Makes one matcher of the patterns: a URI matches if one of them does. None without patterns,
/// which stand for everything in `include` and for nothing in `exclude`.
///
/// # Errors
/// Says what is wrong with the first bad pattern.
pub fn globs(patterns: &[String]) -> Result<Option<GlobSet>, String> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(glob(pattern)?);
    }
    set.build().map(Some).map_err(|why| format!("the patterns are too large together: {why}"))
}

/// One pattern.
pub(super) fn glob(pattern: &str) -> Result<Glob, String> {
    if pattern.is_empty() {
        return Err("an empty pattern matches nothing; \"**\" matches everything".into());
    }
    // The matcher would take such a `**` as `*` without a word.
    let alone = |part: &str| !part.contains("**") || part == "**";
    if !pattern.split('/').all(alone) {
        return Err(format!("{pattern:?} has a `**` that doesn't stand alone between slashes"));
    }
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
        .map_err(|why| format!("{pattern:?} isn't a glob: {}", why.kind()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matches() {
        for (pattern, uri, wanted) in [
            ("**", "wiki://pages/a", true),
            ("wiki://pages/**", "wiki://pages/a/b", true),
            ("wiki://pages/**", "wiki://other/a", false),
            ("wiki://pages/*", "wiki://pages/a", true),
            ("wiki://pages/*", "wiki://pages/a/b", false),
            ("handbook:///**/*.md", "handbook:///refunds.md", true),
            ("handbook:///**/*.md", "handbook:///a/b/%E9%80%80%E6%AC%BE.md", true),
            ("handbook:///*.{md,txt}", "handbook:///a.txt", true),
            ("db://x?id=*", "db://x?id=7", true),
            ("memo://*", "memo://退款", true),
            ("*", "urn:isbn:1", true),
            ("Wiki://**", "wiki://a", false),
        ] {
            let set = globs(&[pattern.to_owned()]).unwrap().unwrap();
            assert_eq!(set.is_match(uri), wanted, "{pattern} {uri}");
        }
        assert!(globs(&[]).unwrap().is_none());
    }

    #[test]
    fn what_is_no_glob() {
        for pattern in ["", "a{b", "a[b", "a**", "**.md", "a/***/b", "\\"] {
            assert!(globs(&[pattern.to_owned()]).is_err(), "{pattern}");
        }
    }
}
