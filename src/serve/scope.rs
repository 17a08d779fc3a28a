//! Who asks, and what it may see: the scope of its token or the one it names, narrowed by what it
//! asks for. What lies outside looks as if it weren't there.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::App;
use super::api::ErrorCode;
use super::error::ApiError;
use crate::config::{Config, ScopeConfig, globs, sha256_hex};
use crate::index::{IndexError, ResourcesRequest};
use crate::model::{ResourceKey, ServerName};
use crate::search::filter::{Clause, Filter};
use crate::sync::control::Event;

/// Who asks, as its face found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The scope that it can't leave: its token's. The owner has none.
    pub bound: Option<String>,
    /// What it calls itself, for the trace.
    pub client: String,
}

impl Caller {
    /// Who sees everything.
    pub fn owner(client: impl Into<String>) -> Self {
        Self { bound: None, client: client.into() }
    }

    /// Who sees one scope and nothing else.
    pub fn of_scope(scope: impl Into<String>, client: impl Into<String>) -> Self {
        Self { bound: Some(scope.into()), client: client.into() }
    }
}

/// What one request may see.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub scope: Option<String>,
    /// Whether the caller can't leave the scope.
    pub bound: bool,
    pub filter: Filter,
    /// The scope's, as the config has them.
    pub pins: Vec<String>,
    /// Most tokens that the scope's answers may have.
    pub max_tokens: Option<usize>,
}

impl View {
    pub fn sees_server(&self, server: &ServerName) -> bool {
        self.filter.allows_server(server.as_str())
    }

    /// Whether it leaves nothing out.
    pub fn is_whole(&self) -> bool {
        self.filter.clauses().iter().all(|clause| {
            let Clause { servers, include, exclude, mime_types, uri_prefix } = clause.as_ref();
            servers.is_none()
                && include.is_none()
                && exclude.is_none()
                && mime_types.is_none()
                && uri_prefix.is_none()
        })
    }

    /// The smaller of what is asked for and what the scope allows.
    pub fn budget(&self, asked: Option<usize>) -> Option<usize> {
        match (asked, self.max_tokens) {
            (Some(asked), Some(most)) => Some(asked.min(most)),
            (asked, most) => asked.or(most),
        }
    }

    /// As this, only of one server.
    pub fn of_server(&self, server: ServerName) -> Filter {
        let clause = Clause { servers: Some(vec![server]), ..Clause::default() };
        self.filter.clone().and(clause)
    }
}

/// The scopes of one config, made ready once.
#[derive(Debug)]
pub struct Scopes {
    config: Arc<Config>,
    views: BTreeMap<String, Result<View, String>>,
}

impl Scopes {
    pub fn new(config: Arc<Config>) -> Self {
        let views = config.scopes.iter().map(|(name, scope)| {
            let view = clause(scope).map(|clause| View {
                scope: Some(name.clone()),
                bound: false,
                filter: Filter::default().and(clause),
                pins: scope.pins.clone(),
                max_tokens: scope.max_tokens.map(|tokens| tokens as usize),
            });
            (name.clone(), view)
        });
        Self { views: views.collect(), config }
    }

    pub fn are_of(&self, config: &Arc<Config>) -> bool {
        Arc::ptr_eq(&self.config, config)
    }

    /// # Errors
    /// There is no such scope among those that the caller may know of.
    pub fn view(&self, caller: &Caller, named: Option<&str>) -> Result<View, ApiError> {
        let name = match (&caller.bound, named) {
            (None, None) => return Ok(View::default()),
            (None, Some(named)) => named,
            (Some(own), Some(named)) if own != named => {
                return Err(ApiError::unknown_scope(named, [own.as_str()]));
            }
            (Some(own), _) => own,
        };
        match self.views.get(name) {
            Some(Ok(view)) => Ok(View { bound: caller.bound.is_some(), ..view.clone() }),
            Some(Err(reason)) => {
                Err(ApiError::internal(format!("the scope {name:?} can't be used: {reason}")))
            }
            // Its scope went with a reload, and its token with it.
            None if caller.bound.is_some() => Err(unauthorized()),
            None => Err(ApiError::unknown_scope(name, self.views.keys().map(String::as_str))),
        }
    }

    /// The scope whose token this is. Every scope is compared, each in constant time.
    pub fn of_token(&self, token: &str) -> Option<&str> {
        let hash = sha256_hex(token);
        let mut found = None;
        for (name, scope) in &self.config.scopes {
            let same = scope.token_sha256.as_ref().is_some_and(|other| equal(&hash, other));
            if same && found.is_none() {
                found = Some(name.as_str());
            }
        }
        found
    }

    /// The hash of a scope's token.
    pub fn token_sha256(&self, scope: &str) -> Option<&str> {
        self.config.scopes.get(scope)?.token_sha256.as_deref()
    }

    pub fn have_tokens(&self) -> bool {
        self.config.scopes.values().any(|scope| scope.token_sha256.is_some())
    }
}

