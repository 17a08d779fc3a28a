//! The looks and the scripts, embedded as they stand in the source: there is no build step.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};

/// The style of previews, which stands in each.
pub const PREVIEW_STYLE: &str = include_str!("assets/preview.css");

pub const FOLDER: &str = "/assets/";

const FILES: &[(&str, &str, &str)] = &[
    ("console.css", "text/css; charset=utf-8", include_str!("assets/console.css")),
    ("console.js", "text/javascript; charset=utf-8", include_str!("assets/console.js")),
    ("live.js", "text/javascript; charset=utf-8", include_str!("assets/live.js")),
    ("forms.js", "text/javascript; charset=utf-8", include_str!("assets/forms.js")),
    ("icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
];

/// Stands in the addresses, so that a new binary's files are fetched and an old one's kept.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = blake3::Hasher::new();
    for (_, _, text) in FILES {
        hasher.update(text.as_bytes());
    }
    hasher.finalize().to_hex()[..12].to_owned()
});

pub fn address(name: &str) -> String {
    format!("{FOLDER}{}/{name}", *VERSION)
}

pub async fn asset(Path((_, name)): Path<(String, String)>) -> Response {
    let Some((_, kind, text)) = FILES.iter().find(|(file, _, _)| *file == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let mut response = text.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    let kept = HeaderValue::from_static("public, max-age=31536000, immutable");
    headers.insert(header::CACHE_CONTROL, kept);
    response
}
