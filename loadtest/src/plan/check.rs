//! A forecast of what a run of `compare` had to cost, held against what it measured.

use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

use super::Units;
use super::forecast::{Asked, US, forecast};
use super::measured::{Load, Row, Run, World};
use crate::report;
use crate::scenario::Loop;
use crate::strict::{End, Strict};
use crate::systems::Contestant;

/// A forecast may be off by so much.
const OFF_MAX: f64 = 0.2;
/// Units that were measured with so many times as many operations at once, or as few, are others.
const AT_ONCE_TIMES: f64 = 2.0;
/// Units are of a closed loop: an operation is always there.
const IDLE: &str = " A service that has nothing to do in between costs more for each operation than units say with however few at once, because \
                    servers and instances wake up for it. For how many cores a service needs that does not matter: that is decided by the load that keeps \
                    them busy, of which units with many at once tell.";

/// All policies of a run.
#[derive(Debug, Clone, Serialize)]
struct Outcome {
    command: &'static str,
    units: Units,
    policies: Vec<Checked>,
    /// Whether all are near enough.
    is_near: bool,
}

/// What is forecast of a policy, and what was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Checked {
    system: Contestant,
    /// CPU time of an operation, servers and client together.
    cpu_us: Held,
    server_us: Option<Held>,
    client_us: Option<Held>,
    /// Nothing, if it was not measured.
    memory_bytes: Option<Held>,
    /// Bytes of an operation on the wire; likewise.
    wire_bytes: Option<Held>,
}

impl Checked {
    fn is_near(&self) -> bool {
        self.cpu_us.is_near() && [self.memory_bytes, self.wire_bytes].into_iter().flatten().all(Held::is_near)
    }

    /// What is forecast too high or too low, and what nobody measured.
    fn unmet(&self) -> Vec<String> {
        let name = self.system.name();
        let side = |held: Option<Held>| held.map_or_else(|| "unknown".to_owned(), |held| held.off_percent());
        let split = format!(" (servers {}, client {})", side(self.server_us), side(self.client_us));
        let judge = |(what, held, more): (&str, Option<Held>, &str)| match held {
            None => Some(format!("{name}: {what} could not be judged, it was not measured")),
            Some(held) if held.is_near() => None,
            Some(held) => Some(format!("{name}: {what} is forecast {} off{more}", held.off_percent())),
        };
        [
            ("CPU time", Some(self.cpu_us), split.as_str()),
            ("memory", self.memory_bytes, ""),
            ("bandwidth", self.wire_bytes, ""),
        ]
        .into_iter()
        .filter_map(judge)
        .collect()
    }
}

/// A forecast, held against what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Held {
    forecast: f64,
    measured: f64,
    /// How far the forecast is off, as a share of what was measured.
    off: f64,
}

impl Held {
    fn new(forecast: f64, measured: f64) -> Self {
        Self { forecast, measured, off: forecast / measured - 1.0 }
    }

    fn is_near(self) -> bool {
        self.off.abs() <= OFF_MAX
    }

    fn cells(self, digits: usize, unit: f64) -> [String; 3] {
        let figure = |value: f64| format!("{:.digits$}", value / unit);
        [figure(self.forecast), figure(self.measured), self.off_percent()]
    }

    fn off_percent(self) -> String {
        format!("{:+.0} %", self.off * 100.0)
    }
}

/// Tells how far forecasts are off.
pub(super) fn run(file: &Path, units: Units, json: Option<&Path>, strict: Strict) -> anyhow::Result<End> {
    let run = Run::read(file)?;
    let world = run.world()?;
    let checked = run.rows()?.into_iter().map(|row| check(row, &world, &units));
    let policies = checked.collect::<anyhow::Result<Vec<Checked>>>()?;
    println!("{}\n{}", table(&policies), units.told());
    if let Some(remark) = at_once_remark(&run, &units) {
        println!("{remark}");
    }
    let unmet: Vec<String> = policies.iter().flat_map(Checked::unmet).collect();
    match unmet.is_empty() {
        true => println!("All forecasts are within {:.0} %.", OFF_MAX * 100.0),
        false => println!("Not within {:.0} %, or unknown: {}.", OFF_MAX * 100.0, unmet.join("; ")),
    }
    let is_near = policies.iter().all(Checked::is_near);
    if let Some(json) = json {
        report::write_json(json, &Outcome { command: "plan --check", units, policies, is_near })?;
    }
    Ok(strict.end(true, &unmet))
}

