//! The client files that people already have: whose file it is, and the servers in it.
//!
//! These files belong to other programs, so unknown keys are noted and never an error, and what is
//! wrong with one server leaves the others alone.

use std::path::{Path, PathBuf};

use super::Follow;
use super::draft::{Draft, Kind};
use super::error::ConfigError;
use super::expand::{Missing, Text};
use super::tree::{Entry, Node, Source, Syntax};
use crate::model::ServerName;

mod entry;

/// What to say of a server behind the HTTP+SSE transport that revision 2025-03-26 replaced.
pub const LEGACY_SSE_MESSAGE: &str = "it speaks the old HTTP+SSE transport, which resdex doesn't; \
     put `mcp-remote` or `supergateway` before it";
/// What to do about [`LEGACY_SSE_MESSAGE`].
pub const LEGACY_SSE_HINT: &str = "give its Streamable HTTP URL if it has one (often ending in \
     /mcp), else run `npx -y mcp-remote URL` or `npx -y supergateway --sse URL` as its command";

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// resdex's own TOML.
    Own,
    ClaudeCode,
    VsCode,
    Cursor,
    Cline,
    Gemini,
    Windsurf,
    Codex,
    /// A root of `mcpServers` or `servers` that nothing else tells apart: the references of all are
    /// understood.
    Generic,
}

/// What a client file holds.
#[derive(Debug, Default)]
pub(super) struct Client {
    pub(super) drafts: Vec<Draft>,
    /// What deserves a look.
    pub(super) warnings: Vec<String>,
    /// What was passed over without harm.
    pub(super) notes: Vec<String>,
}

/// Tells a file's dialect: by its path and name, then by telltale keys.
pub(super) fn of(source: &Source) -> Dialect {
    let name = source.path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let folder = folder_name(source);
    let has = |key: &str| source.root.get(key).is_some();
    if source.syntax == Syntax::Toml {
        return if has("mcp_servers") || folder == ".codex" {
            Dialect::Codex
        } else {
            Dialect::Own
        };
    }
    let in_settings = source.root.get("mcp").is_some_and(|mcp| mcp.get("servers").is_some());
    match (folder, name.as_ref()) {
        (".vscode", _) => Dialect::VsCode,
        (".cursor", _) => Dialect::Cursor,
        (".gemini", _) => Dialect::Gemini,
        (".claude", _) | (_, ".mcp.json" | ".claude.json" | "claude_desktop_config.json") => {
            Dialect::ClaudeCode
        }
        (".cline" | ".roo", _) | (_, "cline_mcp_settings.json" | "mcp_settings.json") => {
            Dialect::Cline
        }
        (".windsurf" | "windsurf", _) | (_, "mcp_config.json") => Dialect::Windsurf,
        (_, "settings.json") if has("mcpServers") => Dialect::Gemini,
        _ if in_settings || has("inputs") || (has("servers") && !has("mcpServers")) => {
            Dialect::VsCode
        }
        _ => telltale(source),
    }
}

/// Tells a dialect by keys that only one client's servers have.
fn telltale(source: &Source) -> Dialect {
    const TELLTALES: [(&str, Dialect); 8] = [
        ("httpUrl", Dialect::Gemini),
        ("trust", Dialect::Gemini),
        ("serverUrl", Dialect::Windsurf),
        ("autoApprove", Dialect::Cline),
        ("alwaysAllow", Dialect::Cline),
        ("transportType", Dialect::Cline),
        ("envFile", Dialect::Cursor),
        ("headersHelper", Dialect::ClaudeCode),
    ];
    let servers = servers_of(source).and_then(|entry| entry.value.as_table()).unwrap_or_default();
    let found = TELLTALES
        .iter()
        .find(|(key, _)| servers.iter().any(|server| server.value.get(key).is_some()));
    match found {
        Some((_, dialect)) => *dialect,
        None if servers.iter().any(|server| {
            server.value.get("type").and_then(Node::as_str) == Some("streamableHttp")
        }) =>
        {
            Dialect::Cline
        }
        None => Dialect::Generic,
    }
}

/// The table of servers, wherever this kind of file has it.
fn servers_of(source: &Source) -> Option<&Entry> {
    let root = &source.root;
    root.entry("mcpServers")
        .or_else(|| root.entry("servers"))
        .or_else(|| root.entry("mcp_servers"))
        .or_else(|| root.get("mcp")?.entry("servers"))
}

