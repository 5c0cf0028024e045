//! The writer of a post, and the account whose outbox it goes into.

use std::borrow::Cow;

use crate::ids::AccountId;
use crate::post::{Draft, Post};

/// In whose outbox somebody posts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PostingPlace {
    /// In its own.
    Own,
    Group,
    Chat,
}

/// The writer of a post, and whose it is: its own, a group's, or a chat's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Byline {
    pub(super) writer: AccountId,
    /// In whose outbox it stands: the group, the chat, or the writer itself.
    pub(super) author: AccountId,
    pub(super) place: PostingPlace,
    /// Whether it has been counted against its writer's limits already, with the opening of its chat.
    pub(super) is_counted: bool,
}

impl Byline {
    pub(super) fn of(writer: AccountId, draft: &Draft) -> Self {
        let (author, place) = match (draft.group, draft.chat) {
            (Some(group), _) if group != writer => (group, PostingPlace::Group),
            (_, Some(chat)) => (chat, PostingPlace::Chat),
            _ => (writer, PostingPlace::Own),
        };
        Self { writer, author, place, is_counted: false }
    }

    /// The byline of a post that is there.
    pub(super) fn of_post(post: &Post) -> Self {
        let place = match (post.chat(), post.group()) {
            (Some(_), _) => PostingPlace::Chat,
            (None, Some(_)) => PostingPlace::Group,
            (None, None) => PostingPlace::Own,
        };
        Self { writer: post.writer(), author: post.header().author, place, is_counted: false }
    }

    /// Whether it is somebody else's outbox.
    pub(super) fn is_elsewhere(self) -> bool {
        self.place != PostingPlace::Own
    }

    /// The post of a draft that was checked.
    pub(super) fn post(self, draft: &Draft) -> Post {
        if !self.is_elsewhere() {
            return Post::new(self.author, draft);
        }
        // Its token is longer by now than one that a caller gives.
        let draft = Draft { token: None, ..draft.clone() };
        Post::new(self.author, &draft).written_by(self.writer)
    }

    /// A draft with the token under which its author keeps it: in a group or a chat each member has tokens of its own.
    pub(super) fn with_own_token(self, draft: &Draft) -> Cow<'_, Draft> {
        let Some(token) = draft.token.as_deref().filter(|_| self.is_elsewhere()) else {
            return Cow::Borrowed(draft);
        };
        Cow::Owned(Draft { token: Some(self.token(token)), ..draft.clone() })
    }

    /// Longer than one that a caller gives, by the member in front.
    pub(super) fn token(self, token: &str) -> String {
        format!("{:x} {token}", self.writer.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::post::TOKEN_LEN_MAX;

    #[test]
    fn in_a_group_each_member_has_tokens_of_its_own() {
        let [ada, ben, group] = [1, 2, 3].map(|id| AccountId::new(id).unwrap());
        let kept =
            |writer, draft: &Draft| Byline::of(writer, draft).with_own_token(draft).token.clone().unwrap();
        let (own, posted) = (Draft::text("x").token("once"), Draft::text("x").token("once").group(group));
        assert_eq!(kept(ada, &own), "once");
        assert_eq!(kept(ada, &posted), kept(ada, &posted));
        assert_ne!(kept(ada, &posted), kept(ben, &posted));
        // As long as a token may be.
        let long = Draft::text("x").token("t".repeat(TOKEN_LEN_MAX)).group(group);
        let by = Byline::of(ada, &long);
        assert_eq!(by.post(&by.with_own_token(&long)).writer(), ada);
        // Of a draft that a group posts itself.
        assert!(!Byline::of(group, &posted).is_elsewhere());
        // A message stays one, whatever it names as its chat.
        assert_eq!(Byline::of(ada, &Draft::text("x").chat(ada)).place, PostingPlace::Chat);
    }
}
