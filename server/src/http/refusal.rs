//! Refusals: what a handler answers with if it doesn't do what was asked.

use std::borrow::Cow;
use std::collections::BTreeMap;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tideline::{Error, ErrorCode, ErrorKind};

use super::json::Json;
use super::rate::RateStanding;

/// Seconds after which somebody may try again whom the server had no time for.
const RETRY_AFTER_S: u32 = 1;
const TRY_AGAIN: &str = "There was a temporary problem serving your request, please try again";
const UNKNOWN: &str = "There was a temporary problem: your request may have been carried out, or not. It does no harm \
                       to send it again with the same Idempotency-Key";
const BROKEN: &str = "This did not work, through no fault of yours";
const NOT_ALLOWED: &str = "This action is not allowed";

/// An answer that says why something was not done: a status, and an object of JSON with `error`.
///
/// A handler returns `Result<_, Refusal>`; errors of the engine become one by `?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    status: StatusCode,
    body: Box<RefusalBody>,
    retry_after_s: Option<u32>,
    /// What somebody has done too often.
    standing: Option<RateStanding>,
}

/// The body of a refusal, as a client gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Error"))]
pub struct RefusalBody {
    /// What is wrong; of OAuth a code (`invalid_grant`).
    pub error: Cow<'static, str>,
    /// The same in a sentence, where `error` is a code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_description: Option<Cow<'static, str>>,
    /// What is wrong with each field of a form; fields that are well are not named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<FieldMistakes>,
}

/// Mistakes in the fields of a form, by their names.
pub type FieldMistakes = BTreeMap<String, Vec<FieldMistake>>;

/// One thing that is wrong with a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FieldMistake {
    /// `ERR_BLANK`, `ERR_TAKEN` and so on.
    pub error: Cow<'static, str>,
    /// The same in words, without the field's name.
    pub description: String,
}

impl Refusal {
    /// Refuses with a status and a text.
    pub fn new(status: StatusCode, error: impl Into<Cow<'static, str>>) -> Self {
        let body = RefusalBody { error: error.into(), error_description: None, details: None };
        Self { status, body: Box::new(body), retry_after_s: None, standing: None }
    }

    /// 400: a parameter is missing, or has a value that it can't have.
    pub fn bad_request(error: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// 401: there is no token, or it is unknown or revoked.
    pub fn no_valid_token() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "The access token is invalid")
    }

    /// 403: the token may not do that.
    pub fn outside_scopes() -> Self {
        Self::new(StatusCode::FORBIDDEN, "This action is outside the authorized scopes")
    }

    /// 403: nobody in this place may do that.
    pub fn not_allowed() -> Self {
        Self::new(StatusCode::FORBIDDEN, NOT_ALLOWED)
    }

    /// 403: whoever asks was thrown out.
    pub fn disabled() -> Self {
        Self::new(StatusCode::FORBIDDEN, "Your login is currently disabled")
    }

    /// 404: it doesn't exist, or is not for this reader: nobody is told which.
    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Record not found")
    }

    /// 415: a file came where none is taken, or what stands for one.
    pub fn no_files() -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Files can't be uploaded here, and no pictures yet")
    }

    /// 422: what was sent is understood, and can't be.
    pub fn invalid(error: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, error)
    }

    /// 422, with `Validation failed: ` in front.
    pub fn validation(what: impl std::fmt::Display) -> Self {
        Self::invalid(format!("Validation failed: {what}"))
    }

    /// 422: a token of an application alone stands where somebody has to be logged in.
    pub fn no_user() -> Self {
        Self::invalid("This method requires an authenticated user")
    }

    /// 429: somebody has done too often what has a limit. Headers say which, and when to come again.
    pub fn limited(standing: RateStanding) -> Self {
        let refusal = Self::new(StatusCode::TOO_MANY_REQUESTS, "Too many requests");
        Self { standing: Some(standing), ..refusal }
    }

    /// 503: there is no time for that now.
    pub fn try_again() -> Self {
        Self { retry_after_s: Some(RETRY_AFTER_S), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, TRY_AGAIN) }
    }

    /// 503: nobody knows whether it was done.
    pub fn unknown() -> Self {
        let body = RefusalBody { error: UNKNOWN.into(), error_description: None, details: None };
        Self { body: Box::new(body), ..Self::try_again() }
    }

    /// Makes this the refusal of a request that has written something by then: nobody is told that it wasn't done, or
    /// to try again as if it weren't. What is wrong with the request itself stays so.
    #[must_use]
    pub fn of_what_was_done(self) -> Self {
        match self.status {
            StatusCode::NOT_FOUND | StatusCode::CONFLICT | StatusCode::SERVICE_UNAVAILABLE => Self::unknown(),
            StatusCode::INTERNAL_SERVER_ERROR => {
                Self { status: self.status, retry_after_s: None, ..Self::unknown() }
            }
            _ => self,
        }
    }

    /// 500: something is broken on this side. What, the caller has written to the log.
    pub fn broken() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, BROKEN)
    }

    /// An error of OAuth: a code, and a sentence.
    pub fn oauth(status: StatusCode, code: &'static str, what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(status, code).described(what)
    }

    /// Adds an `error_description`.
    #[must_use]
    pub fn described(mut self, what: impl Into<Cow<'static, str>>) -> Self {
        self.body.error_description = Some(what.into());
        self
    }

    /// Adds what is wrong with each field.
    #[must_use]
    pub fn detailed(mut self, details: FieldMistakes) -> Self {
        self.body.details = Some(details);
        self
    }

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Of what was done too often: how often it may be.
    pub fn standing(&self) -> Option<RateStanding> {
        self.standing
    }

    /// The body of the answer.
    pub fn body(&self) -> &RefusalBody {
        &self.body
    }
}

