//! Asking the policy: when facts have come in, and at most once a minute for each account.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;

use super::policy::{Facts, Policy, Way};
use crate::cluster::{Command, Request};
use crate::context::Context;
use crate::error::Result;
use crate::functions::{account_set, pulls_add};
use crate::ids::AccountId;
use crate::{meters, rules};

/// Accounts whose last look is remembered.
const LOOKED_AT_MAX: usize = 100_000;
/// What is older than this counts for a third in the rates.
const MEMORY: Duration = Duration::from_secs(6 * 3600);
const DAY: Duration = Duration::from_secs(86_400);
/// Accounts looked at side by side.
const AT_ONCE: usize = 16;

/// The policy, and when it was asked about whom.
#[derive(Debug)]
pub(crate) struct Judge {
    policy: Arc<dyn Policy>,
    looked_at: Cache<AccountId, Instant>,
    every: Duration,
}

impl Judge {
    /// `every`: how often it is asked about an account at most, and pulls are brought into records.
    pub(crate) fn new(policy: Arc<dyn Policy>, every: Duration) -> Self {
        Self { policy, looked_at: Cache::new(LOOKED_AT_MAX), every }
    }

    /// Whether an account's turn has come.
    fn is_due(&self, account: AccountId) -> bool {
        let is_due = self.looked_at.get(&account).is_none_or(|at| at.elapsed() >= self.every);
        if is_due {
            self.looked_at.insert(account, Instant::now());
        }
        is_due
    }
}

/// Rates of an account, as its record keeps them: how many posts and pulls there were at a moment, and how many came a day
/// before that.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Rates {
    at_ms: u64,
    posts: u64,
    pulls: u64,
    posts_per_day: f64,
    pulls_per_day: f64,
}

impl Rates {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let rates = Self {
            at_ms: parts.next()?.parse().ok()?,
            posts: parts.next()?.parse().ok()?,
            pulls: parts.next()?.parse().ok()?,
            posts_per_day: parts.next()?.parse().ok()?,
            pulls_per_day: parts.next()?.parse().ok()?,
        };
        let is_sound = rates.posts_per_day.is_finite() && rates.pulls_per_day.is_finite();
        is_sound.then_some(rates)
    }

    fn stored(self) -> String {
        format!(
            "{} {} {} {:.3} {:.3}",
            self.at_ms, self.posts, self.pulls, self.posts_per_day, self.pulls_per_day
        )
    }

    /// The rates with what has been counted since. Until a time has been seen that means something, what is known is
    /// what was counted.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn at(self, now_ms: u64, posts: u64, pulls: u64) -> Self {
        let passed = Duration::from_millis(now_ms.saturating_sub(self.at_ms)).as_secs_f64();
        let days = passed / DAY.as_secs_f64();
        let kept = if self.at_ms == 0 { 0.0 } else { (-passed / MEMORY.as_secs_f64()).exp() };
        let blend = |before: f64, count: u64, then: u64| {
            before * kept + count.saturating_sub(then) as f64 / days.max(f64::MIN_POSITIVE) * (1.0 - kept)
        };
        if self.at_ms == 0 {
            return Self { at_ms: now_ms, posts, pulls, ..self };
        }
        Self {
            at_ms: now_ms,
            posts,
            pulls,
            posts_per_day: blend(self.posts_per_day, posts, self.posts),
            pulls_per_day: blend(self.pulls_per_day, pulls, self.pulls),
        }
    }
}

