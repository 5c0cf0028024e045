//! The pictures of who has none, and of the site: plain colours, each one bit deep.

use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};

/// A picture that is the same for everybody, a PNG.
pub(super) struct Picture(&'static [u8]);

impl IntoResponse for Picture {
    fn into_response(self) -> Response {
        let headers = [
            (CONTENT_TYPE, HeaderValue::from_static("image/png")),
            // A week: each page of a client names one of them many times.
            (CACHE_CONTROL, HeaderValue::from_static("public, max-age=604800")),
            (CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'")),
            (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        ];
        (headers, self.0).into_response()
    }
}

/// `GET /avatars/original/missing.png`
pub(super) async fn avatar() -> Picture {
    Picture(include_bytes!("../show/pictures/avatar.png"))
}

/// `GET /headers/original/missing.png`
pub(super) async fn header() -> Picture {
    Picture(include_bytes!("../show/pictures/header.png"))
}

/// `GET /thumbnail.png`
pub(super) async fn thumbnail() -> Picture {
    Picture(include_bytes!("../show/pictures/thumbnail.png"))
}
