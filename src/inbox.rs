//! The inbox, by which an account is told of what others did: its entries, and which of them a page is made of. Pure.
//!
//! An entry is a hint: who reads one looks whether what it tells of is still so. The functions that make something so
//! write it, in the same step (`functions/lua/inbox.lua`); or a task does before that, where it lies in another bucket.

use std::collections::HashSet;
use std::fmt;

use crate::cluster::Reply;
use crate::error::{Error, ErrorCode, Result, excerpt};
use crate::ids::{AccountId, PostId};
use crate::post::{LIKES, PostRef, Reference};
use crate::settings::{PAGE_LEN_MAX, page_length};

/// Notifications on a page if the query doesn't say.
const PAGE_DEFAULT: usize = 20;
/// Ids have so many of a millisecond: they rise, whatever clocks do.
const PER_MS: u64 = 256;
/// Ids are below this, so that a double holds each.
const ID_END: u64 = 1 << 53;
/// The longest that an inbox gets, in entries: `INBOX_CUT_AT` of its functions.
pub(crate) const INBOX_MAX: usize = 272;

/// A kind of act that somebody is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NotificationKind {
    /// It has mentioned the account in a post, or written a message in a chat that the account is in.
    Mention,
    /// It follows the account.
    Follow,
    /// It asks to follow the account, which is locked.
    FollowRequest,
    /// It likes a post of the account.
    Like,
    /// It has reposted a post of the account without a comment.
    Repost,
    /// It has quoted a post of the account.
    Quote,
}

impl NotificationKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Mention, Self::Follow, Self::FollowRequest, Self::Like, Self::Repost, Self::Quote];

    const fn letter(self) -> u8 {
        match self {
            Self::Mention => b'm',
            Self::Follow => b'f',
            Self::FollowRequest => b'r',
            Self::Like => b'l',
            Self::Repost => b'b',
            Self::Quote => b'q',
        }
    }
}

/// The id of a notification among those of one account: it says when that came, and is never given twice there. Below
/// 2^53.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NotificationId(u64);

impl NotificationId {
    /// The highest that there can be.
    pub const MAX: Self = Self(ID_END - 1);

    /// An id that came from outside.
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid): it is not below 2^53.
    pub fn from_u64(id: u64) -> Result<Self> {
        if id >= ID_END {
            let text = format!("notification id {id}: ids are below 2^53");
            return Err(Error::new(ErrorCode::Malformed, text));
        }
        Ok(Self(id))
    }

    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }

    /// Tells when it came, in milliseconds since 1970.
    pub fn unix_ms(self) -> u64 {
        self.0 / PER_MS
    }
}

impl fmt::Display for NotificationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for NotificationId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| is_digits);
        Self::from_u64(number.ok_or_else(|| {
            let text = format!("notification id {:?}: ids are numbers below 2^53", excerpt(text));
            Error::new(ErrorCode::Malformed, text)
        })?)
    }
}

crate::serialized::as_text!(NotificationId);

/// A question for a page of notifications; the default is the newest ones.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct NotificationQuery {
    /// Notifications on the page: 1 to 100; `None`: 20.
    pub limit: Option<usize>,
    /// Only older ones than this.
    pub max_id: Option<NotificationId>,
    /// Only newer ones than this, the newest first.
    pub since_id: Option<NotificationId>,
    /// Only newer ones than this, and of these the ones next to it.
    pub min_id: Option<NotificationId>,
    /// Only of these kinds; `None`: of all.
    pub kinds: Option<Vec<NotificationKind>>,
    /// Only of what this account did, in groups and chats too.
    pub by: Option<AccountId>,
}

impl NotificationQuery {
    /// Sets how many notifications the page has.
    #[must_use]
    pub fn limit(self, notifications: usize) -> Self {
        Self { limit: Some(notifications), ..self }
    }

    /// The number of notifications on the page; refuses one that no page may have.
    pub(crate) fn page_length(&self) -> Result<usize> {
        page_length(self.limit.unwrap_or(PAGE_DEFAULT), PAGE_LEN_MAX)
    }

    /// Whether the page begins with what is next to `min_id`.
    pub(crate) fn is_upward(&self) -> bool {
        self.min_id.is_some()
    }

