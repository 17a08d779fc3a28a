//! What is asked, and what would be right.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::EvalError;

/// A collection of documents with questions that some of them answer.
#[derive(Clone, Debug, Default)]
pub struct Set {
    /// The folder's own name.
    pub name: String,
    pub documents: Vec<Document>,
    pub questions: Vec<Question>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Document {
    #[serde(rename = "_id")]
    pub id: Id,
    #[serde(default)]
    pub title: String,
    pub text: String,
}

/// An identifier; numbers are taken as they're written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(from = "RawId")]
pub struct Id(pub String);

#[derive(Deserialize)]
#[serde(untagged)]
enum RawId {
    Text(String),
    Number(serde_json::Number),
}

impl From<RawId> for Id {
    fn from(id: RawId) -> Self {
        match id {
            RawId::Text(text) => Self(text),
            RawId::Number(number) => Self(number.to_string()),
        }
    }
}

/// A question with the documents that answer it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Question {
    pub text: String,
    /// By document: how right it is; above 0.
    pub grades: BTreeMap<String, f64>,
    /// Strings of which any counts as the answer; empty where they aren't known.
    pub answers: Vec<String>,
}

#[derive(Deserialize)]
struct QuestionLine {
    #[serde(rename = "_id")]
    id: Id,
    text: String,
}

#[derive(Deserialize)]
struct AnswersLine {
    #[serde(rename = "_id")]
    id: Id,
    answers: Vec<String>,
}

impl Set {
    /// Reads a folder of `corpus.jsonl` (`{_id, title, text}`), `queries.jsonl` (`{_id, text}`),
    /// `qrels.tsv` (question, document, grade) and, if it's there, `answers.jsonl` (`{_id of the
    /// question, answers}`). Questions without a right document are left out.
    ///
    /// # Errors
    /// Names the file, and the line where it isn't what it should be.
    pub fn read(folder: &Path) -> Result<Self, EvalError> {
        let named = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let name = named.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let documents = json_lines(&folder.join("corpus.jsonl"))?;
        let lines: Vec<QuestionLine> = json_lines(&folder.join("queries.jsonl"))?;
        let mut grades = grades(&folder.join("qrels.tsv"))?;
        let path = folder.join("answers.jsonl");
        let answers: Vec<AnswersLine> = if path.exists() { json_lines(&path)? } else { vec![] };
        let mut answers: HashMap<Id, Vec<String>> =
            answers.into_iter().map(|line| (line.id, line.answers)).collect();
        let questions = lines.into_iter().filter_map(|line| {
            Some(Question {
                grades: grades.remove(&line.id.0)?,
                answers: answers.remove(&line.id).unwrap_or_default(),
                text: line.text,
            })
        });
        let questions = questions.collect();
        Ok(Self { name, documents, questions })
    }
}

/// Reads a file of questions with expected URIs: each line `{"query": …, "expect": URI or [URI, …],
/// "answers"?: […]}`. URIs are taken by what they say, however they're percent-encoded: see [`readable`].
///
/// # Errors
/// Names the line that isn't so; a file without any is one, too.
pub fn questions(path: &Path) -> Result<Vec<Question>, EvalError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Line {
        query: String,
        expect: Expected,
        #[serde(default)]
        answers: Vec<String>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Expected {
        One(String),
        Any(Vec<String>),
    }
    let lines: Vec<Line> = json_lines(path)?;
    let question = |line: Line| {
        let uris = match line.expect {
            Expected::One(uri) => vec![uri],
            Expected::Any(uris) => uris,
        };
        let grades = uris.iter().map(|uri| (readable(uri), 1.0)).collect();
        Question { text: line.query, grades, answers: line.answers }
    };
    if lines.is_empty() {
        let reason = "it has no questions".to_owned();
        return Err(EvalError::File { path: path.to_owned(), reason });
    }
    Ok(lines.into_iter().map(question).collect())
}

/// A URI without percent-encoding, as people write it.
pub fn readable(uri: &str) -> String {
    percent_encoding::percent_decode_str(uri).decode_utf8_lossy().into_owned()
}

fn text(path: &Path) -> Result<String, EvalError> {
    fs::read_to_string(path)
        .map_err(|error| EvalError::File { path: path.to_owned(), reason: error.to_string() })
}

/// The lines of a file that aren't empty, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty())
}

