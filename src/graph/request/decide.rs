//! The next step of an approval, by what it has seen so far. No I/O, no clock.

use crate::nonce::Nonce;

/// Facts seen of a request that is to be approved; each look is `None` until it is taken.
#[derive(Debug, Default)]
pub(super) struct ApprovalFacts {
    /// The requester's stamps are others than before.
    pub(super) is_renewed: bool,
    pub(super) request: Option<Option<Nonce>>,
    /// There was no request, and then no follow.
    pub(super) follows_not: bool,
    /// Which request was approved until now. Whoever says so: it is compared.
    pub(super) before: Option<Option<Nonce>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApprovalStep {
    Renew,
    AskRequest,
    AskBefore,
    /// There is nothing to approve: that the requester follows already is good.
    LookIfItFollows,
    /// It neither asks nor follows.
    Refuse,
    /// Writes that this very request is approved, where `before` stands.
    Approve {
        before: Option<Nonce>,
        request: Nonce,
    },
}

impl ApprovalFacts {
    pub(super) fn step(&self) -> ApprovalStep {
        // H55: first: what turned the request down before, and lies in some socket, must not run after this.
        if !self.is_renewed {
            return ApprovalStep::Renew;
        }
        match (self.request, self.before) {
            (None, _) => ApprovalStep::AskRequest,
            // After the request: what has approved it meanwhile has made a follow of it. H153: a lock may have made a
            // request of the follow, so the request is looked at once more before anybody is refused.
            (Some(None), _) if self.follows_not => ApprovalStep::Refuse,
            (Some(None), _) => ApprovalStep::LookIfItFollows,
            (Some(Some(_)), None) => ApprovalStep::AskBefore,
            // H22: the request by its own bytes: that says nothing of one that is made once it is taken back.
            (Some(Some(request)), Some(before)) => ApprovalStep::Approve { before, request },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIRST: Nonce = *b"request1";
    const SECOND: Nonce = *b"request2";

    #[test]
    fn an_approval_looks_after_it_has_renewed_the_requesters_stamps() {
        let table = [
            ((false, Some(Some(FIRST)), Some(None)), ApprovalStep::Renew),
            ((true, None, None), ApprovalStep::AskRequest),
            ((true, Some(None), None), ApprovalStep::LookIfItFollows),
            ((true, Some(Some(FIRST)), None), ApprovalStep::AskBefore),
            (
                (true, Some(Some(FIRST)), Some(Some(SECOND))),
                ApprovalStep::Approve { before: Some(SECOND), request: FIRST },
            ),
            ((true, Some(Some(SECOND)), Some(None)), ApprovalStep::Approve { before: None, request: SECOND }),
        ];
        for ((is_renewed, request, before), step) in table {
            let facts = ApprovalFacts { is_renewed, request, before, follows_not: false };
            assert_eq!(facts.step(), step, "{facts:?}");
        }
        let facts = ApprovalFacts { is_renewed: true, follows_not: true, ..ApprovalFacts::default() };
        assert_eq!(facts.step(), ApprovalStep::AskRequest);
        let facts = ApprovalFacts { request: Some(None), ..facts };
        assert_eq!(facts.step(), ApprovalStep::Refuse);
    }

    /// An event that may happen beside an approval, before any of its steps.
    #[derive(Debug, Clone, Copy)]
    enum Beside {
        Nothing,
        /// The requester asks (anew).
        Asks,
        TakesBack,
        /// A rejection that was decided before the approval, and compares the requester's stamps, runs at last.
        IsRejected,
        /// The pair is settled: the requester follows if what it asks is what was approved.
        IsSettled,
        /// A follow that was written after its author was locked becomes a request.
        IsUnapproved,
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        /// H22, H55: an approval that was acknowledged lets the request follow that stood there, and none but one that
        /// stood there while it ran; and no rejection from before comes after it. H153: it isn't refused to whom has
        /// asked or followed all the time, of which one became the other once.
        #[test]
        fn an_approval_counts_for_the_very_request_that_it_was_given_for(
            asks_first: bool,
            follows_first: bool,
            beside in proptest::collection::vec(
                prop_oneof![
                    4 => Just(Beside::Nothing), 2 => Just(Beside::Asks), 1 => Just(Beside::TakesBack),
                    2 => Just(Beside::IsRejected), 2 => Just(Beside::IsSettled), 2 => Just(Beside::IsUnapproved),
                ],
                10,
            ),
        ) {
            let draw = |n: u8| [n; 8];
            let (mut last, mut stamp, decided_under) = (1, 0_u32, 0);
            let (mut request, mut approved) = ((asks_first && !follows_first).then(|| draw(1)), None);
            let (mut follows, mut was_neither, mut turned) = (follows_first, false, 0);
            let (mut facts, mut is_over, mut given_for) = (ApprovalFacts::default(), false, None);
            for what in beside {
                match what {
                    Beside::Asks if request.is_none() && !follows => {
                        (last, stamp) = (last + 1, stamp + 1);
                        request = Some(draw(last));
                    }
                    Beside::TakesBack => (request, follows, stamp) = (None, false, stamp + 1),
                    Beside::IsRejected if stamp == decided_under => {
                        prop_assert!(given_for.is_none(), "it was acknowledged, and is rejected: {facts:?}");
                        (request, stamp) = (None, stamp + 1);
                    }
                    Beside::IsSettled if request.is_some() && request == approved => {
                        prop_assert!(given_for == request, "{given_for:?}, not {request:?}");
                        (request, follows, stamp, turned) = (None, true, stamp + 1, turned + 1);
                    }
                    Beside::IsUnapproved if follows && !is_over => {
                        (last, stamp, turned) = (last + 1, stamp + 1, turned + 1);
                        (request, follows) = (Some(draw(last)), false);
                    }
                    _ => {}
                }
                was_neither |= request.is_none() && !follows;
                match facts.step() {
                    _ if is_over => {}
                    ApprovalStep::Renew => (facts.is_renewed, stamp) = (true, stamp + 1),
                    ApprovalStep::AskRequest => facts.request = Some(request),
                    ApprovalStep::AskBefore => facts.before = Some(approved),
                    ApprovalStep::Approve { before, request: of } => {
                        prop_assert!(facts.request == Some(Some(of)) && before == approved);
                        (approved, given_for, is_over) = (Some(of), Some(of), true);
                    }
                    ApprovalStep::LookIfItFollows if follows => is_over = true,
                    ApprovalStep::LookIfItFollows => (facts.follows_not, facts.request) = (true, None),
                    ApprovalStep::Refuse => {
                        prop_assert!(was_neither || turned > 1, "refused: {facts:?}");
                        is_over = true;
                    }
                }
            }
        }
    }
}
