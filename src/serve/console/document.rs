//! One document: how it looks, what was extracted of it, its chunks, its history.

use axum::response::Response;
use chrono::DateTime;
use maud::{Markup, html};

use super::{Visit, layout, preview, show};
use crate::serve::api::{
    ChangeKind, OutcomeKind, ReadRequest, ReadResponse, ResourceQuery, ResourceResponse, TraceQuery,
};
use crate::serve::error::ApiError;

/// Text of one page, in tokens; what follows is a page on.
const PAGE_TOKENS: usize = 20_000;
/// Chunks of one page.
const CHUNKS: usize = 100;
const READS: usize = 20;

#[derive(Clone, Copy, PartialEq)]
enum Tab {
    Preview,
    Text,
    Chunks,
    History,
}

pub async fn page(visit: Visit) -> Response {
    let fields = &visit.query;
    let query = ResourceQuery {
        uri: fields.text("uri").to_owned(),
        server: fields.owned("server"),
        scope: fields.owned("scope"),
    };
    let found = visit.ask(move |app, caller| app.resource(caller, &query)).await;
    let (title, body) = match found {
        Ok(resource) => {
            let title = show::line(&resource.item.title).into_owned();
            (title, shown(&visit, &resource).await)
        }
        // What a template gives isn't in the index, and can be read all the same.
        Err(_) if fields.has("server") => {
            (show::line(fields.text("uri")).into_owned(), unlisted(&visit).await)
        }
        Err(error) => (String::new(), Err(error)),
    };
    layout::page_or_error(&visit, &title, body)
}

async fn shown(visit: &Visit, resource: &ResourceResponse) -> Result<Markup, ApiError> {
    let (words, fields) = (visit.words, &visit.query);
    let tab = match fields.text("view") {
        "text" => Tab::Text,
        "chunks" => Tab::Chunks,
        "history" => Tab::History,
        _ => Tab::Preview,
    };
    let content = match tab {
        Tab::Preview => match read(visit, false, None).await {
            Ok(read) => previews(visit, read, &resource.item.title).await?,
            Err(error) => layout::problem(&error.detail),
        },
        Tab::Text => text(visit, resource).await,
        Tab::Chunks => chunks(visit, resource)?,
        Tab::History => history(visit, resource).await?,
    };
    let tabs = [
        ("", Tab::Preview, words.preview),
        ("text", Tab::Text, words.text),
        ("chunks", Tab::Chunks, words.chunks),
        ("history", Tab::History, words.history),
    ];
    let document = layout::document(&resource.item.server, &resource.item.uri, fields.get("scope"));
    Ok(html! {
        (facts(visit, resource))
        nav.tabs aria-label=(show::line(&resource.item.title)) {
            @for (view, each, name) in tabs {
                @let address = if view.is_empty() { document.clone() } else { format!("{document}&view={view}") };
                a href=(address) aria-current=[(each == tab).then_some("page")] {
                    (name) @if each == Tab::Chunks { " (" (resource.chunks.len()) ")" }
                }
            }
        }
        div #document data-follow="indexed removed" data-uri=(resource.item.uri) { (content) }
    })
}

/// What can be read and isn't in the index, or not yet.
async fn unlisted(visit: &Visit) -> Result<Markup, ApiError> {
    let read = read(visit, false, None).await?;
    let uri = visit.query.text("uri");
    let server = visit.query.text("server");
    Ok(html! {
        p.where { span.server { (show::line(server)) } " " (layout::uri(uri)) " " (layout::copy(visit, visit.words.uri, uri)) }
        div #document data-follow="indexed" data-uri=(uri) { (previews(visit, read, uri).await?) }
    })
}

