//! The choice of who is pushed and who is pulled: decided from facts alone, without I/O.

use std::sync::Arc;
use std::time::Duration;

use crate::account::Mode;
use crate::ids::AccountId;
use crate::settings::{ModeSettings, PolicyName};

/// A way in which an account's posts are to reach its followers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryWay {
    /// Delivered into their homes: reads are cheap.
    Push,
    /// Pulled from its outbox when they read: posts are cheap.
    Pull,
}

impl DeliveryWay {
    /// Tells where a mode leads.
    pub fn of(mode: Mode) -> Self {
        match mode {
            Mode::Push => Self::Push,
            Mode::Promoting | Mode::Pull => Self::Pull,
        }
    }

    /// The way's name in metrics and commands.
    pub fn label(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Pull => "pull",
        }
    }
}

impl ModeSettings {
    /// The policy that they name.
    pub fn make(&self) -> Arc<dyn Policy> {
        match self.policy {
            PolicyName::Push => Arc::new(PushOnly),
            PolicyName::Pull => Arc::new(PullOnly),
            PolicyName::Threshold => {
                Arc::new(Threshold { pull_from: self.pull_from, push_below: self.push_below })
            }
            PolicyName::Cost => Arc::new(self.cost_model()),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "estimates")]
    pub(crate) fn cost_model(&self) -> CostModel {
        let us = |ns: u64| ns as f64 / 1_000.0;
        CostModel {
            delivery_us: us(self.delivery_ns),
            skipped_us: us(self.skipped_ns),
            pull_us: us(self.pull_ns),
            look_us: us(self.look_ns),
            margin: 1.0 + self.margin_percent as f64 / 100.0,
        }
    }
}

const SECONDS_A_DAY: f64 = 86_400.0;

/// The facts that are known of an account when its way is decided. Rates are averages of the last hours, per day.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct AccountFacts {
    /// The account that they are about.
    pub account: AccountId,
    /// The way in which its posts are delivered now.
    pub now: DeliveryWay,
    /// Its followers, as last counted.
    pub followers: u64,
    /// Of these, followers with a home: what a delivery reaches.
    pub awake: u64,
    /// Posts a day.
    pub posts_per_day: f64,
    /// Times a day that one of its followers reads. Counted while it is pulled; else an estimate from how often
    /// anybody with a home reads.
    pub reads_per_day: f64,
    /// Of these, reads that find its outbox in no cache: about one for each instance and each `visible_within`, if
    /// there are so many.
    pub looks_per_day: f64,
}

impl AccountFacts {
    /// Facts for tests of a policy of your own.
    pub fn new(account: AccountId, now: DeliveryWay, followers: u64) -> Self {
        let awake = followers;
        Self { account, now, followers, awake, posts_per_day: 0.0, reads_per_day: 0.0, looks_per_day: 0.0 }
    }

    /// Describes the same account where its followers read so often, on so many instances alike, each of which
    /// remembers an outbox for `visible_within`.
    #[must_use]
    pub fn read(self, reads_per_day: f64, instances: f64, visible_within: Duration) -> Self {
        let looks = Self::looks_per_second(reads_per_day / SECONDS_A_DAY, instances, visible_within);
        Self { reads_per_day, looks_per_day: looks * SECONDS_A_DAY, ..self }
    }

    /// Tells how many of so many reads a second find what they read in no cache, where so many caches are asked alike
    /// and each remembers for `visible_within`: who comes first looks, all others until that is over don't.
    #[must_use]
    pub fn looks_per_second(reads_per_second: f64, caches: f64, visible_within: Duration) -> f64 {
        let while_remembered = reads_per_second / caches.max(1.0) * visible_within.as_secs_f64();
        reads_per_second / (1.0 + while_remembered)
    }
}

/// Decides who is pushed and who is pulled. It is asked now and then, when facts have come in: after a fan-out, and for
/// accounts that are pulled. It must not block.
pub trait Policy: std::fmt::Debug + Send + Sync {
    /// Decides how this account's posts are to reach its followers. Changing costs about two posts, so a policy should
    /// not change its mind around one point.
    fn way(&self, facts: &AccountFacts) -> DeliveryWay;
}

/// A policy by which everybody is pushed.
#[derive(Debug, Clone, Copy, Default)]
pub struct PushOnly;

/// A policy by which everybody is pulled.
#[derive(Debug, Clone, Copy, Default)]
pub struct PullOnly;

/// Everybody stays as they are: for tools beside a service, whose policy may be another one.
#[derive(Debug, Clone, Copy, Default)]
pub struct AsItIs;

/// A policy that pulls whoever has so many followers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Threshold {
    /// Pulled from so many followers on.
    pub pull_from: u64,
    /// Pushed again below so many.
    pub push_below: u64,
}

/// The way that costs less CPU time, servers and client together: delivering each post to all homes, or merging the
/// outbox into each read of a follower (after Silberstein et al., "Feeding Frenzy", SIGMOD 2010).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostModel {
    /// The cost of a delivery, in microseconds.
    pub delivery_us: f64,
    /// The cost of a follower that has no home.
    pub skipped_us: f64,
    /// The cost of one more cached outbox to a read.
    pub pull_us: f64,
    /// The additional cost of an outbox that is in no cache.
    pub look_us: f64,
    /// The factor by which the other way must be cheaper before it is taken.
    pub margin: f64,
}

impl Policy for PushOnly {
    fn way(&self, _: &AccountFacts) -> DeliveryWay {
        DeliveryWay::Push
    }
}

impl Policy for AsItIs {
    fn way(&self, facts: &AccountFacts) -> DeliveryWay {
        facts.now
    }
}

impl Policy for PullOnly {
    fn way(&self, _: &AccountFacts) -> DeliveryWay {
        DeliveryWay::Pull
    }
}

