//! What a caller may see: the scope it names, narrowed by what it asks for.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::error::ApiError;
use crate::config::{Config, ScopeConfig};
use crate::model::ServerName;
use crate::search::filter::{Clause, Filter};

/// The filter of a scope by its name; everything when none is named.
///
/// # Errors
/// The scope isn't in the config, or a pattern of it can't be used (the config room checks them).
pub fn filter(config: &Config, scope: Option<&str>) -> Result<Filter, ApiError> {
    let Some(name) = scope else { return Ok(Filter::default()) };
    let Some(scope) = config.scopes.get(name) else {
        return Err(ApiError::unknown_scope(name, config.scopes.keys().map(String::as_str)));
    };
    let clause = clause(scope)
        .map_err(|reason| ApiError::internal(format!("the scope {name:?}: {reason}")))?;
    Ok(Filter::default().and(clause))
}

fn clause(scope: &ScopeConfig) -> Result<Clause, String> {
    let some = |empty: bool| (!empty).then_some(());
    Ok(Clause {
        servers: some(scope.servers.is_empty()).map(|()| scope.servers.clone()),
        include: globs(&scope.include)?,
        exclude: globs(&scope.exclude)?,
        mime_types: some(scope.mime_types.is_empty())
            .map(|()| scope.mime_types.iter().map(|m| m.to_lowercase()).collect()),
        uri_prefix: None,
    })
}

/// Globs over whole URIs: `*` doesn't cross `/`, `**` does. None when there are no patterns.
fn globs(patterns: &[String]) -> Result<Option<GlobSet>, String> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(
            GlobBuilder::new(pattern).literal_separator(true).build().map_err(|e| e.to_string())?,
        );
    }
    set.build().map(Some).map_err(|e| e.to_string())
}

/// The servers that a request names, each checked to exist. Empty means all.
///
/// # Errors
/// A name that no server has; it names the nearest one.
pub fn servers(
    named: Option<&[String]>,
    known: &[ServerName],
) -> Result<Vec<ServerName>, ApiError> {
    named.unwrap_or_default().iter().map(|name| server(name, known)).collect()
}

/// The server with this name among the known ones.
///
/// # Errors
/// No server has it; the error names the nearest one.
pub fn server(name: &str, known: &[ServerName]) -> Result<ServerName, ApiError> {
    known
        .iter()
        .find(|server| server.as_str() == name)
        .cloned()
        .ok_or_else(|| ApiError::unknown_server(name, known.iter().map(ServerName::as_str)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::api::ErrorCode;

    fn config() -> Config {
        let mut config = Config::default();
        config.scopes.insert(
            "support-bot".into(),
            ScopeConfig {
                servers: vec![ServerName::new("wiki").unwrap(), ServerName::new("手册").unwrap()],
                include: vec!["**".into()],
                exclude: vec!["wiki://pages/hr/**".into(), "wiki://pages/*.tmp".into()],
                mime_types: vec!["Text/*".into(), "application/pdf".into()],
                ..ScopeConfig::default()
            },
        );
        config.scopes.insert("everything".into(), ScopeConfig::default());
        config
    }

    #[test]
    fn a_scope_is_a_filter() {
        let filter = filter(&config(), Some("support-bot")).unwrap();
        for (server, uri, mime, allowed) in [
            ("wiki", "wiki://pages/eng/怎么退款", Some("text/markdown"), true),
            ("手册", "wiki://pages/eng", Some("TEXT/plain; charset=utf-8"), true),
            ("wiki", "wiki://pages/eng", Some("application/pdf"), true),
            ("wiki", "wiki://pages/hr/pay", Some("text/markdown"), false),
            ("wiki", "wiki://pages/a.tmp", Some("text/plain"), false),
            ("wiki", "wiki://pages/a/b.tmp", Some("text/plain"), true),
            ("wiki", "wiki://pages/eng", Some("image/png"), false),
            ("wiki", "wiki://pages/eng", None, false),
            ("docs", "wiki://pages/eng", Some("text/markdown"), false),
        ] {
            assert_eq!(filter.allows(server, uri, mime), allowed, "{server} {uri} {mime:?}");
        }
        assert!(super::filter(&config(), Some("everything")).unwrap().allows("x", "y", None));
        assert!(super::filter(&config(), None).unwrap().is_everything());
    }

    #[test]
    fn an_unknown_name_is_an_error_that_names_the_nearest() {
        let error = filter(&config(), Some("support-bots")).unwrap_err();
        assert_eq!(error.detail.code, ErrorCode::UnknownScope);
        assert_eq!(error.detail.hint.as_deref(), Some("did you mean \"support-bot\"?"));
        let error = filter(&Config::default(), Some("x")).unwrap_err();
        assert!(error.detail.hint.unwrap().contains("no scopes"));

        let known = [ServerName::new("handbook").unwrap(), ServerName::new("wiki").unwrap()];
        let named = ["wiki".to_owned(), "handbok".to_owned()];
        let error = servers(Some(&named), &known).unwrap_err();
        assert_eq!(error.detail.code, ErrorCode::UnknownServer);
        assert_eq!(error.detail.message, "no server is called \"handbok\"");
        assert_eq!(error.detail.hint.as_deref(), Some("did you mean \"handbook\"?"));
        assert_eq!(servers(Some(&named[..1]), &known).unwrap(), [known[1].clone()]);
        assert!(servers(None, &known).unwrap().is_empty());
    }
}
