//! Ids and scores: the numbers that plan and record work with, as the sets hold them. Pure.

use tideline::AccountId;

/// Ids as large as real ones, so that the memory they take is real too.
const FIRST_MEMBER: u64 = 1_700_000_000_000 << 16;
const FIRST_ACCOUNT: u64 = 1_600_000_000_000 << 16;
/// Between two ids; odd, so that they lie in different buckets.
const ID_STEP: u64 = 65_539;
/// Scores are stamps in milliseconds, as those of real edges.
const FIRST_STAMP: u64 = 1_700_000_000_000;
/// Changes of the run are newer than all that was there before.
const FIRST_CHANGE_STAMP: u64 = FIRST_STAMP + 10_000_000_000;

pub(crate) fn account_id(rank: u64) -> tideline::Result<AccountId> {
    AccountId::new(FIRST_ACCOUNT + rank * ID_STEP)
}

pub(crate) fn member_id(number: u64) -> tideline::Result<AccountId> {
    AccountId::new(FIRST_MEMBER + number * ID_STEP)
}

/// The number of a member that a set holds; `None`: we never made such an id.
pub(crate) fn member_number(id: AccountId) -> Option<u64> {
    let distance = id.get().checked_sub(FIRST_MEMBER)?;
    (distance % ID_STEP == 0).then_some(distance / ID_STEP)
}

/// The score of a follower who was there from the beginning.
pub(crate) fn stamp_at_start(member: u64) -> f64 {
    stamp(FIRST_STAMP + member)
}

/// The score that a follow of the run gives.
pub(crate) fn stamp_of_change(number: u64) -> f64 {
    stamp(FIRST_CHANGE_STAMP + number)
}

#[expect(clippy::cast_precision_loss, reason = "stamps are far below 2^53")]
fn stamp(ms: u64) -> f64 {
    ms as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_give_back_their_numbers() {
        for number in [0, 1, 5_000_000] {
            assert_eq!(member_number(member_id(number).unwrap()), Some(number));
        }
        assert_eq!(member_number(account_id(3).unwrap()), None);
        assert_eq!(member_number(AccountId::new(FIRST_MEMBER + 1).unwrap()), None);
    }

    #[test]
    fn changes_are_newer_than_the_beginning() {
        assert!(stamp_of_change(1) > stamp_at_start(5_000_000));
    }
}
