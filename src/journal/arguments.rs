//! The arguments of a task in an entry, behind its letter: ids and bytes, one after the other. Pure.

use crate::ids::{AccountId, PostId};
use crate::nonce::Nonce;
use crate::post::PostRef;

/// The longest of any kind: two posts, their authors, and a letter.
const LEN_MAX: usize = 33;

/// A task's arguments, as they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Arguments {
    bytes: ArgumentBytes,
    len: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ArgumentBytes([u8; LEN_MAX]);

impl Default for ArgumentBytes {
    fn default() -> Self {
        Self([0; LEN_MAX])
    }
}

impl Arguments {
    /// Adds bytes. There are never more than the longest kind has.
    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        let end = self.len + bytes.len();
        assert!(end <= LEN_MAX, "arguments of {end} bytes; at most {LEN_MAX}");
        self.bytes.0[self.len..end].copy_from_slice(bytes);
        self.len = end;
        self
    }

    /// Adds an account.
    pub(crate) fn account(self, id: AccountId) -> Self {
        self.bytes(&id.to_bytes())
    }

    fn post(self, id: PostId) -> Self {
        self.bytes(&id.get().to_be_bytes())
    }

    /// Adds a post and its author.
    pub(crate) fn post_ref(self, post: PostRef) -> Self {
        self.post(post.id).account(post.author)
    }

    /// All of them.
    pub(super) fn stored(&self) -> &[u8] {
        &self.bytes.0[..self.len]
    }
}

/// Stored arguments, read one after the other.
#[derive(Debug)]
pub(crate) struct ArgumentReader<'a>(pub(super) &'a [u8]);

impl ArgumentReader<'_> {
    fn next<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (next, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*next)
    }

    /// Reads an account; `None`: none can stand there.
    pub(crate) fn account(&mut self) -> Option<AccountId> {
        AccountId::new(u64::from_be_bytes(self.next()?)).ok()
    }

    /// Reads a post and its author; `None`: none can stand there.
    pub(crate) fn post_ref(&mut self) -> Option<PostRef> {
        let id = PostId::from_u64(u64::from_be_bytes(self.next()?)).ok()?;
        Some(PostRef { id, author: self.account()? })
    }

    /// Reads a byte.
    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.next::<1>().map(|[byte]| byte)
    }

    /// Reads random bytes.
    pub(crate) fn nonce(&mut self) -> Option<Nonce> {
        self.next()
    }
}
