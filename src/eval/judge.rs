//! What was found → figures. Pure.

use std::time::Duration;

use serde::Serialize;

use super::{Question, Report};

/// How many hits are judged.
pub const HITS: usize = 10;

/// What one question found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The best first.
    pub hits: Vec<FoundHit>,
    /// 500 tokens of context, where that was asked for.
    pub context: Option<String>,
    pub took: Duration,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundHit {
    /// The resource as the question's grades name it, and those that are folded into it.
    pub documents: Vec<String>,
    pub relevance: f32,
    pub snippet: String,
    /// What the hit costs a reader.
    pub tokens: usize,
}

/// How long an answer took, in milliseconds; by the clock, while all cores were at it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    pub p50: f64,
    pub p99: f64,
}

/// Judges what a set's questions found; both in the same order.
pub fn judge(name: &str, questions: &[Question], found: &[Found]) -> Report {
    let pairs = || questions.iter().zip(found);
    let mean = |figure: fn(&Question, &Found) -> f64| {
        average(pairs().map(|(question, found)| figure(question, found))).unwrap_or_default()
    };
    let mut times: Vec<Duration> = found.iter().map(|found| found.took).collect();
    times.sort_unstable();
    Report {
        name: name.to_owned(),
        queries: questions.len(),
        ndcg_at_10: mean(ndcg),
        recall_at_10: mean(recall),
        mrr_at_10: mean(|question, found| {
            first_right(question, found).map_or(0.0, |rank| 1.0 / (rank + 1) as f64)
        }),
        success_at_1: mean(|question, found| within(question, found, 1)),
        success_at_3: mean(|question, found| within(question, found, 3)),
        answer_in_snippet: average(
            pairs().filter_map(|(question, found)| snippet(question, found)),
        ),
        answer_in_context_500: average(
            pairs().filter_map(|(question, found)| context(question, found)),
        ),
        tokens_per_query: mean(|_, found| {
            found.hits.iter().take(HITS).map(|hit| hit.tokens).sum::<usize>() as f64
        }),
        latency_ms: Latency { p50: percentile(&times, 0.5), p99: percentile(&times, 0.99) },
        relevance: None,
        missed: None,
    }
}

/// A question whose document doesn't come first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Missed {
    pub query: String,
    /// Any of these would have been right.
    pub expect: Vec<String>,
    /// From 1; nothing when it isn't among the first ten.
    pub rank: Option<usize>,
    /// What came first instead.
    pub first: Option<String>,
    /// Whether none of what is expected is in the index.
    pub is_unknown: bool,
}

/// The questions whose document doesn't come first.
pub fn missed(questions: &[Question], found: &[Found]) -> Vec<Missed> {
    let mut missed = vec![];
    for (question, found) in questions.iter().zip(found) {
        let rank = first_right(question, found);
        if rank != Some(0) {
            missed.push(Missed {
                query: question.text.clone(),
                expect: question.grades.keys().cloned().collect(),
                rank: rank.map(|rank| rank + 1),
                first: found.hits.first().and_then(|hit| hit.documents.first().cloned()),
                is_unknown: false,
            });
        }
    }
    missed
}

fn average(figures: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_u32);
    for figure in figures {
        sum += figure;
        count += 1;
    }
    (count > 0).then(|| sum / f64::from(count))
}

