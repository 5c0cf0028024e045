//! Ids of accounts and posts.
//!
//! A post's id says when it was written and where it lives; ids order posts by time everywhere. They don't fit a
//! double, so an id is never a score. Pure: no I/O, no clock; `Sequencer` hands ids out.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

use crate::bucket::{Bucket, Buckets, mix64};
use crate::error::{Error, Result};

/// Bits below the milliseconds: the author's bucket, then a sequence.
const LOW_BITS: u32 = 16;
/// Ids stay below 2^63, so milliseconds stay below this.
pub const MS_MAX: u64 = (1 << (63 - LOW_BITS)) - 1;

/// An account's id: any number from 1 to 2^63 - 1, the caller's own or allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(u64);

impl AccountId {
    /// Stands for a reader without an account. No account has it: so whatever asks whether the reader is the author, or
    /// among those that a post or a list names, is right for a guest as it stands.
    #[doc(hidden)]
    pub const NOBODY: Self = Self(0);

    #[doc(hidden)]
    pub fn is_nobody(self) -> bool {
        self == Self::NOBODY
    }

    /// Refuses 0 and what does not fit 63 bits.
    pub fn new(id: u64) -> Result<Self> {
        if id == 0 || id > i64::MAX.unsigned_abs() {
            return Err(Error::invalid(format!("account id {id}: ids run from 1 to 2^63 - 1")));
        }
        Ok(Self(id))
    }

    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }

    /// Encodes it as stored in sets and lists: 8 bytes, big-endian, so that byte order is number order.
    pub fn to_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let bytes: [u8; 8] = bytes
            .try_into()
            .map_err(|_| Error::internal(format!("an account id has 8 bytes, not {}", bytes.len())))?;
        Self::new(u64::from_be_bytes(bytes))
    }
}

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A post's id: `unix_ms << 16 | bucket | sequence`, compatible with Mastodon's snowflakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PostId(u64);

impl PostId {
    /// Puts an id together. `sequence` must be below [`sequences`].
    pub fn new(buckets: Buckets, bucket: Bucket, unix_ms: u64, sequence: u64) -> Result<Self> {
        if unix_ms > MS_MAX || sequence >= sequences(buckets) || bucket.index() >= buckets.count() {
            return Err(Error::invalid(format!(
                "no post id for ms {unix_ms}, bucket {bucket}, sequence {sequence} with {} buckets",
                buckets.count()
            )));
        }
        let low = u64::from(bucket.index()) << (LOW_BITS - buckets.bits()) | sequence;
        Ok(Self(unix_ms << LOW_BITS | low))
    }

    /// An id that came from outside; refuses what no allocation could have given.
    pub fn from_u64(id: u64) -> Result<Self> {
        if id > i64::MAX.unsigned_abs() {
            return Err(Error::invalid(format!("post id {id}: ids are below 2^63")));
        }
        Ok(Self(id))
    }

    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }

    /// The lowest number that an id of that millisecond has.
    pub fn lowest_of(unix_ms: u64) -> u64 {
        unix_ms << LOW_BITS
    }

    /// Tells when it was allocated, in milliseconds since 1970.
    pub fn unix_ms(self) -> u64 {
        self.0 >> LOW_BITS
    }

    /// Tells the bucket in which its author lives.
    #[allow(clippy::cast_possible_truncation, reason = "16 bits, then shifted right")]
    pub fn bucket(self, buckets: Buckets) -> Bucket {
        Bucket((self.0 as u16) >> (LOW_BITS - buckets.bits()))
    }

    /// The id's place among those of its millisecond and bucket.
    pub fn sequence(self, buckets: Buckets) -> u64 {
        self.0 & (sequences(buckets) - 1)
    }
}

/// Places of ids are counted from here: in the middle of those that a double can tell apart, whatever the number of
/// buckets (from 1940 to 2079 with the fewest).
const PLACES_FROM_MS: i64 = 1_262_304_000_000;

