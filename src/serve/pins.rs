//! Pins: what always goes into a context. Of a scope (in the config, or added at run time), of a
//! conversation for a while, or of one request.

use std::io;
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::App;
use super::api::{ErrorCode, PinItem, PinLevel, PinRequest, PinsQuery, PinsResponse, UnpinQuery};
use super::error::ApiError;
use super::scope::{Caller, View};
use crate::kept::Kept;

const DAY_S: u64 = 24 * 60 * 60;
const MAX_TTL_S: u64 = 365 * DAY_S;
/// Most pins that are kept, of all scopes and conversations.
const MAX_PINS: usize = 10_000;
/// Most pins of one scope or conversation.
const MAX_PINS_OF_ONE: usize = 100;
const MAX_CONVERSATION_CHARS: usize = 200;

/// What was pinned at run time.
#[derive(Debug, Default)]
pub struct Pins {
    kept: Kept<Pin>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Pin {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    conversation: Option<String>,
    uri: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<DateTime<Utc>>,
}

impl Pin {
    fn is_of(&self, scope: Option<&str>, conversation: Option<&str>) -> bool {
        self.scope.as_deref() == scope && self.conversation.as_deref() == conversation
    }

    fn is_over(&self, now: DateTime<Utc>) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

impl Pins {
    /// Takes up the pins of a state folder, and keeps them there from now on.
    ///
    /// # Errors
    /// See [`Kept::keep_in`].
    pub fn keep_in(&self, state: &Path) -> io::Result<()> {
        self.kept.keep_in(state.join("pins.json"))
    }

    fn of(&self, scope: Option<&str>, conversation: Option<&str>, now: DateTime<Utc>) -> Vec<Pin> {
        self.kept.of(|pin| pin.is_of(scope, conversation) && !pin.is_over(now))
    }

    /// Puts a pin in, in the place of the same one.
    fn add(&self, pin: Pin, now: DateTime<Utc>) -> Result<(), ApiError> {
        self.change(now, |pins| {
            let (scope, conversation) = (pin.scope.as_deref(), pin.conversation.as_deref());
            let same = pins.iter_mut().find(|other| {
                other.is_of(scope, conversation)
                    && other.uri == pin.uri
                    && other.server == pin.server
            });
            if let Some(same) = same {
                *same = pin;
                return Ok(());
            }
            let of_one = pins.iter().filter(|pin| pin.is_of(scope, conversation)).count();
            if of_one >= MAX_PINS_OF_ONE || pins.len() >= MAX_PINS {
                return Err(ApiError::bad_request(format!(
                    "pins: at most {MAX_PINS_OF_ONE} in one place and {MAX_PINS} in all"
                ))
                .hint(Some("DELETE /v1/pins takes some away")));
            }
            pins.push(pin);
            Ok(())
        })
    }

    fn change<T>(
        &self,
        now: DateTime<Utc>,
        change: impl FnOnce(&mut Vec<Pin>) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let changed = self.kept.change(|pins| {
            pins.retain(|pin| !pin.is_over(now));
            change(pins)
        });
        changed
            .map_err(|error| ApiError::internal(format!("the pins can't be kept: {error}")))
            .flatten()
    }
}

impl App {
    /// What goes into a context of this scope and conversation.
    ///
    /// # Errors
    /// An unknown scope.
    pub fn pins(&self, caller: &Caller, query: &PinsQuery) -> Result<PinsResponse, ApiError> {
        let view = self.view(caller, query.scope.as_deref())?;
        Ok(PinsResponse { pins: self.pins_in(&view, query.conversation.as_deref()) })
    }

    /// The scope's pins, then the conversation's, each once.
    pub(super) fn pins_in(&self, view: &View, conversation: Option<&str>) -> Vec<PinItem> {
        let (scope, now) = (view.scope.as_deref(), Utc::now());
        let config = view.pins.iter().map(|uri| PinItem {
            uri: uri.clone(),
            server: None,
            level: PinLevel::Config,
            expires_at: None,
        });
        let item = |pin: Pin| PinItem {
            level: match pin.conversation {
                Some(_) => PinLevel::Conversation,
                None => PinLevel::Scope,
            },
            uri: pin.uri,
            server: pin.server,
            expires_at: pin.expires_at,
        };
        let mut items: Vec<PinItem> = config.collect();
        items.extend(self.pins.of(scope, None, now).into_iter().map(item));
        if conversation.is_some() {
            items.extend(self.pins.of(scope, conversation, now).into_iter().map(item));
        }
        items
    }

