//! A server as a file has it, whichever file: references not expanded, nothing checked against the
//! environment. Resolving it gives the [`ServerConfig`].

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::expand::{Missing, Surroundings, Text, home_relative, read_small};
use super::secret::Secret;
use super::{Follow, Readiness, ServerConfig, Transport, itself, mask, validate};
use crate::model::ServerName;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Draft {
    pub(super) name: ServerName,
    /// `file:line`.
    pub(super) origin: String,
    pub(super) file: PathBuf,
    /// Where relative paths begin and a child runs: the file's folder, or the project's folder
    /// above it.
    pub(super) base: PathBuf,
    pub(super) kind: Kind,
    pub(super) disabled: Option<String>,
    /// Why it can't run, whatever the environment holds.
    pub(super) refused: Option<Missing>,
    pub(super) follow: Follow,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Files {
        root: Text,
    },
    Stdio {
        command: Text,
        args: Vec<Text>,
        env: Vec<(String, Text)>,
        env_file: Option<Text>,
        inherit_env: Vec<String>,
        cwd: Option<Text>,
    },
    Http {
        url: Text,
        headers: Vec<(String, Text)>,
    },
}

/// What came of a draft.
pub(super) struct Resolved {
    pub(super) server: ServerConfig,
    /// What the masker has to know.
    pub(super) secrets: Vec<String>,
    /// Where literal secrets stand: `env.DOCS_TOKEN`.
    pub(super) literal_secrets: Vec<String>,
    pub(super) warnings: Vec<String>,
}

/// Expands a draft. Never fails: what is missing makes the server `needs_config`.
pub(super) fn resolve(draft: &Draft, around: &Surroundings<'_>) -> Resolved {
    let mut work =
        Work { around, base: &draft.base, missing: None, secrets: vec![], literal: vec![] };
    let transport = work.transport(&draft.kind);
    let mut warnings = Vec::new();
    if let Transport::Http { url, headers, unix_socket: None } = &transport
        && let Ok(parsed) = url::Url::parse(url)
        && parsed.scheme() == "http"
        && !validate::is_loopback(&parsed)
        && headers.iter().any(|(name, value)| is_secret(name, value))
    {
        warnings.push(format!(
            "{}: the server {} gets a secret header over plain http; anyone on the way can read it",
            draft.origin, draft.name
        ));
    }
    if let Transport::Files { root } = &transport
        && work.missing.is_none()
        && draft.disabled.is_none()
        && !root.is_dir()
    {
        warnings.push(format!(
            "{}: the folder of the server {} isn't there: {}",
            draft.origin,
            draft.name,
            root.display()
        ));
    }
    let readiness = match (&draft.disabled, &draft.refused, work.missing) {
        (Some(reason), _, _) => Readiness::Disabled { reason: reason.clone() },
        (_, Some(missing), _) => needs_config(missing.clone()),
        (_, _, Some(missing)) => needs_config(missing),
        _ => match itself::reason(&transport) {
            Some(reason) => Readiness::Disabled { reason },
            None => Readiness::Ready,
        },
    };
    Resolved {
        server: ServerConfig {
            name: draft.name.clone(),
            origin: draft.origin.clone(),
            readiness,
            transport,
            follow: draft.follow.clone(),
        },
        secrets: work.secrets,
        literal_secrets: work.literal,
        warnings,
    }
}

fn needs_config(missing: Missing) -> Readiness {
    Readiness::NeedsConfig { message: missing.message, hint: missing.hint }
}

fn is_secret(name: &str, value: &Secret) -> bool {
    mask::looks_secret(name) || !value.parts().is_empty()
}

struct Work<'a> {
    around: &'a Surroundings<'a>,
    base: &'a Path,
    /// The first thing that is missing.
    missing: Option<Missing>,
    secrets: Vec<String>,
    literal: Vec<String>,
}

