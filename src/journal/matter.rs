//! The matters that tasks put in line.

use crate::ids::{AccountId, PostId};
use crate::post::PostRef;

/// Something derived that a task puts in line. Each task in a journal says what it is about; who finds one of these out
/// of step knows by equality whether somebody is at work on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Matter {
    /// All that an account has: it is buried.
    Burial(AccountId),
    /// The same, for what no account is known of.
    AnyBurial,
    /// Whether one account follows another, as the other's side has it.
    Follow { reader: AccountId, author: AccountId },
    /// The same for all who follow an account, or ask to.
    FollowsOf(AccountId),
    /// How many follow an account: whoever comes or goes is counted at the end of that.
    FollowerCount(AccountId),
    /// Whether an account is pushed or pulled.
    Mode(AccountId),
    /// A post in the homes of who should have it.
    Delivery(PostRef),
    /// A post on the list of another one.
    Reference { post: PostRef, to: PostRef },
    /// What a post is found by.
    Search(PostRef),
    /// A post on lists of mentions and hashtags.
    NamedLists(PostRef),
    /// An account on the list of who likes a post.
    Tie { account: AccountId, post: PostRef },
    /// The lists of a post that is gone.
    ListsOf(PostId),
    /// An account on the lists of how its names begin.
    Names(AccountId),
}

impl Matter {
    /// All that is about one who follows, or asks to, and the one who is followed.
    pub(crate) fn between(reader: AccountId, author: AccountId) -> Vec<Self> {
        let follow = Self::Follow { reader, author };
        vec![Self::Burial(reader), Self::Burial(author), follow, Self::FollowsOf(author)]
    }

    /// Whether it names an account.
    pub(super) fn concerns(self, account: AccountId) -> bool {
        match self {
            Self::Burial(of)
            | Self::FollowsOf(of)
            | Self::FollowerCount(of)
            | Self::Mode(of)
            | Self::Names(of) => of == account,
            Self::Follow { reader, author } => [reader, author].contains(&account),
            Self::Tie { account: of, post } => [of, post.author].contains(&account),
            Self::Reference { post, to } => [post.author, to.author].contains(&account),
            Self::Delivery(post) | Self::NamedLists(post) | Self::Search(post) => post.author == account,
            Self::ListsOf(_) | Self::AnyBurial => false,
        }
    }

    /// Whether it names a post.
    pub(super) fn is_about(self, post: PostId) -> bool {
        match self {
            Self::Delivery(of) | Self::NamedLists(of) | Self::Search(of) | Self::Tie { post: of, .. } => {
                of.id == post
            }
            Self::Reference { post: of, to } => [of.id, to.id].contains(&post),
            Self::ListsOf(of) => of == post,
            Self::Burial(_)
            | Self::AnyBurial
            | Self::FollowsOf(_)
            | Self::FollowerCount(_)
            | Self::Follow { .. }
            | Self::Mode(_)
            | Self::Names(_) => false,
        }
    }
}
