//! Feeds of chosen accounts, for timelines of lists: whose posts, and which of their replies. Pure: no I/O, no clock.

use super::filter::HiddenBecause;
use crate::error::{Error, Result};
use crate::ids::AccountId;
use crate::post::Post;
use crate::reader::ReaderState;

/// Most accounts of a page of chosen ones.
pub const CHOSEN_MAX: usize = 1_000;

/// A choice of which replies of chosen accounts show: always those to the reader, and to their own author's posts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChosenReplies {
    /// Those to somebody whom the reader follows.
    Followed,
    /// Those to one of the chosen accounts.
    #[default]
    Chosen,
    /// No others.
    None,
}

/// Accounts that a page is made of, and which of their replies show on it.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct ChosenAuthors {
    /// Whose posts: up to [`CHOSEN_MAX`]. Who is named twice counts once.
    pub authors: Vec<AccountId>,
    /// Which of their replies show.
    pub replies: ChosenReplies,
}

impl ChosenAuthors {
    /// Gives these accounts, with their replies to each other.
    pub fn of(authors: impl IntoIterator<Item = AccountId>) -> Self {
        Self { authors: authors.into_iter().collect(), replies: ChosenReplies::default() }
    }

    /// Sets which of their replies show.
    #[must_use]
    pub fn replies(self, replies: ChosenReplies) -> Self {
        Self { replies, ..self }
    }
}

/// Chosen accounts as a page asks about them.
#[derive(Debug, Clone)]
pub(crate) struct ChosenSet {
    /// Sorted, each once.
    authors: Vec<AccountId>,
    replies: ChosenReplies,
}

impl ChosenSet {
    pub(super) fn new(chosen: &ChosenAuthors) -> Result<Self> {
        let mut authors = chosen.authors.clone();
        authors.sort_unstable();
        authors.dedup();
        if authors.len() > CHOSEN_MAX {
            let text = format!("too many chosen accounts: {}; at most {CHOSEN_MAX} a page", authors.len());
            return Err(Error::out_of_range(text));
        }
        Ok(Self { authors, replies: chosen.replies })
    }

    /// The chosen accounts that count: whom the reader follows, and itself.
    pub(super) fn counting<'a>(
        &'a self,
        reader: AccountId,
        state: &'a ReaderState,
    ) -> impl Iterator<Item = AccountId> + 'a {
        self.authors.iter().copied().filter(move |author| counts(reader, state, *author))
    }

    /// Whether a post shows as far as it answers somebody, or why not.
    pub(super) fn admits_reply(
        &self,
        reader: AccountId,
        state: &ReaderState,
        post: &Post,
    ) -> Result<(), HiddenBecause> {
        let Some(parent) = post.header().reply_to else { return Ok(()) };
        let to = parent.author;
        let is_shown = to == post.header().author
            || to == reader
            || match self.replies {
                ChosenReplies::Followed => state.follows(to.get()),
                ChosenReplies::Chosen => counts(reader, state, to) && self.authors.binary_search(&to).is_ok(),
                ChosenReplies::None => false,
            };
        if is_shown { Ok(()) } else { Err(HiddenBecause::NotAsked) }
    }
}

fn counts(reader: AccountId, state: &ReaderState, author: AccountId) -> bool {
    author == reader || state.follows(author.get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PostId;
    use crate::post::{Draft, PostRef};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn id(id: u64) -> AccountId {
        AccountId::new(id).unwrap()
    }

    #[test]
    fn who_is_chosen_twice_counts_once_and_there_is_a_bound() {
        let twice = (1..=CHOSEN_MAX as u64).chain(1..=CHOSEN_MAX as u64).map(id);
        assert_eq!(ChosenSet::new(&ChosenAuthors::of(twice)).unwrap().authors.len(), CHOSEN_MAX);
        let many = ChosenAuthors::of((1..=CHOSEN_MAX as u64 + 1).map(id));
        let refused = ChosenSet::new(&many).unwrap_err().to_string();
        assert!(refused.contains("too many chosen accounts: 1001; at most 1000 a page"), "{refused}");
    }

    proptest! {
        /// The rule in words, account by account.
        #[test]
        fn a_reply_shows_to_whom_the_rule_says(
            chosen in proptest::collection::vec(1u64..8, 0..8),
            follows in proptest::collection::btree_set(2u64..8, 0..6),
            author in 1u64..8, to in proptest::option::of(1u64..8), rule in 0usize..3,
        ) {
            const READER: u64 = 1;
            let replies = [ChosenReplies::Followed, ChosenReplies::Chosen, ChosenReplies::None][rule];
            let state = ReaderState::of(&follows.iter().copied().collect::<Vec<_>>(), &[], &[]);
            let authors = ChosenAuthors::of(chosen.iter().copied().map(id)).replies(replies);
            let set = ChosenSet::new(&authors).unwrap();
            let members: BTreeSet<u64> =
                chosen.iter().copied().filter(|of| *of == READER || follows.contains(of)).collect();
            let counting: BTreeSet<u64> = set.counting(id(READER), &state).map(AccountId::get).collect();
            prop_assert_eq!(&counting, &members);
            let post = PostId::from_u64(9).unwrap();
            let draft = match to {
                None => Draft::text("no reply"),
                Some(to) => Draft::text("so").reply_to(PostRef { id: post, author: id(to) }),
            };
            let wanted = match to {
                None => true,
                Some(to) if to == author || to == READER => true,
                Some(to) => match rule {
                    0 => follows.contains(&to),
                    1 => members.contains(&to),
                    _ => false,
                },
            };
            let post = Post::new(id(author), &draft);
            prop_assert_eq!(set.admits_reply(id(READER), &state, &post).is_ok(), wanted);
        }
    }
}
