//! Who publishes, and into whose outbox.

use std::borrow::Cow;

use crate::ids::AccountId;
use crate::post::{Draft, Post};

/// Who publishes a post, and whose it is: its own, or a group's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Byline {
    pub(super) writer: AccountId,
    /// In whose outbox it stands: the group, or the writer itself.
    pub(super) author: AccountId,
}

impl Byline {
    pub(super) fn of(writer: AccountId, draft: &Draft) -> Self {
        Self { writer, author: draft.group.unwrap_or(writer) }
    }

    pub(super) fn group(self) -> Option<AccountId> {
        (self.author != self.writer).then_some(self.author)
    }

    /// The post of a draft that was checked.
    pub(super) fn post(self, draft: &Draft) -> Post {
        if self.group().is_none() {
            return Post::new(self.author, draft);
        }
        // Its token is longer by now than one that a caller gives.
        let draft = Draft { token: None, ..draft.clone() };
        Post::new(self.author, &draft).written_by(self.writer)
    }

    /// A draft with the token under which its author keeps it: in a group each member has tokens of its own.
    pub(super) fn with_own_token(self, draft: &Draft) -> Cow<'_, Draft> {
        let Some(token) = draft.token.as_deref().filter(|_| self.group().is_some()) else {
            return Cow::Borrowed(draft);
        };
        Cow::Owned(Draft { token: Some(self.token(token)), ..draft.clone() })
    }

    /// Longer than one that a caller gives, by the member in front.
    fn token(self, token: &str) -> String {
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
        assert_eq!(Byline::of(group, &posted).group(), None);
    }
}
