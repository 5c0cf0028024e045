//! Every Redis key that Tideline uses, and nothing else. docs/keys.md lists them with type, bound and writer.
//!
//! A key is `prefix{tag}` of its bucket, one letter that says what it is, and a name. The letter comes before
//! anything that a caller chose, so no name can collide with another kind of key.

use std::sync::Arc;

use crate::bucket::{Bucket, Buckets, slot_of};
pub use crate::cluster::keys::PREFIX_LEN_MAX;
pub(crate) use crate::cluster::keys::check_prefix;
use crate::error::Result;
use crate::ids::{AccountId, Claim, PostId, TicketHash};

/// The text before the number in names of floors on hashtags' lists. No list of a post is called so.
const LEFT: &[u8] = b"left:";

/// The keys of one tenant in one cluster: a prefix and a number of buckets.
#[derive(Debug, Clone)]
pub struct Keyspace {
    buckets: Buckets,
    prefix: Arc<str>,
    /// `prefix{tag}` of every bucket.
    heads: Arc<[String]>,
}

/// A kind of key of which each account has one in its own bucket, besides its record and its sets. Who looks through
/// all of them, or drops them, goes by [`ALL`](Self::ALL).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OwnKey {
    /// Whom it pulls when it reads.
    Marks,
    /// Its home timeline.
    Home,
    /// Its own posts.
    Outbox,
    /// Whom it has asked to be followed.
    Requested,
    /// Whose requests it has approved.
    Approved,
    /// Whose requests wait for its answer.
    Waiting,
    /// Whose reposts it leaves out of its home.
    HiddenReposts,
    /// When mutes of its end.
    MuteEnds,
    /// Its private notes on others.
    Notes,
    /// Of a group, its staff.
    Roles,
    /// Of a group, whom it has invited.
    Invited,
    /// What a service keeps with it.
    Documents,
    /// What others did that it is told of.
    Inbox,
    /// What it shows of itself.
    Profile,
    /// What is secret of it, and which names are its own.
    Credentials,
}

impl OwnKey {
    /// All of them, in the order in which they are dropped.
    pub(crate) const ALL: [Self; 15] = [
        Self::Marks,
        Self::Home,
        Self::Outbox,
        Self::Requested,
        Self::Approved,
        Self::Waiting,
        Self::HiddenReposts,
        Self::MuteEnds,
        Self::Notes,
        Self::Roles,
        Self::Invited,
        Self::Documents,
        Self::Inbox,
        Self::Profile,
        // Last: they say which names it has.
        Self::Credentials,
    ];

    const fn letter(self) -> u8 {
        match self {
            Self::Marks => b'm',
            Self::Home => b'h',
            Self::Outbox => b'o',
            Self::Requested => b'r',
            Self::Approved => b'u',
            Self::Waiting => b'l',
            Self::HiddenReposts => b'R',
            Self::MuteEnds => b'M',
            Self::Notes => b'N',
            Self::Roles => b'W',
            Self::Invited => b'J',
            Self::Documents => b'V',
            Self::Inbox => b'I',
            Self::Profile => b'y',
            Self::Credentials => b'x',
        }
    }

    /// The one that a letter stands for.
    pub(crate) fn of_letter(letter: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|own| own.letter() == letter)
    }

    /// Of a hash whose fields are other accounts: what it says of these, in a word.
    pub(crate) fn says_of_others(self) -> Option<&'static str> {
        Some(match self {
            Self::Marks => "pull_marks",
            Self::Requested => "requested",
            Self::Approved => "approved",
            Self::Waiting => "waiting",
            Self::HiddenReposts => "hidden_reposts",
            Self::MuteEnds => "mutes_that_end",
            Self::Notes => "notes",
            Self::Roles => "roles",
            Self::Invited => "invited",
            Self::Home | Self::Outbox | Self::Documents | Self::Inbox | Self::Profile | Self::Credentials => {
                return None;
            }
        })
    }
}

