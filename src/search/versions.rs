//! Versions of one document: URIs that differ in a version segment only. Pure.
//!
//! `docs://v1/install`, `docs://v2/install` and `docs://latest/install` say nearly the same, and would
//! fill a page where one of them is wanted: the newest, unless the query names another.

use std::cmp::Ordering;

/// A version that scores less than this share of the best one of its document doesn't go before it:
/// what was asked may be only in an old one.
const MIN_SHARE: f32 = 0.8;

/// A URI of which a part is a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    /// The URI without its version: what all versions have in common.
    pub document: String,
    /// As it is written, without a leading `v`.
    pub version: String,
}

/// A candidate: its server, its URI and how well it fits.
pub type Candidate<'a> = (&'a str, &'a str, f32);

/// The order in which candidates, the best first, are shown: of each document one version in the
/// place of its best one, the other versions behind everything else.
pub fn arrange(candidates: &[Candidate<'_>], query: &str) -> Vec<usize> {
    let versioned: Vec<Option<Versioned>> =
        candidates.iter().map(|(_, uri, _)| version_of(uri)).collect();
    let is_same = |a: usize, b: usize| match (&versioned[a], &versioned[b]) {
        (Some(left), Some(right)) => {
            candidates[a].0 == candidates[b].0 && left.document == right.document
        }
        _ => false,
    };
    let mut order = Vec::with_capacity(candidates.len());
    let mut behind = vec![];
    let mut is_placed = vec![false; candidates.len()];
    for at in 0..candidates.len() {
        if is_placed[at] {
            continue;
        }
        let versions: Vec<usize> =
            (at..candidates.len()).filter(|other| *other == at || is_same(at, *other)).collect();
        let chosen = choose(&versions, candidates, &versioned, query).unwrap_or(at);
        order.push(chosen);
        behind.extend(versions.iter().copied().filter(|version| *version != chosen));
        for version in versions {
            is_placed[version] = true;
        }
    }
    behind.sort_unstable();
    order.extend(behind);
    order
}

fn choose(
    versions: &[usize],
    candidates: &[Candidate<'_>],
    versioned: &[Option<Versioned>],
    query: &str,
) -> Option<usize> {
    let version = |at: usize| versioned[at].as_ref().map_or("", |found| found.version.as_str());
    let named = versions.iter().copied().find(|at| names(query, version(*at)));
    let best = versions.first().map_or(0.0, |at| candidates[*at].2);
    let good = versions.iter().copied().filter(|at| candidates[*at].2 >= best * MIN_SHARE);
    // Of equal ones the better.
    named.or_else(|| good.rev().max_by(|a, b| compare(version(*a), version(*b))))
}

/// Finds the version in a URI: `v2`, `1.4.0`, `2.0-rc1`, `latest` and their like between two signs of
/// structure. A day (`2025-06-18`) is one where more follows; the last segment is rather a name.
pub fn version_of(uri: &str) -> Option<Versioned> {
    let is_sign = |c: char| matches!(c, '/' | '?' | '&' | '=' | '@' | '#' | ':');
    let mut document = String::with_capacity(uri.len());
    let mut version: Option<String> = None;
    let mut rest = uri;
    loop {
        let end = rest.find(is_sign).unwrap_or(rest.len());
        let (segment, after) = rest.split_at(end);
        match as_version(segment, !after.is_empty()) {
            Some(found) => {
                let version = version.get_or_insert_default();
                if !version.is_empty() {
                    version.push('.');
                }
                version.push_str(found);
                document.push('\0');
            }
            None => document.push_str(segment),
        }
        let Some(sign) = after.chars().next() else { break };
        document.push(sign);
        rest = &after[sign.len_utf8()..];
    }
    version.map(|version| Versioned { document, version })
}

/// The version that a segment is, without its `v`.
fn as_version(segment: &str, more_follows: bool) -> Option<&str> {
    if matches!(segment, "latest" | "stable" | "current") {
        return Some(segment);
    }
    let number = segment.strip_prefix(['v', 'V']).unwrap_or(segment);
    let has_v = number.len() < segment.len();
    if segment.len() > 40 || !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (numbers, label) = match number.find(['-', '+']) {
        Some(at) => number.split_at(at),
        None => (number, ""),
    };
    let count = numbers.split('.').count();
    let are_numbers = numbers
        .split('.')
        .all(|n| !n.is_empty() && n.len() <= 10 && n.bytes().all(|b| b.is_ascii_digit()));
    if is_day(number) {
        return more_follows.then_some(number);
    }
    let label = label.get(1..).unwrap_or_default().to_ascii_lowercase();
    let is_label = label.is_empty()
        || ["alpha", "beta", "rc", "pre", "dev", "snapshot"]
            .iter()
            .any(|word| label.starts_with(word));
    // Four bare numbers are rather an address.
    let has_shape = if has_v { count <= 4 } else { (2..=3).contains(&count) };
    (are_numbers && is_label && has_shape).then_some(number)
}

fn is_day(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// Whether a query names a version, or the series that it belongs to: `2.1` names `2.1.4`.
fn names(query: &str, version: &str) -> bool {
    let runs = query.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-'));
    runs.map(|run| run.trim_matches(['.', '-'])).any(|run| {
        let run = run.strip_prefix(['v', 'V']).unwrap_or(run);
        let rest = version.get(..run.len()).filter(|head| head.eq_ignore_ascii_case(run));
        let rest = rest.and_then(|_| version.get(run.len()..));
        !run.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// Older versions first.
fn compare(a: &str, b: &str) -> Ordering {
    let key = |version: &str| {
        let rank = match version {
            "latest" => 3,
            "current" => 2,
            "stable" => 1,
            _ => 0,
        };
        let (numbers, label) = match version.find(|c: char| c.is_ascii_alphabetic()) {
            Some(at) if rank == 0 => version.split_at(at),
            _ => (version, ""),
        };
        let numbers: Vec<u64> =
            numbers.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
        // 2.0-rc1 comes before 2.0.
        (rank, numbers, label.is_empty(), label.to_owned())
    };
    key(a).cmp(&key(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_from_names_and_numbers() {
        for (uri, expected) in [
            ("docs://v2/install", Some("2")),
            ("docs://site/1.4.0/install.md", Some("1.4.0")),
            ("docs://site/2.0-rc1/install.md", Some("2.0-rc1")),
            ("https://x.test/latest/指南", Some("latest")),
            ("npm://pkg@4.17.21/README.md", Some("4.17.21")),
            ("spec://2025-06-18/basic", Some("2025-06-18")),
            ("x:///guide?version=3.1", Some("3.1")),
            ("notes://diary/2025-06-18", None),
            ("tickets://14/text", None),
            ("eval:///4983", None),
            ("handbook:///zh-cn/退款.md", None),
            ("files:///a/1.md", None),
            ("https://10.0.0.1/x", None),
            ("x:///vintage/v", None),
        ] {
            let found = version_of(uri).map(|found| found.version);
            assert_eq!(found.as_deref(), expected, "{uri}");
        }
    }

    #[test]
    fn newer_versions_are_told() {
        let order = ["1.9", "1.10", "2.0-alpha", "2.0-rc1", "2.0", "2.0.1", "stable", "latest"];
        for pair in order.windows(2) {
            assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{pair:?}");
        }
    }

    #[test]
    fn one_version_of_a_document_goes_before_the_others() {
        let candidates = [
            ("s", "d://v1/install", 10.0),
            ("s", "d://v3/install", 9.9),
            ("s", "d://v2/install", 9.8),
            ("s", "d://v2/faq", 5.0),
            ("t", "d://v9/install", 4.0),
            ("s", "x://other", 3.0),
        ];
        for (query, expected) in [
            ("how to install", [1, 3, 4, 5, 0, 2]),
            ("install v2", [2, 3, 4, 5, 0, 1]),
            ("如何安装v2版本", [2, 3, 4, 5, 0, 1]),
            ("как установить версию 1", [0, 3, 4, 5, 1, 2]),
        ] {
            assert_eq!(arrange(&candidates, query), expected, "{query}");
        }
        // What only the old version says isn't hidden behind the new one.
        let candidates = [("s", "d://v1/a", 10.0), ("s", "d://v2/a", 2.0)];
        assert_eq!(arrange(&candidates, "removed option"), [0, 1]);
        assert_eq!(arrange(&[], "x"), Vec::<usize>::new());
    }

    #[test]
    fn a_series_names_its_versions() {
        for (query, version, expected) in [
            ("in 2.1?", "2.1.4", true),
            ("in 2.1.4.", "2.1.4", true),
            ("V2 API", "2", true),
            ("2", "21", false),
            ("3.1", "2.1", false),
            ("latest news", "latest", true),
            ("", "1", false),
        ] {
            assert_eq!(names(query, version), expected, "{query} {version}");
        }
    }
}
