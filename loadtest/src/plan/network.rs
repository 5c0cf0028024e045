//! Whom a policy pulls in a network of that size: a model of the network, and the engine's own rule. Pure.
//!
//! Followers fall by a power law, as in the graphs that are made up here; some accounts write more than others,
//! whatever their
//! followers; followers of all accounts read alike.

use tideline::{AccountFacts, AccountId, CostModel, DeliveryWay, Policy, Threshold};

use super::SECONDS_A_DAY;
use super::args::Asked;
use crate::graph::{Degree, FOLLOWERS_EXPONENT};
use crate::scenario::Activity;
use crate::stats::whole;
use crate::units::Units;

/// Accounts are reckoned in so many groups, each of accounts with about as many followers.
const GROUPS: u16 = 400;
/// Who has more followers posts more, or less, by this power of followers at most.
const POWER_MOST: f64 = 3.0;
const HALVINGS: u32 = 60;

/// Who decides, under the names of the engine's setting `policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rule {
    /// Everybody is pushed
    Push,
    /// Everybody is pulled
    Pull,
    /// Who has 100,000 followers is pulled, as the engine decides by default
    Threshold,
    /// Each account in the way that costs less
    Cost,
}

impl Rule {
    pub(super) const ALL: [Self; 4] = [Self::Push, Self::Pull, Self::Threshold, Self::Cost];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Push => "push",
            Self::Pull => "pull",
            Self::Threshold => "threshold",
            Self::Cost => "cost",
        }
    }

    fn policy(self, units: &Units) -> Box<dyn Policy> {
        match self {
            Self::Push => Box::new(tideline::PushOnly),
            Self::Pull => Box::new(tideline::PullOnly),
            Self::Threshold => Box::new(Threshold::default()),
            Self::Cost => Box::new(cost_model(units)),
        }
    }
}

/// The engine's, with what was measured as its settings.
fn cost_model(units: &Units) -> CostModel {
    let both = |[server, client]: [f64; 2]| server + client;
    CostModel {
        delivery_us: both(units.delivery_us),
        skipped_us: both(units.skipped_us),
        pull_us: both(units.pull_us),
        look_us: both(units.look_us),
        ..CostModel::default()
    }
}

/// Accounts that are alike.
#[derive(Debug, Clone, Copy)]
struct Group {
    accounts: f64,
    followers: f64,
    /// Of one account.
    posts_per_second: f64,
}

/// All accounts.
#[derive(Debug)]
pub(super) struct Network {
    groups: Vec<Group>,
}

/// Who is pulled, and what is left to push.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub(super) struct Pulled {
    pub(super) authors: f64,
    /// Of these, whom a reader follows, on average.
    pub(super) per_reader: f64,
    /// The share of posts that are theirs.
    pub(super) posts: f64,
    /// That a post of all others goes to.
    pub(super) mean_followers: f64,
    /// At their outboxes, of all readers together.
    pub(super) looks_per_second: f64,
}

impl Network {
    /// Of that many accounts, of which each follows as many as asked for and the largest has so many followers.
    pub(super) fn of(asked: &Asked) -> Self {
        let law =
            Degree::power_of_mean(FOLLOWERS_EXPONENT, asked.mean_following(), asked.largest_followers());
        // From the share 1 of all down to a single account, in equal steps of its logarithm; the last one is alone.
        let share = |step: u16| match step {
            step if step > GROUPS => 0.0,
            step => asked.users.powf(-f64::from(step) / f64::from(GROUPS)),
        };
        let sizes: Vec<(f64, f64)> = (0..=GROUPS)
            .map(|step| {
                let (above, below) = (share(step), share(step + 1));
                (asked.users * (above - below), law.between(1.0 - above, 1.0 - below).mean())
            })
            .collect();
        let power = power_of_posts(&sizes, asked.mean_followers);
        let weights: f64 = sizes.iter().map(|(accounts, followers)| accounts * followers.powf(power)).sum();
        let Activity { writers_percent, of_posts_percent, .. } = Activity::default();
        let (writers, of_posts) = (writers_percent / 100.0, of_posts_percent / 100.0);
        let classes = [(writers, of_posts / writers), (1.0 - writers, (1.0 - of_posts) / (1.0 - writers))];
        let groups = sizes.iter().flat_map(|(accounts, followers)| {
            let posts_per_second = asked.posts_per_second * followers.powf(power) / weights;
            classes.map(|(part, times)| Group {
                accounts: accounts * part,
                followers: *followers,
                posts_per_second: posts_per_second * times,
            })
        });
        Self { groups: groups.collect() }
    }

    /// Whom this rule pulls.
    pub(super) fn pulled(
        &self,
        rule: Rule,
        asked: &Asked,
        units: &Units,
        instances: f64,
    ) -> anyhow::Result<Pulled> {
        let policy = rule.policy(units);
        let readers = (asked.users * asked.active).max(1.0);
        let within = asked.within();
        let (mut pulled, mut all, mut pushed) = ([0.0; 4], [0.0; 2], [0.0; 2]);
        for Group { accounts, followers, posts_per_second } in &self.groups {
            let awake = followers * asked.active;
            let reads = awake * asked.reads_per_second / readers;
            let mut facts = AccountFacts::new(AccountId::new(1)?, DeliveryWay::Push, whole(*followers));
            facts.awake = whole(awake);
            facts.posts_per_day = posts_per_second * SECONDS_A_DAY;
            let way = policy.way(&facts.read(reads * SECONDS_A_DAY, instances, within));
            let posts = [accounts * posts_per_second, accounts * posts_per_second * followers];
            add(&mut all, posts);
            match way {
                DeliveryWay::Push => add(&mut pushed, posts),
                DeliveryWay::Pull => {
                    let looks = AccountFacts::looks_per_second(reads, instances, within);
                    add(&mut pulled, [*accounts, accounts * followers, posts[0], accounts * looks]);
                }
            }
        }
        let [authors, follows, posts, looks] = pulled;
        let mean = |[posts, deliveries]: [f64; 2]| if posts > 0.0 { deliveries / posts } else { 0.0 };
        Ok(Pulled {
            authors,
            per_reader: follows / asked.users,
            posts: if all[0] > 0.0 { posts / all[0] } else { 0.0 },
            // As far as no power of followers gives the mean that was asked for, all are off by as much.
            mean_followers: asked.mean_followers * mean(pushed) / mean(all).max(f64::MIN_POSITIVE),
            looks_per_second: looks,
        })
    }
}

