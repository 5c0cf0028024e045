//! Buckets: the unit in which Tideline spreads data over a cluster's slots.
//!
//! A cluster has B buckets, fixed when it is initialized. Bucket b lies in slot b * 16384 / B, reached by a
//! short hash tag, so buckets are spread evenly whichever node serves which slot. Pure: no I/O, no clock.

use std::fmt;
use std::sync::OnceLock;

use crate::error::{Error, Result};

/// Slots in every Redis Cluster.
pub const SLOTS: u16 = 16_384;

/// Fewest and most buckets that a cluster can have.
pub const BUCKETS_MIN: u16 = 16;
/// See [`BUCKETS_MIN`].
pub const BUCKETS_MAX: u16 = SLOTS;
/// Buckets of a cluster that was initialized without saying how many.
pub const BUCKETS_DEFAULT: u16 = 1024;

/// Longest tag that [`tag_of_slot`] gives.
const TAG_LEN_MAX: usize = 3;
const TAG_ALPHABET: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// One bucket of a cluster, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket(#[doc(hidden)] pub u16);

impl Bucket {
    /// The bucket's number.
    pub fn index(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of buckets of a tenant: a power of two from 16 to 16,384.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buckets {
    bits: u32,
}

impl Default for Buckets {
    fn default() -> Self {
        Self { bits: BUCKETS_DEFAULT.trailing_zeros() }
    }
}

impl Buckets {
    /// `count` buckets; refuses what is not a power of two from 16 to 16,384.
    pub fn new(count: u16) -> Result<Self> {
        if !count.is_power_of_two() || !(BUCKETS_MIN..=BUCKETS_MAX).contains(&count) {
            return Err(Error::invalid(format!(
                "{count} buckets: the number must be a power of two from {BUCKETS_MIN} to {BUCKETS_MAX}"
            )));
        }
        Ok(Self { bits: count.trailing_zeros() })
    }

    /// Tells how many there are.
    pub fn count(self) -> u16 {
        1 << self.bits
    }

    /// log2 of [`count`](Self::count): the bits that a bucket takes in an id.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Lists all buckets, ascending.
    pub fn all(self) -> impl DoubleEndedIterator<Item = Bucket> + ExactSizeIterator {
        (0..self.count()).map(Bucket)
    }

    /// All buckets, each far from the one before it: what lies between any two of this order is spread over the slots
    /// about evenly.
    #[doc(hidden)]
    pub fn strewn(self) -> impl ExactSizeIterator<Item = Bucket> {
        let unused = u16::BITS - self.bits;
        (0..self.count()).map(move |place| Bucket(place.reverse_bits() >> unused))
    }

    /// The bucket with number `index`, if there is one.
    pub fn get(self, index: u16) -> Option<Bucket> {
        (index < self.count()).then_some(Bucket(index))
    }

    /// The slot in which `bucket` lies.
    pub fn slot(self, bucket: Bucket) -> u16 {
        bucket.0 * (SLOTS >> self.bits)
    }

    /// The hash tag of `bucket`.
    pub fn tag(self, bucket: Bucket) -> &'static str {
        tag_of_slot(self.slot(bucket))
    }

    /// The bucket of an account.
    #[allow(clippy::cast_possible_truncation, reason = "masked to at most 14 bits")]
    pub fn of_account(self, account: u64) -> Bucket {
        Bucket((mix64(account) & (u64::from(self.count()) - 1)) as u16)
    }

    /// Finds the bucket of any bytes: their Redis slot, scaled down.
    pub fn of_bytes(self, bytes: &[u8]) -> Bucket {
        Bucket(slot_of(bytes) >> (SLOTS.trailing_zeros() - self.bits))
    }
}

/// The slot in which Redis Cluster puts these bytes (the bytes of a hash tag, or of a key without one).
pub fn slot_of(bytes: &[u8]) -> u16 {
    crc16::State::<crc16::XMODEM>::calculate(bytes) % SLOTS
}

/// The hash of bytes that Fowler, Noll and Vo named 1a.
#[doc(hidden)]
pub fn fnv(bytes: &[u8]) -> u64 {
    let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, hash)
}