    /// The entries that may be on the page, in the order in which they are looked at; of an entry that stands there
    /// twice the newer one. `entries`: all of them, as they stand in the inbox.
    pub(crate) fn asked_for(&self, entries: &[InboxEntry]) -> Vec<InboxEntry> {
        let mut told = HashSet::with_capacity(entries.len());
        let newest = entries.iter().rev().filter(|entry| told.insert(entry.told));
        let asked = newest.filter(|InboxEntry { id, told }| {
            self.max_id.is_none_or(|max| *id < max)
                && self.since_id.is_none_or(|since| *id > since)
                && self.min_id.is_none_or(|min| *id > min)
                && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(&told.kind))
                && self.by.is_none_or(|by| told.by == by)
        });
        let mut asked: Vec<InboxEntry> = asked.copied().collect();
        if self.is_upward() {
            asked.reverse();
        }
        asked
    }
}

/// A notice: what an account is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Notice {
    pub(crate) kind: NotificationKind,
    /// Who did it.
    pub(crate) by: AccountId,
    /// What it is about: a post; of a follow since when, of a request its bytes.
    pub(crate) about: [u8; 8],
    /// The group or the chat that has the post, if a member wrote it there.
    pub(crate) within: Option<AccountId>,
}

impl Notice {
    /// Bytes of one, but for the group or the chat.
    const LEN: usize = 17;

    /// Of what comes onto a list of a post: what its author is told. Nobody is told of replies, which mention whom they
    /// are for.
    pub(crate) fn of_list(kind: u8, post: PostId, by: AccountId, listed: PostRef) -> Option<Self> {
        Some(match kind {
            LIKES => Self::about_post(NotificationKind::Like, by, post),
            Reference::REPOST => Self::about_post(NotificationKind::Repost, by, post),
            Reference::QUOTE => Self::of_post(NotificationKind::Quote, by, listed),
            _ => return None,
        })
    }

    /// Of a post that mentions the account.
    pub(crate) fn of_mention(by: AccountId, post: PostRef) -> Self {
        Self::of_post(NotificationKind::Mention, by, post)
    }

    /// Of a post that somebody wrote, and of which group or chat, where it wrote it as a member of that. H279: whoever
    /// founds many groups has one account's part of an inbox by them.
    fn of_post(kind: NotificationKind, by: AccountId, post: PostRef) -> Self {
        let within = Some(post.author).filter(|author| *author != by);
        Self { within, ..Self::about_post(kind, by, post.id) }
    }

    fn about_post(kind: NotificationKind, by: AccountId, post: PostId) -> Self {
        Self { kind, by, about: post.get().to_be_bytes(), within: None }
    }

    /// Of a follow, by the tick that it has.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "ticks are whole numbers, never below 0"
    )]
    pub(crate) fn of_follow(by: AccountId, since: f64) -> Self {
        Self { kind: NotificationKind::Follow, by, about: (since as u64).to_be_bytes(), within: None }
    }

    /// Of a request to follow.
    pub(crate) fn of_request(by: AccountId, request: [u8; 8]) -> Self {
        Self { kind: NotificationKind::FollowRequest, by, about: request, within: None }
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::LEN + 8);
        bytes.push(self.kind.letter());
        bytes.extend(self.by.to_bytes());
        bytes.extend(self.about);
        bytes.extend(self.within.iter().flat_map(|within| within.to_bytes()));
        bytes
    }

    /// The post that it is about, in the inbox of that account.
    pub(crate) fn post(&self, owner: AccountId) -> Option<PostRef> {
        let author = match self.kind {
            NotificationKind::Like | NotificationKind::Repost => self.within.unwrap_or(owner),
            NotificationKind::Mention | NotificationKind::Quote => self.within.unwrap_or(self.by),
            NotificationKind::Follow | NotificationKind::FollowRequest => return None,
        };
        Some(PostRef { id: PostId::from_u64(u64::from_be_bytes(self.about)).ok()?, author })
    }
}

/// An entry of an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct InboxEntry {
    pub(crate) id: NotificationId,
    pub(crate) told: Notice,
}

impl InboxEntry {
    /// Reads one; `None`: it is blank, or a later release knows what it says.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (id, rest) = bytes.split_first_chunk::<8>()?;
        let (letter, rest) = rest.split_first()?;
        let (by, rest) = rest.split_first_chunk::<8>()?;
        let (about, within) = rest.split_first_chunk::<8>()?;
        let within = match within {
            [] => None,
            within => Some(AccountId::from_bytes(within).ok()?),
        };
        Some(Self {
            id: NotificationId::from_u64(u64::from_be_bytes(*id)).ok()?,
            told: Notice {
                kind: NotificationKind::ALL.into_iter().find(|kind| kind.letter() == *letter)?,
                by: AccountId::from_bytes(by).ok()?,
                about: *about,
                within,
            },
        })
    }

    /// Reads an inbox, the oldest entry first.
    pub(crate) fn parse_all(inbox: Reply) -> Result<Vec<Self>> {
        let mut all = Vec::with_capacity(INBOX_MAX);
        for entry in inbox.into_array()? {
            all.extend(Self::parse(entry.bytes()?));
        }
        Ok(all)
    }
}

