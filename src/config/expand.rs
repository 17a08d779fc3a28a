//! References to variables and files inside of configured texts, in the ways that the clients write
//! them. A text is first taken apart, which needs no environment; `import` writes it again in
//! resdex's own way, everybody else expands it.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use super::dialect::Dialect;
use super::secret::Secret;
use super::tree::read_at_most;

/// A `${file:…}` larger than this isn't a secret; bytes.
const MAX_SECRET_FILE_BYTES: usize = 1 << 20;

/// Variables whose values are no secrets, whoever refers to them.
const PUBLIC_VARIABLES: [&str; 9] =
    ["HOME", "USER", "LOGNAME", "PATH", "PWD", "SHELL", "LANG", "TZ", "TMPDIR"];

/// A configured text, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text(pub(super) Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Literal(String),
    /// A variable of the environment, and what to take when it is unset or empty.
    Variable {
        name: String,
        default: Option<String>,
    },
    /// The content of a file, without its last line break.
    File(String),
    /// A value that the client would ask its user for.
    Input(String),
    /// `${…}` that the dialect doesn't know.
    Unknown(String),
}

/// Why a text couldn't be expanded, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) message: String,
    pub(super) hint: String,
}

/// What expansion needs to know.
pub(super) struct Surroundings<'a> {
    pub(super) env: &'a dyn Fn(&str) -> Option<String>,
    /// The folder of the config file.
    pub(super) folder: &'a Path,
    /// Files that were read on the way; their changes change the config.
    pub(super) read: &'a RefCell<Vec<PathBuf>>,
}

impl Text {
    /// Takes a text apart by the rules of its dialect; `workspace` stands for `${workspaceFolder}`.
    pub(super) fn parse(text: &str, dialect: Dialect, workspace: &Path) -> Self {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            literal.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            let (piece, used) =
                match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
                    Some((inner, _)) => (Some(braced(inner, dialect, workspace)), inner.len() + 2),
                    None => bare_variable(after, dialect),
                };
            match piece {
                Some(Piece::Literal(text)) => literal.push_str(&text),
                Some(piece) => {
                    if !literal.is_empty() {
                        pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                    }
                    pieces.push(piece);
                }
                None => literal.push('$'),
            }
            rest = &after[used..];
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Self(pieces)
    }

    /// Whether nothing has to be expanded.
    pub(super) fn is_literal(&self) -> bool {
        self.0.iter().all(|piece| matches!(piece, Piece::Literal(_)))
    }

    /// The text in resdex's own way of writing references.
    pub(super) fn written(&self) -> String {
        self.0
            .iter()
            .map(|piece| match piece {
                Piece::Literal(text) => text.clone(),
                Piece::Variable { name, default: None } => format!("${{{name}}}"),
                Piece::Variable { name, default: Some(default) } => {
                    format!("${{{name}:-{default}}}")
                }
                Piece::File(path) => format!("${{file:{path}}}"),
                Piece::Input(id) => format!("${{{}}}", variable_of_input(id)),
                Piece::Unknown(inner) => format!("${{{inner}}}"),
            })
            .collect()
    }

    /// The text with every reference replaced by its value.
    pub(super) fn expand(&self, around: &Surroundings<'_>) -> Result<Secret, Missing> {
        let mut expanded = Secret::default();
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => expanded.push_plain(text),
                Piece::Variable { name, default } => match ((around.env)(name), default) {
                    (Some(value), _) if !value.is_empty() || default.is_none() => {
                        if PUBLIC_VARIABLES.contains(&name.as_str()) {
                            expanded.push_plain(&value);
                        } else {
                            expanded.push_secret(&value);
                        }
                    }
                    (_, Some(default)) => expanded.push_plain(default),
                    (_, None) => {
                        return Err(Missing {
                            message: format!("the variable {name} isn't set"),
                            hint: format!("set {name} in the environment of `resdex serve`"),
                        });
                    }
                },
                Piece::File(path) => expanded.push_secret(&secret_file(path, around)?),
                Piece::Input(id) => {
                    return Err(Missing {
                        message: format!("${{input:{id}}} asks a person for a value"),
                        hint: format!(
                            "replace it with ${{env:{}}} and set that variable",
                            variable_of_input(id)
                        ),
                    });
                }
                Piece::Unknown(inner) => {
                    return Err(Missing {
                        message: format!("${{{inner}}} can't be expanded"),
                        hint: "only references that this kind of file knows are expanded; use a \
                               variable of the environment"
                            .into(),
                    });
                }
            }
        }
        Ok(expanded)
    }
}

