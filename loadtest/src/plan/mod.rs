//! `loadtest plan`: what a service of some size needs, from measured costs of one of each thing.
//!
//! `network` tells whom a policy pulls, `work` what is done in a second and what one of it takes, `forecast` what
//! that comes to.
//! Nothing here asks a server. How near a plan is to what a run costs is told in docs/benchmarks.md.

mod args;
mod forecast;
mod network;
mod quantity;
mod work;

use std::fmt::Write as _;

use anyhow::Context as _;
use serde::Serialize;
use tideline::Threshold;

use crate::report;
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
    report::print(&told(&args.asked, &all, chosen, &units));
    let Some(file) = &args.json else { return Ok(()) };
    let outcome = Outcome {
        command: "plan",
        asked: &args.asked,
        policy: args.policy,
        policies: &all,
        work: &chosen.work,
        stored: &chosen.stored,
        units: &units,
    };
    report::write_json(file, &outcome)
}

/// All that is printed: first the policies, then all of one.
fn told(asked: &Asked, all: &[Forecast], chosen: &Forecast, units: &Units) -> String {
    let mut told = format!(
        "Primaries, and cores that servers and clients use; how many posts are pulled:\n{}\n{}\n",
        policies(all),
        cheapest(all)
    );
    let name = chosen.policy.name();
    let _ =
        writeln!(told, "\nThe plan with `{name}` (--policy chooses another one):\n{}", needs(asked, chosen));
    let _ = writeln!(
        told,
        "What is done, by servers + instances:\n{}\nWhat is stored:\n{}",
        work(chosen, asked),
        stored(chosen)
    );
    let _ = writeln!(
        told,
        "Whom a policy pulls comes from a model: followers fall by a power law, a few accounts write most \
         posts, and followers of all accounts read alike. Take its cores for right within a third.\n{}",
        units.told()
    );
    told
}

fn policies(all: &[Forecast]) -> comfy_table::Table {
    let mut table = report::new_table();
    table.set_header([
        "policy",
        "primaries",
        "by CPU",
        "by memory",
        "servers",
        "clients",
        "memory",
        "network",
        "pulled",
    ]);
    for one in all {
        table.add_row([
            one.policy.name().to_owned(),
            one.primaries.to_string(),
            one.primaries_for_cpu.to_string(),
            one.primaries_for_memory.to_string(),
            count(one.server_cpu_us_per_second / US),
            count(one.client_cpu_us_per_second / US),
            bytes(one.memory_bytes),
            format!("{}/s", bytes(one.bandwidth_bytes_per_second)),
            percent(one.pulled.posts),
        ]);
    }
    report::align_figures(&mut table);
    table
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
fn needs(asked: &Asked, of: &Forecast) -> comfy_table::Table {
    let mut table = report::new_table();
    let mut row = |name: &str, value: String, why: String| {
        table.add_row([name.to_owned(), value, why]);
    };
    let (primaries, nodes) = (report::count(of.primaries), report::count(of.nodes));
    row(
        "primaries",
        of.primaries.to_string(),
        format!("{} for CPU, {} for memory: the larger one", of.primaries_for_cpu, of.primaries_for_memory),
    );
    let beyond =
        if of.nodes > NODES_MAX { "; Redis Cluster is made for 1,000: take larger ones" } else { "" };
    row("with replicas", of.nodes.to_string(), format!("{} for each primary{beyond}", asked.replicas));
    row(
        "memory of a node",
        bytes(asked.memory_per_primary),
        format!(
            "its keys take {}; {:.0} % of it is the most",
            bytes(of.memory_bytes / primaries),
            asked.memory_utilisation * 100.0
        ),
    );
    row(
        "memory of all",
        bytes(of.memory_bytes_with_replicas),
        format!(
            "keys, on primaries and replicas; each day's posts add {}",
            bytes(of.memory_bytes_a_day * (1.0 + asked.replicas))
        ),
    );
    row(
        "disk of a node",
        bytes(of.disk_bytes_per_node),
        format!("{DISK_TIMES} times its keys: the append-only file while it is rewritten"),
    );
    row(
        "network of a node",
        format!("{}/s", bytes(of.bandwidth_bytes_per_second / nodes)),
        format!("{}/s of all, replication included", bytes(of.bandwidth_bytes_per_second)),
    );
    row(
        "CPU of a primary",
        format!("{:.0} %", of.server_cpu_us_per_second / US / primaries * 100.0),
        format!(
            "of a core, on average; of a replica {:.0} % at most",
            of.replica_cpu_us_per_second / US / (nodes - primaries).max(1.0) * 100.0
        ),
    );
    row(
        "cores for instances",
        of.instance_cores.to_string(),
        format!("each used at {:.0} %", asked.utilisation * 100.0),
    );
    row("buckets", of.buckets.to_string(), "fixed for good, so think of what you grow to".to_owned());
    row(
        "longest delivery",
        time(of.longest_post_seconds * US),
        format!(
            "for a post of the largest account that is pushed; the largest of all has {}",
            count(asked.largest_followers())
        ),
    );
    table
}

/// What is done in a second, and what that takes.
fn work(of: &Forecast, asked: &Asked) -> comfy_table::Table {
    let mut table = report::new_table();
    table.set_header(["", "a second", "us each", "bytes each", "cores", "network"]);
    for work in &of.work {
        let [server, client] = work.cpu().map(|us| count(us / US));
        table.add_row([
            work.name.to_owned(),
            count(work.per_second),
            format!("{:.2} + {:.2}", work.server_us, work.client_us),
            count(work.wire_bytes),
            format!("{server} + {client}"),
            format!("{}/s", bytes(work.wire(asked.replicas))),
        ]);
    }
    report::align_figures(&mut table);
    table
}

fn stored(of: &Forecast) -> comfy_table::Table {
    let mut table = report::new_table();
    table.set_header(["", "how many", "bytes each", "memory"]);
    for stored in &of.stored {
        let each = format!("{:.1}", stored.bytes_each);
        table.add_row([stored.name.to_owned(), count(stored.many), each, bytes(stored.bytes())]);
    }
    report::align_figures(&mut table);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> (String, Vec<Forecast>) {
        let asked = args::tests::typed(line).unwrap();
        let (network, units) = (Network::of(&asked), Units::round());
        let all: Vec<Forecast> =
            Rule::ALL.iter().map(|rule| forecast(*rule, &network, &asked, &units).unwrap()).collect();
        (report::fitted(&told(&asked, &all, &all[3], &units)), all)
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
