//! From files to one [`Config`]: read each, merge, expand, check what only the whole can tell.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::dialect::{self, Dialect};
use super::draft::{self, Draft, FilesRead, Kind, Resolved};
use super::error::{ConfigError, ConfigErrors};
use super::expand::Surroundings;
use super::mask::Masker;
use super::own::{self, Addition, Scope};
use super::read::{Reader, nearest};
use super::tree::{Node, Source};
use super::{Config, itself, validate};
use crate::model::ServerName;

/// Sections whose keys hold for the whole daemon.
const GLOBAL: [&str; 5] = ["sync", "limits", "index", "http", "socket"];

/// What the files say before anything is expanded.
#[derive(Default)]
struct Said<'s> {
    config: Config,
    errors: Vec<ConfigError>,
    drafts: Vec<(&'s Source, Draft)>,
    additions: Vec<(&'s Source, Addition)>,
    scopes: Vec<(&'s Source, Scope)>,
    /// Global keys with their values, to find those that two files set differently.
    globals: BTreeMap<String, (&'s Source, &'s Node)>,
    token_place: Option<(&'s Source, usize)>,
}

/// Reads, merges and expands files.
pub(super) fn load(
    files: &[PathBuf],
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, ConfigErrors> {
    merge(files.iter().map(|file| Source::read(file)), env)
}

/// Merges and expands what was read.
pub(super) fn merge(
    files: impl Iterator<Item = Result<Source, Vec<ConfigError>>>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, ConfigErrors> {
    let mut errors = Vec::new();
    let mut sources: Vec<Source> = Vec::new();
    for file in files {
        match file {
            Ok(source) if sources.iter().any(|known| known.path == source.path) => {}
            Ok(source) => sources.push(source),
            Err(more) => errors.extend(more),
        }
    }
    let mut said = Said { errors, ..Said::default() };
    for source in &sources {
        said.take(source);
    }
    said.finish(&sources, env)
}

impl<'s> Said<'s> {
    fn take(&mut self, source: &'s Source) {
        let dialect = dialect::of(source);
        if dialect != Dialect::Own {
            match dialect::read(source, dialect) {
                Ok(client) => {
                    self.config.warnings.extend(client.warnings);
                    self.config.notes.extend(client.notes);
                    self.drafts.extend(client.drafts.into_iter().map(|draft| (source, draft)));
                }
                Err(error) => self.errors.push(error),
            }
            return;
        }
        let mut reader = Reader::new(source);
        let own = own::read(&mut reader, &mut self.config);
        self.errors.append(&mut reader.errors);
        self.globals(source);
        self.drafts.extend(own.drafts.into_iter().map(|draft| (source, draft)));
        self.additions.extend(own.additions.into_iter().map(|addition| (source, addition)));
        self.scopes.extend(own.scopes.into_iter().map(|scope| (source, scope)));
    }

    /// A global key in two files must say the same in both.
    fn globals(&mut self, source: &'s Source) {
        for section in GLOBAL {
            let keys = source.root.get(section).and_then(Node::as_table).unwrap_or_default();
            for entry in keys {
                let key = format!("{section}.{}", entry.key);
                if key == "http.listen" {
                    self.token_place = Some((source, entry.value.at.start));
                }
                match self.globals.get(&key) {
                    Some((other, value)) if !value.same(&entry.value) => {
                        let message = format!(
                            "`{key}` is set differently in {}",
                            other.origin(value.at.start)
                        );
                        self.errors.push(source.error(
                            entry.key_at.start,
                            message,
                            Some("set it in one of the files only".into()),
                        ));
                    }
                    Some(_) => {}
                    None => {
                        self.globals.insert(key, (source, &entry.value));
                    }
                }
            }
        }
    }

    fn finish(
        mut self,
        sources: &[Source],
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Config, ConfigErrors> {
        let read = FilesRead::default();
        let mut secrets = Vec::new();
        self.add_to_servers();
        let servers = self.resolve(env, &read, &mut secrets);
        self.config.servers =
            servers.into_iter().map(|(name, (_, resolved))| (name, resolved.server)).collect();
        self.scopes(env, &read, &mut secrets);
        self.check_listen();
        if !self.errors.is_empty() {
            self.errors
                .sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
            self.errors.dedup();
            return Err(ConfigErrors(self.errors));
        }
        let mut config = self.config;
        let listen = config.http.listen.clone();
        itself::disable_own_addresses(config.servers.values_mut(), listen.as_deref(), None);
        config.masker = Masker::new(secrets);
        config.files = sources.iter().map(|source| source.path.clone()).collect();
        config.watched = config.files.clone();
        config.watched.extend(read.into_inner());
        config.watched.sort();
        config.watched.dedup();
        Ok(config)
    }

    /// Puts `[servers.NAME]` tables without a target onto the servers that other files define.
    fn add_to_servers(&mut self) {
        for (source, addition) in std::mem::take(&mut self.additions) {
            let mut found: Vec<&mut Draft> = self
                .drafts
                .iter_mut()
                .map(|(_, draft)| draft)
                .filter(|draft| draft.name == addition.name)
                .collect();
            if found.is_empty() {
                let names = self.drafts.iter().map(|(_, draft)| draft.name.as_str());
                let hint = match nearest(addition.name.as_str(), names) {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => "give it one of them, or add the client file that has it with --config"
                        .into(),
                };
                let message = format!(
                    "the server {} has no `command`, `url` or `files`, and no client file has it",
                    addition.name
                );
                self.errors.push(source.error(addition.at, message, Some(hint)));
                continue;
            }
            for draft in &mut found {
                if let Some(names) = &addition.inherit_env {
                    match &mut draft.kind {
                        Kind::Stdio { inherit_env, .. } => inherit_env.clone_from(names),
                        _ => self.errors.push(source.error(
                            addition.at,
                            format!(
                                "the server {} is no child process: it inherits no variables",
                                draft.name
                            ),
                            Some("take `inherit_env` out".into()),
                        )),
                    }
                }
                match addition.enabled {
                    Some(true) => draft.disabled = None,
                    Some(false) => {
                        draft.disabled = Some("switched off by `enabled = false`".into());
                    }
                    None => {}
                }
                addition.follow.clone().apply(&mut draft.follow);
            }
        }
    }

    /// Expands the servers and merges those of one name.
    fn resolve(
        &mut self,
        env: &dyn Fn(&str) -> Option<String>,
        read: &FilesRead,
        secrets: &mut Vec<String>,
    ) -> BTreeMap<ServerName, (Draft, Resolved)> {
        let mut servers: BTreeMap<ServerName, (Draft, Resolved)> = BTreeMap::new();
        for (source, draft) in std::mem::take(&mut self.drafts) {
            let around = Surroundings { env, folder: source.folder(), read };
            let mut resolved = draft::resolve(&draft, &around);
            secrets.append(&mut resolved.secrets);
            self.config.warnings.append(&mut resolved.warnings);
            self.warn_of_literals(source, &draft, &resolved);
            if let Some((other, known)) = servers.get(&draft.name) {
                let same = draft::same((other, &known.server), (&draft, &resolved.server));
                if !same {
                    self.errors.push(ConfigError {
                        file: source.path.clone(),
                        line: line_of(&draft.origin),
                        column: None,
                        message: format!(
                            "the server {} is also in {}, and not the same",
                            draft.name, other.origin
                        ),
                        hint: Some("rename one, or take one out".into()),
                    });
                }
                continue;
            }
            servers.insert(draft.name.clone(), (draft, resolved));
        }
        servers
    }

    fn warn_of_literals(&mut self, source: &Source, draft: &Draft, resolved: &Resolved) {
        if resolved.literal_secrets.is_empty() || !others_can_read(&source.path) {
            return;
        }
        self.config.warnings.push(format!(
            "{}: the server {} holds a secret in {}, and other users can read this file; chmod 600 \
             it, or refer to a variable",
            draft.origin,
            draft.name,
            resolved.literal_secrets.join(", ")
        ));
    }

    fn scopes(
        &mut self,
        env: &dyn Fn(&str) -> Option<String>,
        read: &FilesRead,
        secrets: &mut Vec<String>,
    ) {
        let mut places: BTreeMap<String, String> = BTreeMap::new();
        for (source, mut scope) in std::mem::take(&mut self.scopes) {
            for (name, at) in &scope.servers {
                match ServerName::new(name) {
                    Ok(name) if self.config.servers.contains_key(&name) => {
                        scope.config.servers.push(name);
                    }
                    _ => {
                        let known = self.config.servers.keys().map(ServerName::as_str);
                        let hint =
                            nearest(name, known).map(|name| format!("did you mean `{name}`?"));
                        let message = format!(
                            "the scope {} names a server that isn't there: {name:?}",
                            scope.name
                        );
                        let error = source.error(*at, message, hint);
                        self.errors.push(error);
                    }
                }
            }
            if let Some((token, at)) = &scope.token {
                let around = Surroundings { env, folder: source.folder(), read };
                match token.expand(&around) {
                    Ok(value) if !value.expose().is_empty() => {
                        secrets.push(value.expose().to_owned());
                        scope.config.token_sha256 = Some(sha256_hex(value.expose()));
                        if token.is_literal() && others_can_read(&source.path) {
                            self.config.warnings.push(format!(
                                "{}: the scope {} holds its token, and other users can read this \
                                 file; put `token_sha256` there (see `resdex token new`)",
                                source.origin(*at),
                                scope.name
                            ));
                        }
                    }
                    Ok(_) => {
                        let message = format!("the token of the scope {} is empty", scope.name);
                        self.errors.push(source.error(*at, message, None));
                    }
                    Err(why) => {
                        let message =
                            format!("the token of the scope {}: {}", scope.name, why.message);
                        self.errors.push(source.error(*at, message, Some(why.hint)));
                    }
                }
            }
            let origin = source.origin(scope.at);
            match self.config.scopes.get(&scope.name) {
                Some(known) if *known != scope.config => {
                    let other = places.get(&scope.name).map_or("another file", String::as_str);
                    let message =
                        format!("the scope {} is also in {other}, and not the same", scope.name);
                    self.errors.push(source.error(scope.at, message, Some("rename one".into())));
                }
                Some(_) => {}
                None => {
                    places.insert(scope.name.clone(), origin);
                    self.config.scopes.insert(scope.name, scope.config);
                }
            }
        }
    }

    /// Other machines get in with a token only.
    fn check_listen(&mut self) {
        let Some(listen) = &self.config.http.listen else { return };
        let Some((source, at)) = self.token_place else { return };
        if let Err(message) = check_listen(&self.config, listen) {
            let hint = "give a scope a token with `resdex token new SCOPE`, or listen on 127.0.0.1";
            self.errors.push(source.error(at, message, Some(hint.into())));
        }
    }
}

/// Whether the daemon may listen there: beyond loopback only where a scope has a token.
pub(super) fn check_listen(config: &Config, listen: &str) -> Result<(), String> {
    let loopback = validate::listen(listen)?;
    if loopback || config.scopes.values().any(|scope| scope.token_sha256.is_some()) {
        Ok(())
    } else {
        Err(format!("listening on {listen:?} lets other machines in, and no scope has a token"))
    }
}

/// The hash of a token as `token_sha256` has it: 64 lower-case hexadecimal digits.
pub fn sha256_hex(token: &str) -> String {
    Sha256::digest(token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn line_of(origin: &str) -> Option<usize> {
    origin.rsplit_once(':')?.1.parse().ok()
}

fn others_can_read(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|meta| meta.permissions().mode() & 0o044 != 0)
}
