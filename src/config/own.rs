//! resdex's own TOML: what its keys are and what they must be like. Unknown keys are errors here.

use std::collections::BTreeMap;

use super::dialect::Dialect;
use super::draft::{Draft, Kind};
use super::expand::Text;
use super::read::Reader;
use super::tree::Entry;
use super::{
    Config, Follow, Limits, ProtocolChoice, ScopeConfig, TemplateConfig, Trust, expand, validate,
};
use crate::model::ServerName;

mod globals;

use globals::{HTTP, INDEX, SOCKET, SYNC, TRACE};
pub(super) use globals::{Limit, limit_fields};

const SECTIONS: [&str; 8] =
    ["sync", "limits", "index", "http", "socket", "trace", "servers", "scopes"];
pub(super) const TEMPLATE: [&str; 2] = ["uri", "values"];
const FOLLOW: [&str; 10] = [
    "schedule",
    "include",
    "exclude",
    "mime_types",
    "exclude_mime_types",
    "protocol",
    "templates",
    "subscribe",
    "max_subscriptions",
    "trust",
];
/// What a server of its own kind has besides.
const SERVER: [&str; 10] = [
    "command",
    "args",
    "env",
    "env_file",
    "inherit_env",
    "cwd",
    "url",
    "headers",
    "files",
    "enabled",
];
const SCOPE: [&str; 8] =
    ["servers", "include", "exclude", "mime_types", "pins", "max_tokens", "token_sha256", "token"];
/// What makes a `[servers.NAME]` table a server rather than an addition to one.
const TARGETS: [&str; 3] = ["command", "url", "files"];
/// The keys of each section; those of `[limits]` are in [`limit_fields`].
pub(super) const TABLES: [(&str, &[&str]); 8] = [
    ("[sync]", &SYNC),
    ("[index]", &INDEX),
    ("[http]", &HTTP),
    ("[socket]", &SOCKET),
    ("[trace]", &TRACE),
    ("[servers.NAME]", &SERVER),
    ("[servers.NAME]", &FOLLOW),
    ("[scopes.NAME]", &SCOPE),
];

/// The section in which a key is known, for a key that stands in the wrong one.
pub(super) fn section_of(key: &str) -> Option<&'static str> {
    if limit_fields(&mut Limits::default()).iter().any(|(name, _)| *name == key) {
        return Some("[limits]");
    }
    TABLES.into_iter().find(|(_, keys)| keys.contains(&key)).map(|(section, _)| section)
}

/// What one file says. Globals are written into the config at once.
#[derive(Default)]
pub(super) struct Own {
    pub(super) drafts: Vec<Draft>,
    pub(super) additions: Vec<Addition>,
    pub(super) scopes: Vec<Scope>,
}

/// `[servers.NAME]` without `command`, `url` or `files`.
pub(super) struct Addition {
    pub(super) name: ServerName,
    pub(super) at: usize,
    pub(super) inherit_env: Option<Vec<String>>,
    pub(super) enabled: Option<bool>,
    pub(super) follow: FollowKeys,
}

pub(super) struct Scope {
    pub(super) name: String,
    pub(super) at: usize,
    pub(super) config: ScopeConfig,
    /// Names in `servers`, with their places, to be compared with the servers there are.
    pub(super) servers: Vec<(String, usize)>,
    /// `token`, to be expanded and hashed.
    pub(super) token: Option<(Text, usize)>,
}

/// The keys of [`Follow`] that a table has.
#[derive(Clone, Default)]
pub(super) struct FollowKeys {
    schedule: Option<String>,
    include: Option<Vec<String>>,
    exclude: Option<Vec<String>>,
    mime_types: Option<Vec<String>>,
    exclude_mime_types: Option<Vec<String>>,
    protocol: Option<ProtocolChoice>,
    templates: Option<Vec<TemplateConfig>>,
    subscribe: Option<Vec<String>>,
    max_subscriptions: Option<usize>,
    trust: Option<Trust>,
}

