//! A request → the best resources, with their passages, relevance and what matched.

use std::collections::{HashMap, HashSet};

use ::tantivy::DocAddress;
use ::tantivy::query::EnableScoring;

use super::analyzer::Pool;
use super::collect::{self, Found, Visible};
use super::query::{self, Compiled, Words};
use super::schema;
use super::view::{View, read_error};
use crate::analyze::Field;
use crate::index::{
    Entry, IndexError, Match, Matched, StoreAnswer, StoreHit, StorePassage, StoreRequest,
};
use crate::model::Chunk;

/// Runs a request on one commit.
pub fn search(view: &View, pool: &Pool, request: &StoreRequest) -> Result<StoreAnswer, IndexError> {
    let visible =
        view.segments().map(|(_, reader, columns)| Visible::new(reader, columns, &request.filter));
    let mut visible = visible.collect::<Result<Vec<_>, _>>()?;
    let compiled = query::compile(view, pool, &visible, &request.query)?;

    for excluded in &compiled.excluded {
        let scoring = EnableScoring::disabled_from_searcher(&view.searcher);
        let weight = excluded.weight(scoring).map_err(read_error)?;
        for visible in &mut visible {
            visible.exclude(weight.as_ref()).map_err(read_error)?;
        }
    }
    let scoring = EnableScoring::enabled_from_searcher(&view.searcher);
    let weight = compiled.query.weight(scoring).map_err(read_error)?;
    let wanted = request.offset.saturating_add(request.limit);
    // One more than is shown tells whether there are more.
    let found = collect::best(view, weight.as_ref(), &visible, wanted.saturating_add(1))?;
    let more = found.len() > wanted;

    let shown = found.iter().take(wanted).skip(request.offset);
    let hits = shown.map(|found| {
        let passages = collect::passages(view, weight.as_ref(), found, request.passages);
        hit(view, pool, &compiled, request, found, &passages.map_err(read_error)?)
    });
    Ok(StoreAnswer { hits: hits.collect::<Result<_, _>>()?, more })
}

fn hit(
    view: &View,
    pool: &Pool,
    compiled: &Compiled,
    request: &StoreRequest,
    found: &Found,
    documents: &[(u32, f32)],
) -> Result<StoreHit, IndexError> {
    let fields = &view.fields;
    let entry = view.document(DocAddress::new(found.segment, found.first))?;
    let entry = schema::read_head(fields, &entry)?;
    let mut passages = Vec::with_capacity(documents.len());
    let mut relevance = 0.0;
    for (at, (doc, score)) in documents.iter().enumerate() {
        let document = view.document(DocAddress::new(found.segment, *doc))?;
        let chunk = schema::read_chunk(fields, &document)?.unwrap_or_else(empty_chunk);
        let text = schema::without_noise(&chunk.text, &chunk.noise);
        let in_text = matches(pool, &compiled.words, &text);
        let names = names(&entry, &chunk);
        // Names are many and short, and only looked at where they are needed.
        let in_names: Vec<Matches> = if at == 0 || in_text.places.is_empty() {
            names.iter().map(|name| matches(pool, &compiled.words, name)).collect()
        } else {
            vec![]
        };
        if at == 0 {
            relevance = coverage(&compiled.words, &in_text, &in_names);
        }
        let instead = if in_text.places.is_empty() { best_name(&names, in_names) } else { None };
        passages.push(StorePassage {
            ordinal: doc - found.first,
            score: *score,
            matches: in_text.places,
            instead,
            chunk,
        });
    }
    let explanation = if request.explain {
        let address = DocAddress::new(found.segment, found.doc);
        let explanation = compiled.query.explain(&view.searcher, address).map_err(read_error)?;
        Some(serde_json::to_value(explanation).map_err(read_error)?)
    } else {
        None
    };
    Ok(StoreHit {
        key: entry.key(),
        title: schema::label(&entry),
        mime_type: schema::mime_type(&entry).map(str::to_owned),
        content_hash: entry.content_hash,
        last_modified: entry.resource.last_modified,
        indexed_at: entry.indexed_at,
        outcome: entry.outcome,
        description: entry.resource.description,
        score: found.score,
        relevance,
        passages,
        explanation,
    })
}

/// The passage of a resource that has no text.
fn empty_chunk() -> Chunk {
    Chunk {
        part: 0,
        heading_path: vec![],
        lines: (1, 1),
        bytes: 0..0,
        page: None,
        text: String::new(),
        lead: None,
        noise: vec![],
    }
}

