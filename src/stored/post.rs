//! Posts as they stand under their keys. One that this release can't read (damaged, or written by a later one) is one
//! missing post: no page fails for it; but nothing is decided as if it were gone.

use super::RareTelling;
use crate::cluster::{Answer, Reply};
use crate::error::{Error, Result};
use crate::ids::{AccountId, PostId};
use crate::meters;
use crate::post::layout::{AUTHOR_OFFSET, VERSION, VERSION_OFFSET, VISIBILITY_OFFSET};
use crate::post::{Post, PostHeader};

/// A visibility that asks for nothing else in the post.
const VISIBILITY_FOLLOWERS: u8 = 2;

/// An answer to who asks for a post, or for a part of it. Who must tell these apart matches on all of them, so that
/// another one finds its places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoredPost<P = Post> {
    There(P),
    Gone,
    Unreadable(Unreadable),
}

impl StoredPost {
    /// Reads what was answered to a request for a post. Only a server that doesn't answer is an error.
    pub(crate) fn read(answer: Answer) -> Result<Self> {
        Self::read_as(answer, Post::parse)
    }

    /// The post, if only how far it goes is nothing that this release knows. To delete it, not to show it.
    pub(crate) fn but_for_visibility(self) -> Self {
        let Self::Unreadable(unreadable) = self else { return self };
        let mut bytes = unreadable.bytes().unwrap_or_default().to_vec();
        if let Some(visibility) = bytes.get_mut(VISIBILITY_OFFSET) {
            *visibility = VISIBILITY_FOLLOWERS;
        }
        Post::parse(&bytes).map_or(Self::Unreadable(unreadable), Self::There)
    }
}

impl StoredPost<PostHeader> {
    /// Whether it is that author's, as far as can be told: of one that can't be read it is what others say.
    pub(crate) fn may_be_of(&self, author: AccountId) -> bool {
        match self {
            Self::There(header) => header.author == author,
            Self::Gone => false,
            Self::Unreadable(_) => true,
        }
    }
}

impl<P> StoredPost<P> {
    /// Reads a post as `parse` takes it.
    pub(crate) fn read_as(answer: Answer, parse: impl Fn(&[u8]) -> Result<P>) -> Result<Self> {
        if is_of_another_type(&answer) {
            let why = "what stands for a post is no string".into();
            return Ok(Self::Unreadable(Unreadable { why, bytes: None }));
        }
        let reply = answer.ok()?;
        if reply.is_nil() {
            return Ok(Self::Gone);
        }
        Ok(Self::of_bytes(reply.bytes()?, parse))
    }

    /// A post by its bytes, wherever they come from.
    pub(crate) fn of_bytes(bytes: &[u8], parse: impl Fn(&[u8]) -> Result<P>) -> Self {
        let unreadable = |e: Error| Unreadable { why: e.to_string(), bytes: Some(bytes.to_vec()) };
        parse(bytes).map_or_else(|e| Self::Unreadable(unreadable(e)), Self::There)
    }

    /// Reads a post's first bytes: of a post that isn't there a server gives none.
    pub(crate) fn read_head_as(answer: Answer, parse: impl Fn(&[u8]) -> Result<P>) -> Result<Self> {
        let is_gone = answer.reply.bytes().is_ok_and(<[u8]>::is_empty);
        if is_gone { Ok(Self::Gone) } else { Self::read_as(answer, parse) }
    }

    /// The post, or that there is none, unless it can't be read.
    pub(crate) fn known(self) -> std::result::Result<Option<P>, Unreadable> {
        match self {
            Self::There(post) => Ok(Some(post)),
            Self::Gone => Ok(None),
            Self::Unreadable(unreadable) => Err(unreadable),
        }
    }

    /// Gives the post to who can't go on without knowing what it says.
    pub(crate) fn readable(self) -> Result<Option<P>> {
        self.known().map_err(Unreadable::error)
    }

    /// The post; none for who can do as little with one that can't be read as with one that is gone.
    pub(crate) fn found(self) -> Option<P> {
        self.known().ok().flatten()
    }
}

/// Something that stands where a post should, and that this release can't read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreadable {
    why: String,
    /// `None`: it is no string.
    bytes: Option<Vec<u8>>,
}

