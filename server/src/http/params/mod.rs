//! Parameters of a request, in whatever form they come: query, form, JSON, multipart, as Rails reads them.
//!
//! `tree` is what they become, `key` how the name of a nested one is read, `form`, `json` and `multipart` read one form
//! each. Here: the extractor.
//!
//! Invariant: one tree of parameters reads the same in all four forms.

mod form;
mod json;
mod key;
mod multipart;
#[cfg(test)]
mod tests;
mod tree;

use std::ops::Deref;

use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use super::refusal::Refusal;
use tree::{Filling, Mistake};
pub use tree::{ParamTree, Upload};

/// The depth to which parameters lie in each other: `a[b]` is two deep.
pub const DEPTH_MAX: usize = 8;
/// Parameters of one request, elements of lists included.
pub const KEYS_MAX: usize = 1_000;
/// Bytes of a body, files that are uploaded apart.
pub const BODY_MAX: usize = 1024 * 1024;

/// A bound on the bytes of all files that one request uploads: an extension of the routes that take files.
///
/// Other routes take none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadLimit(pub usize);

/// The parameters of a request: an extractor, of any method, the last of a handler.
///
/// What stands in the query goes before what stands in the body, name by name, as in Rails. A request whose body is too
/// large is refused with 413, one in an unknown form with 415, one that can't be read with 400; each in JSON.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Params(ParamTree);

impl Deref for Params {
    type Target = ParamTree;

    fn deref(&self) -> &ParamTree {
        &self.0
    }
}

impl Params {
    /// Reads a query, or a body in the same form.
    ///
    /// # Errors
    ///
    /// 400: it is not UTF-8, has too many parameters or too deep ones, or one name in two kinds (`a=1&a[b]=2`).
    pub fn of_form(text: &[u8]) -> Result<Self, Refusal> {
        let mut filling = Filling::default();
        form::read(text, &mut filling)?;
        Ok(Self(filling.tree()))
    }

    /// Reads a body of JSON. Nothing at all is no parameters, a list is the parameter `_json`.
    ///
    /// # Errors
    ///
    /// 400, as for a form; and for what isn't JSON.
    pub fn of_json(body: &[u8]) -> Result<Self, Refusal> {
        Ok(Self(json::read(body)?))
    }

    /// Reads a body in parts, of which some may be files: those up to so many bytes in all.
    ///
    /// # Errors
    ///
    /// 400, as for a form; and for what isn't multipart. 413: the texts or the files are too large.
    pub async fn of_multipart(body: Body, content_type: &str, upload: UploadLimit) -> Result<Self, Refusal> {
        let boundary = multer::parse_boundary(content_type)
            .map_err(|_| Refusal::bad_request("The multipart body has no boundary"))?;
        Ok(Self(multipart::read(body, boundary, upload).await?))
    }

    /// Puts the parameters of a query over these.
    fn with_query(mut self, query: Self) -> Self {
        self.0.replace_with(query.0);
        self
    }
}

/// The forms of a body.
enum BodyForm {
    Form,
    Json,
    Multipart,
}

impl BodyForm {
    fn of(content_type: &str) -> Option<Self> {
        let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            "application/x-www-form-urlencoded" => Some(Self::Form),
            "multipart/form-data" => Some(Self::Multipart),
            "application/json" | "text/json" => Some(Self::Json),
            other if other.starts_with("application/") && other.ends_with("+json") => Some(Self::Json),
            _ => None,
        }
    }
}

impl<S: Sync> FromRequest<S> for Params {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Result<Self, Refusal> {
        let (parts, body) = request.into_parts();
        let query = Self::of_form(parts.uri.query().unwrap_or_default().as_bytes())?;
        let upload = parts.extensions.get().copied().unwrap_or(UploadLimit(0));
        Ok(of_body(&parts.headers, body, upload).await?.with_query(query))
    }
}

async fn of_body(headers: &HeaderMap, body: Body, upload: UploadLimit) -> Result<Params, Refusal> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    match BodyForm::of(content_type) {
        Some(BodyForm::Form) => Params::of_form(&whole(body).await?),
        Some(BodyForm::Json) => Params::of_json(&whole(body).await?),
        // Clients name a form also where they send nothing.
        Some(BodyForm::Multipart) if is_empty(&body) => Ok(Params::default()),
        Some(BodyForm::Multipart) => Params::of_multipart(body, content_type, upload).await,
        None if whole(body).await?.is_empty() => Ok(Params::default()),
        None => {
            let forms = "application/json, application/x-www-form-urlencoded or multipart/form-data";
            let what = format!("The body has to be {forms}");
            Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, what))
        }
    }
}

fn is_empty(body: &Body) -> bool {
    hyper::body::Body::size_hint(body).exact() == Some(0)
}

async fn whole(body: Body) -> Result<bytes::Bytes, Refusal> {
    // Whoever says how much comes is told before it does.
    if hyper::body::Body::size_hint(&body).lower() > BODY_MAX as u64 {
        return Err(too_large());
    }
    match Limited::new(body, BODY_MAX).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(e) if e.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err(Refusal::bad_request("The body ended before its time")),
    }
}

fn too_large() -> Refusal {
    let what = format!("The body is too large: at most {BODY_MAX} bytes");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, what)
}

impl From<Mistake> for Refusal {
    fn from(mistake: Mistake) -> Self {
        Self::bad_request(match mistake {
            Mistake::TooDeep => format!("The parameters are nested too deeply: at most {DEPTH_MAX} levels"),
            Mistake::TooMany => format!("There are too many parameters: at most {KEYS_MAX}"),
            Mistake::NotUtf8 => "The parameters are not UTF-8".into(),
            Mistake::TwoKinds => "One parameter is given as a value and as a list or object".into(),
        })
    }
}
