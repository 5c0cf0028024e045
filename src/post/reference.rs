//! References of a post: to what it answers, reposts or quotes.

use super::{Draft, Post, PostRef};

/// A reference of a post to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Reference {
    pub(crate) kind: u8,
    /// What is referred to.
    pub(crate) to: PostRef,
}

impl Reference {
    pub(crate) const REPLY: u8 = b'r';
    pub(crate) const REPOST: u8 = b'o';
    /// A repost with a comment.
    pub(crate) const QUOTE: u8 = b'q';

    /// The references of a draft: to what it reposts or quotes, and to what it answers.
    pub(crate) fn of_draft(draft: &Draft) -> Vec<Self> {
        Self::all(draft.repost_of, draft.is_plain_repost(), draft.reply_to)
    }

    /// Gives what a post refers to.
    pub(crate) fn of_post(post: &Post) -> Vec<Self> {
        Self::all(post.header().original, post.is_plain_repost(), post.header().reply_to)
    }

    fn all(original: Option<PostRef>, is_plain: bool, parent: Option<PostRef>) -> Vec<Self> {
        let of = |kind| move |to| Self { kind, to };
        let passed_on = original.map(of(if is_plain { Self::REPOST } else { Self::QUOTE }));
        passed_on.into_iter().chain(parent.map(of(Self::REPLY))).collect()
    }

    /// The bytes that stand behind the post and its author in an entry.
    pub(crate) fn stored(self) -> Vec<u8> {
        let mut stored = vec![self.kind];
        stored.extend(self.to.id.get().to_be_bytes());
        stored.extend(self.to.author.to_bytes());
        stored
    }
}
