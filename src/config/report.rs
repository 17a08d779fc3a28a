//! What `resdex config check`, `show` and `import` print. Pure texts and data; no secret in `check`
//! and `show`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::dialect::{self, Dialect};
use super::draft::{Draft, Kind};
use super::error::{ConfigError, ConfigErrors};
use super::expand::{Piece, Text};
use super::own::{Limit, limit_fields};
use super::tree::Source;
use super::write::Toml;
use super::{Config, HttpConfig, Readiness, ScopeConfig, Secret, ServerConfig, Transport, mask};

/// What becomes of a server, or what there is to say of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckKind {
    Runs,
    NeedsConfig,
    Disabled,
    Warning,
    Note,
}

/// One line of `config check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckLine {
    pub kind: CheckKind,
    /// The server's name, for the first three kinds.
    pub server: Option<String>,
    /// What would run, or why it wouldn't, or the warning.
    pub text: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// `file:line`, for the first three kinds.
    pub origin: Option<String>,
}

/// Says what would run, what wouldn't and why, and what deserves a look.
pub fn check(config: &Config) -> Vec<CheckLine> {
    let servers = config.servers.values().map(|server| {
        let (kind, text, hint) = match &server.readiness {
            Readiness::Ready => (CheckKind::Runs, target(&server.transport), None),
            Readiness::NeedsConfig { message, hint } => {
                (CheckKind::NeedsConfig, message.clone(), Some(hint.clone()))
            }
            Readiness::Disabled { reason } => (CheckKind::Disabled, reason.clone(), None),
        };
        CheckLine {
            kind,
            server: Some(server.name.to_string()),
            text: config.masker.mask(&text).into_owned(),
            hint,
            origin: Some(server.origin.clone()),
        }
    });
    let said = |kind: CheckKind, texts: &[String]| -> Vec<CheckLine> {
        let line = |text: &String| CheckLine {
            kind,
            server: None,
            text: config.masker.mask(text).into_owned(),
            hint: None,
            origin: None,
        };
        texts.iter().map(line).collect()
    };
    servers
        .chain(said(CheckKind::Warning, &config.warnings))
        .chain(said(CheckKind::Note, &config.notes))
        .collect()
}

/// A server's target in one line.
fn target(transport: &Transport) -> String {
    match transport {
        Transport::Files { root } => format!("serves the folder {}", root.display()),
        Transport::Stdio { command, args, cwd, .. } => {
            let mut line = format!("runs {command}");
            for arg in args {
                line.push(' ');
                line.push_str(&word(arg.masked()));
            }
            format!("{line} in {}", cwd.display())
        }
        Transport::Http { url, unix_socket: Some(socket), .. } => {
            format!("asks {} through the socket {}", mask::uri(url), socket.display())
        }
        Transport::Http { url, unix_socket: None, .. } => format!("asks {}", mask::uri(url)),
    }
}

/// An argument, in quotes where it would look like two.
fn word(text: &str) -> String {
    if text.is_empty() || text.contains(char::is_whitespace) {
        format!("{text:?}")
    } else {
        text.to_owned()
    }
}

/// The effective config as resdex's own TOML, with `***` for secrets. A server that can't run for a
/// reason that TOML can't express is written as switched off, with the reason above it.
pub fn show(config: &Config) -> String {
    let mut toml = Toml::default();
    globals(&mut toml, config);
    for server in config.servers.values() {
        show_server(&mut toml, config, server);
    }
    for (name, scope) in &config.scopes {
        show_scope(&mut toml, name, scope);
    }
    toml.finish()
}

fn globals(toml: &mut Toml, config: &Config) {
    toml.section(&["sync"]);
    toml.value("schedule", config.sync.schedule.as_str());
    if let Some(zone) = &config.sync.timezone {
        toml.value("timezone", zone.as_str());
    }
    toml.list("mime_types", &config.sync.mime_types.allow);
    toml.list("exclude_mime_types", &config.sync.mime_types.deny);
    toml.blank();
    toml.section(&["limits"]);
    for (name, limit) in limit_fields(&mut config.limits.clone()) {
        match limit {
            Limit::Time(value) | Limit::Pause(value) => toml.duration(name, *value),
            Limit::Bytes(value) => toml.bytes(name, *value as u64),
            Limit::Disk(value) => toml.bytes(name, *value),
            Limit::Count(value) => toml.value(name, *value as i64),
            Limit::Percent(value) => toml.value(name, i64::from(*value)),
        }
    }
    toml.blank();
    toml.section(&["index"]);
    toml.bytes("heap_bytes", config.index.heap_bytes as u64);
    toml.value("threads", config.index.threads as i64);
    if config.http != HttpConfig::default() {
        toml.blank();
        toml.section(&["http"]);
        if let Some(listen) = &config.http.listen {
            toml.value("listen", listen.as_str());
        }
        toml.list("allowed_hosts", &config.http.allowed_hosts);
        toml.list("allowed_origins", &config.http.allowed_origins);
    }
    toml.blank();
    toml.section(&["socket"]);
    toml.value("mode", format!("{:04o}", config.socket.mode));
    if let Some(group) = &config.socket.group {
        toml.value("group", group.as_str());
    }
    let uids: Vec<i64> = config.socket.allow_uids.iter().map(|uid| i64::from(*uid)).collect();
    toml.list("allow_uids", &uids);
    if config.trace.queries {
        toml.blank();
        toml.section(&["trace"]);
        toml.value("queries", true);
    }
}

