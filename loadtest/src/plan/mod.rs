//! `loadtest plan`: what a service of some size needs, from measured costs of one of each thing, with every formula shown.
//!
//! `units` are the costs, `work` what is done with them in a second, `forecast` the reckoning, with `celebrity` for one very large account; `measured` asks for what a run of
//! `compare` has done, and `check` holds the forecast of that against what the run has measured.

mod celebrity;
mod check;
mod forecast;
mod measured;
mod quantity;
mod units;
mod work;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use comfy_table::ContentArrangement;
use serde::Serialize;

use crate::report;
use crate::strict::{End, Strict};
use forecast::{Asked, Forecast, forecast};
pub(crate) use units::Units;
pub(crate) use work::looks_per_second;

/// Columns of the table, where the terminal does not tell.
const WIDTH: u16 = 120;

/// What a service of some size needs: primaries, memory, bandwidth, buckets, and what one very large account costs pushed and
/// pulled. Numbers may end in k, M or G.
#[derive(Debug, Clone, Args)]
pub(crate) struct PlanArgs {
    /// Accounts
    #[arg(long, value_name = "N", value_parser = quantity::parse, required_unless_present = "check")]
    users: Option<f64>,
    /// Posts a second, of all together
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "100")]
    posts_per_second: f64,
    /// Followers that a post goes to, on average over posts
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
    /// Authors that a reader pulls, on average
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "5")]
    pulled_per_reader: f64,
    /// Authors that are pulled, of all [default: one in a thousand, 1k at most]
    #[arg(long, value_name = "N", value_parser = quantity::parse)]
    pulled_authors: Option<f64>,
    /// Share of the posts that are theirs, from 0 to 1: these are delivered to nobody [default: as if they posted like others]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pulled_posts: Option<f64>,
    /// Replicas of each primary
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "1")]
    replicas: f64,
    /// Share of a core that a primary, or an instance, may use on average, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0.5")]
    utilisation: f64,
    /// Memory of a primary, in bytes
    #[arg(long, value_name = "BYTES", value_parser = quantity::parse, default_value = "25G")]
    memory_per_primary: f64,
    /// Posts that a home guarantees
    #[arg(long, value_name = "N", value_parser = quantity::parse, default_value = "400")]
    home_posts: f64,
    /// Posts that are kept, of all accounts together [default: those of 30 days]
    #[arg(long, value_name = "N", value_parser = quantity::parse)]
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
    instances: Option<f64>,
    /// The setting `visible_within`, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = quantity::parse, default_value = "1")]
    visible_within: f64,
    /// How long a page takes, in seconds: readers who come while a post is read anew read it, too
    #[arg(long, value_name = "SECONDS", value_parser = quantity::parse, default_value = "0.002")]
    page_seconds: f64,
    /// Costs as `loadtest scale --json FILE` has measured them on your machine [default: those of docs/benchmarks.md]
    #[arg(long, value_name = "FILE")]
    units: Option<PathBuf>,
    /// Instead of a plan: holds what is forecast for the run of `loadtest compare --json FILE`, CPU time, memory and bandwidth of
    /// every policy in it, against what it measured
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// Also write the result to this file as JSON; loadtest/README.md explains the fields
    #[arg(long, value_parser = report::writable, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    strict: Strict,
}

/// Everything that a plan tells; loadtest/README.md explains the fields.
#[derive(Debug, Clone, Serialize)]
struct Outcome {
    command: &'static str,
    asked: Asked,
    units: Units,
    #[serde(flatten)]
    forecast: Forecast,
}

/// Plans, or checks.
pub(crate) fn run(args: &PlanArgs) -> anyhow::Result<End> {
    let units = args.units.as_deref().map(Units::read).transpose()?.unwrap_or_default();
    if let Some(file) = &args.check {
        return check::run(file, units, args.json.as_deref(), args.strict);
    }
    anyhow::ensure!(
        !args.strict.is_on,
        "a plan claims nothing that could be judged: --strict goes with --check"
    );
    let users = args.users.context("--users is missing")?;
    let mut asked = args.asked(users);
    asked.check()?;
    if args.instances.is_none() {
        asked.instances = (report::count(forecast(&asked, &units).instance_cores) / 2.0).ceil();
    }
    let forecast = forecast(&asked, &units);
    let mut table = report::new_table();
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if table.width().is_none() {
        table.set_width(WIDTH);
    }
    table.set_header(["", "forecast", "from"]);
    for line in &forecast.lines {
        table.add_row([&line.name, &line.value, &line.formula]);
    }
    println!("{table}\nCosts of one of each thing are from {}.", units.source);
    if let Some(file) = &args.json {
        report::write_json(file, &Outcome { command: "plan", asked, units, forecast })?;
    }
    Ok(End::Right)
}

