//! Facts and the step that follows from them; and the steps against a small model of the account that a claim names.

use proptest::prelude::*;

use super::*;
use crate::claims::patience_ms;

fn wanted(attempt: u8, age_ms: u64) -> Holder {
    Holder::Wanted { attempt: vec![attempt; 8], age_ms }
}

#[test]
fn a_claim_is_free_once_the_account_lastingly_says_nothing_of_it() {
    let (young, old) = (patience_ms() - 1, patience_ms());
    let table = [
        (None, false, HolderStep::Ask),
        (None, true, HolderStep::Ask),
        (Some(Holder::Held), true, HolderStep::Held),
        (Some(wanted(1, young)), true, HolderStep::Wanted),
        (Some(wanted(1, old)), true, HolderStep::Void(&[1; 8])),
        (Some(Holder::Free), false, HolderStep::Fence),
        (Some(Holder::Free), true, HolderStep::Free),
    ];
    for (holder, lasts, step) in table {
        let facts = HolderFacts { holder, lasts, asked: 3 };
        assert_eq!(facts.step(), step, "{facts:?}");
    }
    // Whoever tries again and again is let in the end.
    let facts = HolderFacts { asked: ASKED_MAX, ..HolderFacts::default() };
    assert_eq!(facts.step(), HolderStep::Wanted);
}

#[test]
fn an_attempt_takes_what_another_one_of_its_account_left_only_while_it_is_under_way_itself() {
    let old = patience_ms();
    let table = [
        (None, true, HolderStep::Ask),
        (Some(Holder::Held), false, HolderStep::Held),
        (Some(wanted(7, 0)), false, HolderStep::Fence),
        (Some(wanted(7, old)), true, HolderStep::Free),
        (Some(wanted(8, 0)), true, HolderStep::Wanted),
        (Some(wanted(8, old)), true, HolderStep::Wanted),
        (Some(Holder::Free), true, HolderStep::Wanted),
    ];
    for (holder, lasts, step) in table {
        let facts = HolderFacts { holder, lasts, asked: 1 };
        assert_eq!(facts.own_step(&[7; 8]), step, "{facts:?}");
    }
}

/// An event that may happen beside the taking of a claim, before any of its steps.
#[derive(Debug, Clone, Copy)]
enum Beside {
    Nothing,
    TimePasses,
    /// The last step of the account's first attempt runs, which has taken the claim: wherever it lay.
    Settles,
    /// Another attempt begins, which hasn't.
    BeginsAnew,
    IsReplicated,
    FailsOver,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Says {
    Nothing,
    Wants(u8, u64),
    Has,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// H92, H130: whatever happens beside it, before and after.
    #[test]
    fn a_claim_is_taken_from_an_account_only_once_that_one_cannot_get_it_any_more(
        first in prop_oneof![
            Just(Says::Nothing),
            Just(Says::Has),
            (0..=1_u8, 0..90_000_u64).prop_map(|(n, age)| Says::Wants(n, age)),
        ],
        beside in proptest::collection::vec(
            prop_oneof![
                5 => Just(Beside::Nothing), 2 => Just(Beside::TimePasses), 3 => Just(Beside::Settles),
                1 => Just(Beside::BeginsAnew), 2 => Just(Beside::IsReplicated), 2 => Just(Beside::FailsOver),
            ],
            14,
        ),
    ) {
        let (mut says, mut replicated, mut life, mut last_attempt) = (first, first, 0, 1);
        let (mut facts, mut first_life, mut is_taken, mut is_over) = (HolderFacts::default(), None, false, false);
        for what in beside {
            match (what, says) {
                (Beside::TimePasses, Says::Wants(n, age)) => says = Says::Wants(n, age + 40_000),
                (Beside::Settles, Says::Wants(0, _)) => says = Says::Has,
                (Beside::BeginsAnew, Says::Nothing) => {
                    last_attempt += 1;
                    says = Says::Wants(last_attempt, 0);
                }
                (Beside::IsReplicated, _) => replicated = says,
                (Beside::FailsOver, _) => (says, life) = (replicated, life + 1),
                _ => {}
            }
            match facts.step() {
                _ if is_over => {}
                HolderStep::Ask => {
                    first_life.get_or_insert(life);
                    facts.asked += 1;
                    facts.holder = Some(match says {
                        Says::Nothing => Holder::Free,
                        Says::Wants(n, age) => wanted(n, age),
                        Says::Has => Holder::Held,
                    });
                }
                HolderStep::Void(attempt) => {
                    // As the function: if it is that one, and old.
                    if matches!(says, Says::Wants(n, age) if attempt == [n; 8] && !is_young(age)) {
                        says = Says::Nothing;
                    }
                    facts.holder = None;
                }
                // What another life of its server has told may be lost.
                HolderStep::Fence if first_life != Some(life) => is_over = true,
                HolderStep::Fence => (replicated, facts.lasts) = (says, true),
                HolderStep::Free => (is_taken, is_over) = (true, true),
                HolderStep::Held | HolderStep::Wanted => is_over = true,
            }
            prop_assert!(!is_taken || says != Says::Has, "two have it: {facts:?}");
        }
    }
}
