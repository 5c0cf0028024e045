//! What is typed, and what follows from it.

use std::path::PathBuf;

use clap::Args;
use tideline::{EngineSettings, PAGE_LEN_MAX};

use super::forecast::{Asked, SECONDS_A_DAY};
use super::network::{Pulled, Rule};
use super::quantity;
use crate::report;
use crate::strict::Strict;
use crate::systems::home_posts;
use crate::typed::share;

/// What a run tells of itself, so that nobody can ask otherwise.
const OF_A_PLAN: [&str; 26] = [
    "users",
    "posts_per_second",
    "mean_followers",
    "mean_following",
    "reads_per_second",
    "posts_per_page",
    "follows_per_second",
    "fills_per_second",
    "active",
    "policy",
    "pulled_per_reader",
    "pulled_authors",
    "pulled_posts",
    "replicas",
    "utilisation",
    "memory_per_primary",
    "memory_utilisation",
    "home_posts",
    "days_kept",
    "stored_posts",
    "text_bytes",
    "celebrity_followers",
    "celebrity_posts_per_day",
    "instances",
    "visible_within",
    "page_seconds",
];

/// What a service of some size needs: primaries, memory, bandwidth, buckets, and what one very large account costs pushed and
/// pulled. Numbers may end in k, M or G.
#[derive(Debug, Clone, Args)]
pub(crate) struct PlanArgs {
    /// Accounts
    #[arg(long, value_name = "N", value_parser = quantity::parse, required_unless_present = "check")]
    pub(super) users: Option<f64>,
    /// Posts a second, of all together
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "100")]
    posts_per_second: f64,
    /// Followers that a post goes to, on average over posts; if who is pulled is told, over those that are pushed
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "200")]
    mean_followers: f64,
    /// How many an account follows on average [default: as many as --mean-followers]
    #[arg(long, value_name = "N", value_parser = quantity::parse)]
    mean_following: Option<f64>,
    /// Home pages a second, of all together
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "10k")]
    reads_per_second: f64,
    /// Posts that a page shows on average: fewer than its 20, where readers look for news often
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "20")]
    posts_per_page: f64,
    /// Follows and unfollows a second, of all together
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "0")]
    follows_per_second: f64,
    /// Readers a second who come back and have no home, so that it is filled: all together
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "0")]
    fills_per_second: f64,
    /// Share of the accounts that read now and then and so have a home, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0.2")]
    active: f64,
    /// Who decides who is pushed and who is pulled in the plan that is shown in detail
    #[arg(long, value_name = "NAME", value_enum, default_value = "cost")]
    pub(super) policy: Rule,
    /// Authors that a reader pulls, on average; as the two below it says what you know, where a model of the network is asked otherwise
    #[arg(long, value_name = "N", requires_all = ["pulled_authors", "pulled_posts"], value_parser = quantity::parse)]
    pulled_per_reader: Option<f64>,
    /// Authors that are pulled
    #[arg(long, value_name = "N", requires_all = ["pulled_per_reader", "pulled_posts"], value_parser = quantity::parse)]
    pulled_authors: Option<f64>,
    /// Share of the posts that are theirs, from 0 to 1: these are delivered to nobody
    #[arg(long, value_name = "SHARE", requires_all = ["pulled_per_reader", "pulled_authors"], value_parser = share)]
    pulled_posts: Option<f64>,
    /// Replicas of each primary
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "1")]
    replicas: f64,
    /// Share of a core that a primary, or an instance, may use on average, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0.5")]
    utilisation: f64,
    /// Memory of a primary, in bytes: its maxmemory
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse, default_value = "25G")]
    memory_per_primary: f64,
    /// Share of that memory that keys and values may take, from 0 to 1: the rest is for the table of keys, fragmentation, buffers of clients and replicas, and what is written while
    /// a snapshot is made
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0.6")]
    memory_utilisation: f64,
    /// Posts that a home guarantees
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value_t = f64::from(home_posts()))]
    home_posts: f64,
    /// Days of posts that are stored: as many as have gone by, because the engine deletes no post by itself
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "30")]
    days_kept: f64,
    /// Posts that are stored, of all accounts together [default: those of --days-kept]
    #[arg(long, value_name = "N", value_parser = quantity::parse, conflicts_with = "days_kept")]
    stored_posts: Option<f64>,
    /// Bytes of a post's text, on average
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "150")]
    text_bytes: f64,
    /// Followers of the largest account [default: 25M, or all users if they are fewer]
    #[arg(long, value_name = "N", value_parser = quantity::parse)]
    celebrity_followers: Option<f64>,
    /// Posts of the largest account on a day
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "20")]
    celebrity_posts_per_day: f64,
    /// Instances of the engine, each with its own caches [default: one for each two cores that they need]
    #[arg(long, value_name = "N", value_parser = quantity::parse)]
    pub(super) instances: Option<f64>,
    /// The setting `visible_within`, in seconds; 0: nothing is remembered
    #[arg(long, value_name = "SECONDS", value_parser = quantity::parse, default_value_t = EngineSettings::default().visible_within.as_secs_f64())]
    visible_within: f64,
    /// How long a page takes, in seconds: readers who come while a post is read anew read it, too
    #[arg(long, value_name = "SECONDS", value_parser = quantity::parse, default_value = "0.002")]
    page_seconds: f64,
    /// Costs as `loadtest scale --json FILE` has measured them on your machine [default: those of docs/benchmarks.md]. Of several, separated by commas, the plan is of
    /// the first, and the others say from where to where it goes: measured with many operations at once, and with few
    #[arg(long, value_name = "FILE,...", value_delimiter = ',')]
    pub(super) units: Vec<PathBuf>,
    /// Instead of a plan: holds what is forecast for the run of `loadtest compare --json FILE`, CPU time, memory and bandwidth of
    /// every policy in it, against what it measured
    #[arg(long, value_name = "FILE", conflicts_with_all = OF_A_PLAN)]
    pub(super) check: Option<PathBuf>,
    /// Also write the result to this file as JSON; loadtest/README.md explains the fields
    #[arg(long, value_parser = report::writable, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    #[command(flatten)]
    pub(super) strict: Strict,
}

