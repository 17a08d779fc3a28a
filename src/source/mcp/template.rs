//! URI templates (RFC 6570) and their values: from the config, else from `completion/complete`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rmcp::model::{
    ArgumentInfo, ClientRequest, CompleteRequest, CompleteRequestParams, CompletionContext,
    Reference,
};
use serde_json::Value;

use super::session::Session;
use crate::config::TemplateConfig;
use crate::config::template::Template;
use crate::model::{Origin, Resource, ResourceTemplate};
use crate::source::SourceError;

/// Questions asked of one template's completion; what is beyond is reported, not followed.
const MAX_QUESTIONS: usize = 1_000;

/// What became of a template.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Expansion {
    pub resources: Vec<Resource>,
    /// Whether these are all, so that the absence of one means something.
    pub complete: bool,
    pub problem: Option<String>,
}

/// The variables of a template in their order, each once.
///
/// # Errors
/// What is wrong with the template.
pub(crate) fn variables(template: &str) -> Result<Vec<String>, String> {
    let parsed = Template::parse(template)?;
    let mut seen = BTreeSet::new();
    Ok(parsed.variables().filter(|name| seen.insert(*name)).map(str::to_owned).collect())
}

/// Fills a template in.
///
/// # Errors
/// What is wrong with the template.
pub(crate) fn expand(template: &str, values: &BTreeMap<String, String>) -> Result<String, String> {
    Ok(Template::parse(template)?.expand(values))
}

impl Session {
    /// Every expansion of a template for which each variable has values.
    ///
    /// # Errors
    /// Only when the connection is gone.
    pub(super) async fn expansions(
        &self,
        template: &ResourceTemplate,
        configured: Option<&TemplateConfig>,
        most: usize,
    ) -> Result<Expansion, SourceError> {
        let names = match variables(&template.uri_template) {
            Ok(names) => names,
            Err(reason) => {
                let problem = format!(
                    "the template {} is not one of RFC 6570: {reason}",
                    template.uri_template
                );
                return Ok(Expansion { problem: Some(problem), ..Expansion::default() });
            }
        };
        let mut expansion = Expansion { complete: true, ..Expansion::default() };
        let (mut seen, mut questions) = (BTreeSet::new(), 0);
        // Depth first; values of later variables may depend on those of earlier ones.
        let mut open = vec![BTreeMap::new()];
        while let Some(chosen) = open.pop() {
            let Some(name) = names.get(chosen.len()) else {
                if expansion.resources.len() >= most {
                    expansion.complete = false;
                    expansion.problem = Some(format!(
                        "the template {} has more than {most} expansions",
                        template.uri_template
                    ));
                    break;
                }
                match expand(&template.uri_template, &chosen) {
                    Ok(uri) if seen.insert(uri.clone()) => {
                        expansion.resources.push(expanded(template, &uri, &names, &chosen));
                    }
                    Ok(_) => {}
                    Err(reason) => expansion.problem = Some(reason),
                }
                continue;
            };
            let values = match configured
                .and_then(|c| c.values.get(name))
                .filter(|values| !values.is_empty())
            {
                Some(values) => values.clone(),
                None if questions >= MAX_QUESTIONS => {
                    expansion.complete = false;
                    expansion.problem = Some(format!(
                        "the template {} needs more than {MAX_QUESTIONS} completions",
                        template.uri_template
                    ));
                    break;
                }
                None => {
                    questions += 1;
                    match self.complete(&template.uri_template, name, "", &chosen).await {
                        Ok(completion) => {
                            if completion.more {
                                expansion.complete = false;
                                expansion.problem = Some(format!(
                                    "the server completes {{{name}}} of {} only in part; name the values in the config",
                                    template.uri_template
                                ));
                            }
                            completion.values
                        }
                        Err(error @ SourceError::Disconnected { .. }) => return Err(error),
                        // A server without completion: nothing is to be expanded, which is complete.
                        Err(SourceError::Refused { code: -32601, .. }) => vec![],
                        Err(error) => {
                            expansion.complete = false;
                            expansion.problem = Some(error.to_string());
                            vec![]
                        }
                    }
                }
            };
            // Pushed in reverse, so that they are taken in the server's order.
            for value in values.into_iter().rev() {
                let mut next = chosen.clone();
                next.insert(name.clone(), value);
                open.push(next);
            }
        }
        Ok(expansion)
    }

    /// `completion/complete` for a variable of a template.
    ///
    /// # Errors
    /// The server's, or that it takes too long.
    pub async fn complete(
        &self,
        template: &str,
        variable: &str,
        typed: &str,
        chosen: &BTreeMap<String, String>,
    ) -> Result<Completion, SourceError> {
        let reference = Reference::for_resource(template);
        let mut params = CompleteRequestParams::new(reference, ArgumentInfo::new(variable, typed));
        if !chosen.is_empty() {
            let arguments: HashMap<String, String> = chosen.clone().into_iter().collect();
            params.context = Some(CompletionContext::with_arguments(arguments));
        }
        let request = ClientRequest::CompleteRequest(CompleteRequest::new(params));
        let answer =
            self.request("completion/complete", request, self.0.limits.list_timeout).await?;
        let completion = answer.get("completion").unwrap_or(&Value::Null);
        let values = completion.get("values").and_then(Value::as_array);
        let values =
            values.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
        let more = completion.get("hasMore").and_then(Value::as_bool).unwrap_or(false);
        Ok(Completion { values, more })
    }
}

/// Values that a server offers for a variable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    pub values: Vec<String>,
    /// Whether the server has more than these.
    pub more: bool,
}

fn expanded(
    template: &ResourceTemplate,
    uri: &str,
    names: &[String],
    chosen: &BTreeMap<String, String>,
) -> Resource {
    let values: Vec<&str> =
        names.iter().filter_map(|name| chosen.get(name)).map(String::as_str).collect();
    let label = |text: &str| format!("{text} ({})", values.join(", "));
    Resource {
        name: label(&template.name),
        title: template.title.as_deref().map(label),
        description: template.description.clone(),
        mime_type: template.mime_type.clone(),
        origin: Origin::Template(template.uri_template.clone()),
        ..Resource::new(uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_in_as_the_standard_says() {
        let values = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        for (template, pairs, expected) in [
            (
                "docs://{id}/{+path}",
                &[("id", "a b"), ("path", "x/y z")][..],
                "docs://a%20b/x/y%20z",
            ),
            ("s://q{?a,b}", &[("a", "1"), ("b", "二")], "s://q?a=1&b=%E4%BA%8C"),
            ("s://q?x=1{&a}", &[("a", "&")], "s://q?x=1&a=%26"),
            ("s://{a}", &[], "s://"),
        ] {
            assert_eq!(expand(template, &values(pairs)).as_deref(), Ok(expected), "{template}");
        }
        assert!(expand("s://{a", &values(&[])).is_err());
    }

    #[test]
    fn variables_are_named_once_in_order() {
        assert_eq!(variables("x://{b}/{+a}{?b,c*}").unwrap(), ["b", "a", "c"]);
        assert!(variables("x://{").is_err());
    }
}
