//! What users do, one operation after the other: decided by a scenario, a graph and a seed. Pure.

mod users;

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::graph::Graph;
use crate::scenario::{Activity, Mix};
use crate::stats::whole;
use crate::weighted::Weighted;
use users::{Acting, Skewed};

/// Draws for somebody whom a reader doesn't follow yet.
const NEW_TRIES: usize = 20;
/// Shares of operations are kept as whole numbers.
const SHARE_STEP: f64 = 1e-6;

/// What somebody does. Accounts are those of the graph; who is `next` after a logout acts from now on, and has seen
/// nothing yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Post { author: u32 },
    Check { reader: u32 },
    Read { reader: u32 },
    Subscribe { reader: u32, author: u32 },
    Unsubscribe { reader: u32, author: u32 },
    Logout { reader: u32, next: u32 },
}

impl Op {
    /// Names of all kinds, in the order of [`kind`](Self::kind).
    pub(crate) const KINDS: [&'static str; 6] =
        ["post", "check", "read", "subscribe", "unsubscribe", "logout"];

    pub(crate) fn kind(self) -> usize {
        match self {
            Self::Post { .. } => 0,
            Self::Check { .. } => 1,
            Self::Read { .. } => 2,
            Self::Subscribe { .. } => 3,
            Self::Unsubscribe { .. } => 4,
            Self::Logout { .. } => 5,
        }
    }

    /// Whether a page of a home is read.
    pub(crate) fn is_page(self) -> bool {
        matches!(self, Self::Check { .. } | Self::Read { .. })
    }
}

/// All that users do from now on. The same seed gives the same operations.
#[derive(Debug)]
pub(crate) struct Workload {
    graph: Arc<Graph>,
    random: StdRng,
    kinds: Weighted,
    writers: Skewed,
    acting: Acting,
    popular: Weighted,
}

impl Workload {
    /// Of two shares of active accounts the larger one holds all who are active in the smaller one.
    pub(crate) fn new(graph: Arc<Graph>, activity: &Activity, mix: &Mix, seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let accounts = u32::try_from(graph.accounts()).unwrap_or(u32::MAX);
        let writers = Skewed::new(accounts, activity.writers_percent, activity.of_posts_percent, &mut random);
        let acting = Acting::new(accounts, activity, &mut random);
        let popular = Weighted::new(graph.followers().iter().map(|followers| u64::from(*followers) + 1));
        Self {
            graph,
            random,
            kinds: Weighted::new(mix.shares().map(|share| whole(share / SHARE_STEP))),
            writers,
            acting,
            popular,
        }
    }

    /// Those who act now.
    pub(crate) fn active(&self) -> &[u32] {
        self.acting.all()
    }

    /// A look by each who acts now.
    pub(crate) fn looks(&self) -> Vec<Op> {
        self.active().iter().map(|reader| Op::Check { reader: *reader }).collect()
    }

    /// How many times as often as the average account this one posts.
    pub(crate) fn posts_share(&self) -> Vec<f64> {
        self.writers.shares()
    }

    /// The next operations.
    pub(crate) fn take(&mut self, count: usize) -> Vec<Op> {
        (0..count).map(|_| self.next()).collect()
    }

    fn next(&mut self) -> Op {
        let random = &mut self.random;
        match self.kinds.pick(random) {
            0 => Op::Post { author: self.writers.pick(random) },
            kind => {
                let place = self.acting.pick(random);
                let reader = self.acting.at(place);
                match kind {
                    1 => Op::Check { reader },
                    2 => Op::Read { reader },
                    3 => self.subscribe(reader),
                    4 => self.unsubscribe(reader),
                    _ => Op::Logout { reader, next: self.acting.replace(place, random) },
                }
            }
        }
    }

    fn subscribe(&mut self, reader: u32) -> Op {
        for _ in 0..NEW_TRIES {
            let author = u32::try_from(self.popular.pick(&mut self.random)).unwrap_or(u32::MAX);
            if author != reader && self.graph.following(reader).binary_search(&author).is_err() {
                return Op::Subscribe { reader, author };
            }
        }
        // It follows nearly everybody.
        Op::Check { reader }
    }

