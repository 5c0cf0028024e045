//! Who is pushed and who is pulled, by a policy that knows what a scenario is going to do. Pure.
//!
//! A service learns its rates within minutes to hours. A measurement lasts seconds: it begins with what the policy
//! decides when it knows them, and keeps that.

use std::sync::Arc;

use tideline::{AccountFacts, DeliveryWay, Policy, PullOnly, PushOnly, Threshold};

use super::{Contestant, id_of};
use crate::graph::Graph;
use crate::report::count;
use crate::scenario::Scenario;

const SECONDS_A_DAY: f64 = 86_400.0;

/// What is going to happen, as far as a policy asks.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    /// Posts and pages of the whole network in a second.
    pub(crate) posts_per_second: f64,
    pub(crate) pages_per_second: f64,
    /// By account: how many times as often as the average it posts.
    pub(crate) posts_share: Vec<f64>,
    /// By account: whether it reads.
    pub(crate) is_active: Vec<bool>,
}

impl Expected {
    /// Of a workload that does so many operations a second.
    pub(crate) fn of(
        scenario: &Scenario,
        operations_per_second: f64,
        posts_share: Vec<f64>,
        active: &[u32],
    ) -> Self {
        let mix = &scenario.mix;
        let all = mix.sum();
        let mut is_active = vec![false; posts_share.len()];
        active.iter().for_each(|account| is_active[*account as usize] = true);
        Self {
            posts_per_second: operations_per_second * mix.post / all,
            pages_per_second: operations_per_second * (mix.check + mix.read) / all,
            posts_share,
            is_active,
        }
    }
}

/// By account: how it is to be delivered.
pub(crate) fn ways(
    contestant: Contestant,
    scenario: &Scenario,
    graph: &Graph,
    expected: &Expected,
) -> tideline::Result<Vec<DeliveryWay>> {
    let (pull_from, push_below) = scenario.policies.threshold(graph.accounts() as u64);
    let policy: Arc<dyn Policy> = match contestant {
        Contestant::PushOnly => Arc::new(PushOnly),
        Contestant::PullOnly | Contestant::BooksPull => Arc::new(PullOnly),
        Contestant::Threshold => Arc::new(Threshold { pull_from, push_below }),
        Contestant::CostModel => scenario.policies.cost_model().make(),
    };
    let awake = graph.followers_that(|reader| expected.is_active[reader as usize]);
    let active = expected.is_active.iter().filter(|active| **active).count();
    let reads_of_one = expected.pages_per_second * SECONDS_A_DAY / count(active.max(1) as u64);
    let posts_of_one = expected.posts_per_second * SECONDS_A_DAY / count(graph.accounts() as u64);
    let way = |(account, followers): (usize, &u32)| {
        let id = id_of(u32::try_from(account).unwrap_or(u32::MAX))?;
        let mut facts = AccountFacts::new(id, DeliveryWay::Push, (*followers).into());
        facts.awake = awake[account].into();
        facts.posts_per_day = posts_of_one * expected.posts_share[account];
        let reads = reads_of_one * f64::from(awake[account]);
        let instances = count(scenario.drive.instances as u64);
        Ok(policy.way(&facts.read(reads, instances, scenario.policies.visible_within())))
    };
    graph.followers().iter().enumerate().map(way).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str =
        "name = 'x'\n[graph]\npreset = 'twip'\naccounts = 100\n[mix]\npost = 1\ncheck = 100\n";

    /// Account 0 is followed by 1 to 8, of whom 1 and 2 read; account 9 by 1.
    fn small() -> (Graph, Expected) {
        let follows = (1..9).map(|reader| (reader, 0)).chain([(1, 9)]).collect();
        let expected = Expected {
            posts_per_second: 10.0,
            pages_per_second: 100.0,
            posts_share: vec![1.0; 10],
            is_active: (0..10).map(|account| account == 1 || account == 2).collect(),
        };
        (Graph::new(10, follows), expected)
    }

    #[test]
    fn each_policy_decides_by_what_it_asks() {
        let (graph, expected) = small();
        let scenario = Scenario::parse(&format!("{SCENARIO}[policies]\npull_from = 8\n")).unwrap();
        let of = |contestant| ways(contestant, &scenario, &graph, &expected).unwrap();
        assert_eq!(of(Contestant::PushOnly), [DeliveryWay::Push; 10]);
        assert_eq!([of(Contestant::PullOnly), of(Contestant::BooksPull)], [[DeliveryWay::Pull; 10]; 2]);
        let mut only_first = [DeliveryWay::Push; 10];
        only_first[0] = DeliveryWay::Pull;
        assert_eq!(of(Contestant::Threshold), only_first);
    }

    #[test]
    fn the_cost_model_pulls_who_posts_more_than_is_read() {
        let (graph, mut expected) = small();
        let scenario = Scenario::parse(SCENARIO).unwrap();
        // Two who read and six who don't: a post costs some 20 us, a reader's page 10 more where nobody else reads.
        expected.posts_share[0] = 0.1;
        assert_eq!(ways(Contestant::CostModel, &scenario, &graph, &expected).unwrap()[0], DeliveryWay::Push);
        expected.posts_share[0] = 1_000.0;
        assert_eq!(ways(Contestant::CostModel, &scenario, &graph, &expected).unwrap()[0], DeliveryWay::Pull);
    }

    #[test]
    fn the_cost_model_reckons_with_the_costs_and_the_caches_of_the_scenario() {
        let (graph, expected) = small();
        let way = |policies: &str| {
            let scenario = Scenario::parse(&format!("{SCENARIO}[policies]\n{policies}\n")).unwrap();
            ways(Contestant::CostModel, &scenario, &graph, &expected).unwrap()[0]
        };
        // A post each second reaches two homes; a hundred pages a second find it in the caches, or don't.
        assert_eq!(way("delivery_ns = 200000"), DeliveryWay::Pull);
        assert_eq!(way("delivery_ns = 200000\nskipped_ns = 0\npull_ns = 9000"), DeliveryWay::Push);
        assert_eq!(way("delivery_ns = 200000\nvisible_within_ms = 0"), DeliveryWay::Push);
        assert_eq!(way("delivery_ns = 200000\nvisible_within_ms = 0\nlook_ns = 900"), DeliveryWay::Pull);
    }

    #[test]
    fn operations_are_divided_as_the_mix_says() {
        let scenario = Scenario::parse(SCENARIO).unwrap();
        let expected = Expected::of(&scenario, 1_010.0, vec![1.0; 3], &[2]);
        assert!((expected.posts_per_second - 10.0).abs() < 1e-9);
        assert!((expected.pages_per_second - 1_000.0).abs() < 1e-9);
        assert_eq!(expected.is_active, [false, false, true]);
    }
}
