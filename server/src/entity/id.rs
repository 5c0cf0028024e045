//! Ids as clients get them.

use std::fmt;

use serde::{Serialize, Serializer};
use tideline::{AccountId, PostId};

/// An id of anything: a number that is sent as text, since JavaScript has no numbers of 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u64);

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<AccountId> for Id {
    fn from(id: AccountId) -> Self {
        Self(id.get())
    }
}

impl From<PostId> for Id {
    fn from(id: PostId) -> Self {
        Self(id.get())
    }
}
