//! What is looked at in one go, and what a key asks to have looked at.

use super::key::Form;
use crate::bucket::Bucket;
use crate::ids::{AccountId, Claim, PostId};
use crate::post::{PostList, PostRef, Reference};
use crate::reader::Tie;
use crate::sharded::LocalKey;

/// Something to look at. Whoever looks at one finds all that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Unit {
    /// An account's record: its counts, its mode, whether it is buried.
    Record(AccountId),
    /// All that somebody has a pull mark for.
    Marks(AccountId),
    /// One follow, from both sides.
    Pair(AccountId, AccountId),
    /// What somebody asks, approves, or is asked.
    Requests(AccountId, u8),
    /// One request, from both sides.
    Request(AccountId, AccountId),
    Home(AccountId),
    Outbox(AccountId),
    /// A post: whether its outbox has it, and those that it answers or reposts list it.
    Post(PostId),
    /// Whether a post and its outbox agree.
    Listed {
        post: PostId,
        author: AccountId,
    },
    /// Whether a post is on a list, and should be.
    Listing {
        post: PostRef,
        to: Reference,
    },
    /// The same for a list of mentions, or of a hashtag.
    ListEntry {
        post: PostId,
        author: AccountId,
        list: PostList,
    },
    /// One like or bookmark, from both sides.
    Tie {
        account: AccountId,
        post: PostRef,
        what: Tie,
    },
    /// What an account has noted of a repost.
    Reposted {
        account: AccountId,
        original: PostRef,
    },
    /// A local set with all its members.
    Set(LocalKey),
    /// The same without what its members mean.
    Structure(LocalKey),
    Piece(LocalKey, u32),
    Guard(LocalKey),
    /// Whether a claim is the account's that it names.
    Claim(Claim),
    /// What an account says of its names, and whether these say so too.
    Credentials(AccountId),
    /// A key of somebody who may not be there, a token, or one that nobody knows.
    Key(Vec<u8>),
    Journal(Bucket),
    Days(Bucket),
    Living,
}

impl Unit {
    /// What a key asks to have looked at.
    pub(super) fn of(form: Form, key: Vec<u8>) -> Option<Self> {
        Some(match form {
            Form::Other => return None,
            Form::Journal(bucket) => Self::Journal(bucket),
            Form::Days(bucket) => Self::Days(bucket),
            Form::Living => Self::Living,
            Form::Record(account) => Self::Record(account),
            Form::Marks(account) => Self::Marks(account),
            Form::Home(account) => Self::Home(account),
            Form::Outbox(account) => Self::Outbox(account),
            Form::Requests(account, letter) => Self::Requests(account, letter),
            Form::Post(post) => Self::Post(post),
            Form::Set(set) => Self::Set(set),
            Form::Piece(set, piece) => Self::Piece(set, piece),
            Form::Guard(set) => Self::Guard(set),
            Form::Claim(claim) => Self::Claim(claim),
            Form::Credentials(account) => Self::Credentials(account),
            Form::Profile(_) | Form::Token(_) | Form::ReportToken(_) | Form::Unknown => Self::Key(key),
        })
    }
}
