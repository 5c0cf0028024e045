//! What an account does counted against limits.

use super::Tenant;
use crate::cluster::Request;
use crate::error::Result;
use crate::functions::{TimeLimit, TimeLimitAnswer, TimeLimits};
use crate::ids::AccountId;
use crate::limits::AccountLimit;

impl Tenant {
    /// What these acts count against, each so often: none of them, where the settings limit none.
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
        let answer = self.router().call(Request::write(self.slot(account), take)).await?;
        match TimeLimitAnswer::parse(answer)? {
            TimeLimitAnswer::Counted | TimeLimitAnswer::NoAccount => Ok(()),
            TimeLimitAnswer::Reached(number, most) => Err(limits.reached(account, (number, most), now_ms)),
        }
    }
}
