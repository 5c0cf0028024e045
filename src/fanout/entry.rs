//! Journal entries: what to look at again, who does, and how far it came. Pure.

use crate::bucket::Bucket;
use crate::context::draw;
use crate::error::{Error, Result};
use crate::functions::Mark;
use crate::ids::{AccountId, PostId};
use crate::post::{Audience, Post, PostRef};

/// Something to be looked at again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// A post may not be in all homes yet.
    Deliver { post: PostId, author: AccountId },
    /// A post may not be on the list of what it refers to yet, or still.
    Refer { post: PostId, author: AccountId, to: Reference },
    /// Whether one follows the other may not show in the other's followers, or a pull mark may be needless.
    Pair { reader: AccountId, author: AccountId, may_drop: bool },
    /// An account is to go with all its traces.
    Bury { account: AccountId },
    /// An account may be locked no more, and somebody may still wait for its answer.
    Unlock { account: AccountId },
    /// Followers may not know yet that an account is pulled, or pushed again. Stands for the change of mode that wrote
    /// these random bytes; after another one there is nothing to do.
    Mode { author: AccountId, random: Mark },
}

/// What a post refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Reference {
    pub(crate) kind: u8,
    pub(crate) post: PostId,
    pub(crate) author: AccountId,
}

impl Reference {
    pub(crate) const REPLY: u8 = b'r';
    pub(crate) const REPOST: u8 = b'o';

    /// What a post refers to: what it reposts, what it answers.
    pub(crate) fn all(original: Option<PostRef>, parent: Option<PostRef>) -> Vec<Self> {
        let of = |kind| move |to: PostRef| Self { kind, post: to.id, author: to.author };
        original.map(of(Self::REPOST)).into_iter().chain(parent.map(of(Self::REPLY))).collect()
    }

    /// What stands behind the post and its author in an entry.
    pub(crate) fn stored(self) -> Vec<u8> {
        let mut stored = vec![self.kind];
        stored.extend(self.post.get().to_be_bytes());
        stored.extend(self.author.to_bytes());
        stored
    }
}

/// Whom a post is delivered to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Recipients {
    Followers,
    Named(Vec<AccountId>),
    /// It is gone.
    Nobody,
}

impl Recipients {
    pub(crate) fn of(post: &Post) -> Self {
        match post.audience() {
            Audience::Only(named) => Self::Named(named.to_vec()),
            _ => Self::Followers,
        }
    }
}

/// An entry as it stands in a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) bucket: Bucket,
    pub(crate) id: Mark,
    pub(crate) owner: Mark,
    pub(crate) task: Task,
    /// How far it came; empty: not begun.
    pub(crate) checkpoint: String,
    /// Of a delivery that was accepted just now. Else the post is read again.
    pub(crate) recipients: Option<Recipients>,
}

impl Task {
    /// Whether it carries out the change of mode that wrote these random bytes.
    pub(crate) fn is_of(self, change: Option<Mark>) -> bool {
        matches!(self, Self::Mode { random, .. } if Some(random) == change)
    }

    fn letter(self) -> u8 {
        match self {
            Self::Deliver { .. } => b'D',
            Self::Refer { .. } => b'R',
            Self::Pair { .. } => b'P',
            Self::Bury { .. } => b'X',
            Self::Unlock { .. } => b'U',
            Self::Mode { .. } => b'M',
        }
    }

