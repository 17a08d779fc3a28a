//! What every answer comes in: a request's id, its time, and the body of an error.

use std::hash::BuildHasher;
use std::panic::AssertUnwindSafe;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::Faces;
use crate::serve::api::{ErrorCode, ErrorResponse};
use crate::serve::dify;
use crate::serve::error::ApiError;

/// The header in which a request's id comes back, and in which a caller may give its own.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What a request may take beyond the live read in it.
const HANDLING: Duration = Duration::from_secs(15);

/// A request's id: the caller's own where it gave one that is fit to be logged, else one of ours.
#[derive(Clone)]
pub struct RequestId(pub String);

impl RequestId {
    fn of(headers: &HeaderMap) -> Self {
        static RANDOM: LazyLock<std::hash::RandomState> = LazyLock::new(Default::default);
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
        let fit = given.filter(|id| {
            (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
        });
        Self(fit.map_or_else(
            || format!("{:016x}", RANDOM.hash_one(COUNT.fetch_add(1, Ordering::Relaxed))),
            str::to_owned,
        ))
    }
}

/// Gives a request its id and its time, and an error its body.
pub async fn envelope(State(faces): State<Faces>, mut request: Request, next: Next) -> Response {
    let id = RequestId::of(request.headers());
    request.extensions_mut().insert(id.clone());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let started = Instant::now();
    let limit = faces.app.config.load().limits.read_timeout + HANDLING;
    let handled = AssertUnwindSafe(next.run(request)).catch_unwind();
    let mut response = match tokio::time::timeout(limit, handled).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => ApiError::internal("the request's handler panicked").into_response(),
        Err(_) => {
            let seconds = limit.as_secs();
            ApiError::new(ErrorCode::TimedOut, format!("no answer within {seconds} s"))
                .into_response()
        }
    };
    let status = response.status().as_u16();
    if let Some(ApiError { detail }) = response.extensions_mut().remove() {
        if detail.code == ErrorCode::Internal {
            tracing::error!(request_id = id.0, %method, ?path, message = ?detail.message, "failed");
        }
        let challenge = response.headers_mut().remove(header::WWW_AUTHENTICATE);
        let made = if dify::is_route(&path) {
            Json(dify::error_body(&detail, status)).into_response()
        } else {
            Json(ErrorResponse { error: detail, request_id: id.0.clone() }).into_response()
        };
        response = (response.status(), made).into_response();
        if let Some(challenge) = challenge {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
    }
    let took_ms = started.elapsed().as_secs_f64() * 1_000.0;
    tracing::debug!(request_id = id.0, %method, ?path, status, took_ms, "answered");
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

impl IntoResponse for ApiError {
    /// Without a body yet: [`envelope`] knows the request's id that belongs in it.
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}
