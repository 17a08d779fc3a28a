//! Templates: what completes their variables, what they expand to, and expansions that are followed.

use super::App;
use super::api::{
    CompleteRequest, CompleteResponse, ErrorCode, ExpandRequest, ExpandResponse, UnfollowQuery,
};
use super::error::ApiError;
use super::scope::{Caller, View};
use crate::config;
use crate::model::{ResourceKey, ServerName};
use crate::source::SourceError;
use crate::source::mcp::template;
use crate::sync::added::Expansion;
use crate::sync::control::ReadError;

impl App {
    /// Asks a server what a template's variable can be.
    ///
    /// # Errors
    /// A template or variable that there isn't, or a server that is away.
    pub async fn complete(
        &self,
        caller: &Caller,
        request: &CompleteRequest,
    ) -> Result<CompleteResponse, ApiError> {
        let view = self.view(caller, None)?;
        let (server, variables) = self.template(&view, &request.server, &request.uri_template)?;
        if !variables.contains(&request.variable) {
            let message = format!("variable: the template has no {:?}", request.variable);
            return Err(ApiError::bad_request(message)
                .hint(Some(format!("it has {}", variables.join(", ")))));
        }
        let mut chosen = request.values.clone();
        chosen.retain(|name, value| *name != request.variable && !value.is_empty());
        let (template, variable) = (&request.uri_template, &request.variable);
        match self.control.complete(&server, template, variable, &request.value, &chosen).await {
            Ok(completion) => {
                Ok(CompleteResponse { values: completion.values, more: completion.more })
            }
            // A server without completion has nothing to suggest.
            Err(ReadError::Source(SourceError::Refused { code: -32601, .. })) => {
                Ok(CompleteResponse { values: vec![], more: false })
            }
            Err(error) => {
                let message = self.config.load().masker.mask(&error.to_string()).into_owned();
                Err(ApiError::new(ErrorCode::ServerAway, message)
                    .hint(Some(format!("`resdex status` says what is wrong with {server}"))))
            }
        }
    }

    /// What a template expands to; with `follow` it is indexed from now on.
    ///
    /// # Errors
    /// A template that there isn't, a variable without a value, or a caller that may not follow.
    pub fn expand(
        &self,
        caller: &Caller,
        request: &ExpandRequest,
    ) -> Result<ExpandResponse, ApiError> {
        let view = self.view(caller, None)?;
        let (server, variables) = self.template(&view, &request.server, &request.uri_template)?;
        let value = |name: &String| request.values.get(name).filter(|value| !value.is_empty());
        if let Some(missing) = variables.iter().find(|name| value(name).is_none()) {
            return Err(ApiError::bad_request(format!("values: {missing} has none")));
        }
        if let Some(name) = request.values.keys().find(|name| !variables.contains(name)) {
            return Err(ApiError::bad_request(format!("values: the template has no {name:?}")));
        }
        let uri = template::expand(&request.uri_template, &request.values)
            .map_err(|reason| ApiError::bad_request(format!("values: {reason}")))?;
        let is = |expansion: &Expansion| expansion.uri == uri;
        if !request.follow {
            let key = ResourceKey { server: server.clone(), uri: uri.as_str().into() };
            let chosen = !view.bound && self.control.added.of(&server).iter().any(is);
            let followed = chosen || (self.sees(&view, &key)? && self.store.entry(&key)?.is_some());
            return Ok(ExpandResponse { server: server.to_string(), uri, followed });
        }
        owner_only(&view, "follow: only the daemon's owner can have more followed")?;
        if !self.is_wanted(&server, &uri) {
            return Err(ApiError::bad_request(format!("{uri} is left out by the config"))
                .hint(Some("see `include` and `exclude` of the server")));
        }
        let values = variables.iter().filter_map(value).cloned().collect();
        let expansion = Expansion {
            server: server.to_string(),
            uri_template: request.uri_template.clone(),
            uri: uri.clone(),
            values,
        };
        self.control.added.add(expansion).map_err(unkept)?;
        self.control.request_sync(std::slice::from_ref(&server), false);
        Ok(ExpandResponse { server: server.to_string(), uri, followed: true })
    }

    /// Follows an expansion no longer that was chosen at run time.
    ///
    /// # Errors
    /// It wasn't chosen, or the caller may not.
    pub fn unfollow(
        &self,
        caller: &Caller,
        query: &UnfollowQuery,
    ) -> Result<ExpandResponse, ApiError> {
        let view = self.view(caller, None)?;
        let server = self.server_named(&view, &query.server)?;
        owner_only(&view, "only the daemon's owner can have less followed")?;
        if !self.control.added.remove(&server, &query.uri).map_err(unkept)? {
            let message = format!("{} wasn't chosen to be followed", query.uri);
            return Err(ApiError::new(ErrorCode::NotFound, message)
                .hint(Some("GET /v1/templates shows what was, as `followed`")));
        }
        self.control.request_sync(std::slice::from_ref(&server), false);
        Ok(ExpandResponse { server: server.to_string(), uri: query.uri.clone(), followed: false })
    }

