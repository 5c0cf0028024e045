//! Paths: such as are text, and ids in them.

use axum::extract::{FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use percent_encoding::percent_decode_str;

use super::refusal::Refusal;

/// The id that is the one variable part of a path: an extractor.
///
/// What is none (another text, 0, a number above 2^63 - 1) is nobody's: 404, as for an id that nothing has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathId(pub u64);

impl<S: Send + Sync> FromRequestParts<S> for PathId {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let part = Path::<String>::from_request_parts(parts, state).await;
        part.ok().and_then(|Path(text)| path_id(&text)).map(Self).ok_or_else(Refusal::not_found)
    }
}

/// Answers for a path that is no text: there is nothing. What would be said of it elsewhere is no JSON.
pub(super) async fn readable(request: Request, next: Next) -> Response {
    match percent_decode_str(request.uri().path()).decode_utf8() {
        Ok(_) => next.run(request).await,
        Err(_) => Refusal::not_found().into_response(),
    }
}

/// An id of a path that has several variable parts; `None`: it is none, and nobody's.
pub fn path_id(text: &str) -> Option<u64> {
    let id = text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    id.filter(|id| (1..=i64::MAX.cast_unsigned()).contains(id))
}
