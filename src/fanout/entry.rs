//! Journal entries: what to look at again, who does, and how far it came. Pure.

use super::ledger::Acknowledged;
use crate::bucket::{Bucket, Buckets};
use crate::cluster::{Epoch, Replicas};
use crate::error::{Error, Result};
use crate::graph::Follow;
use crate::ids::{AccountId, PostId};
use crate::nonce::{Nonce, draw};
use crate::post::{Audience, Draft, Post, PostList, PostRef, TagKey};

/// Something to be looked at again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// A post may not be in all homes yet.
    Deliver { post: PostId, author: AccountId },
    /// A post may not be on the list of what it refers to yet, or still.
    Refer { post: PostId, author: AccountId, to: Reference },
    /// A post may not be on the lists of mentions and hashtags yet that it names, or still on those that the entry names.
    List { post: PostId, author: AccountId },
    /// Whether one follows the other may not show in the other's followers, or a pull mark may be needless.
    Pair { reader: AccountId, author: AccountId, may_drop: bool },
    /// Whether an account likes a post may not show in the post's list.
    Tie { account: AccountId, post: PostRef },
    /// A post is gone; its lists may not be yet.
    Unlist { post: PostId, author: AccountId },
    /// An account is to go with all its traces.
    Bury { account: AccountId },
    /// An account may be locked no more, and somebody may still wait for its answer.
    Unlock { account: AccountId },
    /// Followers may not know yet that an account is pulled, or pushed again. Stands for the change of mode that wrote
    /// these random bytes; after another one there is nothing to do.
    Mode { author: AccountId, random: Nonce },
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
    /// A repost with a comment.
    pub(crate) const QUOTE: u8 = b'q';

    /// What a draft refers to: what it reposts or quotes, what it answers.
    pub(crate) fn of_draft(draft: &Draft) -> Vec<Self> {
        Self::all(draft.repost_of, draft.is_plain_repost(), draft.reply_to)
    }

    /// What a post refers to.
    pub(crate) fn of_post(post: &Post) -> Vec<Self> {
        Self::all(post.header().original, post.is_plain_repost(), post.header().reply_to)
    }

    fn all(original: Option<PostRef>, is_plain: bool, parent: Option<PostRef>) -> Vec<Self> {
        let of = |kind| move |to: PostRef| Self { kind, post: to.id, author: to.author };
        let passed_on = original.map(of(if is_plain { Self::REPOST } else { Self::QUOTE }));
        passed_on.into_iter().chain(parent.map(of(Self::REPLY))).collect()
    }

    /// What is referred to.
    pub(crate) fn target(self) -> PostRef {
        PostRef { id: self.post, author: self.author }
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
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) bucket: Bucket,
    pub(crate) id: Nonce,
    pub(crate) owner: Nonce,
    pub(crate) task: Task,
    /// How far it came; empty: not begun.
    pub(crate) checkpoint: String,
    /// A server that had part in what lies behind the checkpoint had no replica then; or nobody here knows.
    pub(crate) lacks_replicas: bool,
    /// Of a delivery that was accepted just now. Else the post is read again.
    pub(crate) recipients: Option<Recipients>,
    /// In which life of its server it was seen to stand in the journal.
    pub(crate) seen_in: Option<Epoch>,
    /// Of a post that was deleted: the lists that it may still be on. One that is there names them itself.
    pub(crate) lists: Vec<PostList>,
    /// Of a follow that was made just now: what a look at it would see, and whose word that is. Else, and if that comes to
    /// nothing, it is looked.
    pub(crate) follow: Option<(Follow, Epoch)>,
    /// Of a round: what it has done where nobody can say yet whether it lasts. Its checkpoint says so once it is put aside.
    pub(crate) unfenced: Vec<Acknowledged>,
}

impl Task {
    /// Whether it carries out the change of mode that wrote these random bytes.
    pub(crate) fn is_of(self, change: Option<Nonce>) -> bool {
        matches!(self, Self::Mode { random, .. } if Some(random) == change)
    }

    fn letter(self) -> u8 {
        match self {
            Self::Deliver { .. } => b'D',
            Self::Refer { .. } => b'R',
            Self::List { .. } => b'L',
            Self::Pair { .. } => b'P',
            Self::Tie { .. } => b'T',
            Self::Unlist { .. } => b'U',
            Self::Bury { .. } => b'X',
            Self::Unlock { .. } => b'O',
            Self::Mode { .. } => b'M',
        }
    }