impl FollowKeys {
    /// Puts what the table has in place of what was there.
    pub(super) fn apply(self, follow: &mut Follow) {
        fn put<T>(place: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *place = value;
            }
        }
        let Self {
            schedule,
            include,
            exclude,
            mime_types,
            exclude_mime_types,
            protocol,
            templates,
            subscribe,
            max_subscriptions,
            trust,
        } = self;
        if schedule.is_some() {
            follow.schedule = schedule;
        }
        put(&mut follow.include, include);
        put(&mut follow.exclude, exclude);
        put(&mut follow.mime_types.allow, mime_types);
        put(&mut follow.mime_types.deny, exclude_mime_types);
        put(&mut follow.protocol, protocol);
        put(&mut follow.templates, templates);
        put(&mut follow.subscribe, subscribe);
        put(&mut follow.max_subscriptions, max_subscriptions);
        put(&mut follow.trust, trust);
    }
}

/// Reads a file of resdex's own. Its errors are in the reader.
pub(super) fn read(reader: &mut Reader<'_>, config: &mut Config) -> Own {
    let mut own = Own::default();
    let source = reader.source;
    for section in source.root.as_table().unwrap_or_default() {
        if !SECTIONS.contains(&section.key.as_str()) {
            reader.unknown(section, "at the top", &SECTIONS);
            continue;
        }
        for entry in reader.table(section) {
            match section.key.as_str() {
                "sync" => globals::sync(reader, entry, config),
                "limits" => globals::limit(reader, entry, &mut config.limits),
                "index" => globals::index(reader, entry, config),
                "http" => globals::http(reader, entry, config),
                "socket" => globals::socket(reader, entry, config),
                "trace" => globals::trace(reader, entry, config),
                "servers" => server(reader, entry, &mut own),
                _ => scope(reader, entry, &mut own),
            }
        }
    }
    own
}

fn server(reader: &mut Reader<'_>, entry: &Entry, own: &mut Own) {
    let section = format!("in [servers.{}]", entry.key);
    let keys = reader.table(entry);
    let name = match ServerName::new(&entry.key) {
        Ok(name) => name,
        Err(why) => return reader.error(entry.key_at.start, why, None),
    };
    let mut targets = keys.iter().filter(|key| TARGETS.contains(&key.key.as_str()));
    let (target, second) = (targets.next(), targets.next());
    if let (Some(first), Some(second)) = (target, second) {
        let message = format!("has both `{}` and `{}` {section}", first.key, second.key);
        reader.error(second.key_at.start, message, Some("a server has one of them".into()));
    }
    let allowed: &[&str] = match target.map(|target| target.key.as_str()) {
        Some("command") => &["command", "args", "env", "env_file", "inherit_env", "cwd", "enabled"],
        Some("url") => &["url", "headers", "enabled"],
        Some(_) => &["files", "enabled"],
        None => &["inherit_env", "enabled"],
    };
    let base = reader.source.folder().to_owned();
    let text = |text: String| Text::parse(&text, Dialect::Own, &base);
    let mut values: BTreeMap<&str, Text> = BTreeMap::new();
    let mut args = Vec::new();
    let mut named = Vec::new();
    let (mut inherit_env, mut enabled, mut follow) = (None, None, FollowKeys::default());
    for key in keys {
        match key.key.as_str() {
            _ if follow_key(reader, key, &mut follow) => {}
            known if !SERVER.contains(&known) => {
                reader.unknown(key, &section, &[&SERVER[..], &FOLLOW[..]].concat());
            }
            other if !allowed.contains(&other) && !TARGETS.contains(&other) => {
                let what = match target {
                    Some(target) => format!("a server with `{}` has no `{other}`", target.key),
                    None => format!("`{other}` needs a `command`, `url` or `files` {section}"),
                };
                reader.error(key.key_at.start, what, None);
            }
            "args" => {
                args = reader.strings(key).unwrap_or_default().into_iter().map(text).collect()
            }
            "env" | "headers" => {
                for pair in reader.table(key) {
                    if let Some(value) = reader.string(pair) {
                        let value = text(value);
                        if key.key == "headers" {
                            check_header(reader, pair, &value);
                        }
                        named.push((pair.key.clone(), value));
                    }
                }
            }
            "inherit_env" => inherit_env = reader.strings_that(key, validate::variable),
            "enabled" => enabled = reader.boolean(key),
            other => {
                if let Some(value) = reader.string(key) {
                    if value.is_empty() {
                        reader.error(key.value.at.start, format!("`{other}` is empty"), None);
                    }
                    values.insert(other, text(value));
                }
            }
        }
    }
    let Some(target) = target else {
        own.additions.push(Addition { name, at: entry.key_at.start, inherit_env, enabled, follow });
        return;
    };
    let Some(value) = values.remove(target.key.as_str()) else { return };
    let kind = match target.key.as_str() {
        "command" => Kind::Stdio {
            command: value,
            args,
            env: named,
            env_file: values.remove("env_file"),
            inherit_env: inherit_env.unwrap_or_default(),
            cwd: values.remove("cwd"),
        },
        "url" => {
            if value.is_literal()
                && let Err(why) = validate::server_url(&value.written())
            {
                reader.error(
                    target.value.at.start,
                    format!("`url`: {}", why.message),
                    Some(why.hint),
                );
            }
            Kind::Http { url: value, headers: named }
        }
        _ => {
            if let Err(why) = validate::scheme_of(&entry.key) {
                reader.error(entry.key_at.start, why, None);
            }
            Kind::Files { root: value }
        }
    };
    let mut draft = Draft {
        name,
        origin: reader.source.origin(entry.key_at.start),
        file: reader.source.path.clone(),
        base: base.clone(),
        kind,
        disabled: (enabled == Some(false)).then(|| "switched off by `enabled = false`".into()),
        refused: None,
        follow: Follow::default(),
    };
    follow.apply(&mut draft.follow);
    own.drafts.push(draft);
}

