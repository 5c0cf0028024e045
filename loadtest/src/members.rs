//! Ids and scores of accounts that have numbers here, as sets hold them. Pure.

use tideline::AccountId;

use crate::stats::count;

/// Ids as large as real ones, so that the memory they take is real too.
const FIRST_MEMBER: u64 = 1_700_000_000_000 << 16;
const FIRST_ACCOUNT: u64 = 1_600_000_000_000 << 16;
/// Between two ids; odd, so that they lie in different buckets.
const ID_STEP: u64 = 65_539;
/// Scores are ticks in milliseconds, as those of real edges.
const FIRST_TICK: u64 = 1_700_000_000_000;

pub(crate) fn account_id(rank: u64) -> tideline::Result<AccountId> {
    AccountId::new(FIRST_ACCOUNT + rank * ID_STEP)
}

pub(crate) fn member_id(number: u64) -> tideline::Result<AccountId> {
    AccountId::new(FIRST_MEMBER + number * ID_STEP)
}

/// The score of a follower who was there from the beginning.
pub(crate) fn tick_at_start(member: u64) -> f64 {
    count(FIRST_TICK + member)
}