    /// Buckets without which nothing of it can be done, as far as the entry names them.
    pub(crate) fn needs(self, buckets: Buckets) -> Vec<Bucket> {
        let of = |account: AccountId| buckets.of_account(account.get());
        match self {
            Self::Deliver { author, .. } | Self::Mode { author, .. } => vec![of(author)],
            Self::Refer { post, to, .. } => vec![post.bucket(buckets), to.post.bucket(buckets)],
            Self::List { post, .. } | Self::Unlist { post, .. } => vec![post.bucket(buckets)],
            Self::Pair { reader, author, .. } => vec![of(reader), of(author)],
            Self::Tie { account, post } => vec![of(account), post.id.bucket(buckets)],
            Self::Bury { account } | Self::Unlock { account } => vec![of(account)],
        }
    }

    /// Its name in metrics and messages.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Deliver { .. } => "deliver",
            Self::Refer { .. } => "refer",
            Self::List { .. } => "list",
            Self::Pair { .. } => "pair",
            Self::Tie { .. } => "tie",
            Self::Unlist { .. } => "unlist",
            Self::Bury { .. } => "bury",
            Self::Unlock { .. } => "unlock",
            Self::Mode { .. } => "mode",
        }
    }

    /// What a new post, or one that goes, leaves to do about what it refers to. `lists`: whether it is about any lists.
    pub(crate) fn all_about(id: PostId, post: &Post, lists: bool) -> Vec<Self> {
        let refers = Reference::of_post(post);
        let (post, author) = (id, post.header().author);
        let refer = |to| Self::Refer { post, author, to };
        refers.into_iter().map(refer).chain(lists.then_some(Self::List { post, author })).collect()
    }

    /// Its letter, and what follows post and author in an entry about a post.
    pub(crate) fn tail(self) -> (u8, Vec<u8>) {
        let stored = self.stored(&Nonce::default());
        (self.letter(), stored.get(25..).unwrap_or_default().to_vec())
    }

    /// An entry's value, for an owner who begins with it.
    pub(crate) fn stored(self, owner: &Nonce) -> Vec<u8> {
        let mut stored = owner.to_vec();
        stored.push(self.letter());
        match self {
            Self::Deliver { post, author } | Self::List { post, author } | Self::Unlist { post, author } => {
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
            Self::Tie { account, post } => {
                stored.extend(account.to_bytes());
                stored.extend(post.id.get().to_be_bytes());
                stored.extend(post.author.to_bytes());
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
            Self::Deliver { .. } | Self::List { .. } | Self::Unlist { .. } => 16,
            Self::Refer { .. } => 33,
            Self::Pair { .. } => 17,
            Self::Tie { .. } => 24,
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
            b'U' => Some(Self::Unlist { post: post(0)?, author: account(8)? }),
            b'R' => {
                let to = Reference { kind: *arguments.get(16)?, post: post(17)?, author: account(25)? };
                Some(Self::Refer { post: post(0)?, author: account(8)?, to })
            }
            b'L' => Some(Self::List { post: post(0)?, author: account(8)? }),
            b'T' => {
                let post = PostRef { id: post(8)?, author: account(16)? };
                Some(Self::Tie { account: account(0)?, post })
            }
            b'P' => {
                let may_drop = *arguments.get(16)? == 1;
                Some(Self::Pair { reader: account(0)?, author: account(8)?, may_drop })
            }
            b'X' => Some(Self::Bury { account: account(0)? }),
            b'O' => Some(Self::Unlock { account: account(0)? }),
            b'M' => Some(Self::Mode { author: account(0)?, random: arguments.get(8..16)?.try_into().ok()? }),
            _ => None,
        }
    }
}

#[cfg(test)]
impl Task {
    /// A task of each kind that a journal may hold.
    pub(crate) fn one_of_each() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).filter_map(|letter| Self::parse(letter, &[1; 40]))
    }
}

