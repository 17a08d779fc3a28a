//! What the user wants: schema, load, validate, secret references.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::model::ServerName;

mod dialect;
mod diff;
mod draft;
mod error;
mod expand;
mod glob;
mod itself;
mod load;
pub mod mask;
mod own;
mod read;
pub mod report;
mod secret;
pub mod template;
pub mod token;
mod tree;
mod validate;
mod watch;
mod write;

pub use dialect::{LEGACY_SSE_HINT, LEGACY_SSE_MESSAGE};
pub use diff::{ConfigDiff, diff};
pub use error::{ConfigError, ConfigErrors};
pub use glob::globs;
pub use load::sha256_hex;
pub use mask::Masker;
pub use secret::Secret;
pub use validate::scheme_of;
pub use watch::ConfigWatch;

/// A configuration that was read, merged from all its files, and checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    pub sync: SyncConfig,
    pub limits: Limits,
    pub index: IndexConfig,
    pub http: HttpConfig,
    pub socket: SocketConfig,
    pub trace: TraceConfig,
    pub servers: BTreeMap<ServerName, ServerConfig>,
    pub scopes: BTreeMap<String, ScopeConfig>,
    /// Things that work but deserve a look, each with its file.
    pub warnings: Vec<String>,
    /// What was passed over without harm (keys of client files that mean nothing here).
    pub notes: Vec<String>,
    /// The files it was read from; absolute.
    pub files: Vec<PathBuf>,
    /// Every file whose change changes this config: `files`, the env files and `${file:…}`.
    pub watched: Vec<PathBuf>,
    /// Hides the secrets of all servers and scopes in whatever is logged or answered.
    pub masker: Masker,
}

impl Config {
    /// Reads the files, each in resdex's own TOML or as a client has it, and makes one config of
    /// them. `env` looks up variables, for references.
    ///
    /// A server that can't be configured doesn't fail this: it is [`Readiness::NeedsConfig`].
    ///
    /// # Errors
    /// Everything that is wrong in all the files, with file and line.
    pub fn load(
        files: &[PathBuf],
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigErrors> {
        load::load(files, env)
    }

    /// As [`Config::load`], of texts that needn't be files: each with the path that tells its kind
    /// and where it would stand.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn from_texts(
        texts: &[(PathBuf, String)],
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigErrors> {
        let parse =
            |(path, text): &(PathBuf, String)| tree::Source::parse(path.clone(), text.clone());
        load::merge(texts.iter().map(parse), env)
    }

    /// Disables the servers that lead back to this daemon. `load` does it for `http.listen`; call it
    /// again with what the command line says.
    pub fn disable_own_addresses(&mut self, listen: Option<&str>, socket: Option<&Path>) {
        itself::disable_own_addresses(self.servers.values_mut(), listen, socket);
    }

    /// Whether the daemon may listen on an address (`HOST:PORT`): beyond loopback only with tokens.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn check_listen(&self, listen: &str) -> Result<(), String> {
        load::check_listen(self, listen)
    }
}