fn check(row: &Row, world: &World, units: &Units) -> anyhow::Result<Checked> {
    let Load { middle, active_at_end, operations_per_second } = row.asked(world)?;
    let in_the_middle = forecast(&middle, units);
    let at_end = forecast(&Asked { active: active_at_end, ..middle }, units);
    let server = in_the_middle.server_cpu_us_per_second / operations_per_second;
    let client = in_the_middle.client_cpu_us_per_second / operations_per_second;
    let wire = in_the_middle.bandwidth_bytes_per_second / operations_per_second;
    let measured = row.cpu_us_per_operation.context("CPU time was not measured in this run")?.median;
    Ok(Checked {
        system: row.system,
        cpu_us: Held::new(server + client, measured),
        server_us: row.server_cpu_us_per_operation.map(|measured| Held::new(server, measured)),
        client_us: row.client_cpu_us_per_operation.map(|measured| Held::new(client, measured)),
        memory_bytes: row.memory_bytes.map(|measured| Held::new(at_end.memory_bytes, measured)),
        wire_bytes: row.wire_bytes_per_operation.map(|measured| Held::new(wire, measured)),
    })
}

fn table(policies: &[Checked]) -> comfy_table::Table {
    let mut table = report::new_table();
    table.set_header([
        "policy",
        "CPU us, forecast",
        "measured",
        "off",
        "servers, forecast",
        "measured",
        "client, forecast",
        "measured",
        "MB, forecast",
        "measured",
        "off",
        "wire bytes, forecast",
        "measured",
        "off",
    ]);
    for checked in policies {
        let side = |held: Option<Held>| {
            let [forecast, measured, _] = held.map_or_else(Default::default, |held| held.cells(1, 1.0));
            [forecast, measured]
        };
        let cells = [checked.system.name().to_owned()]
            .into_iter()
            .chain(checked.cpu_us.cells(1, 1.0))
            .chain(side(checked.server_us))
            .chain(side(checked.client_us))
            .chain(checked.memory_bytes.map_or_else(Default::default, |held| held.cells(1, US)))
            .chain(checked.wire_bytes.map_or_else(Default::default, |held| held.cells(0, 1.0)));
        table.add_row(cells);
    }
    report::align_figures(&mut table);
    table
}

