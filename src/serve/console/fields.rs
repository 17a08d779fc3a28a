//! The fields of a form or of an address. What isn't there or is empty is nothing, so that a form's
//! empty fields say nothing.

use axum::extract::{FromRequest, Request};
use bytes::Bytes;

use crate::serve::error::ApiError;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    pub fn parse(encoded: &[u8]) -> Self {
        Self(url::form_urlencoded::parse(encoded).into_owned().collect())
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name)?;
        // As it is: a URI may begin with a space.
        Some(found.1.as_str()).filter(|value| !value.trim().is_empty())
    }

    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    pub fn owned(&self, name: &str) -> Option<String> {
        self.get(name).map(str::to_owned)
    }

    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// # Errors
    /// Names the field that isn't a number.
    pub fn number(&self, name: &str) -> Result<Option<usize>, ApiError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number = value.parse().map(Some);
        number.map_err(|_| ApiError::bad_request(format!("{name}: {value:?} is no number")))
    }

    /// Those whose names begin with this, without it.
    pub fn below(&self, prefix: &str) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(move |(key, value)| {
            key.strip_prefix(prefix).map(|name| (name, value.as_str()))
        })
    }
}

impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let body = Bytes::from_request(request, state).await.map_err(|rejection| {
            ApiError::bad_request(format!("the form can't be read: {rejection}"))
        })?;
        Ok(Self::parse(&body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read() {
        let fields = Fields::parse(b"q=%E9%80%80+%E6%AC%BE&empty=&n=7&bad=x&v.a=1&v.b=");
        assert_eq!(
            (fields.get("q"), fields.get("empty"), fields.get("none")),
            (Some("退 款"), None, None)
        );
        assert_eq!((fields.number("n"), fields.number("none")), (Ok(Some(7)), Ok(None)));
        assert_eq!(fields.number("bad").unwrap_err().detail.message, "bad: \"x\" is no number");
        assert_eq!(fields.below("v.").collect::<Vec<_>>(), [("a", "1"), ("b", "")]);
    }
}
