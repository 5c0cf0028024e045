//! A forecast of what a run of `compare` had to cost, held against what it measured.

use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;
use serde_json::Value;

use super::Units;
use crate::report;
use crate::scenario::Scenario;

/// A forecast may be off by so much.
const OFF_MAX: f64 = 0.2;

/// A forecast and what was measured, in CPU microseconds of an operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Checked {
    system: String,
    forecast_us: f64,
    measured_us: f64,
    /// How far the forecast is off, as a share of what was measured.
    off: f64,
}

/// True if the forecast is near enough.
pub(super) fn run(file: &Path, units: &Units, json: Option<&Path>) -> anyhow::Result<bool> {
    let read = || -> anyhow::Result<Value> { Ok(serde_json::from_str(&std::fs::read_to_string(file)?)?) };
    let run = read().with_context(|| format!("{} cannot be read", file.display()))?;
    let checked = check(&run, units)
        .with_context(|| format!("{} is no result of `loadtest compare --json`", file.display()))?;
    let mut table = report::new_table();
    table.set_header(["system", "forecast us", "measured us", "off"]);
    table.add_row([
        checked.system.clone(),
        format!("{:.1}", checked.forecast_us),
        format!("{:.1}", checked.measured_us),
        format!("{:+.0} %", checked.off * 100.0),
    ]);
    println!("{table}\nCosts of one of each thing are from {}.", units.source);
    if let Some(json) = json {
        report::write_json(json, &checked)?;
    }
    Ok(checked.off.abs() <= OFF_MAX)
}

/// Of a network in which everybody is pushed.
fn check(run: &Value, units: &Units) -> anyhow::Result<Checked> {
    let scenario: Scenario = serde_json::from_value(run["scenario"].clone()).context("its scenario")?;
    let rows = run["rows"].as_array().context("it has no rows")?;
    let row = rows.iter().find(|row| row["system"] == "push_only").context("push_only was not measured")?;
    let measured_us = row["cpu_us_per_operation"]["median"].as_f64().context("CPU time was not measured")?;
    let figure = |name: &str| run[name].as_f64().with_context(|| format!("it has no {name}"));
    let mean = figure("follows")? / figure("accounts")?;
    let forecast_us = forecast(&scenario, mean, units);
    Ok(Checked {
        system: "push_only".to_owned(),
        forecast_us,
        measured_us,
        off: forecast_us / measured_us - 1.0,
    })
}

fn forecast(scenario: &Scenario, mean: f64, units: &Units) -> f64 {
    let both = |unit: [f64; 2]| unit[0] + unit[1];
    let mix = &scenario.mix;
    // Whoever logs out leaves its home behind, and another one comes: soon all have one.
    let active = if mix.logout > 0.0 { 1.0 } else { scenario.activity.active_percent / 100.0 };
    let awake = mean * active;
    let post =
        both(units.publish_us) + awake * both(units.delivery_us) + (mean - awake) * both(units.skipped_us);
    let all = mix.post + mix.check + mix.read + mix.subscribe + mix.unsubscribe + mix.logout;
    let cost = mix.post * post
        + (mix.check + mix.read) * both(units.read_us)
        + (mix.subscribe + mix.unsubscribe) * both(units.follow_us);
    cost / all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn units() -> Units {
        Units {
            publish_us: [50.0, 50.0],
            delivery_us: [5.0, 0.0],
            skipped_us: [1.0, 0.0],
            read_us: [10.0, 10.0],
            follow_us: [50.0, 50.0],
            ..Units::default()
        }
    }

    fn measured(us: f64) -> Value {
        let text = "name = 'x'\n[graph]\npreset = 'twip'\naccounts = 100\n[mix]\npost = 1\ncheck = 8\nsubscribe = 1\n[activity]\nactive_percent = 50\n";
        let scenario = Scenario::parse(text).unwrap();
        json!({ "scenario": scenario, "accounts": 100, "follows": 10_000,
            "rows": [{ "system": "push_only", "cpu_us_per_operation": { "median": us } }] })
    }

    #[test]
    fn a_forecast_is_held_against_what_was_measured() {
        // (1 x (100 + 50 x 5 + 50) + 8 x 20 + 100) / 10.
        let checked = check(&measured(60.0), &units()).unwrap();
        assert!((checked.forecast_us - 66.0).abs() < 1e-9, "{checked:?}");
        assert!((checked.off - 0.1).abs() < 1e-9, "{checked:?}");
    }

    #[test]
    fn what_is_no_comparison_is_refused() {
        assert!(check(&json!({}), &units()).is_err());
        let mut other = measured(60.0);
        other["rows"][0]["system"] = "pull_only".into();
        assert!(check(&other, &units()).unwrap_err().to_string().contains("push_only"));
    }
}
