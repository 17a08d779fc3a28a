//! Who has signed in: by a one-time link, as the owner, or by a scope's token. In memory only, so that
//! a restart signs everybody out.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::{HeaderMap, header};

use crate::serve::scope::Scopes;

/// How long a one-time link can be opened.
pub const LINK_LASTS: Duration = Duration::from_secs(120);
/// A session ends when it wasn't used for so long.
const SESSION_LASTS: Duration = Duration::from_secs(12 * 60 * 60);
/// Sessions and links that are kept; the oldest go first.
const MAX_KEPT: usize = 1_000;

/// Only hashes of secrets are kept, and looked up, so that neither memory nor time tells one.
type Hash = [u8; 32];

#[derive(Debug, Default)]
pub struct Sessions {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    links: HashMap<Hash, Instant>,
    sessions: HashMap<Hash, Session>,
}

#[derive(Clone, Debug)]
struct Session {
    /// The scope that it can't leave, with the hash of the token that it came by: another token in
    /// the config ends it. The owner has none.
    scope: Option<(String, String)>,
    until: Instant,
}

/// Whose session it is: the scope that it can't leave, or the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    pub scope: Option<String>,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The secret of a link that signs the owner in, once.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn link(&self, now: Instant) -> Result<String, String> {
        let secret = secret()?;
        let links = &mut self.lock().links;
        links.retain(|_, until| *until > now);
        make_room(links, |until| *until);
        links.insert(hash(&secret), now + LINK_LASTS);
        Ok(secret)
    }

    /// Signs the owner in by the secret of a link; nothing when it was used or is too old.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn by_link(&self, link: &str, now: Instant) -> Result<Option<String>, String> {
        let found = self.lock().links.remove(&hash(link));
        match found.filter(|until| *until > now) {
            Some(_) => self.begin(None, now).map(Some),
            None => Ok(None),
        }
    }

    /// Signs in to a scope by its token; nothing when no scope has it.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn by_token(
        &self,
        token: &str,
        scopes: &Scopes,
        now: Instant,
    ) -> Result<Option<String>, String> {
        let Some(scope) = scopes.of_token(token) else { return Ok(None) };
        let Some(token_sha256) = scopes.token_sha256(scope) else { return Ok(None) };
        self.begin(Some((scope.to_owned(), token_sha256.to_owned())), now).map(Some)
    }

    fn begin(&self, scope: Option<(String, String)>, now: Instant) -> Result<String, String> {
        let secret = secret()?;
        let sessions = &mut self.lock().sessions;
        sessions.retain(|_, session| session.until > now);
        make_room(sessions, |session| session.until);
        sessions.insert(hash(&secret), Session { scope, until: now + SESSION_LASTS });
        Ok(secret)
    }

    /// Whose session a secret is, and uses it.
    pub fn of(&self, secret: &str, scopes: &Scopes, now: Instant) -> Option<SignedIn> {
        let mut kept = self.lock();
        let session = kept.sessions.get_mut(&hash(secret))?;
        let same = session.scope.as_ref().is_none_or(|(scope, token_sha256)| {
            scopes.token_sha256(scope) == Some(token_sha256.as_str())
        });
        if session.until <= now || !same {
            kept.sessions.remove(&hash(secret));
            return None;
        }
        session.until = now + SESSION_LASTS;
        Some(SignedIn { scope: session.scope.as_ref().map(|(scope, _)| scope.clone()) })
    }

    pub fn end(&self, secret: &str) {
        self.lock().sessions.remove(&hash(secret));
    }
}

fn make_room<T>(kept: &mut HashMap<Hash, T>, until: impl Fn(&T) -> Instant) {
    if kept.len() >= MAX_KEPT {
        let oldest = kept.iter().min_by_key(|(_, value)| until(value)).map(|(hash, _)| *hash);
        oldest.map(|hash| kept.remove(&hash));
    }
}

/// 256 random bits.
fn secret() -> Result<String, String> {
    let mut random = [0; 32];
    rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty())
        .map_err(|error| format!("no random bytes can be had: {error}"))?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(random))
}

fn hash(secret: &str) -> Hash {
    *blake3::hash(secret.as_bytes()).as_bytes()
}

