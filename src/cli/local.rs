//! The commands that need no daemon.

use std::fs;

use base64::Engine as _;
use clap::CommandFactory as _;

use super::args::{Cli, Completions, Extract, Files, Man, TokenNew};
use super::text::{self};
use super::{CliError, Out, logs, note};
use crate::chunk;
use crate::config::{Limits, token};
use crate::extract::{self, Extraction};
use crate::model::{Body, Content, Document, Format, Resource, Snapshot};
use crate::source::files;

/// What the index would hold of a file, by the code that makes it.
pub fn extract(args: &Extract, out: &Out) -> Result<(), CliError> {
    let named = |error| CliError::failed(format!("{}: {error}", args.file.display()));
    let bytes = fs::read(&args.file).map_err(named)?;
    let path = std::path::absolute(&args.file).map_err(named)?;
    let uri = url::Url::from_file_path(&path)
        .map_or_else(|()| path.display().to_string(), |url| url.to_string());
    let body = match String::from_utf8(bytes) {
        Ok(text) => Body::Text(text),
        Err(error) => Body::Blob(base64::prelude::BASE64_STANDARD.encode(error.as_bytes())),
    };
    let resource = Resource {
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        mime_type: args.mime.clone(),
        ..Resource::new(uri.as_str())
    };
    let snapshot = Snapshot::new(vec![Content { uri, mime_type: args.mime.clone(), body }]);
    match extract::extract(&resource, &snapshot, &Limits::default()) {
        Extraction::Skipped(reason) if args.json => {
            out.json(&serde_json::json!({"outcome": "skipped", "reason": reason}))
        }
        Extraction::Skipped(reason) => out.print(&format!(
            "{} it would be found by its name only: {}\n",
            out.look.yellow("skipped:"),
            text::line(&reason)
        )),
        Extraction::Document(document) if args.json => out.json(&json(&document)),
        Extraction::Document(document) => {
            document.notes.iter().for_each(|text| note(text));
            if document.truncated {
                note("the text goes on: a limit cut it");
            }
            out.print(&shown(&document, out))
        }
    }
}

fn json(document: &Document) -> serde_json::Value {
    let parts: Vec<_> = document
        .parts
        .iter()
        .map(|part| serde_json::json!({"index": part.index, "format": part.format, "text": part.text}))
        .collect();
    let chunks = chunk::chunk(document);
    serde_json::json!({
        "outcome": "indexed",
        "title": document.title,
        "mime_type": document.mime_type,
        "truncated": document.truncated,
        "notes": document.notes,
        "parts": parts,
        "chunks": chunks,
    })
}

fn shown(document: &Document, out: &Out) -> String {
    let mut shown = format!(
        "{}\n",
        out.look.dim(&format!(
            "{}{}",
            text::line(&document.mime_type),
            document.title.as_deref().map(|t| format!(", {:?}", text::line(t))).unwrap_or_default(),
        ))
    );
    for part in &document.parts {
        if document.parts.len() > 1 {
            let format = match part.format {
                Format::Plain => "plain",
                Format::Markdown => "markdown",
                Format::Code => "code",
                Format::Lines => "lines",
            };
            shown += &out.look.dim(&format!("── part {}, {format} ──\n", part.index));
        }
        shown += &text::block(&part.text);
        if !shown.ends_with('\n') {
            shown.push('\n');
        }
    }
    shown
}

/// Speaks MCP on stdin and stdout; nothing else is printed there.
pub fn files(args: &Files) -> Result<(), CliError> {
    let named = |error| CliError::usage(format!("{}: {error}", args.dir.display()));
    let root = fs::canonicalize(&args.dir).map_err(named)?;
    let own = root.file_name().unwrap_or_default().to_string_lossy();
    let name = args.name.as_deref().unwrap_or(&own);
    files::scheme_of(name).map_err(|reason| {
        CliError::usage(format!("{name:?} makes no URI scheme: {reason}"))
            .hint("give it a name with --name, such as docs")
    })?;
    logs::start().map_err(CliError::usage)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let served = runtime.block_on(files::serve_stdio(root.clone(), name));
    runtime.shutdown_background();
    served.map_err(|error| CliError::failed(error.to_string()))
}

/// A token, and what the config keeps of it.
pub fn token(args: &TokenNew, out: &Out) -> Result<(), CliError> {
    let token = token::new().map_err(CliError::failed)?;
    if args.json {
        return out.json(&serde_json::json!({
            "scope": args.scope, "token": token.secret, "token_sha256": token.sha256,
        }));
    }
    out.print(&format!("{}\n\n{}", token.secret, text::block(&token.config(&args.scope))))?;
    note("the token is shown this once; the two lines belong in the config");
    Ok(())
}

pub fn completions(args: &Completions, out: &Out) -> Result<(), CliError> {
    let mut script = vec![];
    clap_complete::generate(args.shell, &mut Cli::command(), "resdex", &mut script);
    out.print(&String::from_utf8_lossy(&script))
}

pub fn man(args: &Man) -> Result<(), CliError> {
    fs::create_dir_all(&args.dir)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), &args.dir))
        .map_err(|error| CliError::failed(format!("{}: {error}", args.dir.display())))
}
