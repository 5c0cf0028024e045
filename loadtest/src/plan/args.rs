//! What is typed, and what follows from it.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tideline::{CHAT_MEMBERS_MAX, EngineSettings, PAGE_LEN_MAX};

use super::network::Rule;
use super::quantity;
use crate::report::{Files, count};
use crate::systems::home_posts;
use crate::typed::share;

/// The largest account has so many followers, unless somebody tells.
const LARGEST_FOLLOWERS: f64 = 25e6;

/// What a service of some size needs: primaries, replicas, memory, disk, network, cores for instances and buckets,
/// under each policy. Numbers may end in k, M or G.
#[derive(Debug, Clone, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(super) asked: Asked,
    /// Whose plan is shown in detail
    #[arg(long, value_name = "NAME", value_enum, default_value = "cost")]
    pub(super) policy: Rule,
    /// Costs as `loadtest scale --json FILE` has measured them on your machine [default: those of docs/benchmarks.md]
    #[arg(long, value_name = "FILE")]
    pub(super) units: Option<PathBuf>,
    #[command(flatten)]
    pub(super) files: Files,
}

/// The service that a plan is for.
#[derive(Debug, Clone, Args, Serialize)]
pub(super) struct Asked {
    /// Accounts
    #[arg(long, value_name = "N", value_parser = quantity::parse)]
    pub(super) users: f64,
    /// Posts a second, of all together
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "100")]
    pub(super) posts_per_second: f64,
    /// Followers that a post goes to, on average over posts
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "200")]
    pub(super) mean_followers: f64,
    /// How many an account follows on average [default: as many as --mean-followers]
    #[arg(long, value_name = "N", value_parser = quantity::parse)]
    mean_following: Option<f64>,
    /// Followers of the largest account [default: 25M, or all users if they are fewer]
    #[arg(long, value_name = "N", value_parser = quantity::parse)]
    largest_followers: Option<f64>,
    /// Home pages a second, of all together
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "10k")]
    pub(super) reads_per_second: f64,
    /// Posts that a page shows on average: fewer than its 20, where readers look for news often
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "20")]
    pub(super) posts_per_page: f64,
    /// Follows and unfollows a second, of all together
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "0")]
    pub(super) follows_per_second: f64,
    /// Readers a second who come back and have no home, so that it is filled: all together
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "0")]
    pub(super) fills_per_second: f64,
    /// Messages a second in chats, of all together: besides the posts
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "0")]
    pub(super) messages_per_second: f64,
    /// Members of a chat, on average over messages: 2 to 50
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "2")]
    pub(super) chat_members: f64,
    /// Share of the posts that go into groups, from 0 to 1: groups are accounts, with their members as followers
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0")]
    pub(super) group_posts: f64,
    /// Share of the pages that are sorted by importance, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0")]
    pub(super) by_importance: f64,
    /// Acts are counted against limits (the settings `[limits]`)
    #[arg(long)]
    pub(super) limited: bool,
    /// Share of the accounts that read now and then and so have a home, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0.2")]
    pub(super) active: f64,
    /// Days of posts that are stored, in memory or in an archive: as many as have gone by, because the engine deletes
    /// no post by itself
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "30")]
    pub(super) days_kept: f64,
    /// Newest posts of each account that stay in memory, with an archive for the others [default: there is none]
    #[arg(long, value_name = "N", value_parser = quantity::parse)]
    pub(super) hot_posts: Option<f64>,
    /// Days that every post stays in memory, with an archive
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "30", requires = "hot_posts")]
    pub(super) hot_days: f64,
    /// Bytes of a post's text, on average
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "150")]
    pub(super) text_bytes: f64,
    /// Posts that a home guarantees
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value_t = f64::from(home_posts()))]
    pub(super) home_posts: f64,
    /// Replicas of each primary
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "1")]
    pub(super) replicas: f64,
    /// Share of a core that a primary, or an instance, may use on average, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0.5")]
    pub(super) utilisation: f64,
    /// Memory of a primary, in bytes: its maxmemory
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse, default_value = "25G")]
    pub(super) memory_per_primary: f64,
    /// Share of that memory that keys and values may take, from 0 to 1: the rest is for the table of keys,
    /// fragmentation, buffers of clients and replicas, and what is written while a file is rewritten
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0.6")]
    pub(super) memory_utilisation: f64,
    /// Instances of the engine, each with its own caches [default: one for each two cores that they need]
    #[arg(long, value_name = "N", value_parser = quantity::parse)]
    pub(super) instances: Option<f64>,
    /// The setting `visible_within`, in seconds; 0: nothing is remembered
    #[arg(
        long, value_name = "SECONDS", value_parser = quantity::parse,
        default_value_t = EngineSettings::default().visible_within.as_secs_f64()
    )]
    pub(super) visible_within: f64,
}