/// The place of a local set's keys: a set of its own, or one bucket's part of a spread set.
///
/// Both may lie in one bucket under one name (the bucket in which a spread set began), so their letters differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Whole,
    Part,
}

impl Keyspace {
    /// The keys that begin with `prefix`: at most 32 bytes, no braces (they would be the hash tag), no control
    /// characters.
    pub fn new(prefix: &str, buckets: Buckets) -> Result<Self> {
        check_prefix(prefix)?;
        let heads = buckets.all().map(|b| format!("{prefix}{{{}}}", buckets.tag(b))).collect();
        Ok(Self { buckets, prefix: prefix.into(), heads })
    }

    /// Tells how the keys are spread.
    pub fn buckets(&self) -> Buckets {
        self.buckets
    }

    /// Gives what every key begins with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    fn key(&self, bucket: Bucket, letter: char, name: &[u8]) -> Vec<u8> {
        let head = &self.heads[usize::from(bucket.index())];
        let mut key = Vec::with_capacity(head.len() + 1 + name.len());
        key.extend_from_slice(head.as_bytes());
        key.push(letter as u8);
        key.extend_from_slice(name);
        key
    }

    /// The tenant's charter: number of buckets, format. Always in slot 0, whatever that number is.
    pub(crate) fn charter(&self) -> Vec<u8> {
        self.key(Bucket(0), 'i', b"")
    }

    /// The last id and the last tick that a bucket gave.
    pub(crate) fn clock(&self, bucket: Bucket) -> Vec<u8> {
        self.key(bucket, 'c', b"")
    }

    /// A local set: all of a small one, the tree of one with pieces.
    pub(crate) fn set(&self, place: Place, bucket: Bucket, name: &[u8]) -> Vec<u8> {
        self.key(bucket, if place == Place::Whole { 's' } else { 't' }, name)
    }

    /// A piece of a local set that has pieces.
    pub(crate) fn piece(&self, place: Place, bucket: Bucket, name: &[u8], piece: u32) -> Vec<u8> {
        let mut key = self.key(bucket, if place == Place::Whole { 'p' } else { 'q' }, b"");
        key.extend_from_slice(format!("{piece:x}:").as_bytes());
        key.extend_from_slice(name);
        key
    }

    /// The prefix of every key of a bucket.
    pub(crate) fn key_prefix(&self, bucket: Bucket) -> &[u8] {
        self.heads[usize::from(bucket.index())].as_bytes()
    }

    /// The prefix of every key of one letter in a bucket; functions put 8 bytes of an id behind it.
    fn head(&self, bucket: Bucket, letter: char) -> Vec<u8> {
        self.key(bucket, letter, b"")
    }

    /// The bucket of an account, in which all of its own keys lie.
    pub(crate) fn bucket_of(&self, account: AccountId) -> Bucket {
        self.buckets.of_account(account.get())
    }

    /// The slot of an account's own keys.
    pub(crate) fn slot_of(&self, account: AccountId) -> u16 {
        self.buckets.slot(self.bucket_of(account))
    }

    fn of_account(&self, letter: char, account: AccountId) -> Vec<u8> {
        self.key(self.bucket_of(account), letter, &account.to_bytes())
    }

    /// One of an account's own keys.
    pub(crate) fn own(&self, own: OwnKey, account: AccountId) -> Vec<u8> {
        self.of_account(char::from(own.letter()), account)
    }

    /// An account's record.
    pub(crate) fn account(&self, account: AccountId) -> Vec<u8> {
        self.of_account('a', account)
    }

    /// The accounts that an account pulls when it reads.
    pub(crate) fn marks(&self, account: AccountId) -> Vec<u8> {
        self.own(OwnKey::Marks, account)
    }

    /// An account's home timeline.
    pub(crate) fn home(&self, account: AccountId) -> Vec<u8> {
        self.own(OwnKey::Home, account)
    }

    /// The prefix of the homes' keys of a bucket.
    pub(crate) fn home_head(&self, bucket: Bucket) -> Vec<u8> {
        self.head(bucket, 'h')
    }

    /// An account's own posts.
    pub(crate) fn outbox(&self, account: AccountId) -> Vec<u8> {
        self.own(OwnKey::Outbox, account)
    }

    /// The accounts that an account has asked to follow.
    pub(crate) fn requested(&self, account: AccountId) -> Vec<u8> {
        self.own(OwnKey::Requested, account)
    }

    /// The accounts whose requests an account has approved.
    pub(crate) fn approved(&self, account: AccountId) -> Vec<u8> {
        self.own(OwnKey::Approved, account)
    }

    /// The accounts whose requests wait for an account's answer.
    pub(crate) fn waiting(&self, account: AccountId) -> Vec<u8> {
        self.own(OwnKey::Waiting, account)
    }

    /// The acts of others that an account is told of.
    pub(crate) fn inbox(&self, account: AccountId) -> Vec<u8> {
        self.own(OwnKey::Inbox, account)
    }

    /// A token with which an account has published.
    pub(crate) fn token(&self, account: AccountId, token: &str) -> Vec<u8> {
        let mut key = self.of_account('k', account);
        key.extend_from_slice(token.as_bytes());
        key
    }

    /// A token with which somebody has reported an account. In the bucket of that one, where the report is.
    pub(crate) fn report_token(&self, target: AccountId, reporter: AccountId, token: &str) -> Vec<u8> {
        let mut key = self.of_account('K', target);
        key.extend_from_slice(&reporter.to_bytes());
        key.extend_from_slice(token.as_bytes());
        key
    }

    /// The owner of a name. In the bucket of the name's hash.
    pub(crate) fn claim(&self, claim: &Claim) -> Vec<u8> {
        self.key(self.bucket_of_claim(claim), 'n', claim.as_bytes())
    }

    /// The bucket in which a claim lies.
    pub(crate) fn bucket_of_claim(&self, claim: &Claim) -> Bucket {
        self.buckets.of_bytes(claim.as_bytes())
    }

    /// A small value that whoever has its secret finds. In the bucket of its hash.
    #[cfg(any(test, feature = "registration"))]
    pub(crate) fn ticket(&self, ticket: &TicketHash) -> Vec<u8> {
        self.key(self.bucket_of_ticket(ticket), 'X', ticket.as_bytes())
    }

    /// The bucket in which a ticket lies.
    pub(crate) fn bucket_of_ticket(&self, ticket: &TicketHash) -> Bucket {
        self.buckets.of_bytes(ticket.as_bytes())
    }

    /// The accounts whose names have that beginning. In the bucket of its hash.
    pub(crate) fn names(&self, beginning: &[u8]) -> Vec<u8> {
        self.key(self.bucket_of_names(beginning), 'Q', beginning)
    }

    /// The bucket in which the list of a beginning lies.
    pub(crate) fn bucket_of_names(&self, beginning: &[u8]) -> Bucket {
        self.buckets.of_bytes(beginning)
    }

    /// The number of times that something happened, by the hash of what that is. In the bucket of the hash.
    pub(crate) fn counter(&self, hash: &[u8; 16]) -> Vec<u8> {
        self.key(self.bucket_of_counter(hash), 'C', hash)
    }

    /// The bucket in which a counter lies.
    pub(crate) fn bucket_of_counter(&self, hash: &[u8; 16]) -> Bucket {
        self.buckets.of_bytes(hash)
    }

    /// The secrets of an account, and the names that are its own.
    pub(crate) fn credentials(&self, account: AccountId) -> Vec<u8> {
        self.own(OwnKey::Credentials, account)
    }

    /// The profile that an account shows of itself.
    pub(crate) fn profile(&self, account: AccountId) -> Vec<u8> {
        self.own(OwnKey::Profile, account)
    }

    /// Reports about the accounts of a bucket: those that are open, those that are resolved.
    pub(crate) fn reports(&self, bucket: Bucket, resolved: bool) -> Vec<u8> {
        self.key(bucket, if resolved { 'B' } else { 'b' }, b"")
    }

    /// The number of reports that each reporter has open in a bucket.
    pub(crate) fn reporters(&self, bucket: Bucket) -> Vec<u8> {
        self.key(bucket, 'e', b"")
    }

    /// A post.
    pub(crate) fn post(&self, post: PostId) -> Vec<u8> {
        self.key(post.bucket(self.buckets), 'w', &post.get().to_be_bytes())
    }

    /// The prefix of the posts' keys of a bucket.
    pub(crate) fn post_head(&self, bucket: Bucket) -> Vec<u8> {
        self.head(bucket, 'w')
    }

    /// The tasks that are to be done in other buckets.
    pub(crate) fn journal(&self, bucket: Bucket) -> Vec<u8> {
        self.key(bucket, 'j', b"")
    }

    /// The days on which the accounts of a bucket that have a home read last.
    pub(crate) fn days(&self, bucket: Bucket) -> Vec<u8> {
        self.key(bucket, 'd', b"")
    }

    /// Edges that were written in a bucket not long ago.
    pub(crate) fn notes(&self, bucket: Bucket) -> Vec<u8> {
        self.key(bucket, 'E', b"")
    }

    /// The time at which something was taken off a list of a post of a bucket last.
    pub(crate) fn last_removal(&self, bucket: Bucket) -> Vec<u8> {
        self.key(bucket, 'D', b"")
    }

    /// The instances that are alive. In bucket 0.
    pub(crate) fn living(&self) -> Vec<u8> {
        self.key(Bucket(0), 'v', b"")
    }

    /// The times at which somebody looks which posts of a bucket may leave memory.
    pub(crate) fn agenda(&self, bucket: Bucket) -> Vec<u8> {
        self.key(bucket, 'F', b"")
    }

    /// The newest public posts of a bucket's accounts.
    pub(crate) fn public_posts(&self, bucket: Bucket) -> Vec<u8> {
        self.key(bucket, 'G', b"")
    }

    /// The tenant's decision, as a bucket knows it.
    pub(crate) fn decision(&self, bucket: Bucket) -> Vec<u8> {
        self.key(bucket, 'z', b"")
    }

    /// While a set is being spread: who may copy into this bucket.
    pub(crate) fn guard(&self, bucket: Bucket, name: &[u8]) -> Vec<u8> {
        self.key(bucket, 'g', name)
    }
}

