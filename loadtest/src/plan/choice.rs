//! The same service under each policy, side by side: which one to choose.

use serde::Serialize;

use super::args::PlanArgs;
use super::forecast::{Asked, Forecast, US, forecast};
use super::network::{Network, Pulled, Rule};
use super::quantity::{bytes, count, percent};
use super::units::Units;
use crate::report;

/// Cores of an instance.
const INSTANCE_CORES: f64 = 2.0;

/// What a policy comes to.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub(super) rule: Rule,
    pub(super) asked: Asked,
    pub(super) forecast: Forecast,
}

/// The same, as the table and the JSON have it.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    policy: Rule,
    primaries: u64,
    primaries_for_cpu: u64,
    primaries_for_memory: u64,
    server_cpu_us_per_second: f64,
    client_cpu_us_per_second: f64,
    memory_bytes: f64,
    bandwidth_bytes_per_second: f64,
    pulled_authors: f64,
    pulled_posts: f64,
    pulled_per_reader: f64,
}

/// What the policy that was asked for comes to with the costs of another load.
#[derive(Debug, Clone, Serialize)]
pub(super) struct WithUnits {
    source: String,
    at_once: usize,
    primaries: u64,
    primaries_for_cpu: u64,
    instance_cores: u64,
}

impl WithUnits {
    pub(super) fn of(units: &Units, forecast: &Forecast) -> Self {
        let Forecast { primaries, primaries_for_cpu, instance_cores, .. } = *forecast;
        Self {
            source: units.source.clone(),
            at_once: units.at_once,
            primaries,
            primaries_for_cpu,
            instance_cores,
        }
    }
}

/// From where to where a plan goes, with the costs of busy connections and of others.
pub(super) fn range(plans: &[WithUnits]) -> String {
    let [only] = plans else {
        let told = |plan: &WithUnits| {
            format!(
                "{} primaries ({} for their CPU) and {} cores for instances with the costs of {} operations at once",
                plan.primaries, plan.primaries_for_cpu, plan.instance_cores, plan.at_once
            )
        };
        let mut plans: Vec<&WithUnits> = plans.iter().collect();
        plans.sort_by_key(|plan| (plan.primaries_for_cpu, plan.instance_cores));
        return format!("Between {}.", plans.into_iter().map(told).collect::<Vec<_>>().join(", and "));
    };
    format!(
        "That is with busy connections: {} operations at once share system calls. Where many primaries have few requests each at a time, one costs more. For both ends: \
         `loadtest scale --parts units --json busy.json`, the same with `--at-once 8 --json few.json`, and `plan --units busy.json,few.json`.",
        only.at_once
    )
}

/// All of them.
pub(super) fn all(args: &PlanArgs, asked: &Asked, units: &Units) -> anyhow::Result<Vec<Choice>> {
    let network = Network::of(asked);
    Rule::ALL.into_iter().map(|rule| choice(rule, args, &network, asked, units)).collect()
}

/// The one that is to be shown in detail.
pub(super) fn one(args: &PlanArgs, asked: &Asked, units: &Units) -> anyhow::Result<Choice> {
    choice(args.policy, args, &Network::of(asked), asked, units)
}

fn choice(
    rule: Rule,
    args: &PlanArgs,
    network: &Network,
    asked: &Asked,
    units: &Units,
) -> anyhow::Result<Choice> {
    let told = (rule == args.policy).then(|| args.pulled()).flatten();
    let reckon = |instances: f64| {
        let mut asked = Asked { instances, ..asked.clone() };
        asked.pulled = match told {
            Some(told) => told,
            None => network.pulled(rule, &asked, units)?,
        };
        anyhow::Ok((forecast(&asked, units), asked))
    };
    let (mut forecast, mut asked) = reckon(args.instances.unwrap_or(1.0))?;
    if args.instances.is_none() {
        // How many there are is known when their CPU is; what they read anew depends on how many they are, a little.
        (forecast, asked) = reckon((report::count(forecast.instance_cores) / INSTANCE_CORES).ceil())?;
    }
    Ok(Choice { rule, asked, forecast })
}