/// By what the engine says that one can do. What is told of something inside stays inside, and goes to the log.
impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error.code() {
            ErrorCode::Blocked | ErrorCode::NotAllowed | ErrorCode::NotActive => return Self::not_allowed(),
            ErrorCode::AccountRequired => return Self::no_user(),
            ErrorCode::TooOften => return Self::limited(RateStanding::of_error(&error)),
            _ => {}
        }
        match error.kind() {
            ErrorKind::Invalid => Self::invalid(error.to_string()),
            ErrorKind::NotFound => Self::not_found(),
            ErrorKind::Conflict => Self::new(StatusCode::CONFLICT, error.to_string()),
            ErrorKind::Overloaded | ErrorKind::Unavailable => {
                tracing::info!(code = error.code().as_str(), %error, "a request found the engine unavailable");
                Self::try_again()
            }
            ErrorKind::Unknown => {
                tracing::warn!(%error, "nobody knows whether a write happened");
                Self::unknown()
            }
            _ => {
                tracing::error!(code = error.code().as_str(), %error, "a request met an error of ours");
                Self::broken()
            }
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(&self.body)).into_response();
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(standing) = self.standing {
            standing.tell_refused(response.headers_mut());
        }
        // Whoever shows it otherwise knows what it was.
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tideline::FrequencyBound;

    use super::*;

    #[test]
    fn an_error_of_the_engine_says_by_its_status_what_one_can_do() {
        let expected = [
            (ErrorCode::OutOfRange, 422, "why"),
            (ErrorCode::Blocked, 403, NOT_ALLOWED),
            (ErrorCode::AccountRequired, 422, "This method requires an authenticated user"),
            (ErrorCode::PostNotFound, 404, "Record not found"),
            (ErrorCode::LoginTaken, 409, "why"),
            (ErrorCode::TooOften, 429, "Too many requests"),
            (ErrorCode::Overloaded, 503, TRY_AGAIN),
            (ErrorCode::ArchiveAway, 503, TRY_AGAIN),
            (ErrorCode::Unknown, 503, UNKNOWN),
            (ErrorCode::Misconfigured, 500, BROKEN),
            (ErrorCode::Internal, 500, BROKEN),
        ];
        for (code, status, text) in expected {
            let refusal = Refusal::from(Error::new(code, "why"));
            let is_asked_again = matches!(status, 429 | 503);
            assert_eq!((refusal.status.as_u16(), &*refusal.body.error), (status, text), "{code:?}");
            let response = refusal.into_response();
            assert_eq!(response.headers().contains_key(header::RETRY_AFTER), is_asked_again, "{code:?}");
            assert_eq!(RateStanding::is_told(response.headers()), status == 429, "{code:?}");
        }
    }

    #[test]
    fn what_the_engine_calls_too_often_is_told_in_headers() {
        let bound = FrequencyBound { most: 60, again_in: Duration::from_secs(200), setting: None };
        let response = Refusal::from(Error::too_often(bound, "why")).into_response();
        let headers = response.headers();
        let told = ["x-ratelimit-limit", "x-ratelimit-remaining", "retry-after"].map(|name| &headers[name]);
        assert_eq!(told, ["60", "0", "200"]);
    }

    #[test]
    fn what_has_written_before_never_says_that_it_did_not() {
        let status = |refusal: Refusal| {
            let refusal = refusal.of_what_was_done();
            (refusal.status.as_u16(), refusal.retry_after_s.is_some(), refusal.body.error == UNKNOWN)
        };
        let conflict = || Refusal::from(Error::new(ErrorKind::Conflict, "why"));
        for refusal in [Refusal::try_again(), Refusal::unknown(), Refusal::not_found(), conflict()] {
            assert_eq!(status(refusal), (503, true, true));
        }
        assert_eq!(status(Refusal::broken()), (500, false, true));
        assert_eq!(status(Refusal::invalid("x")), (422, false, false));
    }

    #[test]
    fn only_what_is_there_is_sent() {
        let sent = |refusal: Refusal| serde_json::to_string(refusal.body()).unwrap();
        assert_eq!(sent(Refusal::not_found()), r#"{"error":"Record not found"}"#);
        let refusal = Refusal::oauth(StatusCode::BAD_REQUEST, "invalid_grant", "The code is too old");
        assert_eq!(sent(refusal), r#"{"error":"invalid_grant","error_description":"The code is too old"}"#);
        let taken = FieldMistake { error: "ERR_TAKEN".into(), description: "is taken".into() };
        let refusal = Refusal::validation("x").detailed([("username".into(), vec![taken])].into());
        let details = r#""details":{"username":[{"error":"ERR_TAKEN","description":"is taken"}]}"#;
        assert_eq!(sent(refusal), format!(r#"{{"error":"Validation failed: x",{details}}}"#));
    }
}