impl PostId {
    /// The id's place among all of its bucket, as a score: the same order, and exact.
    #[expect(clippy::cast_precision_loss, reason = "below 2^53 for the next 50 years")]
    #[doc(hidden)]
    pub fn place(self, buckets: Buckets) -> f64 {
        let ms = self.unix_ms().cast_signed() - PLACES_FROM_MS;
        (ms * sequences(buckets).cast_signed() + self.sequence(buckets).cast_signed()) as f64
    }

    /// The id at a place of a bucket.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a whole number, or none that this release has written"
    )]
    #[doc(hidden)]
    pub fn at_place(buckets: Buckets, bucket: Bucket, place: f64) -> Result<Self> {
        let (place, of_ms) = (place as i64, sequences(buckets).cast_signed());
        let unix_ms = place.div_euclid(of_ms).saturating_add(PLACES_FROM_MS);
        let wrong = || Error::internal(format!("no post has place {place}"));
        let unix_ms = u64::try_from(unix_ms).map_err(|_| wrong())?;
        Self::new(buckets, bucket, unix_ms, place.rem_euclid(of_ms).unsigned_abs()).map_err(|_| wrong())
    }
}

impl fmt::Display for PostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A stand-in for a name that only one account may have: what kind of name it is, and the hash of it. Accounts store
/// their claims, so what a later release thinks of a name changes nothing about who has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(hidden)]
pub struct Claim([u8; Self::LEN]);

impl Claim {
    /// The length of a claim as it is stored.
    pub const LEN: usize = 17;
    /// The kind of a login.
    pub const LOGIN: u8 = b'l';
    /// The kind of an e-mail address.
    pub const EMAIL: u8 = b'e';

    pub fn new(kind: u8, hash: [u8; 16]) -> Self {
        let mut claim = [kind; Self::LEN];
        claim[1..].copy_from_slice(&hash);
        Self(claim)
    }

    pub fn kind(self) -> u8 {
        self.0[0]
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().map(Self).ok()
    }

    /// Several, as an account's credentials hold them.
    pub fn stored(claims: &[Self]) -> Vec<u8> {
        claims.iter().flat_map(|claim| claim.0).collect()
    }

    /// Reads what [`stored`](Self::stored) wrote.
    pub fn parse_all(stored: &[u8]) -> Result<Vec<Self>> {
        let wrong =
            || Error::internal(format!("claims have {} bytes each, not {} in all", Self::LEN, stored.len()));
        stored.chunks(Self::LEN).map(|bytes| Self::from_bytes(bytes).ok_or_else(wrong)).collect()
    }
}

/// A stand-in for a secret by which something small is found: what kind of secret it is, and the hash of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[doc(hidden)]
pub struct TicketHash([u8; Self::LEN]);

impl TicketHash {
    /// The length of a ticket's hash as it is stored.
    pub const LEN: usize = 17;

    pub fn new(kind: u8, hash: [u8; 16]) -> Self {
        let mut ticket = [kind; Self::LEN];
        ticket[1..].copy_from_slice(&hash);
        Self(ticket)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().map(Self).ok().filter(|ticket| ticket.0[0].is_ascii_alphabetic())
    }
}

/// Spreads ids over a map's places: they are one number each, and a page looks dozens of them up. For maps of one
/// page or one batch, whose size nobody from outside decides.
#[derive(Debug, Clone, Copy, Default)]
#[doc(hidden)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix64(self.0 ^ number);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A map by ids.
#[doc(hidden)]
pub type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// As a string: ids don't fit a double, which is what numbers become in JSON.
impl serde::Serialize for AccountId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        as_text(&self.0, serializer)
    }
}

/// Reads what was written as a string.
impl<'de> serde::Deserialize<'de> for AccountId {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        Self::new(from_text(from)?).map_err(serde::de::Error::custom)
    }
}

/// Reads what was written as a string.
impl<'de> serde::Deserialize<'de> for PostId {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        Self::from_u64(from_text(from)?).map_err(serde::de::Error::custom)
    }
}

/// As a string: ids don't fit a double, which is what numbers become in JSON.
impl serde::Serialize for PostId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        as_text(&self.0, serializer)
    }
}