impl Work<'_> {
    fn transport(&mut self, kind: &Kind) -> Transport {
        match kind {
            Kind::Files { root } => {
                let root = self.filled(root, "files");
                Transport::Files { root: self.path(shown_or_text(&root)) }
            }
            Kind::Stdio { command, args, env, env_file, inherit_env, cwd } => {
                let command = self.filled(command, "command");
                let args = self.args(args);
                let mut variables = match env_file {
                    Some(file) => self.env_file(file),
                    None => BTreeMap::new(),
                };
                for (name, value) in env {
                    let value = self.named(name, value, "env");
                    self.check(validate::variable(name));
                    variables.insert(name.clone(), value);
                }
                for value in variables.values() {
                    if value.expose().contains('\0') {
                        self.check(Err("a variable of its env holds a NUL character".into()));
                    }
                }
                let cwd = match cwd {
                    Some(cwd) => {
                        let cwd = self.text(cwd, "cwd");
                        self.path(shown_or_text(&cwd))
                    }
                    None => self.base.to_owned(),
                };
                Transport::Stdio {
                    command: self.program(shown_or_text(&command)),
                    args,
                    env: variables,
                    inherit_env: inherit_env.clone(),
                    cwd,
                }
            }
            Kind::Http { url, headers } => {
                let url = self.text(url, "url");
                self.secrets.extend(mask::secrets_of(url.expose()));
                if self.missing.is_none()
                    && !url.masked().contains(mask::MASK)
                    && mask::has_secret(url.expose())
                {
                    self.literal.push("url".into());
                }
                let headers = headers
                    .iter()
                    .map(|(name, value)| {
                        let value = self.named(name, value, "headers");
                        self.check(validate::header(name, value.expose()));
                        (name.clone(), value)
                    })
                    .collect();
                let written = shown_or_text(&url);
                let (url, unix_socket) = if url.is_unexpanded() {
                    (written.to_owned(), None)
                } else {
                    match validate::server_url(url.expose()) {
                        Ok(target) => target,
                        Err(missing) => {
                            self.missing.get_or_insert(missing);
                            (written.to_owned(), None)
                        }
                    }
                };
                Transport::Http { url, headers, unix_socket }
            }
        }
    }

    fn check(&mut self, result: Result<(), String>) {
        if let Err(message) = result {
            self.missing.get_or_insert(Missing { message, hint: "correct it in its file".into() });
        }
    }

    /// Expands a text; what can't be stays as it is written, to be shown and never sent.
    fn text(&mut self, text: &Text, place: &str) -> Secret {
        match text.expand(self.around) {
            Ok(secret) => {
                self.secrets.extend_from_slice(secret.parts());
                secret
            }
            Err(mut missing) => {
                missing.message = format!("{place}: {}", missing.message);
                self.missing.get_or_insert(missing);
                Secret::unexpanded(text.written())
            }
        }
    }

    /// Expands a text that can't do its work when it is empty.
    fn filled(&mut self, text: &Text, place: &str) -> Secret {
        let value = self.text(text, place);
        if value.expose().is_empty() {
            self.check(Err(format!("`{place}` is empty")));
        }
        value
    }

    /// Expands a variable or header; a literal in a secret's place is a secret as well.
    fn named(&mut self, name: &str, text: &Text, table: &str) -> Secret {
        let place = format!("{table}.{name}");
        let value = self.text(text, &place);
        let hide = mask::looks_secret(name) || mask::has_secret(value.expose());
        if hide { self.hide(value, 0, text, &place) } else { value }
    }

    fn args(&mut self, texts: &[Text]) -> Vec<Secret> {
        let mut before = String::new();
        let mut args = Vec::with_capacity(texts.len());
        for text in texts {
            let value = self.text(text, "args");
            let given = value.expose().to_owned();
            args.push(match secret_start(&before, &given) {
                Some(at) => self.hide(value, at, text, "args"),
                None => value,
            });
            before = given;
        }
        args
    }

    /// Hides a value from a byte on, noted as literal if it stands in the file.
    fn hide(&mut self, value: Secret, at: usize, text: &Text, place: &str) -> Secret {
        if value.expose().len() <= at {
            return value;
        }
        if text.is_literal() && !self.literal.iter().any(|known| known == place) {
            self.literal.push(place.to_owned());
        }
        self.secrets.extend(mask::secrets_of(value.expose()));
        let value = value.hide_from(at);
        self.secrets.extend_from_slice(value.parts());
        value
    }

    fn path(&self, written: &str) -> PathBuf {
        tidy(&self.base.join(home_relative(written, self.around.env)))
    }

    /// A command with a slash is a path; one without is looked for along PATH.
    fn program(&self, command: &str) -> String {
        if command.contains('/') && !command.contains("${") {
            self.path(command).to_string_lossy().into_owned()
        } else {
            command.to_owned()
        }
    }

    fn env_file(&mut self, file: &Text) -> BTreeMap<String, Secret> {
        let file = self.text(file, "envFile");
        if file.expose().is_empty() {
            return BTreeMap::new();
        }
        let path = self.path(file.expose());
        self.around.read.borrow_mut().push(path.clone());
        match read_small(&path) {
            Ok(text) => {
                let variables: BTreeMap<_, _> =
                    variables_of(&text).map(|(name, value)| (name, Secret::new(value))).collect();
                self.secrets.extend(variables.values().flat_map(|value| value.parts().to_vec()));
                variables
            }
            Err(error) => {
                self.missing.get_or_insert(Missing {
                    message: format!("the env file {} {error}", path.display()),
                    hint: "create it, or take envFile out".into(),
                });
                BTreeMap::new()
            }
        }
    }
}

/// Where the secret of an argument begins: `--token=X`, `--token X`, `--header "Authorization: X"`,
/// a URL with credentials.
fn secret_start(before: &str, arg: &str) -> Option<usize> {
    if matches!(before, "--header" | "-H") {
        let (name, value) = arg.split_once(':')?;
        return mask::looks_secret(name).then_some(arg.len() - value.trim_start().len());
    }
    if arg.starts_with('-') {
        let (flag, value) = arg.split_once('=')?;
        let secret = mask::looks_secret(flag) || mask::has_secret(value);
        return secret.then_some(flag.len() + 1);
    }
    let named = before.starts_with('-') && !before.contains('=') && mask::looks_secret(before);
    (named || mask::has_secret(arg)).then_some(0)
}