/// The name of an account's set: it begins with a sign that no other name may begin with, and ends with the account as
/// it stands in all keys, so that functions can put it there.
pub(crate) fn set_of_account(what: &str, account: AccountId) -> Vec<u8> {
    [b"@", what.as_bytes(), b":", &account.to_bytes()].concat()
}

/// The name of a hashtag's list: it begins with the other sign that no other name may begin with.
pub(crate) fn set_of_tag(number: u64) -> Vec<u8> {
    [b"#".as_slice(), &number.to_be_bytes()].concat()
}

/// The name of the floors of authors on a hashtag's list.
pub(crate) fn left_of_tag(number: u64) -> Vec<u8> {
    [b"#".as_slice(), LEFT, &number.to_be_bytes()].concat()
}

/// The number of the hashtag whose floors have that name.
pub(crate) fn tag_left(name: &[u8]) -> Option<u64> {
    let number = name.strip_prefix(b"#")?.strip_prefix(LEFT)?;
    Some(u64::from_be_bytes(number.try_into().ok()?))
}

/// The name of a post's list: longer than any hashtag's, and ends with the post as those of accounts' sets do.
pub(crate) fn list_of_post(what: &str, post: PostId) -> Vec<u8> {
    [b"#", what.as_bytes(), b":", &post.get().to_be_bytes()].concat()
}