/// What has to be known of units that were measured under another load.
fn at_once_remark(run: &Run, units: &Units) -> Option<String> {
    let [low, high] = run.under_way()?;
    let measured = report::count(units.at_once as u64);
    let has_fewer = high * AT_ONCE_TIMES < measured;
    if !has_fewer && low <= measured * AT_ONCE_TIMES {
        return None;
    }
    let is_open = run.scenario.drive.kind == Loop::Open;
    let had =
        if is_open { format!("{low:.1} to {high:.1} on average, in an open loop") } else { low.to_string() };
    let primaries = f64::from(crate::scale::UNITS_PRIMARIES);
    let each = (f64::midpoint(low, high) / primaries).floor().max(1.0);
    let remark = format!(
        "They were measured with {measured} operations at once, the run had {had}: the more there are, the more share a system \
         call. `scale --parts units --at-once {each}` measures them with {}.",
        each * primaries
    );
    Some(if is_open && has_fewer { remark + IDLE } else { remark })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use serde_json::{Value, json};

    /// 100 accounts, each of whom 10 others follow; half of them read.
    fn run(system: &str, pulled: u64) -> Value {
        let text = "name = 'x'\n[graph]\npreset = 'uniform'\naccounts = 100\nmean = 10\n[mix]\npost = 1\ncheck = 9\n\
                    [activity]\nactive_percent = 50\nhistory = 8\n";
        let row = json!({ "system": system, "rounds": 6, "accounts_pulled": pulled, "operations_per_second": 1_000.0,
            "server_cpu_us_per_operation": 10.0, "client_cpu_us_per_operation": 10.0,
            "cpu_us_per_operation": { "median": 20.0 }, "memory_bytes": 500_000, "posts_per_page": 5.0, "read_p50_us": 0,
            "operations": { "post": { "succeeded": 0 } } });
        json!({ "scenario": Scenario::parse(text).unwrap(), "seed": 1, "rows": [row] })
    }

    fn checked(run: &Value) -> anyhow::Result<Checked> {
        let run: Run = serde_json::from_value(run.clone())?;
        let world = run.world()?;
        check(run.rows()?[0], &world, &Units::round())
    }

    /// Followers are drawn: not everybody has ten.
    fn is_about(value: f64, expected: f64) -> bool {
        (value / expected - 1.0).abs() < 0.03
    }

    #[test]
    fn pushing_all_is_forecast_and_held_against_what_was_measured() {
        let checked = checked(&run("push_only", 0)).unwrap();
        // A tenth are posts: 100 + 5 awake x 5 + 5 asleep x 1, and 100; the others pages of 5 posts: 6 + 5 x 0.2, and
        // 4 + 5 x 0.8.
        let server = checked.server_us.unwrap();
        assert!(is_about(server.forecast, 0.1 * 130.0 + 0.9 * 7.0), "{checked:?}");
        assert!(is_about(checked.client_us.unwrap().forecast, 0.1 * 100.0 + 0.9 * 8.0), "{checked:?}");
        assert!(is_about(checked.cpu_us.forecast, 36.5) && is_about(checked.cpu_us.off, 0.825));
        assert!(!checked.cpu_us.is_near());
        // 50 homes of 10 x 8 posts, 1,000 follows on two sides, 100 accounts, 800 posts of 100 letters.
        let bytes = 50.0 * 80.0 * 20.0 + 2_000.0 * 20.0 + 10_000.0 + 800.0 * 500.0;
        let memory = checked.memory_bytes.unwrap();
        assert!(is_about(memory.forecast, bytes) && memory.is_near(), "{checked:?}");
    }

    #[test]
    fn whoever_comes_in_the_place_of_another_is_forecast_a_home_from_then_on() {
        let mut run = run("push_only", 0);
        run["scenario"]["mix"]["logout"] = json!(0.5);
        run["scenario"]["drive"]["warm_up_seconds"] = json!(1);
        // So slow that many who act in its six rounds of ten operations have come before these, and look for the first time.
        run["rows"][0]["operations_per_second"] = json!(10.0);
        run["rows"][0]["operations"]["post"]["succeeded"] = json!(60);
        let slow: Run = serde_json::from_value(run.clone()).unwrap();
        let load = slow.rows().unwrap()[0].asked(&slow.world().unwrap()).unwrap();
        assert!((0.5..0.8).contains(&load.middle.active), "{load:?}");
        assert!((load.middle.active + 0.01..0.9).contains(&load.active_at_end), "{load:?}");
        // Memory is measured at the end, so it is forecast of those who have a home then.
        let at_end = Asked { active: load.active_at_end, ..load.middle };
        let memory = forecast(&at_end, &Units::round()).memory_bytes;
        assert!((checked(&run).unwrap().memory_bytes.unwrap().forecast - memory).abs() < 1e-6);
    }

    #[test]
    fn posts_of_warming_up_are_stored_though_they_were_not_counted() {
        let mut run = run("push_only", 0);
        run["scenario"]["drive"]["warm_up_seconds"] = json!(3);
        run["rows"][0]["operations"]["post"]["succeeded"] = json!(6_000);
        let run: Run = serde_json::from_value(run).unwrap();
        let load = run.rows().unwrap()[0].asked(&run.world().unwrap()).unwrap();
        // Three seconds of a thousand a second, beside eight of each account.
        assert!((load.middle.stored_posts - 9_800.0).abs() < 1e-6, "{load:?}");
    }

    #[test]
    fn pulling_all_costs_merges_looks_and_marks() {
        let checked = checked(&run("pull_only", 100)).unwrap();
        // 900 pages a second pull 10 each: 9,000 pulls of 200 outboxes in caches.
        let looks = 9_000.0 / (1.0 + 9_000.0 / 200.0);
        let server = 0.1 * 50.0 + 0.9 * 7.0 + looks * 5.0 / 1_000.0;
        assert!(is_about(checked.server_us.unwrap().forecast, server), "{checked:?}");
        let client = 0.1 * 20.0 + 0.9 * (8.0 + 10.0) + looks * 5.0 / 1_000.0;
        assert!(is_about(checked.client_us.unwrap().forecast, client), "{checked:?}");
        let pushed = super::tests::checked(&run("push_only", 0)).unwrap().memory_bytes.unwrap().forecast;
        assert!(
            is_about(checked.memory_bytes.unwrap().forecast, pushed + 100.0 * 10.0 * 20.0),
            "{checked:?}"
        );
    }

    #[test]
    fn what_cannot_be_forecast_is_refused() {
        let told = |run: &Value| format!("{:#}", checked(run).unwrap_err());
        assert!(told(&run("books_pull", 0)).contains("none of the engine's policies"));
        assert!(told(&run("push_only", 7)).contains("another version"));
        let mut unknown = run("push_only", 0);
        unknown["rows"][0]["cpu_us_per_operation"] = Value::Null;
        assert!(told(&unknown).contains("CPU time was not measured"));
        let mut unknown = run("push_only", 0);
        unknown["rows"][0]["memory_bytes"] = Value::Null;
        assert_eq!(checked(&unknown).unwrap().memory_bytes, None, "CPU time can be held against it");
    }

    #[test]
    fn what_is_off_and_what_was_not_measured_is_told_with_the_split_of_cpu_time() {
        let mut run = run("push_only", 0);
        // Forecast: 19.3 us of the servers, 17.2 of the client.
        run["rows"][0]["server_cpu_us_per_operation"] = json!(15.0);
        run["rows"][0]["client_cpu_us_per_operation"] = json!(17.0);
        run["rows"][0]["cpu_us_per_operation"]["median"] = json!(32.0);
        let bandwidth = "push_only: bandwidth could not be judged, it was not measured";
        assert_eq!(checked(&run).unwrap().unmet(), [bandwidth]);
        run["rows"][0]["cpu_us_per_operation"]["median"] = json!(20.0);
        run["rows"][0]["memory_bytes"] = json!(100_000);
        let told = checked(&run).unwrap().unmet();
        assert!(told[0].starts_with("push_only: CPU time is forecast +8"), "{told:?}");
        assert!(told[0].contains("% off (servers +") && told[0].contains(", client +"), "{told:?}");
        assert!(told[1].starts_with("push_only: memory is forecast +") && told[2] == bandwidth, "{told:?}");
    }

    #[test]
    fn units_of_another_load_are_told() {
        let told = |at_once| {
            let run: Run = serde_json::from_value(run("push_only", 0)).unwrap();
            at_once_remark(&run, &Units { at_once, ..Units::round() })
        };
        assert_eq!((told(512), told(300), told(1_000)), (None, None, None));
        let said = told(100).unwrap();
        assert!(said.contains("100 operations") && said.contains("the run had 512:"), "{said}");
        assert!(
            said.contains("--at-once 170` measures them with 510.") && !said.contains("nothing to do"),
            "{said}"
        );
    }

    /// A nearly idle service was forecast an eighth of what it cost, without a word.
    #[test]
    fn of_an_open_loop_it_is_told_how_many_were_under_way() {
        let told = |mean_us: Option<u64>, at_once| {
            let mut run = run("push_only", 0);
            run["scenario"]["drive"]["loop"] = json!("open");
            run["rows"][0]["operations"] = json!({ "post": { "succeeded": 1_000, "mean_us": mean_us },
                "check": { "succeeded": 9_000, "mean_us": 1_000 } });
            let run: Run = serde_json::from_value(run).unwrap();
            at_once_remark(&run, &Units { at_once, ..Units::round() })
        };
        // A thousand a second, of 1.9 ms on average.
        let few = told(Some(10_000), 192).unwrap();
        assert!(
            few.contains("192 operations at once, the run had 1.9 to 1.9 on average, in an open loop:"),
            "{few}"
        );
        assert!(few.contains("--at-once 1` measures them with 3. A service that has nothing to do"), "{few}");
        // 3,000 under way: the run was the busier one.
        let many = told(Some(29_991_000), 192).unwrap();
        assert!(
            many.contains("--at-once 1000` measures them with 3000.") && !many.contains("nothing to do"),
            "{many}"
        );
        assert_eq!([told(Some(10_000), 3), told(None, 192)], [None, None]);
    }
}
