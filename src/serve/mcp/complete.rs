//! `completion/complete`: the URIs that there are, and what a template's own server proposes.

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, Reference};

use super::super::App;
use super::super::error::ApiError;
use super::super::scope::View;
use super::handler::{ANY, error, shown};
use crate::index::ResourcesRequest;
use crate::model::{ResourceKey, ServerName};
use crate::search::filter::Clause;
use crate::source::mcp::template;

/// # Errors
/// A template that isn't shown, a prompt, or a server that can't be asked.
pub async fn complete(
    app: &Arc<App>,
    view: View,
    request: CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let Reference::Resource(reference) = request.r#ref else {
        return Err(ErrorData::invalid_params("there are no prompts here", None));
    };
    let (variable, typed) = (request.argument.name, request.argument.value);
    let (mut values, mut more) = if reference.uri == ANY {
        app.blocking(move |app| uris(app, &view, &typed)).await.map_err(error)?
    } else {
        let templates = app.templates_in(&view);
        let found = templates.iter().find(|(_, row)| row.template.uri_template == reference.uri);
        let Some((server, _)) = found.cloned() else {
            let message = format!("there is no template {}", reference.uri);
            return Err(ErrorData::invalid_params(message, None));
        };
        let chosen = request.context.and_then(|context| context.arguments).unwrap_or_default();
        let chosen: BTreeMap<String, String> = chosen.into_iter().collect();
        let asked = app.control.complete(&server, &reference.uri, &variable, &typed, &chosen);
        let completion = asked.await.map_err(|reason| {
            let message = format!("{server} completes nothing: {reason}");
            ErrorData::internal_error(app.config.load().masker.mask(&message).into_owned(), None)
        })?;
        let proposed = completion.values;
        let leading = move |app: &App| {
            leading(app, &view, (&server, &reference.uri), variable, chosen, proposed)
        };
        (app.blocking(leading).await.map_err(error)?, completion.more)
    };
    more |= values.len() > CompletionInfo::MAX_VALUES;
    values.truncate(CompletionInfo::MAX_VALUES);
    let mut completion = CompletionInfo::default();
    (completion.values, completion.has_more) = (values, Some(more));
    Ok(CompleteResult::new(completion))
}

/// URIs that begin with what was typed, and whether there are more.
fn uris(app: &App, view: &View, typed: &str) -> Result<(Vec<String>, bool), ApiError> {
    let clause = Clause { uri_prefix: Some(typed.into()), ..Clause::default() };
    let page = app.store.resources(&ResourcesRequest {
        filter: view.filter.clone().and(clause),
        limit: CompletionInfo::MAX_VALUES,
        ..ResourcesRequest::default()
    })?;
    let uris = page.resources.iter().map(|row| shown(app, view, &row.key));
    Ok((uris.collect::<Result<_, _>>()?, page.more))
}

/// Of the values that a server proposes for a variable those that lead to something that the view shows.
/// Where the scope looks at URIs, one that isn't filled in completely yet is told only if the index holds
/// something that it leads to.
///
/// # Errors
/// The index can't be read.
fn leading(
    app: &App,
    view: &View,
    (server, uri_template): (&ServerName, &str),
    variable: String,
    mut chosen: BTreeMap<String, String>,
    values: Vec<String>,
) -> Result<Vec<String>, ApiError> {
    if !view.filter.looks_at_uri() {
        return Ok(values);
    }
    let mut leading = vec![];
    for value in values {
        chosen.insert(variable.clone(), value.clone());
        let (known, complete) = chosen_part(uri_template, &chosen);
        let Ok(uri) = template::expand(known, &chosen) else { continue };
        let leads = if complete {
            view.filter.allows_uri(&uri)
        } else if !template::variables(known).is_ok_and(|names| names.contains(&variable)) {
            // What stands before it may be anything yet.
            false
        } else {
            let page = app.store.resources(&ResourcesRequest {
                filter: view.filter.clone(),
                within: Some(ResourceKey { server: server.clone(), uri: uri.into() }),
                limit: 1,
                ..ResourcesRequest::default()
            })?;
            !page.resources.is_empty()
        };
        if leads {
            leading.push(value);
        }
    }
    Ok(leading)
}

/// The beginning of a template up to the first expression that has a variable without a value, and
/// whether that is all of it.
fn chosen_part<'t>(uri_template: &'t str, chosen: &BTreeMap<String, String>) -> (&'t str, bool) {
    let ends = uri_template.match_indices('{').map(|(at, _)| at).chain([uri_template.len()]);
    let known = ends.map(|end| &uri_template[..end]).take_while(|part| {
        template::variables(part).is_ok_and(|names| names.iter().all(|n| chosen.contains_key(n)))
    });
    let known = known.last().unwrap_or_default();
    (known, known.len() == uri_template.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_that_is_chosen_ends_where_a_value_is_missing() {
        let uri_template = "d://{a}/x/{+b}{?c,a}#x";
        for (chosen, known) in [
            ("", "d://"),
            ("b", "d://"),
            ("a", "d://{a}/x/"),
            ("ab", "d://{a}/x/{+b}"),
            ("abc", uri_template),
        ] {
            let chosen = chosen.chars().map(|name| (name.into(), "1".into())).collect();
            let complete = known == uri_template;
            assert_eq!(chosen_part(uri_template, &chosen), (known, complete), "{chosen:?}");
        }
        assert_eq!(chosen_part("{", &BTreeMap::new()), ("", false));
        assert_eq!(chosen_part("d://x", &BTreeMap::new()), ("d://x", true));
    }
}