impl Asked {
    /// Refuses what cannot be, by its option's name.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        for (name, value) in [
            ("--users", self.users),
            ("--utilisation", self.utilisation),
            ("--memory-per-primary", self.memory_per_primary),
            ("--memory-utilisation", self.memory_utilisation),
            ("--active", self.active),
            ("--instances", self.instances.unwrap_or(1.0)),
        ] {
            anyhow::ensure!(value > 0.0, "{name} must be above 0");
        }
        for (name, accounts) in [
            ("--largest-followers", self.largest_followers()),
            ("--mean-followers", self.mean_followers),
            ("--mean-following", self.mean_following()),
        ] {
            let users = self.users;
            anyhow::ensure!(accounts <= users, "{name} is {accounts}; there are only {users} --users");
        }
        let (shown, most, home) = (self.posts_per_page, count(PAGE_LEN_MAX as u64), self.home_posts);
        anyhow::ensure!(shown <= most, "--posts-per-page is {shown}; a page has {most} posts at most");
        anyhow::ensure!(shown <= home, "--posts-per-page is {shown}; a home holds {home} (--home-posts)");
        let members = self.chat_members;
        let most = count(CHAT_MEMBERS_MAX as u64);
        anyhow::ensure!(
            (2.0..=most).contains(&members),
            "--chat-members is {members}; a chat has 2 to {most} members"
        );
        let within = self.visible_within;
        anyhow::ensure!(within <= 86_400.0, "--visible-within is {within} seconds; a day is the most");
        let (mean, largest) = (self.mean_following(), self.largest_followers());
        anyhow::ensure!(
            largest >= mean,
            "--largest-followers is {largest}; the average account has {mean} (--mean-following)"
        );
        Ok(())
    }

    pub(super) fn mean_following(&self) -> f64 {
        self.mean_following.unwrap_or(self.mean_followers)
    }

    pub(super) fn largest_followers(&self) -> f64 {
        self.largest_followers.unwrap_or(LARGEST_FOLLOWERS.min(self.users))
    }

    pub(super) fn stored_posts(&self) -> f64 {
        self.posts_of(self.days_kept)
    }

    /// At most, whoever has written them: without an archive all.
    pub(super) fn posts_in_memory(&self) -> f64 {
        let hot = self.hot_posts.map(|newest| self.posts_of(self.hot_days) + self.users * newest);
        hot.map_or(self.stored_posts(), |hot| hot.min(self.stored_posts()))
    }

    pub(super) fn stored_messages(&self) -> f64 {
        self.messages_of(self.days_kept)
    }

    /// With an archive those that are younger than it takes: the newest ones of each chat, whatever their age, come on
    /// top, and how many chats there are nobody knows.
    pub(super) fn messages_in_memory(&self) -> f64 {
        let hot = self.hot_posts.map(|_| self.messages_of(self.hot_days));
        hot.map_or(self.stored_messages(), |hot| hot.min(self.stored_messages()))
    }

    fn messages_of(&self, days: f64) -> f64 {
        self.messages_per_second * super::SECONDS_A_DAY * days
    }

    /// Kinds of acts that an account does and that are counted.
    pub(super) fn kinds_counted(&self) -> f64 {
        // Messages are posts, too.
        let (posts, messages) = (self.posts_per_second, self.messages_per_second);
        let kinds = [posts + messages, messages, posts * self.group_posts];
        let done = kinds.into_iter().filter(|per_second| *per_second > 0.0).map(|_| 1.0).sum::<f64>();
        if self.limited { done } else { 0.0 }
    }

    fn posts_of(&self, days: f64) -> f64 {
        self.posts_per_second * super::SECONDS_A_DAY * days
    }
}

#[cfg(test)]
pub(super) mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Cli {
        #[command(flatten)]
        plan: PlanArgs,
    }

    pub(in crate::plan) fn typed(line: &str) -> anyhow::Result<Asked> {
        let asked = Cli::try_parse_from(["plan"].into_iter().chain(line.split(' ')))?.plan.asked;
        asked.check().map(|()| asked)
    }

    #[test]
    fn what_is_not_told_follows_from_what_is() {
        let of = |line: &str| {
            let asked = typed(line).unwrap();
            [asked.mean_following(), asked.largest_followers(), asked.stored_posts()]
        };
        assert_eq!(of("--users 2000 --mean-followers 50"), [50.0, 2_000.0, 100.0 * 86_400.0 * 30.0]);
        assert_eq!(of("--users 100M --mean-following 70 --days-kept 1"), [70.0, 25e6, 8_640_000.0]);
        let hot = |line: &str| typed(line).unwrap().posts_in_memory();
        assert!((hot("--users 1M --days-kept 365") - 100.0 * 86_400.0 * 365.0).abs() < 1.0, "no archive");
        let archived = "--users 1M --days-kept 365 --hot-posts 20 --hot-days 10";
        assert!((hot(archived) - (100.0 * 86_400.0 * 10.0 + 20e6)).abs() < 1.0);
        assert!((hot("--users 1M --days-kept 1 --hot-posts 200") - 8_640_000.0).abs() < 1.0, "all there are");
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (line, name) in [
            ("--users 0", "--users"),
            ("--users 1M --posts-per-page 101", "a page has 100 posts"),
            ("--users 1M --posts-per-page 20 --home-posts 16", "a home holds 16"),
            ("--users 1M --visible-within 1e9", "a day is the most"),
            ("--users 1M --largest-followers 100", "--largest-followers is 100; the average account has 200"),
            ("--users 1M --memory-utilisation 0", "--memory-utilisation"),
            ("--users 1M --instances 0", "--instances"),
            ("--users 1M --chat-members 51", "--chat-members is 51; a chat has 2 to 50 members"),
            ("--users 1M --group-posts 1.5", "--group-posts"),
            ("--users 100", "--mean-followers"),
        ] {
            let told = typed(line).unwrap_err().to_string();
            assert!(told.contains(name), "{line}: {told}");
        }
    }
}