fn show_server(toml: &mut Toml, config: &Config, server: &ServerConfig) {
    let masked = |text: &str| config.masker.mask(text).into_owned();
    toml.blank();
    toml.comment(&format!("from {}", server.origin));
    let path = ["servers", server.name.as_str()];
    let off = match &server.readiness {
        Readiness::Ready => false,
        Readiness::NeedsConfig { message, hint } => {
            toml.comment(&format!("needs_config: {}; {}", masked(message), masked(hint)));
            // A reference that couldn't be expanded says so again when it is read again.
            !has_reference(&server.transport)
        }
        Readiness::Disabled { reason } => {
            toml.comment(&format!("disabled: {reason}"));
            true
        }
    };
    toml.section(&path);
    match &server.transport {
        Transport::Files { root } => toml.path("files", root),
        Transport::Stdio { command, args, env, inherit_env, cwd } => {
            toml.value("command", masked(command));
            let args: Vec<&str> = args.iter().map(Secret::masked).collect();
            toml.list("args", &args);
            toml.pairs("env", shown(env));
            toml.list("inherit_env", inherit_env);
            toml.path("cwd", cwd);
        }
        Transport::Http { url, headers, unix_socket } => {
            let path = url.strip_prefix("http://localhost").unwrap_or(url);
            let url = match unix_socket {
                Some(socket) => format!("unix://{}#{path}", socket.display()),
                None => url.clone(),
            };
            write_url(toml, &masked(&url));
            write_headers(toml, shown(headers));
        }
    }
    if off {
        toml.value("enabled", false);
    }
    toml.follow(&path, &server.follow);
}

/// Whether a reference is left that couldn't be expanded.
fn has_reference(transport: &Transport) -> bool {
    match transport {
        Transport::Files { root } => refers(&root.to_string_lossy()),
        Transport::Stdio { command, args, env, cwd, .. } => {
            refers(command)
                || refers(&cwd.to_string_lossy())
                || args.iter().chain(env.values()).any(|text| refers(text.masked()))
        }
        Transport::Http { url, headers, .. } => {
            refers(url) || headers.values().any(|text| refers(text.masked()))
        }
    }
}

/// Whether resdex's own TOML would expand something in a text.
fn refers(text: &str) -> bool {
    !Text::parse(text, Dialect::Own, Path::new("/")).is_literal()
}

/// An entry that names no URL that could be asked still needs one to be read again.
fn write_url(toml: &mut Toml, url: &str) {
    let usable = refers(url) || super::validate::server_url(url).is_ok();
    toml.value("url", if usable { url } else { "http://localhost/" });
}

/// A header that HTTP doesn't allow is left out: it is why the server is switched off.
fn write_headers(toml: &mut Toml, headers: impl Iterator<Item = (String, String)>) {
    let usable = |(name, value): &(String, String)| {
        super::validate::header(name, if refers(value) { "" } else { value }).is_ok()
    };
    toml.pairs("headers", headers.filter(usable));
}

fn shown(values: &BTreeMap<String, Secret>) -> impl Iterator<Item = (String, String)> + '_ {
    values.iter().map(|(name, value)| (name.clone(), value.masked().to_owned()))
}

fn show_scope(toml: &mut Toml, name: &str, scope: &ScopeConfig) {
    let ScopeConfig { servers, include, exclude, mime_types, pins, max_tokens, token_sha256 } =
        scope;
    toml.blank();
    toml.section(&["scopes", name]);
    let servers: Vec<&str> = servers.iter().map(|name| name.as_str()).collect();
    toml.list("servers", &servers);
    toml.list("include", include);
    toml.list("exclude", exclude);
    toml.list("mime_types", mime_types);
    toml.list("pins", pins);
    if let Some(tokens) = max_tokens {
        toml.value("max_tokens", i64::from(*tokens));
    }
    if let Some(hash) = token_sha256 {
        toml.value("token_sha256", hash.as_str());
    }
}

