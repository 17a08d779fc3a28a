//! Requests' bodies and parameters, with errors that name the field that is wrong.

use axum::extract::{FromRequest, Query, Request};
use http::{StatusCode, Uri};
use serde::de::DeserializeOwned;
use utoipa::PartialSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use super::api::ErrorCode;
use super::error::ApiError;
use super::nearest;

/// Largest body of a request. The longest thing in one is a query.
pub const MAX_BYTES: usize = 1 << 20;

/// A JSON body. An empty one counts as `{}`; the content type isn't looked at, so `curl -d` just works.
pub struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + PartialSchema> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = bytes::Bytes::from_request(request, state).await.map_err(|rejection| {
            if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
                return ApiError::new(
                    ErrorCode::TooLarge,
                    format!("the body is over {MAX_BYTES} bytes"),
                );
            }
            ApiError::bad_request(format!("the body can't be read: {rejection}"))
        })?;
        decode(&bytes).map(Self)
    }
}

/// # Errors
/// Says where the JSON is broken, which field isn't known and what it was probably meant to be, or
/// which field has a wrong value.
pub fn decode<T: DeserializeOwned + PartialSchema>(bytes: &[u8]) -> Result<T, ApiError> {
    let bytes = if bytes.trim_ascii().is_empty() { b"{}" } else { bytes };
    // A list would do for serde: its items as the fields in their order.
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(ApiError::bad_request("the body: a JSON object is expected"));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let error = match serde_path_to_error::deserialize(&mut json) {
        Ok(body) => {
            return json.end().map(|()| body).map_err(|error| not_json(&error));
        }
        Err(error) => error,
    };
    if error.inner().is_syntax() || error.inner().is_eof() {
        return Err(not_json(error.inner()));
    }
    match serde_json::from_slice(bytes) {
        Ok(serde_json::Value::Object(fields)) => {
            known_fields::<T>(fields.keys().map(String::as_str))?;
        }
        Ok(_) => return Err(ApiError::bad_request("the body: a JSON object is expected")),
        Err(error) => return Err(not_json(&error)),
    }
    let message = without_place(&error.inner().to_string());
    Err(ApiError::bad_request(match error.path().to_string() {
        path if path == "." => message,
        path => format!("{path}: {message}"),
    }))
}

/// The parameters of a URL's query.
///
/// # Errors
/// As [`decode`].
pub fn parameters<T: DeserializeOwned + PartialSchema>(uri: &Uri) -> Result<T, ApiError> {
    let query = uri.query().unwrap_or_default();
    let names: Vec<_> =
        url::form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name).collect();
    known_fields::<T>(names.iter().map(AsRef::as_ref))?;
    Query::try_from_uri(uri).map(|Query(parameters)| parameters).map_err(|rejection| {
        let text = rejection.body_text();
        let message = text.split_once("query string: ").map_or(text.as_str(), |(_, rest)| rest);
        ApiError::bad_request(message)
    })
}

fn not_json(error: &serde_json::Error) -> ApiError {
    ApiError::bad_request(format!("the body isn't JSON: {error}"))
}

/// serde_json appends where in the body the error is, which says less than the field's name.
fn without_place(message: &str) -> String {
    message.rsplit_once(" at line ").map_or(message, |(message, _)| message).to_owned()
}

fn known_fields<'a, T: PartialSchema>(
    names: impl Iterator<Item = &'a str>,
) -> Result<(), ApiError> {
    let RefOr::T(Schema::Object(object)) = T::schema() else { return Ok(()) };
    for name in names {
        if !object.properties.contains_key(name) {
            return Err(ApiError::bad_request(format!("{name}: no such field")).hint(
                nearest::hint("fields", name, object.properties.keys().map(String::as_str)),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::api::{ResourcesQuery, SearchRequest, SyncRequest};

    #[test]
    fn a_body_is_read_with_its_defaults() {
        let request: SearchRequest = decode(r#"{"query":"退款"}"#.as_bytes()).unwrap();
        assert_eq!(request, SearchRequest::new("退款"));
        let nulls = br#"{"query":"x","scope":null,"servers":null}"#;
        assert_eq!(decode::<SearchRequest>(nulls).unwrap(), SearchRequest::new("x"));
        assert_eq!(decode::<SyncRequest>(b" \n").unwrap(), SyncRequest::default());
    }

    #[test]
    fn an_error_names_the_field() {
        for (body, message, hint) in [
            (r#"{"query":"x","limt":3}"#, "limt: no such field", Some("did you mean \"limit\"?")),
            (r#"{"query":"x","topK":3}"#, "topK: no such field", Some("fields: ")),
            (r#"{}"#, "missing field `query`", None),
            ("", "missing field `query`", None),
            (r#"{"query":3}"#, "query: invalid type: integer `3`, expected a string", None),
            (
                r#"{"query":"x","limit":-1}"#,
                "limit: invalid value: integer `-1`, expected usize",
                None,
            ),
            (
                r#"{"query":"x","servers":["a",2]}"#,
                "servers[1]: invalid type: integer `2`, expected a string",
                None,
            ),
            (r#"{"query":"x","query":"y"}"#, "duplicate field `query`", None),
            (r#"["x"]"#, "the body: a JSON object is expected", None),
            (r#"{"query":"#, "the body isn't JSON: EOF", None),
            ("query=x", "the body isn't JSON: expected value", None),
            (r#"{"query":"x"} y"#, "the body isn't JSON: trailing characters", None),
        ] {
            let error = decode::<SearchRequest>(body.as_bytes()).unwrap_err().detail;
            assert!(error.message.contains(message), "{body}: {}", error.message);
            match (hint, &error.hint) {
                (Some(expected), Some(hint)) => assert!(hint.starts_with(expected), "{hint}"),
                (None, None) => {}
                (expected, hint) => panic!("{body}: {expected:?} {hint:?}"),
            }
        }
        let deep = format!(r#"{{"query":{}"#, "[".repeat(100_000));
        assert!(decode::<SearchRequest>(deep.as_bytes()).is_err());
    }

    #[test]
    fn parameters_are_read() {
        let query = |query: &str| {
            parameters::<ResourcesQuery>(&format!("/v1/resources?{query}").parse().unwrap())
        };
        let read = query("server=a%20b&skipped=true").unwrap();
        assert_eq!(read.server.as_deref(), Some("a b"));
        assert!(read.skipped);
        assert_eq!(query("").unwrap(), ResourcesQuery::default());
        let error = query("servr=x").unwrap_err().detail;
        assert_eq!(error.message, "servr: no such field");
        assert_eq!(error.hint.as_deref(), Some("did you mean \"server\"?"));
        let error = query("skipped=maybe").unwrap_err().detail;
        assert!(error.message.starts_with("skipped: "), "{}", error.message);
    }
}