pub(super) fn unauthorized() -> ApiError {
    ApiError::new(ErrorCode::Unauthorized, "no scope has this token")
        .hint(Some("`resdex token new SCOPE` makes one"))
}

/// Looks at every byte, whatever the first ones are.
fn equal(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |acc, (a, b)| acc | (a ^ b)) == 0
}

impl App {
    /// The scopes of the config in force.
    pub fn scopes(&self) -> Arc<Scopes> {
        let config = self.config.load_full();
        let scopes = self.scopes.load_full();
        match scopes {
            Some(scopes) if scopes.are_of(&config) => scopes,
            _ => {
                let scopes = Arc::new(Scopes::new(config));
                self.scopes.store(Some(scopes.clone()));
                scopes
            }
        }
    }

    /// What a caller may see, narrowed to the scope that it names.
    ///
    /// # Errors
    /// A scope that isn't in the config, or isn't the caller's.
    pub fn view(&self, caller: &Caller, scope: Option<&str>) -> Result<View, ApiError> {
        self.scopes().view(caller, scope)
    }

    /// The servers that a view shows, in the order of names.
    pub(super) fn servers_in(&self, view: &View) -> Vec<ServerName> {
        let mut names = self.control.names();
        names.retain(|name| view.sees_server(name));
        names
    }

    /// Those servers of which a view shows anything, in the order of names. A scope that names its servers
    /// knows them all.
    ///
    /// # Errors
    /// The index can't be read.
    pub(super) fn servers_shown(&self, view: &View) -> Result<Vec<ServerName>, ApiError> {
        let mut shown = vec![];
        for name in self.servers_in(view) {
            if self.shows_of(view, &name)? {
                shown.push(name);
            }
        }
        Ok(shown)
    }

    /// The servers that a request names; none where it names none.
    ///
    /// # Errors
    /// A name of which the view shows nothing, with the nearest one of which it does.
    pub(super) fn servers_named(
        &self,
        view: &View,
        named: Option<&[String]>,
    ) -> Result<Vec<ServerName>, ApiError> {
        let named = named.unwrap_or_default();
        let mut known = self.servers_in(view);
        known.retain(|name| named.iter().any(|named| named == name.as_str()));
        for name in std::mem::take(&mut known) {
            if self.shows_of(view, &name)? {
                known.push(name);
            }
        }
        match servers(named, &known) {
            Ok(servers) => Ok(servers),
            Err(_) => servers(named, &self.servers_shown(view)?),
        }
    }

    /// The server that a request names.
    ///
    /// # Errors
    /// As [`App::servers_named`].
    pub(super) fn server_named(&self, view: &View, name: &str) -> Result<ServerName, ApiError> {
        let named = self.servers_named(view, Some(&[name.to_owned()]))?;
        named.into_iter().next().ok_or_else(|| ApiError::unknown_server(name, []))
    }

    /// Whether a view shows a resource or a template of a server, or names the server.
    fn shows_of(&self, view: &View, server: &ServerName) -> Result<bool, ApiError> {
        let clauses = view.filter.clauses();
        let by_server = clauses.iter().any(|clause| clause.servers.is_some());
        let by_resource =
            view.filter.looks_at_uri() || clauses.iter().any(|clause| clause.mime_types.is_some());
        if by_server || !by_resource {
            return Ok(true);
        }
        if self.templates_in(view).iter().any(|(other, _)| other == server) {
            return Ok(true);
        }
        let page = self.store.resources(&ResourcesRequest {
            filter: view.filter.clone(),
            within: Some(ResourceKey { server: server.clone(), uri: "".into() }),
            limit: 1,
            ..ResourcesRequest::default()
        })?;
        Ok(!page.resources.is_empty())
    }

    /// Whether a view shows a resource. One that isn't indexed has no MIME type yet, and shows
    /// where no type is asked for.
    ///
    /// # Errors
    /// The index can't be read.
    pub(super) fn sees(&self, view: &View, key: &ResourceKey) -> Result<bool, IndexError> {
        if !view.sees_server(&key.server) || !view.filter.allows_uri(&key.uri) {
            return Ok(false);
        }
        if view.filter.clauses().iter().all(|clause| clause.mime_types.is_none()) {
            return Ok(true);
        }
        let entry = self.store.entry(key)?;
        let mime_type = entry
            .as_ref()
            .and_then(|entry| entry.mime_type.as_deref().or(entry.resource.mime_type.as_deref()));
        Ok(entry.is_some() && view.filter.allows_mime_type(mime_type.unwrap_or_default()))
    }
}

