//! `docs/configuration.md` against what is accepted: every key with its default, and no other.

use std::collections::{BTreeMap, BTreeSet};

use crate::config::own::{TABLES, TEMPLATE, limit_fields};
use crate::config::report::show;
use crate::config::{Config, Limits};

const PAGE: &str = include_str!("../../../docs/configuration.md");

/// `## [section]` → its table's keys with their documented defaults.
fn documented() -> BTreeMap<String, BTreeMap<String, String>> {
    let mut sections: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut section = None;
    for line in PAGE.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = Some(heading).filter(|heading| heading.starts_with('['));
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let (Some(section), [_, key, default, ..]) = (section, &cells[..])
            && let Some(key) = key.strip_prefix('`').and_then(|key| key.split('`').next())
        {
            let keys = sections.entry(section.to_owned()).or_default();
            let default = default.trim_matches('`').to_owned();
            assert_eq!(keys.insert(key.to_owned(), default), None, "{section} has {key} twice");
        }
    }
    sections
}

#[test]
fn every_key_is_documented_and_no_other() {
    let mut limits = Limits::default();
    let limits: Vec<&str> = limit_fields(&mut limits).iter().map(|(key, _)| *key).collect();
    let mut accepted: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let others = [("[limits]", &limits[..]), ("[[servers.NAME.templates]]", &TEMPLATE[..])];
    for (section, keys) in TABLES.into_iter().chain(others) {
        accepted.entry(section).or_default().extend(keys);
    }
    let documented = documented();
    let documented: BTreeMap<&str, BTreeSet<&str>> = documented
        .iter()
        .map(|(section, keys)| (section.as_str(), keys.keys().map(String::as_str).collect()))
        .collect();
    assert_eq!(documented, accepted);
}

#[test]
fn documented_defaults_are_the_defaults() {
    let documented = documented();
    let shown = show(&Config::default());
    let mut section = "";
    let mut compared = 0;
    for line in shown.lines() {
        if line.starts_with('[') {
            section = line;
        } else if let Some((key, default)) = line.split_once(" = ") {
            assert_eq!(documented[section][key], default, "{section} {key}");
            compared += 1;
        }
    }
    let limits = limit_fields(&mut Limits::default()).len();
    assert!(compared > limits, "only {compared} defaults were shown:\n{shown}");

    let follow = crate::config::Follow::default();
    let server = &documented["[servers.NAME]"];
    assert_eq!(server["max_subscriptions"], follow.max_subscriptions.to_string());
}
