//! Conditions on a record's metadata, with Dify's operators. Pure.

use std::cmp::Ordering;

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct MetadataCondition {
    #[serde(default)]
    pub logical_operator: LogicalOperator,
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogicalOperator {
    #[default]
    And,
    Or,
}

#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct Condition {
    /// It holds where it holds for one of these.
    pub name: Names,
    pub comparison_operator: Operator,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub value: Value,
}

/// One name or a list of them: both are sent.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Names {
    Several(Vec<String>),
    One(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
pub enum Operator {
    #[serde(rename = "contains")]
    Contains,
    #[serde(rename = "not contains")]
    NotContains,
    #[serde(rename = "start with")]
    StartWith,
    #[serde(rename = "end with")]
    EndWith,
    #[serde(rename = "is", alias = "=")]
    Is,
    #[serde(rename = "is not", alias = "≠")]
    IsNot,
    #[serde(rename = "in")]
    In,
    #[serde(rename = "not in")]
    NotIn,
    #[serde(rename = "empty")]
    Empty,
    #[serde(rename = "not empty")]
    NotEmpty,
    #[serde(rename = ">", alias = "after")]
    Greater,
    #[serde(rename = "<", alias = "before")]
    Less,
    #[serde(rename = "≥")]
    GreaterOrEqual,
    #[serde(rename = "≤")]
    LessOrEqual,
}

impl MetadataCondition {
    pub fn holds(&self, metadata: &Map<String, Value>) -> bool {
        let mut each = self.conditions.iter().map(|condition| condition.holds(metadata));
        match self.logical_operator {
            LogicalOperator::And => each.all(|holds| holds),
            LogicalOperator::Or => self.conditions.is_empty() || each.any(|holds| holds),
        }
    }
}

impl Condition {
    fn holds(&self, metadata: &Map<String, Value>) -> bool {
        let names = match &self.name {
            Names::Several(names) => &names[..],
            Names::One(name) => std::slice::from_ref(name),
        };
        names.iter().any(|name| {
            let has = metadata.get(name).map(text).unwrap_or_default();
            compare(self.comparison_operator, &has, &self.value)
        })
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn compare(operator: Operator, has: &str, value: &Value) -> bool {
    let wanted = text(value);
    let one_of = || match value {
        Value::Array(values) => values.iter().any(|value| text(value) == has),
        // Dify's form sends a list as a text, too.
        _ => wanted.split(',').any(|value| value.trim() == has),
    };
    let order = || ordering(has, &wanted);
    match operator {
        Operator::Contains => has.contains(&wanted),
        Operator::NotContains => !has.contains(&wanted),
        Operator::StartWith => has.starts_with(&wanted),
        Operator::EndWith => has.ends_with(&wanted),
        Operator::Is => has == wanted || order() == Some(Ordering::Equal),
        Operator::IsNot => has != wanted && order() != Some(Ordering::Equal),
        Operator::In => one_of(),
        Operator::NotIn => !one_of(),
        Operator::Empty => has.is_empty(),
        Operator::NotEmpty => !has.is_empty(),
        Operator::Greater => order() == Some(Ordering::Greater),
        Operator::Less => order() == Some(Ordering::Less),
        Operator::GreaterOrEqual => order().is_some_and(Ordering::is_ge),
        Operator::LessOrEqual => order().is_some_and(Ordering::is_le),
    }
}

/// By number or by time, whichever both are; texts have no order here.
fn ordering(a: &str, b: &str) -> Option<Ordering> {
    if let (Ok(a), Ok(b)) = (a.parse::<f64>(), b.parse::<f64>()) {
        // A time may be given in seconds, but then the other isn't a number.
        return a.partial_cmp(&b);
    }
    Some(time(a)?.cmp(&time(b)?))
}

/// RFC 3339, a date with or without a time (UTC), or seconds since 1970.
fn time(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.to_utc());
    }
    for format in ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S"] {
        if let Ok(time) = NaiveDateTime::parse_from_str(text, format) {
            return Some(time.and_utc());
        }
    }
    if let Ok(date) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        return Some(date.and_hms_opt(0, 0, 0)?.and_utc());
    }
    let seconds = text.parse::<f64>().ok().filter(|seconds| seconds.is_finite())?;
    DateTime::from_timestamp(seconds as i64, 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_operator_compares() {
        let metadata = json!({
            "title": "退款 policy", "size": 42, "none": null,
            "indexed_at": "2026-05-01T10:00:00+00:00",
        });
        let Value::Object(metadata) = metadata else { panic!() };
        for (name, operator, value, expected) in [
            ("title", "contains", json!("退款"), true),
            ("title", "not contains", json!("退款"), false),
            ("title", "start with", json!("退"), true),
            ("title", "end with", json!("policy"), true),
            ("title", "is", json!("退款 policy"), true),
            ("title", "is not", json!("退款"), true),
            ("title", "in", json!(["a", "退款 policy"]), true),
            ("title", "in", json!("a, 退款 policy"), true),
            ("title", "not in", json!(["a"]), true),
            ("none", "empty", Value::Null, true),
            ("absent", "empty", Value::Null, true),
            ("title", "not empty", Value::Null, true),
            ("size", "=", json!(42.0), true),
            ("size", "≠", json!(42), false),
            ("size", ">", json!("41"), true),
            ("size", "<", json!(42), false),
            ("size", "≥", json!(42), true),
            ("size", "≤", json!(41), false),
            ("indexed_at", "before", json!("2026-05-02"), true),
            ("indexed_at", "after", json!("2026-05-01 09:59"), true),
            ("indexed_at", "after", json!(1_777_636_800), false),
            ("indexed_at", "before", json!(1_900_000_000), true),
            ("absent", ">", json!(1), false),
            ("title", ">", json!("a"), false),
        ] {
            let condition = json!({
                "conditions": [{"name": [name], "comparison_operator": operator, "value": value}],
            });
            let condition: MetadataCondition = serde_json::from_value(condition).unwrap();
            assert_eq!(condition.holds(&metadata), expected, "{name} {operator} {value}");
        }
        let both = |operator: &str| {
            let conditions = json!({"logical_operator": operator, "conditions": [
                {"name": "title", "comparison_operator": "contains", "value": "退款"},
                {"name": ["size", "none"], "comparison_operator": "empty"},
                {"name": "size", "comparison_operator": ">", "value": 100},
            ]});
            let conditions: MetadataCondition = serde_json::from_value(conditions).unwrap();
            conditions.holds(&metadata)
        };
        assert_eq!((both("and"), both("or")), (false, true));
    }
}
