//! `loadtest plan`: what a service of some size needs, from measured costs of one of each thing.
//!
//! `network` tells whom a policy pulls, `work` what is done in a second and what one of it takes, `forecast` what that
//! comes to. Nothing here asks a server. How near a plan is to what a run costs is told in docs/benchmarks.md.

mod args;
mod forecast;
mod network;
mod quantity;
mod work;

use anyhow::Context as _;
use serde::Serialize;
use tideline::Threshold;

use crate::report::{self, Part, Report, header, row};
use crate::units::Units;
use args::Asked;
pub(crate) use args::PlanArgs;
use forecast::{DISK_TIMES, Forecast, Stored, forecast};
use network::{Network, Rule};
use quantity::{bytes, count, percent, time};
use work::Work;

const SECONDS_A_DAY: f64 = 86_400.0;
const US: f64 = 1e6;
/// Nodes of a cluster, as Redis' own specification has it.
const NODES_MAX: u64 = 1_000;

/// Everything that a plan tells; loadtest/README.md explains the fields.
#[derive(Debug, Serialize)]
struct Outcome<'a> {
    command: &'static str,
    asked: &'a Asked,
    policy: Rule,
    policies: &'a [Forecast],
    /// Of the policy that is shown in detail.
    work: &'a [Work],
    stored: &'a [Stored],
    units: &'a Units,
}

/// Plans.
pub(crate) fn run(args: &PlanArgs) -> anyhow::Result<()> {
    let units = args.units.as_deref().map_or_else(|| Ok(Units::default()), Units::read)?;
    args.asked.check()?;
    let network = Network::of(&args.asked);
    let all = Rule::ALL.map(|rule| forecast(rule, &network, &args.asked, &units));
    let all = all.into_iter().collect::<anyhow::Result<Vec<Forecast>>>()?;
    let chosen = all.iter().find(|one| one.policy == args.policy).context("every policy was reckoned")?;
    let outcome = Outcome {
        command: "plan",
        asked: &args.asked,
        policy: args.policy,
        policies: &all,
        work: &chosen.work,
        stored: &chosen.stored,
        units: &units,
    };
    args.files.tell(&outcome, &told(&args.asked, &all, chosen, &units))
}

/// All that is told: first the policies, then all of one.
fn told(asked: &Asked, all: &[Forecast], chosen: &Forecast, units: &Units) -> Report {
    let plan = format!("\nThe plan with `{}` (--policy chooses another one):", chosen.policy.name());
    let text = |text: &str| Part::Text(text.to_owned());
    let parts = vec![
        policies(all),
        Part::Text(cheapest(all)),
        Part::Table(plan, Vec::new(), needs(asked, chosen)),
        work(chosen, asked),
        stored(chosen),
        text(
            "Whom a policy pulls comes from a model: followers fall by a power law, a few accounts write most posts, \
             and followers of all accounts read alike. Take its cores for right within a third.",
        ),
        Part::Text(units.told()),
    ];
    Report { title: format!("What {} users need", count(asked.users)), parts }
}

fn policies(all: &[Forecast]) -> Part {
    let columns = ["primaries", "by CPU", "by memory", "servers", "clients", "memory", "network", "pulled"];
    let cells = |one: &Forecast| {
        let primaries = [one.primaries, one.primaries_for_cpu, one.primaries_for_memory];
        let cores = [one.server_cpu_us_per_second, one.client_cpu_us_per_second];
        let memory = [bytes(one.memory_bytes), format!("{}/s", bytes(one.bandwidth_bytes_per_second))];
        let figures =
            primaries.map(|many| many.to_string()).into_iter().chain(cores.map(|us| count(us / US)));
        row(one.policy.name(), figures.chain(memory).chain([percent(one.pulled.posts)]).map(Some))
    };
    let heading = "Primaries, and cores that servers and clients use; how many posts are pulled:";
    Part::Table(heading.to_owned(), header("policy", columns), all.iter().map(cells).collect())
}

/// Which policy is the cheapest one here, and what the engine's default costs beside it.
fn cheapest(all: &[Forecast]) -> String {
    let best = all.iter().min_by(|a, b| a.cores().total_cmp(&b.cores()));
    let default = all.iter().find(|one| one.policy == Rule::Threshold);
    let Some((best, default)) = best.zip(default).filter(|(best, _)| best.cores() > 0.0) else {
        return "Nothing is done, so every policy costs the same.".to_owned();
    };
    format!(
        "`{}` needs the least CPU time: {} cores. `threshold`, the engine's default, needs {:.2} times that; \
         it pulls accounts from {} followers on, so that no single post keeps the servers busy for long.",
        best.policy.name(),
        count(best.cores()),
        default.cores() / best.cores(),
        count(report::count(Threshold::default().pull_from)),
    )
}

