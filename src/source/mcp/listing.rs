//! `resources/list` and `resources/templates/list`, by hand: page by page with guards against a
//! server that never ends, item by item so that a bad one costs itself only.

use std::collections::{BTreeMap, HashMap, HashSet};

use rmcp::model::{
    ClientRequest, ListResourceTemplatesRequest, ListResourcesRequest, PaginatedRequestParams,
};
use serde_json::Value;

use super::session::{Session, clean};
use crate::config::{Limits, TemplateConfig};
use crate::model::{Audience, Listing, Origin, Resource, ResourceTemplate};
use crate::source::SourceError;

/// JSON-RPC's code for a method that the server doesn't have.
const NO_SUCH_METHOD: i32 = -32601;

/// A listing, and whether the server lists resources at all.
#[derive(Debug, PartialEq)]
pub struct Listed {
    pub listing: Listing,
    /// The server has no `resources/list`: its templates are all that it offers.
    pub no_listing: bool,
}

impl Session {
    /// Lists everything that the server has: resources, templates, and the templates' expansions.
    ///
    /// A page that fails, repeats its cursor or goes past a limit makes the listing incomplete.
    ///
    /// # Errors
    /// When not even a first page could be had, or the connection is gone.
    pub async fn list(&self, configured: &[TemplateConfig]) -> Result<Listed, SourceError> {
        let limits = &self.0.limits;
        let (resources, no_listing) = match self.pages(&RESOURCES, limits.max_resources).await {
            Ok(pages) => (pages, false),
            Err(SourceError::Refused { code: NO_SUCH_METHOD, .. }) => {
                (Pages { complete: true, ..Pages::default() }, true)
            }
            Err(error) => return Err(error),
        };
        let templates = match self.pages(&TEMPLATES, limits.max_resources).await {
            Ok(pages) => pages,
            Err(SourceError::Refused { code: NO_SUCH_METHOD, .. }) => {
                Pages { complete: true, ..Pages::default() }
            }
            Err(error @ SourceError::Disconnected { .. }) => return Err(error),
            Err(error) => Pages { problems: vec![error.to_string()], ..Pages::default() },
        };
        let mut listing = Listing { complete: resources.complete, ..Listing::default() };
        listing.problems.extend(resources.problems);
        listing.problems.extend(templates.problems);
        add_resources(&mut listing, resources.items, limits);
        add_templates(&mut listing, templates.items);
        let templates_complete = templates.complete;
        self.add_expansions(&mut listing, configured, templates_complete).await?;
        Ok(Listed { listing, no_listing })
    }

    async fn add_expansions(
        &self,
        listing: &mut Listing,
        configured: &[TemplateConfig],
        templates_complete: bool,
    ) -> Result<(), SourceError> {
        listing.expansions_complete = templates_complete;
        let listed: HashSet<&str> = listing.templates.iter().map(|t| &*t.uri_template).collect();
        let unlisted = configured.iter().filter(|config| !listed.contains(&*config.uri));
        let unlisted = unlisted.map(|config| ResourceTemplate {
            uri_template: config.uri.clone(),
            name: config.uri.clone(),
            title: None,
            description: None,
            mime_type: None,
        });
        let templates: Vec<ResourceTemplate> =
            listing.templates.iter().cloned().chain(unlisted).collect();
        let mut known: HashSet<_> =
            listing.resources.iter().map(|resource| resource.uri.clone()).collect();
        for template in &templates {
            let config = configured.iter().find(|config| config.uri == template.uri_template);
            let most = self.0.limits.max_resources.saturating_sub(listing.resources.len());
            let expansion = self.expansions(template, config, most).await?;
            listing.expansions_complete &= expansion.complete;
            listing.problems.extend(expansion.problem);
            // A listed resource is the better description of itself.
            listing
                .resources
                .extend(expansion.resources.into_iter().filter(|r| known.insert(r.uri.clone())));
        }
        Ok(())
    }

