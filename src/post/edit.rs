//! Changes that can be made to a post later.

use super::check::check_language;
use super::{Content, Post};
use crate::error::{Error, Result};
use crate::ids::AccountId;
use crate::serialized::{as_hex, some};

/// A change of a post; what is `None` stays as it is.
///
/// There is no field for the visibility, only-to, not-to, the original or the parent: they cannot change, because
/// copies of the post's id already lie in timelines that were chosen by them.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[must_use]
pub struct Edit {
    /// Another text.
    pub text: Option<String>,
    /// Another content warning; `Some(None)` takes it away.
    #[serde(deserialize_with = "some", skip_serializing_if = "Option::is_none")]
    pub content_warning: Option<Option<String>>,
    /// Whether to hide the attachments at first.
    pub sensitive: Option<bool>,
    /// Another language; `Some(None)` takes it away.
    #[serde(deserialize_with = "some", skip_serializing_if = "Option::is_none")]
    pub language: Option<Option<String>>,
    /// Other mentions. Those of a direct post don't change who reads it; whom a post for followers mentions may read it
    /// from then on, and whom it no longer mentions may not.
    pub mentions: Option<Vec<AccountId>>,
    /// Other hashtags.
    pub hashtags: Option<Vec<String>>,
    /// Other attachments.
    #[serde(with = "as_hex::maybe", skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Vec<u8>>,
    /// Another location; an empty one takes it away.
    #[serde(with = "as_hex::maybe", skip_serializing_if = "Option::is_none")]
    pub location: Option<Vec<u8>>,
    /// Other free fields, all of them.
    #[serde(with = "as_hex::maybe_each", skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<(String, Vec<u8>)>>,
}

impl Edit {
    /// Refuses, as `Invalid`, an edit that would make of `post` what a draft may not be.
    pub fn check(&self, post: &Post, text_max_chars: usize) -> Result<()> {
        if let Some(Some(language)) = &self.language {
            check_language(language)?;
        }
        let is_empty = |content: &Content| content.text.is_empty() && content.attachments.is_empty();
        let applied = self.applied(post.content());
        if post.header().is_repost() && is_empty(&applied) != is_empty(post.content()) {
            return Err(Error::invalid(
                "an edit cannot turn a repost into a quote, or a quote into a repost: delete it, and post another one",
            ));
        }
        if post.is_plain_repost() {
            applied.check_passes_on(post.header().reply_to.is_some())?;
        }
        applied.check(text_max_chars, post.header().is_repost())
    }

    pub(super) fn applied(&self, before: &Content) -> Content {
        Content {
            text: newer(&self.text, &before.text),
            content_warning: newer(&self.content_warning, &before.content_warning),
            mentions: newer(&self.mentions, &before.mentions),
            hashtags: newer(&self.hashtags, &before.hashtags),
            attachments: newer(&self.attachments, &before.attachments),
            location: newer(&self.location, &before.location),
            fields: newer(&self.fields, &before.fields),
        }
    }
}

fn newer<T: Clone>(new: &Option<T>, old: &T) -> T {
    new.as_ref().unwrap_or(old).clone()
}