fn add<const N: usize>(to: &mut [f64; N], more: [f64; N]) {
    to.iter_mut().zip(more).for_each(|(to, more)| *to += more);
}

/// The power of its followers with which an account posts, so that a post goes to so many on average: 0, if these
/// are as many
/// as an account has on average.
fn power_of_posts(sizes: &[(f64, f64)], mean_followers: f64) -> f64 {
    let mean = |power: f64| {
        let posts = |(accounts, followers): &(f64, f64)| accounts * followers.powf(power);
        let deliveries: f64 = sizes.iter().map(|size| posts(size) * size.1).sum();
        deliveries / sizes.iter().map(posts).sum::<f64>()
    };
    let (mut low, mut high) = (-POWER_MOST, POWER_MOST);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if mean(middle) < mean_followers {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::super::args::tests::typed;
    use super::*;

    const LARGE: &str = "--users 500M --posts-per-second 5000 --mean-followers 400 --reads-per-second";

    fn large(reads: &str) -> Asked {
        typed(&format!("{LARGE} {reads}")).unwrap()
    }

    fn is_near(found: f64, wanted: f64) {
        assert!((found / wanted - 1.0).abs() < 0.01, "{found} {wanted}");
    }

    fn pulled(rule: Rule, asked: &Asked) -> Pulled {
        Network::of(asked).pulled(rule, asked, &Units::round(), 20.0).unwrap()
    }

    #[test]
    fn groups_are_all_accounts_and_follows_and_posts_that_there_are() {
        for mean_followers in [400.0, 2_000.0] {
            let line = format!("{LARGE} 300k --mean-following 400")
                .replace("rs 400", &format!("rs {mean_followers}"));
            let groups = Network::of(&typed(&line).unwrap()).groups;
            let sum =
                |of: &dyn Fn(&Group) -> f64| groups.iter().map(|group| group.accounts * of(group)).sum();
            is_near(sum(&|_| 1.0), 500e6);
            is_near(sum(&|group| group.followers), 500e6 * 400.0);
            is_near(sum(&|group| group.posts_per_second), 5_000.0);
            is_near(sum(&|group| group.posts_per_second * group.followers), 5_000.0 * mean_followers);
        }
    }

    #[test]
    fn pushing_all_pulls_nobody_and_pulling_all_everybody() {
        let none = pulled(Rule::Push, &large("300k"));
        assert_eq!([none.authors, none.per_reader, none.posts, none.looks_per_second], [0.0; 4]);
        is_near(none.mean_followers, 400.0);
        let all = pulled(Rule::Pull, &large("300k"));
        is_near(all.authors, 500e6);
        is_near(all.per_reader, 400.0);
        is_near(all.posts, 1.0);
        assert!(all.mean_followers.abs() < 1e-9 && all.looks_per_second < 300_000.0 * 400.0, "{all:?}");
    }

    #[test]
    fn the_threshold_of_the_engine_pulls_the_tail_of_the_law() {
        let settings = tideline::ModeSettings::default();
        assert_eq!((settings.policy, settings.pull_from), (tideline::PolicyName::Threshold, 100_000));
        let found = pulled(Rule::Threshold, &large("300k"));
        // Their share is where the law reaches 100,000.
        let law = Degree::power_of_mean(FOLLOWERS_EXPONENT, 400.0, 25e6);
        let least = law.quantile(1.0 - found.authors / 500e6);
        assert!((0.95e5..1.05e5).contains(&least), "{found:?} {least}");
        assert!(found.per_reader > 50.0 && found.per_reader < 200.0, "{found:?}");
        // They post as others do.
        is_near(found.posts, found.authors / 500e6);
        is_near(found.mean_followers * (1.0 - found.posts), 400.0 - found.per_reader);
    }

    #[test]
    fn the_cost_model_pulls_who_writes_much_where_pages_are_few() {
        let of = |reads: &str| pulled(Rule::Cost, &large(reads));
        // A post to a follower costs 0.2 x 5 + 0.8 x 1 us, a page of one of the fifth that read 1 us and a look of 10.
        let busy = of("300k");
        assert_eq!(
            [busy.authors, busy.posts],
            [0.0; 2],
            "51.8 pages a day for each follower, 0.86 posts of an author"
        );
        let some = of("3k");
        is_near(some.posts, 0.8);
        is_near(some.authors, 50e6);
        assert!(some.per_reader > 39.0 && some.per_reader < 41.0, "{some:?}");
        is_near(of("1").posts, 1.0);
    }

    #[test]
    fn crowds_that_read_one_author_share_its_looks() {
        is_near(pulled(Rule::Pull, &large("1")).looks_per_second, 400.0);
        is_near(pulled(Rule::Pull, &large("1e15")).looks_per_second, 500e6 * 20.0);
    }
}