/// The cookie's name. Cookies don't know ports, so two daemons of one host would share one.
fn name(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').map_or("", |(_, port)| port);
    match port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty() {
        true => format!("resdex_{port}"),
        false => "resdex".into(),
    }
}

/// The secret of the session that a request comes with.
pub fn cookie(headers: &HeaderMap) -> Option<&str> {
    value(headers, &name(headers))
}

/// A cookie by its name.
pub fn value<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(';')).find_map(|pair| {
        let (key, value) = pair.trim().split_once('=')?;
        (key == name).then_some(value)
    })
}

/// `Set-Cookie` for a session, or to take it away.
pub fn set_cookie(headers: &HeaderMap, secret: Option<&str>) -> String {
    // It ends with the browser; how long it lasts is the session's matter.
    let age = if secret.is_some() { "" } else { "; Max-Age=0" };
    let (name, secret) = (name(headers), secret.unwrap_or_default());
    format!("{name}={secret}; Path=/; HttpOnly; SameSite=Strict{age}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::{Config, ScopeConfig, sha256_hex};

    fn scopes(token: &str) -> Scopes {
        let mut config = Config::default();
        let token_sha256 = Some(sha256_hex(token));
        config.scopes.insert("bot".into(), ScopeConfig { token_sha256, ..Default::default() });
        Scopes::new(Arc::new(config))
    }

    #[test]
    fn a_link_signs_in_once_and_not_for_long() {
        let (sessions, scopes, now) = (Sessions::default(), scopes("s3cret"), Instant::now());
        let link = sessions.link(now).unwrap();
        assert_eq!(sessions.by_link("another", now), Ok(None));
        let session = sessions.by_link(&link, now).unwrap().unwrap();
        assert_eq!(sessions.of(&session, &scopes, now), Some(SignedIn { scope: None }));
        assert_eq!(sessions.by_link(&link, now), Ok(None), "once");
        assert_ne!(session, link);
        let late = sessions.link(now).unwrap();
        assert_eq!(sessions.by_link(&late, now + LINK_LASTS), Ok(None));
        sessions.end(&session);
        assert_eq!(sessions.of(&session, &scopes, now), None);
    }

    #[test]
    fn a_token_signs_in_to_its_scope_until_it_is_another_one() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        assert_eq!(sessions.by_token("wrong", &scopes("s3cret"), now), Ok(None));
        let session = sessions.by_token("s3cret", &scopes("s3cret"), now).unwrap().unwrap();
        let bot = Some(SignedIn { scope: Some("bot".into()) });
        let later = now + SESSION_LASTS / 2;
        assert_eq!(sessions.of(&session, &scopes("s3cret"), later), bot);
        let used = later + SESSION_LASTS / 2;
        assert_eq!(sessions.of(&session, &scopes("s3cret"), used), bot, "lasts while it is used");
        assert_eq!(sessions.of(&session, &scopes("another"), used), None);
        assert_eq!(sessions.of(&session, &scopes("s3cret"), used), None, "gone for good");
        let session = sessions.by_token("s3cret", &scopes("s3cret"), now).unwrap().unwrap();
        assert_eq!(sessions.of(&session, &scopes("s3cret"), now + SESSION_LASTS), None);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let first = sessions.link(now).unwrap();
        for _ in 0..MAX_KEPT {
            sessions.link(now + Duration::from_secs(1)).unwrap();
        }
        assert_eq!(sessions.lock().links.len(), MAX_KEPT);
        assert_eq!(sessions.by_link(&first, now), Ok(None));
    }

    #[test]
    fn cookies_are_told_apart_by_port() {
        let mut headers = HeaderMap::new();
        headers.insert("host", "localhost:7878".parse().unwrap());
        headers.insert("cookie", "a=b; resdex_7879=x; resdex_7878=y".parse().unwrap());
        assert_eq!(cookie(&headers), Some("y"));
        let set = set_cookie(&headers, Some("z"));
        assert!(set.starts_with("resdex_7878=z; ") && set.contains("HttpOnly; SameSite=Strict"));
        assert!(set_cookie(&headers, None).contains("Max-Age=0"));
        headers.insert("host", "[::1]".parse().unwrap());
        assert_eq!(cookie(&headers), None);
    }
}
