//! One server's entry in a client file.

use std::path::Path;

use super::{Dialect, LEGACY_SSE_HINT, LEGACY_SSE_MESSAGE};
use crate::config::draft::Kind;
use crate::config::expand::{Missing, Piece, Text, is_variable_name};
use crate::config::tree::{Node, Value};
use crate::config::validate;

/// The fields of one server. Errors are words for its owner.
pub(super) struct Fields<'a> {
    pub(super) node: &'a Node,
    pub(super) dialect: Dialect,
    pub(super) base: &'a Path,
}

impl Fields<'_> {
    /// What the entry is, and why it can't run although it is well-formed.
    pub(super) fn kind(&self) -> Result<(Kind, Option<Missing>), String> {
        if self.node.as_table().is_none() {
            return Err(format!("the entry must be a table, not {}", self.node.kind()));
        }
        let declared = ["type", "transportType", "transport"]
            .into_iter()
            .find_map(|key| self.node.get(key)?.as_str());
        let command = self.text("command")?;
        let url = match (self.text("httpUrl")?, self.text("serverUrl")?, self.text("url")?) {
            (Some(url), _, _) | (None, Some(url), _) => Some((url, true)),
            (None, None, Some(url)) => Some((url, false)),
            _ => None,
        };
        match (declared, command, url) {
            (Some("stdio") | None, Some(command), _) => Ok((self.stdio(command)?, None)),
            (Some("stdio"), None, _) => Err("`command` is missing".into()),
            (declared, _, Some((url, named_http))) => {
                let refused = self.refusal(declared, named_http)?;
                Ok((Kind::Http { url, headers: self.headers()? }, refused))
            }
            (Some(declared), Some(_), None) if !is_http(declared) && declared != "sse" => {
                Err(format!("the type {declared:?} isn't known"))
            }
            (Some(_), _, None) => Err("`url` is missing".into()),
            (None, None, None) => Err("neither `command` nor `url` is there".into()),
        }
    }

    /// Why a remote server can't be reached by Streamable HTTP, if so.
    fn refusal(&self, declared: Option<&str>, named_http: bool) -> Result<Option<Missing>, String> {
        let sse = match declared {
            Some("sse") => true,
            Some(declared) if is_http(declared) => false,
            Some(declared) => return Err(format!("the type {declared:?} isn't known")),
            // A bare `url` is the old transport for these two clients.
            None => !named_http && matches!(self.dialect, Dialect::Cline | Dialect::Gemini),
        };
        if sse {
            let (message, hint) = (LEGACY_SSE_MESSAGE.to_owned(), LEGACY_SSE_HINT.to_owned());
            return Ok(Some(Missing { message, hint }));
        }
        Ok(self.node.get("headersHelper").map(|_| Missing {
            message:
                "its `headersHelper` is a command that makes headers, which resdex doesn't run"
                    .into(),
            hint: "put the header into `headers`, with a variable for the secret".into(),
        }))
    }

    fn stdio(&self, command: Text) -> Result<Kind, String> {
        let cwd = match self.text("cwd")? {
            Some(cwd) => Some(cwd),
            None => self.text("workingDirectory")?,
        };
        Ok(Kind::Stdio {
            command,
            args: self.args()?,
            env: self.pairs("env")?,
            env_file: self.text("envFile")?,
            inherit_env: self.env_vars()?,
            cwd,
        })
    }

    fn parse(&self, text: &str) -> Text {
        Text::parse(text, self.dialect, self.base)
    }

    fn text(&self, key: &str) -> Result<Option<Text>, String> {
        match self.node.get(key).map(|node| (&node.value, node)) {
            None | Some((Value::Null, _)) => Ok(None),
            Some((Value::String(text), _)) if text.is_empty() => Ok(None),
            Some((Value::String(text), _)) => Ok(Some(self.parse(text))),
            Some((_, node)) => Err(format!("`{key}` must be a string, not {}", node.kind())),
        }
    }

    fn args(&self) -> Result<Vec<Text>, String> {
        let Some(node) = self.node.get("args").filter(|node| !matches!(node.value, Value::Null))
        else {
            return Ok(vec![]);
        };
        let wrong = |node: &Node| format!("`args` must be a list of strings, not {}", node.kind());
        node.as_list()
            .ok_or_else(|| wrong(node))?
            .iter()
            .map(|item| scalar(item).map(|text| self.parse(&text)).ok_or_else(|| wrong(item)))
            .collect()
    }

    /// A table of strings; null leaves a name out.
    fn pairs(&self, key: &str) -> Result<Vec<(String, Text)>, String> {
        let Some(node) = self.node.get(key).filter(|node| !matches!(node.value, Value::Null))
        else {
            return Ok(vec![]);
        };
        let entries = node
            .as_table()
            .ok_or_else(|| format!("`{key}` must be a table, not {}", node.kind()))?;
        entries
            .iter()
            .filter(|entry| !matches!(entry.value.value, Value::Null))
            .map(|entry| match scalar(&entry.value) {
                Some(text) => Ok((entry.key.clone(), self.parse(&text))),
                None => Err(format!(
                    "`{key}.{}` must be a string, not {}",
                    entry.key,
                    entry.value.kind()
                )),
            })
            .collect()
    }

    /// Codex names the variables that a child may inherit.
    fn env_vars(&self) -> Result<Vec<String>, String> {
        let Some(node) = self.node.get("env_vars") else { return Ok(vec![]) };
        let wrong = || "`env_vars` must be a list of names of variables".to_owned();
        node.as_list()
            .ok_or_else(wrong)?
            .iter()
            .map(|item| {
                let name =
                    item.as_str().or_else(|| item.get("name")?.as_str()).ok_or_else(wrong)?;
                validate::variable(name).map(|()| name.to_owned())
            })
            .collect()
    }

    fn headers(&self) -> Result<Vec<(String, Text)>, String> {
        let mut headers = self.pairs("headers")?;
        headers.extend(self.pairs("http_headers")?);
        // Codex gives the name of the variable, not a reference to it.
        let variable = |name: &str, place: &str| {
            if is_variable_name(name) {
                Ok(Piece::Variable { name: name.to_owned(), default: None })
            } else {
                Err(format!("`{place}` must be the name of a variable"))
            }
        };
        let named = self.node.get("env_http_headers").and_then(Node::as_table).unwrap_or_default();
        for entry in named {
            let name = entry.value.as_str().unwrap_or_default();
            let value = Text(vec![variable(name, "env_http_headers")?]);
            headers.push((entry.key.clone(), value));
        }
        if let Some(name) = self.node.get("bearer_token_env_var") {
            let token = variable(name.as_str().unwrap_or_default(), "bearer_token_env_var")?;
            let value = Text(vec![Piece::Literal("Bearer ".into()), token]);
            headers.push(("Authorization".into(), value));
        }
        Ok(headers)
    }
}

fn is_http(name: &str) -> bool {
    matches!(
        name.to_ascii_lowercase().replace(['-', '_'], "").as_str(),
        "http" | "https" | "streamablehttp" | "httpurl" | "serverurl" | "streamable"
    )
}

/// A string, or a number or boolean as JSON writes it, which people put where strings belong.
fn scalar(node: &Node) -> Option<String> {
    match &node.value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}