fn folder_name(source: &Source) -> &str {
    source.folder().file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Where a client's servers run: for a file in a dot-folder, the project's folder above it.
fn base_of(source: &Source) -> PathBuf {
    const DOT_FOLDERS: [&str; 9] = [
        ".vscode",
        ".cursor",
        ".gemini",
        ".windsurf",
        ".codex",
        ".claude",
        ".cline",
        ".roo",
        ".kiro",
    ];
    let folder = source.folder();
    match folder.parent() {
        Some(above) if DOT_FOLDERS.contains(&folder_name(source)) => above.to_owned(),
        _ => folder.to_owned(),
    }
}

/// Reads the servers of a client file.
pub(super) fn read(source: &Source, dialect: Dialect) -> Result<Client, ConfigError> {
    let mut client = Client::default();
    let Some(servers) = servers_of(source) else {
        if matches!(dialect, Dialect::Generic) || source.root.as_table().is_none() {
            let hint = "expected an object with `mcpServers` or `servers`".to_owned();
            return Err(source.error(0, "has no MCP servers in it", Some(hint)));
        }
        client.warnings.push(format!("{}: has no MCP servers in it", source.path.display()));
        return Ok(client);
    };
    let Some(entries) = servers.value.as_table() else {
        let message = format!("`{}` must be a table, not {}", servers.key, servers.value.kind());
        return Err(source.error(servers.value.at.start, message, None));
    };
    let base = base_of(source);
    for (n, entry) in entries.iter().enumerate() {
        if entries[..n].iter().any(|earlier| earlier.key == entry.key) {
            let message = format!("has the server {:?} twice", entry.key);
            return Err(source.error(entry.key_at.start, message, Some("rename one".into())));
        }
        match ServerName::new(&entry.key) {
            Ok(name) => {
                let mut draft = server(source, dialect, &base, name, entry);
                if dialect == Dialect::Gemini {
                    draft.disabled = draft.disabled.or_else(|| gemini_switch(source, &entry.key));
                }
                client.drafts.push(draft);
                client.notes.extend(unknown_keys(source, entry));
            }
            Err(why) => client.warnings.push(format!(
                "{}: this server is left out: {why}; rename it",
                source.origin(entry.key_at.start)
            )),
        }
    }
    Ok(client)
}

/// Keys that some client gives a meaning which has nothing to do with reading resources, and those
/// that are read here.
const KNOWN_KEYS: [&str; 47] = [
    "command",
    "args",
    "env",
    "envFile",
    "cwd",
    "workingDirectory",
    "type",
    "transport",
    "transportType",
    "url",
    "httpUrl",
    "serverUrl",
    "headers",
    "headersHelper",
    "disabled",
    "enabled",
    "timeout",
    "autoApprove",
    "alwaysAllow",
    "alwaysLoad",
    "trust",
    "includeTools",
    "excludeTools",
    "disabledTools",
    "tools",
    "description",
    "name",
    "auth",
    "oauth",
    "authProviderType",
    "dev",
    "gallery",
    "version",
    "sandbox",
    "sandboxEnabled",
    "bearer_token_env_var",
    "http_headers",
    "env_http_headers",
    "env_vars",
    "startup_timeout_sec",
    "startup_timeout_ms",
    "tool_timeout_sec",
    "enabled_tools",
    "disabled_tools",
    "required",
    "scopes",
    "watchPaths",
];

fn unknown_keys(source: &Source, entry: &Entry) -> Option<String> {
    let unknown: Vec<&str> = entry
        .value
        .as_table()?
        .iter()
        .map(|key| key.key.as_str())
        .filter(|key| !KNOWN_KEYS.contains(key))
        .collect();
    (!unknown.is_empty()).then(|| {
        format!(
            "{}: the server {} has keys that resdex passes over: {}",
            source.origin(entry.key_at.start),
            entry.key,
            unknown.join(", ")
        )
    })
}

/// Gemini CLI switches servers on and off by lists of names beside the servers.
fn gemini_switch(source: &Source, name: &str) -> Option<String> {
    let root = &source.root;
    let list = |inner: &str, old: &str| {
        root.get("mcp").and_then(|mcp| mcp.get(inner)).or_else(|| root.get(old))?.as_list()
    };
    let has = |list: &[Node]| list.iter().any(|item| item.as_str() == Some(name));
    if list("excluded", "excludeMCPServers").is_some_and(has) {
        return Some("excluded by `mcp.excluded` in its file".into());
    }
    list("allowed", "allowMCPServers")
        .is_some_and(|allowed| !has(allowed))
        .then(|| "not among `mcp.allowed` in its file".into())
}

fn server(
    source: &Source,
    dialect: Dialect,
    base: &Path,
    name: ServerName,
    entry: &Entry,
) -> Draft {
    let fields = entry::Fields { node: &entry.value, dialect, base };
    let (kind, refused) = match fields.kind() {
        Ok((kind, refused)) => (kind, refused),
        Err(message) => {
            let hint = format!("correct it in {}", source.origin(entry.key_at.start));
            let nothing = Kind::Http { url: Text::default(), headers: vec![] };
            (nothing, Some(Missing { message, hint }))
        }
    };
    let flag = |key: &str| entry.value.get(key).and_then(Node::as_bool);
    let disabled = (flag("disabled") == Some(true) || flag("enabled") == Some(false))
        .then(|| "switched off in its file".to_owned());
    Draft {
        name,
        origin: source.origin(entry.key_at.start),
        file: source.path.clone(),
        base: base.to_owned(),
        kind,
        disabled,
        refused,
        follow: Follow::default(),
    }
}
