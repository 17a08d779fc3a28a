//! URI templates, filled in with what their server suggests.

use std::collections::BTreeMap;

use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use super::fields::Fields;
use super::{Visit, back_to, document, layout, show};
use crate::serve::api::{ExpandRequest, ExpandResponse, ReadRequest, TemplateItem, UnfollowQuery};
use crate::serve::error::ApiError;

/// Fields of a template's variables begin with this.
const VARIABLE: &str = "v.";

pub async fn page(visit: Visit) -> Response {
    let body = shown(&visit).await;
    layout::page_or_error(&visit, visit.words.templates, body)
}

async fn shown(visit: &Visit) -> Result<Markup, ApiError> {
    let (words, fields) = (visit.words, &visit.query);
    let templates = visit.app.templates(&visit.caller)?.templates;
    let chosen = |item: &TemplateItem| {
        item.server == fields.text("server") && item.uri_template == fields.text("template")
    };
    if let Some(item) = templates.iter().find(|item| chosen(item)) {
        return filled(visit, item).await;
    }
    Ok(html! {
        @if templates.is_empty() { p.empty { (words.no_templates) } }
        div.cards {
            @for item in &templates {
                @let address = show::href("/templates", &[("server", &item.server), ("template", &item.uri_template)]);
                section.card aria-label=(show::line(&item.title)) {
                    h2 { a href=(address) { (show::line(&item.title)) } }
                    p.where { span.server { (show::line(&item.server)) } " " (layout::uri(&item.uri_template)) }
                    @if let Some(description) = &item.description { p { (show::block(description)) } }
                    p.hint { (show::number(item.expanded)) " " (words.expanded) }
                    (followed(visit, item))
                }
            }
        }
    })
}

/// What was chosen at run time, each to be let go.
fn followed(visit: &Visit, item: &TemplateItem) -> Markup {
    html! {
        @if !item.followed.is_empty() {
            ul.plain { @for uri in &item.followed { li.between {
                a href=(layout::document(&item.server, uri, None)) { (layout::uri(uri)) }
                form method="post" action="/templates/forget" {
                    input type="hidden" name="server" value=(item.server);
                    input type="hidden" name="uri" value=(uri);
                    button.plain aria-label={ (visit.words.forget) " " (show::line(uri)) } { (visit.words.forget) }
                }
            } } }
        }
    }
}

async fn filled(visit: &Visit, item: &TemplateItem) -> Result<Markup, ApiError> {
    let (words, fields) = (visit.words, &visit.query);
    let values: BTreeMap<String, String> = fields
        .below(VARIABLE)
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let request = ExpandRequest {
        server: item.server.clone(),
        uri_template: item.uri_template.clone(),
        values: values.clone(),
        follow: false,
    };
    let expanded = match values.len() == item.variables.len() {
        true => Some(visit.app.expand(&visit.caller, &request)),
        false => None,
    };
    Ok(html! {
        p { a href="/templates" { "← " (words.templates) } }
        h2 { (show::line(&item.title)) }
        p.where { span.server { (show::line(&item.server)) } " " (layout::uri(&item.uri_template)) }
        form.stacked.narrow method="get" action="/templates" data-complete-server=(item.server) data-complete-template=(item.uri_template) {
            input type="hidden" name="server" value=(item.server);
            input type="hidden" name="template" value=(item.uri_template);
            @for variable in &item.variables {
                @let id = format!("{VARIABLE}{variable}");
                label.field for=(id) {
                    span { (show::line(variable)) }
                    input id=(id) name=(id) value=(values.get(variable).map(String::as_str).unwrap_or_default())
                        data-variable=(variable) list={ "list-" (variable) } autocomplete="off" required;
                }
                datalist id={ "list-" (variable) } {}
            }
            p.hint { (words.values_from_server) }
            button { (words.preview) }
        }
        @match expanded {
            None => {}
            Some(Err(error)) => (layout::problem(&error.detail)),
            Some(Ok(expanded)) => (previewed(visit, &request, &expanded).await),
        }
        (followed(visit, item))
    })
}

async fn previewed(visit: &Visit, request: &ExpandRequest, expanded: &ExpandResponse) -> Markup {
    let words = visit.words;
    let read = ReadRequest {
        uri: expanded.uri.clone(),
        server: Some(expanded.server.clone()),
        ..ReadRequest::default()
    };
    let read = visit.app.read(&visit.caller, read).await;
    html! {
        section #expansion aria-live="polite" {
            h2 { (words.preview) }
            p.where { (layout::uri(&expanded.uri)) " " (layout::copy(visit, words.uri, &expanded.uri)) }
            @match read {
                Err(error) => (layout::problem(&error.detail)),
                Ok(read) => {
                    @if expanded.followed { p.hint { (words.followed) } }
                    @else if visit.caller.bound.is_none() {
                        form method="post" action="/templates" {
                            input type="hidden" name="server" value=(request.server);
                            input type="hidden" name="template" value=(request.uri_template);
                            @for (name, value) in &request.values { input type="hidden" name={ (VARIABLE) (name) } value=(value); }
                            p { button { (words.index_this) } " " span.hint { (words.index_this_help) } }
                        }
                    }
                    @match document::previews(visit, read, &expanded.uri).await {
                        Ok(previews) => (previews),
                        Err(error) => (layout::problem(&error.detail)),
                    }
                }
            }
        }
    }
}

/// Indexes an expansion from now on.
pub async fn index(visit: Visit, fields: Fields) -> Response {
    let request = ExpandRequest {
        server: fields.text("server").to_owned(),
        uri_template: fields.text("template").to_owned(),
        values: fields
            .below(VARIABLE)
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        follow: true,
    };
    match visit.ask(move |app, caller| app.expand(caller, &request)).await {
        Ok(_) => {
            let mut parameters =
                vec![("server", fields.text("server")), ("template", fields.text("template"))];
            let named: Vec<(String, &str)> = fields
                .below(VARIABLE)
                .map(|(name, value)| (format!("{VARIABLE}{name}"), value))
                .collect();
            parameters.extend(named.iter().map(|(name, value)| (name.as_str(), *value)));
            Redirect::to(&show::href("/templates", &parameters)).into_response()
        }
        Err(error) => layout::failed(&visit, &error),
    }
}

pub async fn forget(visit: Visit, fields: Fields) -> Response {
    let query = UnfollowQuery {
        server: fields.text("server").to_owned(),
        uri: fields.text("uri").to_owned(),
    };
    match visit.ask(move |app, caller| app.unfollow(caller, &query)).await {
        Ok(_) => back_to(None, "/templates"),
        Err(error) => layout::failed(&visit, &error),
    }
}
