//! Asking the policy: when facts have come in, with a fan-out or with what was pulled.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt as _};

use quick_cache::sync::Cache;

use super::ModeWish;
use super::Modes;
use super::overruled::OverruledDecisions;
use super::policy::{AccountFacts, DeliveryWay, Policy};
use crate::cluster::Request;
use crate::error::Result;
use crate::functions::{DeliveryRates, FanoutFacts, pulls_add};
use crate::ids::AccountId;
use crate::journal::{Delivery, FanoutWatcher, Recurring};
use crate::meters;
use crate::tenant::Tenant;

/// Accounts looked at side by side.
const AT_ONCE: usize = 16;
/// The time for which a count of followers is good enough for a policy, and the number of counts that are remembered.
const COUNTED_FOR: Duration = Duration::from_secs(600);
const COUNTED_MAX: usize = 10_000;

/// The policy.
#[derive(Debug)]
pub(super) struct Judge {
    policy: Arc<dyn Policy>,
    /// How often pulls are brought into records, and how old rates may be.
    pub(super) every: Duration,
    counted: Cache<AccountId, (Instant, u64)>,
    pub(super) overruled: OverruledDecisions,
}

impl Judge {
    pub(super) fn new(policy: Arc<dyn Policy>, every: Duration) -> Self {
        Self { policy, every, counted: Cache::new(COUNTED_MAX), overruled: OverruledDecisions::new() }
    }

    /// The number of an account's followers. Those of a spread set are in every bucket: they are counted now and then.
    async fn followers(&self, tenant: &Tenant, account: AccountId) -> Result<u64> {
        let set = tenant.followers(account)?;
        let counted = self.counted.get(&account).filter(|(at, _)| at.elapsed() < COUNTED_FOR);
        if let Some((_, followers)) = counted.filter(|_| set.is_known_spread()) {
            return Ok(followers);
        }
        let followers = set.len().await?;
        self.counted.insert(account, (Instant::now(), followers));
        Ok(followers)
    }

    /// The greatest age that rates may have, in milliseconds.
    pub(crate) fn every_ms(&self) -> u64 {
        u64::try_from(self.every.as_millis()).unwrap_or(u64::MAX)
    }
}

/// Decides how an account is delivered, by its record, which has just been read, and by the number of its `followers`
/// and of those `awake` among them, as far as is known now. Who calls this doesn't wait for what comes of it.
fn decide(modes: &Arc<Modes>, account: AccountId, rates: DeliveryRates, (followers, awake): (u64, u64)) {
    let now = DeliveryWay::of(rates.mode);
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let reads_per_day = match now {
        DeliveryWay::Pull => rates.pulls_per_day,
        DeliveryWay::Push => awake as f64 * modes.traffic.reads_per_reader(),
    };
    let facts = AccountFacts {
        awake,
        posts_per_day: rates.posts_per_day,
        ..AccountFacts::new(account, now, followers)
    };
    let graph = &modes.graph;
    let facts =
        facts.read(reads_per_day, graph.journal.tasks.instances(), graph.tenant.settings.visible_within);
    let wanted = modes.judge.policy.way(&facts);
    // What was told by hand stays.
    if wanted != now && !rates.is_forced {
        tracing::info!("account {account} is to be {}ed from now on: {facts:?}", wanted.label());
        let deciding = modes.clone();
        graph.journal.tasks.beside(async move {
            match super::change(&deciding.graph.journal, account, ModeWish::Policy(wanted)).await {
                // It was so already, or told by hand.
                Ok((Delivery(None), _)) => {}
                Ok(_) => deciding.judge.overruled.note(account, wanted, Instant::now()),
                Err(e) => {
                    tracing::debug!("account {account} stays as it is for now: {e}");
                    meters::decision_failed();
                }
            }
        });
    }
}

/// Asks the policy about authors whose posts were delivered.
pub(crate) struct FanoutJudge(pub(crate) Arc<Modes>);

impl FanoutWatcher for FanoutJudge {
    fn struck(&self, author: AccountId, facts: FanoutFacts, rates: DeliveryRates) {
        decide(&self.0, author, rates, (facts.delivered + facts.skipped, facts.delivered));
    }
}

/// Looks at an account that was pulled so often.
async fn decide_pulled(modes: &Arc<Modes>, account: AccountId, pulls: u64) -> Result<()> {
    let tenant = &modes.graph.tenant;
    let record = tenant.keys().account(account);
    let add = pulls_add(record, pulls, tenant.router().now_ms(), modes.judge.every_ms());
    let reply = tenant.router().call(Request::write(tenant.slot(account), add)).await?.into_array()?;
    if reply.is_empty() {
        return Ok(());
    }
    let rates = DeliveryRates::parse(&reply)?;
    // While it is pulled nobody goes through its followers: how many there are is asked, how many of them are awake is
    // taken from the last fan-out.
    let followers = modes.judge.followers(tenant, account).await?;
    let awake = match rates.followers {
        0 => followers,
        of => u64::try_from(u128::from(followers) * u128::from(rates.delivered) / u128::from(of))
            .unwrap_or(followers),
    };
    decide(modes, account, rates, (followers, awake.min(followers)));
    Ok(())
}

/// Looks at what was pulled: it is brought into the authors' records, and the policy is asked about them.
#[derive(Debug)]
pub(crate) struct PulledAuthorLooks;

impl Recurring for PulledAuthorLooks {
    type Owner = Modes;

    fn pause(&mut self, modes: &Modes) -> Duration {
        modes.judge.every
    }

    async fn round(&mut self, modes: &Arc<Modes>) {
        judge_pulled(modes).await;
    }
}

/// Looks at all that were pulled since the last time.
pub(crate) async fn judge_pulled(modes: &Arc<Modes>) {
    modes.traffic.turn(modes.graph.tenant.today());
    let pulled = stream::iter(modes.traffic.take_pulls());
    pulled
        .for_each_concurrent(AT_ONCE, |(author, pulls)| async move {
            if let Err(e) = decide_pulled(modes, author, pulls).await {
                tracing::debug!("the way of account {author} could not be looked at: {e}");
                meters::decision_failed();
            }
        })
        .await;
}
