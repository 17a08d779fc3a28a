//! A config file as a tree of values that know where they stand, whether it is TOML or JSON with
//! comments. What the keys mean is decided elsewhere.

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use jsonc_parser::ast;
use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, MAX_ERRORS};

/// A config larger than this isn't one; bytes.
const MAX_FILE_BYTES: usize = 16 << 20;

/// A value and its place, in bytes of the file.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) at: Range<usize>,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    String(String),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key and its value, in the file's order.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) key_at: Range<usize>,
    pub(super) value: Node,
}

impl Node {
    pub(super) fn as_table(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Table(entries) => Some(entries),
            _ => None,
        }
    }

    pub(super) fn as_list(&self) -> Option<&[Node]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn as_bool(&self) -> Option<bool> {
        match self.value {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The value under a key of a table.
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// The entry of a key of a table. Of two, which only JSON can have, the later one counts there.
    pub(super) fn entry(&self, key: &str) -> Option<&Entry> {
        self.as_table()?.iter().rev().find(|entry| entry.key == key)
    }

    /// What kind of value it is, for "expected …, found …".
    pub(super) fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Integer(_) => "a whole number",
            Value::Float(_) => "a number with a fraction",
            Value::String(_) => "a string",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// Whether two values are the same, wherever they stand.
    pub(super) fn same(&self, other: &Self) -> bool {
        match (&self.value, &other.value) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Integer(a), Value::Integer(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::String(a), Value::String(b)) => a == b,
            (Value::List(a), Value::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b))
            }
            (Value::Table(a), Value::Table(b)) => {
                a.len() == b.len()
                    && a.iter().all(|x| b.iter().any(|y| x.key == y.key && x.value.same(&y.value)))
            }
            _ => false,
        }
    }
}

/// Reads a file, which may be a pipe, up to one byte more than it may have.
pub(super) fn read_at_most(path: &Path, bytes: usize) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    std::fs::File::open(path)?.take(bytes as u64 + 1).read_to_end(&mut content)?;
    Ok(content)
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    Toml,
    Json,
}

/// A config file that was read.
pub(super) struct Source {
    /// Absolute.
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) syntax: Syntax,
    pub(super) root: Node,
}

impl Source {
    /// Reads and parses a file.
    pub(super) fn read(path: &Path) -> Result<Self, Vec<ConfigError>> {
        let error = |message: String, hint: &str| {
            vec![ConfigError {
                file: path.to_owned(),
                line: None,
                column: None,
                message,
                hint: (!hint.is_empty()).then(|| hint.to_owned()),
            }]
        };
        let path = std::path::absolute(path)
            .map_err(|cause| error(format!("isn't a usable path: {cause}"), ""))?;
        let bytes = read_at_most(&path, MAX_FILE_BYTES).map_err(|cause| {
            let hint = match cause.kind() {
                std::io::ErrorKind::NotFound => "check the path given with --config",
                std::io::ErrorKind::PermissionDenied => "let the daemon's user read it",
                _ => "",
            };
            error(format!("can't be read: {cause}"), hint)
        })?;
        if bytes.len() > MAX_FILE_BYTES {
            return Err(error(
                format!("is larger than {} MiB: that's not a config", MAX_FILE_BYTES >> 20),
                "",
            ));
        }
        let text = String::from_utf8(bytes)
            .map_err(|_| error("isn't UTF-8".into(), "save it as UTF-8"))?;
        Self::parse(path, text)
    }

    /// Parses the text of a file; the path's suffix, else the text's first character, tells the
    /// syntax.
    pub(super) fn parse(path: PathBuf, text: String) -> Result<Self, Vec<ConfigError>> {
        // A byte order mark is common in files saved on Windows and means nothing.
        let text = match text.strip_prefix('\u{feff}') {
            Some(rest) => rest.to_owned(),
            None => text,
        };
        let syntax = syntax_of(&path, &text);
        let root = match syntax {
            Syntax::Toml => parse_toml(&path, &text)?,
            Syntax::Json => parse_json(&path, &text).map_err(|error| vec![error])?,
        };
        Ok(Self { path, text, syntax, root })
    }

    /// Line and column of a byte, both from 1; columns in characters.
    pub(super) fn place(&self, at: usize) -> (usize, usize) {
        place(&self.text, at)
    }

    /// `file:line` of a byte.
    pub(super) fn origin(&self, at: usize) -> String {
        format!("{}:{}", self.path.display(), self.place(at).0)
    }

