//! A scenario: who is there, what they do, and how it is put on a cluster. One TOML file; loadtest/scenarios/ has some,
//! which `shipped` keeps in the program.

mod graph;
mod mix;
mod policies;
mod shipped;

use std::path::Path;

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};

use crate::target::Servers;
pub(crate) use graph::GraphSpec;
pub(crate) use mix::Mix;
pub(crate) use policies::Policies;

/// Most servers of a cluster that is started here: those of a local cluster.
const SERVERS_MAX: u16 = 64;

/// Everything that a load test of timelines needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// Shown with the results.
    pub(crate) name: String,
    pub(crate) graph: GraphSpec,
    #[serde(default)]
    pub(crate) activity: Activity,
    /// How often operations occur, in proportion to each other.
    pub(crate) mix: Mix,
    #[serde(default)]
    pub(crate) drive: Drive,
    #[serde(default)]
    pub(crate) policies: Policies,
}

/// Who does how much.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Activity {
    /// Share of the accounts that read at any moment; the others have no home, unless they have logged out later on.
    pub(crate) active_percent: f64,
    /// So many percent of all accounts ...
    pub(crate) writers_percent: f64,
    /// ... write so many percent of all posts.
    pub(crate) of_posts_percent: f64,
    /// So many percent of those who are active ...
    pub(crate) readers_percent: f64,
    /// ... do so many percent of all that readers do.
    pub(crate) of_reads_percent: f64,
    /// Posts of each account that are there at the beginning.
    pub(crate) history: u64,
    /// Letters of a post.
    pub(crate) text_chars: usize,
}

impl Default for Activity {
    fn default() -> Self {
        Self {
            active_percent: 70.0,
            writers_percent: 10.0,
            of_posts_percent: 80.0,
            readers_percent: 10.0,
            of_reads_percent: 10.0,
            history: 8,
            text_chars: 100,
        }
    }
}

/// How load is put on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Loop {
    /// So many users at once, each with its next operation when the last one is answered: as much as the cluster can
    /// take.
    Closed,
    /// Operations fall due at random moments, so many a second, whether earlier ones are answered or not.
    Open,
}

/// How the load is put on the cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Drive {
    /// Closed or open.
    #[serde(rename = "loop")]
    pub(crate) kind: Loop,
    /// Operations under way at once; in the open loop the most.
    pub(crate) at_once: usize,
    /// In the open loop: operations a second.
    pub(crate) rate: u32,
    /// Instances of the engine, all in this process; an account always meets the same one.
    pub(crate) instances: usize,
    /// Before anything is measured, for each policy.
    pub(crate) warm_up_seconds: u32,
    /// About how long a measured round takes.
    pub(crate) round_seconds: u32,
    /// Measured rounds of each policy.
    pub(crate) rounds: usize,
    /// Primaries of a cluster that is started here.
    pub(crate) primaries: u16,
    /// Replicas of each of these primaries.
    pub(crate) replicas: u16,
    /// Whether its servers write append-only files, synced every second.
    pub(crate) append_only: bool,
    /// Buckets of each tenant.
    pub(crate) buckets: u16,
}

impl Drive {
    /// What is started if there is no cluster.
    pub(crate) fn servers(&self) -> Servers {
        let Self { primaries, replicas, append_only, .. } = *self;
        Servers { primaries, replicas, append_only }
    }
}

impl Default for Drive {
    fn default() -> Self {
        Self {
            kind: Loop::Closed,
            at_once: 512,
            rate: 5_000,
            instances: 2,
            warm_up_seconds: 3,
            round_seconds: 3,
            rounds: 6,
            primaries: 3,
            replicas: 0,
            append_only: false,
            buckets: 1_024,
        }
    }
}

