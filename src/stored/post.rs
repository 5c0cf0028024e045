//! What stands under a post's key. One that this release can't read (damaged, or written by a later one) is one missing
//! post: no page fails for it; but nothing is decided as if it were gone.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::cluster::{Answer, Reply};
use crate::error::{Error, Result};
use crate::ids::{AccountId, PostId};
use crate::meters;
use crate::post::Post;
use crate::post::layout::{AUTHOR_OFFSET, VERSION, VERSION_OFFSET, VISIBILITY_OFFSET};

/// How often the log tells of what was left out.
const TOLD_EVERY: Duration = Duration::from_secs(60);
/// A visibility that asks for nothing else in the post.
const VISIBILITY_FOLLOWERS: u8 = 2;

/// What stands under a post's key; `Ok(None)`: nothing does.
pub(crate) type StoredPost = std::result::Result<Option<Post>, Unreadable>;

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

    /// Whose it says that it is. Another format may say that elsewhere.
    pub(crate) fn author(&self) -> Option<AccountId> {
        let bytes = self.bytes()?.get(AUTHOR_OFFSET..AUTHOR_OFFSET + 8)?;
        AccountId::from_bytes(bytes).ok()
    }

    /// For who can't go on without it.
    pub(crate) fn error(self) -> Error {
        Error::internal(format!(
            "{}. Nobody sees that post; its author can delete it. If a later release wrote it, that one reads it",
            self.why
        ))
    }

    /// Whether it surely is another account's: after a failover two may have had one id.
    pub(crate) fn is_anothers(&self, author: AccountId) -> bool {
        let is_ours = self.bytes().and_then(|bytes| bytes.get(VERSION_OFFSET)) == Some(&VERSION);
        is_ours && self.author().is_some_and(|other| other != author)
    }

    /// The post, if only how far it goes is nothing that this release knows. To delete it, not to show it.
    pub(crate) fn but_for_visibility(self) -> StoredPost {
        let mut bytes = self.bytes().unwrap_or_default().to_vec();
        if let Some(visibility) = bytes.get_mut(VISIBILITY_OFFSET) {
            *visibility = VISIBILITY_FOLLOWERS;
        }
        Post::parse(&bytes).map(Some).map_err(|_| self)
    }
}

/// Reads what was answered to a request for a post. Only a server that doesn't answer is an error.
pub(crate) fn stored_post(answer: Answer) -> Result<StoredPost> {
    if is_of_another_type(&answer) {
        return Ok(Err(Unreadable { why: "what stands for a post is no string".into(), bytes: None }));
    }
    let reply = answer.ok()?;
    if reply.is_nil() {
        return Ok(Ok(None));
    }
    let bytes = reply.bytes()?;
    let unreadable = |e: Error| Unreadable { why: e.to_string(), bytes: Some(bytes.to_vec()) };
    Ok(Post::parse(bytes).map(Some).map_err(unreadable))
}

/// The same for who can't go on without knowing what it says.
pub(crate) fn readable_post(answer: Answer) -> Result<Option<Post>> {
    stored_post(answer)?.map_err(Unreadable::error)
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
pub(crate) struct LeftOut(Mutex<Option<Instant>>);

impl LeftOut {
    /// A post that is there as far as its readers are concerned.
    pub(crate) fn shown(&self, id: PostId, stored: StoredPost) -> Option<Post> {
        stored.unwrap_or_else(|unreadable| {
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
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|told| told.elapsed() >= TOLD_EVERY) {
            *told = Some(Instant::now());
            tracing::error!("{}; `tideline fsck` finds all such; told once in {TOLD_EVERY:?}", what());
        }
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
        let stored = |bytes: &[u8]| stored_post(answer(Reply::of_bytes(bytes))).unwrap();
        assert_eq!(stored(&post.encode()), Ok(Some(post.clone())));
        assert_eq!(stored_post(answer(Reply::of_nil())).unwrap(), Ok(None));
        let of_another_type = stored_post(answer(Reply::server_error("WRONGTYPE key"))).unwrap().unwrap_err();
        assert_eq!((of_another_type.bytes(), of_another_type.is_anothers(other)), (None, false));
        assert!(stored_post(answer(Reply::server_error("LOADING"))).is_err());
        for (offset, byte, is_but_for_that) in [(VERSION_OFFSET, 2, false), (VISIBILITY_OFFSET, 4, true)] {
            let mut bytes = post.encode();
            bytes[offset] = byte;
            let unreadable = stored(&bytes).unwrap_err();
            assert_eq!(unreadable.author(), Some(author));
            // Another format may have its author elsewhere.
            assert_eq!(unreadable.is_anothers(other), is_but_for_that);
            assert!(!unreadable.is_anothers(author));
            assert_eq!(unreadable.clone().but_for_visibility().is_ok(), is_but_for_that);
            assert_eq!(unreadable.error().kind(), ErrorKind::Internal);
        }
        let cut = stored(&post.encode()[..10]).unwrap_err();
        assert_eq!((cut.author(), cut.is_anothers(other)), (None, false));
    }
}