/// The piece that `${inner}` is.
fn braced(inner: &str, dialect: Dialect, workspace: &Path) -> Piece {
    use Dialect::{ClaudeCode, Cline, Codex, Cursor, Gemini, Generic, Own, VsCode, Windsurf};
    let unknown = || Piece::Unknown(inner.to_owned());
    let variable = |name: &str, default: Option<&str>| match default {
        Some(default) if default.contains("${") => unknown(),
        _ if is_variable_name(name) => {
            Piece::Variable { name: name.to_owned(), default: default.map(str::to_owned) }
        }
        _ => unknown(),
    };
    let plain = matches!(dialect, Own | ClaudeCode | Gemini | Generic);
    let with_env = matches!(dialect, VsCode | Cursor | Cline | Windsurf | Generic);
    let with_folders = matches!(dialect, VsCode | Cursor | Generic);
    let folder = workspace.display().to_string();
    match inner {
        _ if dialect == Codex => unknown(),
        "workspaceFolder" | "workspaceRoot" if with_folders => Piece::Literal(folder),
        "workspaceFolderBasename" if with_folders => Piece::Literal(
            workspace
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default(),
        ),
        "pathSeparator" | "/" if with_folders => Piece::Literal("/".into()),
        "userHome" if with_folders => Piece::Variable { name: "HOME".into(), default: None },
        _ => match inner.split_once(':') {
            Some(("env", name)) if with_env => variable(name, None),
            Some(("input", id)) if matches!(dialect, VsCode | Generic) => {
                Piece::Input(id.to_owned())
            }
            Some(("file", path)) if dialect == Own => Piece::File(path.to_owned()),
            Some((name, default)) if plain => match default.strip_prefix('-') {
                Some(default) => variable(name, Some(default)),
                None => unknown(),
            },
            None if plain => variable(inner, None),
            _ => unknown(),
        },
    }
}

/// Gemini's `$NAME`, and how many bytes it takes after the `$`.
fn bare_variable(after: &str, dialect: Dialect) -> (Option<Piece>, usize) {
    let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
    let name = &after[..end];
    if dialect == Dialect::Gemini && is_variable_name(name) {
        (Some(Piece::Variable { name: name.to_owned(), default: None }), end)
    } else {
        (None, 0)
    }
}

pub(super) fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The variable that stands for an input: `api-key` is `API_KEY`.
fn variable_of_input(id: &str) -> String {
    let name: String = id
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
        .collect();
    if is_variable_name(&name) { name } else { format!("INPUT_{name}") }
}

fn secret_file(path: &str, around: &Surroundings<'_>) -> Result<String, Missing> {
    let path = around.folder.join(home_relative(path, around.env));
    around.read.borrow_mut().push(path.clone());
    let missing = |why: String| Missing {
        message: format!("the file {} {why}", path.display()),
        hint: "put the secret there, readable for the daemon's user only".into(),
    };
    let text = read_small(&path).map_err(missing)?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

/// The text of a file of secrets. Says what is wrong with it.
pub(super) fn read_small(path: &Path) -> Result<String, String> {
    let cant = |error: std::io::Error| format!("can't be read: {error}");
    // Opening a pipe would wait for somebody to write into it.
    if !std::fs::metadata(path).map_err(cant)?.is_file() {
        return Err("isn't a file".into());
    }
    let bytes = read_at_most(path, MAX_SECRET_FILE_BYTES).map_err(cant)?;
    if bytes.len() > MAX_SECRET_FILE_BYTES {
        return Err("is larger than 1 MiB".into());
    }
    String::from_utf8(bytes).map_err(|_| "isn't UTF-8".into())
}

/// A path with a leading `~/` replaced by the home folder.
pub(super) fn home_relative(path: &str, env: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let home = || env("HOME").filter(|home| !home.is_empty());
    match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => match home() {
            Some(home) => Path::new(&home).join(rest.trim_start_matches('/')),
            None => path.into(),
        },
        _ => path.into(),
    }
}
