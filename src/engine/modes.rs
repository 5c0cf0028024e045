//! Push or pull: told by hand, or left to the policy.

use super::Engine;
use crate::account::Mode;
use crate::cluster::{Command, Request};
use crate::context::no_account;
use crate::error::Result;
use crate::fanout::{self, Delivery, Task};
use crate::functions::account_set;
use crate::ids::AccountId;
use crate::modes::{self, Way};

/// How an account's posts reach its followers, and what is going on about that.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ModeState {
    /// How they are delivered now.
    pub mode: Mode,
    /// What it was told by hand; `None`: the policy decides.
    pub forced: Option<Way>,
    /// How far a change is that some instance carries out now, from 0 to 1; followers without a home don't matter for
    /// that.
    pub progress: Option<f64>,
}

impl Engine {
    /// Has an account pushed, or pulled, from now on, whatever the policy says; with `None` the policy decides again.
    ///
    /// It goes on while everybody posts, reads and follows, and no page misses anything meanwhile. What is returned tells
    /// how many followers know; the change goes on whether or not somebody holds it.
    pub async fn set_way(&self, account: AccountId, way: Option<Way>) -> Result<Delivery> {
        let context = &self.context;
        context.existing(account).await?;
        let forced = match way {
            Some(Way::Push) => b"P".to_vec(),
            Some(Way::Pull) => b"L".to_vec(),
            None => Vec::new(),
        };
        let command = account_set(context.keys().account(account), None, [("mf", forced)]);
        let answer = context.router().ask(Request::write(context.slot(account), command)).await?;
        let mut epoch = answer.epoch.clone();
        answer.ok()?;
        let mut delivery = Delivery(None);
        if let Some(way) = way {
            let changed = modes::change(context, account, way).await?;
            delivery = changed.0.unwrap_or(delivery);
            epoch = changed.1;
        }
        self.acknowledged(epoch).await?;
        Ok(delivery)
    }

    /// How an account's posts reach its followers.
    pub async fn mode(&self, account: AccountId) -> Result<ModeState> {
        let context = &self.context;
        let fields = Command::new("HMGET").arg(&context.keys().account(account)).arg("s").arg("m").arg("mf");
        let reply =
            context.router().call(Request::read(context.slot(account), fields)).await?.into_array()?;
        let letter = |n: usize| reply.get(n).and_then(|f| f.bytes().ok()?.first().copied());
        if letter(0).is_none_or(|state| state == b'd') {
            return Err(no_account(account));
        }
        let forced = match letter(2) {
            Some(b'P') => Some(Way::Push),
            Some(b'L') => Some(Way::Pull),
            _ => None,
        };
        let entries = fanout::entries(context, context.bucket(account)).await?;
        let is_change = |task| matches!(task, Task::Mode { author, .. } if author == account);
        let change = entries.iter().rfind(|entry| is_change(entry.task));
        let progress = change.map(|entry| {
            let bucket = entry.checkpoint.parse().ok().and_then(crate::sharded::Checkpoint::spread_bucket);
            f64::from(bucket.unwrap_or(0)) / f64::from(context.keys().buckets().count())
        });
        Ok(ModeState { mode: Mode::from_letter(letter(1).unwrap_or_default()), forced, progress })
    }

    /// Asks the policy about all accounts that were pulled since the last time, without waiting for the minute to end.
    #[doc(hidden)]
    pub async fn judge_now(&self) {
        modes::judge_pulled(&self.context).await;
    }
}
