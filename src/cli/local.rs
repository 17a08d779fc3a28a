//! The commands that need no daemon.

use std::fs;
use std::time::{Duration, Instant};

use base64::Engine as _;
use clap::CommandFactory as _;

use super::args::{Cli, Completions, Extract, Files, Man, TokenNew};
use super::text::{self};
use super::{CliError, Out, logs, note};
use crate::chunk;
use crate::config::{Limits, token};
use crate::extract::{Extraction, mime};
use crate::model::{Body, Content, Document, Format, Part, Resource, Snapshot};
use crate::source::files;
use crate::worker::Workers;

/// What the index would hold of a file, by the code that makes it.
pub fn extract(args: &Extract, out: &Out) -> Result<(), CliError> {
    let named = |error| CliError::failed(format!("{}: {error}", args.file.display()));
    let bytes = fs::read(&args.file).map_err(named)?;
    let path = std::path::absolute(&args.file).map_err(named)?;
    let uri = url::Url::from_file_path(&path)
        .map_or_else(|()| path.display().to_string(), |url| url.to_string());
    // As a server does: a PDF is a blob, even one that happens to be valid UTF-8.
    let is_binary = mime::type_of_name(&uri).is_some_and(mime::is_binary_type);
    let body = match String::from_utf8(bytes) {
        // NULs are half of UTF-16.
        Ok(text) if !is_binary && !text.contains('\0') => Body::Text(text),
        Ok(text) => Body::Blob(base64::prelude::BASE64_STANDARD.encode(text)),
        Err(error) => Body::Blob(base64::prelude::BASE64_STANDARD.encode(error.as_bytes())),
    };
    let resource = Resource {
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        mime_type: args.mime.clone(),
        ..Resource::new(uri.as_str())
    };
    let snapshot =
        Snapshot::new(vec![Content { left_out: None, uri, mime_type: args.mime.clone(), body }]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let workers = Workers::new(1);
    let begin = Instant::now();
    let extraction = runtime.block_on(workers.extract(&resource, &snapshot, &Limits::default()));
    let took = begin.elapsed();
    match extraction.map_err(CliError::failed)? {
        Extraction::Skipped(reason) if args.json => out.json(
            &serde_json::json!({"outcome": "skipped", "reason": reason, "took_ms": ms(took)}),
        ),
        Extraction::Skipped(reason) => out.print(&format!(
            "{} it would be found by its name only: {}\n",
            out.look.yellow("skipped:"),
            text::line(&reason)
        )),
        Extraction::Document(document) if args.json => out.json(&json(&document, took)),
        Extraction::Document(document) => {
            document.notes.iter().for_each(|text| note(text));
            if document.truncated {
                note("the text goes on: a limit cut it");
            }
            let mut shown = texts(&document, out);
            if !args.text {
                shown.insert_str(0, &head(&document, out));
                shown += &structure(&document, took, out);
            }
            out.print(&shown)
        }
    }
}

fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e4).round() / 10.0
}

fn json(document: &Document, took: Duration) -> serde_json::Value {
    let parts: Vec<_> = document
        .parts
        .iter()
        .map(|part| {
            let headings = part.headings.iter().map(|heading| {
                serde_json::json!({
                    "level": heading.level, "text": heading.text, "line": line_of(part, heading.at),
                })
            });
            let pages = part.pages.iter().map(|page| {
                serde_json::json!({
                    "number": page.number, "label": page.label, "line": line_of(part, page.at),
                })
            });
            serde_json::json!({
                "index": part.index,
                "format": part.format,
                "text": part.text,
                "headings": headings.collect::<Vec<_>>(),
                "pages": pages.collect::<Vec<_>>(),
            })
        })
        .collect();
    let chunks = chunk::chunk(document);
    serde_json::json!({
        "outcome": "indexed",
        "title": document.title,
        "mime_type": document.mime_type,
        "truncated": document.truncated,
        "notes": document.notes,
        "took_ms": ms(took),
        "parts": parts,
        "chunks": chunks,
    })
}

/// The line of a part's text in which a byte stands, from 1.
fn line_of(part: &Part, at: usize) -> usize {
    1 + part.text.bytes().take(at).filter(|b| *b == b'\n').count()
}

fn head(document: &Document, out: &Out) -> String {
    let title = document.title.as_deref().map(|t| format!(", {:?}", text::line(t)));
    let head = format!("{}{}", text::line(&document.mime_type), title.unwrap_or_default());
    format!("{}\n", out.look.dim(&head))
}

fn texts(document: &Document, out: &Out) -> String {
    let mut shown = String::new();
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

/// Headings, pages and passages with their places, and the time it took.
fn structure(document: &Document, took: Duration, out: &Out) -> String {
    let mut shown = String::new();
    for part in &document.parts {
        let mut pages = part.pages.iter().peekable();
        let mut page = None;
        for heading in &part.headings {
            while let Some(next) = pages.next_if(|next| next.at <= heading.at) {
                page = Some(next.number);
            }
            let place = match page {
                Some(page) => format!("page {page}, line {}", line_of(part, heading.at)),
                None => format!("line {}", line_of(part, heading.at)),
            };
            let indent = "  ".repeat(heading.level.saturating_sub(1).into());
            shown += &format!("{indent}{} {}\n", text::line(&heading.text), out.look.dim(&place));
        }
    }
    if !shown.is_empty() {
        shown.insert_str(0, &out.look.dim("── headings ──\n"));
    }
    let chunks = chunk::chunk(document);
    let pages: usize = document.parts.iter().map(|part| part.pages.len()).sum();
    let pages = if pages > 0 { format!(", {pages} pages") } else { String::new() };
    let bytes: usize = document.parts.iter().map(|part| part.text.len()).sum();
    shown += &out.look.dim(&format!(
        "── {bytes} bytes{pages}, {} passages, {} ms ──\n",
        chunks.len(),
        ms(took)
    ));
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