/// Where the config is when nobody says: `RESDEX_CONFIG`, else `$XDG_CONFIG_HOME/resdex/config.toml`,
/// else `~/.config/resdex/config.toml`.
pub fn default_file(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("RESDEX_CONFIG").or_else(|| {
        // The XDG rules want a relative path ignored.
        let folder = set("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
        let folder = folder.or_else(|| Some(set("HOME")?.join(".config")))?;
        Some(folder.join("resdex/config.toml"))
    })
}

#[derive(Clone, Debug, PartialEq)]
pub struct SyncConfig {
    /// Cron, seconds first.
    pub schedule: String,
    /// IANA name; the machine's zone when unset.
    pub timezone: Option<String>,
    /// Of all servers; a server's own holds as well.
    pub mime_types: MimePolicy,
}

impl Default for SyncConfig {
    fn default() -> Self {
        Self {
            schedule: "0 */15 * * * *".into(),
            timezone: None,
            mime_types: MimePolicy::default(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    pub name: ServerName,
    /// `file:line` of the entry, for messages.
    pub origin: String,
    pub readiness: Readiness,
    pub transport: Transport,
    pub follow: Follow,
}

/// Whether a server can be run as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// Something is missing: what, and what to set.
    NeedsConfig {
        message: String,
        hint: String,
    },
    /// Switched off in its file, or it would start resdex itself.
    Disabled {
        reason: String,
    },
}

#[derive(Clone, PartialEq)]
pub enum Transport {
    /// A folder that resdex itself serves.
    Files { root: PathBuf },
    Stdio {
        command: String,
        args: Vec<Secret>,
        env: BTreeMap<String, Secret>,
        /// Names of variables passed on from the daemon beyond the standard list.
        inherit_env: Vec<String>,
        cwd: PathBuf,
    },
    /// Streamable HTTP; `unix_socket` when the URL was `unix:///sock#/path`.
    Http { url: String, headers: BTreeMap<String, Secret>, unix_socket: Option<PathBuf> },
}

/// Of a URL only the origin is printed: its path and query may hold a secret.
impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files { root } => f.debug_struct("Files").field("root", root).finish(),
            Self::Stdio { command, args, env, inherit_env, cwd } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", args)
                .field("env", env)
                .field("inherit_env", inherit_env)
                .field("cwd", cwd)
                .finish(),
            Self::Http { url, headers, unix_socket } => {
                let origin = url::Url::parse(url).map(|url| url.origin().ascii_serialization());
                f.debug_struct("Http")
                    .field("origin", &origin.unwrap_or_default())
                    .field("headers", headers)
                    .field("unix_socket", unix_socket)
                    .finish()
            }
        }
    }
}

/// How a server's resources are followed.
#[derive(Clone, Debug, PartialEq)]
pub struct Follow {
    /// Cron, instead of the global one.
    pub schedule: Option<String>,
    /// Globs over the whole URI; `*` doesn't cross `/`, `**` does. Empty: everything.
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    pub mime_types: MimePolicy,
    pub protocol: ProtocolChoice,
    pub templates: Vec<TemplateConfig>,
    /// Globs of the URIs to subscribe to. Empty: everything.
    pub subscribe: Vec<String>,
    pub max_subscriptions: usize,
    pub trust: Trust,
}

/// What of a server's word spares a reconciliation its reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// A resource whose `lastModified` is the same has not changed.
    pub last_modified: bool,
    /// A resource stays as it is for the `ttlMs` of its read.
    pub ttl: bool,
}

impl Default for Follow {
    fn default() -> Self {
        Self {
            schedule: None,
            include: vec![],
            exclude: vec![],
            mime_types: MimePolicy::default(),
            protocol: ProtocolChoice::Auto,
            templates: vec![],
            subscribe: vec![],
            max_subscriptions: 10_000,
            trust: Trust::default(),
        }
    }
}

/// Which resources are indexed with their text, by what they turned out to be; the others by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MimePolicy {
    /// Types such as `text/markdown` or `text/*`. Empty: all.
    pub allow: Vec<String>,
    pub deny: Vec<String>,
}

impl MimePolicy {
    /// Whether a type, lower case and without parameters, passes.
    pub fn allows(&self, essence: &str) -> bool {
        let matches = |pattern: &String| match pattern.strip_suffix('*') {
            Some("*/") => true,
            Some(top) => essence.starts_with(&top.to_ascii_lowercase()),
            None => pattern.eq_ignore_ascii_case(essence),
        };
        (self.allow.is_empty() || self.allow.iter().any(matches)) && !self.deny.iter().any(matches)
    }

