//! Push or pull: told by hand, or left to the policy.

use super::Engine;
use crate::account::{AccountState, Mode};
use crate::cluster::{Command, Request};
use crate::error::CallFuture;
use crate::fields::RecordField;
use crate::ids::AccountId;
use crate::journal::{self, Delivery};
use crate::modes::{self, DeliveryWay, ModeTask, ModeWish};
use crate::settings::Receipt;
use crate::sharded::Checkpoint;
use crate::tenant::no_account;

/// The mode of an account, and a change of it that is under way.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ModeState {
    /// The mode in which its posts are delivered now.
    pub mode: Mode,
    /// The way that it was told by hand; `None`: the policy decides.
    pub forced: Option<DeliveryWay>,
    /// How far a change is that some instance carries out now, from 0 to 1, in steps of a few hundred buckets; 0
    /// throughout while the followers lie in one slot.
    pub progress: Option<f64>,
}

impl Engine {
    /// Has an account pushed, or pulled, from now on, whatever the policy says; with `None` the policy decides again.
    ///
    /// It goes on while everybody posts, reads and follows, and no page misses anything meanwhile. What is returned
    /// tells how many followers know, and is done at once if there was nothing to change, or another change of mode has
    /// overtaken this one; the change goes on whether or not somebody holds it.
    pub fn set_way(&self, account: AccountId, way: Option<DeliveryWay>) -> CallFuture<'_, Receipt<Delivery>> {
        Box::pin(async move {
            let (delivery, epoch) = modes::change(&self.graph.journal, account, ModeWish::Hand(way)).await?;
            Ok(self.acknowledged(epoch).await?.with(delivery))
        })
    }

    /// Tells how an account's posts reach its followers.
    pub fn mode(&self, account: AccountId) -> CallFuture<'_, ModeState> {
        Box::pin(async move {
            let (tenant, graph) = (&self.tenant, &self.graph);
            let fields = Command::new("HMGET")
                .arg(&tenant.keys().account(account))
                .arg(RecordField::STATE)
                .arg(RecordField::MODE)
                .arg(RecordField::MODE_BY_HAND);
            let reply =
                tenant.router().call(Request::read(tenant.slot(account), fields)).await?.into_array()?;
            let letter = |n: usize| reply.get(n).and_then(|f| f.bytes().ok()?.first().copied());
            if letter(0).is_none_or(|state| AccountState::from_letter(state) == AccountState::Deleted) {
                return Err(no_account(account));
            }
            let forced = letter(2).map(|told| DeliveryWay::of(Mode::from_letter(told)));
            let entries = journal::entries(&graph.journal, tenant.bucket(account)).await?;
            // One that was overtaken by another change of mode has nothing left to do.
            let random = reply.get(1).and_then(|mode| mode.bytes().ok()?.get(1..)?.try_into().ok());
            let change = entries.iter().find(|entry| ModeTask::carries_out(&entry.task, random));
            let progress = change.map(|entry| {
                // A promotion goes in rounds, a demotion walks.
                let walked = || entry.checkpoint.parse().ok().and_then(Checkpoint::spread_bucket);
                let buckets = tenant.keys().buckets();
                let done =
                    walked().unwrap_or_else(|| journal::RoundPart::of(&entry.checkpoint).done(buckets));
                f64::from(done) / f64::from(buckets.count())
            });
            Ok(ModeState { mode: Mode::from_letter(letter(1).unwrap_or_default()), forced, progress })
        })
    }

    /// Asks the policy about all accounts that were pulled since the last time, without waiting for the minute to end.
    #[doc(hidden)]
    pub async fn judge_now(&self) {
        modes::judge_pulled(&self.modes).await;
    }
}