/// A client's file as resdex's own TOML. References to variables stay references, written in
/// resdex's way; nothing is expanded. Literal secrets stay, since the servers need them.
///
/// # Errors
/// What is wrong with the file, or that it is resdex's own already.
pub fn import(file: &Path) -> Result<String, ConfigErrors> {
    let source = Source::read(file).map_err(ConfigErrors)?;
    let dialect = dialect::of(&source);
    if dialect == Dialect::Own {
        return Err(ConfigErrors(vec![ConfigError {
            file: source.path,
            line: None,
            column: None,
            message: "is resdex's own TOML already".into(),
            hint: Some("give it to `resdex serve --config`".into()),
        }]));
    }
    let client = dialect::read(&source, dialect).map_err(|error| ConfigErrors(vec![error]))?;
    let mut toml = Toml::default();
    toml.comment(&format!("imported from {}", source.path.display()));
    for text in client.warnings.iter().chain(&client.notes) {
        toml.comment(text);
    }
    for draft in &client.drafts {
        import_server(&mut toml, draft);
    }
    Ok(toml.finish())
}

fn import_server(toml: &mut Toml, draft: &Draft) {
    toml.blank();
    if let Some(reason) = &draft.disabled {
        toml.comment(&format!("disabled: {reason}"));
    }
    if let Some(missing) = &draft.refused {
        toml.comment(&format!("needs_config: {}; {}", missing.message, missing.hint));
    }
    let asked = inputs(&draft.kind);
    if !asked.is_empty() {
        let variables = asked.join(", ");
        toml.comment(&format!("the client asks for these values; set the variables {variables}"));
    }
    let path = ["servers", draft.name.as_str()];
    toml.section(&path);
    match &draft.kind {
        Kind::Files { root } => toml.value("files", absolute(root, &draft.base)),
        Kind::Stdio { command, args, env, env_file, inherit_env, cwd } => {
            let written = command.written();
            let command =
                if written.contains('/') { absolute(command, &draft.base) } else { written };
            toml.value("command", command);
            let args: Vec<String> = args.iter().map(Text::written).collect();
            toml.list("args", &args);
            toml.pairs("env", written_pairs(env));
            if let Some(file) = env_file {
                toml.value("env_file", absolute(file, &draft.base));
            }
            toml.list("inherit_env", inherit_env);
            match cwd {
                Some(cwd) => toml.value("cwd", absolute(cwd, &draft.base)),
                None => toml.path("cwd", &draft.base),
            }
        }
        Kind::Http { url, headers } => {
            write_url(toml, &url.written());
            write_headers(toml, written_pairs(headers));
        }
    }
    if draft.disabled.is_some() || draft.refused.is_some() {
        toml.value("enabled", false);
    }
    toml.follow(&path, &draft.follow);
}

fn written_pairs(pairs: &[(String, Text)]) -> impl Iterator<Item = (String, String)> + '_ {
    pairs.iter().map(|(name, value)| (name.clone(), value.written()))
}

/// A path that means the same wherever the TOML is put.
fn absolute(path: &Text, base: &Path) -> String {
    let written = path.written();
    match path.0.first() {
        Some(Piece::Literal(start)) if !start.starts_with(['/', '~']) => {
            base.join(written).display().to_string()
        }
        _ => written,
    }
}

/// The variables that stand for what the client would ask a person.
fn inputs(kind: &Kind) -> Vec<String> {
    let texts: Vec<&Text> = match kind {
        Kind::Files { root } => vec![root],
        Kind::Stdio { command, args, env, .. } => {
            std::iter::once(command).chain(args).chain(env.iter().map(|(_, text)| text)).collect()
        }
        Kind::Http { url, headers } => {
            std::iter::once(url).chain(headers.iter().map(|(_, text)| text)).collect()
        }
    };
    let asked = texts.iter().flat_map(|text| &text.0).filter_map(|piece| match piece {
        Piece::Input(_) => Some(Text(vec![piece.clone()]).written()),
        _ => None,
    });
    let mut variables: Vec<String> =
        asked.map(|written| written.trim_matches(['$', '{', '}']).to_owned()).collect();
    variables.sort();
    variables.dedup();
    variables
}
