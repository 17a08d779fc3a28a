//! Sets → an index in memory → what each question found.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use chrono::Utc;

use super::judge::{Found, FoundHit, HITS};
use super::{EvalError, Set};
use crate::chunk::{chunk, estimate_tokens};
use crate::config::Limits;
use crate::extract::{Extraction, extract};
use crate::index::tantivy::{TantivyStore, fingerprint};
use crate::index::{Change, Entry, IndexError, IndexStore as _};
use crate::model::{Body, Content, Outcome, Resource, ServerName, Snapshot};
use crate::search::context::{self, Wanted};
use crate::search::ranking::Ranking;
use crate::search::{self, Hit, Request};
use crate::serve::tokenizer::Tokenizer;

/// Documents that are handed to the index at once.
const BATCH: usize = 64;
/// Room for context, in tokens.
pub const CONTEXT: usize = 500;

/// An index of some sets, a server for each.
pub struct Bench {
    store: TantivyStore,
    threads: usize,
    ranking: Ranking,
}

impl Bench {
    /// Indexes the documents of all sets, on all cores.
    ///
    /// # Errors
    /// [`EvalError::Index`], which would be a fault of the engine.
    pub fn new(sets: &[Set], ranking: Ranking) -> Result<Self, EvalError> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let store = TantivyStore::in_memory()?;
        for (number, set) in sets.iter().enumerate() {
            let server = server(number)?;
            let batches: Vec<_> = set.documents.chunks(BATCH).collect();
            let made = parallel(threads, &batches, |batch| {
                let entries = batch.iter().map(|document| entry(&server, document));
                let changes = entries.map(|entry| Change::Replace(Box::new(entry)));
                store.apply(changes.collect())
            });
            made.into_iter().collect::<Result<Vec<()>, IndexError>>()?;
        }
        store.commit()?;
        Ok(Self { store, threads, ranking })
    }

    /// Asks the questions of the set with this number, on all cores; for context too, where that is
    /// judged, which takes longer.
    ///
    /// # Errors
    /// [`EvalError::Index`] when the index can't be read.
    pub fn ask(
        &self,
        number: usize,
        questions: &[&str],
        with_context: bool,
    ) -> Result<Vec<Found>, EvalError> {
        let server = server(number)?;
        let found = parallel(self.threads, questions, |question| {
            let request = self.request(question);
            let start = Instant::now();
            let answer = search::search(&self.store, &request)?;
            let took = start.elapsed();
            let hits = answer.hits.iter().map(|hit| found_hit(&server, hit)).collect();
            let context = if with_context { Some(self.context(question)?) } else { None };
            Ok(Found { hits, took, context })
        });
        found.into_iter().collect::<Result<_, IndexError>>().map_err(EvalError::Index)
    }

    fn request(&self, question: &str) -> Request {
        Request { limit: HITS, ranking: self.ranking.clone(), ..Request::new(question) }
    }

    /// As the daemon packs it, counted as the daemon counts.
    fn context(&self, question: &str) -> Result<String, IndexError> {
        let (limit, passages) = context::reach(CONTEXT);
        let request =
            Request { limit, passages, max_answer_bytes: usize::MAX, ..self.request(question) };
        let answer = search::search(&self.store, &request)?;
        let passages = context::candidates(answer.hits);
        let wanted = Wanted { pins: vec![], passages };
        let tokenizer = Tokenizer::default();
        Ok(context::pack(question, wanted, CONTEXT, &|text| tokenizer.count(text)).text)
    }
}

/// Sets may have the same name; their numbers differ.
fn server(number: usize) -> Result<ServerName, EvalError> {
    let name = ServerName::new(format!("set-{number}"));
    name.map_err(|reason| EvalError::Index(IndexError::Write { reason }))
}

const SCHEME: &str = "eval:///";
const ENCODED: &percent_encoding::AsciiSet = &percent_encoding::CONTROLS.add(b'%').add(b' ');

/// What the index holds of a document, by the code that makes it of a resource.
fn entry(server: &ServerName, document: &super::set::Document) -> Entry {
    let id = percent_encoding::utf8_percent_encode(&document.id.0, ENCODED);
    let uri = format!("{SCHEME}{id}");
    let resource = Resource {
        title: (!document.title.is_empty()).then(|| document.title.clone()),
        mime_type: Some("text/plain".into()),
        ..Resource::new(uri.as_str())
    };
    let body = Body::Text(document.text.clone());
    let snapshot = Snapshot::new(vec![Content { left_out: None, uri, mime_type: None, body }]);
    let (outcome, mime_type, document_title, chunks) =
        match extract(&resource, &snapshot, &Limits::default()) {
            Extraction::Document(document) => {
                let chunks = chunk(&document);
                (Outcome::Indexed, Some(document.mime_type), document.title, chunks)
            }
            Extraction::Skipped(reason) => (Outcome::Skipped(reason), None, None, vec![]),
        };
    Entry {
        server: server.clone(),
        resource,
        document_title,
        mime_type,
        content_hash: snapshot.hash,
        fingerprint: fingerprint(),
        outcome,
        chunks,
        indexed_at: Utc::now(),
    }
}