/// A fan-out to so many followers has just ended, or an account was pulled so often: perhaps its way should change.
pub(crate) async fn decide(
    context: &Arc<Context>,
    account: AccountId,
    counted: Option<(u64, u64)>,
    pulls: u64,
) -> Result<()> {
    if pulls == 0 && !context.judge.is_due(account) {
        return Ok(());
    }
    let slot = context.slot(account);
    let record = context.keys().account(account);
    if pulls > 0 {
        // Only where there is an account: nothing may bring one back.
        let add = pulls_add(record.clone(), pulls);
        context.router().call(Request::write(slot, add)).await?;
    }
    let fields = Command::new("HMGET").arg(&record);
    let fields = ["s", "m", "mf", "nF", "fd", "p", "pn", "ra"].iter().fold(fields, |c, field| c.arg(*field));
    let reply = context.router().call(Request::read(slot, fields)).await?.into_array()?;
    let text = |n: usize| reply.get(n).and_then(|field| field.text().ok()).unwrap_or_default();
    let number = |n: usize| text(n).parse::<u64>().unwrap_or_default();
    let letter = |n: usize| reply.get(n).and_then(|f| f.bytes().ok()?.first().copied()).unwrap_or_default();
    if !matches!(letter(0), b'a' | b'l') {
        return Ok(());
    }
    let now = Way::of(crate::account::Mode::from_letter(letter(1)));
    let seen = Rates::parse(text(7)).unwrap_or_default();
    let now_ms = context.router().now_ms();
    let rates = if now_ms.saturating_sub(seen.at_ms) >= rules::size(1_000, 1) {
        seen.at(now_ms, number(5), number(6))
    } else {
        seen
    };
    if rates != seen {
        let fields = [("ra", rates.stored().into_bytes())];
        context.router().call(Request::write(slot, account_set(record, None, fields))).await?;
    }
    let (followers, awake) = match counted {
        Some(counted) => counted,
        None => {
            // While it is pulled nobody goes through its followers: how many there are is asked, how many are awake is
            // taken from the last fan-out.
            let followers = context.followers(account)?.len().await?;
            let (delivered, of) = (number(4), number(3));
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "an estimate"
            )]
            let awake =
                if of > 0 { (followers as f64 * delivered as f64 / of as f64) as u64 } else { followers };
            (followers, awake.min(followers))
        }
    };
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let reads_per_day = match now {
        Way::Pull => rates.pulls_per_day,
        Way::Push => awake as f64 * context.traffic.reads_per_reader(),
    };
    let facts = Facts { account, now, followers, awake, posts_per_day: rates.posts_per_day, reads_per_day };
    let is_forced = letter(2) != 0;
    let wanted = context.judge.policy.way(&facts);
    if wanted != now && !is_forced {
        tracing::info!("account {account} is to be {}ed from now on: {facts:?}", wanted.label());
        super::change(context, account, wanted).await?;
    }
    Ok(())
}

/// Brings what was pulled into the authors' records, once a minute, and asks the policy about them.
pub(crate) async fn keep_judging(context: Weak<Context>) {
    loop {
        let every = match context.upgrade() {
            Some(context) if !context.tasks.is_stopping() => context.judge.every,
            _ => return,
        };
        tokio::time::sleep(every).await;
        let Some(context) = context.upgrade() else { return };
        judge_pulled(&context).await;
    }
}

/// Looks at all that were pulled since the last time.
pub(crate) async fn judge_pulled(context: &Arc<Context>) {
    use futures::StreamExt as _;
    let pulled = futures::stream::iter(context.traffic.take_pulls());
    pulled
        .for_each_concurrent(AT_ONCE, |(author, pulls)| async move {
            if let Err(e) = decide(context, author, None, pulls).await {
                tracing::debug!("the way of account {author} could not be looked at: {e}");
                meters::decision_failed();
            }
        })
        .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_survive_their_text() {
        let rates = Rates { at_ms: 5, posts: 7, pulls: 9, posts_per_day: 1.5, pulls_per_day: 20_000.25 };
        assert_eq!(Rates::parse(&rates.stored()), Some(rates));
        for text in ["", "1 2 3 4", "x 2 3 4 5", "1 2 3 NaN 5", "1 2 3 inf 5"] {
            assert_eq!(Rates::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_steady_rate_is_found_and_what_is_long_ago_forgotten() {
        let hour = 3_600_000;
        let mut rates = Rates::default().at(hour, 100, 0);
        assert!(rates.posts_per_day.abs() < 1e-9, "nothing is known yet");
        for n in 1..=48 {
            rates = rates.at(hour * (n + 1), 100 + n, 10 * n);
        }
        assert!((rates.posts_per_day - 24.0).abs() < 0.1, "{rates:?}");
        assert!((rates.pulls_per_day - 240.0).abs() < 1.0, "{rates:?}");
        let quiet = rates.at(hour * 73, rates.posts, rates.pulls);
        assert!(quiet.posts_per_day < 1.0, "{quiet:?}");
    }
}
