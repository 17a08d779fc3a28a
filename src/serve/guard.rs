//! Who is let in, decided from a request's head, before its body is read.
//!
//! On the Unix socket the kernel has said who the peer is. On TCP the `Host` must be one of a list, so
//! that no page can reach the daemon under a name of its own (DNS rebinding), and a foreign `Origin` is
//! refused, with a valid token too. Without tokens it is as on the socket: the daemon's own user is let
//! in, and other users of the machine aren't.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, Method, header, request::Parts};

use super::App;
use super::api::ErrorCode;
use super::console;
use super::console::session::{self, SignedIn};
use super::error::ApiError;
use super::scope::{Caller, Scopes, unauthorized};
use super::tcp::Peer;
use crate::config::{Config, HttpConfig, SocketConfig};

/// How a request came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// The peer is one that the socket lets in.
    Socket,
    Tcp {
        /// Whether only this machine can connect.
        loopback: bool,
        /// The address listened on, which is a host that is allowed, where it is one.
        host: Option<String>,
    },
}

/// What answers without a token: it tells nothing.
const OPEN: &[&str] = &["/healthz"];
const LOOPBACK: &[&str] = &["localhost", "127.0.0.1", "[::1]"];
/// Longest name of a client that is kept.
const MAX_CLIENT_CHARS: usize = 100;

/// Puts the [`Caller`] into the request, or refuses it.
pub async fn guard(
    State((app, access)): State<(Arc<App>, Access)>,
    request: Request,
    next: Next,
) -> Response {
    let (mut head, body) = request.into_parts();
    let scopes = app.scopes();
    let by_cookie = signed_in(&app, &scopes, &access, &head);
    let admitted = admit(&scopes, &app.config.load(), &access, &head, by_cookie);
    match admitted {
        Ok(caller) => {
            head.extensions.insert(caller);
            next.run(Request::from_parts(head, body)).await
        }
        Err(error) => {
            if error.detail.code == ErrorCode::Unauthorized && is_page_view(&head) {
                let address = head.uri.path_and_query().map_or("/", |address| address.as_str());
                return console::to_sign_in(address);
            }
            let mut response = error.into_response();
            if response.status() == http::StatusCode::UNAUTHORIZED {
                let challenge = HeaderValue::from_static("Bearer realm=\"resdex\"");
                response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
            }
            response
        }
    }
}

/// Whether somebody looks for a page of the console's with a browser.
fn is_page_view(head: &Parts) -> bool {
    head.method == Method::GET
        && console::is_page(head.uri.path())
        && !head.headers.contains_key(header::AUTHORIZATION)
}

/// Who is signed in to the console. On the Unix socket the kernel knows better.
fn signed_in(app: &App, scopes: &Scopes, access: &Access, head: &Parts) -> Option<SignedIn> {
    if *access == Access::Socket {
        return None;
    }
    app.sessions.of(session::cookie(&head.headers)?, scopes, Instant::now())
}

/// # Errors
/// Why the request is refused.
fn admit(
    scopes: &Scopes,
    config: &Config,
    access: &Access,
    head: &Parts,
    by_cookie: Option<SignedIn>,
) -> Result<Caller, ApiError> {
    let named = host(head)?;
    if let Access::Tcp { host, .. } = access {
        check_host(&config.http, host.as_deref(), named.as_deref())?;
    }
    check_origin(&config.http, access, named.as_deref(), &head.headers)?;
    let client = client(&head.headers);
    let token = token(&head.headers)?;
    if matches!(access, Access::Tcp { .. }) {
        check_change(head, token.is_none() && by_cookie.is_some())?;
    }
    if let (None, Some(signed_in)) = (token, by_cookie) {
        return Ok(Caller { bound: signed_in.scope, client });
    }
    match (token, access) {
        (Some(token), _) => match scopes.of_token(token) {
            Some(scope) => Ok(Caller::of_scope(scope, client)),
            None => Err(unauthorized()),
        },
        (None, Access::Socket) => Ok(Caller::owner(client)),
        (None, Access::Tcp { .. })
            if OPEN.contains(&head.uri.path()) || console::is_open(head.uri.path()) =>
        {
            Ok(Caller::owner(client))
        }
        (None, Access::Tcp { loopback: true, .. }) if !scopes.have_tokens() => {
            check_user(&config.socket, head.extensions.get::<Arc<Peer>>().and_then(|p| p.uid()))?;
            Ok(Caller::owner(client))
        }
        (None, Access::Tcp { .. }) => {
            Err(ApiError::new(ErrorCode::Unauthorized, "a token is needed here")
                .hint(Some("send `Authorization: Bearer TOKEN`, with a scope's token")))
        }
    }
}

