//! Who asked what, and what it was given.

use axum::response::Response;
use maud::{Markup, html};

use super::{Visit, layout, show};
use crate::serve::api::{TraceEntry, TraceQuery, TraceVerb};
use crate::serve::error::ApiError;

/// Resources that a row names.
const SHOWN: usize = 3;
const ENTRIES: usize = 100;

pub async fn page(visit: Visit) -> Response {
    let body = shown(&visit).await;
    layout::page_or_error(&visit, visit.words.trace, body)
}

async fn shown(visit: &Visit) -> Result<Markup, ApiError> {
    let (words, fields) = (visit.words, &visit.query);
    let limit = fields.number("limit")?.unwrap_or(ENTRIES);
    let query = TraceQuery {
        limit: Some(limit),
        scope: fields.owned("scope"),
        server: fields.owned("server"),
        uri: fields.owned("uri"),
    };
    let entries = visit.ask(move |app, caller| app.traced(caller, &query)).await;
    let scopes = visit.scopes();
    Ok(html! {
        form.search method="get" action="/trace" {
            div.row {
                @if !scopes.is_empty() {
                    (layout::choice("scope", "scope", words.scope, words.no_scope, &scopes, fields.text("scope")))
                }
                (layout::choice("server", "server", words.server, words.all_servers, &visit.servers()?, fields.text("server")))
                label.field.wide for="uri" { span { (words.uri) } input #uri type="search" name="uri" value=(fields.text("uri")) autocomplete="off" spellcheck="false"; }
                label.field for="limit" { span { (words.entries) } input #limit type="number" name="limit" min="1" max="1000" value=(limit); }
                button { (words.filter) }
            }
        }
        div #entries {
            @match entries {
                Err(error) => (layout::problem(&error.detail)),
                Ok(trace) if trace.entries.is_empty() => p.empty { (words.no_trace) },
                Ok(trace) => (table(visit, &trace.entries)),
            }
        }
    })
}

pub fn table(visit: &Visit, entries: &[TraceEntry]) -> Markup {
    let words = visit.words;
    html! {
        div.wide-table tabindex="0" role="region" aria-label=(words.trace) { table {
            thead { tr {
                th scope="col" { (words.when) } th scope="col" { (words.who) } th scope="col" { (words.what) }
                th scope="col" { (words.found) } th scope="col" { (words.tokens) } th scope="col" { (words.duration) }
            } }
            tbody { @for entry in entries { (row(visit, entry)) } }
        } }
    }
}

fn row(visit: &Visit, entry: &TraceEntry) -> Markup {
    let words = visit.words;
    let verb = match entry.verb {
        TraceVerb::Search => words.verb_search,
        TraceVerb::Context => words.verb_context,
        TraceVerb::Read => words.verb_read,
    };
    html! { tr {
        td { (show::time(entry.time)) }
        td { (show::line(&entry.client)) @if let Some(scope) = &entry.scope { br; span.badge.off { (show::line(scope)) } } }
        td {
            (verb)
            @if let Some(query) = &entry.query { br; q { (show::line(query)) } }
            @else if let Some(hash) = &entry.query_hash { br; code.hint { "#" (show::line(hash.get(..8).unwrap_or(hash))) } }
            @if entry.outcome != "ok" { br; span.badge.bad { (show::line(&entry.outcome)) } }
        }
        td { ul.plain {
            @for resource in entry.resources.iter().take(SHOWN) {
                li { a href=(layout::document(&resource.server, &resource.uri, None)) { (layout::uri(&resource.uri)) } }
            }
            @if entry.resources.len() > SHOWN { li.hint { "+ " (entry.resources.len() - SHOWN) " " (words.others) } }
        } }
        td.number { (show::number(entry.tokens as u64)) }
        td.number { (format!("{:.1}", entry.took_ms)) " ms" }
    } }
}
