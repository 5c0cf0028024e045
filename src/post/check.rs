//! Checks that refuse drafts and edits before they are stored.

use std::collections::HashSet;
use std::fmt::{Debug, Display};
use std::hash::Hash;

use super::{
    ATTACHMENTS_MAX, AUDIENCE_MAX, Content, Draft, FIELD_KEY_LEN_MAX, FIELDS_MAX, HASHTAG_LEN_MAX,
    HASHTAGS_MAX, LANGUAGE_LEN_MAX, LOCATION_MAX, MENTIONS_MAX, TEXT_BYTES_MAX, TOKEN_LEN_MAX, Visibility,
    sections,
};
use crate::error::{Error, ErrorCode, Result};
use crate::ids::PostId;

impl Draft {
    /// Refuses, as `Invalid`, what cannot be stored or could not be meant; the message has the values.
    ///
    /// `text_max_chars` bounds text and content warning together. Each also has at most
    /// [`TEXT_BYTES_MAX`] bytes, however high `text_max_chars` is.
    pub fn check(&self, text_max_chars: usize) -> Result<()> {
        self.check_audience()?;
        self.check_place()?;
        self.check_references()?;
        if let Some(language) = &self.language {
            check_language(language)?;
        }
        if let Some(token) = &self.token {
            check_len("token", token.len(), 1, TOKEN_LEN_MAX)?;
        }
        if self.is_plain_repost() {
            self.content.check_passes_on(self.reply_to.is_some())?;
        }
        self.content.check(text_max_chars, self.repost_of.is_some())
    }

    fn check_audience(&self) -> Result<()> {
        check_list("only_to", &self.only_to, AUDIENCE_MAX)?;
        check_list("not_to", &self.not_to, AUDIENCE_MAX)?;
        let (only, not) = (self.readers().len(), self.not_to.len());
        if self.visibility == Some(Visibility::Direct) && only == 0 {
            return Err(Error::invalid("a direct post without readers: name them in only_to or mentions"));
        }
        if only > 0 && not > 0 {
            return Err(Error::invalid(format!(
                "a post names {only} accounts that may read it and {not} that may not: name only the ones, or \
                 only the others (`not_to`)"
            )));
        }
        Ok(())
    }

    /// A group says how far its posts go, a chat whom it has; both hold what their members say.
    fn check_place(&self) -> Result<()> {
        let into = match (self.group, self.chat) {
            (None, None) => return Ok(()),
            (Some(_), Some(_)) => {
                return Err(Error::invalid("a post into a group and into a chat: name one of them"));
            }
            (Some(_), None) => "group",
            (None, Some(_)) => "chat",
        };
        let said = [
            ("a visibility", self.visibility.is_some()),
            ("readers of its own (only_to, not_to)", !self.only_to.is_empty() || !self.not_to.is_empty()),
            ("no text and no attachments", self.is_plain_repost()),
        ];
        match said.iter().find(|(_, is_so)| *is_so) {
            Some((what, _)) => Err(Error::invalid(format!(
                "a post into a {into} with {what}: the {into} says how far it goes, and holds what its members say"
            ))),
            None => Ok(()),
        }
    }

    /// An id of 0 means "none" where it is stored.
    fn check_references(&self) -> Result<()> {
        let named = [
            ("repost_of", self.repost_of.map(|post| post.id)),
            ("reply_to", self.reply_to.map(|post| post.id)),
            ("conversation", self.conversation),
        ];
        match named.iter().find(|(_, id)| id.map(PostId::get) == Some(0)) {
            Some((what, _)) => Err(Error::invalid(format!("{what} is post 0; ids begin at 1"))),
            None => Ok(()),
        }
    }
}