impl Unreadable {
    /// Its bytes; `None`: it is no string.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        self.bytes.as_deref()
    }

    /// The author that it says it has. Another format may say that elsewhere.
    pub(crate) fn author(&self) -> Option<AccountId> {
        let bytes = self.bytes()?.get(AUTHOR_OFFSET..AUTHOR_OFFSET + 8)?;
        AccountId::from_bytes(bytes).ok()
    }

    /// For who can't go on without it.
    pub(crate) fn error(self) -> Error {
        Error::internal(format!(
            "{}. Nobody sees that post; its author can delete it (of one in a group the group), and `tideline moderate \
             delete`. If a later release wrote it, that one reads it",
            self.why
        ))
    }

    /// Whether it surely is another account's: after a failover two may have had one id.
    pub(crate) fn is_anothers(&self, author: AccountId) -> bool {
        self.sure_author().is_some_and(|other| other != author)
    }

    /// Whether it surely is an account's.
    pub(crate) fn is_of(&self, author: AccountId) -> bool {
        self.sure_author() == Some(author)
    }

    fn sure_author(&self) -> Option<AccountId> {
        let is_ours = self.bytes().and_then(|bytes| bytes.get(VERSION_OFFSET)) == Some(&VERSION);
        self.author().filter(|_| is_ours)
    }
}

/// Whether something of another type stands under the key that was asked for.
pub(crate) fn is_of_another_type(answer: &Answer) -> bool {
    matches!(answer.reply.error(), Some(("WRONGTYPE", _)))
}

/// The reply; none if something of another type stands there.
pub(crate) fn unless_of_another_type(answer: Answer) -> Result<Option<Reply>> {
    if is_of_another_type(&answer) { Ok(None) } else { answer.ok().map(Some) }
}

/// Counts what was left out of pages because it can't be read, and tells of it now and then.
#[derive(Debug, Default)]
pub(crate) struct LeftOutCounter(RareTelling);

impl LeftOutCounter {
    /// A post that is there as far as its readers are concerned.
    pub(crate) fn shown(&self, id: PostId, stored: StoredPost) -> Option<Post> {
        stored.known().unwrap_or_else(|unreadable| {
            meters::post_unreadable();
            self.tell(|| format!("post {id} can't be read, and is left out of pages: {}", unreadable.why));
            None
        })
    }

    /// An account whose record is none.
    pub(crate) fn account(&self, id: AccountId) {
        self.tell(|| format!("the record of account {id} is no hash: it is taken for one that isn't there"));
    }

    fn tell(&self, what: impl FnOnce() -> String) {
        self.0.tell(|| format!("{}; `tideline fsck` finds all such", what()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Epoch, NodeAddr};
    use crate::error::ErrorKind;
    use crate::post::Draft;

    fn answer(reply: Reply) -> Answer {
        Answer { reply, epoch: Epoch::of_life(NodeAddr::new("h", 1), 0) }
    }

    #[test]
    fn what_can_t_be_read_is_neither_a_post_nor_gone() {
        let (author, other) = (AccountId::new(7).unwrap(), AccountId::new(8).unwrap());
        let post = Post::new(author, &Draft::text("hello"));
        let stored = |bytes: &[u8]| StoredPost::read(answer(Reply::of_bytes(bytes))).unwrap();
        let unread = |bytes: &[u8]| stored(bytes).known().unwrap_err();
        assert_eq!(stored(&post.encode()), StoredPost::There(post.clone()));
        assert_eq!(StoredPost::read(answer(Reply::of_nil())).unwrap(), StoredPost::Gone);
        let of_another_type = StoredPost::read(answer(Reply::server_error("WRONGTYPE key"))).unwrap();
        let of_another_type = of_another_type.known().unwrap_err();
        assert_eq!((of_another_type.bytes(), of_another_type.is_anothers(other)), (None, false));
        assert!(StoredPost::read(answer(Reply::server_error("LOADING"))).is_err());
        // A post of no bytes is damaged; no first bytes are those of no post.
        let head = |bytes: &[u8]| {
            StoredPost::read_head_as(answer(Reply::of_bytes(bytes)), PostHeader::parse).unwrap()
        };
        assert_eq!(unread(b"").bytes(), Some(&b""[..]));
        assert_eq!((head(b""), head(b"").may_be_of(author)), (StoredPost::Gone, false));
        assert_eq!(head(&post.encode()), StoredPost::There(*post.header()));
        assert_eq!((head(&post.encode()).may_be_of(other), head(b"cut").may_be_of(other)), (false, true));
        for (offset, byte, is_but_for_that) in [(VERSION_OFFSET, 2, false), (VISIBILITY_OFFSET, 4, true)] {
            let mut bytes = post.encode();
            bytes[offset] = byte;
            let unreadable = unread(&bytes);
            assert_eq!(unreadable.author(), Some(author));
            // Another format may have its author elsewhere.
            assert_eq!(unreadable.is_anothers(other), is_but_for_that);
            assert!(!unreadable.is_anothers(author));
            assert_eq!(stored(&bytes).but_for_visibility().found().is_some(), is_but_for_that);
            assert_eq!(unreadable.error().kind(), ErrorKind::Internal);
        }
        let cut = unread(&post.encode()[..10]);
        assert_eq!((cut.author(), cut.is_anothers(other)), (None, false));
    }
}