impl Scenario {
    /// Reads one, and refuses what cannot be run. Where there is no such file, it is the shipped one of that name.
    pub(crate) fn read(file: &Path) -> anyhow::Result<Self> {
        if let (false, Some(text)) = (file.is_file(), shipped::by_name(file)) {
            return Self::parse(text);
        }
        let text = std::fs::read_to_string(file).with_context(|| {
            format!(
                "{} cannot be read, and is none of those that are here by name: {}",
                file.display(),
                shipped::names()
            )
        })?;
        let mut scenario =
            Self::parse(&text).with_context(|| format!("{} is no scenario", file.display()))?;
        scenario.graph.relative_to(file);
        Ok(scenario)
    }

    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let scenario: Self = toml::from_str(text)?;
        scenario.check()?;
        Ok(scenario)
    }

    /// Refuses what each value allows but all together do not.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.graph.check()?;
        self.mix.check()?;
        let Activity { active_percent, history, text_chars, .. } = self.activity;
        ensure!(
            active_percent > 0.0 && active_percent <= 100.0,
            "active_percent must be above 0 and up to 100"
        );
        for (name, percent) in [
            ("writers_percent", self.activity.writers_percent),
            ("of_posts_percent", self.activity.of_posts_percent),
            ("readers_percent", self.activity.readers_percent),
            ("of_reads_percent", self.activity.of_reads_percent),
        ] {
            ensure!((0.0..=100.0).contains(&percent), "{name} must be 0 to 100");
        }
        ensure!(history <= 1_000, "history must be up to 1,000 posts of each account");
        ensure!((1..=400).contains(&text_chars), "text_chars must be 1 to 400");
        self.policies.check()?;
        let Drive { at_once, rate, instances, warm_up_seconds, round_seconds, rounds, .. } = self.drive;
        ensure!((1..=100_000).contains(&at_once), "at_once must be 1 to 100,000");
        ensure!((1..=1_000_000).contains(&rate), "rate must be 1 to 1,000,000 a second");
        ensure!((1..=64).contains(&instances), "instances must be 1 to 64");
        ensure!((1..=600).contains(&warm_up_seconds), "warm_up_seconds must be 1 to 600");
        ensure!((1..=600).contains(&round_seconds), "round_seconds must be 1 to 600");
        ensure!((2..=1_000).contains(&rounds), "rounds must be 2 to 1,000");
        let Drive { primaries, replicas, .. } = self.drive;
        ensure!((1..=32).contains(&primaries), "primaries must be 1 to 32");
        ensure!(replicas <= 5, "replicas must be up to 5 of each primary");
        ensure!(
            primaries * (1 + replicas) <= SERVERS_MAX,
            "{primaries} primaries with {replicas} replicas each are more than {SERVERS_MAX} servers: choose fewer of \
             either"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str =
        "name = 'x'\n[graph]\npreset = 'twip'\naccounts = 100\n[mix]\npost = 1\ncheck = 100\n";

    fn told(text: &str) -> String {
        format!("{:#}", Scenario::parse(text).unwrap_err())
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let scenario = Scenario::parse(LEAST).unwrap();
        assert_eq!((scenario.drive, scenario.activity), (Drive::default(), Activity::default()));
        assert!((scenario.mix.check - 100.0).abs() < 1e-9 && scenario.mix.logout.abs() < 1e-9);
    }

    #[test]
    fn what_nobody_knows_is_refused_by_name() {
        assert!(told(&format!("{LEAST}chek = 5\n")).contains("chek"));
        assert!(told(&format!("{LEAST}[drive]\nspeed = 5\n")).contains("speed"));
        assert!(told(&LEAST.replace("twip", "twop")).contains("twop"));
    }

    #[test]
    fn what_cannot_be_run_is_refused_with_the_rule() {
        for (more, rule) in [
            ("[activity]\nactive_percent = 0\n", "active_percent must be above 0"),
            ("[activity]\nof_posts_percent = 101\n", "of_posts_percent must be 0 to 100"),
            ("[drive]\nrounds = 1\n", "rounds must be 2"),
            ("[drive]\nat_once = 0\n", "at_once must be 1"),
            ("[drive]\nreplicas = 6\n", "replicas must be up to 5"),
            ("[drive]\nprimaries = 30\nreplicas = 2\n", "are more than 64 servers: choose fewer"),
            ("[policies]\nlook_ns = 2000000000\n", "look_ns must be up to a second, 1,000,000,000"),
            ("[policies]\nvisible_within_ms = 3600001\n", "visible_within_ms must be up to an hour"),
        ] {
            assert!(told(&format!("{LEAST}{more}")).contains(rule), "{more}");
        }
        assert!(told(&LEAST.replace("check = 100", "check = -1")).contains("must not be negative"));
    }

    #[test]
    fn the_scenarios_that_are_shipped_can_be_read() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(files.len() >= 6, "{files:?}");
        for file in files {
            Scenario::read(&file).unwrap();
        }
    }

    #[test]
    fn one_that_is_neither_a_file_nor_a_name_is_refused_with_all_names() {
        assert_eq!(Scenario::read(Path::new("twitter-2009")).unwrap().name, "twitter-2009");
        let told = format!("{:#}", Scenario::read(Path::new("nowhere/twip.toml")).unwrap_err());
        assert!(told.contains("nowhere/twip.toml cannot be read") && told.contains("small, twip,"), "{told}");
    }
}
