//! The commands that ask the daemon.

use std::time::Duration;

use chrono::Utc;
use futures::StreamExt;

use super::args::{self, SocketArg};
use super::{CliError, Out, note, paths, render, text};
use crate::client::Client;
use crate::model::{ServerState, ServerStatus};
use crate::serve::api::{
    ContextRequest, ReadRequest, ResourcesQuery, ResourcesResponse, SearchRequest, StatusResponse,
    SyncRequest, TraceQuery,
};

/// How long `sync --wait` waits for a server that shows no sign of doing anything.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(200);

/// Runs a conversation with the daemon. One thread is enough, and is there at once.
pub(super) fn talk<T>(
    socket: SocketArg,
    conversation: impl AsyncFnOnce(Client) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let path = paths::socket(socket.socket, || paths::state(None))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(conversation(Client::new(path)))
}

pub fn search(args: args::Search, out: &Out) -> Result<(), CliError> {
    let some = |list: Vec<String>| (!list.is_empty()).then_some(list);
    let request = SearchRequest {
        query: args.query.join(" "),
        limit: args.limit,
        offset: args.offset,
        scope: args.scope,
        servers: some(args.servers),
        mime_types: some(args.mime_types),
        uri_prefix: args.uri_prefix,
        min_relevance: None,
        passages: args.passages,
        explain: args.explain,
    };
    let answer = talk(args.output.socket, async |client| Ok(client.search(&request).await?))?;
    if args.output.json {
        return out.json(&answer);
    }
    out.print(&render::hits(&answer, out.look))?;
    if answer.hits.is_empty() {
        note("nothing found; `resdex status` shows what is indexed");
    } else if answer.more {
        let next = request.offset + answer.hits.len();
        note(&format!("there is more: --offset {next}"));
    }
    Ok(())
}

pub fn context(args: args::Context, out: &Out) -> Result<(), CliError> {
    let request = ContextRequest {
        query: args.query.join(" "),
        scope: args.scope,
        conversation: args.conversation,
        max_tokens: args.max_tokens,
        pins: (!args.pins.is_empty()).then_some(args.pins),
        tokenizer: args.tokenizer,
    };
    let answer = talk(args.output.socket, async |client| Ok(client.context(&request).await?))?;
    if args.output.json {
        return out.json(&answer);
    }
    answer.notes.iter().for_each(|text| note(text));
    if answer.text.is_empty() {
        note("nothing found; `resdex status` shows what is indexed");
        return Ok(());
    }
    out.print(&text::block(&answer.text))?;
    note(&format!("{} tokens of {}", answer.tokens, answer.tokenizer));
    Ok(())
}

pub fn trace(args: args::Trace, out: &Out) -> Result<(), CliError> {
    let query = TraceQuery {
        limit: Some(args.limit),
        scope: args.scope,
        server: args.server,
        uri: args.uri,
    };
    let answer = talk(args.output.socket, async |client| Ok(client.trace(&query).await?))?;
    if args.output.json {
        return out.json(&answer);
    }
    out.print(&render::trace(&answer, out.look))
}

pub fn read(args: args::Read, out: &Out) -> Result<(), CliError> {
    let request = ReadRequest {
        uri: args.uri,
        scope: None,
        server: args.server,
        extracted: args.extracted,
        lines: args.lines,
        part: None,
        max_tokens: args.max_tokens,
        outline: args.outline,
    };
    let answer = talk(args.output.socket, async |client| Ok(client.read(&request).await?))?;
    if args.output.json {
        return out.json(&answer);
    }
    if answer.stale {
        note("stale: the last good text");
    }
    answer.notes.iter().for_each(|text| note(text));
    out.print(&render::reading(&answer, out.look))?;
    if let Some(lines) = &answer.next_lines {
        note(&format!("cut here: go on with --lines {lines}"));
    } else if answer.truncated {
        note("the text goes on: it was cut");
    }
    Ok(())
}

