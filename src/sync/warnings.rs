//! What a server's owner should know about what it lists, each kind with a count and an example. Pure;
//! secrets and people's names are masked in what is said.

use std::collections::HashMap;

use crate::config::mask::{self, MASK};
use crate::model::{Origin, Resource};

/// Longest example, in characters.
const MAX_EXAMPLE_CHARS: usize = 120;

/// Warnings about a listing. A folder of our own names its files as they are named, so their names
/// say nothing about a server.
pub fn of(resources: &[Resource], own_folder: bool) -> Vec<String> {
    let mut warnings = vec![];
    let secrets: Vec<&str> = uris(resources).filter(|uri| mask::has_secret(uri)).collect();
    if let [first, ..] = &secrets[..] {
        let example = example(&mask::uri(first));
        warnings.push(format!(
            "{} with credentials, such as {example}: everybody who may search sees URIs",
            count(secrets.len(), "URI")
        ));
    }
    let homes: Vec<&str> = uris(resources).filter(|uri| home(uri).is_some()).collect();
    if let [first, ..] = &homes[..] {
        let example = example(&mask::uri(&without_home(first)));
        warnings.push(format!(
            "{} with the path of somebody's home folder, such as {example}",
            count(homes.len(), "URI")
        ));
    }
    if !own_folder {
        warnings.extend(same_names(resources));
    }
    warnings
}

/// What is said of resources whose declared MIME type isn't theirs.
pub fn mislabelled(count_of: u64, first: &str) -> String {
    let example = example(&mask::uri(&without_home(first)));
    let count = count(usize::try_from(count_of).unwrap_or(usize::MAX), "resource");
    format!(
        "{count} of another MIME type than is declared, such as {example}; `resdex list` shows which"
    )
}

fn uris(resources: &[Resource]) -> impl Iterator<Item = &str> {
    resources.iter().map(|resource| &*resource.uri)
}

fn count(many: usize, what: &str) -> String {
    if many == 1 { format!("1 {what}") } else { format!("{many} {what}s") }
}

fn example(uri: &str) -> String {
    match uri.char_indices().nth(MAX_EXAMPLE_CHARS) {
        Some((end, _)) => format!("{}…", &uri[..end]),
        None => uri.to_owned(),
    }
}

/// Resources that people can't tell apart by what they are called.
fn same_names(resources: &[Resource]) -> Option<String> {
    let listed = resources.iter().filter(|resource| resource.origin == Origin::Listed);
    let mut called: HashMap<(&str, Option<&str>), (usize, &str)> = HashMap::new();
    for resource in listed.filter(|resource| !resource.name.is_empty()) {
        let name = (resource.name.as_str(), resource.title.as_deref());
        called.entry(name).or_insert((0, &*resource.uri)).0 += 1;
    }
    let mut shared: Vec<(usize, &str)> = called
        .into_iter()
        .filter(|(_, (many, _))| *many > 1)
        .map(|(name, (many, _))| (many, name.0))
        .collect();
    // The most frequent first, the same each time.
    shared.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let (most, name) = *shared.first()?;
    let all: usize = shared.iter().map(|(many, _)| many).sum();
    let name = example(&mask::uri(name));
    Some(format!(
        "{} with the name of another, such as {name:?}, which {most} have",
        count(all, "resource")
    ))
}

/// The URI with `***` for the name of the home folder's owner.
fn without_home(uri: &str) -> String {
    match home(uri) {
        Some(name) => format!("{}{MASK}{}", &uri[..name.start], &uri[name.end..]),
        None => uri.to_owned(),
    }
}

/// Where the name stands in a URI that holds a home folder's path: `/home/NAME`, `/Users/NAME`,
/// `C:\Users\NAME`, as its path or as a value in its query. On the web these are mere pages.
fn home(uri: &str) -> Option<std::ops::Range<usize>> {
    let scheme = uri.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    let scheme = scheme.unwrap_or_default();
    if ["http", "https", "ws", "wss", "data", "urn"].contains(&scheme.as_str()) {
        return None;
    }
    // Of a scheme of its own, a page may be called `/home/start`.
    let is_file =
        ["file", "vscode", "vscode-remote"].contains(&scheme.as_str()) || scheme.len() <= 1;
    let path = match uri.find("://") {
        Some(at) => uri[at + 3..].find(['/', '\\']).map_or(uri.len(), |path| at + 3 + path),
        None if scheme.len() > 1 => scheme.len() + 1,
        None => 0,
    };
    let values = uri.match_indices('=').map(|(at, _)| (at + 1, true));
    [(path, is_file)].into_iter().chain(values).find_map(|(at, is_path)| {
        let name = name_in(&uri[at..], is_path)?;
        Some(at + name.start..at + name.end)
    })
}