impl PlanArgs {
    /// What is asked, before it is known who is pulled: nobody is.
    fn asked(&self, users: f64) -> Asked {
        const CELEBRITY_FOLLOWERS: f64 = 25e6;
        Asked {
            users,
            posts_per_second: self.posts_per_second,
            mean_followers: self.mean_followers,
            mean_following: self.mean_following.unwrap_or(self.mean_followers),
            reads_per_second: self.reads_per_second,
            posts_per_page: self.posts_per_page,
            follows_per_second: self.follows_per_second,
            fills_per_second: self.fills_per_second,
            active: self.active,
            pulled: Pulled {
                authors: 0.0,
                per_reader: 0.0,
                posts: 0.0,
                mean_followers: self.mean_followers,
                looks_per_second: None,
            },
            replicas: self.replicas,
            utilisation: self.utilisation,
            memory_per_primary: self.memory_per_primary,
            memory_utilisation: self.memory_utilisation,
            home_posts: self.home_posts,
            stored_posts: self.stored_posts.unwrap_or(self.posts_per_second * SECONDS_A_DAY * self.days_kept),
            text_bytes: self.text_bytes,
            celebrity_followers: self.celebrity_followers.unwrap_or(CELEBRITY_FOLLOWERS.min(users)),
            celebrity_posts_per_day: self.celebrity_posts_per_day,
            instances: self.instances.unwrap_or(1.0),
            visible_within_s: self.visible_within,
            page_s: self.page_seconds,
        }
    }
}

impl PlanArgs {
    /// Who is pulled, if somebody has told.
    pub(super) fn pulled(&self) -> Option<Pulled> {
        Some(Pulled {
            authors: self.pulled_authors?,
            per_reader: self.pulled_per_reader?,
            posts: self.pulled_posts?,
            mean_followers: self.mean_followers,
            looks_per_second: None,
        })
    }

    /// What is asked, unless it cannot be.
    pub(super) fn checked(&self, users: f64) -> anyhow::Result<Asked> {
        let asked = self.asked(users);
        asked.check()?;
        let Some(Pulled { authors, per_reader, .. }) = self.pulled() else { return Ok(asked) };
        anyhow::ensure!(
            self.policy.is_hybrid(),
            "--pulled-per-reader, --pulled-authors and --pulled-posts tell whom a hybrid pulls: with `--policy {}` that is known",
            self.policy.name()
        );
        anyhow::ensure!(
            authors <= users,
            "--pulled-authors is {authors}, and there are only {users} --users"
        );
        let following = asked.mean_following;
        anyhow::ensure!(
            per_reader <= following,
            "--pulled-per-reader is {per_reader}, and readers follow {following} on average (--mean-following)"
        );
        Ok(asked)
    }
}