impl App {
    /// Whether an event may be told to a caller. Numbers and messages may be about anything, so a
    /// scope's callers get the states of its servers and what becomes of its resources.
    pub async fn shows(self: &Arc<Self>, caller: &Caller, event: &Event) -> bool {
        let Ok(view) = self.view(caller, None) else { return false };
        if !view.bound {
            return true;
        }
        let (server, uri) = match event {
            Event::State { server, .. } => {
                let Ok(server) = ServerName::new(server) else { return false };
                let shows =
                    move |app: &App| Ok(view.sees_server(&server) && app.shows_of(&view, &server)?);
                return self.blocking(shows).await.unwrap_or(false);
            }
            Event::Read { server, uri }
            | Event::Indexed { server, uri }
            | Event::Removed { server, uri } => (server, uri),
            _ => return false,
        };
        let Ok(server) = ServerName::new(server) else { return false };
        let key = ResourceKey { server, uri: uri.as_str().into() };
        self.blocking(move |app| Ok(app.sees(&view, &key)?)).await.unwrap_or(false)
    }
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

/// The servers of these names among the known ones.
///
/// # Errors
/// A name that no server has; it names the nearest one.
fn servers(named: &[String], known: &[ServerName]) -> Result<Vec<ServerName>, ApiError> {
    named.iter().map(|name| server(name, known)).collect()
}

/// The server with this name among the known ones.
///
/// # Errors
/// No server has it; the error names the nearest one.
fn server(name: &str, known: &[ServerName]) -> Result<ServerName, ApiError> {
    known
        .iter()
        .find(|server| server.as_str() == name)
        .cloned()
        .ok_or_else(|| ApiError::unknown_server(name, known.iter().map(ServerName::as_str)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        let mut config = Config::default();
        config.scopes.insert(
            "support-bot".into(),
            ScopeConfig {
                servers: vec![ServerName::new("wiki").unwrap(), ServerName::new("手册").unwrap()],
                include: vec!["**".into()],
                exclude: vec!["wiki://pages/hr/**".into(), "wiki://pages/*.tmp".into()],
                mime_types: vec!["Text/*".into(), "application/pdf".into()],
                max_tokens: Some(400),
                token_sha256: Some(sha256_hex("bot's token")),
                ..ScopeConfig::default()
            },
        );
        config.scopes.insert("everything".into(), ScopeConfig::default());
        config
    }

    fn scopes() -> Scopes {
        Scopes::new(Arc::new(config()))
    }

    #[test]
    fn a_scope_is_a_filter() {
        let owner = Caller::owner("test");
        let view = scopes().view(&owner, Some("support-bot")).unwrap();
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
            assert_eq!(view.filter.allows(server, uri, mime), allowed, "{server} {uri} {mime:?}");
        }
        assert!(!view.bound);
        let everything = scopes().view(&owner, Some("everything")).unwrap();
        assert!(everything.filter.allows("x", "y", None));
        assert!(scopes().view(&owner, None).unwrap().filter.is_everything());
        for (asked, budget) in [(None, 400), (Some(100), 100), (Some(9000), 400)] {
            assert_eq!(view.budget(asked), Some(budget));
        }
        assert_eq!(everything.budget(None), None);
    }

    #[test]
    fn a_token_is_its_scope() {
        let scopes = scopes();
        assert!(scopes.have_tokens());
        assert_eq!(scopes.of_token("bot's token"), Some("support-bot"));
        for other in ["", "bot's tokem", "bot's token ", &sha256_hex("bot's token")] {
            assert_eq!(scopes.of_token(other), None, "{other}");
        }
        let bot = Caller::of_scope("support-bot", "test");
        for named in [None, Some("support-bot")] {
            let view = scopes.view(&bot, named).unwrap();
            assert!(view.bound && view.scope.as_deref() == Some("support-bot"));
        }
        // One that there is and one that there isn't can't be told apart.
        let answer = |name: &str| {
            let detail = scopes.view(&bot, Some(name)).unwrap_err().detail;
            (detail.code, detail.message.replace(name, "NAME"), detail.hint)
        };
        assert_eq!(answer("everything"), answer("everythinh"));
        let gone = Caller::of_scope("gone", "test");
        assert_eq!(scopes.view(&gone, None).unwrap_err().detail.code, ErrorCode::Unauthorized);
    }

    #[test]
    fn an_unknown_name_is_an_error_that_names_the_nearest() {
        let owner = Caller::owner("test");
        let error = scopes().view(&owner, Some("support-bots")).unwrap_err();
        assert_eq!(error.detail.code, ErrorCode::UnknownScope);
        assert_eq!(error.detail.hint.as_deref(), Some("did you mean \"support-bot\"?"));
        let none = Scopes::new(Arc::new(Config::default()));
        assert!(!none.have_tokens());
        let error = none.view(&owner, Some("x")).unwrap_err();
        assert!(error.detail.hint.unwrap().contains("no scopes"));

        let known = [ServerName::new("handbook").unwrap(), ServerName::new("wiki").unwrap()];
        let named = ["wiki".to_owned(), "handbok".to_owned()];
        let error = servers(&named, &known).unwrap_err();
        assert_eq!(error.detail.code, ErrorCode::UnknownServer);
        assert_eq!(error.detail.message, "no server is called \"handbok\"");
        assert_eq!(error.detail.hint.as_deref(), Some("did you mean \"handbook\"?"));
        assert_eq!(servers(&named[..1], &known).unwrap(), [known[1].clone()]);
    }
}