/// Whether this user may ask without a token, as on the Unix socket.
fn check_user(config: &SocketConfig, uid: Option<u32>) -> Result<(), ApiError> {
    let own = rustix::process::geteuid().as_raw();
    let who = match uid {
        Some(uid) if uid == own || uid == 0 || config.allow_uids.contains(&uid) => return Ok(()),
        Some(uid) => format!("the user {uid} isn't the daemon's"),
        None => "it can't be told which user connects".into(),
    };
    Err(ApiError::new(ErrorCode::Unauthorized, format!("a token is needed here: {who}")).hint(
        Some(
            "`resdex token new SCOPE` makes one; `socket.allow_uids` lets another user in without",
        ),
    ))
}

/// The host that is asked for, lower case, with its port.
fn host(head: &Parts) -> Result<Option<String>, ApiError> {
    let mut given: Vec<String> = vec![];
    for value in head.headers.get_all(header::HOST) {
        let value = value.to_str().map_err(|_| forbidden_host("one that isn't text"))?;
        given.push(value.to_ascii_lowercase());
    }
    if let Some(authority) = head.uri.authority() {
        given.push(authority.as_str().to_ascii_lowercase());
    }
    given.dedup();
    if given.len() > 1 {
        return Err(forbidden_host("more than one"));
    }
    Ok(given.pop())
}

fn forbidden_host(what: &str) -> ApiError {
    ApiError::new(ErrorCode::Forbidden, format!("the Host is not allowed: {what}"))
        .hint(Some("http.allowed_hosts lists the names under which the daemon may be asked"))
}

fn check_host(config: &HttpConfig, own: Option<&str>, named: Option<&str>) -> Result<(), ApiError> {
    let named = named.ok_or_else(|| forbidden_host("there is none"))?;
    let bare = without_port(named);
    let allowed = config.allowed_hosts.iter().any(|allowed| {
        allowed.eq_ignore_ascii_case(named)
            // Without a port, whatever port: names are what rebinding is about.
            || without_port(allowed) == allowed && allowed.eq_ignore_ascii_case(bare)
    });
    if allowed || LOOPBACK.contains(&bare) || own == Some(bare) {
        return Ok(());
    }
    Err(forbidden_host(&format!("{named:?}")))
}

/// A host without its port; an IPv6 address keeps its brackets.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((bare, port))
            if port.bytes().all(|b| b.is_ascii_digit())
                && (!bare.contains(':') || bare.ends_with(']')) =>
        {
            bare
        }
        _ => host,
    }
}

fn check_origin(
    config: &HttpConfig,
    access: &Access,
    host: Option<&str>,
    headers: &HeaderMap,
) -> Result<(), ApiError> {
    for origin in headers.get_all(header::ORIGIN) {
        let known = origin.to_str().is_ok_and(|origin| {
            let is = |other: &str| other.eq_ignore_ascii_case(origin);
            // A page that the daemon itself served, under a host that has been checked.
            let own = matches!(access, Access::Tcp { .. })
                && host.is_some_and(|host| is(&format!("http://{host}")));
            own || config.allowed_origins.iter().any(|allowed| is(allowed))
        });
        if !known {
            return Err(ApiError::new(
                ErrorCode::Forbidden,
                format!("the Origin is not allowed: {origin:?}"),
            )
            .hint(Some("http.allowed_origins lists the pages that may ask")));
        }
    }
    Ok(())
}