    /// All pages of one of the lists.
    async fn pages(&self, list: &List, most: usize) -> Result<Pages, SourceError> {
        let limits = &self.0.limits;
        let (mut pages, mut cursor, mut seen) = (Pages::default(), None::<String>, HashSet::new());
        for page in 0..limits.max_pages {
            let params = cursor
                .as_ref()
                .map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor.clone())));
            let answer = match self
                .request(list.method, (list.request)(params), limits.list_timeout)
                .await
            {
                Ok(answer) => answer,
                Err(error @ SourceError::Disconnected { .. }) => return Err(error),
                Err(error) if page == 0 => return Err(error),
                Err(error) => {
                    pages.problems.push(format!("page {} of {}: {error}", page + 1, list.method));
                    return Ok(pages);
                }
            };
            let (items, next) = split_page(answer, list.key);
            let Some(items) = items else {
                let reason = format!("the answer has no `{}`", list.key);
                let error = SourceError::BadAnswer { what: list.method.into(), reason };
                return if page == 0 {
                    Err(error)
                } else {
                    Ok(pages.with_problem(error.to_string()))
                };
            };
            pages.items.extend(items);
            if pages.items.len() > most {
                pages.items.truncate(most);
                return Ok(pages.with_problem(format!(
                    "{} gives more than {most} items (limits.max_resources)",
                    list.method
                )));
            }
            match next {
                None => {
                    pages.complete = true;
                    return Ok(pages);
                }
                // Some servers mean "no more" by it, page after page.
                Some(next) if next.is_empty() && seen.contains(&next) => {
                    pages.complete = true;
                    return Ok(pages);
                }
                Some(next) if !seen.insert(next.clone()) => {
                    return Ok(pages.with_problem(format!(
                        "{} repeats a cursor: it would never end",
                        list.method
                    )));
                }
                Some(next) => cursor = Some(next),
            }
        }
        let most = limits.max_pages;
        Ok(pages
            .with_problem(format!("{} has more than {most} pages (limits.max_pages)", list.method)))
    }
}

/// One of the two lists.
struct List {
    method: &'static str,
    key: &'static str,
    request: fn(Option<PaginatedRequestParams>) -> ClientRequest,
}

const RESOURCES: List = List {
    method: "resources/list",
    key: "resources",
    request: |params| {
        ClientRequest::ListResourcesRequest(ListResourcesRequest { params, ..Default::default() })
    },
};

const TEMPLATES: List = List {
    method: "resources/templates/list",
    key: "resourceTemplates",
    request: |params| {
        ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest {
            params,
            ..Default::default()
        })
    },
};

#[derive(Debug, Default)]
struct Pages {
    items: Vec<Value>,
    complete: bool,
    problems: Vec<String>,
}

impl Pages {
    fn with_problem(mut self, problem: String) -> Self {
        self.problems.push(problem);
        self
    }
}

/// A page's items and the cursor of the next. `null` is no cursor, `""` is one.
pub(super) fn split_page(mut answer: Value, key: &str) -> (Option<Vec<Value>>, Option<String>) {
    let next = match answer.get_mut("nextCursor").map(Value::take) {
        None | Some(Value::Null) => None,
        Some(Value::String(cursor)) => Some(cursor),
        Some(other) => Some(other.to_string()),
    };
    match answer.get_mut(key).map(Value::take) {
        Some(Value::Array(items)) => (Some(items), next),
        _ => (None, next),
    }
}

pub(super) fn add_resources(listing: &mut Listing, items: Vec<Value>, limits: &Limits) {
    let mut times: HashMap<_, u32> = HashMap::new();
    let mut nameless = 0;
    for item in items {
        match resource(&item, limits) {
            Ok(resource) => {
                let count = times.entry(resource.uri.clone()).or_default();
                *count += 1;
                if *count == 1 {
                    nameless += u32::from(resource.name.is_empty());
                    listing.resources.push(resource);
                }
            }
            Err(reason) => listing.problems.push(reason),
        }
    }
    let repeated: BTreeMap<_, _> = times.into_iter().filter(|(_, count)| *count > 1).collect();
    for (uri, count) in repeated {
        listing.problems.push(format!("{uri} is listed {count} times; its first entry counts"));
    }
    if nameless > 0 {
        listing.problems.push(format!("{nameless} resources have no name"));
    }
}

pub(super) fn add_templates(listing: &mut Listing, items: Vec<Value>) {
    for item in items {
        let text = |key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
        match text("uriTemplate").filter(|template| !template.is_empty()) {
            Some(uri_template) => {
                let name = text("name").unwrap_or_else(|| uri_template.clone());
                let (title, description, mime_type) =
                    (text("title"), text("description"), text("mimeType"));
                listing.templates.push(ResourceTemplate {
                    uri_template,
                    name,
                    title,
                    description,
                    mime_type,
                });
            }
            None => {
                listing.problems.push(format!("a template without `uriTemplate`: {}", shown(&item)))
            }
        }
    }
}

