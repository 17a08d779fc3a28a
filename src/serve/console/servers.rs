//! What each server is doing, what is wrong with it, and what can be done.

use std::collections::BTreeMap;

use axum::response::Response;
use maud::{Markup, html};

use super::fields::Fields;
use super::{Visit, back_to, layout, show};
use crate::model::{ServerState, ServerStatus};
use crate::serve::api::{StatusResponse, SyncRequest, WithheldQuery};

pub async fn page(visit: Visit) -> Response {
    let status = visit.ask(|app, caller| app.status(caller)).await;
    // The figures are the owner's alone.
    let lags = visit.app.series(&visit.caller).map(|series| series.lag_p50_ms).unwrap_or_default();
    let body = status.map(|status| listed(&visit, &status, &lags));
    layout::page_or_error(&visit, visit.words.servers, body)
}

fn listed(visit: &Visit, status: &StatusResponse, lags: &BTreeMap<String, f64>) -> Markup {
    let words = visit.words;
    html! {
        @if let Some(error) = &status.config.error {
            div.problem role="alert" { p { b { (words.config_error) ": " } (show::block(error)) } }
        }
        @if let Some(reason) = &status.index.paused {
            div.problem role="alert" { p { b { (words.paused) ": " } (show::block(reason)) } }
        }
        @if !status.config.warnings.is_empty() { (warnings(visit, &status.config.warnings)) }
        @if status.servers.is_empty() { p.empty { (words.no_servers) } }
        @else {
            (sync_button(None, words.sync_all, false))
            div #servers.cards data-follow="state listing progress indexed removed withheld error reconnect reload lagged" {
                @for server in &status.servers { (card(visit, server, lags.get(&server.name).copied())) }
            }
        }
    }
}

fn card(visit: &Visit, server: &ServerStatus, lag_ms: Option<f64>) -> Markup {
    let words = visit.words;
    let count =
        |label: &str, value: u64| html! { div { dt { (label) } dd { (show::number(value)) } } };
    let done = server.indexed + server.skipped;
    html! {
        section.card id={ "server-" (server.name) } aria-label=(show::line(&server.name)) {
            div.between {
                h2 { a href=(show::href("/resources", &[("server", &server.name)])) { (show::line(&server.name)) } }
                (layout::state(visit, server.state))
            }
            @if matches!(server.state, ServerState::Listing | ServerState::Syncing) {
                progress max=(server.listed.max(1)) value=(done.min(server.listed)) aria-label=(words.progress)
                    data-server=(server.name) {}
            }
            dl.figures {
                (count(words.listed, server.listed))
                (count(words.indexed, server.indexed))
                (count(words.skipped, server.skipped))
                @if server.stale > 0 { (count(words.stale_count, server.stale)) }
                (count(words.notifications, server.counts.notifications))
                div { dt { (words.reads) } dd { (show::number(server.counts.reads))
                    @if server.counts.read_failures > 0 { " (" (show::number(server.counts.read_failures)) " " (words.failures) ")" } } }
            }
            dl.lines {
                div { dt { (words.protocol) } dd { (server.protocol.as_deref().map_or("–".into(), show::line)) } }
                div { dt { (words.push) } dd { @if server.push.is_empty() { (words.no_push) } @else { (show::line(&server.push.join(", "))) } } }
                @if let Some(lag) = lag_ms { div { dt { (words.lag) } dd { (show::milliseconds(lag)) } } }
                div { dt { (words.last_sync) } dd { @match server.last_sync { Some(at) => (show::time(at)), None => (words.never) } } }
                @if let Some(at) = server.next_sync { div { dt { (words.next_sync) } dd { (show::time(at)) } } }
            }
            @if let Some(error) = &server.last_error {
                div.problem {
                    p { b { (words.last_error) } " " (show::time(error.at)) }
                    p { (show::block(&error.message)) }
                    @if let Some(hint) = &error.hint { p.hint { b { (words.what_to_do) ": " } (show::block(hint)) } }
                }
            }
            @if server.withheld_removals > 0 {
                p.problem { (show::number(server.withheld_removals)) " " (words.withheld) ". "
                    a href=(show::href("/servers/withheld", &[("server", &server.name)])) { (words.look_at_them) } }
            }
            @if !server.warnings.is_empty() { (warnings(visit, &server.warnings)) }
            (sync_button(Some(&server.name), words.sync_now, false))
        }
    }
}

fn warnings(visit: &Visit, warnings: &[String]) -> Markup {
    html! {
        details.warnings {
            summary { (visit.words.warnings) " (" (warnings.len()) ")" }
            ul { @for warning in warnings { li { (show::line(warning)) } } }
        }
    }
}

fn sync_button(server: Option<&str>, label: &str, confirm: bool) -> Markup {
    html! {
        form method="post" action="/servers/sync" {
            @if let Some(server) = server { input type="hidden" name="server" value=(server); }
            @if confirm { input type="hidden" name="confirm" value="yes"; }
            button.danger[confirm] { (label) }
        }
    }
}

pub async fn sync(visit: Visit, fields: Fields) -> Response {
    let request = SyncRequest {
        servers: fields.owned("server").map(|server| vec![server]),
        confirm: fields.has("confirm"),
    };
    match visit.app.sync(&visit.caller, &request) {
        Ok(_) => back_to(fields.get("to"), "/servers"),
        Err(error) => layout::failed(&visit, &error),
    }
}

/// What would be removed, for a look before it is confirmed.
pub async fn withheld(visit: Visit) -> Response {
    let words = visit.words;
    let query = WithheldQuery { server: visit.query.text("server").to_owned() };
    let body = visit.app.withheld(&visit.caller, &query).map(|withheld| html! {
        p { a href="/servers" { "← " (words.servers) } " · " b { (show::line(&query.server)) } }
        @if withheld.uris.is_empty() { p.empty { (words.nothing_withheld) } }
        @else {
            p { (words.withheld_help) }
            (sync_button(Some(&query.server), words.confirm_removal, true))
            p.figures { b { (show::number(withheld.total)) } " " (words.withheld) }
            ul.plain {
                @for uri in &withheld.uris { li { a href=(layout::document(&query.server, uri, None)) { (layout::uri(uri)) } } }
                @if withheld.total > withheld.uris.len() as u64 { li { "…" } }
            }
        }
    });
    layout::page_or_error(&visit, words.withheld, body)
}