fn percentile(sorted: &[Duration], share: f64) -> f64 {
    let at = ((sorted.len() as f64 * share).ceil() as usize).clamp(1, sorted.len().max(1)) - 1;
    sorted.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

/// How right a hit is.
fn grade(question: &Question, hit: &FoundHit) -> f64 {
    let grades = hit.documents.iter().filter_map(|document| question.grades.get(document));
    grades.copied().fold(0.0, f64::max)
}

fn gain(grades: impl Iterator<Item = f64>) -> f64 {
    (1..).zip(grades.take(HITS)).map(|(rank, grade)| grade / f64::from(rank + 1).log2()).sum()
}

fn ndcg(question: &Question, found: &Found) -> f64 {
    let mut ideal: Vec<f64> = question.grades.values().copied().collect();
    ideal.sort_unstable_by(|a, b| b.total_cmp(a));
    let ideal = gain(ideal.into_iter());
    let gained = gain(found.hits.iter().map(|hit| grade(question, hit)));
    if ideal > 0.0 { gained / ideal } else { 0.0 }
}

fn recall(question: &Question, found: &Found) -> f64 {
    let is_found = |document: &&String| {
        found.hits.iter().take(HITS).any(|hit| hit.documents.contains(document))
    };
    let right = question.grades.keys().filter(is_found).count();
    right as f64 / question.grades.len().max(1) as f64
}

/// The place of the first right hit, from 0.
fn first_right(question: &Question, found: &Found) -> Option<usize> {
    found.hits.iter().take(HITS).position(|hit| grade(question, hit) > 0.0)
}

fn within(question: &Question, found: &Found, ranks: usize) -> f64 {
    f64::from(u8::from(first_right(question, found).is_some_and(|rank| rank < ranks)))
}

fn snippet(question: &Question, found: &Found) -> Option<f64> {
    let hit = found.hits.get(first_right(question, found)?)?;
    (!question.answers.is_empty()).then(|| has_answer(&hit.snippet, &question.answers))
}

fn context(question: &Question, found: &Found) -> Option<f64> {
    let context = found.context.as_ref()?;
    (!question.answers.is_empty()).then(|| has_answer(context, &question.answers))
}

/// Whether a text has one of the answers, however its white space is laid out.
fn has_answer(text: &str, answers: &[String]) -> f64 {
    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let text = squeeze(text);
    f64::from(u8::from(answers.iter().any(|answer| text.contains(&squeeze(answer)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(documents: &[&str], snippet: &str) -> FoundHit {
        let documents = documents.iter().map(|&document| document.to_owned()).collect();
        FoundHit { documents, snippet: snippet.into(), tokens: 20, ..FoundHit::default() }
    }

    fn question(grades: &[(&str, f64)], answers: &[&str]) -> Question {
        Question {
            text: String::new(),
            grades: grades.iter().map(|&(id, grade)| (id.to_owned(), grade)).collect(),
            answers: answers.iter().map(|&answer| answer.to_owned()).collect(),
        }
    }

    fn report(question: Question, hits: Vec<FoundHit>) -> Report {
        let found = Found { hits, took: Duration::from_millis(2), context: None };
        judge("set", &[question], &[found])
    }

    #[test]
    fn figures_are_those_of_the_books() {
        type Case<'a> = (&'a [(&'a str, f64)], &'a [&'a [&'a str]], [f64; 5]);
        let cases: &[Case<'_>] = &[
            // nDCG, recall, MRR, success at 1 and 3
            (&[("a", 1.0)], &[&["a"]], [1.0, 1.0, 1.0, 1.0, 1.0]),
            (&[("a", 1.0)], &[&["x"], &["a"]], [0.630_93, 1.0, 0.5, 0.0, 1.0]),
            (&[("a", 1.0)], &[&["x"]], [0.0, 0.0, 0.0, 0.0, 0.0]),
            (&[("a", 1.0), ("b", 1.0)], &[&["a"], &["x"], &["b"]], [0.919_72, 1.0, 1.0, 1.0, 1.0]),
            (&[("a", 2.0), ("b", 1.0)], &[&["b"], &["a"]], [0.859_72, 1.0, 1.0, 1.0, 1.0]),
            // A duplicate that was folded into a hit is found there.
            (&[("a", 1.0)], &[&["x", "a"]], [1.0, 1.0, 1.0, 1.0, 1.0]),
        ];
        for (grades, hits, expected) in cases {
            let hits = hits.iter().map(|documents| hit(documents, "")).collect();
            let got = report(question(grades, &[]), hits);
            let got = [
                got.ndcg_at_10,
                got.recall_at_10,
                got.mrr_at_10,
                got.success_at_1,
                got.success_at_3,
            ];
            for (got, expected) in got.iter().zip(expected) {
                assert!((got - expected).abs() < 1e-4, "{grades:?}: {got} {expected}");
            }
        }
    }

    #[test]
    fn what_doesnt_come_first_is_told() {
        let asked = ["first", "third", "never", "nothing"]
            .map(|text| Question { text: text.into(), ..question(&[("a", 1.0), ("b", 1.0)], &[]) });
        let found = [
            vec![hit(&["copy", "b"], "")],
            vec![hit(&["x"], ""), hit(&["y"], ""), hit(&["a"], "")],
            vec![hit(&["x"], "")],
            vec![],
        ]
        .map(|hits| Found { hits, ..Found::default() });
        let told: Vec<_> = missed(&asked, &found)
            .into_iter()
            .map(|missed| (missed.query, missed.rank, missed.first))
            .collect();
        let x = || Some("x".to_owned());
        let expected = [("third", Some(3), x()), ("never", None, x()), ("nothing", None, None)];
        assert_eq!(told, expected.map(|(query, rank, first)| (query.to_owned(), rank, first)));
    }

    #[test]
    fn the_eleventh_hit_is_not_judged() {
        let mut hits = vec![hit(&["x"], ""); 10];
        hits.push(hit(&["a"], ""));
        let report = report(question(&[("a", 1.0)], &[]), hits);
        assert_eq!((report.ndcg_at_10, report.recall_at_10, report.mrr_at_10), (0.0, 0.0, 0.0));
        assert_eq!(report.tokens_per_query, 200.0);
    }

    #[test]
    fn answers_are_looked_for_in_the_right_document() {
        let asked = || question(&[("a", 1.0)], &["Turkish  forces"]);
        let right = || hit(&["a"], "with turkish\nforces in");
        assert_eq!(report(asked(), vec![right()]).answer_in_snippet, Some(1.0));
        let other = vec![hit(&["x"], "Turkish forces"), hit(&["a"], "nothing")];
        assert_eq!(report(asked(), other).answer_in_snippet, Some(0.0));
        assert_eq!(report(asked(), vec![hit(&["x"], "Turkish forces")]).answer_in_snippet, None);
        assert_eq!(report(question(&[("a", 1.0)], &[]), vec![right()]).answer_in_snippet, None);
    }

    #[test]
    fn percentiles_are_of_what_was_measured() {
        let times: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!((percentile(&times, 0.5), percentile(&times, 0.99)), (50.0, 99.0));
        assert_eq!(percentile(&[], 0.5), 0.0);
    }
}