impl Entry {
    /// A new entry of ours.
    pub(crate) fn new(bucket: Bucket, owner: Nonce, task: Task) -> Self {
        let (checkpoint, lists) = (String::new(), Vec::new());
        let lacks_replicas = false;
        Self {
            bucket,
            id: draw(),
            owner,
            task,
            checkpoint,
            lacks_replicas,
            recipients: None,
            seen_in: None,
            lists,
            follow: None,
            unfenced: Vec::new(),
        }
    }

    /// What the deletion of a post leaves to do.
    pub(crate) fn all_of_deleted(
        bucket: Bucket,
        owner: Nonce,
        id: PostId,
        (post, tags): (&Post, TagKey),
    ) -> Vec<Self> {
        let lists = post.lists_of_any_release(tags);
        let tasks = Task::all_about(id, post, !lists.is_empty()).into_iter();
        let entry = |task| match task {
            Task::List { .. } => Self { lists: lists.clone(), ..Self::new(bucket, owner, task) },
            _ => Self::new(bucket, owner, task),
        };
        tasks.map(entry).collect()
    }

    /// Its value when it begins.
    pub(crate) fn stored(&self) -> Vec<u8> {
        let mut stored = self.task.stored(&self.owner);
        stored.extend(PostList::all_to_bytes(&self.lists));
        stored
    }

    /// Whether all that was done of it is on replicas, where that is the rule: if they are required, no fence has gone on
    /// without, whoever has done it.
    pub(super) fn is_replicated(&self, rule: Replicas) -> bool {
        rule == Replicas::Required || !self.lacks_replicas
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
        let rest = value.get(task.stored_len()..).ok_or_else(unknown)?;
        let (checkpoint, lists) = match task {
            Task::List { .. } => ("", PostList::all_from_bytes(rest).map_err(|_| unknown())?),
            _ => (std::str::from_utf8(rest).map_err(|_| unknown())?, Vec::new()),
        };
        let lacks_replicas = !checkpoint.is_empty();
        Ok(Self {
            id,
            checkpoint: checkpoint.into(),
            lacks_replicas,
            lists,
            ..Self::new(bucket, *owner, task)
        })
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
            (account(), post(), account())
                .prop_map(|(account, id, author)| Task::Tie { account, post: PostRef { id, author } }),
            (post(), account()).prop_map(|(post, author)| Task::Unlist { post, author }),
            (post(), account(), to).prop_map(|(post, author, to)| Task::Refer { post, author, to }),
            (account(), account(), any::<bool>()).prop_map(|(reader, author, may_drop)| Task::Pair {
                reader,
                author,
                may_drop
            }),
            account().prop_map(|account| Task::Bury { account }),
            account().prop_map(|account| Task::Unlock { account }),
            (account(), any::<Nonce>()).prop_map(|(author, random)| Task::Mode { author, random }),
        ]
    }

    proptest! {
        #[test]
        fn an_entry_gives_back_its_parts(task in tasks(), owner: Nonce, checkpoint in "[a-z0-9.]{0,20}") {
            let mut value = task.stored(&owner);
            prop_assert_eq!(value.len(), task.stored_len());
            value.extend(checkpoint.bytes());
            let entry = Entry::parse(Bucket(3), &[7; 8], &value).unwrap();
            let lacks_replicas = !checkpoint.is_empty();
            let expected = Entry { id: [7; 8], checkpoint, lacks_replicas, ..Entry::new(Bucket(3), owner, task) };
            prop_assert_eq!(entry.is_replicated(Replicas::Preferred), !lacks_replicas);
            // H146
            prop_assert!(entry.is_replicated(Replicas::Required));
            prop_assert_eq!(entry, expected);
        }

        #[test]
        fn an_entry_of_a_deleted_post_gives_back_its_lists(
            post in 0..=i64::MAX as u64, owner: Nonce, tags in proptest::collection::vec(any::<u64>(), 0..90)
        ) {
            let (post, author) = (PostId::from_u64(post).unwrap(), AccountId::new(7).unwrap());
            let lists = tags.into_iter().map(PostList::Tagged).collect();
            let entry = Entry { lists, ..Entry::new(Bucket(3), owner, Task::List { post, author }) };
            prop_assert_eq!(Entry::parse(Bucket(3), &entry.id, &entry.stored()).unwrap(), entry);
        }

        #[test]
        fn reading_never_panics(id: Vec<u8>, value: Vec<u8>) {
            let _ = Entry::parse(Bucket(0), &id, &value);
        }
    }
}