/// The slot of a whole key, by its hash tag if it has one.
pub fn slot_of_key(key: &[u8]) -> u16 {
    let tag = key.iter().position(|b| *b == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|b| *b == b'}')?;
        (close > 0).then(|| &rest[..close])
    });
    slot_of(tag.unwrap_or(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::keys::fence;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn refuses_prefixes_that_would_move_keys() {
        for prefix in ["a{b", "}", "line\nbreak", &"x".repeat(PREFIX_LEN_MAX + 1)] {
            assert!(Keyspace::new(prefix, Buckets::default()).is_err(), "{prefix:?}");
        }
    }

    proptest! {
        #[test]
        fn every_key_lies_in_its_buckets_slot_whatever_the_name(
            name in proptest::collection::vec(any::<u8>(), 0..80), bits in 4u32..=14, bucket: u16, piece: u32
        ) {
            let buckets = Buckets::new(1 << bits).unwrap();
            let keys = Keyspace::new("tenant:", buckets).unwrap();
            let bucket = Bucket(bucket % buckets.count());
            let all = [
                keys.clock(bucket), fence("tenant:", buckets.slot(bucket)), keys.guard(bucket, &name),
                keys.set(Place::Whole, bucket, &name), keys.set(Place::Part, bucket, &name),
                keys.piece(Place::Whole, bucket, &name, piece), keys.piece(Place::Part, bucket, &name, piece),
                keys.journal(bucket), keys.notes(bucket), keys.last_removal(bucket),
                keys.decision(bucket), keys.public_posts(bucket), keys.days(bucket),
                keys.home_head(bucket), keys.post_head(bucket),
                keys.reports(bucket, false), keys.reports(bucket, true), keys.reporters(bucket),
            ];
            for key in &all {
                prop_assert_eq!(slot_of_key(key), buckets.slot(bucket));
            }
            prop_assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
            prop_assert_eq!(slot_of_key(&keys.charter()), 0);
        }

        #[test]
        fn an_accounts_keys_lie_in_its_bucket(id in 1..i64::MAX as u64, post in 0..i64::MAX as u64) {
            let keys = Keyspace::new("tenant:", Buckets::new(64).unwrap()).unwrap();
            let (account, post) = (AccountId::new(id).unwrap(), PostId::from_u64(post).unwrap());
            let others =
                [keys.account(account), keys.token(account, "t"), keys.report_token(account, account, "t")];
            let all: Vec<_> = OwnKey::ALL.map(|own| keys.own(own, account)).into_iter().chain(others).collect();
            for key in &all {
                prop_assert_eq!(slot_of_key(key), keys.slot_of(account));
            }
            prop_assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
            prop_assert_eq!(slot_of_key(&keys.post(post)), keys.buckets().slot(post.bucket(keys.buckets())));
        }

        #[test]
        fn a_claim_lies_in_the_bucket_of_its_hash(bytes: [u8; Claim::LEN], bits in 4u32..=14) {
            let keys = Keyspace::new("tenant:", Buckets::new(1 << bits).unwrap()).unwrap();
            let claim = Claim::from_bytes(&bytes).unwrap();
            prop_assert_eq!(slot_of_key(&keys.claim(&claim)), keys.buckets().slot(keys.bucket_of_claim(&claim)));
        }

        #[test]
        fn keys_of_two_names_never_meet(
            a in "[0-9a-f:]{1,6}", b in "[0-9a-f:]{1,6}", piece_a in 0u32..300, piece_b in 0u32..300
        ) {
            prop_assume!((&a, piece_a) != (&b, piece_b));
            let keys = Keyspace::new("", Buckets::default()).unwrap();
            let of = |name: &str, piece| keys.piece(Place::Part, Bucket(3), name.as_bytes(), piece);
            prop_assert_ne!(of(&a, piece_a), of(&b, piece_b));
            prop_assert_ne!(of(&a, piece_a), keys.set(Place::Part, Bucket(3), b.as_bytes()));
        }
    }
}
