//! Dify's two ways to ask, as its External Knowledge API and its dataset API have them. A knowledge and
//! a dataset are a scope. Bots put only a record's text into the prompt, so it opens with where it is from.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::App;
use super::api::{ErrorCode, ErrorDetail, TraceVerb};
use super::error::ApiError;
use super::scope::{Caller, View};
use super::search::Asked;
use super::tokenizer::Tokenizer;
use crate::search::snippet::clean;
use crate::search::{Hit, Passage};

mod condition;

pub use condition::MetadataCondition;

const MAX_TOP_K: usize = 100;
/// Hits that are looked at where conditions leave some out.
const MAX_LOOKED_AT: usize = 1_000;

/// `POST /retrieval`
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct RetrievalRequest {
    /// Name of a scope; empty for all that the token shows.
    #[serde(default)]
    pub knowledge_id: String,
    pub query: String,
    #[serde(default)]
    pub retrieval_setting: RetrievalSetting,
    #[serde(default)]
    pub metadata_condition: Option<MetadataCondition>,
}

#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct RetrievalSetting {
    /// Most records; 5 when missing.
    #[serde(default)]
    pub top_k: Option<usize>,
    /// Least relevance, 0–1.
    #[serde(default)]
    pub score_threshold: Option<f32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct RetrievalResponse {
    pub records: Vec<Record>,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Record {
    /// Title and URI in the first line, then the passage.
    pub content: String,
    /// Relevance, 0–1.
    pub score: f32,
    pub title: String,
    /// `server`, `uri`, `title`, `mime_type`, `heading`, `lines`, `indexed_at`, `last_modified`.
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
}

/// `POST /datasets/{id}/retrieve`
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct DatasetRequest {
    pub query: String,
    #[serde(default)]
    pub retrieval_model: Option<RetrievalModel>,
}

#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
pub struct RetrievalModel {
    #[serde(default)]
    pub top_k: Option<usize>,
    #[serde(default)]
    pub score_threshold_enabled: Option<bool>,
    #[serde(default)]
    pub score_threshold: Option<f32>,
    #[serde(default)]
    pub metadata_filtering_conditions: Option<MetadataCondition>,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct DatasetResponse {
    #[schema(value_type = Object)]
    pub query: Value,
    /// Each with `score` and `segment`, whose `content` opens with title and URI.
    #[schema(value_type = Vec<Object>)]
    pub records: Vec<Value>,
}

/// Whether a route answers as Dify expects, errors too.
pub fn is_route(path: &str) -> bool {
    path == "/retrieval" || path.starts_with("/datasets/")
}

/// An error's body in Dify's shape.
pub fn error_body(detail: &ErrorDetail, status: u16) -> Value {
    let code = match detail.code {
        ErrorCode::MalformedAuthorization => 1001,
        ErrorCode::Unauthorized | ErrorCode::Forbidden => 1002,
        ErrorCode::UnknownScope => 2001,
        _ => status,
    };
    let hint = detail.hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default();
    json!({"error_code": code, "error_msg": format!("{}{hint}", detail.message)})
}

/// What both ways come to.
struct Retrieval<'r> {
    knowledge: &'r str,
    query: &'r str,
    top_k: Option<usize>,
    threshold: Option<f32>,
    condition: Option<&'r MetadataCondition>,
}

impl App {
    /// # Errors
    /// There is no such scope, or a field can't be understood.
    pub fn retrieval(
        &self,
        caller: &Caller,
        request: &RetrievalRequest,
    ) -> Result<RetrievalResponse, ApiError> {
        let records = self.retrieve(
            caller,
            &Retrieval {
                knowledge: &request.knowledge_id,
                query: &request.query,
                top_k: request.retrieval_setting.top_k,
                threshold: request.retrieval_setting.score_threshold,
                condition: request.metadata_condition.as_ref(),
            },
        )?;
        Ok(RetrievalResponse { records: records.into_iter().map(|(_, record)| record).collect() })
    }

    /// # Errors
    /// As [`App::retrieval`].
    pub fn dataset_retrieve(
        &self,
        caller: &Caller,
        dataset: &str,
        request: &DatasetRequest,
    ) -> Result<DatasetResponse, ApiError> {
        let model = request.retrieval_model.clone().unwrap_or_default();
        let records = self.retrieve(
            caller,
            &Retrieval {
                knowledge: dataset,
                query: &request.query,
                top_k: model.top_k,
                threshold: model
                    .score_threshold
                    .filter(|_| model.score_threshold_enabled != Some(false)),
                condition: model.metadata_filtering_conditions.as_ref(),
            },
        )?;
        let records = records.into_iter().map(|(hit, record)| {
            let id = |parts: &[&str]| blake3::hash(parts.join("\0").as_bytes()).to_hex()[..32].to_owned();
            let ordinal = hit.passages.first().map_or(0, |passage| passage.ordinal).to_string();
            let document = id(&[hit.key.server.as_str(), &hit.key.uri]);
            let segment = id(&[hit.key.server.as_str(), &hit.key.uri, &ordinal]);
            json!({
                "score": record.score,
                "segment": {
                    "id": segment,
                    "content": record.content,
                    "document_id": document,
                    "keywords": [],
                    "answer": null,
                    "document": {"id": document, "name": record.title, "doc_metadata": record.metadata},
                },
            })
        });
        let records = records.collect();
        Ok(DatasetResponse { query: json!({"content": request.query}), records })
    }

    fn retrieve(
        &self,
        caller: &Caller,
        asked: &Retrieval<'_>,
    ) -> Result<Vec<(Hit, Record)>, ApiError> {
        let scope = Some(asked.knowledge).filter(|name| !name.is_empty());
        let mut doing = self.doing(TraceVerb::Search, caller, scope, Some(asked.query));
        let result = self.view(caller, scope).and_then(|view| self.records(&view, asked));
        if let Ok(records) = &result {
            doing.found(records.iter().map(|(hit, _)| (hit.key.server.as_str(), &*hit.key.uri)));
            let texts = records.iter().map(|(_, r)| crate::chunk::estimate_tokens(&r.content));
            doing.tokens(texts.sum());
        }
        doing.done(result)
    }

    fn records(&self, view: &View, asked: &Retrieval<'_>) -> Result<Vec<(Hit, Record)>, ApiError> {
        let top_k = asked.top_k.unwrap_or(5).clamp(1, MAX_TOP_K);
        let threshold = asked.threshold.unwrap_or_default();
        if !(0.0..=1.0).contains(&threshold) {
            let message = format!("score_threshold: 0 to 1, not {threshold}");
            return Err(ApiError::bad_request(message));
        }
        let tokenizer = Tokenizer::named(None)?;
        let mut room = view.max_tokens;
        let mut records = vec![];
        let mut offset = 0;
        while offset < MAX_LOOKED_AT {
            let limit = if asked.condition.is_some() { MAX_TOP_K } else { top_k };
            let answer = self.hits(
                view,
                &Asked {
                    query: asked.query,
                    limit,
                    offset,
                    passages: 1,
                    min_relevance: Some(threshold).filter(|least| *least > 0.0),
                },
            )?;
            for hit in answer.hits {
                let Some(record) = record(&hit) else { continue };
                if !asked.condition.is_none_or(|condition| condition.holds(&record.metadata)) {
                    continue;
                }
                if let Some(room) = &mut room {
                    let tokens = tokenizer.count(&record.content);
                    if tokens > *room {
                        continue;
                    }
                    *room -= tokens;
                }
                records.push((hit, record));
                if records.len() == top_k {
                    return Ok(records);
                }
            }
            if !answer.more || asked.condition.is_none() {
                break;
            }
            offset += limit;
        }
        Ok(records)
    }
}

fn record(hit: &Hit) -> Option<Record> {
    let passage: &Passage = hit.passages.first()?;
    let one_line = |text: &str| clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let title = one_line(&hit.title);
    let text = match passage.chunk.text.trim() {
        "" => passage.snippet.clone(),
        text => clean(text).into_owned(),
    };
    let lead = passage.chunk.lead.as_deref().map(|lead| clean(lead).trim_end().to_owned() + "\n");
    let content =
        format!("{title} <{}>\n{}{text}", one_line(&hit.key.uri), lead.unwrap_or_default());
    let (from, to) = passage.chunk.lines;
    let metadata = json!({
        "server": hit.key.server,
        "uri": hit.key.uri,
        "title": title,
        "mime_type": hit.mime_type,
        "heading": passage.chunk.heading_path.join(" › "),
        "lines": format!("{from}-{to}"),
        "indexed_at": hit.indexed_at.to_rfc3339(),
        "last_modified": hit.last_modified,
    });
    let Value::Object(metadata) = metadata else { return None };
    Some(Record { content, score: hit.relevance.clamp(0.0, 1.0), title, metadata })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::tests::{app, owner};

    fn request(value: Value) -> RetrievalRequest {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_record_opens_with_title_and_uri() {
        let asked = request(json!({
            "knowledge_id": "bot",
            "query": "refund",
            "retrieval_setting": {"top_k": 5, "score_threshold": 0.0},
        }));
        let records = app().retrieval(&owner(), &asked).unwrap().records;
        assert_eq!(records.len(), 1, "the scope's only");
        let content = &records[0].content;
        assert!(content.starts_with("Refunds <handbook:///refunds.md>\n# Refunds\n"), "{content}");
        assert_eq!(records[0].metadata["lines"], "1-4");
        let threshold = request(json!({
            "knowledge_id": "bot", "query": "refund",
            "retrieval_setting": {"top_k": 5, "score_threshold": 0.9},
        }));
        assert!(app().retrieval(&owner(), &threshold).unwrap().records.is_empty());
        let unknown = request(json!({"knowledge_id": "nobody", "query": "refund"}));
        let error = app().retrieval(&owner(), &unknown).unwrap_err();
        assert_eq!(error_body(&error.detail, 400)["error_code"], 2001);
    }

    #[test]
    fn conditions_leave_records_out() {
        let with = |name: &str, operator: &str, value: Value| {
            let asked = request(json!({
                "query": "refund",
                "metadata_condition": {"conditions": [
                    {"name": [name], "comparison_operator": operator, "value": value},
                ]},
            }));
            app().retrieval(&owner(), &asked).unwrap().records.len()
        };
        assert_eq!(with("server", "is", json!("wiki")), 1);
        assert_eq!(with("uri", "start with", json!("handbook:")), 1);
        assert_eq!(with("server", "in", json!(["wiki", "handbook"])), 2);
        assert_eq!(with("last_modified", "empty", Value::Null), 2);
    }

    #[test]
    fn a_dataset_answers_in_segments() {
        let asked: DatasetRequest = serde_json::from_value(json!({
            "query": "退款",
            "retrieval_model": {
                "search_method": "semantic_search", "reranking_enable": false, "top_k": 3,
                "score_threshold_enabled": false, "score_threshold": 0.9,
            },
        }))
        .unwrap();
        let answer = app().dataset_retrieve(&owner(), "bot", &asked).unwrap();
        assert_eq!(answer.query["content"], "退款");
        let segment = &answer.records[0]["segment"];
        assert!(segment["content"].as_str().unwrap().contains("<handbook:///退款.md>"));
        assert_eq!(segment["document"]["name"], "退款");
        assert_eq!(segment["document_id"], segment["document"]["id"]);
    }
}