impl Content {
    pub(super) fn check(&self, text_max_chars: usize, is_repost: bool) -> Result<()> {
        self.check_text(text_max_chars)?;
        if self.text.trim().is_empty() && self.attachments.is_empty() && !is_repost {
            return Err(Error::invalid(
                "an empty post: it needs a text, attachments, or a post that it reposts",
            ));
        }
        check_list("mentions", &self.mentions, MENTIONS_MAX)?;
        for (i, hashtag) in self.hashtags.iter().enumerate() {
            check_len(format_args!("hashtag {}", i + 1), hashtag.len(), 1, HASHTAG_LEN_MAX)?;
        }
        check_list("hashtags", &self.hashtags, HASHTAGS_MAX)?;
        check_len("attachments", self.attachments.len(), 0, ATTACHMENTS_MAX)?;
        check_len("location", self.location.len(), 0, LOCATION_MAX)?;
        self.check_fields()
    }

    /// A plain repost stands for its original: what says something of its own makes it another post.
    pub(super) fn check_passes_on(&self, is_reply: bool) -> Result<()> {
        let said = [
            ("hashtags", !self.hashtags.is_empty()),
            ("mentions", !self.mentions.is_empty()),
            ("a content warning", self.content_warning.is_some()),
            ("a post that it answers", is_reply),
        ];
        match said.iter().find(|(_, is_there)| *is_there) {
            Some((what, _)) => Err(Error::invalid(format!(
                "a repost without a text or attachments cannot have {what}: leave that out, or write a text"
            ))),
            None => Ok(()),
        }
    }

    fn check_text(&self, max_chars: usize) -> Result<()> {
        let warning = self.content_warning.as_deref();
        check_len("text", self.text.len(), 0, TEXT_BYTES_MAX)?;
        if let Some(warning) = warning {
            check_len("content warning", warning.len(), 1, TEXT_BYTES_MAX)?;
        }
        let chars = self.text.chars().count() + warning.map_or(0, |warning| warning.chars().count());
        if chars > max_chars {
            return Err(Error::out_of_range(format!(
                "text and content warning: {chars} characters together; at most {max_chars} are allowed"
            )));
        }
        Ok(())
    }

    fn check_fields(&self) -> Result<()> {
        // The whole first: it bounds the work that follows, and the messages.
        check_len("fields with their lengths", sections::fields_len(&self.fields), 0, FIELDS_MAX)?;
        for (key, _) in &self.fields {
            check_len(format_args!("field key {key:?}"), key.len(), 1, FIELD_KEY_LEN_MAX)?;
        }
        check_distinct("fields", self.fields.iter().map(|(key, _)| key))
    }
}

pub(super) fn check_language(language: &str) -> Result<()> {
    check_len("language", language.len(), 1, LANGUAGE_LEN_MAX)?;
    if is_language(language.as_bytes()) {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::Malformed,
        format!("language {language:?}: only ASCII letters, digits and hyphens are allowed"),
    ))
}

pub(crate) fn is_language(bytes: &[u8]) -> bool {
    (1..=LANGUAGE_LEN_MAX).contains(&bytes.len())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

fn check_len(what: impl Display, len: usize, min: usize, max: usize) -> Result<()> {
    if (min..=max).contains(&len) {
        return Ok(());
    }
    Err(Error::out_of_range(format!("{what}: {len} bytes; {min} to {max} are allowed")))
}

fn check_list<T: Debug + Eq + Hash>(what: &str, list: &[T], max: usize) -> Result<()> {
    if list.len() > max {
        return Err(Error::out_of_range(format!(
            "{what}: {} entries; at most {max} are allowed",
            list.len()
        )));
    }
    check_distinct(what, list)
}

fn check_distinct<'a, T: Debug + Eq + Hash + 'a>(
    what: &str,
    list: impl IntoIterator<Item = &'a T>,
) -> Result<()> {
    let mut seen = HashSet::new();
    match list.into_iter().find(|entry| !seen.insert(*entry)) {
        Some(entry) => Err(Error::invalid(format!("{what}: {entry:?} is named twice"))),
        None => Ok(()),
    }
}
