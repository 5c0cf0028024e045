//! What the numbers of a plan say of its policies. Pure.

use tideline::Threshold;

use super::celebrity::FanOut;
use super::choice::Choice;
use super::forecast::{Forecast, SECONDS_A_DAY, US, free_cores};
use super::network::Rule;
use super::quantity::{count, time};
use super::units::Units;
use crate::report;

/// Nodes of a cluster, as Redis' own specification has it.
const NODES_MAX: f64 = 1_000.0;

/// Which policy is the cheapest one here, when pulling pays, and what the threshold is for. Times are those of the policy that is told in detail.
pub(super) fn advice(all: &[Choice], chosen: &Choice, units: &Units) -> String {
    let parts = [cheapest(all), Some(pulling(chosen)), Some(threshold(chosen, units)), too_large(chosen)];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

fn cores(choice: &Choice) -> f64 {
    let Forecast { server_cpu_us_per_second, client_cpu_us_per_second, .. } = choice.forecast;
    (server_cpu_us_per_second + client_cpu_us_per_second) / US
}

/// Nothing, where nothing is done.
fn cheapest(all: &[Choice]) -> Option<String> {
    let least = all.iter().min_by(|a, b| cores(a).total_cmp(&cores(b))).filter(|least| cores(least) > 0.0)?;
    let taken = format!("{} cores of primaries and instances together", count(cores(least)));
    let default = all.iter().find(|choice| choice.rule == Rule::DEFAULT)?;
    let name = default.rule.name();
    Some(match least.rule == default.rule {
        true => format!("The least CPU time takes `{name}`, the engine's default: {taken}."),
        false => format!(
            "The least CPU time takes `{}`: {taken}; `{name}`, the engine's default, takes {:.2} times as much.",
            least.rule.name(),
            cores(default) / cores(least)
        ),
    })
}

fn pulling(chosen: &Choice) -> String {
    let asked = &chosen.asked;
    let a_day = |per_second: f64, accounts: f64| count(per_second * SECONDS_A_DAY / accounts);
    format!(
        "To pull an author pays where its followers read seldom, compared with how often it posts; here one who reads looks {} times a day, and an \
         account posts {} times, on average.",
        a_day(asked.reads_per_second, asked.users * asked.active),
        a_day(asked.posts_per_second, asked.users)
    )
}

fn threshold(chosen: &Choice, units: &Units) -> String {
    let (asked, forecast) = (&chosen.asked, &chosen.forecast);
    let from = report::count(Threshold::default().pull_from);
    let largest = asked.celebrity_followers;
    if largest < from {
        return format!(
            "`threshold` pulls from {} followers on, so that no post keeps servers busy for longer; here nobody has so many.",
            count(from)
        );
    }
    let free = free_cores(forecast.primaries, forecast.server_cpu_us_per_second);
    format!(
        "`threshold` is not there to save CPU time: it bounds how long one post keeps servers busy. Pushed to {} followers it takes {} until the \
         last home, to the {} of the largest account {}.",
        count(from),
        time(FanOut::of(from, asked, units, free).seconds * US),
        count(largest),
        time(forecast.celebrity.pushed_seconds_per_post * US)
    )
}

fn too_large(chosen: &Choice) -> Option<String> {
    let nodes = report::count(chosen.forecast.nodes);
    (nodes > NODES_MAX).then(|| {
        format!(
            "{} nodes are more than the {} that the specification of Redis Cluster aims at, and nothing was measured on more than 9 primaries: take \
             fewer and larger ones (--memory-per-primary).",
            count(nodes),
            count(NODES_MAX)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::choice::tests::choices;
    use super::*;

    fn told(typed: &str) -> (String, Vec<Choice>) {
        let all = choices(typed);
        (advice(&all, &all[3], &Units::round()), all)
    }

    /// The default was dearer than pushing all, and nobody was told why it is there.
    #[test]
    fn the_cheapest_policy_is_named_and_what_the_default_costs_beside_it() {
        let (busy, all) = told("--users 5M --reads-per-second 300k");
        let [push, threshold] = [cores(&all[0]), cores(&all[2])];
        assert!(push < threshold, "{busy}");
        let begin = format!(
            "The least CPU time takes `push`: {} cores of primaries and instances together; `threshold`, the engine's default, takes {:.2} times as much.",
            count(push),
            threshold / push
        );
        assert!(busy.starts_with(&begin), "{busy}");
        // 300,000 looks of a million readers, 100 posts of five million accounts.
        assert!(
            busy.contains("looks 25.9 k times a day, and an account posts 1.73 times, on average."),
            "{busy}"
        );
        let (idle, _) = told("--users 5M --reads-per-second 10");
        assert!(idle.starts_with("The least CPU time takes `cost`: "), "{idle}");
        let default = format!("`threshold`, the engine's default: {} cores", count(threshold));
        assert!(cheapest(&all[2..3]).is_some_and(|told| told.contains(&default)), "{default}");
        let (none, _) = told("--users 5M --reads-per-second 0 --posts-per-second 0");
        assert!(none.starts_with("To pull an author pays"), "{none}");
        assert!(!none.contains("NaN") && !none.contains("inf"), "{none}");
    }

    #[test]
    fn a_cluster_beyond_what_redis_is_made_for_is_told() {
        let said = |typed| {
            let (text, all) = told(typed);
            (
                report::count(all[3].forecast.nodes) > NODES_MAX,
                text.contains("the specification of Redis Cluster"),
            )
        };
        assert_eq!(said("--users 5M"), (false, false));
        assert_eq!(said("--users 500M --memory-per-primary 100M"), (true, true));
    }

    #[test]
    fn it_is_told_for_how_long_a_post_keeps_servers_busy_below_the_threshold_and_above() {
        let (told_of, all) = told("--users 5M");
        let Forecast { primaries, server_cpu_us_per_second, celebrity, .. } = &all[3].forecast;
        let free = free_cores(*primaries, *server_cpu_us_per_second);
        // A fifth of 100,000 awake x 4 us, the others 1 us, and 100 us of its own.
        let below = time((20_000.0 * 4.0 + 80_000.0 + 100.0) / free);
        let end = format!(
            "to 100 k followers it takes {below} until the last home, to the 5.00 M of the largest account {}.",
            time(celebrity.pushed_seconds_per_post * US)
        );
        assert!(told_of.ends_with(&end), "{told_of}: {end}");
        let (small, _) = told("--users 5M --celebrity-followers 99k");
        assert!(small.ends_with("here nobody has so many."), "{small}");
    }
}
