//! Making a graph of a shape. Pure: the same seed makes the same graph.

use anyhow::ensure;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use super::{ACCOUNTS_MAX, FOLLOWING_MAX, FOLLOWS_MAX, Graph, Shape};
use crate::stats::whole;
use crate::weighted::Weighted;

/// Draws for each follow of an account, until the rest is taken from whoever comes next: who follows nearly all of the
/// followed ones would draw for ever.
const DRAWS_MAX: usize = 30;
/// Weights are whole numbers: followers in steps of this.
const WEIGHT_STEP: f64 = 1e-3;

/// Makes a graph: each account follows as many as one of the shape's values says, and draws whom in proportion to how
/// much they are followed. Account numbers say nothing about sizes.
pub(crate) fn generate(accounts: usize, shape: &Shape, seed: u64) -> anyhow::Result<Graph> {
    ensure!(
        accounts >= 2 && accounts as u64 <= ACCOUNTS_MAX,
        "a graph of {accounts} accounts: 2 to {ACCOUNTS_MAX} are possible"
    );
    for degree in [shape.following, shape.followers] {
        if let Some(rule) = degree.broken_rule() {
            anyhow::bail!("{rule}; it is {degree:?}");
        }
    }
    let mut random = StdRng::seed_from_u64(seed);
    #[expect(clippy::cast_precision_loss, reason = "it is far below 2^53")]
    let following = shape.following.up_to(accounts, FOLLOWING_MAX as f64);
    let mut following: Vec<usize> =
        following.ranked(accounts).map(|degree| rounded(degree, &mut random).min(accounts - 1)).collect();
    let most = following.iter().max().copied().unwrap_or(0);
    ensure!(
        most <= FOLLOWING_MAX,
        "an account of this graph would follow {most} others: {FOLLOWING_MAX} are possible, as the engine allows \
         20,000; choose a smaller `mean`"
    );
    let follows: usize = following.iter().sum();
    ensure!(
        follows <= FOLLOWS_MAX,
        "a graph of {follows} follows: {FOLLOWS_MAX} are possible; choose fewer accounts, or that they follow fewer"
    );
    following.shuffle(&mut random);
    let mut weights: Vec<u64> = shape.followers.ranked(accounts).map(weight).collect();
    weights.shuffle(&mut random);
    let weighted = Weighted::new(weights);
    let mut edges = Vec::with_capacity(follows);
    let mut taken = Taken::new(accounts);
    for (reader, degree) in following.into_iter().enumerate() {
        taken.begin();
        taken.take(reader);
        for author in draw(&weighted, degree, &mut taken, &mut random) {
            edges.push((number(reader), number(author)));
        }
    }
    Ok(Graph::new(accounts, edges))
}

/// So many accounts, none of them taken.
fn draw(weighted: &Weighted, degree: usize, taken: &mut Taken, random: &mut StdRng) -> Vec<usize> {
    let mut drawn = Vec::with_capacity(degree);
    for _ in 0..degree.saturating_mul(DRAWS_MAX) {
        if drawn.len() == degree {
            return drawn;
        }
        let author = weighted.pick(random);
        if taken.take(author) {
            drawn.push(author);
        }
    }
    let accounts = taken.0.len();
    let from = random.random_range(0..accounts);
    let rest = (from..accounts).chain(0..from).filter(|author| taken.take(*author));
    let missing = degree - drawn.len();
    drawn.extend(rest.take(missing));
    drawn
}

/// Which accounts were taken, forgotten at once.
struct Taken(Vec<u32>, u32);

impl Taken {
    fn new(accounts: usize) -> Self {
        Self(vec![0; accounts], 0)
    }

    fn begin(&mut self) {
        self.1 += 1;
    }

    /// False: it was marked already.
    fn take(&mut self, account: usize) -> bool {
        std::mem::replace(&mut self.0[account], self.1) != self.1
    }
}

/// Up or down by chance, so that the mean stays.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and small")]
fn rounded(degree: f64, random: &mut StdRng) -> usize {
    (degree + random.random::<f64>()) as usize
}

fn weight(degree: f64) -> u64 {
    whole(degree / WEIGHT_STEP).max(1)
}

