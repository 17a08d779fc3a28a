//! An answer that isn't a success: what, where, and what to do.

use http::StatusCode;

use super::api::{ErrorCode, ErrorDetail};
use super::nearest;
use crate::index::IndexError;

/// Becomes an [`api::ErrorResponse`](super::api::ErrorResponse) once the request's id is known.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", detail.message)]
pub struct ApiError {
    pub detail: ErrorDetail,
}

impl ApiError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { detail: ErrorDetail { code, message: message.into(), hint: None } }
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadRequest, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, message)
    }

    /// What lies outside the caller's scope is unknown to it as well.
    pub fn unknown_server<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        Self::new(ErrorCode::UnknownServer, format!("no server is called {name:?}"))
            .hint(nearest::hint("servers", name, known))
    }

    pub fn unknown_scope<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let hint = nearest::hint("scopes", name, known);
        Self::new(ErrorCode::UnknownScope, format!("no scope is called {name:?}")).hint(Some(
            hint.unwrap_or_else(|| format!("the config has no scopes; add [scopes.{name:?}]")),
        ))
    }

    /// A resource that was there a moment ago.
    pub fn not_indexed(uri: &str) -> Self {
        Self::new(ErrorCode::NotFound, format!("the index doesn't hold {uri}"))
    }

    pub fn hint(mut self, hint: Option<impl Into<String>>) -> Self {
        self.detail.hint = hint.map(Into::into);
        self
    }

    /// The code as programs read it.
    pub fn code(&self) -> String {
        let code = serde_json::to_value(self.detail.code).unwrap_or_default();
        code.as_str().unwrap_or("internal").to_owned()
    }

    pub fn status(&self) -> StatusCode {
        match self.detail.code {
            ErrorCode::BadRequest | ErrorCode::UnknownServer | ErrorCode::UnknownScope => {
                StatusCode::BAD_REQUEST
            }
            ErrorCode::MalformedAuthorization | ErrorCode::Unauthorized => StatusCode::UNAUTHORIZED,
            ErrorCode::Forbidden => StatusCode::FORBIDDEN,
            ErrorCode::NotFound => StatusCode::NOT_FOUND,
            ErrorCode::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            ErrorCode::Ambiguous => StatusCode::CONFLICT,
            ErrorCode::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            ErrorCode::ServerAway => StatusCode::SERVICE_UNAVAILABLE,
            ErrorCode::ServerError => StatusCode::BAD_GATEWAY,
            ErrorCode::TimedOut => StatusCode::GATEWAY_TIMEOUT,
            ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl From<IndexError> for ApiError {
    fn from(error: IndexError) -> Self {
        Self::internal(error.to_string())
    }
}
