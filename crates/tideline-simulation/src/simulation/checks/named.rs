//! What must be true of posts at home that mention somebody of whom their reader doesn't want to hear.

use std::rc::Rc;

use super::Before;
use crate::ids::{AccountId, PostId};
use crate::post::Post;
use crate::simulation::truth::{self, State};
use crate::simulation::world::World;

impl Before {
    /// Whether a post, or what it reposts, mentions somebody whom the reader has muted or blocked all the time.
    pub(super) fn names_unwanted(
        &self,
        w: &World,
        own: &[Rc<State>],
        reader: AccountId,
        (id, author): (u64, AccountId),
    ) -> bool {
        let Some(post) = truth::post(w, id, author) else { return false };
        let since = self.of(author, reader).command;
        // What was read, or lies in a cache, may be what it said before.
        let is_stable = !PostId::from_u64(id).is_ok_and(|id| w.was_edited(id, since))
            && !w.has_failed_over(author, since);
        let is_unwanted = |other: &AccountId| {
            own.iter().all(|s| s.blocks.contains_key(other))
                || own.iter().all(|s| s.mutes_at(*other, w.now_ms()))
        };
        let names_one = author != reader && post.content().mentions.iter().any(is_unwanted);
        is_stable && names_one
            || post
                .passes_on()
                .is_some_and(|of| self.names_unwanted(w, own, reader, (of.id.get(), of.author)))
    }

    /// Whether neither a post nor what it reposts has ever mentioned somebody whom the reader mutes or blocks.
    pub(super) fn names_nobody_unwanted(
        &self,
        w: &World,
        reader: AccountId,
        own: &[Rc<State>],
        post: &Post,
    ) -> bool {
        if post.header().author == reader {
            return true;
        }
        let is_unwanted = |other: &AccountId| {
            own.iter().any(|s| s.mutes_at(*other, self.own.ms) || s.blocks.contains_key(other))
        };
        let names_one = w.accounts.iter().any(|other| post.mentioned_ever(*other) && is_unwanted(other));
        let original = post.passes_on().and_then(|of| truth::post(w, of.id.get(), of.author));
        !names_one && original.is_none_or(|of| self.names_nobody_unwanted(w, reader, own, &of))
    }
}
