//! The archive: a store on disk for posts that no longer lie in memory, and what it is asked.
//!
//! The engine decides what lies where; an archive does what it is told, or says why not. Two things make that safe
//! whoever asks late, twice or from a store that was restored:
//! - Each change is of one owner and carries a token that the owner's bucket has given out. A change whose token
//!   another one has passed writes nothing ([`OwnerChange::judge`], the same for all archives).
//! - Each answer about an owner's posts carries how far the owner has got ([`OwnerState`]), of a list how far that
//!   goes, read at the same moment as the rest of it: an archive that lacks what it once had is seen to be behind, and
//!   never taken for one in which there is nothing.
//!
//! Nothing here does I/O; the crate `tideline-archive` has an archive in a file (SQLite) and one in PostgreSQL.

mod lists;
mod owner;
mod post;
mod search;

pub use lists::{ListKey, ListPlace, ListedPost, PostListAsk, PostListChange, PostListPage};
pub use owner::{ArchiveToken, ChangeOutcome, ChangeRefusal, Owner, OwnerChange, OwnerState, Prerequisite};
pub use post::{ArchivedPost, ListKind, ListMember, MemberList, PartName, PostParts};
pub use search::{
    INDEXED_MAX, IndexChange, IndexKey, IndexVersion, IndexedPost, SEARCH_WORDS_MAX, SearchAsk, SearchPage,
    WORD_LEN_MAX,
};

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::bucket::Bucket;
use crate::error::{CallFuture, Error, Result};
use crate::ids::{AccountId, PostId};

/// The most changes in one call.
pub const CHANGES_MAX: usize = 64;
/// The most posts in the changes of one call.
pub const POSTS_MAX: usize = 4_096;
/// The most bytes in the posts of one call, with their lists.
pub const BYTES_MAX: usize = 64 << 20;
/// The longest name of a list.
pub const LIST_NAME_MAX: usize = 64;
/// The most posts that come onto lists or go off them in one call.
pub const LISTED_MAX: usize = 4_096;
/// The most questions in one call.
pub const ASKS_MAX: usize = 4_096;
/// The most posts that one question can be answered with.
pub const PAGE_MAX: usize = 1_000;

/// The random name of an archive, which it shares with the tenant whose posts it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ArchiveName(pub [u8; 16]);

impl FromStr for ArchiveName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong =
            || Error::invalid(format!("`{text}` is no archive's name: these are 32 hexadecimal digits"));
        let is_name = text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let name = u128::from_str_radix(text, 16).ok().filter(|_| is_name).ok_or_else(wrong)?;
        Ok(Self(name.to_be_bytes()))
    }
}

impl TryFrom<String> for ArchiveName {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<ArchiveName> for String {
    fn from(name: ArchiveName) -> Self {
        name.to_string()
    }
}

impl fmt::Display for ArchiveName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// In which order posts of owners are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageOrder {
    /// Those below an edge, the newest first.
    NewestFirst,
    /// Those above an edge, the oldest first.
    OldestFirst,
}

/// A question for posts of one owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageAsk {
    /// Whose posts.
    pub owner: Owner,
    /// Where they begin: this post itself isn't among them.
    pub edge: PostId,
    /// How many at most: up to [`PAGE_MAX`].
    pub most: usize,
}

/// Whether posts are wanted whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageContent {
    /// Only which there are.
    Ids,
    /// As they were stored.
    Posts,
}

/// Posts of one owner.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnerPage {
    /// How far the owner had got at the moment of the page; none: nothing of it was ever archived.
    pub owner: Option<OwnerState>,
    /// Which there are. Fewer than asked for: there are no more.
    pub ids: Vec<PostId>,
    /// The same posts in the same order, if they were wanted whole.
    pub posts: Vec<ArchivedPost>,
}

/// A question for one post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostAsk {
    /// The bucket of its id.
    pub bucket: Bucket,
    /// Which post.
    pub id: PostId,
    /// Who has it, if that is known: then the answer tells how far that owner had got, though there is no such post.
    pub owner: Option<AccountId>,
}

/// The answer about one post.
#[derive(Debug, Clone, PartialEq)]
pub struct PostAnswer {
    /// The post; none also if another owner has it than the one that was named.
    pub post: Option<ArchivedPost>,
    /// How far its owner, or the one that was named, had got at that moment.
    pub owner: Option<OwnerState>,
}

/// A question for members of one list of a post, the newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct MembersAsk {
    /// The bucket of the post's id.
    pub bucket: Bucket,
    /// Whose list.
    pub post: PostId,
    /// Which of its lists.
    pub kind: ListKind,
    /// Only those below this one.
    pub below: Option<ListMember>,
    /// How many at most: up to [`PAGE_MAX`].
    pub most: usize,
}

/// Members of a list, the newest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MembersAnswer {
    /// How far the post's owner had got at that moment; none: there is no such post.
    pub owner: Option<OwnerState>,
    /// The members. Fewer than asked for: there are no more.
    pub members: Vec<ListMember>,
}

/// A post as a walk through an archive meets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkedPost {
    /// Whose it is.
    pub owner: AccountId,
    /// Which it is.
    pub id: PostId,
    /// Its version.
    pub change: u64,
    /// How many bytes of it are stored, without its lists.
    pub bytes: u64,
}