fn number(account: usize) -> u32 {
    u32::try_from(account).expect("ACCOUNTS_MAX is below 2^32")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Preset;
    use crate::report::count;

    const ALL: [Preset; 6] =
        [Preset::Twitter2009, Preset::Higgs, Preset::Bluesky, Preset::Twip, Preset::Seeds, Preset::Uniform];

    fn graph(preset: Preset, accounts: u32) -> Graph {
        generate(accounts as usize, &preset.shape(accounts.into()), 7).unwrap()
    }

    fn mean(graph: &Graph) -> f64 {
        count(graph.follows() as u64) / count(graph.accounts() as u64)
    }

    #[test]
    fn every_preset_makes_a_graph_of_its_mean_also_a_tiny_one() {
        for preset in ALL {
            let accounts: u32 = 8_000;
            let expected = preset.shape(accounts.into()).following.mean();
            let found = mean(&graph(preset, accounts));
            assert!((found / expected - 1.0).abs() < 0.05, "{preset:?}: {found} instead of {expected}");
            assert_eq!(graph(preset, 5).accounts(), 5);
        }
        let means = [(Preset::Twitter2009, 35.0), (Preset::Bluesky, 60.0), (Preset::Twip, 110.0)];
        for (preset, expected) in means {
            let found = mean(&graph(preset, 20_000));
            assert!((found / expected - 1.0_f64).abs() < 0.05, "{preset:?}: {found}");
        }
    }

    #[test]
    fn twip_follows_20_to_200() {
        let graph = graph(Preset::Twip, 10_000);
        let degrees: Vec<usize> = (0..10_000).map(|reader| graph.following(reader).len()).collect();
        assert_eq!((degrees.iter().min(), degrees.iter().max()), (Some(&20), Some(&200)));
    }

    #[test]
    fn followers_fall_with_the_exponent_of_their_tail() {
        let graph = graph(Preset::Twitter2009, 100_000);
        let above = |limit: u32| count(graph.followers().iter().filter(|n| **n > limit).count() as u64);
        let fall = above(50) / above(500);
        assert!((fall / 10_f64.powf(1.05) - 1.0).abs() < 0.15, "{fall}");
        assert!(*graph.followers().iter().max().unwrap() > 10_000);
    }

    /// They were loaded, since an import doesn't ask, and then every further follow of theirs was refused.
    #[test]
    fn nobody_follows_more_than_the_engine_allows() {
        let (accounts, following) = (45_000, crate::graph::Degree::power_of_mean(2.0, 20.0, 40_000.0));
        assert!(following.ranked(accounts).next().unwrap() > 20_000.0, "without a bound somebody would");
        let graph = generate(accounts, &Shape { following, ..Preset::Twitter2009.shape(45e3) }, 7).unwrap();
        let most = (0..45_000).map(|reader| graph.following(reader).len()).max().unwrap();
        assert!((10_000..=FOLLOWING_MAX).contains(&most), "{most}");
        assert!((mean(&graph) / 20.0 - 1.0).abs() < 0.05, "{}", mean(&graph));
    }

    #[test]
    fn of_seeds_one_author_in_a_thousand_has_over_1000_followers() {
        let graph = graph(Preset::Seeds, 100_000);
        let large = graph.followers().iter().filter(|n| **n > 1_000).count();
        assert!((80..=120).contains(&large), "{large}");
    }

    #[test]
    fn of_a_uniform_graph_nobody_stands_out() {
        let graph = graph(Preset::Uniform, 10_000);
        assert!((0..10_000).all(|reader| graph.following(reader).len() == 50));
        assert!(graph.followers().iter().all(|n| (15..110).contains(n)));
    }

    #[test]
    fn the_seed_decides() {
        let of = |seed| generate(500, &Preset::Bluesky.shape(500.0), seed).unwrap();
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn who_follows_all_others_gets_all_others() {
        let all = crate::graph::Degree::Uniform { least: 99.0, most: 99.0 };
        let graph = generate(100, &Shape { following: all, ..Preset::Twitter2009.shape(100.0) }, 3).unwrap();
        assert_eq!(graph.follows(), 9_900);
    }

    #[test]
    fn what_would_not_fit_is_refused() {
        let shape = Preset::Uniform.shape(1e7);
        assert!(generate(1, &shape, 1).is_err());
        let told = generate(
            10_000_000,
            &Shape { following: crate::graph::Degree::Uniform { least: 60.0, most: 60.0 }, ..shape },
            1,
        );
        assert!(told.unwrap_err().to_string().contains("choose fewer accounts"));
        let many = crate::graph::Degree::Uniform { least: 10.0, most: 19_002.0 };
        let told = generate(20_000, &Shape { following: many, ..Preset::Uniform.shape(2e4) }, 1);
        assert!(told.unwrap_err().to_string().contains("choose a smaller `mean`"));
    }
}
