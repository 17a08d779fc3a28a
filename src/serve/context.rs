//! `context`: pins, then the best passages, packed into a budget of tokens.

use super::App;
use super::api::{ContextCitation, ContextRequest, ContextResponse, ErrorCode, TraceVerb};
use super::error::ApiError;
use super::scope::{Caller, View};
use super::search::Asked;
use super::tokenizer::Tokenizer;
use crate::index::Entry;
use crate::model::{Audience, Outcome, ResourceKey};
use crate::search::context::{Candidate, Wanted, candidates, pack, reach};

/// When nobody says.
const MAX_TOKENS: usize = 4_000;
/// Largest budget that can be asked for.
const MOST_TOKENS: usize = 1_000_000;
/// Pins of one request.
const MAX_PINS: usize = 100;

impl App {
    /// Blocks on the index, never on a server.
    ///
    /// # Errors
    /// A request out of its bounds, an unknown scope or tokenizer, a pin of the request that isn't
    /// there, or a fault of the index.
    pub fn context(
        &self,
        caller: &Caller,
        request: &ContextRequest,
        request_id: &str,
    ) -> Result<ContextResponse, ApiError> {
        let query = Some(request.query.as_str());
        let mut doing = self.doing(TraceVerb::Context, caller, request.scope.as_deref(), query);
        let result = self.packed(caller, request, request_id);
        if let Ok(context) = &result {
            doing.found(context.citations.iter().map(|c| (&*c.server, &*c.uri)));
            doing.tokens(context.tokens);
        }
        doing.done(result)
    }

    fn packed(
        &self,
        caller: &Caller,
        request: &ContextRequest,
        request_id: &str,
    ) -> Result<ContextResponse, ApiError> {
        let view = self.view(caller, request.scope.as_deref())?;
        let tokenizer = Tokenizer::named(request.tokenizer.as_deref())?;
        let budget = view.budget(request.max_tokens).unwrap_or(MAX_TOKENS);
        if !(1..=MOST_TOKENS).contains(&budget) {
            let message = format!("max_tokens: 1 to {MOST_TOKENS}, not {budget}");
            return Err(ApiError::bad_request(message));
        }
        let mut notes = vec![];
        let mut wanted = Wanted::default();
        for key in self.pinned(&view, request, &mut notes)? {
            match self.store.entry(&key)? {
                Some(entry) if entry.resource.audience == Audience::User => {
                    notes.push(format!("{} is for people only, and left out", key.uri));
                }
                Some(entry) if entry.outcome == Outcome::Indexed => wanted.pins.push(whole(entry)),
                _ => notes.push(format!("{} has no text in the index", key.uri)),
            }
        }
        if !request.query.trim().is_empty() {
            wanted.passages = self.passages(&view, &request.query, budget)?;
        } else if wanted.pins.is_empty() && notes.is_empty() {
            return Err(ApiError::bad_request("query: there are no words in it"));
        }
        let packed = pack(&request.query, wanted, budget, &|text| tokenizer.count(text));
        let citations = packed.citations.into_iter().map(|citation| ContextCitation {
            n: citation.n,
            server: citation.key.server.to_string(),
            uri: citation.key.uri.to_string(),
            start_line: citation.lines.0,
            end_line: citation.lines.1,
            part: Some(citation.part).filter(|part| *part > 0),
        });
        Ok(ContextResponse {
            request_id: request_id.into(),
            text: packed.text,
            tokens: packed.tokens,
            tokenizer: tokenizer.name.into(),
            citations: citations.collect(),
            notes,
        })
    }

    /// The request's own pins must be there; of those that were pinned once, what is gone is noted.
    fn pinned(
        &self,
        view: &View,
        request: &ContextRequest,
        notes: &mut Vec<String>,
    ) -> Result<Vec<ResourceKey>, ApiError> {
        let mut keys: Vec<ResourceKey> = vec![];
        let mut add = |key: ResourceKey| {
            if !keys.contains(&key) {
                keys.push(key);
            }
        };
        for pin in self.pins_in(view, request.conversation.as_deref()) {
            match self.resolve(view, &pin.uri, pin.server.as_deref()) {
                Ok(key) => add(key),
                Err(error) if error.detail.code == ErrorCode::Internal => return Err(error),
                Err(error) => notes.push(format!("pinned: {}", error.detail.message)),
            }
        }
        let own = request.pins.as_deref().unwrap_or_default();
        if own.len() > MAX_PINS {
            return Err(ApiError::bad_request(format!("pins: at most {MAX_PINS}")));
        }
        for uri in own {
            add(self.resolve(view, uri, None)?);
        }
        Ok(keys)
    }

