//! The decision about a claim that somebody wants, by what the account that it names says. No I/O, no clock.

use super::is_young;
use crate::functions::Holder;

/// Times that an account is asked whose attempts are old each time.
const ASKED_MAX: usize = 16;

/// Facts that the account named by a claim tells of it.
#[derive(Debug, Default)]
pub(super) struct HolderFacts {
    /// `None`: it is to be asked (again).
    pub(super) holder: Option<Holder>,
    pub(super) asked: usize,
    /// That it says so is on replicas.
    pub(super) lasts: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum HolderStep<'a> {
    Ask,
    /// Ends this attempt, if it still is under way.
    Void(&'a [u8]),
    Fence,
    /// The claim may be taken from it, as it was seen.
    Free,
    /// It has the claim.
    Held,
    /// It may get it, or lose it.
    Wanted,
}

impl HolderFacts {
    /// The next step of somebody else.
    pub(super) fn step(&self) -> HolderStep<'_> {
        match &self.holder {
            None if self.asked == ASKED_MAX => HolderStep::Wanted,
            None => HolderStep::Ask,
            Some(Holder::Held) => HolderStep::Held,
            Some(Holder::Wanted { age_ms, .. }) if is_young(*age_ms) => HolderStep::Wanted,
            // First it is ended: then it can't be confirmed any more, whoever sleeps over it.
            Some(Holder::Wanted { attempt, .. }) => HolderStep::Void(attempt),
            // H92: else a failover brings the account, or its attempt, back: without its name.
            Some(Holder::Free) if !self.lasts => HolderStep::Fence,
            Some(Holder::Free) => HolderStep::Free,
        }
    }

    /// The next step of an attempt to give the claim to the account that it names by another one.
    pub(super) fn own_step(&self, attempt: &[u8]) -> HolderStep<'_> {
        match &self.holder {
            None => HolderStep::Ask,
            Some(Holder::Held) => HolderStep::Held,
            Some(Holder::Wanted { attempt: under_way, .. }) if under_way == attempt => match self.lasts {
                true => HolderStep::Free,
                // A primary that was deposed may not have heard of a later attempt.
                false => HolderStep::Fence,
            },
            // H57: this attempt is over, and leaves alone what a later one took. Whoever saw the ended one's word
            // there, and found it free, would take the name away from the later one.
            Some(Holder::Wanted { .. } | Holder::Free) => HolderStep::Wanted,
        }
    }
}

#[cfg(test)]
mod tests;
