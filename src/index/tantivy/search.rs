//! A request → the best resources, with their passages, relevance and what matched.

use std::collections::HashMap;

use ::tantivy::query::{EnableScoring, Query, Scorer, Weight};
use ::tantivy::{DocAddress, DocId, TantivyDocument};

use super::analyzer::Pool;
use super::collect::{self, Found};
use super::query::{self, Compiled};
use super::schema;
use super::statistics::Statistics;
use super::view::{View, read_error};
use super::visible::Visible;
use super::words::InText;
use crate::analyze::Languages;
use crate::index::{
    Entry, IndexError, MAX_DUPLICATES, Matched, StoreAnswer, StoreHit, StorePassage, StoreRequest,
};
use crate::model::Chunk;
use crate::search::versions;

/// How many of the best are looked at once more, so that their order is the same on every page.
const RERANKED: usize = 50;
/// How many of these are read for it.
const REREAD: usize = 10;

/// Runs a request on one commit.
pub fn search(view: &View, pool: &Pool, request: &StoreRequest) -> Result<StoreAnswer, IndexError> {
    let visible =
        view.segments().map(|(_, reader, columns)| Visible::new(reader, columns, &request.filter));
    let mut visible = visible.collect::<Result<Vec<_>, _>>()?;
    let languages = Languages::of(&request.query.words());
    let statistics = Statistics::new(view, &request.ranking, languages);
    let compiled =
        query::compile(view, pool, &visible, &request.query, &statistics, &request.ranking)?;

    for excluded in &compiled.excluded {
        let scoring = EnableScoring::disabled_from_searcher(&view.searcher);
        let weight = excluded.weight(scoring).map_err(read_error)?;
        for visible in &mut visible {
            visible.exclude(weight.as_ref()).map_err(read_error)?;
        }
    }
    let scoring = EnableScoring::enabled_from_statistics_provider(&statistics, &view.searcher);
    let weight = compiled.query.weight(scoring).map_err(read_error)?;
    let wanted = request.offset.saturating_add(request.limit);
    // One more than is shown tells whether there are more.
    let mut found =
        collect::best(view, weight.as_ref(), &visible, wanted.saturating_add(1).max(RERANKED))?;
    rerank(view, &statistics, &compiled.pairs, &mut found)?;
    let mut readings = reread(view, pool, &compiled, request.ranking.stretch, &mut found)?;
    let found = by_version(found, &request.query.text)?;
    let more = found.len() > wanted;

    let shown = found.iter().take(wanted).skip(request.offset);
    let hits = shown.map(|found| {
        let passages = collect::passages(view, weight.as_ref(), found, request.passages);
        let duplicates = collect::duplicates(view, &visible, found, MAX_DUPLICATES)?;
        let duplicates = duplicates.iter().map(|key| schema::key_of_bytes(key));
        let duplicates = duplicates.collect::<Result<_, _>>()?;
        let passages = passages.map_err(read_error)?;
        let hit = hit(view, pool, &compiled, found, &passages, &mut readings)?;
        let explanation = match request.explain {
            true => Some(explain(view, weight.as_ref(), found)?),
            false => None,
        };
        Ok(StoreHit { duplicates, explanation, ..hit })
    });
    Ok(StoreAnswer { hits: hits.collect::<Result<_, _>>()?, more })
}

/// The order in which versions of one document don't crowd out other documents.
fn by_version(mut found: Vec<Found>, query: &str) -> Result<Vec<Found>, IndexError> {
    let rest = found.split_off(found.len().min(RERANKED));
    let candidates = found.iter().map(|found| {
        let (server, uri) = schema::split_key(&found.key)?;
        Ok((server, uri, found.score))
    });
    let candidates = candidates.collect::<Result<Vec<_>, IndexError>>()?;
    let order = versions::arrange(&candidates, query);
    Ok(order.into_iter().map(|at| found[at].clone()).chain(rest).collect())
}

/// The chunk of a document, with what of its text matches.
struct Reading {
    chunk: Chunk,
    in_text: InText,
}

/// Reads one document, of which the stored fields may be at hand.
fn reading(
    view: &View,
    pool: &Pool,
    compiled: &Compiled,
    document: &TantivyDocument,
) -> Result<Reading, IndexError> {
    let chunk = schema::read_chunk(&view.fields, document)?.unwrap_or_else(empty_chunk);
    let text = schema::without_noise(&chunk.text, &chunk.noise);
    let in_text = compiled.words.find(pool, &text);
    Ok(Reading { in_text, chunk })
}

/// Readings by segment and document.
type Readings = HashMap<(u32, DocId), Reading>;