impl Choice {
    pub(super) fn row(&self) -> Row {
        let Forecast {
            primaries,
            primaries_for_cpu,
            primaries_for_memory,
            server_cpu_us_per_second,
            client_cpu_us_per_second,
            memory_bytes,
            bandwidth_bytes_per_second,
            ..
        } = self.forecast;
        let Pulled { authors, posts, per_reader, .. } = self.asked.pulled;
        Row {
            policy: self.rule,
            primaries,
            primaries_for_cpu,
            primaries_for_memory,
            server_cpu_us_per_second,
            client_cpu_us_per_second,
            memory_bytes,
            bandwidth_bytes_per_second,
            pulled_authors: authors,
            pulled_posts: posts,
            pulled_per_reader: per_reader,
        }
    }
}

pub(super) fn table(rows: &[Row]) -> comfy_table::Table {
    let mut table = report::new_table();
    table.set_header([
        "policy",
        "primaries (CPU, memory)",
        "their CPU, cores",
        "CPU of instances, cores",
        "memory",
        "bandwidth",
        "authors pulled",
        "share of posts not delivered",
        "authors pulled by a reader",
    ]);
    for row in rows {
        table.add_row([
            row.policy.name().to_owned(),
            format!("{} ({}, {})", row.primaries, row.primaries_for_cpu, row.primaries_for_memory),
            count(row.server_cpu_us_per_second / US),
            count(row.client_cpu_us_per_second / US),
            bytes(row.memory_bytes),
            format!("{}/s", bytes(row.bandwidth_bytes_per_second)),
            count(row.pulled_authors),
            percent(row.pulled_posts),
            count(row.pulled_per_reader),
        ]);
    }
    report::align_figures(&mut table);
    table
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

    pub(in crate::plan) fn choices(typed: &str) -> Vec<Choice> {
        let args = Cli::try_parse_from(["plan"].into_iter().chain(typed.split(' '))).unwrap().plan;
        let asked = args.checked(5e6).unwrap();
        all(&args, &asked, &Units::round()).unwrap()
    }

    #[test]
    fn the_cost_model_is_no_dearer_than_the_better_of_pushing_and_pulling_all() {
        for typed in [
            "--users 5M --reads-per-second 10",
            "--users 5M --reads-per-second 300",
            "--users 5M --reads-per-second 300k",
        ] {
            let cpu = choices(typed).into_iter().map(|choice| {
                let Forecast { server_cpu_us_per_second, client_cpu_us_per_second, .. } = choice.forecast;
                server_cpu_us_per_second + client_cpu_us_per_second
            });
            let [push, pull, _, cost]: [f64; 4] = cpu.collect::<Vec<_>>().try_into().unwrap();
            // It does not know what a post's own part costs pushed and pulled.
            assert!(cost <= push.min(pull) * 1.05, "{typed}: {push} {pull} {cost}");
        }
    }

    #[test]
    fn a_plan_goes_from_busy_connections_to_others() {
        let forecast = &choices("--users 5M")[3].forecast;
        let of = |at_once, primaries_for_cpu| {
            let forecast = Forecast { primaries_for_cpu, primaries: 60, ..forecast.clone() };
            WithUnits::of(&Units { at_once, ..Units::round() }, &forecast)
        };
        let told = range(&[of(24, 50), of(192, 20)]);
        assert!(told.starts_with("Between 60 primaries (20 for their CPU)"), "{told}");
        assert!(
            told.contains("192 operations at once, and 60 primaries (50 for")
                && told.ends_with("of 24 operations at once."),
            "{told}"
        );
        assert!(range(&[of(192, 20)]).contains("192 operations at once share"));
    }

    #[test]
    fn what_was_told_is_of_the_policy_that_is_shown() {
        let typed =
            "--users 5M --policy threshold --pulled-authors 7 --pulled-posts 0.5 --pulled-per-reader 3";
        let authors: Vec<f64> = choices(typed).iter().map(|choice| choice.asked.pulled.authors).collect();
        assert!((authors[2] - 7.0).abs() < 1e-9 && (authors[1] / 5e6 - 1.0).abs() < 1e-6, "{authors:?}");
        assert!(authors[0].abs() < 1e-9 && (authors[3] - 7.0).abs() > 1.0, "{authors:?}");
    }
}
