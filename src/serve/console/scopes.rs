//! What each scope sees and always gets, and tokens for it.

use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use super::fields::Fields;
use super::{Visit, layout, show};
use crate::serve::api::{
    PinItem, PinLevel, PinRequest, PinsQuery, ScopeItem, TokenRequest, UnpinQuery,
};
use crate::serve::error::ApiError;

const EXAMPLE: &str = "[scopes.support-bot]\nservers = [\"handbook\"]\nmax_tokens = 4000\n";

pub async fn page(visit: Visit) -> Response {
    let body = shown(&visit);
    layout::page_or_error(&visit, visit.words.scopes, body)
}

fn shown(visit: &Visit) -> Result<Markup, ApiError> {
    let words = visit.words;
    let scopes = visit.app.scope_items(&visit.caller)?.scopes;
    let conversation = visit.query.owned("conversation");
    let pins = |scope: Option<&str>| {
        let query =
            PinsQuery { scope: scope.map(str::to_owned), conversation: conversation.clone() };
        visit.app.pins(&visit.caller, &query).map(|pins| pins.pins)
    };
    let mut cards = vec![];
    for scope in &scopes {
        cards.push(card(visit, scope, &pins(Some(&scope.name))?));
    }
    let unscoped = if visit.caller.bound.is_none() { pins(None)? } else { vec![] };
    Ok(html! {
        @if scopes.is_empty() { p { (words.no_scopes) } pre.text tabindex="0" { (EXAMPLE) } }
        form.search method="get" action="/scopes" {
            div.row {
                label.field for="conversation" { span { (words.conversation) }
                    input #conversation type="text" name="conversation" value=(visit.query.text("conversation")) placeholder=(words.optional); }
                button { (words.ask) }
            }
        }
        div.cards {
            @for card in cards { (card) }
            @if !unscoped.is_empty() {
                section.card aria-label=(words.everything_unscoped) { h2 { (words.everything_unscoped) } (pinned(visit, None, &unscoped)) }
            }
        }
    })
}

fn card(visit: &Visit, scope: &ScopeItem, pins: &[PinItem]) -> Markup {
    let words = visit.words;
    let list = |values: &[String]| show::line(&values.join(", ")).into_owned();
    html! {
        section.card aria-label=(show::line(&scope.name)) {
            div.between {
                h2 { (show::line(&scope.name)) }
                @if scope.has_token { span.badge.good { (words.has_token) } } @else { span.badge.off { (words.no_token) } }
            }
            dl.lines {
                div { dt { (words.sees) } dd { @if scope.servers.is_empty() { (words.sees_all_servers) } @else { (list(&scope.servers)) } } }
                @if !scope.include.is_empty() { div { dt { (words.include) } dd { code { (list(&scope.include)) } } } }
                @if !scope.exclude.is_empty() { div { dt { (words.exclude) } dd { code { (list(&scope.exclude)) } } } }
                @if !scope.mime_types.is_empty() { div { dt { (words.types) } dd { (list(&scope.mime_types)) } } }
                div { dt { (words.budget) } dd { @match scope.max_tokens { Some(most) => { (show::number(most.into())) " " (words.tokens) } None => (words.no_budget) } } }
            }
            h3 { (words.pins) }
            (pinned(visit, Some(&scope.name), pins))
            p.actions {
                a href=(show::href("/resources", &[("scope", &scope.name)])) { (words.see_as) }
                a href=(show::href("/context", &[("scope", &scope.name)])) { (words.what_would_a_bot_get) }
                a href=(show::href("/trace", &[("scope", &scope.name)])) { (words.trace) }
            }
            @if visit.caller.bound.is_none() {
                form method="post" action="/scopes/token" {
                    input type="hidden" name="scope" value=(scope.name);
                    button { (words.new_token) }
                }
            }
        }
    }
}

fn pinned(visit: &Visit, scope: Option<&str>, pins: &[PinItem]) -> Markup {
    let words = visit.words;
    html! {
        @if pins.is_empty() { p.hint { (words.no_pins) } }
        @else {
            ul.plain.pins {
                @for pin in pins {
                    @let document = show::href("/resource", &[("server", pin.server.as_deref().unwrap_or_default()), ("uri", &pin.uri), ("scope", scope.unwrap_or_default())]);
                    li.between {
                        span {
                            a href=(document) { (layout::uri(&pin.uri)) } " "
                            span.badge.off { (match pin.level { PinLevel::Config => words.pin_config, PinLevel::Scope => words.pin_added, PinLevel::Conversation => words.pin_conversation }) }
                            @if let Some(until) = pin.expires_at { " → " (show::time(until)) }
                        }
                        @if pin.level != PinLevel::Config {
                            form method="post" action="/pins/remove" {
                                input type="hidden" name="uri" value=(pin.uri);
                                input type="hidden" name="server" value=(pin.server.as_deref().unwrap_or_default());
                                input type="hidden" name="scope" value=(scope.unwrap_or_default());
                                @if pin.level == PinLevel::Conversation { input type="hidden" name="conversation" value=(visit.query.text("conversation")); }
                                button.plain aria-label={ (words.remove) " " (show::line(&pin.uri)) } { (words.remove) }
                            }
                        }
                    }
                }
            }
        }
    }
}

pub async fn pin(visit: Visit, fields: Fields) -> Response {
    let request = PinRequest {
        uri: fields.text("uri").to_owned(),
        server: fields.owned("server"),
        scope: fields.owned("scope"),
        conversation: fields.owned("conversation"),
        ttl_s: None,
    };
    match visit.ask(move |app, caller| app.pin(caller, &request)).await {
        Ok(_) => to_scopes(&fields),
        Err(error) => layout::failed(&visit, &error),
    }
}

pub async fn unpin(visit: Visit, fields: Fields) -> Response {
    let query = UnpinQuery {
        uri: fields.text("uri").to_owned(),
        server: fields.owned("server"),
        scope: fields.owned("scope"),
        conversation: fields.owned("conversation"),
    };
    match visit.ask(move |app, caller| app.unpin(caller, &query)).await {
        Ok(_) => to_scopes(&fields),
        Err(error) => layout::failed(&visit, &error),
    }
}

fn to_scopes(fields: &Fields) -> Response {
    let address = show::href("/scopes", &[("conversation", fields.text("conversation"))]);
    Redirect::to(&address).into_response()
}

/// A new token, shown in this answer and never again.
pub async fn token(visit: Visit, fields: Fields) -> Response {
    let words = visit.words;
    let request = TokenRequest { scope: fields.text("scope").to_owned() };
    let body = visit.app.new_token(&visit.caller, &request).map(|token| html! {
        p { a href="/scopes" { "← " (words.scopes) } " · " b { (show::line(&token.scope)) } }
        p { (words.token_once) }
        div.between { h2 { (words.token) } (layout::copy(&visit, words.token, &token.token)) }
        pre.text #token tabindex="0" { (token.token) }
        div.between { h2 { (words.config_line) } (layout::copy(&visit, words.config_line, &token.config)) }
        pre.text tabindex="0" { (show::block(&token.config)) }
    });
    layout::page_or_error(&visit, words.new_token, body)
}
