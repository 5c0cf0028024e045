//! Journal entries: what to look at again, who does, and how far it came. Pure.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::job::{Kind, Task};
use super::left::AcknowledgedBuckets;
use crate::bucket::Bucket;
use crate::cluster::{Epoch, Replicas};
use crate::error::{Error, Result};
use crate::nonce::{Nonce, draw};

/// An entry as it stands in a journal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JournalEntry {
    pub(crate) bucket: Bucket,
    pub(crate) id: Nonce,
    pub(crate) owner: Nonce,
    pub(crate) task: Task,
    /// How far it came; empty: not begun.
    pub(crate) checkpoint: String,
    /// A server that had part in what lies behind the checkpoint had no replica then; or nobody here knows.
    pub(crate) lacks_replicas: bool,
    /// What whoever has left it knows, of one that was accepted just now.
    pub(crate) hint: Option<Hint>,
    /// In which life of its server it was seen to stand in the journal.
    pub(crate) seen_in: Option<Epoch>,
    /// What stands behind its arguments, if that is no checkpoint.
    pub(crate) payload: Vec<u8>,
    /// Of a round: what it has done where nobody can say yet whether it lasts. Its checkpoint says so once it is put
    /// aside.
    pub(crate) unfenced: Vec<AcknowledgedBuckets>,
}

/// A hint: what a task's run would find out, told to it by whoever has left the task. It is in no journal: who finds
/// the entry there looks.
#[derive(Clone)]
pub(crate) struct Hint(Arc<dyn Any + Send + Sync>);

impl Hint {
    pub(crate) fn new(hint: impl Any + Send + Sync) -> Self {
        Self(Arc::new(hint))
    }

    /// Its value, if that is of this type.
    pub(crate) fn says<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl PartialEq for Hint {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hint")
    }
}

impl JournalEntry {
    /// A new entry of ours.
    pub(crate) fn new(bucket: Bucket, owner: Nonce, task: impl Into<Task>) -> Self {
        Self {
            bucket,
            id: draw(),
            owner,
            task: task.into(),
            checkpoint: String::new(),
            lacks_replicas: false,
            hint: None,
            seen_in: None,
            payload: Vec::new(),
            unfenced: Vec::new(),
        }
    }

    /// Its value when it begins.
    pub(crate) fn stored(&self) -> Vec<u8> {
        let mut stored = self.task.stored(&self.owner);
        stored.extend(&self.payload);
        stored
    }

    /// Whether all that was done of it is on replicas, where that is the rule: if they are required, no fence has gone
    /// on without, whoever has done it.
    pub(crate) fn is_replicated(&self, rule: Replicas) -> bool {
        rule == Replicas::Required || !self.lacks_replicas
    }

    /// Reads what stands in a journal.
    pub(crate) fn parse(
        kinds: &[&'static dyn Kind],
        bucket: Bucket,
        id: &[u8],
        value: &[u8],
    ) -> Result<Self> {
        let unknown = || {
            Error::internal(format!(
                "journal of bucket {bucket}: entry {} has a value that this release does not know: {}",
                id.escape_ascii(),
                value.escape_ascii()
            ))
        };
        let id = id.try_into().map_err(|_| unknown())?;
        let (owner, rest) = value.split_first_chunk::<8>().ok_or_else(unknown)?;
        let (letter, arguments) = rest.split_first().ok_or_else(unknown)?;
        let kind = kinds.iter().find(|kind| kind.letter() == *letter).ok_or_else(unknown)?;
        let task = kind.read(arguments).ok_or_else(unknown)?;
        let rest = value.get(task.stored_len()..).ok_or_else(unknown)?;
        let (checkpoint, payload) = match kind.has_payload() {
            true if kind.is_payload(rest) => ("", rest.to_vec()),
            true => return Err(unknown()),
            false => (std::str::from_utf8(rest).map_err(|_| unknown())?, Vec::new()),
        };
        let lacks_replicas = !checkpoint.is_empty();
        Ok(Self {
            id,
            checkpoint: checkpoint.into(),
            lacks_replicas,
            payload,
            ..Self::new(bucket, *owner, task)
        })
    }
}