/// One item of `resources/list`, with what can be made of it.
fn resource(item: &Value, limits: &Limits) -> Result<Resource, String> {
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    let uri = text("uri").filter(|uri| !uri.is_empty());
    let uri = uri.ok_or_else(|| format!("a resource without `uri`: {}", shown(item)))?;
    if uri.len() > limits.max_uri_bytes {
        let most = limits.max_uri_bytes;
        return Err(format!(
            "a resource's URI is longer than {most} bytes (limits.max_uri): {}…",
            cut(uri, 100)
        ));
    }
    let annotations = item.get("annotations").unwrap_or(&Value::Null);
    let audience: HashSet<&str> = annotations
        .get("audience")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let (user, assistant) = (audience.contains("user"), audience.contains("assistant"));
    let priority =
        annotations.get("priority").and_then(Value::as_f64).filter(|p| (0.0..=1.0).contains(p));
    Ok(Resource {
        uri: uri.into(),
        name: cut(text("name").unwrap_or_default(), limits.max_name_bytes).to_owned(),
        title: text("title").map(|title| cut(title, limits.max_name_bytes).to_owned()),
        description: text("description")
            .map(|text| cut(text, limits.max_description_bytes).to_owned()),
        mime_type: text("mimeType")
            .map(|mime_type| cut(mime_type, limits.max_name_bytes).to_owned()),
        size: item.get("size").and_then(size),
        audience: match (user, assistant) {
            (true, false) => Audience::User,
            (false, true) => Audience::Assistant,
            _ => Audience::Both,
        },
        #[expect(clippy::cast_possible_truncation, reason = "a number from 0 to 1")]
        priority: priority.map(|priority| priority as f32),
        last_modified: annotations
            .get("lastModified")
            .and_then(Value::as_str)
            .map(|time| cut(time, 64).to_owned()),
        origin: Origin::Listed,
    })
}

/// A size as servers write it: a number, a fractional one, or its digits in a string.
fn size(value: &Value) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and is for show"
    )]
    let float = || value.as_f64().filter(|size| *size >= 0.0).map(|size| size as u64);
    value.as_u64().or_else(float).or_else(|| value.as_str()?.trim().parse().ok())
}

/// The start of a text, at most so many bytes.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn shown(item: &Value) -> String {
    cut(&clean(&item.to_string()), 200).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn items_are_read_one_by_one() {
        let items = json!([
            {"uri": "a://1", "name": "one", "size": 3.7, "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-01T00:00:00Z"}},
            {"name": "no uri"},
            {"uri": 5},
            "no object",
            {"uri": "a://2", "title": "Two", "size": "12", "mimeType": "text/plain", "annotations": {"audience": "user", "priority": 7}},
            {"uri": "a://1", "name": "again", "mimeType": "text/html"},
            {"uri": "a://1"},
        ]);
        let Value::Array(items) = items else { unreachable!() };
        let mut listing = Listing::default();
        add_resources(&mut listing, items, &Limits::default());
        let [one, two] = &listing.resources[..] else { panic!("{listing:?}") };
        assert_eq!(
            (&*one.uri, &*one.name, one.size, one.audience),
            ("a://1", "one", Some(3), Audience::User)
        );
        assert_eq!(
            (one.priority, one.last_modified.as_deref()),
            (Some(0.5), Some("2026-01-01T00:00:00Z"))
        );
        assert_eq!(
            (two.label(), two.size, two.audience, two.priority),
            ("Two", Some(12), Audience::Both, None)
        );
        assert_eq!(
            listing.problems,
            [
                r#"a resource without `uri`: {"name":"no uri"}"#,
                r#"a resource without `uri`: {"uri":5}"#,
                r#"a resource without `uri`: "no object""#,
                "a://1 is listed 3 times; its first entry counts",
                "1 resources have no name",
            ]
        );
    }

    #[test]
    fn long_fields_are_cut_at_characters() {
        let limits = Limits {
            max_name_bytes: 4,
            max_description_bytes: 5,
            max_uri_bytes: 10,
            ..Limits::default()
        };
        let item = json!({"uri": "a://1", "name": "退款政策", "description": "éééé"});
        let resource = resource(&item, &limits).unwrap();
        assert_eq!((&*resource.name, resource.description.as_deref()), ("退", Some("éé")));
        assert!(super::resource(&json!({"uri": "a://1234567890"}), &limits).is_err());
    }

    #[test]
    fn an_empty_cursor_is_one() {
        assert_eq!(split_page(json!({"resources": []}), "resources"), (Some(vec![]), None));
        assert_eq!(split_page(json!({"resources": [], "nextCursor": null}), "resources").1, None);
        assert_eq!(
            split_page(json!({"resources": [], "nextCursor": ""}), "resources").1,
            Some(String::new())
        );
        assert_eq!(
            split_page(json!({"resources": [], "nextCursor": 7}), "resources").1,
            Some("7".into())
        );
        assert_eq!(split_page(json!({"resources": {}}), "resources").0, None);
    }
}