pub fn list(args: args::List, out: &Out) -> Result<(), CliError> {
    talk(args.output.socket, async |client| {
        if args.templates {
            let mut answer = client.templates().await?;
            if let Some(server) = &args.server {
                let status = client.status().await?;
                check_server(&status, server)?;
                answer.templates.retain(|template| template.server == *server);
            }
            return match args.output.json {
                true => out.json(&answer),
                false => out.print(&render::templates(&answer, out.look)),
            };
        }
        let mut query =
            ResourcesQuery { server: args.server, skipped: args.skipped, ..Default::default() };
        let mut all = ResourcesResponse { resources: vec![], next_cursor: None };
        loop {
            let page = client.resources(&query).await?;
            query.cursor = page.next_cursor.clone();
            if args.output.json {
                all.resources.extend(page.resources);
            } else {
                // Page by page, so that a list of millions begins at once.
                out.print(&render::resources(&page, out.look))?;
            }
            if query.cursor.is_none() {
                break;
            }
        }
        if args.output.json { out.json(&all) } else { Ok(()) }
    })
}

fn check_server(status: &StatusResponse, name: &str) -> Result<(), CliError> {
    let names = || status.servers.iter().map(|server| server.name.as_str());
    if names().any(|known| known == name) {
        return Ok(());
    }
    let error = crate::serve::error::ApiError::unknown_server(name, names()).detail;
    Err(CliError { code: 1, message: error.message, hint: error.hint })
}

pub fn status(args: args::Status, out: &Out) -> Result<(), CliError> {
    let answer = talk(args.output.socket, async |client| Ok(client.status().await?))?;
    if args.output.json {
        return out.json(&answer);
    }
    out.print(&render::status(&answer, Utc::now(), out.look))
}

pub fn sync(args: args::Sync, out: &Out) -> Result<(), CliError> {
    let request = SyncRequest {
        servers: (!args.servers.is_empty()).then_some(args.servers),
        confirm: args.confirm,
    };
    talk(args.output.socket, async |client| {
        let before = client.status().await?.servers;
        let answer = client.sync(&request).await?;
        if !args.wait {
            return match args.output.json {
                true => out.json(&answer),
                false => out.print(&render::started(&answer)),
            };
        }
        note(&format!("waiting for {}", answer.started.join(", ")));
        let servers = wait(&client, &before, &answer.started).await?;
        if args.output.json {
            out.json(&serde_json::json!({"started": answer.started, "servers": servers}))?;
        } else {
            out.print(&render::servers(&servers, Utc::now(), out.look))?;
        }
        let broken: Vec<_> =
            servers.iter().filter(|server| !is_well(server.state)).map(|s| &*s.name).collect();
        if broken.is_empty() {
            return Ok(());
        }
        Err(CliError::failed(format!("not synchronised: {}", broken.join(", ")))
            .hint("`resdex status` says what to do"))
    })
}

fn is_well(state: ServerState) -> bool {
    matches!(state, ServerState::Live | ServerState::NoListing)
}

/// Waits until each of the servers has come to rest after the request.
async fn wait(
    client: &Client,
    before: &[ServerStatus],
    started: &[String],
) -> Result<Vec<ServerStatus>, CliError> {
    let begun = tokio::time::Instant::now();
    loop {
        let mut servers = client.status().await?.servers;
        servers.retain(|server| started.contains(&server.name));
        let patient = begun.elapsed() < PATIENCE;
        let settled = servers.iter().all(|now| {
            let before = before.iter().find(|before| before.name == now.name);
            has_settled(before, now, patient)
        });
        if settled {
            return Ok(servers);
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Whether a server is at rest, and has done something since `before` unless we lose patience.
fn has_settled(before: Option<&ServerStatus>, now: &ServerStatus, patient: bool) -> bool {
    use ServerState::{Connecting, Disabled, Listing, NeedsConfig, Syncing};
    match now.state {
        Connecting | Listing | Syncing => false,
        NeedsConfig | Disabled => true,
        _ => {
            let changed = before.is_none_or(|before| {
                before.last_sync != now.last_sync || before.last_error != now.last_error
            });
            changed || !patient
        }
    }
}

pub fn events(args: args::Events, out: &Out) -> Result<(), CliError> {
    talk(args.socket, async |client| {
        let mut events = std::pin::pin!(client.events().await?);
        while let Some(event) = events.next().await {
            let event = event?;
            if args.json {
                out.print(&(text::json(&event, false) + "\n"))?;
            } else {
                out.print(&render::event(&event, Utc::now(), out.look))?;
            }
        }
        note("the daemon has stopped");
        Ok(())
    })
}
