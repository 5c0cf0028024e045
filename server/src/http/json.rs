//! Answers in JSON.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::refusal::Refusal;

/// An answer in JSON, with the character set in its type, as clients of Mastodon have always got it.
#[derive(Debug, Clone, Copy)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_string(&self.0) {
            Ok(body) => json_text(body),
            Err(error) => {
                tracing::error!(%error, "an answer cannot be written as JSON");
                Refusal::broken().into_response()
            }
        }
    }
}

/// Answers with JSON that is text already.
pub(super) fn json_text(body: String) -> Response {
    let json = HeaderValue::from_static("application/json; charset=utf-8");
    ([(header::CONTENT_TYPE, json)], body).into_response()
}
