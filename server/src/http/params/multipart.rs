//! Bodies in parts, some of which may be files.

use axum::body::Body;
use axum::http::StatusCode;
use bytes::BytesMut;
use multer::{Constraints, Field, Multipart, SizeLimit};

use super::tree::{Filling, Mistake, ParamNode, ParamTree, Upload};
use super::{BODY_MAX, UploadLimit, too_large};
use crate::http::refusal::Refusal;

/// The room for what may still come.
struct Room {
    texts: usize,
    files: usize,
    limit: UploadLimit,
}

/// Reads all parts. A file input that was left empty, as browsers send it, is no parameter.
pub(super) async fn read(body: Body, boundary: String, limit: UploadLimit) -> Result<ParamTree, Refusal> {
    // The parts' own headers are no larger than what is in them may be.
    let whole = 2 * BODY_MAX as u64 + limit.0 as u64;
    let constraints = Constraints::new().size_limit(SizeLimit::new().whole_stream(whole));
    let mut parts = Multipart::with_constraints(body.into_data_stream(), boundary, constraints);
    let (mut filling, mut room) = (Filling::default(), Room { texts: BODY_MAX, files: limit.0, limit });
    while let Some(part) = parts.next_field().await.map_err(|e| unreadable(&e))? {
        let Some(name) = part.name().map(str::to_owned) else { continue };
        if let Some(node) = room.take(part).await? {
            filling.put(&name, node)?;
        }
    }
    Ok(filling.tree())
}

impl Room {
    async fn take(&mut self, mut part: Field<'_>) -> Result<Option<ParamNode>, Refusal> {
        let file_name = part.file_name().map(str::to_owned);
        // Also an empty one.
        if self.limit.0 == 0 && file_name.as_ref().is_some_and(|name| !name.is_empty()) {
            return Err(Refusal::no_files());
        }
        let content_type = part.content_type().map(ToString::to_string);
        let mut bytes = BytesMut::new();
        while let Some(chunk) = part.chunk().await.map_err(|e| unreadable(&e))? {
            let is_file = file_name.is_some();
            let left = if is_file { self.files } else { self.texts }.checked_sub(chunk.len());
            let left = left.ok_or_else(|| self.refusal(is_file))?;
            *if is_file { &mut self.files } else { &mut self.texts } = left;
            bytes.extend_from_slice(&chunk);
        }
        match file_name {
            Some(name) if name.is_empty() && bytes.is_empty() => Ok(None),
            Some(_) => Ok(Some(ParamNode::File(Upload { content_type, bytes: bytes.freeze() }))),
            None => {
                let text = String::from_utf8(bytes.into()).map_err(|_| Mistake::NotUtf8)?;
                Ok(Some(ParamNode::Values(vec![text])))
            }
        }
    }

    fn refusal(&self, is_file: bool) -> Refusal {
        match self.limit.0 {
            _ if !is_file => too_large(),
            0 => Refusal::no_files(),
            max => {
                let what = format!("The files are too large: at most {max} bytes in all");
                Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, what)
            }
        }
    }
}

/// Tells a client what is wrong with the body; what the error holds of it is not repeated.
fn unreadable(error: &multer::Error) -> Refusal {
    match error {
        multer::Error::StreamSizeExceeded { .. } | multer::Error::FieldSizeExceeded { .. } => too_large(),
        _ => Refusal::bad_request("The multipart body cannot be read"),
    }
}
