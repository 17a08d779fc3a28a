//! Search as people do, and as a bot would.

use axum::response::Response;
use maud::{Markup, html};

use super::{Visit, layout, show};
use crate::serve::api::{
    ContextRequest, ContextResponse, Hit, Passage, SearchRequest, SearchResponse,
};
use crate::serve::error::ApiError;

/// Types that can be chosen; what else there is can be asked for with `mime:`.
const TYPES: &[&str] = &[
    "text/*",
    "text/markdown",
    "text/plain",
    "text/html",
    "application/json",
    "application/pdf",
    "image/*",
];
const PAGE: usize = 10;
const TOKENS: usize = 4_000;

pub async fn page(visit: Visit) -> Response {
    let body = found(&visit).await;
    layout::page_or_error(&visit, visit.words.search, body)
}

async fn found(visit: &Visit) -> Result<Markup, ApiError> {
    let fields = &visit.query;
    let offset = fields.number("offset")?.unwrap_or(0);
    let answer = match fields.get("q") {
        None => None,
        Some(query) => {
            let request = SearchRequest {
                limit: PAGE,
                offset,
                scope: fields.owned("scope"),
                servers: fields.owned("server").map(|server| vec![server]),
                mime_types: fields.owned("mime").map(|mime_type| vec![mime_type]),
                ..SearchRequest::new(query)
            };
            let id = visit.request_id.clone();
            Some(visit.ask(move |app, caller| app.search(caller, &request, &id)).await)
        }
    };
    let results = match answer {
        None => welcome(visit).await?,
        Some(Ok(answer)) => results(visit, offset, &answer),
        // While it is typed, a query may be none yet.
        Some(Err(error)) => layout::problem(&error.detail),
    };
    Ok(html! {
        (form(visit)?)
        div #results aria-live="polite" { (results) }
    })
}

fn form(visit: &Visit) -> Result<Markup, ApiError> {
    let (words, fields) = (visit.words, &visit.query);
    let types: Vec<String> = TYPES.iter().map(|mime_type| (*mime_type).to_owned()).collect();
    let scopes = visit.scopes();
    let narrowed = ["server", "mime", "scope"].iter().any(|name| fields.has(name));
    Ok(html! {
        form.search method="get" action="/" role="search" data-as-you-type="results" {
            div.box {
                label.hidden for="q" { (words.search_label) }
                input #q type="search" name="q" value=(fields.text("q")) placeholder=(words.search_label)
                    aria-describedby="q-hint" autocomplete="off" spellcheck="false" autofocus[!fields.has("q")];
                button { (words.search) }
            }
            p #q-hint.hint { (words.search_hint) }
            details.filters open[narrowed] {
                summary { (words.filters) }
                div.row {
                    (layout::choice("server", "server", words.server, words.all_servers, &visit.servers()?, fields.text("server")))
                    (layout::choice("mime", "mime", words.mime_type, words.all_types, &types, fields.text("mime")))
                    @if !scopes.is_empty() {
                        (layout::choice("scope", "scope", words.scope, words.no_scope, &scopes, fields.text("scope")))
                    }
                }
            }
        }
    })
}

async fn welcome(visit: &Visit) -> Result<Markup, ApiError> {
    let words = visit.words;
    let status = visit.ask(|app, caller| app.status(caller)).await?;
    Ok(html! {
        div.empty {
            p.large { (show::number(status.index.resources)) " " (words.known) }
            p { (words.start) }
        }
    })
}

fn results(visit: &Visit, offset: usize, answer: &SearchResponse) -> Markup {
    let (words, fields) = (visit.words, &visit.query);
    let (query, scope) = (fields.text("q"), fields.text("scope"));
    let at = |offset: usize| {
        let offset = if offset == 0 { String::new() } else { offset.to_string() };
        show::href(
            "/",
            &[
                ("q", query),
                ("server", fields.text("server")),
                ("mime", fields.text("mime")),
                ("scope", scope),
                ("offset", &offset),
            ],
        )
    };
    let bot = show::href("/context", &[("q", query), ("scope", scope)]);
    html! {
        div.between {
            h2 { (words.results) }
            p.hint { (words.took) " " (format!("{:.1}", answer.took_ms)) " ms · " a href=(bot) { (words.what_would_a_bot_get) } }
        }
        @if answer.hits.is_empty() {
            div.empty { p.large { (words.found_nothing) } p { (words.found_nothing_help) } p { a href="/resources" { (words.resources) } } }
        } @else {
            ol.hits start=(offset + 1) {
                @for hit in &answer.hits { li { (self::hit(visit, hit)) } }
            }
        }
        p.pages {
            @if offset > 0 { a rel="prev" href=(at(offset.saturating_sub(PAGE))) { "← " (words.previous_hits) } }
            " "
            @if answer.more { a rel="next" href=(at(offset + PAGE)) { (words.next_hits) " →" } }
        }
    }
}