fn facts(visit: &Visit, resource: &ResourceResponse) -> Markup {
    let (words, item) = (visit.words, &resource.item);
    html! {
        p.where { a.server href=(show::href("/resources", &[("server", &item.server)])) { (show::line(&item.server)) } " " (layout::uri(&item.uri)) " " (layout::copy(visit, words.uri, &item.uri)) }
        @if let Some(description) = resource.description.as_ref().filter(|text| !text.is_empty()) { p { (show::block(description)) } }
        dl.figures {
            div { dt { (words.mime) } dd { (item.mime_type.as_deref().map_or("–".into(), show::line)) } }
            @if let Some(size) = item.size { div { dt { (words.size) } dd { (show::bytes(size)) } } }
            div { dt { (words.indexed_at) } dd { (show::time(item.indexed_at)) @if item.stale { " " (layout::stale(visit)) } } }
            @if let Some(modified) = &resource.last_modified { div { dt { (words.modified) } dd { @match DateTime::parse_from_rfc3339(modified) { Ok(at) => (show::time(at.to_utc())), Err(_) => (show::line(modified)) } } } }
            div { dt { (words.origin) } dd {
                @match &resource.uri_template { None => (words.listed_by_server), Some(template) => { (words.from_template) " " (layout::uri(template)) } }
            } }
        }
        @if item.outcome == OutcomeKind::Skipped {
            p.problem { b { (words.why_skipped) ": " } (item.reason.as_deref().map(show::block).unwrap_or_default()) }
        }
        (pin_form(visit, &item.server, &item.uri))
    }
}