    /// Its name in metrics and messages.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Deliver { .. } => "deliver",
            Self::Refer { .. } => "refer",
            Self::Pair { .. } => "pair",
            Self::Bury { .. } => "bury",
            Self::Unlock { .. } => "unlock",
            Self::Mode { .. } => "mode",
        }
    }

    /// An entry's value, for an owner who begins with it.
    pub(crate) fn stored(self, owner: &Mark) -> Vec<u8> {
        let mut stored = owner.to_vec();
        stored.push(self.letter());
        match self {
            Self::Deliver { post, author } => {
                stored.extend(post.get().to_be_bytes());
                stored.extend(author.to_bytes());
            }
            Self::Refer { post, author, to } => {
                stored.extend(post.get().to_be_bytes());
                stored.extend(author.to_bytes());
                stored.extend(to.stored());
            }
            Self::Pair { reader, author, may_drop } => {
                stored.extend(reader.to_bytes());
                stored.extend(author.to_bytes());
                stored.push(u8::from(may_drop));
            }
            Self::Bury { account } | Self::Unlock { account } => stored.extend(account.to_bytes()),
            Self::Mode { author, random } => {
                stored.extend(author.to_bytes());
                stored.extend(random);
            }
        }
        stored
    }

    /// Length of an entry's value before its checkpoint.
    pub(crate) fn stored_len(self) -> usize {
        9 + match self {
            Self::Deliver { .. } => 16,
            Self::Refer { .. } => 33,
            Self::Pair { .. } => 17,
            Self::Bury { .. } | Self::Unlock { .. } => 8,
            Self::Mode { .. } => 16,
        }
    }

    fn parse(letter: u8, arguments: &[u8]) -> Option<Self> {
        let number = |at: usize| Some(u64::from_be_bytes(arguments.get(at..at + 8)?.try_into().ok()?));
        let account = |at| AccountId::new(number(at)?).ok();
        let post = |at| PostId::from_u64(number(at)?).ok();
        match letter {
            b'D' => Some(Self::Deliver { post: post(0)?, author: account(8)? }),
            b'R' => {
                let to = Reference { kind: *arguments.get(16)?, post: post(17)?, author: account(25)? };
                Some(Self::Refer { post: post(0)?, author: account(8)?, to })
            }
            b'P' => {
                let may_drop = *arguments.get(16)? == 1;
                Some(Self::Pair { reader: account(0)?, author: account(8)?, may_drop })
            }
            b'X' => Some(Self::Bury { account: account(0)? }),
            b'U' => Some(Self::Unlock { account: account(0)? }),
            b'M' => Some(Self::Mode { author: account(0)?, random: arguments.get(8..16)?.try_into().ok()? }),
            _ => None,
        }
    }
}

impl Entry {
    /// A new entry of ours.
    pub(crate) fn new(bucket: Bucket, owner: Mark, task: Task) -> Self {
        Self { bucket, id: draw(), owner, task, checkpoint: String::new(), recipients: None }
    }

    /// Its value when it begins.
    pub(crate) fn stored(&self) -> Vec<u8> {
        self.task.stored(&self.owner)
    }

    /// Reads what stands in a journal.
    pub(crate) fn parse(bucket: Bucket, id: &[u8], value: &[u8]) -> Result<Self> {
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
        let task = Task::parse(*letter, arguments).ok_or_else(unknown)?;
        let checkpoint = value.get(task.stored_len()..).and_then(|c| std::str::from_utf8(c).ok());
        let checkpoint = checkpoint.ok_or_else(unknown)?.into();
        Ok(Self { bucket, id, owner: *owner, task, checkpoint, recipients: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tasks() -> impl Strategy<Value = Task> {
        let account = || (1..=i64::MAX as u64).prop_map(|id| AccountId::new(id).unwrap());
        let post = || (0..=i64::MAX as u64).prop_map(|id| PostId::from_u64(id).unwrap());
        let to = (any::<u8>(), post(), account()).prop_map(|(kind, post, author)| Reference {
            kind,
            post,
            author,
        });
        prop_oneof![
            (post(), account()).prop_map(|(post, author)| Task::Deliver { post, author }),
            (post(), account(), to).prop_map(|(post, author, to)| Task::Refer { post, author, to }),
            (account(), account(), any::<bool>()).prop_map(|(reader, author, may_drop)| Task::Pair {
                reader,
                author,
                may_drop
            }),
            account().prop_map(|account| Task::Bury { account }),
            account().prop_map(|account| Task::Unlock { account }),
            (account(), any::<Mark>()).prop_map(|(author, random)| Task::Mode { author, random }),
        ]
    }

    proptest! {
        #[test]
        fn an_entry_gives_back_its_parts(task in tasks(), owner: Mark, checkpoint in "[a-z0-9.]{0,20}") {
            let mut value = task.stored(&owner);
            prop_assert_eq!(value.len(), task.stored_len());
            value.extend(checkpoint.bytes());
            let entry = Entry::parse(Bucket(3), &[7; 8], &value).unwrap();
            prop_assert_eq!(entry, Entry { bucket: Bucket(3), id: [7; 8], owner, task, checkpoint, recipients: None });
        }

        #[test]
        fn reading_never_panics(id: Vec<u8>, value: Vec<u8>) {
            let _ = Entry::parse(Bucket(0), &id, &value);
        }
    }
}
