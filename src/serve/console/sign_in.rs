//! Signing in and out, and the language.

use std::net::IpAddr;
use std::time::Instant;

use axum::extract::Path;
use axum::response::{IntoResponse, Redirect, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use maud::{Markup, html};

use super::fields::Fields;
use super::{SIGN_IN, Visit, back_to, layout, session, words};
use crate::serve::App;
use crate::serve::api::{ConsoleResponse, ErrorCode};
use crate::serve::error::ApiError;
use crate::serve::fill::owner_only;
use crate::serve::scope::Caller;

pub async fn page(visit: Visit) -> Response {
    layout::page(&visit, visit.words.sign_in, form(&visit, visit.query.text("to"), None))
}

fn form(visit: &Visit, to: &str, wrong: Option<&str>) -> Markup {
    let words = visit.words;
    html! {
        div.narrow {
            @if let Some(wrong) = wrong { p.problem role="alert" { (wrong) } }
            p { (words.sign_in_help) }
            form.stacked method="post" action=(SIGN_IN) {
                input type="hidden" name="to" value=(to);
                label.field for="token" {
                    span { (words.token) }
                    input #token type="password" name="token" autocomplete="off" required autofocus;
                }
                button { (words.sign_in) }
            }
        }
    }
}

/// Signs in to a scope by its token.
pub async fn by_token(visit: Visit, headers: HeaderMap, fields: Fields) -> Response {
    let token = fields.text("token").trim();
    match visit.app.sessions.by_token(token, &visit.app.scopes(), Instant::now()) {
        Ok(Some(session)) => with_cookie(
            back_to(fields.get("to"), "/"),
            &session::set_cookie(&headers, Some(&session)),
        ),
        Ok(None) => {
            let body = form(&visit, fields.text("to"), Some(visit.words.wrong_token));
            let page = layout::page(&visit, visit.words.sign_in, body);
            (StatusCode::UNAUTHORIZED, page).into_response()
        }
        Err(reason) => layout::failed(&visit, &ApiError::internal(reason)),
    }
}

/// Signs the owner in by a one-time link.
pub async fn by_link(visit: Visit, headers: HeaderMap, Path(link): Path<String>) -> Response {
    let words = visit.words;
    match visit.app.sessions.by_link(&link, Instant::now()) {
        Ok(Some(session)) => {
            // A page of ours that leads on, and no redirect: after one, a browser that came from
            // elsewhere would leave a strict cookie out.
            let body = html! {
                meta http-equiv="refresh" content="0; url=/";
                p { (words.welcome) " " a href="/" { (words.go_on) } }
            };
            let page = layout::page(&visit, words.sign_in, body);
            with_cookie(page, &session::set_cookie(&headers, Some(&session)))
        }
        Ok(None) => {
            let page =
                layout::page(&visit, words.sign_in, form(&visit, "/", Some(words.link_used)));
            (StatusCode::UNAUTHORIZED, page).into_response()
        }
        Err(reason) => layout::failed(&visit, &ApiError::internal(reason)),
    }
}

pub async fn out(visit: Visit, headers: HeaderMap) -> Response {
    if let Some(secret) = session::cookie(&headers) {
        visit.app.sessions.end(secret);
    }
    with_cookie(Redirect::to("/").into_response(), &session::set_cookie(&headers, None))
}

/// Keeps the language that was chosen.
pub async fn language(visit: Visit) -> Response {
    let language = if visit.query.text("lang") == "zh" { "zh" } else { "en" };
    let cookie = format!(
        "{}={language}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000",
        words::COOKIE
    );
    with_cookie(back_to(visit.query.get("to"), "/"), &cookie)
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
    response
}

impl App {
    /// A link that signs the owner in, once.
    ///
    /// # Errors
    /// Nothing answers on TCP, or the caller isn't the owner.
    pub fn console_link(&self, caller: &Caller) -> Result<ConsoleResponse, ApiError> {
        owner_only(&self.view(caller, None)?, "only the daemon's owner gets a link")?;
        let address = self.http.load_full().ok_or_else(|| {
            ApiError::new(ErrorCode::NotFound, "the console has no address: nothing answers on TCP")
                .hint(Some("start the daemon with --http 127.0.0.1:7878, or set [http] listen"))
        })?;
        let port = address.port();
        let host = match address.ip() {
            ip if ip.is_unspecified() => "127.0.0.1".to_owned(),
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let link = self.sessions.link(Instant::now()).map_err(ApiError::internal)?;
        Ok(ConsoleResponse {
            url: format!("http://{host}:{port}{SIGN_IN}/{link}"),
            expires_in_s: session::LINK_LASTS.as_secs(),
        })
    }
}