impl Default for Threshold {
    fn default() -> Self {
        Self { pull_from: 100_000, push_below: 50_000 }
    }
}

impl Policy for Threshold {
    fn way(&self, facts: &AccountFacts) -> DeliveryWay {
        match facts.now {
            DeliveryWay::Push if facts.followers >= self.pull_from => DeliveryWay::Pull,
            DeliveryWay::Pull if facts.followers < self.push_below => DeliveryWay::Push,
            now => now,
        }
    }
}

/// The settings' defaults.
impl Default for CostModel {
    fn default() -> Self {
        ModeSettings::default().cost_model()
    }
}

impl CostModel {
    /// Tells what a day costs when the account is pushed, and when it is pulled, in microseconds.
    pub fn costs(&self, facts: &AccountFacts) -> (f64, f64) {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let (awake, asleep) = (facts.awake as f64, facts.followers.saturating_sub(facts.awake) as f64);
        let push = facts.posts_per_day * (awake * self.delivery_us + asleep * self.skipped_us);
        (push, facts.reads_per_day * self.pull_us + facts.looks_per_day * self.look_us)
    }
}

impl Policy for CostModel {
    fn way(&self, facts: &AccountFacts) -> DeliveryWay {
        let (push, pull) = self.costs(facts);
        match facts.now {
            DeliveryWay::Push if push > pull * self.margin => DeliveryWay::Pull,
            DeliveryWay::Pull if pull > push * self.margin => DeliveryWay::Push,
            now => now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(now: DeliveryWay, followers: u64) -> AccountFacts {
        AccountFacts::new(AccountId::new(7).unwrap(), now, followers)
    }

    #[test]
    fn a_threshold_keeps_its_mind_between_its_two_ends() {
        let policy = Threshold { pull_from: 100, push_below: 50 };
        let ways = |now| [49, 50, 99, 100].map(|followers| policy.way(&facts(now, followers)));
        assert_eq!(
            ways(DeliveryWay::Push),
            [DeliveryWay::Push, DeliveryWay::Push, DeliveryWay::Push, DeliveryWay::Pull]
        );
        assert_eq!(
            ways(DeliveryWay::Pull),
            [DeliveryWay::Push, DeliveryWay::Pull, DeliveryWay::Pull, DeliveryWay::Pull]
        );
    }

    #[test]
    fn the_cost_model_pushes_to_who_reads_often_and_pulls_who_posts_often() {
        let model = CostModel { delivery_us: 5.0, skipped_us: 1.0, pull_us: 1.0, look_us: 9.0, margin: 1.5 };
        let of = |now, posts_per_day, reads_per_day| {
            model.way(&AccountFacts { posts_per_day, reads_per_day, ..facts(now, 1_000) })
        };
        // Two posts a day cost 10,000 us.
        assert_eq!(of(DeliveryWay::Push, 2.0, 100_000.0), DeliveryWay::Push);
        assert_eq!(of(DeliveryWay::Push, 2.0, 6_000.0), DeliveryWay::Pull);
        assert_eq!(of(DeliveryWay::Push, 2.0, 7_000.0), DeliveryWay::Push);
        assert_eq!(of(DeliveryWay::Pull, 2.0, 14_000.0), DeliveryWay::Pull);
        assert_eq!(of(DeliveryWay::Pull, 2.0, 16_000.0), DeliveryWay::Push);
        // Nobody who never posts is worth a change.
        assert_eq!(of(DeliveryWay::Push, 0.0, 0.0), DeliveryWay::Push);
        assert_eq!(of(DeliveryWay::Pull, 0.0, 0.0), DeliveryWay::Pull);
    }

    #[test]
    fn who_is_seldom_read_costs_a_look_each_time_and_who_is_read_by_crowds_one_for_each_cache() {
        let model = CostModel { delivery_us: 0.0, skipped_us: 0.0, pull_us: 1.0, look_us: 9.0, margin: 1.5 };
        let us_of_a_read = |reads_per_second: f64, instances| {
            let reads = reads_per_second * SECONDS_A_DAY;
            model.costs(&facts(DeliveryWay::Pull, 1).read(reads, instances, Duration::from_secs(1))).1 / reads
        };
        let is = |found: f64, wanted: f64| assert!((found - wanted).abs() < 0.01, "{found} {wanted}");
        is(us_of_a_read(0.001, 1.0), 10.0);
        is(us_of_a_read(1.0, 1.0), 1.0 + 9.0 / 2.0);
        is(us_of_a_read(9.0, 9.0), 1.0 + 9.0 / 2.0);
        is(us_of_a_read(1_000.0, 1.0), 1.0 + 9.0 / 1_001.0);
        // Two posts a day to a follower: pushed by 20 reads a day, of which each looks; pulled if caches answer.
        let model = CostModel { delivery_us: 50.0, ..model };
        let posts = |looks_per_day| {
            let facts = AccountFacts {
                posts_per_day: 2.0,
                reads_per_day: 20.0,
                looks_per_day,
                ..facts(DeliveryWay::Push, 1)
            };
            model.way(&facts)
        };
        assert_eq!([posts(20.0), posts(0.5)], [DeliveryWay::Push, DeliveryWay::Pull]);
        // Without caches each read looks.
        let reads = facts(DeliveryWay::Pull, 1).read(5.0, 1.0, Duration::ZERO);
        is(reads.looks_per_day, 5.0);
    }

    #[test]
    fn followers_without_a_home_cost_little() {
        let model = CostModel::default();
        let asleep = AccountFacts { awake: 0, posts_per_day: 1.0, ..facts(DeliveryWay::Push, 1_000) };
        assert!(model.costs(&asleep).0 < model.costs(&AccountFacts { awake: 1_000, ..asleep }).0 / 4.0);
    }
}
