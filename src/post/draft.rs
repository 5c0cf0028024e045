//! Drafts of posts, as a caller publishes them.

use super::{Content, PostRef, Visibility};
use crate::ids::{AccountId, PostId};

/// The most that another instance's clock may be ahead for a post still to stand above one that it names.
const CLOCKS_APART_MS: u64 = 1_000;

/// A post before it has an author, an id or counters.
///
/// Nothing is refused while it is put together; [`check`](Self::check) does, and must come before
/// [`Post::new`](super::Post::new).
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[must_use]
pub struct Draft {
    /// The content: what it says.
    pub content: Content,
    /// Whether to hide the attachments at first.
    pub sensitive: bool,
    /// The text's language: 1 to 8 ASCII letters, digits or hyphens.
    pub language: Option<String>,
    /// The visibility; `None`: to everybody, or to followers if its author is locked when it is published.
    pub visibility: Option<Visibility>,
    /// The only accounts that may read it, if there are any; excludes `not_to`.
    pub only_to: Vec<AccountId>,
    /// These accounts may not read it; excludes `only_to`.
    pub not_to: Vec<AccountId>,
    /// The post that this passes on; with a text of its own it is a quote.
    pub repost_of: Option<PostRef>,
    /// The post that this answers. What answers a post of a chat, or of a private group, and goes elsewhere tells
    /// nobody of it: it is published as if it answered nothing.
    pub reply_to: Option<PostRef>,
    /// The first post of the conversation.
    pub conversation: Option<PostId>,
    /// The group that it is posted into, which says how far it goes: no visibility, no audience of its own. `None`: to
    /// its author's own followers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<AccountId>,
    /// The chat that it is a message of: its members read it, and nobody else. No visibility, no audience of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat: Option<AccountId>,
    /// 1 to 64 bytes by which publishing twice is recognized; not stored in the post.
    pub token: Option<String>,
}

impl Draft {
    /// A post with this text; public, unless its author is locked or says otherwise.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: Content { text: text.into(), ..Content::default() }, ..Self::default() }
    }

    /// A post that passes another one on, with no text of its own.
    pub fn repost(original: PostRef) -> Self {
        Self { repost_of: Some(original), ..Self::default() }
    }

    /// Shows `warning` before the text.
    pub fn content_warning(mut self, warning: impl Into<String>) -> Self {
        self.content.content_warning = Some(warning.into());
        self
    }

    /// Hides the attachments at first.
    pub fn sensitive(self) -> Self {
        Self { sensitive: true, ..self }
    }

    /// Sets the language that the text is in.
    pub fn language(self, language: impl Into<String>) -> Self {
        Self { language: Some(language.into()), ..self }
    }

    /// Sets how far it goes.
    pub fn visibility(self, visibility: Visibility) -> Self {
        Self { visibility: Some(visibility), ..self }
    }

    /// Lets only these accounts read it.
    pub fn only_to(self, accounts: impl IntoIterator<Item = AccountId>) -> Self {
        Self { only_to: accounts.into_iter().collect(), ..self }
    }

    /// Keeps these accounts from reading it.
    pub fn not_to(self, accounts: impl IntoIterator<Item = AccountId>) -> Self {
        Self { not_to: accounts.into_iter().collect(), ..self }
    }

    /// Names the accounts that the text mentions; they are a direct post's readers if `only_to` names none.
    pub fn mentions(mut self, accounts: impl IntoIterator<Item = AccountId>) -> Self {
        self.content.mentions = accounts.into_iter().collect();
        self
    }

    /// Gives the post hashtags.
    pub fn hashtags<S: Into<String>>(mut self, hashtags: impl IntoIterator<Item = S>) -> Self {
        self.content.hashtags = hashtags.into_iter().map(Into::into).collect();
        self
    }

    /// Gives the post attachments, described in the caller's own way.
    pub fn attachments(mut self, attachments: impl Into<Vec<u8>>) -> Self {
        self.content.attachments = attachments.into();
        self
    }

    /// Gives the post a location, described in the caller's own way.
    pub fn location(mut self, location: impl Into<Vec<u8>>) -> Self {
        self.content.location = location.into();
        self
    }

    /// Adds one of the caller's own fields.
    pub fn field(mut self, key: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.content.fields.push((key.into(), value.into()));
        self
    }

    /// Makes it a quote of `original`.
    pub fn quoting(self, original: PostRef) -> Self {
        Self { repost_of: Some(original), ..self }
    }

    /// Makes it an answer to `parent`.
    pub fn reply_to(self, parent: PostRef) -> Self {
        Self { reply_to: Some(parent), ..self }
    }

    /// Sets the post that began the conversation.
    pub fn conversation(self, root: PostId) -> Self {
        Self { conversation: Some(root), ..self }
    }

    /// Posts it into a group: whoever is a member of it may.
    pub fn group(self, group: AccountId) -> Self {
        Self { group: Some(group), ..self }
    }

    /// Writes it into a chat: whoever is a member of it may.
    pub fn chat(self, chat: AccountId) -> Self {
        Self { chat: Some(chat), ..self }
    }

    /// Makes publishing it twice the same as once.
    pub fn token(self, token: impl Into<String>) -> Self {
        Self { token: Some(token.into()), ..self }
    }

    /// Whether it only passes another post on: without a text and attachments of its own.
    pub fn is_plain_repost(&self) -> bool {
        self.repost_of.is_some() && self.content.text.is_empty() && self.content.attachments.is_empty()
    }

    /// The moment that it is posted at: now, or just after the posts that it answers or passes on, of this very
    /// millisecond or by a clock that is a little ahead (H217).
    pub(crate) fn moment(&self, now_ms: u64) -> u64 {
        let named = [self.repost_of, self.reply_to].into_iter().flatten().map(|post| post.id.unix_ms());
        let latest = named.filter(|ms| (now_ms..now_ms.saturating_add(CLOCKS_APART_MS)).contains(ms)).max();
        latest.map_or(now_ms, |ms| ms + 1)
    }

    /// The accounts that become the stored only-to list. The mentions of a direct post are written down as its
    /// audience, because an edit may change the mentions and must not change who reads.
    pub(super) fn readers(&self) -> &[AccountId] {
        if self.visibility == Some(Visibility::Direct) && self.only_to.is_empty() {
            &self.content.mentions
        } else {
            &self.only_to
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named_at(ms: u64) -> PostRef {
        PostRef { id: PostId::from_u64(ms << 16 | 7).unwrap(), author: AccountId::new(1).unwrap() }
    }

    #[test]
    fn what_names_a_post_is_posted_after_it() {
        let draft = Draft::text("so");
        assert_eq!(draft.moment(5_000), 5_000);
        assert_eq!(draft.clone().reply_to(named_at(4_999)).moment(5_000), 5_000);
        assert_eq!(draft.clone().reply_to(named_at(5_000)).moment(5_000), 5_001);
        assert_eq!(draft.clone().quoting(named_at(5_999)).moment(5_000), 6_000);
        let both = draft.clone().quoting(named_at(5_400)).reply_to(named_at(5_200));
        assert_eq!(both.moment(5_000), 5_401);
        // One that is far ahead lifts nothing.
        assert_eq!(draft.reply_to(named_at(6_000)).moment(5_000), 5_000);
    }
}