impl PlanArgs {
    fn asked(&self, users: f64) -> Asked {
        const DAYS_KEPT: f64 = 30.0;
        const CELEBRITY_FOLLOWERS: f64 = 25e6;
        const PULLED_AUTHORS: f64 = 1e3;
        let pulled_authors = self.pulled_authors.unwrap_or((users / 1e3).clamp(1.0, PULLED_AUTHORS));
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
            pulled_per_reader: self.pulled_per_reader,
            pulled_authors,
            pulled_posts: self.pulled_posts.unwrap_or_else(|| (pulled_authors / users).min(1.0)),
            replicas: self.replicas,
            utilisation: self.utilisation,
            memory_per_primary: self.memory_per_primary,
            home_posts: self.home_posts,
            stored_posts: self.stored_posts.unwrap_or(self.posts_per_second * 86_400.0 * DAYS_KEPT),
            text_bytes: self.text_bytes,
            celebrity_followers: self.celebrity_followers.unwrap_or(CELEBRITY_FOLLOWERS.min(users)),
            celebrity_posts_per_day: self.celebrity_posts_per_day,
            instances: self.instances.unwrap_or(1.0),
            visible_within_s: self.visible_within,
            page_s: self.page_seconds,
        }
    }
}

impl Asked {
    fn check(&self) -> anyhow::Result<()> {
        for (name, value) in [
            ("--users", self.users),
            ("--utilisation", self.utilisation),
            ("--memory-per-primary", self.memory_per_primary),
            ("--active", self.active),
            ("--visible-within", self.visible_within_s),
            ("--instances", self.instances),
        ] {
            anyhow::ensure!(value > 0.0, "{name} must be above 0");
        }
        for (name, accounts) in [
            ("--celebrity-followers", self.celebrity_followers),
            ("--mean-followers", self.mean_followers),
            ("--mean-following", self.mean_following),
            ("--pulled-authors", self.pulled_authors),
        ] {
            let users = self.users;
            anyhow::ensure!(accounts <= users, "{name} is {accounts}, and there are only {users} --users");
        }
        Ok(())
    }
}

fn share(text: &str) -> Result<f64, String> {
    match quantity::parse(text)? {
        share if share <= 1.0 => Ok(share),
        share => Err(format!("{share} is above 1; 20 % is 0.2")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Cli {
        #[command(flatten)]
        plan: PlanArgs,
    }

    fn asked(typed: &str) -> anyhow::Result<Asked> {
        let cli = Cli::try_parse_from(["plan"].into_iter().chain(typed.split(' ')))?;
        let asked = cli.plan.asked(cli.plan.users.unwrap_or_default());
        asked.check().map(|()| asked)
    }

    #[test]
    fn what_is_not_told_follows_from_what_is() {
        let of = |typed: &str| {
            let asked = asked(typed).unwrap();
            (asked.pulled_authors, asked.pulled_posts, asked.celebrity_followers)
        };
        assert_eq!(of("--users 2000 --mean-followers 50"), (2.0, 0.001, 2_000.0));
        assert_eq!(of("--users 100M"), (1_000.0, 1e-5, 25e6));
        assert_eq!(of("--users 1M --pulled-authors 10 --pulled-posts 0.5").1, 0.5);
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (typed, name) in [
            ("--users 0", "--users"),
            ("--users 100 --pulled-authors 101 --mean-followers 5", "--pulled-authors"),
            ("--users 1M --instances 0", "--instances"),
            ("--users 100", "--mean-followers"),
        ] {
            let told = asked(typed).unwrap_err().to_string();
            assert!(told.contains(name), "{typed}: {told}");
        }
    }
}