    /// Pins a resource that the caller can see.
    ///
    /// # Errors
    /// No such resource, a field out of its bounds, or too many pins.
    pub fn pin(&self, caller: &Caller, request: &PinRequest) -> Result<PinsResponse, ApiError> {
        let view = self.view(caller, request.scope.as_deref())?;
        let conversation = request.conversation.clone();
        if let Some(name) = &conversation
            && !(1..=MAX_CONVERSATION_CHARS).contains(&name.chars().count())
        {
            return Err(ApiError::bad_request(format!(
                "conversation: 1 to {MAX_CONVERSATION_CHARS} characters"
            )));
        }
        let ttl = match (&conversation, request.ttl_s) {
            (None, Some(_)) => {
                return Err(ApiError::bad_request(
                    "ttl_s: only a conversation's pin goes by itself",
                )
                .hint(Some("name a `conversation`")));
            }
            (Some(_), Some(ttl)) if !(1..=MAX_TTL_S).contains(&ttl) => {
                return Err(ApiError::bad_request(format!("ttl_s: 1 to {MAX_TTL_S}, not {ttl}")));
            }
            (Some(_), ttl) => Some(ttl.unwrap_or(DAY_S)),
            (None, None) => None,
        };
        let key = self.resolve(&view, &request.uri, request.server.as_deref())?;
        let now = Utc::now();
        let pin = Pin {
            scope: view.scope.clone(),
            conversation: conversation.clone(),
            uri: key.uri.to_string(),
            server: request.server.clone(),
            expires_at: ttl.map(|ttl| now + TimeDelta::seconds(ttl.cast_signed())),
        };
        self.pins.add(pin, now)?;
        Ok(PinsResponse { pins: self.pins_in(&view, conversation.as_deref()) })
    }

    /// Takes a pin away that was added at run time.
    ///
    /// # Errors
    /// There is no such pin, or it stands in the config.
    pub fn unpin(&self, caller: &Caller, query: &UnpinQuery) -> Result<PinsResponse, ApiError> {
        let view = self.view(caller, query.scope.as_deref())?;
        let conversation = query.conversation.as_deref();
        let removed = self.pins.change(Utc::now(), |pins| {
            let before = pins.len();
            pins.retain(|pin| {
                !(pin.is_of(view.scope.as_deref(), conversation)
                    && pin.uri == query.uri
                    && (query.server.is_none() || pin.server == query.server))
            });
            Ok(before != pins.len())
        })?;
        if removed {
            return Ok(PinsResponse { pins: self.pins_in(&view, conversation) });
        }
        let in_config = conversation.is_none() && view.pins.contains(&query.uri);
        let hint = match in_config {
            true => "it stands in the config, in the scope's `pins`",
            false => "GET /v1/pins shows what is pinned there",
        };
        Err(ApiError::new(ErrorCode::NotFound, format!("{} isn't pinned there", query.uri))
            .hint(Some(hint)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::tests::{app, owner};

    fn uris(response: &PinsResponse) -> Vec<(&str, PinLevel)> {
        response.pins.iter().map(|pin| (&*pin.uri, pin.level)).collect()
    }

    fn request(uri: &str, scope: Option<&str>, conversation: Option<&str>) -> PinRequest {
        PinRequest {
            uri: uri.into(),
            scope: scope.map(Into::into),
            conversation: conversation.map(Into::into),
            ..PinRequest::default()
        }
    }

    #[test]
    fn pins_have_their_level_and_outlive_the_daemon() {
        let state = tempfile::tempdir().unwrap();
        let app = app();
        app.pins.keep_in(state.path()).unwrap();
        let refunds = "handbook:///refunds.md";
        app.pin(&owner(), &request(refunds, Some("bot"), None)).unwrap();
        let added = app
            .pin(&owner(), &request("handbook:///退款.md", Some("bot"), Some("chat-1")))
            .unwrap();
        let both = [(refunds, PinLevel::Scope), ("handbook:///退款.md", PinLevel::Conversation)];
        assert_eq!(uris(&added), both);
        assert!(added.pins[1].expires_at.unwrap() > Utc::now());

        let again = Pins::default();
        again.keep_in(state.path()).unwrap();
        assert_eq!(again.of(Some("bot"), None, Utc::now()).len(), 1);
        assert_eq!(again.of(Some("bot"), Some("chat-1"), Utc::now()).len(), 1);
        let later = Utc::now() + TimeDelta::days(2);
        assert!(again.of(Some("bot"), Some("chat-1"), later).is_empty());
        assert!(again.of(None, None, Utc::now()).is_empty(), "the scope's alone");

        let query =
            UnpinQuery { uri: refunds.into(), scope: Some("bot".into()), ..UnpinQuery::default() };
        assert!(app.unpin(&owner(), &query).unwrap().pins.is_empty());
        assert_eq!(app.unpin(&owner(), &query).unwrap_err().detail.code, ErrorCode::NotFound);
    }

    #[test]
    fn only_what_is_seen_can_be_pinned() {
        let app = app();
        let bot = Caller::of_scope("bot", "test");
        let hidden = app.pin(&bot, &request("wiki://pages/hr/pay", None, None)).unwrap_err();
        assert_eq!(hidden.detail.code, ErrorCode::NotFound);
        let elsewhere = app.pin(&bot, &request("handbook:///refunds.md", Some("x"), None));
        assert_eq!(elsewhere.unwrap_err().detail.code, ErrorCode::UnknownScope);
        let ttl = PinRequest { ttl_s: Some(5), ..request("handbook:///refunds.md", None, None) };
        assert!(app.pin(&bot, &ttl).unwrap_err().detail.message.starts_with("ttl_s: "));
    }
}