    /// What answers a query, best first.
    fn passages(
        &self,
        view: &View,
        query: &str,
        budget: usize,
    ) -> Result<Vec<Candidate>, ApiError> {
        let (limit, passages) = reach(budget);
        let asked = Asked { query, limit, offset: 0, passages, min_relevance: None };
        Ok(candidates(self.hits(view, &asked)?.hits))
    }
}

fn whole(entry: Entry) -> Vec<Candidate> {
    let key = entry.key();
    let candidates = entry.chunks.into_iter().zip(0..).map(|(chunk, ordinal)| Candidate {
        key: key.clone(),
        ordinal,
        focus: 0..0,
        score: 0.0,
        chunk,
    });
    candidates.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Change;
    use crate::serve::api::PinRequest;
    use crate::serve::fake::entry;
    use crate::serve::tests::{app, owner};

    fn of(query: &str) -> ContextRequest {
        ContextRequest { query: query.into(), ..ContextRequest::default() }
    }

    #[test]
    fn a_context_is_exact_cited_and_the_same_again() {
        let app = app();
        let first = app.context(&owner(), &of("refund"), "id").unwrap();
        let tokens = Tokenizer::named(None).unwrap().count(&first.text);
        assert_eq!((first.tokens, &*first.tokenizer), (tokens, "o200k_base"));
        let cited: Vec<_> = first.citations.iter().map(|c| (c.n, &*c.uri)).collect();
        assert_eq!(cited, [(1, "handbook:///refunds.md"), (2, "wiki://pages/hr/pay")]);
        assert!(first.text.contains("A refund takes 14 days."));
        assert_eq!(app.context(&owner(), &of("refund"), "id").unwrap(), first);

        let bot = ContextRequest { scope: Some("bot".into()), ..of("refund") };
        assert_eq!(app.context(&owner(), &bot, "id").unwrap().citations.len(), 1);
        let small = ContextRequest { max_tokens: Some(90), ..of("refund") };
        let small = app.context(&owner(), &small, "id").unwrap();
        assert!(small.tokens <= 90 && !small.citations.is_empty(), "{}", small.tokens);
        let nothing = app.context(&owner(), &of("zebra"), "id").unwrap();
        assert_eq!((&*nothing.text, nothing.tokens), ("", 0));
    }

    #[test]
    fn pins_go_in_first_and_what_is_for_people_stays_out() {
        let app = app();
        let mut private = entry("handbook", "handbook:///people.md", "People", "refund by hand\n");
        private.resource.audience = Audience::User;
        app.store.apply(vec![Change::Replace(Box::new(private))]).unwrap();
        let pin = PinRequest {
            uri: "shared://note".into(),
            server: Some("wiki".into()),
            conversation: Some("chat".into()),
            ..PinRequest::default()
        };
        app.pin(&owner(), &pin).unwrap();
        let request = ContextRequest {
            conversation: Some("chat".into()),
            pins: Some(vec!["handbook:///退款.md".into(), "handbook:///people.md".into()]),
            ..of("refund")
        };
        let context = app.context(&owner(), &request, "id").unwrap();
        let cited: Vec<_> = context.citations.iter().map(|c| &*c.uri).collect();
        assert_eq!(cited[..2], ["shared://note", "handbook:///退款.md"]);
        assert!(!context.text.contains("by hand"));
        assert!(context.notes[0].contains("for people only"));

        let gone = ContextRequest { pins: Some(vec!["x://y".into()]), ..of("refund") };
        let error = app.context(&owner(), &gone, "id").unwrap_err().detail;
        assert_eq!(error.code, ErrorCode::NotFound);
        for (request, start) in [
            (of(" "), "query: "),
            (ContextRequest { max_tokens: Some(0), ..of("x") }, "max_tokens: "),
            (ContextRequest { tokenizer: Some("gpt".into()), ..of("x") }, "tokenizer: "),
        ] {
            let error = app.context(&owner(), &request, "id").unwrap_err().detail;
            assert!(error.message.starts_with(start), "{}", error.message);
        }
    }
}
