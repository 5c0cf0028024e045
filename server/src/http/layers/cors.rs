//! Permission to read answers in a browser: for pages of any site, of what needs a token and no cookie.

use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION,
    CACHE_CONTROL,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Paths that pages of other sites may ask for. The page where one logs in is none: it has a cookie.
const OPEN_PATHS: [&str; 4] = ["/oauth/token", "/oauth/revoke", "/oauth/userinfo", "/nodeinfo"];
const OPEN_BELOW: [&str; 6] = ["/api/", "/.well-known/", "/nodeinfo/", "/@", "/avatars/", "/headers/"];
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE, OPTIONS");
const ALLOWED: HeaderValue = HeaderValue::from_static("Authorization, Content-Type, Idempotency-Key");
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "Link, Retry-After, X-RateLimit-Reset, X-RateLimit-Limit, X-RateLimit-Remaining, X-Request-Id",
);
/// Seconds for which a browser needn't ask again: two hours, the most that some of them take.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");
const ANYBODY: HeaderValue = HeaderValue::from_static("*");
/// The sign of what somebody gets for a token: no cache in between may give it to others.
const PRIVATE: HeaderValue = HeaderValue::from_static("private, no-store");

/// Paths that give secrets to whoever has none yet (RFC 6749, 5.1).
const GIVES_SECRETS: [&str; 2] = ["/oauth/token", "/api/v1/apps"];

fn is_open(path: &str) -> bool {
    OPEN_PATHS.contains(&path) || OPEN_BELOW.iter().any(|folder| path.starts_with(folder))
}

/// Answers what a browser asks beforehand, and says with each answer who may read it.
pub(super) async fn cors(request: Request, next: Next) -> Response {
    let is_open = is_open(request.uri().path());
    let is_private =
        request.headers().contains_key(AUTHORIZATION) || GIVES_SECRETS.contains(&request.uri().path());
    let is_preflight =
        request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    if is_open && is_preflight {
        let headers = [
            (ACCESS_CONTROL_ALLOW_ORIGIN, ANYBODY),
            (ACCESS_CONTROL_ALLOW_METHODS, METHODS),
            (ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED),
            (ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED),
            (ACCESS_CONTROL_MAX_AGE, MAX_AGE),
        ];
        return (StatusCode::OK, headers).into_response();
    }
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    if is_open {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANYBODY);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
    if is_private {
        headers.entry(CACHE_CONTROL).or_insert(PRIVATE);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_other_sites_get_what_needs_no_cookie() {
        for path in [
            "/api/v1/instance",
            "/oauth/token",
            "/.well-known/nodeinfo",
            "/nodeinfo/2.0",
            "/@ada",
            "/avatars/x.png",
        ] {
            assert!(is_open(path), "{path}");
        }
        for path in ["/", "/oauth/authorize", "/oauth/token/x", "/ready", "/apix", "/auth/sign_in"] {
            assert!(!is_open(path), "{path}");
        }
    }
}