/// What of a chunk matched.
#[derive(Default)]
struct Matches {
    places: Vec<Match>,
    seen: Seen,
}

/// How much of each word was seen.
#[derive(Default)]
struct Seen {
    /// By word: the body terms of it that occur, and how surely each stands for it.
    parts: HashMap<u32, HashMap<String, f32>>,
    /// Words that occur as they were typed.
    whole: HashSet<u32>,
}

impl Seen {
    fn add(&mut self, field: Field, term: &str, word: u32, sure: f32) {
        match field {
            Field::Word => {
                self.whole.insert(word);
            }
            Field::Body => {
                let parts = self.parts.entry(word).or_default();
                if !parts.contains_key(term) {
                    parts.insert(term.to_owned(), sure);
                }
            }
        }
    }
}

fn matches(pool: &Pool, words: &Words, text: &str) -> Matches {
    let mut matches = Matches::default();
    pool.with(|analyzer| {
        for field in [Field::Body, Field::Word] {
            analyzer.analyze(field, text, &mut |token| {
                for (word, sure) in words.of(field, &token.term) {
                    matches.seen.add(field, &token.term, *word, *sure);
                    let weight = words.words.get(*word as usize).map_or(0.0, |word| word.weight);
                    matches.places.push(Match { bytes: token.from..token.to, word: *word, weight });
                }
            });
        }
    });
    matches.places.sort_by_key(|place| (place.bytes.start, place.bytes.end, place.word));
    matches.places.dedup();
    matches
}

/// What a passage is found by beside its text, in the order in which it is shown.
fn names(entry: &Entry, chunk: &Chunk) -> Vec<String> {
    let mut names: Vec<String> = chunk.lead.iter().cloned().collect();
    names.extend(chunk.heading_path.iter().rev().cloned());
    names.extend(schema::titles(entry).into_iter().map(str::to_owned));
    names.extend(entry.resource.description.clone());
    names.push(schema::uri_words(&entry.resource.uri));
    names
}

/// The name that shows the most of the query.
fn best_name(names: &[String], matches: Vec<Matches>) -> Option<Matched> {
    let mut best: Option<(f32, Matched)> = None;
    for (name, matches) in names.iter().zip(matches) {
        let mut words: Vec<(u32, f32)> =
            matches.places.iter().map(|place| (place.word, place.weight)).collect();
        words.sort_unstable_by_key(|(word, _)| *word);
        words.dedup_by_key(|(word, _)| *word);
        let told: f32 = words.iter().map(|(_, weight)| weight).sum();
        if !words.is_empty() && best.as_ref().is_none_or(|(old, _)| told > *old) {
            best = Some((told, Matched { text: name.clone(), matches: matches.places }));
        }
    }
    best.map(|(_, matched)| matched)
}

/// How much of the query a passage covers, 0–1: the share of the query's words that occur in it, in
/// the headings above it or in the resource's names, each word weighed by its rarity. A word that occurs
/// nowhere in the index counts most among the missing. Of a word that occurs in part (bigrams, parts
/// of a compound) that part counts; one that was found by a near spelling counts 0.6.
///
/// Unlike a score it doesn't depend on the length of the query or the size of the index, so one
/// threshold does for all queries. A query of filters only is covered whole.
fn coverage(words: &Words, text: &Matches, names: &[Matches]) -> f32 {
    let (mut covered, mut total) = (0.0, 0.0);
    for (number, word) in (0..).zip(&words.words) {
        let places = names.iter().chain([text]);
        let share = places.map(|place| share(&place.seen, number, word.parts)).fold(0.0, f32::max);
        covered += word.weight * share;
        total += word.weight;
    }
    if total > 0.0 { (covered / total).clamp(0.0, 1.0) } else { 1.0 }
}

/// How much of a word was seen, 0–1.
fn share(seen: &Seen, word: u32, parts: usize) -> f32 {
    if seen.whole.contains(&word) {
        return 1.0;
    }
    let Some(found) = seen.parts.get(&word) else { return 0.0 };
    let near = found.values().copied().filter(|sure| *sure < 1.0).fold(0.0, f32::max);
    let exact = found.values().filter(|sure| **sure >= 1.0).count() as f32;
    (exact / parts.max(1) as f32).max(near)
}
