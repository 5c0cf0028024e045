//! What a fault can affect: it met work only if some of that was under way while it lasted.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tideline::bucket::Buckets;
use tideline::cluster::NodeAddr;
use tideline_local_cluster::LocalCluster;

use super::super::args::Sabotage;
use super::super::facts::Time;
use super::super::under_way::SentCall;
use super::{RETRY, Storm, patiently};

/// How long a fault goes on only because it has met nothing. A call that it doesn't count may be held up by it, one
/// about a name say, which lies in a slot of its own, and all others wait for that one (seed 45: a slot stayed open for
/// good).
const AWAITED_MAX: Duration = Duration::from_secs(20);

/// The calls that a fault can affect.
#[derive(Debug, Clone)]
pub(super) enum Reach {
    /// Those at an instance.
    Instance(usize),
    /// Those about accounts whose data lies in these slots.
    Slots(BTreeSet<u16>),
    /// Of those the ones that write.
    WritesTo(BTreeSet<u16>),
}

impl Reach {
    fn meets(&self, call: &SentCall, buckets: &Buckets) -> bool {
        let slot = call.account.map(|account| buckets.slot(buckets.of_account(account)));
        let lies_in = |slots: &BTreeSet<u16>| slot.is_some_and(|slot| slots.contains(&slot));
        match self {
            Self::Instance(number) => call.instance == *number,
            Self::Slots(slots) => lies_in(slots),
            Self::WritesTo(slots) => call.changes && lies_in(slots),
        }
    }
}

impl Storm<'_> {
    /// The slots with data that a primary has.
    pub(super) async fn slots_of(
        &self,
        cluster: &LocalCluster,
        primary: &NodeAddr,
    ) -> anyhow::Result<BTreeSet<u16>> {
        let mut slots = BTreeSet::new();
        for bucket in self.buckets.all() {
            let slot = self.buckets.slot(bucket);
            if patiently(async || cluster.owner_of(slot).await).await? == *primary {
                slots.insert(slot);
            }
        }
        Ok(slots)
    }

    /// Whether something was under way since then that a fault can affect. Where instances are hasty, something that
    /// they lie about: a fault that meets nothing of that shows nothing, and goes on.
    pub(super) fn has_met(&self, reach: &Reach, since: Time) -> bool {
        let is_hasty = self.setup.sabotage == Some(Sabotage::Hasty);
        self.run
            .sent
            .any_since(since, |call| reach.meets(call, &self.buckets) && (call.is_rushed || !is_hasty))
    }

    /// Whether a fault that is over may still wait for something that it can affect.
    pub(super) fn goes_on(&self, over: Instant) -> bool {
        !self.gate.is_over() && over.elapsed() < AWAITED_MAX
    }

    /// Whether a fault that is over has to wait for something that it can affect.
    pub(super) fn awaits(&self, reach: &Reach, since: Time, over: Instant) -> bool {
        self.goes_on(over) && !self.has_met(reach, since)
    }

    /// Waits until something is under way that a fault can affect; whether it ever was.
    pub(super) async fn until_met(&self, reach: &Reach, since: Time) -> bool {
        self.until(|| self.has_met(reach, since)).await
    }

    /// Waits until a fault was met, if it ever is.
    pub(super) async fn until(&self, has_met: impl Fn() -> bool) -> bool {
        let over = Instant::now();
        while self.goes_on(over) && !has_met() {
            if tokio::time::timeout(RETRY, self.gate.over()).await.is_ok() {
                break;
            }
        }
        has_met()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::call::Call;
    use super::super::super::under_way::SentCalls;
    use super::*;

    #[test]
    fn a_fault_affects_its_own_instance_and_slots_only() {
        let buckets = Buckets::new(16).unwrap();
        let slot = |account: u64| buckets.slot(buckets.of_account(account));
        let other = (2..).find(|other| slot(*other) != slot(1)).unwrap();
        let calls = SentCalls::new(Instant::now());
        let _read = calls.begin(2, &Call::Warm { account: 1 });
        let _of_nobody = calls.begin(2, &Call::Sweep);
        let meets = |reach: &Reach| calls.any_since(0, |call| reach.meets(call, &buckets));
        assert!(meets(&Reach::Instance(2)) && !meets(&Reach::Instance(1)));
        assert!(meets(&Reach::Slots([slot(1)].into())) && !meets(&Reach::Slots([slot(other)].into())));
        assert!(!meets(&Reach::WritesTo([slot(1)].into())));
        let _write = calls.begin(0, &Call::DeleteAccount { account: 1 });
        assert!(meets(&Reach::WritesTo([slot(1)].into())));
    }
}