/// Serializes a number that may be an id.
#[doc(hidden)]
pub fn as_text<S: serde::Serializer>(number: &u64, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

/// Reads what [`as_text`] wrote.
fn from_text<'de, D: serde::Deserializer<'de>>(from: D) -> std::result::Result<u64, D::Error> {
    use serde::{Deserialize as _, de::Error as _};
    let text = String::deserialize(from)?;
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| is_digits);
    number.ok_or_else(|| D::Error::custom(format_args!("an id is a string of digits, not {text:?}")))
}

/// Ids that a bucket can give in one millisecond.
pub fn sequences(buckets: Buckets) -> u64 {
    1 << (LOW_BITS - buckets.bits())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts() -> impl Strategy<Value = (u32, u16, u64, u64)> {
        (4u32..=14).prop_flat_map(|bits| {
            (Just(bits), 0..(1_u16 << bits), 0..=MS_MAX, 0..(1_u64 << (LOW_BITS - bits)))
        })
    }

    proptest! {
        #[test]
        fn an_id_gives_back_its_parts((bits, bucket, ms, sequence) in parts()) {
            let buckets = Buckets::new(1 << bits).unwrap();
            let id = PostId::new(buckets, Bucket(bucket), ms, sequence).unwrap();
            prop_assert_eq!(id.unix_ms(), ms);
            prop_assert_eq!(id.bucket(buckets), Bucket(bucket));
            prop_assert_eq!(id.sequence(buckets), sequence);
            prop_assert_eq!(PostId::from_u64(id.get()).unwrap(), id);
        }

        #[test]
        fn an_id_has_a_place_that_a_score_holds(
            (bits, bucket, _, sequence) in parts(), ms in 0..3_000_000_000_000_u64
        ) {
            let buckets = Buckets::new(1 << bits).unwrap();
            let id = PostId::new(buckets, Bucket(bucket), ms, sequence).unwrap();
            prop_assert_eq!(PostId::at_place(buckets, Bucket(bucket), id.place(buckets)).unwrap(), id);
            if let Ok(next) = PostId::new(buckets, Bucket(bucket), ms + 1, sequence) {
                prop_assert!(next.place(buckets) > id.place(buckets));
            }
        }

        #[test]
        fn ids_of_one_bucket_order_by_time_then_sequence(
            (bits, bucket, ms, sequence) in parts(), other_ms in 0..=MS_MAX, other_sequence: u64
        ) {
            let buckets = Buckets::new(1 << bits).unwrap();
            let other_sequence = other_sequence % sequences(buckets);
            let id = PostId::new(buckets, Bucket(bucket), ms, sequence).unwrap();
            let other = PostId::new(buckets, Bucket(bucket), other_ms, other_sequence).unwrap();
            prop_assert_eq!(id.cmp(&other), (ms, sequence).cmp(&(other_ms, other_sequence)));
        }

        #[test]
        fn account_ids_survive_their_bytes_and_keep_their_order(a in 1..=i64::MAX as u64, b in 1..=i64::MAX as u64) {
            let (a, b) = (AccountId::new(a).unwrap(), AccountId::new(b).unwrap());
            prop_assert_eq!(AccountId::from_bytes(&a.to_bytes()).unwrap(), a);
            prop_assert_eq!(a.to_bytes().cmp(&b.to_bytes()), a.cmp(&b));
        }
    }

    #[test]
    fn refuses_what_does_not_fit() {
        let buckets = Buckets::default();
        assert!(AccountId::new(0).is_err());
        assert!(AccountId::new(1 << 63).is_err());
        assert!(AccountId::from_bytes(b"short").is_err());
        assert!(PostId::from_u64(1 << 63).is_err());
        assert!(PostId::new(buckets, Bucket(0), MS_MAX + 1, 0).is_err());
        assert!(PostId::new(buckets, Bucket(0), 0, 64).is_err());
        assert!(PostId::new(buckets, Bucket(1024), 0, 0).is_err());
    }
}
