//! The frame of every page, and the pieces that several pages are made of.

use axum::response::{Html, IntoResponse, Response};
use http::{HeaderValue, header};
use maud::{DOCTYPE, Markup, html};

use super::{Visit, assets, show};
use crate::model::ServerState;
use crate::serve::api::ErrorDetail;
use crate::serve::error::ApiError;

/// A whole page.
pub fn page(visit: &Visit, title: &str, body: Markup) -> Response {
    let words = visit.words;
    let tabs = [
        ("/", words.search),
        ("/servers", words.servers),
        ("/resources", words.resources),
        ("/templates", words.templates),
        ("/scopes", words.scopes),
        ("/trace", words.trace),
        ("/overview", words.overview),
    ];
    let current = match visit.path.as_str() {
        "/context" => "/",
        "/resource" => "/resources",
        path => tabs
            .iter()
            .map(|tab| tab.0)
            .find(|tab| *tab != "/" && path.starts_with(tab))
            .unwrap_or(path),
    };
    let shown = super::is_open(&visit.path);
    let switch = show::href("/language", &[("to", &visit.address), ("lang", words.other_lang)]);
    let markup = html! {
        (DOCTYPE)
        html lang=(words.lang) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · resdex" }
                link rel="icon" href=(assets::address("icon.svg")) type="image/svg+xml";
                link rel="stylesheet" href=(assets::address("console.css"));
                script type="module" src=(assets::address("console.js")) {}
            }
            body data-copied=(words.copied) {
                a.skip href="#content" { (words.skip_to_content) }
                header.top {
                    a.brand href="/" { "resdex" }
                    @if !shown {
                        nav aria-label=(words.navigation) {
                            @for (address, name) in tabs {
                                a href=(address) aria-current=[(current == address).then_some("page")] { (name) }
                            }
                        }
                    }
                    div.aside {
                        @if let Some(scope) = visit.caller.bound.as_ref().filter(|_| !shown) {
                            span.who { (words.signed_in_as) " " b { (show::line(scope)) } }
                        }
                        a.switch href=(switch) lang=(words.other_lang_tag) hreflang=(words.other_lang_tag) { (words.other_lang_name) }
                        @if visit.signed_in && !shown {
                            form method="post" action="/sign-out" { button.plain { (words.sign_out) } }
                        }
                    }
                }
                main #content tabindex="-1" {
                    h1 { (title) }
                    (body)
                }
            }
        }
    };
    let mut response = Html(markup.into_string()).into_response();
    let language = HeaderValue::from_static(words.lang);
    response.headers_mut().insert(header::CONTENT_LANGUAGE, language);
    let varies = HeaderValue::from_static("accept-language, cookie");
    response.headers_mut().insert(header::VARY, varies);
    response
}

/// A page, or what went wrong in making it.
pub fn page_or_error(visit: &Visit, title: &str, body: Result<Markup, ApiError>) -> Response {
    match body {
        Ok(body) => page(visit, title, body),
        Err(error) => failed(visit, &error),
    }
}

/// What went wrong, as a page of its own.
pub fn failed(visit: &Visit, error: &ApiError) -> Response {
    let mut response = page(visit, visit.words.error, problem(&error.detail));
    *response.status_mut() = error.status();
    response
}

/// What went wrong and what to do about it, as a part of a page.
pub fn problem(error: &ErrorDetail) -> Markup {
    html! {
        div.problem role="alert" {
            p { (show::block(&error.message)) }
            @if let Some(hint) = &error.hint { p.hint { (show::block(hint)) } }
        }
    }
}

/// One of several values, none of them at first.
pub fn choice(
    id: &str,
    name: &str,
    label: &str,
    none: &str,
    values: &[String],
    chosen: &str,
) -> Markup {
    html! {
        label.field for=(id) {
            span { (label) }
            select id=(id) name=(name) {
                option value="" { (none) }
                @for value in values {
                    option value=(value) selected[value == chosen] { (show::line(value)) }
                }
            }
        }
    }
}

pub fn state(visit: &Visit, state: ServerState) -> Markup {
    let words = visit.words;
    let (name, kind) = match state {
        ServerState::Connecting => (words.state_connecting, "busy"),
        ServerState::Listing => (words.state_listing, "busy"),
        ServerState::Syncing => (words.state_syncing, "busy"),
        ServerState::Live => (words.state_live, "good"),
        ServerState::NoListing => (words.state_no_listing, "good"),
        ServerState::Backoff => (words.state_backoff, "bad"),
        ServerState::Failed => (words.state_failed, "bad"),
        ServerState::NeedsConfig => (words.state_needs_config, "bad"),
        ServerState::NeedsAuth => (words.state_needs_auth, "bad"),
        ServerState::Disabled => (words.state_disabled, "off"),
    };
    html! { span class={ "badge " (kind) } { (name) } }
}

pub fn stale(visit: &Visit) -> Markup {
    html! { span.badge.warn title=(visit.words.stale_help) { (visit.words.stale) } }
}

/// The page of a document, at a passage where there is one.
pub fn document(server: &str, uri: &str, scope: Option<&str>) -> String {
    show::href(
        "/resource",
        &[("server", server), ("uri", uri), ("scope", scope.unwrap_or_default())],
    )
}

/// A URI for people, which may break anywhere; its title is it exactly.
pub fn uri(uri: &str) -> Markup {
    html! { bdi.uri dir="ltr" title=(show::line(uri)) { (show::uri(uri)) } }
}

pub fn copy(visit: &Visit, label: &str, text: &str) -> Markup {
    // Without scripts the text can be selected as it stands.
    html! { button.plain.copy type="button" data-copy=(text) hidden aria-label={ (visit.words.copy) ": " (label) } { (visit.words.copy) } }
}
