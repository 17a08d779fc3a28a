//! `eval`: folders through an index in memory, files of questions through the daemon.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::args::Eval;
use super::ask::talk;
use super::{CliError, Out, note, text};
use crate::chunk::estimate_tokens;
use crate::client::Client;
use crate::eval::{
    self, Bench, EvalError, Found, FoundHit, HITS, Missed, Question, Report, Separation, Set,
};
use crate::search::ranking::Ranking;
use crate::serve::api::{ContextRequest, ResourceItem, ResourcesQuery, SearchRequest};

/// Questions that mean nothing, beside those of other sets.
const NONSENSE: usize = 400;

impl From<EvalError> for CliError {
    fn from(error: EvalError) -> Self {
        let message = error.to_string();
        match error {
            EvalError::File { .. } | EvalError::Line { .. } => {
                Self::usage(message).hint("`resdex eval --help` says what a set is made of")
            }
            EvalError::Index(_) => Self::failed(message),
        }
    }
}

#[derive(Serialize)]
struct Reports<'a> {
    sets: &'a [Report],
}

pub fn eval(args: Eval, out: &Out) -> Result<(), CliError> {
    let (folders, files): (Vec<_>, Vec<_>) = args.sets.iter().partition(|path| path.is_dir());
    let mut reports = vec![];
    if !folders.is_empty() {
        if args.scope.is_some() || !args.servers.is_empty() {
            let hint = "a folder is indexed by itself; give a file of questions for the daemon";
            return Err(CliError::usage("--scope and --server narrow the daemon").hint(hint));
        }
        let sets = read(folders.iter().map(|path| path.as_path()))?;
        let off_topic = read(args.off_topic.iter().map(|path| path.as_path()))?;
        reports.extend(measure(&sets, &off_topic, ranking(&args.rank)?)?);
    }
    if folders.is_empty() && !(args.rank.is_empty() && args.off_topic.is_empty()) {
        let hint = "the daemon ranks as it does; give a folder to measure otherwise";
        return Err(CliError::usage("--rank and --off-topic are for folders").hint(hint));
    }
    for file in &files {
        reports.push(ask(file, &args)?);
    }
    if let Some(path) = &args.plot {
        let of = |report: &Report| Some((report.name.clone(), report.relevance.clone()?));
        let separations: Vec<(String, Separation)> = reports.iter().filter_map(of).collect();
        std::fs::write(path, eval::plot(&separations))
            .map_err(|error| CliError::failed(format!("{}: {error}", path.display())))?;
    }
    match reports.as_slice() {
        [alone] if args.output.json => out.json(alone),
        _ if args.output.json => out.json(&Reports { sets: &reports }),
        _ => out.print(&table(&reports)),
    }
}

fn read<'p>(folders: impl Iterator<Item = &'p Path>) -> Result<Vec<Set>, EvalError> {
    folders.map(Set::read).collect()
}

fn measure(sets: &[Set], off_topic: &[Set], ranking: Ranking) -> Result<Vec<Report>, EvalError> {
    let bench = Bench::new(sets, ranking)?;
    let first = |found: &[Found]| -> Vec<f32> {
        found.iter().map(|found| found.hits.first().map_or(0.0, |hit| hit.relevance)).collect()
    };
    let strangers: Vec<&str> = off_topic.iter().flat_map(texts).collect();
    let nonsense = eval::nonsense(NONSENSE);
    let nonsense: Vec<&str> = nonsense.iter().map(String::as_str).collect();
    let mut reports = vec![];
    for (number, set) in sets.iter().enumerate() {
        let questions: Vec<&str> = texts(set).collect();
        let with_context = set.questions.iter().any(|question| !question.answers.is_empty());
        let found = bench.ask(number, &questions, with_context)?;
        let mut report = eval::judge(&set.name, &set.questions, &found);
        if !off_topic.is_empty() {
            let others = first(&bench.ask(number, &strangers, false)?);
            let nonsense = first(&bench.ask(number, &nonsense, false)?);
            report.relevance = Some(eval::separate(first(&found), others, nonsense));
        }
        reports.push(report);
    }
    Ok(reports)
}

/// The factors of scores, with those that were given as `NAME=FACTOR`.
fn ranking(given: &[String]) -> Result<Ranking, CliError> {
    let mut factors = serde_json::Map::new();
    for factor in given {
        let parsed = factor.split_once('=').and_then(|(name, value)| {
            Some((name.to_owned(), value.parse::<f32>().ok().filter(|value| value.is_finite())?))
        });
        let Some((name, value)) = parsed else {
            return Err(CliError::usage(format!("--rank {factor}: it isn't NAME=FACTOR")));
        };
        factors.insert(name, value.into());
    }
    serde_json::from_value(factors.into())
        .map_err(|error| CliError::usage(format!("--rank: {error}")))
}

fn texts(set: &Set) -> impl Iterator<Item = &str> {
    set.questions.iter().map(|question| question.text.as_str())
}