    /// The expansions of a template that were chosen at run time.
    pub(super) fn followed(&self, server: &ServerName, uri_template: &str) -> Vec<String> {
        let added = self.control.added.of(server).into_iter();
        added.filter(|e| e.uri_template == uri_template).map(|e| e.uri).collect()
    }

    /// A template that the view shows, with its variables.
    fn template(
        &self,
        view: &View,
        server: &str,
        uri_template: &str,
    ) -> Result<(ServerName, Vec<String>), ApiError> {
        let server = self.server_named(view, server)?;
        let found = self
            .templates_in(view)
            .into_iter()
            .any(|(name, row)| name == server && row.template.uri_template == uri_template);
        if !found {
            let message = format!("{server} has no template {uri_template}");
            return Err(ApiError::new(ErrorCode::NotFound, message)
                .hint(Some("GET /v1/templates lists them")));
        }
        let variables = template::variables(uri_template).map_err(|reason| {
            ApiError::bad_request(format!("{uri_template} is not one of RFC 6570: {reason}"))
        })?;
        Ok((server, variables))
    }

    /// Whether the config's patterns let a URI of a server in.
    fn is_wanted(&self, server: &ServerName, uri: &str) -> bool {
        let config = self.config.load();
        let Some(server) = config.servers.get(server) else { return true };
        let matches = |patterns: &[String]| {
            let globs = config::globs(patterns).ok().flatten();
            globs.map(|globs| globs.is_match(uri))
        };
        matches(&server.follow.include).unwrap_or(true)
            && !matches(&server.follow.exclude).unwrap_or(false)
    }
}

/// The variables of a template; none where it isn't one.
pub(super) fn variables(uri_template: &str) -> Vec<String> {
    template::variables(uri_template).unwrap_or_default()
}

pub(super) fn owner_only(view: &View, message: &str) -> Result<(), ApiError> {
    match view.bound {
        true => Err(ApiError::new(ErrorCode::Forbidden, message)),
        false => Ok(()),
    }
}

fn unkept(error: std::io::Error) -> ApiError {
    ApiError::internal(format!("the choice can't be kept: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::tests::{app, owner};

    fn request(server: &str, path: &str, follow: bool) -> ExpandRequest {
        let values = [("path".to_owned(), path.to_owned())];
        ExpandRequest {
            server: server.into(),
            uri_template: format!("{server}://{{+path}}"),
            values: values.into_iter().filter(|(_, value)| !value.is_empty()).collect(),
            follow,
        }
    }

    #[test]
    fn a_template_is_filled_in_and_followed() {
        let app = app();
        let filled = app.expand(&owner(), &request("wiki", "pages/a b", false)).unwrap();
        assert_eq!((&*filled.uri, filled.followed), ("wiki://pages/a%20b", false));
        assert!(app.expand(&owner(), &request("wiki", "pages/hr/pay", false)).unwrap().followed);
        app.expand(&owner(), &request("wiki", "pages/new", true)).unwrap();
        assert!(app.expand(&owner(), &request("wiki", "pages/new", false)).unwrap().followed);
        let templates = app.templates(&owner()).unwrap().templates;
        let wiki = templates.iter().find(|item| item.server == "wiki").unwrap();
        assert_eq!(
            (&wiki.variables[..], &wiki.followed[..]),
            (&["path".into()][..], &["wiki://pages/new".into()][..])
        );
        let query = UnfollowQuery { server: "wiki".into(), uri: "wiki://pages/new".into() };
        app.unfollow(&owner(), &query).unwrap();
        assert_eq!(app.unfollow(&owner(), &query).unwrap_err().detail.code, ErrorCode::NotFound);
    }

    #[tokio::test]
    async fn what_cannot_be_filled_in_is_told() {
        let app = app();
        let code = |request: &ExpandRequest| app.expand(&owner(), request).unwrap_err().detail;
        assert_eq!(code(&request("wiki", "", false)).message, "values: path has none");
        let mut other = request("wiki", "x", false);
        other.values.insert("y".into(), "z".into());
        assert_eq!(code(&other).message, "values: the template has no \"y\"");
        let unknown =
            ExpandRequest { uri_template: "wiki://{x}".into(), ..request("wiki", "x", false) };
        assert_eq!(code(&unknown).code, ErrorCode::NotFound);
        assert_eq!(code(&request("wikki", "x", false)).code, ErrorCode::UnknownServer);

        let bot = Caller::of_scope("bot", "test");
        let refused = app.expand(&bot, &request("wiki", "pages/x", true)).unwrap_err();
        assert_eq!(refused.detail.code, ErrorCode::Forbidden);
        let complete = CompleteRequest {
            server: "wiki".into(),
            uri_template: "wiki://{+path}".into(),
            variable: "path".into(),
            ..CompleteRequest::default()
        };
        let away = app.complete(&owner(), &complete).await.unwrap_err();
        assert_eq!(away.detail.code, ErrorCode::ServerAway);
        let wrong = CompleteRequest { variable: "x".into(), ..complete };
        assert_eq!(
            app.complete(&owner(), &wrong).await.unwrap_err().detail.code,
            ErrorCode::BadRequest
        );
    }
}
