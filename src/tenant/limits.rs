//! Counts what an account does against limits, and notes who has reached one of late.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Mutex, PoisonError};

use super::Tenant;
use crate::cluster::Request;
use crate::error::{Error, FrequencyBound, Result};
use crate::functions::{ReachedLimit, TimeLimit, TimeLimitAnswer, TimeLimits};
use crate::ids::AccountId;
use crate::limits::AccountLimit;

/// Accounts and limits of which moderators have not heard yet; further ones are refused without a note.
const NOTES_MAX: usize = 1_000;
/// The setting of a limit that is no act's: what comes back from an archive is limited too, and is nobody's fault.
const NO_ACT: &str = "brought_back_max";

impl Tenant {
    /// The limits that these acts count against, each so often: none, where the settings limit none of them.
    pub(crate) fn limits_of(&self, acts: &[(AccountLimit, u16)]) -> TimeLimits {
        let settings = &self.settings.limits;
        let limit = |(act, cost): &(AccountLimit, u16)| {
            let limit = settings.of(*act).filter(|_| *cost > 0)?;
            let (most, most_new) = (limit.most, limit.most_new);
            Some(TimeLimit {
                field: act.field(),
                span: limit.span,
                most,
                most_new,
                cost: *cost,
                words: act.words(),
            })
        };
        TimeLimits { new_for: settings.new_for, limits: acts.iter().filter_map(limit).collect() }
    }

    /// Counts what an account is about to do elsewhere; refuses what it may not now. Whoever isn't there is told so by
    /// what it does.
    pub(crate) async fn count_act(&self, account: AccountId, limits: &TimeLimits) -> Result<()> {
        if limits.limits.is_empty() {
            return Ok(());
        }
        let now_ms = self.router().now_ms();
        let take = limits.take(self.keys().account(account), now_ms);
        // Sent again where its answer is lost: who was told so instead would come again, and be counted as often.
        let answer = self.router().call(Request::write(self.slot(account), take)).await?;
        match TimeLimitAnswer::parse(answer)? {
            TimeLimitAnswer::Counted | TimeLimitAnswer::NoAccount => Ok(()),
            TimeLimitAnswer::Reached(reached) => Err(self.refusal(account, limits, reached, now_ms)),
        }
    }

    /// The error for an account that has reached a limit. Moderators hear of it.
    pub(crate) fn refusal(
        &self,
        account: AccountId,
        limits: &TimeLimits,
        reached: ReachedLimit,
        now_ms: u64,
    ) -> Error {
        let refused = limits.reached(account, reached, now_ms);
        self.note_refusal(account, &refused);
        refused
    }

    /// Has moderators hear of what an account was refused, if that is because it does so too often.
    pub(crate) fn note_refusal(&self, account: AccountId, refused: &Error) {
        if let Some(bound) = refused.frequency_bound() {
            self.reached_limits.note(account, bound);
        }
    }
}

/// Accounts that have reached a limit of late, and which.
#[derive(Debug, Default)]
pub(crate) struct ReachedLimits(Mutex<HashMap<(AccountId, &'static str), Refusals>>);

/// Refusals for one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusals {
    /// How often the account may.
    most: u32,
    times: u32,
}

impl ReachedLimits {
    /// An account was refused something.
    fn note(&self, account: AccountId, bound: FrequencyBound) {
        let Some(setting) = bound.setting.filter(|setting| *setting != NO_ACT) else { return };
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = waiting.len() < NOTES_MAX;
        match waiting.entry((account, setting)) {
            Entry::Occupied(mut seen) => {
                seen.get_mut().most = bound.most;
                seen.get_mut().times = seen.get().times.saturating_add(1);
            }
            Entry::Vacant(new) if has_room => drop(new.insert(Refusals { most: bound.most, times: 1 })),
            Entry::Vacant(_) => {}
        }
    }

    pub(crate) fn take(&self) -> HashMap<(AccountId, &'static str), Refusals> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Refusals {
    /// The text that moderators read.
    pub(crate) fn comment(self, setting: &str) -> String {
        let times = if self.times == 1 { "once".to_owned() } else { format!("{} times", self.times) };
        format!(
            "has reached `{setting}`, which is {} for it: refused {times} before this was noted",
            self.most
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn bound(setting: Option<&'static str>) -> FrequencyBound {
        FrequencyBound { most: 3, again_in: Duration::from_secs(1), setting }
    }

    #[test]
    fn what_is_refused_again_and_again_is_one_note() {
        let (limits, id) = (ReachedLimits::default(), |n| AccountId::new(n).unwrap());
        for _ in 0..5 {
            limits.note(id(1), bound(Some("limits.posts")));
        }
        limits.note(id(1), bound(Some("brought_back_max")));
        limits.note(id(1), bound(None));
        let waiting = limits.take();
        assert_eq!(waiting.len(), 1);
        let comment = waiting[&(id(1), "limits.posts")].comment("limits.posts");
        assert_eq!(
            comment,
            "has reached `limits.posts`, which is 3 for it: refused 5 times before this was noted"
        );
        assert!(limits.take().is_empty());
    }

    #[test]
    fn no_more_wait_than_may() {
        let limits = ReachedLimits::default();
        for n in 1..=2 * NOTES_MAX as u64 {
            limits.note(AccountId::new(n).unwrap(), bound(Some("limits.follows")));
        }
        limits.note(AccountId::new(1).unwrap(), bound(Some("limits.follows")));
        let waiting = limits.take();
        assert_eq!(waiting.len(), NOTES_MAX);
        assert_eq!(waiting[&(AccountId::new(1).unwrap(), "limits.follows")].times, 2);
    }
}