/// Asks the daemon, one question after the other, as one client would, and tells what was missed.
fn ask(file: &Path, args: &Eval) -> Result<Report, CliError> {
    let questions = eval::questions(file)?;
    let (found, missed) = talk(args.output.socket.clone(), async |client| {
        let mut found = vec![];
        for question in &questions {
            found.push(ask_one(&client, question, args).await?);
        }
        let mut missed = eval::missed(&questions, &found);
        for missed in missed.iter_mut().filter(|missed| missed.rank.is_none()) {
            missed.is_unknown = !is_known(&client, &missed.expect, args).await?;
        }
        Ok((found, missed))
    })?;
    missed.iter().for_each(|missed| note(&told(missed)));
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    Ok(Report { missed: Some(missed), ..eval::judge(&name, &questions, &found) })
}

/// What is said of a question whose document doesn't come first.
fn told(missed: &Missed) -> String {
    let place = match missed.rank {
        Some(rank) => format!("found at rank {rank}"),
        None if missed.is_unknown => "not found, since nothing has that URI".to_owned(),
        None => "not found".to_owned(),
    };
    let first = missed.first.as_ref().map(|first| format!(" (first: {first})"));
    format!("{place}: {}{}", missed.query, first.unwrap_or_default())
}

async fn ask_one(client: &Client, question: &Question, args: &Eval) -> Result<Found, CliError> {
    let request = SearchRequest {
        limit: HITS,
        scope: args.scope.clone(),
        servers: (!args.servers.is_empty()).then(|| args.servers.clone()),
        ..SearchRequest::new(question.text.as_str())
    };
    let answer = client.search(&request).await?;
    let hits = answer.hits.into_iter().map(|hit| {
        // Resources with the same text are one hit.
        let copies = hit.duplicates.iter().flatten().map(|copy| &copy.uri);
        FoundHit {
            tokens: [&hit.title, &hit.uri, &hit.passage.snippet]
                .map(|text| estimate_tokens(text))
                .iter()
                .sum(),
            documents: [&hit.uri]
                .into_iter()
                .chain(copies)
                .map(|uri| eval::readable(uri))
                .collect(),
            relevance: hit.relevance,
            snippet: hit.passage.snippet,
        }
    });
    let hits = hits.collect();
    // A context is asked for within a scope, not of some servers.
    let context = match question.answers.is_empty() || !args.servers.is_empty() {
        true => None,
        false => Some(context(client, question, args).await?),
    };
    Ok(Found { hits, context, took: Duration::from_secs_f64(answer.took_ms.max(0.0) / 1e3) })
}

async fn context(client: &Client, question: &Question, args: &Eval) -> Result<String, CliError> {
    let request = ContextRequest {
        query: question.text.clone(),
        scope: args.scope.clone(),
        max_tokens: Some(eval::CONTEXT),
        ..ContextRequest::default()
    };
    Ok(client.context(&request).await?.text)
}

/// Whether any of these URIs is in the index, where the questions are asked.
async fn is_known(client: &Client, uris: &[String], args: &Eval) -> Result<bool, CliError> {
    for uri in uris {
        let mut query = ResourcesQuery {
            scope: args.scope.clone(),
            contains: Some(uri.clone()),
            ..ResourcesQuery::default()
        };
        loop {
            let page = client.resources(&query).await?;
            let is_it = |item: &ResourceItem| {
                eval::readable(&item.uri) == *uri
                    && (args.servers.is_empty() || args.servers.contains(&item.server))
            };
            if page.resources.iter().any(is_it) {
                return Ok(true);
            }
            query.cursor = page.next_cursor;
            if query.cursor.is_none() {
                break;
            }
        }
    }
    Ok(false)
}

/// A row for each set.
fn table(reports: &[Report]) -> String {
    let with_relevance = reports.iter().any(|report| report.relevance.is_some());
    let mut head = vec![
        "set",
        "queries",
        "nDCG@10",
        "recall@10",
        "MRR@10",
        "first",
        "in 3",
        "in snippet",
        "in context",
        "tokens",
        "p50 ms",
        "p99 ms",
    ];
    if with_relevance {
        head.extend(["AUC", "off-topic < .2", "nonsense < .2", "own ≥ .2"]);
    }
    let mut rows: Vec<Vec<String>> = vec![head.into_iter().map(str::to_owned).collect()];
    let share = |share: f64| format!("{share:.4}");
    let maybe =
        |share: Option<f64>| share.map_or_else(|| "–".into(), |share| format!("{share:.4}"));
    for report in reports {
        let mut row = vec![
            text::line(&report.name).into_owned(),
            report.queries.to_string(),
            share(report.ndcg_at_10),
            share(report.recall_at_10),
            share(report.mrr_at_10),
            share(report.success_at_1),
            share(report.success_at_3),
            maybe(report.answer_in_snippet),
            maybe(report.answer_in_context_500),
            format!("{:.0}", report.tokens_per_query),
            format!("{:.2}", report.latency_ms.p50),
            format!("{:.2}", report.latency_ms.p99),
        ];
        if with_relevance {
            let of = |figure: fn(&Separation) -> f64| maybe(report.relevance.as_ref().map(figure));
            row.extend([
                of(|relevance| relevance.auc),
                of(|relevance| relevance.off_topic_below),
                of(|relevance| relevance.nonsense_below),
                of(|relevance| relevance.on_topic_above),
            ]);
        }
        rows.push(row);
    }
    text::table(&rows)
}
