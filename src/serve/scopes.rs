//! What the scopes are, tokens for them, and removals that wait for a word.

use super::App;
use super::api::{
    ScopeItem, ScopesResponse, TokenRequest, TokenResponse, WithheldQuery, WithheldResponse,
};
use super::error::ApiError;
use super::fill::owner_only;
use super::scope::Caller;
use crate::config::token;

/// URIs that are shown for a look.
const MOST_SHOWN: usize = 1_000;

impl App {
    /// The scopes of the config; a scope's caller gets its own.
    ///
    /// # Errors
    /// The caller's scope is gone.
    pub fn scope_items(&self, caller: &Caller) -> Result<ScopesResponse, ApiError> {
        let view = self.view(caller, None)?;
        let config = self.config.load();
        let scopes = config
            .scopes
            .iter()
            .filter(|(name, _)| !view.bound || view.scope.as_deref() == Some(name.as_str()));
        let scopes = scopes.map(|(name, scope)| ScopeItem {
            name: name.clone(),
            servers: scope.servers.iter().map(ToString::to_string).collect(),
            include: scope.include.clone(),
            // What is left out isn't there for who can't see it.
            exclude: if view.bound { vec![] } else { scope.exclude.clone() },
            mime_types: scope.mime_types.clone(),
            max_tokens: scope.max_tokens,
            has_token: scope.token_sha256.is_some(),
        });
        Ok(ScopesResponse { scopes: scopes.collect() })
    }

    /// A new token for a scope. Nothing is kept of it: the config is its owner's to change.
    ///
    /// # Errors
    /// An unknown scope, or a caller that isn't the owner.
    pub fn new_token(
        &self,
        caller: &Caller,
        request: &TokenRequest,
    ) -> Result<TokenResponse, ApiError> {
        let view = self.view(caller, Some(&request.scope))?;
        owner_only(&view, "only the daemon's owner can make tokens")?;
        let token = token::new().map_err(ApiError::internal)?;
        Ok(TokenResponse {
            scope: request.scope.clone(),
            config: token.config(&request.scope),
            token_sha256: token.sha256,
            token: token.secret,
        })
    }

    /// The removals of a server that wait for a second listing or for a word.
    ///
    /// # Errors
    /// An unknown server, or a caller that isn't the owner.
    pub fn withheld(
        &self,
        caller: &Caller,
        query: &WithheldQuery,
    ) -> Result<WithheldResponse, ApiError> {
        let view = self.view(caller, None)?;
        let server = self.server_named(&view, &query.server)?;
        owner_only(&view, "only the daemon's owner can look at withheld removals")?;
        let uris = self.control.withheld(&server);
        Ok(WithheldResponse {
            total: uris.len() as u64,
            uris: uris.iter().take(MOST_SHOWN).map(ToString::to_string).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::sha256_hex;
    use crate::serve::api::ErrorCode;
    use crate::serve::tests::{app, owner};

    #[test]
    fn a_token_is_made_for_the_owner_only() {
        let app = app();
        let request = TokenRequest { scope: "bot".into() };
        let made = app.new_token(&owner(), &request).unwrap();
        assert_eq!(made.token_sha256, sha256_hex(&made.token));
        assert!(made.config.contains("[scopes.bot]") && made.config.contains(&made.token_sha256));
        assert_ne!(made.token, app.new_token(&owner(), &request).unwrap().token);
        let bot = Caller::of_scope("bot", "test");
        let code = |result: Result<TokenResponse, ApiError>| result.unwrap_err().detail.code;
        assert_eq!(code(app.new_token(&bot, &request)), ErrorCode::Forbidden);
        let unknown = TokenRequest { scope: "bt".into() };
        assert_eq!(code(app.new_token(&owner(), &unknown)), ErrorCode::UnknownScope);
        assert_eq!(app.scope_items(&bot).unwrap().scopes.len(), 1);
    }

    #[test]
    fn withheld_removals_are_the_owners_to_look_at() {
        let app = app();
        let query = WithheldQuery { server: "wiki".into() };
        assert_eq!(app.withheld(&owner(), &query).unwrap().total, 0);
        let refused = app.withheld(&Caller::of_scope("bot", "test"), &query).unwrap_err();
        assert_eq!(refused.detail.code, ErrorCode::Forbidden);
    }
}