fn hit(visit: &Visit, hit: &Hit) -> Markup {
    let words = visit.words;
    let place = place(visit, &hit.passage);
    html! {
        article.hit {
            h3 { a href=(at_passage(visit, hit)) { (show::line(&hit.title)) } @if hit.stale { " " (layout::stale(visit)) } }
            p.where { span.server { (show::line(&hit.server)) } " " (layout::uri(&hit.uri)) }
            p.snippet { (show::highlighted(&hit.passage.snippet, &hit.passage.highlights)) }
            p.meta {
                span.relevance title=(words.relevance) {
                    meter min="0" max="1" value=(hit.relevance) aria-label=(words.relevance) {}
                    " " (format!("{:.2}", hit.relevance))
                }
                @if !hit.passage.heading_path.is_empty() {
                    span { (show::line(&hit.passage.heading_path.join(" › "))) }
                }
                span { (place) }
                @if let Some(mime_type) = &hit.mime_type { span { (show::line(mime_type)) } }
            }
            @if let Some(same) = &hit.duplicates {
                details { summary { (words.same_text) " (" (same.len()) ")" }
                    ul { @for other in same {
                        li { a href=(layout::document(&other.server, &other.uri, visit.query.get("scope"))) { (show::line(&other.server)) " " (layout::uri(&other.uri)) } }
                    } }
                }
            }
        }
    }
}

fn place(visit: &Visit, passage: &Passage) -> String {
    let words = visit.words;
    match (passage.page, passage.start_line, passage.end_line) {
        (Some(page), ..) => format!("{} {page}", words.page),
        (None, Some(start), Some(end)) => format!("{} {start}–{end}", words.lines),
        _ => words.by_name.to_owned(),
    }
}

fn at_passage(visit: &Visit, hit: &Hit) -> String {
    let document = layout::document(&hit.server, &hit.uri, visit.query.get("scope"));
    match (hit.passage.start_line, hit.passage.end_line) {
        (Some(start), Some(end)) => {
            let part = hit.passage.part.map(|part| format!("&part={part}")).unwrap_or_default();
            format!("{document}&view=text&lines={start}-{end}{part}#L{start}")
        }
        _ => document,
    }
}

/// The same question as context for a scope and a budget.
pub async fn context(visit: Visit) -> Response {
    let body = asked(&visit).await;
    layout::page_or_error(&visit, visit.words.what_would_a_bot_get, body)
}

async fn asked(visit: &Visit) -> Result<Markup, ApiError> {
    let (words, fields) = (visit.words, &visit.query);
    let most = fields.number("max_tokens")?;
    let answer = if fields.has("q") || fields.has("scope") {
        let request = ContextRequest {
            query: fields.text("q").to_owned(),
            scope: fields.owned("scope"),
            conversation: fields.owned("conversation"),
            max_tokens: most,
            ..ContextRequest::default()
        };
        let id = visit.request_id.clone();
        Some(visit.ask(move |app, caller| app.context(caller, &request, &id)).await)
    } else {
        None
    };
    let scopes = visit.scopes();
    Ok(html! {
        p { (words.context_help) }
        form.search method="get" action="/context" {
            div.row {
                label.field.wide for="q" { span { (words.question) } input #q type="search" name="q" value=(fields.text("q")); }
                @if !scopes.is_empty() {
                    (layout::choice("scope", "scope", words.scope, words.no_scope, &scopes, fields.text("scope")))
                }
                label.field for="max_tokens" { span { (words.max_tokens) }
                    input #max_tokens type="number" name="max_tokens" min="1" max="1000000" value=[most] placeholder=(TOKENS); }
                label.field for="conversation" { span { (words.conversation) }
                    input #conversation type="text" name="conversation" value=(fields.text("conversation")) placeholder=(words.optional); }
                button { (words.ask) }
            }
        }
        @match answer {
            None => {}
            Some(Err(error)) => (layout::problem(&error.detail)),
            Some(Ok(answer)) => (packed(visit, &answer)),
        }
    })
}

fn packed(visit: &Visit, answer: &ContextResponse) -> Markup {
    let words = visit.words;
    html! {
        div #context aria-live="polite" {
            p.figures { b { (show::number(answer.tokens as u64)) } " " (words.tokens) " · " (answer.tokenizer) }
            @for note in &answer.notes { p.problem { (show::line(note)) } }
            @if !answer.citations.is_empty() {
                h2 { (words.citations) }
                ol.citations {
                    @for citation in &answer.citations {
                        @let (start, end) = (citation.start_line, citation.end_line);
                        li value=(citation.n) {
                            a href={ (layout::document(&citation.server, &citation.uri, visit.query.get("scope"))) "&view=text&lines=" (start) "-" (end) "#L" (start) } {
                                (show::line(&citation.server)) " " (layout::uri(&citation.uri))
                            }
                            " " span.hint { (words.lines) " " (start) "–" (end) }
                        }
                    }
                }
            }
            div.between { h2 { (words.the_prompt) } (layout::copy(visit, words.the_prompt, &answer.text)) }
            @if answer.text.is_empty() { p.empty { (words.empty_context) } }
            @else { pre.text tabindex="0" { (show::block(&answer.text)) } }
        }
    }
}