    fn unsubscribe(&mut self, reader: u32) -> Op {
        match self.graph.following(reader) {
            [] => Op::Check { reader },
            authors => {
                let author = authors[self.random.random_range(0..authors.len())];
                Op::Unsubscribe { reader, author }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Preset, generate};
    use crate::report::count;
    use std::collections::HashSet;

    const ACCOUNTS: u16 = 2_000;

    fn workload(activity: &Activity, mix: Mix) -> Workload {
        let graph = generate(ACCOUNTS.into(), &Preset::Twip.shape(ACCOUNTS.into()), 1).unwrap();
        Workload::new(Arc::new(graph), activity, &mix, 5)
    }

    fn twip() -> Mix {
        Mix { post: 1.0, check: 100.0, subscribe: 10.0, logout: 5.0, ..Mix::default() }
    }

    #[test]
    fn operations_come_in_the_proportions_of_the_mix() {
        let ops = workload(&Activity::default(), twip()).take(116_000);
        let mut counts = [0_usize; 6];
        ops.iter().for_each(|op| counts[op.kind()] += 1);
        for (count, expected) in counts.into_iter().zip([1_000, 100_000, 0, 10_000, 0, 5_000]) {
            assert!(count.abs_diff(expected) <= expected / 10, "{counts:?}");
        }
    }

    #[test]
    fn the_seed_decides() {
        let of = || workload(&Activity::default(), twip()).take(1_000);
        assert_eq!(of(), of());
    }

    #[test]
    fn a_tenth_of_the_accounts_writes_four_fifths_of_the_posts() {
        let mut workload = workload(&Activity::default(), Mix { post: 1.0, ..Mix::default() });
        let mut posts = vec![0_u64; ACCOUNTS.into()];
        for op in workload.take(100_000) {
            let Op::Post { author } = op else { panic!("{op:?}") };
            posts[author as usize] += 1;
        }
        let shares = workload.posts_share();
        assert!((shares.iter().sum::<f64>() / f64::from(ACCOUNTS) - 1.0).abs() < 1e-9);
        posts.sort_unstable_by_key(|posts| std::cmp::Reverse(*posts));
        let heavy: u64 = posts[..200].iter().sum();
        assert!((78_000..82_000).contains(&heavy), "{heavy}");
    }

    #[test]
    fn only_active_accounts_read_and_who_logs_out_makes_room_for_another() {
        let activity = Activity { active_percent: 10.0, ..Activity::default() };
        let mut workload = workload(&activity, Mix { check: 9.0, logout: 1.0, ..Mix::default() });
        let mut active: HashSet<u32> = workload.active().iter().copied().collect();
        assert_eq!(active.len(), 200);
        for op in workload.take(5_000) {
            match op {
                Op::Check { reader } => assert!(active.contains(&reader)),
                Op::Logout { reader, next } => assert!(active.remove(&reader) && active.insert(next)),
                op => panic!("{op:?}"),
            }
        }
        assert_eq!(active, workload.active().iter().copied().collect());
    }

    #[test]
    fn where_all_are_active_whoever_logs_out_comes_back_at_once() {
        let activity = Activity { active_percent: 100.0, ..Activity::default() };
        let ops = workload(&activity, Mix { logout: 1.0, ..Mix::default() }).take(100);
        assert!(ops.iter().all(|op| matches!(op, Op::Logout { reader, next } if reader == next)));
    }

    #[test]
    fn whoever_is_active_at_a_small_share_is_so_at_a_larger_one() {
        let of = |active_percent| {
            let activity = Activity { active_percent, ..Activity::default() };
            workload(&activity, twip()).active().iter().copied().collect::<HashSet<u32>>()
        };
        let (small, large) = (of(10.0), of(50.0));
        assert_eq!((small.len(), large.len()), (200, 1_000));
        assert!(small.is_subset(&large));
        assert_eq!(of(0.001).len(), 1);
    }

    #[test]
    fn some_read_much_more_than_others_if_the_scenario_says_so() {
        let activity = Activity { of_reads_percent: 60.0, ..Activity::default() };
        let mut workload = workload(&activity, Mix { read: 1.0, ..Mix::default() });
        let mut reads = vec![0_u64; ACCOUNTS.into()];
        for op in workload.take(100_000) {
            let Op::Read { reader } = op else { panic!("{op:?}") };
            reads[reader as usize] += 1;
        }
        reads.sort_unstable_by_key(|reads| std::cmp::Reverse(*reads));
        let heavy: u64 = reads[..140].iter().sum();
        assert!((58_000..62_000).contains(&heavy), "{heavy}");
    }

    #[test]
    fn new_follows_are_new_and_favour_who_is_followed() {
        let mut workload =
            workload(&Activity::default(), Mix { subscribe: 1.0, unsubscribe: 1.0, ..Mix::default() });
        let (graph, mut followers) = (workload.graph.clone(), 0.0);
        let ops = workload.take(20_000);
        for op in &ops {
            match *op {
                Op::Subscribe { reader, author } => {
                    assert!(reader != author && !graph.following(reader).contains(&author));
                    followers += f64::from(graph.followers()[author as usize]);
                }
                Op::Unsubscribe { reader, author } => assert!(graph.following(reader).contains(&author)),
                op => panic!("{op:?}"),
            }
        }
        assert!(followers / count(ops.len() as u64 / 2) > 2.0 * 110.0, "{followers}");
    }
}