/// Reads the very best, and raises their scores by how much of the query stands close together.
fn reread(
    view: &View,
    pool: &Pool,
    compiled: &Compiled,
    factor: f32,
    found: &mut [Found],
) -> Result<Readings, IndexError> {
    let mut readings = HashMap::new();
    let end = found.len().min(REREAD);
    for one in &mut found[..end] {
        let document = view.document(DocAddress::new(one.segment, one.doc))?;
        let reading = reading(view, pool, compiled, &document)?;
        one.score *= 1.0 + factor * compiled.words.in_stretch(&reading.in_text);
        readings.insert((one.segment, one.doc), reading);
    }
    found.sort_by(Found::compare);
    Ok(readings)
}

/// Adds to the scores of the best what their neighbouring words are worth. A bonus only raises, so
/// what comes after them stays behind them.
fn rerank(
    view: &View,
    statistics: &Statistics<'_>,
    pairs: &[Box<dyn Query>],
    found: &mut [Found],
) -> Result<(), IndexError> {
    let end = found.len().min(RERANKED);
    let found = &mut found[..end];
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_unstable_by_key(|at| (found[*at].segment, found[*at].doc));
    for pair in pairs {
        let scoring = EnableScoring::enabled_from_statistics_provider(statistics, &view.searcher);
        let weight = pair.weight(scoring).map_err(read_error)?;
        let mut open: Option<(u32, Box<dyn Scorer>)> = None;
        for at in &order {
            let one = &mut found[*at];
            if open.as_ref().is_none_or(|(segment, _)| *segment != one.segment) {
                let reader = view.searcher.segment_reader(one.segment);
                open = Some((one.segment, weight.scorer(reader, 1.0).map_err(read_error)?));
            }
            let Some((_, scorer)) = &mut open else { continue };
            let doc = if scorer.doc() < one.doc { scorer.seek(one.doc) } else { scorer.doc() };
            if doc == one.doc {
                one.score += scorer.score();
            }
        }
    }
    found.sort_by(Found::compare);
    Ok(())
}

fn hit(
    view: &View,
    pool: &Pool,
    compiled: &Compiled,
    found: &Found,
    documents: &[(u32, f32)],
    readings: &mut Readings,
) -> Result<StoreHit, IndexError> {
    let fields = &view.fields;
    let first = view.document(DocAddress::new(found.segment, found.first))?;
    let entry = schema::read_head(fields, &first)?;
    let mut passages = Vec::with_capacity(documents.len());
    let mut relevance = 0.0;
    for (at, (doc, score)) in documents.iter().enumerate() {
        let Reading { chunk, in_text } = match readings.remove(&(found.segment, *doc)) {
            Some(known) => known,
            None if *doc == found.first => reading(view, pool, compiled, &first)?,
            None => {
                let document = view.document(DocAddress::new(found.segment, *doc))?;
                reading(view, pool, compiled, &document)?
            }
        };
        let names = names(&entry, &chunk);
        // Names are many, and only looked at where they are needed.
        let in_names: Vec<InText> = if at == 0 || in_text.matches.is_empty() {
            names.iter().map(|name| compiled.words.find(pool, name)).collect()
        } else {
            vec![]
        };
        if at == 0 {
            relevance = compiled.words.relevance(&in_text, &in_names);
        }
        let instead = if in_text.matches.is_empty() { best_name(names, in_names) } else { None };
        passages.push(StorePassage {
            ordinal: doc - found.first,
            score: *score,
            matches: in_text.matches,
            instead,
            chunk,
        });
    }
    Ok(StoreHit {
        key: entry.key(),
        title: schema::label(&entry),
        mime_type: schema::mime_type(&entry).map(str::to_owned),
        content_hash: entry.content_hash,
        last_modified: entry.resource.last_modified,
        indexed_at: entry.indexed_at,
        outcome: entry.outcome,
        audience: entry.resource.audience,
        description: entry.resource.description,
        score: found.score,
        relevance,
        passages,
        duplicates: vec![],
        explanation: None,
    })
}

/// How the score of a resource's best passage came to be, without what neighbours add.
fn explain(
    view: &View,
    weight: &dyn Weight,
    found: &Found,
) -> Result<serde_json::Value, IndexError> {
    let reader = view.searcher.segment_reader(found.segment);
    let explanation = weight.explain(reader, found.doc).map_err(read_error)?;
    serde_json::to_value(explanation).map_err(read_error)
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
fn best_name(names: Vec<String>, found: Vec<InText>) -> Option<Matched> {
    let mut best: Option<(f32, Matched)> = None;
    for (text, found) in names.into_iter().zip(found) {
        let weight = found.weight();
        if !found.matches.is_empty() && best.as_ref().is_none_or(|(old, _)| weight > *old) {
            best = Some((weight, Matched { text, matches: found.matches }));
        }
    }
    best.map(|(_, matched)| matched)
}