fn check_header(reader: &mut Reader<'_>, pair: &Entry, value: &Text) {
    // What a reference stands for is known only later.
    let value = if value.is_literal() { value.written() } else { String::new() };
    if let Err(why) = validate::header(&pair.key, &value) {
        reader.error(pair.key_at.start, why, None);
    }
}

/// Reads a key of [`Follow`]; false when it is none.
fn follow_key(reader: &mut Reader<'_>, entry: &Entry, follow: &mut FollowKeys) -> bool {
    match entry.key.as_str() {
        "schedule" => follow.schedule = reader.string_that(entry, validate::schedule),
        "include" => follow.include = reader.strings_that(entry, validate::glob),
        "exclude" => follow.exclude = reader.strings_that(entry, validate::glob),
        "mime_types" => {
            follow.mime_types = reader.strings_that(entry, validate::mime_pattern);
        }
        "exclude_mime_types" => {
            follow.exclude_mime_types = reader.strings_that(entry, validate::mime_pattern);
        }
        "subscribe" => follow.subscribe = reader.strings_that(entry, validate::glob),
        "max_subscriptions" => {
            follow.max_subscriptions =
                reader.count(entry, 0, u32::MAX.into()).map(|count| count as usize);
        }
        "protocol" => {
            let choice = |text: &str| match text {
                "auto" => Some(ProtocolChoice::Auto),
                "legacy" => Some(ProtocolChoice::Legacy),
                "modern" => Some(ProtocolChoice::Modern),
                _ => None,
            };
            let text = reader.string_that(entry, |text| match choice(text) {
                Some(_) => Ok(()),
                None => Err(format!("must be \"auto\", \"legacy\" or \"modern\", not {text:?}")),
            });
            follow.protocol = text.and_then(|text| choice(&text));
        }
        "trust" => {
            let known = |word: &str| match word {
                "last_modified" | "ttl" => Ok(()),
                _ => Err(format!("must be \"last_modified\" or \"ttl\", not {word:?}")),
            };
            follow.trust = reader.strings_that(entry, known).map(|words| {
                let has = |word: &str| words.iter().any(|given| given == word);
                Trust { last_modified: has("last_modified"), ttl: has("ttl") }
            });
        }
        "templates" => follow.templates = templates(reader, entry),
        _ => return false,
    }
    true
}

