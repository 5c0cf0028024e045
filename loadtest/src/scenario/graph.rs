//! What a scenario says about its graph.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};

use crate::graph::{self, Degree, Graph, Preset, Shape};
use crate::stats::{count, whole};

/// The graph: a preset, with some of its figures changed perhaps, or a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GraphSpec {
    /// A shape that is known.
    pub(crate) preset: Option<Preset>,
    /// How many accounts, with a preset.
    pub(crate) accounts: Option<usize>,
    /// Instead of a preset: a file with a line `reader author` for each follow, packed with gzip or not. What is not
    /// absolute begins where the scenario is.
    pub(crate) file: Option<PathBuf>,
    /// Instead of the preset's: how many an account follows on average.
    pub(crate) mean: Option<f64>,
    /// Instead of the preset's: with what exponent the tail of those who follow many falls.
    pub(crate) following_exponent: Option<f64>,
    /// The same of those who are followed by many.
    pub(crate) followers_exponent: Option<f64>,
    /// Instead of the preset's: about how many the one follows that follows most.
    pub(crate) following_max: Option<f64>,
    /// Instead of the preset's: about how many followers the largest account has.
    pub(crate) followers_max: Option<f64>,
}

impl GraphSpec {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let exponents = [self.following_exponent, self.followers_exponent];
        let changes = [&[self.mean, self.following_max, self.followers_max], &exponents[..]].concat();
        match (&self.file, self.preset, self.accounts) {
            (Some(_), None, None) => {
                ensure!(changes.iter().all(Option::is_none), "[graph]: a file says all about its graph");
                Ok(())
            }
            (None, Some(preset), Some(accounts)) => {
                ensure!(
                    accounts >= 2 && accounts as u64 <= graph::ACCOUNTS_MAX,
                    "accounts must be 2 to {}",
                    graph::ACCOUNTS_MAX
                );
                ensure!(
                    changes.iter().flatten().all(|value| value.is_finite() && *value > 0.0),
                    "[graph]: figures must be above 0"
                );
                let most = count(graph::FOLLOWING_MAX as u64);
                for (name, figure) in [("mean", self.mean), ("following_max", self.following_max)] {
                    ensure!(
                        figure.is_none_or(|figure| figure <= most),
                        "[graph]: `{name}` must be up to {most}: the engine allows an account to follow 20,000"
                    );
                }
                self.check_bounds(preset)
            }
            _ => anyhow::bail!("[graph] needs `preset` and `accounts`, or `file` alone"),
        }
    }

    /// Refuses bounds that would be ignored.
    fn check_bounds(&self, preset: Preset) -> anyhow::Result<()> {
        let is_uniform = preset == Preset::Uniform;
        for (of, max, exponent, is_even) in [
            ("following", self.following_max, self.following_exponent, is_uniform || preset == Preset::Twip),
            ("followers", self.followers_max, self.followers_exponent, is_uniform),
        ] {
            ensure!(
                max.is_none() || !is_even || exponent.is_some(),
                "[graph]: with this preset there is no tail that `{of}_max` could end: leave it out, or set \
                 `{of}_exponent` too"
            );
            let is_possible = max.zip(self.mean).is_none_or(|(max, mean)| max >= mean);
            ensure!(is_possible, "[graph]: `{of}_max` must not be below `mean`");
        }
        Ok(())
    }

    /// A file that is not absolute begins where the scenario is.
    pub(super) fn relative_to(&mut self, scenario: &Path) {
        if let (Some(file), Some(dir)) = (&mut self.file, scenario.parent()) {
            *file = dir.join(&*file);
        }
    }

    /// How many accounts and about how many follows it has; nothing, as long as a file is not read.
    pub(crate) fn size(&self) -> anyhow::Result<Option<(usize, usize)>> {
        let Some(accounts) = self.accounts.filter(|_| self.file.is_none()) else { return Ok(None) };
        let mean = self.shape(accounts)?.following.mean();
        Ok(Some((accounts, usize::try_from(whole(mean * count(accounts as u64)))?)))
    }

    /// Makes it, or reads it.
    pub(crate) fn make(&self, seed: u64) -> anyhow::Result<Graph> {
        if let Some(file) = &self.file {
            return graph::read_edge_list(file);
        }
        let accounts = self.accounts.context("[graph] has no accounts")?;
        graph::generate(accounts, &self.shape(accounts)?, seed)
    }

    fn shape(&self, accounts: usize) -> anyhow::Result<Shape> {
        let mut shape = self.preset.context("[graph] has no preset")?.shape(count(accounts as u64));
        let others = count(accounts as u64) - 1.0;
        if self.mean.is_some() || self.following_exponent.is_some() || self.following_max.is_some() {
            let most = self.following_max.map(|most| most.min(others));
            shape.following = changed(shape.following, self.following_exponent, self.mean, most);
        }
        if self.mean.is_some() || self.followers_exponent.is_some() || self.followers_max.is_some() {
            let most = self.followers_max.map(|most| most.min(others));
            shape.followers = changed(shape.followers, self.followers_exponent, self.mean, most);
        }
        Ok(shape)
    }
}

