//! Pictures, films and sounds: left empty until there are some.

use serde::Serialize;

use super::Id;

/// A picture, film or sound of a status.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MediaAttachment {
    /// Its id.
    pub id: Id,
    /// `image`, `gifv`, `video`, `audio`, `unknown`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it is; `None` while it is made.
    pub url: Option<String>,
    /// Where a small one is.
    pub preview_url: Option<String>,
    /// Where it was first.
    pub remote_url: Option<String>,
    /// Its sizes.
    pub meta: serde_json::Value,
    /// What it shows, in words.
    pub description: Option<String>,
    /// What stands there while it is loaded.
    pub blurhash: Option<String>,
}