/// A hit as the grades of a set name documents; those of other sets are none of its own.
fn found_hit(server: &ServerName, hit: &Hit) -> FoundHit {
    let id = |uri: &str| {
        let id = uri.strip_prefix(SCHEME).unwrap_or(uri);
        percent_encoding::percent_decode_str(id).decode_utf8_lossy().into_owned()
    };
    // Resources with the same text are one hit.
    let keys = [&hit.key].into_iter().chain(&hit.duplicates).filter(|key| key.server == *server);
    let snippet = hit.passages.first().map_or("", |passage| passage.snippet.as_str());
    FoundHit {
        documents: keys.map(|key| id(&key.uri)).collect(),
        relevance: hit.relevance,
        snippet: snippet.to_owned(),
        tokens: estimate_tokens(&hit.title)
            + estimate_tokens(&hit.key.uri)
            + estimate_tokens(snippet),
    }
}

/// Random words, the same in every run: of letters that look like words, of Han, of kana, of numbers.
pub fn nonsense(count: usize) -> Vec<String> {
    // A linear congruential generator (Knuth's constants): all that "the same in every run" asks.
    let mut state = 2_u64;
    let mut below = |limit: u32| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as u32) % limit
    };
    let mut words = Vec::with_capacity(count);
    for number in 0..count {
        let mut text = String::new();
        for word in 0..3 + below(4) {
            if word > 0 && number % 4 < 2 {
                text.push(' ');
            }
            for syllable in 0..2 + below(3) {
                match number % 4 {
                    0 => {
                        text.push(char::from(b"bcdfghjklmnpqrstvwxz"[below(20) as usize]));
                        text.push(char::from(b"aeiouy"[below(6) as usize]));
                    }
                    1 => text.extend(char::from_u32(0x430 + below(32))),
                    2 => text.extend(char::from_u32(0x4E00 + below(0x5000))),
                    _ if syllable % 2 == 0 => text.extend(char::from_u32(0x30A2 + below(80))),
                    _ => text.extend(char::from_u32(0x3042 + below(80))),
                }
            }
        }
        words.push(text);
    }
    words
}

/// Calls something for each item, on some threads, and keeps the order.
fn parallel<T: Sync, R: Send>(
    threads: usize,
    items: &[T],
    call: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut made = vec![];
        while let Some((at, item)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            items.get(at).map(|item| (at, item))
        } {
            made.push((at, call(item)));
        }
        made
    };
    let mut made = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        let results = threads.into_iter().flat_map(|thread| match thread.join() {
            Ok(made) => made,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        results.collect::<Vec<_>>()
    });
    made.sort_unstable_by_key(|(at, _)| *at);
    made.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Id, Question, judge, set::Document};
    use super::*;

    fn set(name: &str, documents: &[(&str, &str)], questions: &[(&str, &str)]) -> Set {
        Set {
            name: name.into(),
            documents: documents
                .iter()
                .map(|&(id, text)| Document {
                    id: Id(id.into()),
                    title: String::new(),
                    text: text.into(),
                })
                .collect(),
            questions: questions
                .iter()
                .map(|&(text, right)| Question {
                    text: text.into(),
                    grades: [(right.to_owned(), 1.0)].into(),
                    answers: vec![],
                })
                .collect(),
        }
    }

    #[test]
    fn sets_share_an_index_and_are_judged_by_themselves() {
        let sets = [
            set(
                "a",
                &[("1", "退款期限为三十天"), ("%20 é", "运费由买家承担")],
                &[("运费谁承担", "%20 é")],
            ),
            set("b", &[("1", "The deadline is thirty days")], &[("what is the deadline", "1")]),
        ];
        let bench = Bench::new(&sets, Ranking::default()).unwrap();
        for (number, set) in sets.iter().enumerate() {
            let texts: Vec<&str> = set.questions.iter().map(|one| one.text.as_str()).collect();
            let found = bench.ask(number, &texts, true).unwrap();
            let report = judge(&set.name, &set.questions, &found);
            assert_eq!((report.queries, report.ndcg_at_10), (1, 1.0), "{}", set.name);
            assert!(report.tokens_per_query > 0.0);
        }
        let elsewhere = bench.ask(1, &["退款期限"], false).unwrap();
        assert!(!elsewhere[0].hits.is_empty(), "it is found");
        assert!(elsewhere[0].hits[0].documents.is_empty(), "and no document of that set");
    }

    #[test]
    fn nonsense_is_always_the_same() {
        let words = nonsense(8);
        assert_eq!(words, nonsense(8));
        assert!(words.iter().all(|text| text.chars().count() >= 6), "{words:?}");
    }

    #[test]
    fn parallel_work_keeps_its_order() {
        let items: Vec<u32> = (0..1000).collect();
        assert_eq!(
            parallel(4, &items, |item| item * 2),
            (0..1000).map(|n| n * 2).collect::<Vec<_>>()
        );
    }
}
