//! Members of sharded sets: accounts, or short names. Both say in which bucket they lie.

use std::fmt;

use crate::bucket::{Bucket, Buckets};
use crate::error::{Error, Result};
use crate::ids::{AccountId, PostId};
use crate::post::PostRef;

/// Longest member, in bytes: what sorted sets keep in their compact form (`zset-max-listpack-value`).
pub const MEMBER_LEN_MAX: usize = 64;

/// A value that can be a member of a sharded set: bytes, and the bucket that they belong to.
pub trait Member: Clone + Eq + Ord + std::hash::Hash + fmt::Debug + Send + Sync + 'static {
    /// Its stored form.
    type Bytes: AsRef<[u8]>;
    /// Gives the stored form: 1 to 64 bytes.
    fn to_bytes(&self) -> Self::Bytes;
    /// Reads the stored form back.
    fn from_bytes(bytes: &[u8]) -> Result<Self>;
    /// The bucket in which its edge lies once the set is spread.
    fn bucket(&self, buckets: Buckets) -> Bucket;
}

impl Member for AccountId {
    type Bytes = [u8; 8];

    fn to_bytes(&self) -> [u8; 8] {
        AccountId::to_bytes(*self)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        AccountId::from_bytes(bytes)
    }

    fn bucket(&self, buckets: Buckets) -> Bucket {
        buckets.of_account(self.get())
    }
}

/// A post, with its author: who reads the list knows both, and loads them in one go.
impl Member for PostRef {
    type Bytes = [u8; 16];

    fn to_bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.id.get().to_be_bytes());
        bytes[8..].copy_from_slice(&self.author.to_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (id, author) = bytes.split_first_chunk::<8>().ok_or_else(|| {
            Error::internal(format!("a post with its author has 16 bytes, not {}", bytes.len()))
        })?;
        let id = PostId::from_u64(u64::from_be_bytes(*id)).map_err(|e| Error::internal(e.to_string()))?;
        Ok(Self { id, author: AccountId::from_bytes(author)? })
    }

    fn bucket(&self, buckets: Buckets) -> Bucket {
        self.id.bucket(buckets)
    }
}

/// A member that is not an account: 1 to 64 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberName(Box<[u8]>);

impl MemberName {
    /// Refuses empty names and names over 64 bytes.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self> {
        let bytes = bytes.as_ref();
        if bytes.is_empty() || bytes.len() > MEMBER_LEN_MAX {
            return Err(Error::out_of_range(format!(
                "member: {} bytes; 1 to {MEMBER_LEN_MAX} are allowed",
                bytes.len()
            )));
        }
        Ok(Self(bytes.into()))
    }

    /// The member's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for MemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

impl Member for MemberName {
    type Bytes = Box<[u8]>;

    fn to_bytes(&self) -> Box<[u8]> {
        self.0.clone()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::new(bytes)
    }

    fn bucket(&self, buckets: Buckets) -> Bucket {
        buckets.of_bytes(&self.0)
    }
}