/// Spreads all 64 bits of `x` over all 64 bits of the result, reversibly (the finalizer of SplitMix64).
pub fn mix64(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A hash tag: up to three ASCII characters, kept in one place so that a look-up touches one cache line.
#[derive(Debug, Clone, Copy, Default)]
struct SlotTag {
    len: u8,
    text: [u8; TAG_LEN_MAX],
}

/// The first string, by length and then by alphabet, that Redis hashes to `slot`. Stored data depends on it.
pub fn tag_of_slot(slot: u16) -> &'static str {
    static TAGS: OnceLock<Vec<SlotTag>> = OnceLock::new();
    let tag = &TAGS.get_or_init(find_tags)[usize::from(slot)];
    str::from_utf8(&tag.text[..usize::from(tag.len)]).unwrap_or_default()
}

fn find_tags() -> Vec<SlotTag> {
    let mut tags = vec![SlotTag::default(); usize::from(SLOTS)];
    let mut missing = tags.len();
    let mut shorter = vec![SlotTag::default()];
    for _ in 0..TAG_LEN_MAX {
        let longer: Vec<SlotTag> =
            shorter.iter().flat_map(|tag| TAG_ALPHABET.iter().map(|c| tag.and(*c))).collect();
        for tag in &longer {
            let found = &mut tags[usize::from(slot_of(&tag.text[..usize::from(tag.len)]))];
            if found.len == 0 {
                *found = *tag;
                missing -= 1;
            }
        }
        if missing == 0 {
            break;
        }
        shorter = longer;
    }
    assert_eq!(missing, 0, "every slot has a tag of at most {TAG_LEN_MAX} characters");
    tags
}

impl SlotTag {
    fn and(mut self, character: u8) -> Self {
        self.text[usize::from(self.len)] = character;
        self.len += 1;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn crc16_gives_the_published_values() {
        // "123456789" is the check value in the cluster specification; the others are from `CLUSTER KEYSLOT`.
        assert_eq!(crc16::State::<crc16::XMODEM>::calculate(b"123456789"), 0x31C3);
        assert_eq!(slot_of(b"123456789"), 12_739);
        assert_eq!(slot_of(b"foo"), 12_182);
        assert_eq!(slot_of(b"bar"), 5_061);
        assert_eq!(slot_of(b""), 0);
    }

    #[test]
    fn tags_lie_evenly_over_the_slots_for_every_number_of_buckets() {
        for bits in 4..=14 {
            let buckets = Buckets::new(1 << bits).unwrap();
            let step = SLOTS / buckets.count();
            for (i, bucket) in buckets.all().enumerate() {
                let slot = slot_of(buckets.tag(bucket).as_bytes());
                assert_eq!(usize::from(slot), i * usize::from(step));
                assert_eq!(slot, buckets.slot(bucket));
            }
        }
    }

    #[test]
    fn tags_never_change() {
        // Stored keys carry these tags: another table would lose all data.
        let all: String = (0..SLOTS).map(tag_of_slot).collect::<Vec<_>>().join(",");
        assert_eq!(mix64(all.bytes().fold(0, |h, b| mix64(h ^ u64::from(b)))), GOLDEN_TAGS);
        assert!((0..SLOTS).all(|s| tag_of_slot(s).len() <= TAG_LEN_MAX));
    }
    const GOLDEN_TAGS: u64 = 1_877_482_179_733_568_007;

    #[test]
    fn accounts_spread_evenly_whatever_their_ids_look_like() {
        let buckets = Buckets::new(64).unwrap();
        for stride in [1_u64, 2, 1 << 16, 1 << 22, 1_000_003] {
            let mut count = [0_u32; 64];
            (1..=64_000).for_each(|i| count[usize::from(buckets.of_account(i * stride).0)] += 1);
            // 1,000 expected; five standard deviations are 158.
            assert!(count.iter().all(|n| (840..1160).contains(n)), "stride {stride}: {count:?}");
        }
    }

    #[test]
    fn refuses_counts_that_do_not_fit() {
        for count in [0, 1, 8, 15, 17, 1000, 16_383, 32_768] {
            assert_eq!(Buckets::new(count).unwrap_err().kind(), crate::error::ErrorKind::Invalid);
        }
    }

    proptest! {
        #[test]
        fn bytes_land_in_the_bucket_whose_slots_hold_theirs(bytes: Vec<u8>, bits in 4u32..=14) {
            let buckets = Buckets::new(1 << bits).unwrap();
            let bucket = buckets.of_bytes(&bytes);
            let first = buckets.slot(bucket);
            let last = u32::from(first) + u32::from(SLOTS >> bits);
            prop_assert!((u32::from(first)..last).contains(&u32::from(slot_of(&bytes))));
        }

        #[test]
        fn mix64_is_reversible(a: u64, b: u64) {
            prop_assert_eq!(mix64(a) == mix64(b), a == b);
        }
    }
}
