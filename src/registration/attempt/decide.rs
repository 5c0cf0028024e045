//! Decides what becomes of a claim that an attempt reads again, after its account was told to have it. No I/O, no
//! clock.

use crate::claims::ClaimOutcome;

#[derive(Debug, Default)]
pub(super) struct ClaimFacts {
    /// The claim names the account.
    pub(super) names_us: bool,
    /// What the account says is the word of this attempt still. Asked anew once the claim was to be taken again.
    pub(super) is_last: Option<bool>,
    /// What came of taking it again.
    pub(super) taken: Option<ClaimOutcome>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimStep {
    AskLast,
    Take,
    /// Goes on with the next claim.
    Next,
    /// The account's names were changed since: the others are none of this attempt's business either.
    Stop,
    /// Somebody else has it by now.
    Lost(ClaimOutcome),
}

impl ClaimFacts {
    pub(super) fn step(&self) -> ClaimStep {
        if self.names_us || self.taken == Some(ClaimOutcome::Ours) {
            return ClaimStep::Next;
        }
        // H57: whoever has changed the account's names was told of it, and what this attempt had taken may be somebody
        // else's, rightly. So before a claim is taken, and before the account is given up for one.
        match (self.is_last, self.taken) {
            (None, _) => ClaimStep::AskLast,
            (Some(false), _) => ClaimStep::Stop,
            (Some(true), None) => ClaimStep::Take,
            (Some(true), Some(taken)) => ClaimStep::Lost(taken),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::AccountId;

    #[test]
    fn a_claim_is_taken_again_and_given_up_for_only_by_the_accounts_last_attempt() {
        let other = AccountId::new(7).unwrap();
        let table = [
            ((true, None, None), ClaimStep::Next),
            ((true, Some(false), None), ClaimStep::Next),
            ((false, None, None), ClaimStep::AskLast),
            ((false, Some(false), None), ClaimStep::Stop),
            ((false, Some(true), None), ClaimStep::Take),
            ((false, None, Some(ClaimOutcome::Ours)), ClaimStep::Next),
            ((false, None, Some(ClaimOutcome::Held(other))), ClaimStep::AskLast),
            ((false, Some(false), Some(ClaimOutcome::Held(other))), ClaimStep::Stop),
            ((false, Some(false), Some(ClaimOutcome::Wanted(other))), ClaimStep::Stop),
            (
                (false, Some(true), Some(ClaimOutcome::Held(other))),
                ClaimStep::Lost(ClaimOutcome::Held(other)),
            ),
            (
                (false, Some(true), Some(ClaimOutcome::Wanted(other))),
                ClaimStep::Lost(ClaimOutcome::Wanted(other)),
            ),
        ];
        for ((names_us, is_last, taken), step) in table {
            let facts = ClaimFacts { names_us, is_last, taken };
            assert_eq!(facts.step(), step, "{facts:?}");
        }
    }
}