/// The name in a path that begins with a home folder. Where it needn't be one, something has to lie in it.
fn name_in(path: &str, is_path: bool) -> Option<std::ops::Range<usize>> {
    let mut rest = path;
    while let Some(after) = separator(rest) {
        rest = after;
    }
    let rooted = rest.len() < path.len();
    let drive = rest.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
    let drive = rest.get(1..).filter(|_| drive).and_then(|rest| {
        let rest = rest.strip_prefix(':').or_else(|| strip_ignoring_case(rest, "%3a"))?;
        separator(rest)
    });
    let folder = match drive {
        Some(rest) => strip_ignoring_case(rest, "users"),
        None if rooted => rest.strip_prefix("home").or_else(|| rest.strip_prefix("Users")),
        None => None,
    };
    let name = separator(folder?)?;
    let start = path.len() - name.len();
    let end = (0..name.len()).find(|at| {
        name.is_char_boundary(*at)
            && (separator(&name[*at..]).is_some() || name[*at..].starts_with(['?', '#', '&']))
    });
    let is_one =
        end.is_some_and(|end| separator(&name[end..]).is_some_and(|in_it| !in_it.is_empty()));
    let length = end.unwrap_or(name.len());
    (length > 0 && (is_path || drive.is_some() || is_one)).then_some(start..start + length)
}

/// What follows a separator of a path, be it encoded.
fn separator(text: &str) -> Option<&str> {
    let plain = text.strip_prefix(['/', '\\']);
    plain.or_else(|| strip_ignoring_case(text, "%2f")).or_else(|| strip_ignoring_case(text, "%5c"))
}

fn strip_ignoring_case<'t>(text: &'t str, start: &str) -> Option<&'t str> {
    let head = text.get(..start.len())?;
    head.eq_ignore_ascii_case(start).then(|| &text[start.len()..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(uri: &str, name: &str) -> Resource {
        Resource { name: name.into(), ..Resource::new(uri) }
    }

    #[test]
    fn home_folders_are_told_from_pages() {
        for (uri, shown) in [
            ("file:///home/ada/notes.md", Some("file:///home/***/notes.md")),
            ("file:///home/ada", Some("file:///home/***")),
            ("file://localhost/home/ada/x", Some("file://localhost/home/***/x")),
            ("file:///Users/李雷/文档.md", Some("file:///Users/***/文档.md")),
            ("file:///C:/Users/Ада/x.txt", Some("file:///C:/Users/***/x.txt")),
            ("file:///c%3A/users/ada/x.txt", Some("file:///c%3A/users/***/x.txt")),
            ("C:\\Users\\ada\\x.txt", Some("C:\\Users\\***\\x.txt")),
            ("/home/ada/x", Some("/home/***/x")),
            ("notes:///home/ada/x", Some("notes:///home/***/x")),
            ("tool://open?path=/home/ada/x&y=1", Some("tool://open?path=/home/***/x&y=1")),
            ("tool://open?path=%2Fhome%2Fada&y=1", Some("tool://open?path=%2Fhome%2F***&y=1")),
            ("notes:///home/start", None),
            ("https://site.example/home/ada/x", None),
            ("file:///srv/home/ada", None),
            ("file:///home/", None),
            ("file:///homes/ada/x", None),
            ("wiki://home/ada", None),
            ("handbook:///home.md", None),
            ("users:ada", None),
            ("", None),
            ("file://", None),
        ] {
            assert_eq!(home(uri).map(|_| without_home(uri)).as_deref(), shown, "{uri}");
        }
    }

    #[test]
    fn each_kind_is_said_once_with_its_secrets_masked() {
        let resources = [
            named("https://ada:hunter2@site.example/a", "A"),
            named("https://site.example/b?token=hunter2", "B"),
            named("file:///home/ada/c?token=hunter2", "C"),
            named("file:///home/ada/d", "README"),
            named("x://1", "README"),
            named("x://2", "https://eve:hunter2@site.example"),
            named("x://3", "https://eve:hunter2@site.example"),
            named("x://4", "README"),
        ];
        let warnings = of(&resources, false);
        assert_eq!(
            warnings,
            [
                "3 URIs with credentials, such as https://***@site.example/a: everybody who may search sees URIs",
                "2 URIs with the path of somebody's home folder, such as file:///home/***/c?token=***",
                "5 resources with the name of another, such as \"README\", which 3 have",
            ]
        );
        assert_eq!(of(&resources, true).len(), 2);
        assert_eq!(
            of(&[named("x://1", "A"), named("x://2", "B"), named("x://3", "")], false).len(),
            0
        );
        let said = mislabelled(1, "file:///home/ada/x?key=hunter2");
        assert!(
            said.starts_with("1 resource of another MIME type") && !said.contains("ada"),
            "{said}"
        );
    }

    proptest! {
        #[test]
        fn any_uri_is_looked_at_without_a_panic(uri in ".*", name in "[a-zé退]{1,8}", tail in "[/?#&%a-z]{0,6}") {
            let _ = without_home(&uri);
            let home = format!("file:///home/{name}{tail}");
            let named = format!("/home/{name}/");
            prop_assert!(!without_home(&home).contains(&named));
        }
    }
}