    pub fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.deny.is_empty()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProtocolChoice {
    #[default]
    Auto,
    Legacy,
    Modern,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TemplateConfig {
    pub uri: String,
    /// Values by variable; a variable without any is asked of `completion/complete`.
    pub values: BTreeMap<String, Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScopeConfig {
    /// Empty: all servers.
    pub servers: Vec<ServerName>,
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    /// `type/subtype`, `*` as a wildcard. Empty: all.
    pub mime_types: Vec<String>,
    pub pins: Vec<String>,
    pub max_tokens: Option<u32>,
    /// SHA-256 of the token, lower-case hex.
    pub token_sha256: Option<String>,
}

/// Every limit, with its default. Reported when hit.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Limits {
    pub connect_timeout: Duration,
    pub list_timeout: Duration,
    pub read_timeout: Duration,
    pub subscribe_timeout: Duration,
    /// One stdio line, one event, one JSON body; bytes.
    pub max_message_bytes: usize,
    /// Nesting of JSON.
    pub max_json_depth: usize,
    /// Text of one resource; bytes.
    pub max_text_bytes: usize,
    /// Blob of one resource, decoded; bytes.
    pub max_blob_bytes: usize,
    /// Contents of one read.
    pub max_parts: usize,
    /// Processes that read binary content, at most at a time.
    pub extract_workers: usize,
    /// What one document may take of such a process: time, and memory in bytes.
    pub extract_timeout: Duration,
    pub extract_memory_bytes: usize,
    /// What an archive or a packed document may hold: bytes unpacked, members, and how many times its
    /// own size.
    pub max_archive_bytes: usize,
    pub max_archive_members: usize,
    pub max_archive_ratio: usize,
    pub max_pages: usize,
    pub max_resources: usize,
    pub max_uri_bytes: usize,
    pub max_name_bytes: usize,
    pub max_description_bytes: usize,
    /// Reads in flight, of one server and of all.
    pub reads_in_flight: usize,
    pub reads_in_flight_total: usize,
    /// Least time between two listings that notifications ask for, after the first.
    pub relist_interval: Duration,
    /// Least time between two reads of one URI that notifications ask for, after the first.
    pub reread_interval: Duration,
    /// Least time between two looks at everything after hints were lost.
    pub recheck_interval: Duration,
    /// How long a mass removal waits for its second listing.
    pub removal_confirmation: Duration,
    /// Wait after a first failure (of a connection, a listing); doubled with each further one.
    pub retry_delay: Duration,
    /// The longest such wait.
    pub max_retry_delay: Duration,
    pub min_free_disk_bytes: u64,
    pub min_free_disk_percent: u8,
    pub max_query_bytes: usize,
    pub max_query_terms: usize,
    /// Snippets of one answer; bytes.
    pub max_answer_bytes: usize,
    pub max_connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: usize = 1 << 20;
        Self {
            connect_timeout: Duration::from_secs(20),
            list_timeout: Duration::from_secs(30),
            read_timeout: Duration::from_secs(60),
            subscribe_timeout: Duration::from_secs(10),
            max_message_bytes: 16 * MIB,
            max_json_depth: 128,
            max_text_bytes: 8 * MIB,
            max_blob_bytes: 11 * MIB,
            max_parts: 64,
            extract_workers: 2,
            extract_timeout: Duration::from_secs(20),
            extract_memory_bytes: 512 * MIB,
            max_archive_bytes: 64 * MIB,
            max_archive_members: 2_000,
            max_archive_ratio: 200,
            max_pages: 1_000,
            max_resources: 50_000,
            max_uri_bytes: 4 << 10,
            max_name_bytes: 256,
            max_description_bytes: 2 << 10,
            reads_in_flight: 32,
            reads_in_flight_total: 64,
            relist_interval: Duration::from_secs(10),
            reread_interval: Duration::from_secs(1),
            recheck_interval: Duration::from_secs(60),
            removal_confirmation: Duration::from_secs(60),
            retry_delay: Duration::from_secs(1),
            max_retry_delay: Duration::from_secs(300),
            min_free_disk_bytes: 1 << 30,
            min_free_disk_percent: 5,
            max_query_bytes: 4 << 10,
            max_query_terms: 64,
            max_answer_bytes: 64 << 10,
            max_connections: 64,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct IndexConfig {
    /// Memory for the index writer, all its threads together; bytes.
    pub heap_bytes: usize,
    pub threads: usize,
}

impl Default for IndexConfig {
    fn default() -> Self {
        Self { heap_bytes: 100 << 20, threads: 2 }
    }
}

/// HTTP on TCP: off unless `listen` is set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HttpConfig {
    pub listen: Option<String>,
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SocketConfig {
    /// Permission bits of the socket, 0600 or 0660.
    pub mode: u32,
    pub group: Option<String>,
    pub allow_uids: Vec<u32>,
}

impl Default for SocketConfig {
    fn default() -> Self {
        Self { mode: 0o600, group: None, allow_uids: vec![] }
    }
}

/// What the trace keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceConfig {
    /// Queries as they were asked, instead of a hash of each.
    pub queries: bool,
}

#[cfg(test)]
mod tests;