/// The size of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveSize {
    /// How many bytes it takes on disk.
    pub bytes: u64,
    /// How many posts it holds, about.
    pub posts: u64,
}

/// A store for posts that have left memory.
///
/// What several instances ask at the same time has some order, in which each call stands once. A call that ends with
/// [`Unavailable`](crate::error::ErrorKind::Unavailable), `Overloaded` or `Conflict` (somebody else was at the same)
/// has changed nothing; one that ends with [`Unknown`](crate::error::ErrorKind::Unknown) may have, and can be made
/// again as it was. One whose future is dropped may still be carried out. What a call has answered outlives the
/// process, and the machine if the store's own settings say so.
pub trait Archive: fmt::Debug + Send + Sync {
    /// Tells the name of this archive, or that none was given to it so far.
    fn name(&self) -> CallFuture<'_, Option<ArchiveName>>;

    /// Gives it a name, once and for all; answers with the name that it has then.
    fn adopt(&self, name: ArchiveName) -> CallFuture<'_, ArchiveName>;

    /// Makes changes of up to [`CHANGES_MAX`] different owners, each whole or not at all, and answers for each. What
    /// was made is on disk.
    fn change<'a>(&'a self, changes: &'a [OwnerChange]) -> CallFuture<'a, Vec<ChangeOutcome>>;

    /// Tells how far owners have got.
    fn owners<'a>(&'a self, owners: &'a [Owner]) -> CallFuture<'a, Vec<Option<OwnerState>>>;

    /// Reads posts of many owners, all at one moment.
    fn pages<'a>(
        &'a self,
        asks: &'a [PageAsk],
        order: PageOrder,
        content: PageContent,
    ) -> CallFuture<'a, Vec<OwnerPage>>;

    /// Reads posts by their ids, all at one moment.
    fn posts<'a>(&'a self, asks: &'a [PostAsk]) -> CallFuture<'a, Vec<PostAnswer>>;

    /// Reads members of posts' lists, all at one moment.
    fn members<'a>(&'a self, asks: &'a [MembersAsk]) -> CallFuture<'a, Vec<MembersAnswer>>;

    /// Tells which lists posts have; whose they are doesn't count.
    fn list_kinds<'a>(&'a self, posts: &'a [PostAsk]) -> CallFuture<'a, Vec<Vec<ListKind>>>;

    /// Puts posts on lists, takes them off, up to [`LISTED_MAX`], and raises their stamps; all of it or nothing.
    fn change_lists<'a>(&'a self, changes: &'a [PostListChange]) -> CallFuture<'a, ()>;

    /// Reads posts of lists, all at one moment.
    fn list_pages<'a>(
        &'a self,
        asks: &'a [PostListAsk],
        order: PageOrder,
    ) -> CallFuture<'a, Vec<PostListPage>>;

    /// Tells the versions of what the index has of posts, up to [`INDEXED_MAX`]; none: nothing was ever there.
    fn index_versions<'a>(&'a self, posts: &'a [IndexKey]) -> CallFuture<'a, Vec<Option<IndexVersion>>>;

    /// Makes changes of up to [`INDEXED_MAX`] different posts, each by itself, and says of each whether it was made:
    /// not if something else stands there than was seen.
    fn index<'a>(&'a self, changes: &'a [IndexChange]) -> CallFuture<'a, Vec<bool>>;

    /// Finds posts by their words. What it costs is bounded, whatever is asked for: then it ends early.
    fn search<'a>(&'a self, ask: &'a SearchAsk) -> CallFuture<'a, SearchPage>;

    /// Lists all posts of a bucket by id that can be found, those behind `after`, at most `most`: up to [`PAGE_MAX`].
    fn walk_index(
        &self,
        bucket: Bucket,
        after: Option<PostId>,
        most: usize,
    ) -> CallFuture<'_, Vec<(PostId, AccountId)>>;

    /// Lists all owners of a bucket by their numbers, those behind `after`, at most `most`: up to [`PAGE_MAX`].
    fn walk_owners(
        &self,
        bucket: Bucket,
        after: Option<AccountId>,
        most: usize,
    ) -> CallFuture<'_, Vec<(AccountId, OwnerState)>>;

    /// Lists all posts of a bucket by owner and id, those behind `after`, at most `most`: up to [`PAGE_MAX`].
    fn walk_posts(
        &self,
        bucket: Bucket,
        after: Option<(AccountId, PostId)>,
        most: usize,
    ) -> CallFuture<'_, Vec<WalkedPost>>;

    /// Lists the names of all lists of posts of a bucket, those behind `after`, at most `most`: up to [`PAGE_MAX`].
    fn walk_lists<'a>(
        &'a self,
        bucket: Bucket,
        after: Option<&'a [u8]>,
        most: usize,
    ) -> CallFuture<'a, Vec<Vec<u8>>>;

    /// Tells for how long what it has answered may still be lost together with one of its servers. Zero: nothing is
    /// that was answered.
    fn settles_within(&self) -> Duration {
        Duration::ZERO
    }

    /// Tells how much it holds.
    fn size(&self) -> CallFuture<'_, ArchiveSize>;
}
