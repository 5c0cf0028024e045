//! Text search: which words which posts have, and finding these.
//!
//! An archive knows words and no texts: how a text becomes words is the engine's matter, so all archives find the same.

use crate::bucket::Bucket;
use crate::ids::{AccountId, PostId};

/// The most posts in one call that changes the index or asks after versions.
pub const INDEXED_MAX: usize = 256;
/// The most words that one search asks for.
pub const SEARCH_WORDS_MAX: usize = 16;
/// The most bytes of a word.
pub const WORD_LEN_MAX: usize = 64;

/// A post in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexKey {
    /// The bucket of its id.
    pub bucket: Bucket,
    /// Which post.
    pub post: PostId,
}

/// The version of what stands in the index of one post, new after each change: 8 random bytes, compared for equality
/// only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IndexVersion(pub [u8; 8]);

/// The words by which a post is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedPost {
    /// Who finds it, whoever else does.
    pub author: AccountId,
    /// Whether all find it.
    pub is_public: bool,
    /// Each once; of ASCII only letters and digits, at most [`WORD_LEN_MAX`] bytes.
    pub words: Vec<String>,
}

/// A change of what the index has of one post. It is made only if nobody has changed that since it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexChange {
    /// Of which post.
    pub key: IndexKey,
    /// The version that was there before the post was read; none: there was nothing.
    pub seen: Option<IndexVersion>,
    /// The version that is there afterwards.
    pub version: IndexVersion,
    /// What is found afterwards; none: nothing is, and a version stays all the same. History: somebody reads a post and
    /// is frozen; the post is deleted and taken out of the index; the first one goes on, and finds what it has seen,
    /// which was nothing.
    pub post: Option<IndexedPost>,
}

/// A search for posts that have all of some words, the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchAsk {
    /// All of these, as they are in the index: at least one, at most [`SEARCH_WORDS_MAX`].
    pub words: Vec<String>,
    /// Who searches: its own posts are found, whoever may see them. None: only what is public.
    pub reader: Option<AccountId>,
    /// Only posts below this id.
    pub below: u64,
    /// How many at most: up to [`PAGE_MAX`](super::PAGE_MAX).
    pub most: usize,
}

/// Posts that were found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchPage {
    /// Posts and their authors, the newest first.
    pub posts: Vec<(PostId, AccountId)>,
    /// These are all from this id on, which is below the one that was asked for; 0: nothing follows. A search that
    /// takes long ends early, and goes on from here.
    pub from: u64,
}