impl Asked {
    fn check(&self) -> anyhow::Result<()> {
        for (name, value) in [
            ("--users", self.users),
            ("--utilisation", self.utilisation),
            ("--memory-per-primary", self.memory_per_primary),
            ("--memory-utilisation", self.memory_utilisation),
            ("--active", self.active),
            ("--instances", self.instances),
        ] {
            anyhow::ensure!(value > 0.0, "{name} must be above 0");
        }
        for (name, accounts) in [
            ("--celebrity-followers", self.celebrity_followers),
            ("--mean-followers", self.mean_followers),
            ("--mean-following", self.mean_following),
        ] {
            let users = self.users;
            anyhow::ensure!(accounts <= users, "{name} is {accounts}, and there are only {users} --users");
        }
        let (shown, most) = (self.posts_per_page, report::count(PAGE_LEN_MAX as u64));
        anyhow::ensure!(shown <= most, "--posts-per-page is {shown}: a page has {most} posts at most");
        let home = self.home_posts;
        anyhow::ensure!(
            shown <= home,
            "--posts-per-page is {shown}, and homes hold {home} posts (--home-posts)"
        );
        let within = self.visible_within_s;
        anyhow::ensure!(within <= SECONDS_A_DAY, "--visible-within is {within} seconds: at most a day");
        let (mean, largest) = (self.mean_following, self.celebrity_followers);
        anyhow::ensure!(
            largest >= mean,
            "--celebrity-followers is {largest}, and accounts have {mean} on average (--mean-following)"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;

    #[derive(clap::Parser)]
    struct Cli {
        #[command(flatten)]
        plan: PlanArgs,
    }

    fn asked(typed: &str) -> anyhow::Result<Asked> {
        let cli = Cli::try_parse_from(["plan"].into_iter().chain(typed.split(' ')))?;
        cli.plan.checked(cli.plan.users.unwrap_or_default())
    }

    #[test]
    fn what_is_not_told_follows_from_what_is() {
        let of = |typed: &str| {
            let asked = asked(typed).unwrap();
            [asked.mean_following, asked.celebrity_followers, asked.stored_posts]
        };
        assert_eq!(of("--users 2000 --mean-followers 50"), [50.0, 2_000.0, 100.0 * 86_400.0 * 30.0]);
        assert!((of("--users 2000 --mean-followers 50 --days-kept 1")[2] - 8_640_000.0).abs() < 1e-6);
        assert_eq!(of("--users 100M --mean-following 70 --stored-posts 9"), [70.0, 25e6, 9.0]);
    }

    #[test]
    fn a_check_takes_nothing_that_its_run_tells() {
        let options = Cli::command().get_arguments().map(|arg| arg.get_id().to_string()).collect::<Vec<_>>();
        let told = ["check", "units", "json", "is_on"];
        let others = options.iter().map(String::as_str).filter(|option| !told.contains(option));
        assert_eq!(others.collect::<Vec<_>>(), OF_A_PLAN);
        let told = Cli::try_parse_from(["plan", "--check", "run.json", "--active", "0.5"])
            .err()
            .unwrap()
            .to_string();
        assert!(told.contains("cannot be used with") && told.contains("--active"), "{told}");
        assert!(Cli::try_parse_from(["plan", "--check", "run.json", "--units", "scale.json"]).is_ok());
    }

    #[test]
    fn without_caches_each_page_reads_everything_anew() {
        let asked = asked("--users 1M --visible-within 0 --page-seconds 0").unwrap();
        let found = super::super::work::posts_anew(&asked, &super::super::units::Units::round());
        assert!((found.per_second - 10_000.0 * 20.0).abs() < 1e-6, "{}", found.per_second);
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (typed, name) in [
            ("--users 0", "--users"),
            (
                "--users 100 --mean-followers 5 --pulled-authors 101 --pulled-posts 0.1 --pulled-per-reader 1",
                "--pulled-authors is 101",
            ),
            (
                "--users 1M --pulled-authors 101 --pulled-posts 0.1 --pulled-per-reader 201",
                "--pulled-per-reader is 201, and readers follow 200",
            ),
            (
                "--users 1M --policy push --pulled-authors 10 --pulled-posts 0.1 --pulled-per-reader 2",
                "`--policy push`",
            ),
            ("--users 1M --pulled-posts 0.1", "--pulled-authors"),
            ("--users 1M --posts-per-page 101", "a page has 100 posts"),
            ("--users 1M --posts-per-page 20 --home-posts 16", "homes hold 16 posts"),
            ("--users 1M --visible-within 1e9", "at most a day"),
            ("--users 1M --celebrity-followers 100", "--celebrity-followers is 100, and accounts have 200"),
            ("--users 1M --memory-utilisation 0", "--memory-utilisation"),
            ("--users 1M --days-kept 3 --stored-posts 3", "--stored-posts"),
            ("--users 1M --instances 0", "--instances"),
            ("--users 100", "--mean-followers"),
        ] {
            let told = asked(typed).unwrap_err().to_string();
            assert!(told.contains(name), "{typed}: {told}");
        }
    }
}
