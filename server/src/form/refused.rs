//! Refusals at addresses of pages, for who has a browser: it shows pages, and JSON to nobody's use.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::FormPage;
use crate::http::Refusal;

/// Prefixes of pages' addresses, and addresses that are pages by themselves.
const BELOW: [&str; 4] = ["/auth/", "/@", "/users/", "/tags/"];
const PAGES: [&str; 2] = ["/", "/oauth/authorize"];

/// Whether people open what has this path, or this template of one.
pub(crate) fn is_for_people(path: &str) -> bool {
    PAGES.contains(&path.trim_end_matches('/'))
        || path == "/"
        || BELOW.iter().any(|head| path.starts_with(head))
}

/// Makes pages of what is refused where people look, whoever has refused it: a call, a limit, a bound.
pub(crate) async fn refused_as_pages(request: Request, next: Next) -> Response {
    let is_for_people = is_for_people(request.uri().path());
    let response = next.run(request).await;
    match response.extensions().get::<Refusal>() {
        Some(refusal) if is_for_people => as_page(refusal.clone(), response),
        _ => response,
    }
}

fn as_page(refusal: Refusal, response: Response) -> Response {
    let body = refusal.body();
    let text = body.error_description.as_deref().unwrap_or(&body.error);
    let mut page = FormPage::notice(title(refusal.status()), text).status(refusal.status()).into_response();
    // Who may come again when, what the request is called, who may read the answer: that stays.
    for (name, value) in response.headers() {
        if ![CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING].contains(name)
            && !page.headers().contains_key(name)
        {
            page.headers_mut().append(name, value.clone());
        }
    }
    page
}

fn title(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "Nothing here",
        StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => "Not allowed",
        StatusCode::TOO_MANY_REQUESTS => "Too often",
        StatusCode::SERVICE_UNAVAILABLE => "Not now",
        status if status.is_server_error() => "Something is broken",
        _ => "This can't be done",
    }
}