/// Browsers send a cookie along with whatever a page has them ask, and an Origin with every change.
/// So a change by cookie, and any by the console's forms, must say where it comes from; that it is
/// one that is allowed has been looked at.
fn check_change(head: &Parts, by_cookie: bool) -> Result<(), ApiError> {
    let changes = !matches!(head.method, Method::GET | Method::HEAD);
    if changes
        && (by_cookie || console::is_page(head.uri.path()))
        && !head.headers.contains_key(header::ORIGIN)
    {
        return Err(ApiError::new(ErrorCode::Forbidden, "a change without an Origin").hint(Some(
            "programs send a token instead of a cookie, to the routes of /openapi.json",
        )));
    }
    Ok(())
}

fn token(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let token = value.to_str().ok().and_then(|value| {
        let (scheme, token) = value.trim().split_once(' ')?;
        let token = token.trim();
        (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && !token.contains(' '))
            .then_some(token)
    });
    match token {
        Some(token) if values.next().is_none() => Ok(Some(token)),
        _ => Err(ApiError::new(
            ErrorCode::MalformedAuthorization,
            "the Authorization header can't be understood",
        )
        .hint(Some("it is `Authorization: Bearer TOKEN`"))),
    }
}

/// What a client calls itself, fit to be kept.
fn client(headers: &HeaderMap) -> String {
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    agent.unwrap_or("unknown").chars().take(MAX_CLIENT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ScopeConfig, sha256_hex};

    fn head(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn scopes(tokens: bool) -> Scopes {
        let mut config = Config::default();
        let token_sha256 = tokens.then(|| sha256_hex("s3cret"));
        config.scopes.insert("bot".into(), ScopeConfig { token_sha256, ..Default::default() });
        Scopes::new(Arc::new(config))
    }

    fn config() -> Config {
        let http = HttpConfig {
            listen: None,
            allowed_hosts: vec!["bots.example".into(), "exact.example:8080".into()],
            allowed_origins: vec!["https://console.example".into()],
        };
        Config { http, ..Config::default() }
    }

    #[test]
    fn without_a_token_only_the_daemons_user_is_let_in() {
        let own = rustix::process::geteuid().as_raw();
        let config = SocketConfig { allow_uids: vec![12_345], ..SocketConfig::default() };
        for (uid, allowed) in [
            (Some(own), true),
            (Some(0), true),
            (Some(12_345), true),
            (Some(12_346), false),
            (None, false),
        ] {
            let checked = check_user(&config, uid).map_err(|error| error.detail.code);
            assert_eq!(checked.is_ok(), allowed, "{uid:?}");
            assert!(allowed || checked == Err(ErrorCode::Unauthorized));
        }
    }

    #[test]
    fn hosts_and_origins_are_exact() {
        let access = Access::Tcp { loopback: true, host: Some("10.0.0.7".into()) };
        let admit = |uri: &str, headers: &[(&str, &str)]| {
            let headers = &[headers, &[("authorization", "Bearer s3cret")]].concat();
            let result = admit(&scopes(true), &config(), &access, &head(uri, headers), None);
            result.map_err(|error| error.detail.code)
        };
        for (host, allowed) in [
            ("localhost:7878", true),
            ("LOCALHOST", true),
            ("127.0.0.1:1", true),
            ("[::1]:7878", true),
            ("10.0.0.7:7878", true),
            ("bots.example:99", true),
            ("exact.example:8080", true),
            ("exact.example:8081", false),
            ("exact.example", false),
            ("evil.example", false),
            ("localhost.evil.example", false),
            ("evil.example:localhost", false),
            ("127.0.0.1.nip.io", false),
            ("10.0.0.8:7878", false),
            ("", false),
        ] {
            assert_eq!(admit("/v1/status", &[("host", host)]).is_ok(), allowed, "{host}");
        }
        assert_eq!(admit("/", &[]), Err(ErrorCode::Forbidden));
        let two = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(admit("/", &two), Err(ErrorCode::Forbidden));
        assert!(admit("http://evil.example/v1/status", &[("host", "localhost")]).is_err());
        for (origin, allowed) in [
            ("http://localhost:7878", true),
            ("https://console.example", true),
            ("https://console.example.evil.example", false),
            ("http://evil.example", false),
            ("http://localhost:7879", false),
            ("null", false),
            ("", false),
        ] {
            let headers = [("host", "localhost:7878"), ("origin", origin)];
            assert_eq!(admit("/mcp", &headers).is_ok(), allowed, "{origin}");
        }
    }

    #[test]
    fn a_foreign_origin_is_refused_with_a_valid_token_too() {
        let token = ("authorization", "Bearer s3cret");
        let access = Access::Tcp { loopback: true, host: None };
        for headers in [
            &[("host", "evil.example"), token][..],
            &[("host", "localhost"), ("origin", "http://evil.example"), token],
        ] {
            let refused = admit(&scopes(true), &config(), &access, &head("/mcp", headers), None);
            assert_eq!(refused.unwrap_err().detail.code, ErrorCode::Forbidden);
        }
        let headers = [("host", "x"), ("origin", "http://evil.example")];
        assert!(
            admit(&scopes(true), &config(), &Access::Socket, &head("/", &headers), None).is_err()
        );
    }

    #[test]
    fn a_token_is_asked_for_where_the_kernel_does_not_say_who_it_is() {
        let loopback = Access::Tcp { loopback: true, host: None };
        let open = Access::Tcp { loopback: false, host: None };
        let bound = |result: Result<Caller, ApiError>| {
            result.map(|caller| caller.bound).map_err(|error| error.detail.code)
        };
        let bot = Ok(Some("bot".to_owned()));
        for (access, tokens, path, authorization, expected) in [
            (&Access::Socket, true, "/v1/status", None, Ok(None)),
            (&Access::Socket, true, "/v1/status", Some("Bearer s3cret"), bot.clone()),
            (&Access::Socket, true, "/v1/status", Some("Bearer x"), Err(ErrorCode::Unauthorized)),
            // Who connects isn't known here.
            (&loopback, false, "/v1/status", None, Err(ErrorCode::Unauthorized)),
            (&loopback, false, "/healthz", None, Ok(None)),
            (&loopback, true, "/v1/status", None, Err(ErrorCode::Unauthorized)),
            (&loopback, true, "/v1/status", Some("bearer  s3cret"), bot.clone()),
            (&open, true, "/v1/status", Some("Bearer s3cret"), bot),
            (&open, false, "/v1/status", None, Err(ErrorCode::Unauthorized)),
            (&open, true, "/healthz", None, Ok(None)),
            (&open, true, "/v1/status?token=s3cret", None, Err(ErrorCode::Unauthorized)),
            (&open, true, "/", Some("Basic s3cret"), Err(ErrorCode::MalformedAuthorization)),
            (&open, true, "/", Some("Bearer "), Err(ErrorCode::MalformedAuthorization)),
            (&open, true, "/", Some("s3cret"), Err(ErrorCode::MalformedAuthorization)),
        ] {
            let mut headers = vec![("host", "localhost"), ("user-agent", "bot/1")];
            headers.extend(authorization.map(|value| ("authorization", value)));
            let admitted = admit(&scopes(tokens), &config(), access, &head(path, &headers), None);
            assert_eq!(bound(admitted), expected, "{access:?} {path} {authorization:?}");
        }
    }
}
