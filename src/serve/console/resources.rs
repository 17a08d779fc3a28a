//! The tree of everything that is known, a branch at a time, and a filter over it.

use axum::response::{Html, IntoResponse, Response};
use maud::{Markup, html};

use super::words::Words;
use super::{Visit, layout, show};
use crate::serve::api::{OutcomeKind, ResourceItem, ResourcesQuery, TreeQuery, TreeResponse};
use crate::serve::error::ApiError;

pub async fn page(visit: Visit) -> Response {
    let body = shown(&visit).await;
    layout::page_or_error(&visit, visit.words.resources, body)
}

/// What stands below a prefix, to be put into the page that is there.
pub async fn branch(visit: Visit) -> Response {
    match level(&visit).await {
        Ok(level) => Html(self::level_of(&visit, &level).into_string()).into_response(),
        Err(error) => {
            let shown = layout::problem(&error.detail).into_string();
            (error.status(), Html(shown)).into_response()
        }
    }
}

async fn shown(visit: &Visit) -> Result<Markup, ApiError> {
    let (words, fields) = (visit.words, &visit.query);
    let is_list = fields.has("contains") || fields.has("skipped");
    let body = if is_list {
        list(visit).await?
    } else if fields.has("server") {
        let level = level(visit).await?;
        html! {
            p.crumbs {
                a href=(show::href("/resources", &[("scope", fields.text("scope"))])) { (words.all_servers) } " / "
                a href=(show::href("/resources", &[("server", fields.text("server")), ("scope", fields.text("scope"))])) { (show::line(fields.text("server"))) }
                @if !level.prefix.is_empty() { " / " (layout::uri(&level.prefix)) }
            }
            nav aria-label=(words.tree) { (level_of(visit, &level)) }
        }
    } else {
        roots(visit).await?
    };
    let scopes = visit.scopes();
    Ok(html! {
        form.search method="get" action="/resources" data-as-you-type="listed" {
            div.row {
                label.field.wide for="contains" { span { (words.filter_resources) }
                    input #contains type="search" name="contains" value=(fields.text("contains")) autocomplete="off" spellcheck="false"; }
                (layout::choice("server", "server", words.server, words.all_servers, &visit.servers()?, fields.text("server")))
                @if !scopes.is_empty() {
                    (layout::choice("scope", "scope", words.scope, words.no_scope, &scopes, fields.text("scope")))
                }
                label.check { input type="checkbox" name="skipped" value="yes" checked[fields.has("skipped")]; " " (words.only_skipped) }
                button { (words.filter) }
            }
        }
        div #listed aria-live="polite" { (body) }
    })
}

/// The servers, each a branch that opens by itself.
async fn roots(visit: &Visit) -> Result<Markup, ApiError> {
    let scope = visit.query.text("scope").to_owned();
    let servers = visit.servers()?;
    let seen = visit.app.view(&visit.caller, visit.query.get("scope"))?;
    let servers: Vec<&String> =
        servers.iter().filter(|server| seen.filter.allows_server(server)).collect();
    Ok(html! {
        @if servers.is_empty() { p.empty { (visit.words.no_servers) } }
        nav.tree aria-label=(visit.words.tree) {
            ul {
                @for server in servers {
                    li { (fold(visit.words, server, &[("server", server), ("scope", &scope)])) }
                }
            }
        }
    })
}

/// A branch that is fetched when it is opened; without scripts there is a way to its page.
fn fold(words: &Words, name: &str, parameters: &[(&str, &str)]) -> Markup {
    let page = show::href("/resources", parameters);
    html! {
        details data-branch=(show::href("/resources/branch", parameters)) {
            summary { bdi { (show::uri(name)) } }
            p { a href=(page) { (words.open) } }
        }
    }
}

async fn level(visit: &Visit) -> Result<TreeResponse, ApiError> {
    let query = TreeQuery {
        server: visit.query.text("server").to_owned(),
        prefix: visit.query.owned("prefix"),
        scope: visit.query.owned("scope"),
        cursor: visit.query.owned("cursor"),
    };
    visit.ask(move |app, caller| app.tree(caller, &query)).await
}

fn level_of(visit: &Visit, level: &TreeResponse) -> Markup {
    let (words, server, scope) =
        (visit.words, visit.query.text("server"), visit.query.text("scope"));
    html! {
        @if level.branches.is_empty() && level.resources.is_empty() { p.empty { (words.no_resources) } }
        ul.tree {
            @for branch in &level.branches {
                li { (fold(words, &branch.name, &[("server", server), ("prefix", &branch.prefix), ("scope", scope)])) }
            }
            @for item in &level.resources {
                @let name = item.uri.strip_prefix(&level.prefix).filter(|name| !name.is_empty()).unwrap_or(&item.uri);
                li.leaf { (leaf(visit, item, name)) }
            }
            @if let Some(cursor) = &level.next_cursor {
                @let parameters = [("server", server), ("prefix", level.prefix.as_str()), ("scope", scope), ("cursor", cursor)];
                li.more { a href=(show::href("/resources", &parameters)) data-more=(show::href("/resources/branch", &parameters)) { (words.more) } }
            }
        }
    }
}

fn leaf(visit: &Visit, item: &ResourceItem, name: &str) -> Markup {
    let words = visit.words;
    html! {
        a href=(layout::document(&item.server, &item.uri, visit.query.get("scope"))) title=(show::line(&item.uri)) { bdi { (show::uri(name)) } }
        @if item.title != name && item.title != item.uri { " " span.hint { (show::line(&item.title)) } }
        span.facts {
            @if let Some(mime_type) = &item.mime_type { span { (show::line(mime_type)) } }
            @if let Some(size) = item.size { span { (show::bytes(size)) } }
            @if item.outcome == OutcomeKind::Skipped {
                span.badge.off title=(item.reason.as_deref().map(show::line).unwrap_or_default()) { (words.skipped) }
            }
            @if item.stale { (layout::stale(visit)) }
        }
    }
}

/// What the filter lets through, as a list.
async fn list(visit: &Visit) -> Result<Markup, ApiError> {
    let (words, fields) = (visit.words, &visit.query);
    let query = ResourcesQuery {
        server: fields.owned("server"),
        scope: fields.owned("scope"),
        cursor: fields.owned("cursor"),
        skipped: fields.has("skipped"),
        contains: fields.owned("contains"),
        prefix: None,
    };
    let page = visit.ask(move |app, caller| app.resources(caller, &query)).await?;
    Ok(html! {
        @if page.resources.is_empty() { p.empty { (words.no_resources) } }
        @else {
            div.wide-table tabindex="0" role="region" aria-label=(words.resources) { table {
                thead { tr {
                    th scope="col" { (words.title) } th scope="col" { (words.server) } th scope="col" { (words.mime) }
                    th scope="col" { (words.size) } th scope="col" { (words.outcome) } th scope="col" { (words.indexed_at) }
                } }
                tbody { @for item in &page.resources { tr {
                    td { a href=(layout::document(&item.server, &item.uri, fields.get("scope"))) { (show::line(&item.title)) } br; (layout::uri(&item.uri)) }
                    td { (show::line(&item.server)) }
                    td { (item.mime_type.as_deref().map(show::line).unwrap_or_default()) }
                    td { @if let Some(size) = item.size { (show::bytes(size)) } }
                    td {
                        @match item.outcome {
                            OutcomeKind::Indexed => (words.indexed),
                            OutcomeKind::Skipped => { (words.skipped) @if let Some(reason) = &item.reason { ": " (show::line(reason)) } },
                        }
                        @if item.stale { " " (layout::stale(visit)) }
                    }
                    td { (show::time(item.indexed_at)) }
                } } }
            } }
        }
        @if let Some(cursor) = &page.next_cursor {
            p.pages { a rel="next" href=(show::href("/resources", &[
                ("contains", fields.text("contains")), ("server", fields.text("server")), ("scope", fields.text("scope")),
                ("skipped", fields.text("skipped")), ("cursor", cursor),
            ])) { (words.more) " →" } }
        }
    })
}