/// What an operator has to provide.
fn needs(asked: &Asked, of: &Forecast) -> Vec<Vec<String>> {
    let (primaries, nodes) = (report::count(of.primaries), report::count(of.nodes));
    let cpu = |us: f64, nodes: f64| format!("{:.0} %", us / US / nodes * 100.0);
    let by =
        format!("{} for CPU, {} for memory: the larger one", of.primaries_for_cpu, of.primaries_for_memory);
    let beyond =
        if of.nodes > NODES_MAX { "; Redis Cluster is made for 1,000: take larger ones" } else { "" };
    let keys = bytes(of.memory_bytes / primaries);
    let keys = format!("its keys take {keys}; {:.0} % of it is the most", asked.memory_utilisation * 100.0);
    let daily = bytes(of.memory_bytes_a_day * (1.0 + asked.replicas));
    let network = of.bandwidth_bytes_per_second;
    let of_replicas = cpu(of.replica_cpu_us_per_second, (nodes - primaries).max(1.0));
    let largest = count(asked.largest_followers());
    let rows = [
        ("primaries", of.primaries.to_string(), by),
        ("with replicas", of.nodes.to_string(), format!("{} for each primary{beyond}", asked.replicas)),
        ("memory of a node", bytes(asked.memory_per_primary), keys),
        (
            "memory of all",
            bytes(of.memory_bytes_with_replicas),
            match asked.hot_posts {
                None => format!("keys, on primaries and replicas; each day's posts add {daily}"),
                Some(_) => {
                    format!("keys, on primaries and replicas; a day's posts take {daily} until they leave")
                }
            },
        ),
        (
            "disk of a node",
            bytes(of.disk_bytes_per_node),
            format!("{DISK_TIMES} times its keys: the append-only file while it is rewritten"),
        ),
        (
            "disk of the archive",
            bytes(of.archive_bytes),
            match asked.hot_posts {
                None => "there is none: all posts stay in memory (--hot-posts)".to_owned(),
                Some(_) => format!(
                    "of posts beyond each account's newest {} and older than {} days; likes, answers and what search \
                     needs come on top",
                    count(asked.hot_posts.unwrap_or_default()),
                    asked.hot_days
                ),
            },
        ),
        (
            "network of a node",
            format!("{}/s", bytes(network / nodes)),
            format!("{}/s of all, replication included", bytes(network)),
        ),
        (
            "CPU of a primary",
            cpu(of.server_cpu_us_per_second, primaries),
            format!("of a core, on average; of a replica {of_replicas} at most"),
        ),
        (
            "cores for instances",
            of.instance_cores.to_string(),
            format!("each used at {:.0} %", asked.utilisation * 100.0),
        ),
        ("buckets", of.buckets.to_string(), "fixed for good, so think of what you grow to".to_owned()),
        (
            "longest delivery",
            time(of.longest_post_seconds * US),
            format!("for a post of the largest account that is pushed; the largest of all has {largest}"),
        ),
    ];
    rows.map(|(name, value, why)| vec![name.to_owned(), value, why]).to_vec()
}

/// What is done in a second, and what that takes.
fn work(of: &Forecast, asked: &Asked) -> Part {
    let cells = |work: &Work| {
        let [server, client] = work.cpu().map(|us| count(us / US));
        let each = [format!("{:.2} + {:.2}", work.server_us, work.client_us), count(work.wire_bytes)];
        let all = [format!("{server} + {client}"), format!("{}/s", bytes(work.wire(asked.replicas)))];
        row(work.name, [count(work.per_second)].into_iter().chain(each).chain(all).map(Some))
    };
    let header = header("", ["a second", "us each", "bytes each", "cores", "network"]);
    let heading = "What is done, by servers + instances:".to_owned();
    Part::Table(heading, header, of.work.iter().map(cells).collect())
}

fn stored(of: &Forecast) -> Part {
    let cells = |of: &Stored| {
        let cells = [count(of.many), format!("{:.1}", of.bytes_each), bytes(of.bytes())];
        row(of.name, cells.into_iter().map(Some))
    };
    let header = header("", ["how many", "bytes each", "memory"]);
    Part::Table("What is stored:".to_owned(), header, of.stored.iter().map(cells).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> (String, Vec<Forecast>) {
        let asked = args::tests::typed(line).unwrap();
        let (network, units) = (Network::of(&asked), Units::round());
        let all: Vec<Forecast> =
            Rule::ALL.iter().map(|rule| forecast(*rule, &network, &asked, &units).unwrap()).collect();
        (report::fitted(&told(&asked, &all, &all[3], &units).to_string()), all)
    }

    /// The default was dearer than pushing all, and nobody was told why it is there.
    #[test]
    fn the_cheapest_policy_is_named_and_what_the_default_costs_beside_it() {
        let (busy, all) = plan("--users 5M --reads-per-second 300k");
        assert!(all[0].cores() < all[2].cores(), "{busy}");
        let default = format!("the engine's default, needs {:.2} times", all[2].cores() / all[0].cores());
        assert!(busy.contains("`push` needs the least CPU") && busy.contains(&default), "{busy}");
        assert!(plan("--users 5M --reads-per-second 10").0.contains("`cost` needs the least CPU time"));
        let (none, _) = plan("--users 5M --reads-per-second 0 --posts-per-second 0");
        assert!(none.contains("Nothing is done") && !none.contains("NaN") && !none.contains("inf"), "{none}");
    }

    #[test]
    fn a_plan_fits_100_columns_and_names_what_is_beyond_a_cluster() {
        for (line, is_beyond) in [("--users 5M", false), ("--users 5000M --memory-per-primary 100M", true)] {
            let (told, _) = plan(line);
            let widest = told.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(100), "{widest:?}: {told}");
            assert_eq!(told.contains("Redis Cluster is made for"), is_beyond, "{told}");
        }
    }
}
