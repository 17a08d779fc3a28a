//! "Did you mean": the known name that is nearest to one that isn't known.

/// The candidate most like `name`, if any is like it at all.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const ALIKE: f64 = 0.75;
    let lower = name.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        // The first of equals, so that an answer doesn't depend on the end of a list.
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
        .map(|(_, candidate)| candidate)
}

/// A hint that names the nearest candidate, else all of them where they are few.
pub fn hint<'a>(
    what: &str,
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    const FEW: usize = 12;
    let candidates: Vec<&str> = candidates.into_iter().collect();
    if let Some(best) = nearest(name, candidates.iter().copied()) {
        return Some(format!("did you mean {best:?}?"));
    }
    match candidates.len() {
        0 => None,
        n if n <= FEW => Some(format!("{what}: {}", candidates.join(", "))),
        n => Some(format!("{what}: {} and {} more", candidates[..FEW].join(", "), n - FEW)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_was_meant() {
        let known = ["query", "limit", "offset", "min_relevance", "документы", "手册"];
        for (name, expected) in [
            ("limt", Some("limit")),
            ("LIMIT", Some("limit")),
            ("minRelevance", Some("min_relevance")),
            ("документ", Some("документы")),
            ("手册子", Some("手册")),
            ("zzz", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), expected, "{name}");
        }
        assert_eq!(hint("servers", "x", ["a", "b"]), Some("servers: a, b".into()));
        assert_eq!(hint("servers", "x", []), None);
        let many: Vec<String> = (0..20).map(|n| format!("q{n}")).collect();
        let hint = hint("servers", "x", many.iter().map(String::as_str)).unwrap();
        assert!(hint.ends_with("q11 and 8 more"), "{hint}");
    }
}