/// The text, or where it couldn't be expanded, what is written: for fields that aren't secrets.
fn shown_or_text(secret: &Secret) -> &str {
    if secret.is_unexpanded() { secret.masked() } else { secret.expose() }
}

/// A path without `.` and `..` where that is plain from the path alone.
fn tidy(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut tidy = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(tidy.components().next_back(), Some(Component::Normal(_))) =>
            {
                tidy.pop();
            }
            other => tidy.push(other),
        }
    }
    tidy
}

/// The variables of a `.env` file: `NAME=value`, `export NAME='value'`, `# comment`.
fn variables_of(text: &str) -> impl Iterator<Item = (String, String)> + '_ {
    text.lines().filter_map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=')?;
        let name = name.trim();
        if name.starts_with('#') || validate::variable(name).is_err() {
            return None;
        }
        let value = value.trim();
        let quoted = ['"', '\''].into_iter().find_map(|quote| {
            let (inner, _) = value.strip_prefix(quote)?.rsplit_once(quote)?;
            Some(if quote == '"' {
                inner.replace("\\n", "\n").replace("\\\"", "\"")
            } else {
                inner.to_owned()
            })
        });
        let bare =
            || value.split_once(" #").map_or(value, |(value, _)| value).trim_end().to_owned();
        Some((name.to_owned(), quoted.unwrap_or_else(bare)))
    })
}

/// Whether two files mean the same server, so that it may stand in both.
pub(super) fn same(a: (&Draft, &ServerConfig), b: (&Draft, &ServerConfig)) -> bool {
    let ((draft_a, server_a), (draft_b, server_b)) = (a, b);
    if server_a.follow != server_b.follow || server_a.readiness != server_b.readiness {
        return false;
    }
    let (mut left, right) = (server_a.transport.clone(), &server_b.transport);
    // Where neither says in which folder to run, the folder matters only if an argument is a file.
    if let (
        Kind::Stdio { cwd: None, args, .. },
        Kind::Stdio { cwd: None, .. },
        Transport::Stdio { cwd: folder, .. },
        Transport::Stdio { cwd: other, .. },
    ) = (&draft_a.kind, &draft_b.kind, &mut left, right)
        && !args.iter().any(|arg| is_file_in(arg, folder) || is_file_in(arg, other))
    {
        folder.clone_from(other);
    }
    left == *right
}

fn is_file_in(arg: &Text, folder: &Path) -> bool {
    arg.is_literal() && !arg.written().is_empty() && {
        let path = PathBuf::from(arg.written());
        path.is_relative() && folder.join(path).exists()
    }
}

/// Collects the files that expansion reads.
pub(super) type FilesRead = RefCell<Vec<PathBuf>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn env_files() {
        let text =
            "# note\nA=1\nexport B = two words # note\nC='a # b'\nD=\"x\\ny\"\n=bad\nE=\nnothing\n";
        let variables: Vec<_> = variables_of(text).collect();
        let wanted = [("A", "1"), ("B", "two words"), ("C", "a # b"), ("D", "x\ny"), ("E", "")];
        assert_eq!(variables, wanted.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }

    #[test]
    fn secrets_among_arguments() {
        let read = FilesRead::default();
        let around = Surroundings { env: &|_| None, folder: Path::new("/"), read: &read };
        for (given, wanted) in [
            ("-y|pkg|--verbose", "-y|pkg|--verbose"),
            ("--api-key=abcd|x", "--api-key=***|x"),
            ("--api-key|abcd|x", "--api-key|***|x"),
            ("--token|--verbose|x", "--token|--verbose|x"),
            ("--header|Authorization: Bearer abcd", "--header|Authorization: ***"),
            ("-H|X-Team: docs", "-H|X-Team: docs"),
            ("postgres://u:abcd@h/db", "***"),
            ("--url=https://h/?token=abcd", "--url=***"),
            ("token=abcd", "token=abcd"),
            ("--max-tokens|4000", "--max-tokens|4000"),
        ] {
            let base = Path::new("/");
            let mut work =
                Work { around: &around, base, missing: None, secrets: vec![], literal: vec![] };
            let texts: Vec<Text> = given
                .split('|')
                .map(|arg| Text::parse(arg, super::super::dialect::Dialect::Own, base))
                .collect();
            let args = work.args(&texts);
            let shown: Vec<&str> = args.iter().map(Secret::masked).collect();
            assert_eq!(shown.join("|"), wanted);
            let sent: Vec<&str> = args.iter().map(Secret::expose).collect();
            assert_eq!(sent.join("|"), given);
            if wanted.contains("***") {
                assert!(
                    mask::Masker::new(work.secrets).mask("it got abcd").contains("***"),
                    "{given}"
                );
                assert_eq!(work.literal, ["args"]);
            }
        }
    }

    #[test]
    fn tidy_paths() {
        for (given, wanted) in
            [("/a/./b/../c", "/a/c"), ("/../a", "/../a"), ("/a/", "/a"), ("/", "/")]
        {
            assert_eq!(tidy(Path::new(given)), Path::new(wanted));
        }
    }
}