fn json_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, EvalError> {
    let text = text(path)?;
    let wrong = |line, error: serde_json::Error| EvalError::Line {
        path: path.to_owned(),
        line,
        reason: error.to_string(),
    };
    let lines = lines(text.trim_start_matches('\u{feff}'));
    lines.map(|(at, line)| serde_json::from_str(line).map_err(|error| wrong(at, error))).collect()
}

/// By question: documents and their grades above 0. A first line that isn't data is a header.
fn grades(path: &Path) -> Result<HashMap<String, BTreeMap<String, f64>>, EvalError> {
    let text = text(path)?;
    let mut grades: HashMap<String, BTreeMap<String, f64>> = HashMap::new();
    for (at, line) in lines(&text) {
        let columns: Vec<&str> = line.split('\t').map(str::trim).collect();
        let row = match columns.as_slice() {
            [question, document, grade] => {
                grade.parse().ok().map(|g: f64| (*question, *document, g))
            }
            _ => None,
        };
        match row {
            Some((question, document, grade)) if grade > 0.0 => {
                grades.entry(question.to_owned()).or_default().insert(document.to_owned(), grade);
            }
            Some(_) => {}
            None if at == 1 => {}
            None => {
                let reason = "expected question, document and grade with tabs between".to_owned();
                return Err(EvalError::Line { path: path.to_owned(), line: at, reason });
            }
        }
    }
    Ok(grades)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
    }

    #[test]
    fn a_folder_is_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        write(
            folder.path(),
            &[
                (
                    "corpus.jsonl",
                    "{\"_id\": 7, \"text\": \"七\"}\n\n{\"_id\":\"b\",\"title\":\"B\",\"text\":\"\"}\n",
                ),
                (
                    "queries.jsonl",
                    "{\"_id\":\"q\",\"text\":\"几\"}\n{\"_id\":\"unjudged\",\"text\":\"?\"}\n",
                ),
                ("qrels.tsv", "query-id\tcorpus-id\tscore\nq\t7\t2\nq\tb\t0\n"),
                ("answers.jsonl", "{\"_id\":\"q\",\"answers\":[\"七\"]}\n"),
            ],
        );
        let set = Set::read(folder.path()).unwrap();
        assert_eq!(set.documents.len(), 2);
        assert_eq!(set.documents[0].id, Id("7".into()));
        let expected = Question {
            text: "几".into(),
            grades: [("7".to_owned(), 2.0)].into(),
            answers: vec!["七".into()],
        };
        assert_eq!(set.questions, [expected]);
    }

    #[test]
    fn errors_name_the_line() {
        let folder = tempfile::tempdir().unwrap();
        write(
            folder.path(),
            &[
                ("corpus.jsonl", ""),
                ("queries.jsonl", "{\"_id\":\"q\",\"text\":\"x\"}\n{\"_id\":\"r\"}\n"),
                ("qrels.tsv", "q\ta\t1\nq a 1\n"),
                ("expected.jsonl", "{\"query\":\"x\",\"expects\":\"u\"}\n"),
                ("nothing.jsonl", "\n"),
            ],
        );
        let error = Set::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("queries.jsonl, line 2: missing field `text`"), "{error}");
        write(folder.path(), &[("queries.jsonl", "")]);
        let error = Set::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("qrels.tsv, line 2: expected question"), "{error}");
        let error = questions(&folder.path().join("expected.jsonl")).unwrap_err().to_string();
        assert!(error.contains("line 1: unknown field `expects`"), "{error}");
        let error = questions(&folder.path().join("nothing.jsonl")).unwrap_err().to_string();
        assert!(error.ends_with("nothing.jsonl: it has no questions"), "{error}");
        let error = Set::read(&folder.path().join("none")).unwrap_err().to_string();
        assert!(error.contains("corpus.jsonl: "), "{error}");
    }

    #[test]
    fn one_or_several_uris_are_expected() {
        let folder = tempfile::tempdir().unwrap();
        let lines = "{\"query\":\"a\",\"expect\":\"x://%E4%B8%80\"}\n{\"query\":\"b\",\"expect\":[\"x://1\",\"x://2\"],\"answers\":[\"z\"]}\n";
        write(folder.path(), &[("expected.jsonl", lines)]);
        let questions = questions(&folder.path().join("expected.jsonl")).unwrap();
        let counts: Vec<_> =
            questions.iter().map(|one| (one.grades.len(), one.answers.len())).collect();
        assert_eq!(counts, [(1, 0), (2, 1)]);
        assert!(questions[0].grades.contains_key("x://一"));
    }
}
