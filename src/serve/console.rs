//! The console: pages for people, over the same functions as the API, so that nothing is possible
//! only here.
//!
//! Every view is a page of its own with an address, made here whole; scripts only spare reloading. What
//! servers sent is escaped, or sanitised and shown in a sandbox. A session's cookie says who asks; `guard`
//! takes it for a token's equal, on the API's routes too, which is how the scripts ask.

mod assets;
mod chart;
mod document;
mod fields;
mod layout;
mod overview;
mod preview;
mod resources;
mod scopes;
mod search;
mod servers;
pub mod session;
mod show;
mod sign_in;
mod templates;
mod trace;
mod words;

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::{FromRequestParts, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use sha2::{Digest, Sha256};

use super::App;
use super::error::ApiError;
use super::http::{Faces, RequestId};
use super::scope::Caller;
use fields::Fields;
use words::Words;

/// Nothing from elsewhere is loaded, nothing inline runs, and no other page may hold one of these. The
/// frames of previews keep it; having no origin they load nothing at all, so their style is let in by
/// its hash.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'sha256-{}'; img-src 'self' data:; \
         connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        BASE64_STANDARD.encode(Sha256::digest(assets::PREVIEW_STYLE))
    )
});

/// What the console shows without anybody being signed in: how to sign in, and its looks.
pub fn is_open(path: &str) -> bool {
    path == SIGN_IN
        || path.starts_with("/sign-in/")
        || path.starts_with(assets::FOLDER)
        || path == "/language"
}

/// Where to sign in.
pub const SIGN_IN: &str = "/sign-in";

/// The pages, each with its address.
pub(super) fn routes() -> Router<Faces> {
    Router::new()
        .route("/", get(search::page))
        .route("/context", get(search::context))
        .route("/servers", get(servers::page))
        .route("/servers/sync", post(servers::sync))
        .route("/servers/withheld", get(servers::withheld))
        .route("/resources", get(resources::page))
        .route("/resources/branch", get(resources::branch))
        .route("/resource", get(document::page))
        .route("/pins", post(scopes::pin))
        .route("/pins/remove", post(scopes::unpin))
        .route("/templates", get(templates::page).post(templates::index))
        .route("/templates/forget", post(templates::forget))
        .route("/scopes", get(scopes::page))
        .route("/scopes/token", post(scopes::token))
        .route("/trace", get(trace::page))
        .route("/overview", get(overview::page))
        .route(SIGN_IN, get(sign_in::page).post(sign_in::by_token))
        .route("/sign-in/{link}", get(sign_in::by_link))
        .route("/sign-out", post(sign_in::out))
        .route("/language", get(sign_in::language))
        .route("/assets/{version}/{name}", get(assets::asset))
        .layer(middleware::from_fn(protect))
}

/// Whether this is an address of the console's.
pub fn is_page(path: &str) -> bool {
    const PAGES: &[&str] = &[
        "/",
        "/context",
        "/servers",
        "/resources",
        "/resource",
        "/pins",
        "/templates",
        "/scopes",
        "/trace",
        "/overview",
        "/sign-in",
        "/sign-out",
        "/language",
        "/assets",
    ];
    let first = path.get(1..).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    PAGES.iter().any(|page| page[1..] == *first)
}

/// Sends who isn't signed in to where that can be done.
pub fn to_sign_in(path: &str) -> Response {
    Redirect::to(&show::href(SIGN_IN, &[("to", path)])).into_response()
}

/// Puts on each answer what keeps browsers from doing more with it than it is meant for.
async fn protect(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let mut put = |name: HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    put(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    put(header::X_FRAME_OPTIONS, "DENY");
    // With none at all, browsers would send no Origin with a form either.
    put(header::REFERRER_POLICY, "same-origin");
    put(header::CACHE_CONTROL, "no-store");
    put(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    protected(response)
}

/// One request for a page: who asks, in which language, and for what.
pub(super) struct Visit {
    app: Arc<App>,
    caller: Caller,
    words: &'static Words,
    /// Path and query.
    address: String,
    path: String,
    query: Fields,
    request_id: String,
    /// Whether there is a session that can be ended.
    signed_in: bool,
}

impl FromRequestParts<Faces> for Visit {
    type Rejection = ApiError;

    async fn from_request_parts(head: &mut Parts, faces: &Faces) -> Result<Self, ApiError> {
        let mut caller = head.extensions.get::<Caller>().cloned().unwrap_or_default();
        caller.client = "console".into();
        let id = head.extensions.get::<RequestId>().map(|id| id.0.clone()).unwrap_or_default();
        let address = head.uri.path_and_query().map_or("/", |address| address.as_str());
        Ok(Self {
            app: faces.app.clone(),
            caller,
            words: Words::of(&head.headers),
            // What a form was posted to can't be gone back to.
            address: if head.method == Method::GET { address } else { "/" }.to_owned(),
            path: head.uri.path().to_owned(),
            query: Fields::parse(head.uri.query().unwrap_or_default().as_bytes()),
            request_id: id,
            signed_in: session::cookie(&head.headers).is_some(),
        })
    }
}

impl Visit {
    /// Runs a verb that blocks on the index.
    async fn ask<T: Send + 'static>(
        &self,
        verb: impl FnOnce(&App, &Caller) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let caller = self.caller.clone();
        self.app.blocking(move |app| verb(app, &caller)).await
    }

    /// The scopes that can be chosen here; a scope's own visitor has no choice.
    fn scopes(&self) -> Vec<String> {
        match self.caller.bound {
            Some(_) => vec![],
            None => self.app.config.load().scopes.keys().cloned().collect(),
        }
    }

    /// The servers that can be seen here.
    fn servers(&self) -> Result<Vec<String>, ApiError> {
        let view = self.app.view(&self.caller, None)?;
        Ok(self.app.servers_shown(&view)?.iter().map(ToString::to_string).collect())
    }
}

/// Back to a page of ours after something was done.
fn back_to(to: Option<&str>, otherwise: &str) -> Response {
    Redirect::to(to.filter(|to| is_local(to)).unwrap_or(otherwise)).into_response()
}

/// Whether an address stays here: `//host` and `/\host` would not.
fn is_local(to: &str) -> bool {
    let mut chars = to.chars();
    chars.next() == Some('/')
        && !matches!(chars.next(), Some('/' | '\\'))
        && to.chars().all(|c| c.is_ascii_graphic())
}

/// An address that leads nowhere, for who looks with a browser.
pub(super) async fn nothing_here(State(faces): State<Faces>, request: Request) -> Response {
    let (mut head, _) = request.into_parts();
    let visit = match Visit::from_request_parts(&mut head, &faces).await {
        Ok(visit) => visit,
        Err(error) => return error.into_response(),
    };
    let body =
        maud::html! { p { (visit.words.nothing_here) } p { a href="/" { (visit.words.search) } } };
    let page = layout::page(&visit, visit.words.error, body);
    protected((StatusCode::NOT_FOUND, page).into_response())
}

fn protected(mut response: Response) -> Response {
    if let Ok(policy) = HeaderValue::from_str(&POLICY) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

#[cfg(test)]
mod tests;