    /// The folder the file stands in.
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// An error at a place of this file.
    pub(super) fn error(
        &self,
        at: usize,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> ConfigError {
        let (line, column) = self.place(at);
        ConfigError {
            file: self.path.clone(),
            line: Some(line),
            column: Some(column),
            message: message.into(),
            hint,
        }
    }
}

fn syntax_of(path: &Path, text: &str) -> Syntax {
    match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("toml") => Syntax::Toml,
        Some("json" | "jsonc" | "json5") => Syntax::Json,
        _ if text.trim_start().starts_with(['{', '/']) => Syntax::Json,
        _ => Syntax::Toml,
    }
}

fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    // A character is counted by its first byte, so that a cut inside of one does no harm.
    let column = before[line_start..].iter().filter(|byte| (**byte & 0xC0) != 0x80).count() + 1;
    (line, column)
}

fn parse_toml(path: &Path, text: &str) -> Result<Node, Vec<ConfigError>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        // Only the parser's message: its full text quotes the line, which may hold a secret.
        return Err(errors
            .into_iter()
            .take(MAX_ERRORS)
            .map(|error| {
                let place = error.span().map(|span| place(text, span.start));
                ConfigError {
                    file: path.to_owned(),
                    line: place.map(|place| place.0),
                    column: place.map(|place| place.1),
                    message: format!("isn't valid TOML: {}", error.message()),
                    hint: None,
                }
            })
            .collect());
    }
    let at = table.span();
    Ok(Node { value: toml_table(table.into_inner()), at })
}

fn toml_table(table: DeTable<'_>) -> Value {
    Value::Table(
        table
            .into_iter()
            .map(|(key, value)| Entry {
                key_at: key.span(),
                key: key.into_inner().into_owned(),
                value: Node { at: value.span(), value: toml_value(value.into_inner()) },
            })
            .collect(),
    )
}

fn toml_value(value: DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.into_owned()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Integer(number),
            Err(_) => Value::String(number.to_string()),
        },
        DeValue::Float(number) => match number.as_str().parse() {
            Ok(number) => Value::Float(number),
            Err(_) => Value::String(number.to_string()),
        },
        DeValue::Boolean(value) => Value::Bool(value),
        DeValue::Datetime(time) => Value::String(time.to_string()),
        DeValue::Array(items) => Value::List(
            items
                .into_iter()
                .map(|item| Node { at: item.span(), value: toml_value(item.into_inner()) })
                .collect(),
        ),
        DeValue::Table(table) => toml_table(table),
    }
}

fn parse_json(path: &Path, text: &str) -> Result<Node, ConfigError> {
    let options = jsonc_parser::ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let error = |at: usize, message: String| {
        let (line, column) = place(text, at);
        ConfigError {
            file: path.to_owned(),
            line: Some(line),
            column: Some(column),
            message,
            hint: None,
        }
    };
    let parsed =
        jsonc_parser::parse_to_ast(text, &Default::default(), &options).map_err(|cause| {
            error(cause.range().start, format!("isn't valid JSON: {}", cause.kind()))
        })?;
    match parsed.value {
        Some(value) => Ok(json_node(&value)),
        None => Err(error(0, "is empty".into())),
    }
}

fn json_node(node: &ast::Value<'_>) -> Node {
    let (range, value) = match node {
        ast::Value::NullKeyword(null) => (null.range, Value::Null),
        ast::Value::BooleanLit(literal) => (literal.range, Value::Bool(literal.value)),
        ast::Value::StringLit(literal) => {
            (literal.range, Value::String(literal.value.clone().into_owned()))
        }
        ast::Value::NumberLit(literal) => {
            let value = match (literal.value.parse(), literal.value.parse()) {
                (Ok(number), _) => Value::Integer(number),
                (_, Ok(number)) => Value::Float(number),
                _ => Value::String(literal.value.to_owned()),
            };
            (literal.range, value)
        }
        ast::Value::Array(array) => {
            (array.range, Value::List(array.elements.iter().map(json_node).collect()))
        }
        ast::Value::Object(object) => {
            let entry = |property: &ast::ObjectProp<'_>| {
                let (key, key_at) = match &property.name {
                    ast::ObjectPropName::String(name) => (name.value.as_ref(), name.range),
                    ast::ObjectPropName::Word(name) => (name.value, name.range),
                };
                Entry {
                    key: key.to_owned(),
                    key_at: key_at.start..key_at.end,
                    value: json_node(&property.value),
                }
            };
            (object.range, Value::Table(object.properties.iter().map(entry).collect()))
        }
    };
    Node { value, at: range.start..range.end }
}
