//! Lists of posts in an archive: what of mentions and hashtags lies below their bounds.

use crate::bucket::Bucket;
use crate::ids::{AccountId, PostId};

/// A list of posts that goes on in an archive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ListKey {
    /// The bucket in which its upper end lies.
    pub bucket: Bucket,
    /// Its name there: at most 64 bytes.
    pub name: Vec<u8>,
}

/// A place on such a list: when a post was written, then which it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListPlace {
    /// Milliseconds since 1970.
    pub unix_ms: u64,
    /// The post.
    pub post: PostId,
}

/// A post on such a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListedPost {
    /// Where.
    pub place: ListPlace,
    /// Its author.
    pub author: AccountId,
}

/// A change of one list. Each can be made again; whether a post is there that one call adds and another one takes off
/// is decided by the later of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostListChange {
    /// Of which list.
    pub list: ListKey,
    /// Posts that come onto it.
    pub added: Vec<ListedPost>,
    /// Posts that go off it.
    pub removed: Vec<ListedPost>,
    /// What it is known by afterwards: a number that only rises, so that a lower one changes nothing. Whoever finds the
    /// number again that it has given knows that its change is there.
    pub stamp: u64,
}

/// A question for posts of one list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostListAsk {
    /// Of which list.
    pub list: ListKey,
    /// Where they begin: what stands at this place isn't among them.
    pub edge: ListPlace,
    /// How many at most: up to [`PAGE_MAX`](super::PAGE_MAX).
    pub most: usize,
}

/// Posts of one list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostListPage {
    /// The highest number that a change of it has given; 0: it was never changed. A lower one than somebody has found
    /// there: the archive lacks what it once had.
    pub stamp: u64,
    /// The posts. Fewer than asked for: there are no more.
    pub posts: Vec<ListedPost>,
}
