//! The state of an owner in an archive: how far it has got, and what may change that.

use std::cmp::Ordering;

use super::post::{ArchivedPost, MemberList};
use crate::bucket::Bucket;
use crate::ids::{AccountId, PostId};

/// An author of posts, and the bucket that decides about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// Where everything lies that says which posts are in the archive.
    pub bucket: Bucket,
    /// Who.
    pub account: AccountId,
}

/// A right to change what an archive has of one owner: given out by the owner's bucket, each with a higher number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ArchiveToken {
    /// Counts up from 1.
    pub number: u64,
    /// Tells two apart that got the same number, as after a failover that forgot the first one.
    pub nonce: [u8; 8],
}

/// The state of an owner in an archive: how far it has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerState {
    /// The token of the last change.
    pub token: ArchiveToken,
    /// All posts of the owner up to this one that were not deleted are in the archive.
    pub upto: PostId,
    /// The owner was deleted: nothing comes in any more.
    pub is_buried: bool,
}

/// The state that an archive must have before a change makes sense: what the owner's bucket took for settled when the
/// change began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Prerequisite {
    /// The last change was made with a token of at least this number; 0: there may be none.
    pub token_number: u64,
    /// Up to which post all are there.
    pub upto: Option<PostId>,
}

/// A change of what an archive has of one owner.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnerChange {
    /// Of whom.
    pub owner: Owner,
    /// The right to make it; a change that is made again carries the same one.
    pub token: ArchiveToken,
    /// What must be there already.
    pub needs: Prerequisite,
    /// Up to which post the archive has all afterwards; a lower one than it has changes nothing.
    pub upto: PostId,
    /// Posts that come in, or that stand there anew. A list of a post that isn't among its own stays as it is, and so
    /// does a part of it that isn't.
    pub posts: Vec<(ArchivedPost, Vec<MemberList>)>,
    /// Posts that go, with their lists.
    pub erased: Vec<PostId>,
    /// Whether the owner was deleted.
    pub buries: bool,
}

/// The reason why a change was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeRefusal {
    /// Another change has come after this one: begin again with a token above this number.
    Passed(u64),
    /// The archive lacks what it once had: it is older than what the owner's bucket knows.
    Behind(Option<OwnerState>),
    /// The owner was deleted.
    Buried,
}

/// The outcome of a change.
pub type ChangeOutcome = Result<(), ChangeRefusal>;

impl OwnerChange {
    /// Says how far the owner has got with this change, by how far it had got before.
    ///
    /// # Errors
    /// Says why it must not be made. History: a mover looks at a post and is frozen; another one moves it, it is
    /// brought back, liked, moved again; the first one goes on by its old look, and the like is lost.
    pub fn judge(&self, before: Option<&OwnerState>) -> Result<OwnerState, ChangeRefusal> {
        let Some(before) = before else {
            let needs_nothing = self.needs.token_number == 0 && self.needs.upto.is_none();
            return match needs_nothing {
                true => Ok(OwnerState { token: self.token, upto: self.upto, is_buried: self.buries }),
                // H169: a database comes back without what it had; a move begins it anew, and from then on nobody
                // sees the hole.
                false => Err(ChangeRefusal::Behind(None)),
            };
        };
        if before.is_buried && !(self.posts.is_empty() && self.upto <= before.upto) {
            return Err(ChangeRefusal::Buried);
        }
        let lacks = |upto: PostId| before.upto < upto;
        if before.token.number < self.needs.token_number || self.needs.upto.is_some_and(lacks) {
            return Err(ChangeRefusal::Behind(Some(*before)));
        }
        match before.token.number.cmp(&self.token.number) {
            Ordering::Less => {}
            Ordering::Equal if before.token.nonce == self.token.nonce => {}
            Ordering::Equal | Ordering::Greater => {
                return Err(ChangeRefusal::Passed(before.token.number));
            }
        }
        Ok(OwnerState {
            token: self.token,
            upto: before.upto.max(self.upto),
            is_buried: before.is_buried || self.buries,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> PostId {
        PostId::from_u64(number).unwrap()
    }

    fn token(number: u64, nonce: u8) -> ArchiveToken {
        ArchiveToken { number, nonce: [nonce; 8] }
    }

    fn change(number: u64, upto: u64) -> OwnerChange {
        OwnerChange {
            owner: Owner { bucket: Bucket(1), account: AccountId::new(7).unwrap() },
            token: token(number, 1),
            needs: Prerequisite::default(),
            upto: id(upto),
            posts: Vec::new(),
            erased: Vec::new(),
            buries: false,
        }
    }

    fn state(number: u64, upto: u64) -> OwnerState {
        OwnerState { token: token(number, 1), upto: id(upto), is_buried: false }
    }

    #[test]
    fn a_change_is_made_once_and_can_be_made_again_until_another_one_comes_after_it() {
        let first = change(1, 10);
        let after = first.judge(None).unwrap();
        assert_eq!(after, state(1, 10));
        assert_eq!(first.judge(Some(&after)), Ok(after), "the same again");
        let second = change(2, 5).judge(Some(&after)).unwrap();
        assert_eq!(second, state(2, 10), "what is there stays there");
        assert_eq!(first.judge(Some(&second)), Err(ChangeRefusal::Passed(2)));
    }

    #[test]
    fn two_tokens_of_one_number_are_told_apart() {
        let other = OwnerChange { token: token(1, 2), ..change(1, 10) };
        assert_eq!(other.judge(Some(&state(1, 10))), Err(ChangeRefusal::Passed(1)));
    }

    #[test]
    fn an_archive_that_lacks_what_it_had_takes_nothing_in() {
        let by_token = OwnerChange { needs: Prerequisite { token_number: 3, upto: None }, ..change(4, 20) };
        let by_posts =
            OwnerChange { needs: Prerequisite { token_number: 0, upto: Some(id(15)) }, ..change(4, 20) };
        for needing in [&by_token, &by_posts] {
            assert_eq!(needing.judge(None), Err(ChangeRefusal::Behind(None)));
            let behind = state(2, 10);
            assert_eq!(needing.judge(Some(&behind)), Err(ChangeRefusal::Behind(Some(behind))));
            assert!(needing.judge(Some(&state(3, 15))).is_ok());
        }
        // It is behind whatever the number of the change is: the number was given out by who knows more.
        let late = OwnerChange { token: token(1, 1), ..by_token };
        assert!(matches!(late.judge(Some(&state(2, 10))), Err(ChangeRefusal::Behind(_))));
    }

    #[test]
    fn who_was_deleted_gets_nothing_in_and_everything_out() {
        let buried = OwnerChange { buries: true, ..change(5, 0) }.judge(Some(&state(4, 10))).unwrap();
        assert_eq!(buried, OwnerState { is_buried: true, ..state(5, 10) });
        let erasing = OwnerChange { erased: vec![id(3)], ..change(6, 10) };
        assert!(erasing.judge(Some(&buried)).unwrap().is_buried);
        assert_eq!(change(6, 11).judge(Some(&buried)), Err(ChangeRefusal::Buried));
        let post = ArchivedPost::new(id(9), erasing.owner.account, 1, b"x".to_vec());
        let moving = OwnerChange { posts: vec![(post, Vec::new())], ..change(6, 10) };
        assert_eq!(moving.judge(Some(&buried)), Err(ChangeRefusal::Buried));
    }
}