/// A law with other figures.
fn changed(law: Degree, exponent: Option<f64>, mean: Option<f64>, most: Option<f64>) -> Degree {
    let (Degree::Uniform { most: bound, .. } | Degree::Power { most: bound, .. }) = law;
    let new_mean = mean.unwrap_or(law.mean());
    match (law, exponent) {
        (Degree::Uniform { least, most }, None) => {
            let factor = new_mean / law.mean();
            Degree::Uniform { least: least * factor, most: most * factor }
        }
        (Degree::Power { exponent, .. }, None) | (_, Some(exponent)) => {
            let most = most.unwrap_or(bound).max(new_mean);
            Degree::power_of_mean(exponent, new_mean, most)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(preset: Preset, accounts: usize) -> GraphSpec {
        GraphSpec { preset: Some(preset), accounts: Some(accounts), ..GraphSpec::default() }
    }

    fn mean(graph: &Graph) -> f64 {
        count(graph.follows() as u64) / count(graph.accounts() as u64)
    }

    #[test]
    fn figures_of_a_preset_can_be_changed() {
        for preset in [Preset::Twip, Preset::Twitter2009] {
            let graph = GraphSpec { mean: Some(20.0), ..spec(preset, 5_000) }.make(1).unwrap();
            assert!((mean(&graph) / 20.0 - 1.0).abs() < 0.05, "{preset:?}: {}", mean(&graph));
        }
        let largest = |spec: &GraphSpec| *spec.make(1).unwrap().followers().iter().max().unwrap();
        let bounded = GraphSpec { followers_max: Some(200.0), ..spec(Preset::Twitter2009, 5_000) };
        assert!((150..300).contains(&largest(&bounded)), "{}", largest(&bounded));
        assert!(largest(&spec(Preset::Twitter2009, 5_000)) > 1_000);
        let most = |spec: &GraphSpec| {
            let graph = spec.make(1).unwrap();
            (0..5_000).map(|reader| graph.following(reader).len()).max().unwrap()
        };
        let bounded = GraphSpec { following_max: Some(100.0), ..spec(Preset::Twitter2009, 5_000) };
        assert!((90..=101).contains(&most(&bounded)), "{}", most(&bounded));
        assert!(most(&spec(Preset::Twitter2009, 5_000)) > 1_000);
        let flat = GraphSpec { followers_exponent: Some(6.0), ..spec(Preset::Twitter2009, 5_000) };
        assert!(largest(&flat) < 500, "{}", largest(&flat));
    }

    #[test]
    fn its_size_is_known_before_it_is_made() {
        let spec = GraphSpec { mean: Some(20.0), ..spec(Preset::Twitter2009, 5_000) };
        let (graph, (accounts, follows)) = (spec.make(1).unwrap(), spec.size().unwrap().unwrap());
        assert_eq!(graph.accounts(), accounts);
        assert!(graph.follows().abs_diff(follows) < follows / 20, "{} {follows}", graph.follows());
        assert_eq!(GraphSpec { file: Some("x".into()), ..GraphSpec::default() }.size().unwrap(), None);
    }

    #[test]
    fn nobody_can_follow_more_than_the_engine_allows() {
        let many = |mean| GraphSpec { mean: Some(mean), ..spec(Preset::Twip, 50_000) };
        assert!(many(19_001.0).check().unwrap_err().to_string().contains("`mean` must be up to 19000"));
        assert!(many(15_000.0).make(1).unwrap_err().to_string().contains("choose a smaller `mean`"));
    }

    #[test]
    fn a_graph_is_a_preset_or_a_file() {
        assert!(GraphSpec::default().check().is_err());
        assert!(GraphSpec { accounts: None, ..spec(Preset::Twip, 5) }.check().is_err());
        assert!(GraphSpec { file: Some("x".into()), ..spec(Preset::Twip, 5) }.check().is_err());
        assert!(
            GraphSpec { file: Some("x".into()), mean: Some(2.0), ..GraphSpec::default() }.check().is_err()
        );
        assert!(GraphSpec { mean: Some(0.0), ..spec(Preset::Twip, 5) }.check().is_err());
        let bounded = GraphSpec { followers_max: Some(50.0), ..spec(Preset::Uniform, 100) };
        assert!(bounded.check().unwrap_err().to_string().contains("no tail that `followers_max` could end"));
        GraphSpec { followers_exponent: Some(2.5), ..bounded }.check().unwrap();
        let bounded = |preset, most| GraphSpec { following_max: Some(most), ..spec(preset, 100) };
        let told = |spec: GraphSpec| spec.check().unwrap_err().to_string();
        assert!(told(bounded(Preset::Twip, 50.0)).contains("no tail that `following_max` could end"));
        assert!(told(bounded(Preset::Higgs, 19_001.0)).contains("`following_max` must be up to 19000"));
        let below = GraphSpec { mean: Some(51.0), ..bounded(Preset::Higgs, 50.0) };
        assert!(told(below).contains("`following_max` must not be below `mean`"));
        bounded(Preset::Higgs, 50.0).check().unwrap();
        GraphSpec { file: Some("x".into()), ..GraphSpec::default() }.check().unwrap();
        spec(Preset::Twip, 5).check().unwrap();
    }

    #[test]
    fn a_file_lies_beside_its_scenario() {
        let mut spec = GraphSpec { file: Some("edges.txt".into()), ..GraphSpec::default() };
        spec.relative_to(Path::new("some/where/x.toml"));
        assert_eq!(spec.file.unwrap(), Path::new("some/where/edges.txt"));
    }
}
