//! Putting names on lists.

use super::LISTED_MAX;
use super::letters::{Beginning, beginnings_of};
use crate::cluster::{Request, TouchedServers};
use crate::error::Result;
use crate::functions;
use crate::nonce::draw;
use crate::post::Tag;
use crate::sharded::written_together;
use crate::tenant::Tenant;

/// Bits of a score that tell two of the same moment apart.
const RANDOM_BITS: u32 = 10;
/// Bits for when: sixteenths of a second, or so, since 1970, until the year 2500.
const TIME_BITS: u32 = 38;
/// Milliseconds in one of these.
const TICK_BITS: u32 = 6;

/// The score that a name is kept by: in how many bits its followers, or posts, are counted, then when it was put there.
/// Below 2^53, so that a server keeps it as it is.
pub(super) fn score(many: u64, now_ms: u64, random: u64) -> u64 {
    let time = (now_ms >> TICK_BITS) & ((1 << TIME_BITS) - 1);
    (rank(many) << (TIME_BITS + RANDOM_BITS)) | (time << RANDOM_BITS) | (random & ((1 << RANDOM_BITS) - 1))
}

/// In how many bits that many are counted: 31 at most, for what has more is found anyway.
pub(super) fn rank(many: u64) -> u64 {
    u64::from(u64::BITS - many.leading_zeros()).min(31)
}

/// The rank that a score was made with.
pub(super) fn rank_in(score: u64) -> u64 {
    score >> (TIME_BITS + RANDOM_BITS)
}

/// The key of a beginning's list, and its slot.
pub(super) fn list_at(tenant: &Tenant, beginning: &Beginning) -> (Vec<u8>, u16) {
    let (keys, bytes) = (tenant.keys(), beginning.to_bytes());
    (keys.names(&bytes), keys.buckets().slot(keys.bucket_of_names(&bytes)))
}

/// Puts a name on lists, all that can be reached; an error, if one could not be.
pub(super) async fn put_on(
    tenant: &Tenant,
    beginnings: impl IntoIterator<Item = Beginning>,
    member: &[u8],
    many: u64,
    touched: &mut TouchedServers,
) -> Result<()> {
    let score = score(many, tenant.router().now_ms(), u64::from_be_bytes(draw()));
    let add = |beginning: Beginning| {
        let (list, slot) = list_at(tenant, &beginning);
        Request::write(slot, functions::names_add(list, LISTED_MAX, score, member))
    };
    let answers = tenant.router().run(beginnings.into_iter().map(add).collect()).await;
    written_together(answers, touched)
}

/// Has a hashtag found by how it begins, once so many posts bear it. A hint: what can't be reached gets it the next
/// time that their number doubles.
pub(crate) async fn list_hashtag(tenant: &Tenant, tag: &Tag, posts: u64) {
    let listed =
        put_on(tenant, beginnings_of(tag), tag.as_str().as_bytes(), posts, &mut TouchedServers::new()).await;
    if let Err(e) = listed {
        tracing::debug!("hashtag {:?} is not found by all its beginnings: {e}", tag.as_str());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn who_has_twice_as_many_is_kept_longer_and_of_equals_who_came_last(
            many in 0u64..1 << 40, ms in 1_600_000_000_000u64..4_000_000_000_000, later in 64u64..1 << 40,
            random: [u64; 2]
        ) {
            let [one, other] = random;
            let at = score(many, ms, one);
            prop_assert!(at < 1 << 53);
            prop_assert!(at < score(many, ms + later, other));
            prop_assert!(at < score(2 * many + 1, ms - later.min(ms), other) || many >= 1 << 30);
            prop_assert_eq!(rank_in(at), rank(many));
        }
    }
}