fn templates(reader: &mut Reader<'_>, entry: &Entry) -> Option<Vec<TemplateConfig>> {
    let Some(items) = entry.value.as_list() else {
        reader.error(entry.value.at.start, "`templates` must be a list of tables", None);
        return None;
    };
    let mut templates = Vec::with_capacity(items.len());
    for item in items {
        let Some(keys) = item.as_table() else {
            reader.error(item.at.start, "`templates` must hold tables with `uri`", None);
            continue;
        };
        let mut template = TemplateConfig::default();
        for key in keys {
            match key.key.as_str() {
                "uri" => {
                    let filled = |uri: &str| match uri {
                        "" => Err("a template's URI can't be empty".into()),
                        _ => Ok(()),
                    };
                    template.uri = reader.string_that(key, filled).unwrap_or_default();
                }
                "values" => {
                    for variable in reader.table(key) {
                        if let Some(values) = reader.strings(variable) {
                            template.values.insert(variable.key.clone(), values);
                        }
                    }
                }
                _ => reader.unknown(key, "in a template", &TEMPLATE),
            }
        }
        match item.entry("uri") {
            None => reader.error(item.at.start, "a template needs its `uri`", None),
            Some(_) if template.uri.is_empty() => {}
            Some(uri) => {
                if let Err(why) = validate::template(&template.uri, template.values.keys()) {
                    reader.error(uri.value.at.start, format!("`uri`: {why}"), None);
                }
            }
        }
        templates.push(template);
    }
    Some(templates)
}

fn scope(reader: &mut Reader<'_>, entry: &Entry, own: &mut Own) {
    if let Err(why) = validate::scope_name(&entry.key) {
        reader.error(entry.key_at.start, why, None);
    }
    let section = format!("in [scopes.{}]", entry.key);
    let mut scope = Scope {
        name: entry.key.clone(),
        at: entry.key_at.start,
        config: ScopeConfig::default(),
        servers: vec![],
        token: None,
    };
    for key in reader.table(entry) {
        match key.key.as_str() {
            "servers" => {
                if reader.strings(key).is_some() {
                    scope.servers = key
                        .value
                        .as_list()
                        .unwrap_or_default()
                        .iter()
                        .filter_map(|item| Some((item.as_str()?.to_owned(), item.at.start)))
                        .collect();
                }
            }
            "include" => {
                scope.config.include = reader.strings_that(key, validate::glob).unwrap_or_default();
            }
            "exclude" => {
                scope.config.exclude = reader.strings_that(key, validate::glob).unwrap_or_default();
            }
            "mime_types" => {
                scope.config.mime_types =
                    reader.strings_that(key, validate::mime_pattern).unwrap_or_default();
            }
            "pins" => scope.config.pins = reader.strings(key).unwrap_or_default(),
            "max_tokens" => {
                scope.config.max_tokens =
                    reader.count(key, 1, u32::MAX.into()).map(|count| count as u32);
            }
            "token_sha256" => {
                scope.config.token_sha256 = reader
                    .string_that(key, validate::token_hash)
                    .map(|hash| hash.to_ascii_lowercase());
            }
            "token" => {
                if let Some(token) = reader.string(key) {
                    let base = reader.source.folder();
                    let token = expand::Text::parse(&token, Dialect::Own, base);
                    scope.token = Some((token, key.value.at.start));
                }
            }
            _ => reader.unknown(key, &section, &SCOPE),
        }
    }
    if scope.config.token_sha256.is_some()
        && let Some((_, at)) = scope.token
    {
        reader.error(at, format!("has both `token` and `token_sha256` {section}"), None);
    }
    own.scopes.push(scope);
}