/// The id of an inbox's last entry, blank or not.
pub(crate) fn last_id(entry: &Reply) -> Result<Option<NotificationId>> {
    if entry.is_nil() {
        return Ok(None);
    }
    let id = entry.bytes()?.first_chunk::<8>();
    let id = id.and_then(|id| NotificationId::from_u64(u64::from_be_bytes(*id)).ok());
    id.map(Some).ok_or_else(|| Error::internal("an entry of an inbox has no id"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn told(kind: usize, by: u64, about: u64) -> Notice {
        let (kind, by) = (NotificationKind::ALL[kind], AccountId::new(by).unwrap());
        Notice { kind, by, about: about.to_be_bytes(), within: None }
    }

    fn id(id: u64) -> NotificationId {
        NotificationId::from_u64(id).unwrap()
    }

    #[test]
    fn letters_are_one_for_each_kind() {
        let letters: HashSet<u8> = NotificationKind::ALL.map(NotificationKind::letter).into();
        assert_eq!(letters.len(), NotificationKind::ALL.len());
        assert_eq!(id(NotificationId::MAX.get()), NotificationId::MAX);
        assert!(NotificationId::from_u64(NotificationId::MAX.get() + 1).is_err());
    }

    proptest! {
        #[test]
        fn a_record_survives_its_bytes_and_others_are_left_out(
            at in 0..ID_END, kind in 0..6_usize, by in 1..i64::MAX as u64, about: u64,
            within in proptest::option::of(1..i64::MAX as u64), bytes: Vec<u8>
        ) {
            let within = within.map(|within| AccountId::new(within).unwrap());
            let entry = InboxEntry { id: id(at), told: Notice { within, ..told(kind, by, about) } };
            let stored = [at.to_be_bytes().as_slice(), &entry.told.to_bytes()].concat();
            prop_assert_eq!(InboxEntry::parse(&stored), Some(entry));
            // A blank one, and what a later release may write.
            prop_assert_eq!(InboxEntry::parse(&[&stored[..8], b"-"].concat()), None);
            prop_assert_eq!(InboxEntry::parse(&[&stored[..], b"x"].concat()), None);
            let _ = InboxEntry::parse(&bytes);
        }

        #[test]
        fn what_is_asked_for_is_what_a_look_at_each_record_finds(
            of in proptest::collection::vec((0..6_usize, 1..4_u64, 0..3_u64), 0..40),
            max in proptest::option::of(0..50_u64), since in proptest::option::of(0..50_u64),
            min in proptest::option::of(0..50_u64), kind in proptest::option::of(0..6_usize),
            by in proptest::option::of(1..4_u64)
        ) {
            let entries: Vec<InboxEntry> = (0..).zip(&of)
                .map(|(at, (kind, by, about))| InboxEntry { id: id(at), told: told(*kind, *by, *about) })
                .collect();
            let query = NotificationQuery {
                limit: None,
                max_id: max.map(id), since_id: since.map(id), min_id: min.map(id),
                kinds: kind.map(|kind| vec![NotificationKind::ALL[kind]]),
                by: by.map(|by| AccountId::new(by).unwrap()),
            };
            let mut wanted = Vec::new();
            for (n, entry) in entries.iter().enumerate() {
                let at = entry.id.get();
                let is_last = entries[n + 1..].iter().all(|later| later.told != entry.told);
                let is_between = max.is_none_or(|max| at < max)
                    && since.is_none_or(|since| at > since)
                    && min.is_none_or(|min| at > min);
                let is_kind = kind.is_none_or(|kind| entry.told.kind == NotificationKind::ALL[kind]);
                let is_by = by.is_none_or(|by| entry.told.by.get() == by);
                if is_last && is_between && is_kind && is_by {
                    wanted.push(*entry);
                }
            }
            if min.is_none() {
                wanted.reverse();
            }
            prop_assert_eq!(query.asked_for(&entries), wanted);
        }
    }
}