fn pin_form(visit: &Visit, server: &str, uri: &str) -> Markup {
    let words = visit.words;
    let scopes = visit.scopes();
    html! {
        details.pin {
            summary { (words.pin) }
            form method="post" action="/pins" {
                p.hint { (words.pin_help) }
                input type="hidden" name="server" value=(server);
                input type="hidden" name="uri" value=(uri);
                div.row {
                    @if !scopes.is_empty() {
                        (layout::choice("pin-scope", "scope", words.scope, words.everything_unscoped, &scopes, visit.query.text("scope")))
                    }
                    label.field for="pin-conversation" { span { (words.conversation) }
                        input #pin-conversation type="text" name="conversation" maxlength="200" placeholder=(words.optional); }
                    button { (words.pin) }
                }
            }
        }
    }
}

async fn read(
    visit: &Visit,
    extracted: bool,
    lines: Option<String>,
) -> Result<ReadResponse, ApiError> {
    let fields = &visit.query;
    let request = ReadRequest {
        uri: fields.text("uri").to_owned(),
        server: fields.owned("server"),
        scope: fields.owned("scope"),
        extracted,
        lines,
        part: fields
            .number("part")?
            .and_then(|part| u32::try_from(part).ok())
            .filter(|_| extracted),
        // Pictures have none, and what is shown of a text is bounded by its preview.
        max_tokens: extracted.then_some(PAGE_TOKENS),
        ..ReadRequest::default()
    };
    visit.app.read(&visit.caller, request).await
}

fn notes(visit: &Visit, read: &ReadResponse) -> Markup {
    html! {
        @if read.stale { p { (layout::stale(visit)) } }
        @for note in &read.notes { p.hint { (show::line(note)) } }
    }
}

/// Rendering takes its time, so it is done where that holds nobody up.
pub async fn previews(visit: &Visit, read: ReadResponse, title: &str) -> Result<Markup, ApiError> {
    let words = visit.words;
    let title = format!("{}: {title}", words.content_of);
    let (read, previews) = visit
        .app
        .blocking(move |_| {
            let made = read
                .contents
                .iter()
                .map(|content| preview::preview(content, &title))
                .collect::<Vec<_>>();
            Ok((read, made))
        })
        .await?;
    Ok(html! {
        (notes(visit, &read))
        @for (content, preview) in read.contents.iter().zip(previews) {
            @if read.contents.len() > 1 { h2 { (layout::uri(&content.uri)) } }
            @match preview {
                Some(preview) => (preview),
                None => p.empty { (words.no_preview) " " (content.mime_type.as_deref().map(show::line).unwrap_or_default()) },
            }
        }
    })
}

/// The text that was extracted, by lines, with a passage marked.
async fn text(visit: &Visit, resource: &ResourceResponse) -> Markup {
    let (words, fields) = (visit.words, &visit.query);
    let marked = fields.get("lines").and_then(span);
    let from = fields.get("from").and_then(|from| from.parse().ok());
    // A passage far down is shown with some lines before it.
    let first: u32 =
        from.unwrap_or_else(|| marked.map_or(1, |(start, _)| start.saturating_sub(200).max(1)));
    let read = match read(visit, true, Some(format!("{first}-"))).await {
        Ok(read) => read,
        Err(_) if resource.chunks.is_empty() => return html! { p.empty { (words.no_text) } },
        Err(error) => return layout::problem(&error.detail),
    };
    let document = layout::document(&resource.item.server, &resource.item.uri, fields.get("scope"));
    html! {
        (notes(visit, &read))
        @for content in &read.contents {
            @if let Some(text) = &content.text {
                div.code tabindex="0" role="region" aria-label=(words.text) { table.lines { tbody {
                    @for (line, number) in text.lines().zip(first..) {
                        @let is_marked = marked.is_some_and(|(start, end)| (start..=end).contains(&number));
                        tr.marked[is_marked] #{ "L" (number) } { th scope="row" { (number) } td { (show::block(line)) } }
                    }
                } } }
            }
        }
        @if let Some(next) = read.next_lines.as_deref().and_then(span) {
            p.pages { (words.truncated) " " a rel="next" href={ (document) "&view=text&from=" (next.0) } { (words.go_on_reading) " →" } }
        }
    }
}

/// `A-B`, `A-` or `A`.
fn span(lines: &str) -> Option<(u32, u32)> {
    let (start, end) = lines.split_once('-').unwrap_or((lines, lines));
    let start = start.parse().ok()?;
    Some((start, if end.is_empty() { u32::MAX } else { end.parse().ok()? }))
}

fn chunks(visit: &Visit, resource: &ResourceResponse) -> Result<Markup, ApiError> {
    let (words, fields) = (visit.words, &visit.query);
    let offset = fields.number("offset")?.unwrap_or(0);
    let document = layout::document(&resource.item.server, &resource.item.uri, fields.get("scope"));
    Ok(html! {
        @if resource.chunks.is_empty() { p.empty { (words.no_text) } }
        ol.chunks start=(offset + 1) {
            @for chunk in resource.chunks.iter().skip(offset).take(CHUNKS) {
                li {
                    p.meta {
                        @if !chunk.heading_path.is_empty() { b { (show::line(&chunk.heading_path.join(" › "))) } }
                        a href={ (document) "&view=text&lines=" (chunk.start_line) "-" (chunk.end_line) "&part=" (chunk.part) "#L" (chunk.start_line) } { (words.lines) " " (chunk.start_line) "–" (chunk.end_line) }
                        @if let Some(page) = chunk.page { span { (words.page) " " (page) } }
                        @if chunk.part > 0 { span { (words.part) " " (chunk.part) } }
                        span { (chunk.tokens) " " (words.tokens) }
                    }
                    pre.text tabindex="0" { (show::block(&chunk.text)) }
                }
            }
        }
        @if resource.chunks.len() > offset + CHUNKS {
            p.pages { a rel="next" href={ (document) "&view=chunks&offset=" (offset + CHUNKS) } { (words.more) " →" } }
        }
    })
}

async fn history(visit: &Visit, resource: &ResourceResponse) -> Result<Markup, ApiError> {
    let words = visit.words;
    let query = TraceQuery {
        limit: Some(READS),
        scope: visit.query.owned("scope"),
        server: Some(resource.item.server.clone()),
        uri: Some(resource.item.uri.clone()),
    };
    let trace = visit.ask(move |app, caller| app.traced(caller, &query)).await?;
    Ok(html! {
        h2 { (words.changes) }
        p.hint { (words.changes_help) }
        @if resource.history.is_empty() { p.empty { (words.no_changes) } }
        @else {
            ul.plain { @for change in &resource.history {
                li { (show::time(change.at)) " " (match change.kind { ChangeKind::Indexed => words.kind_indexed, ChangeKind::Removed => words.kind_removed }) }
            } }
        }
        h2 { (words.reads_by) }
        @if trace.entries.is_empty() { p.empty { (words.no_reads) } }
        @else { (super::trace::table(visit, &trace.entries)) }
    })
}
