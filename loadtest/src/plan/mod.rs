//! `loadtest plan`: what a service of some size needs, from measured costs of one of each thing, with every formula shown.
//!
//! `units` are the costs, `work` what is done with them in a second, `forecast` the reckoning, with `celebrity` for one very large account; `network` tells whom a policy pulls, `choice` holds policies side by side, `advice` says what that means; `measured` asks for what a run of
//! `compare` has done, and `check` holds the forecast of that against what the run has measured.

mod advice;
mod args;
mod celebrity;
mod check;
mod choice;
mod forecast;
mod measured;
mod network;
mod quantity;
mod units;
mod work;

use anyhow::Context as _;
use comfy_table::ContentArrangement;
use serde::Serialize;

use crate::report;
use crate::strict::End;
pub(crate) use args::PlanArgs;
use choice::{Choice, WithUnits};
use forecast::{Asked, Forecast};
use network::{Network, Rule};
pub(crate) use units::Units;

/// Columns of the table, where the terminal does not tell.
const WIDTH: u16 = 120;

/// Everything that a plan tells; loadtest/README.md explains the fields.
#[derive(Debug, Clone, Serialize)]
struct Outcome {
    command: &'static str,
    asked: Asked,
    units: Units,
    /// What is told in detail.
    policy: Rule,
    policies: Vec<choice::Row>,
    with_units: Vec<WithUnits>,
    #[serde(flatten)]
    forecast: Forecast,
}

/// Plans, or checks.
pub(crate) fn run(args: &PlanArgs) -> anyhow::Result<End> {
    let mut all = args.units.iter().map(|file| Units::read(file)).collect::<anyhow::Result<Vec<_>>>()?;
    if all.is_empty() {
        all.push(Units::default());
    }
    let units = all[0].clone();
    if let Some(file) = &args.check {
        anyhow::ensure!(all.len() == 1, "a run is checked with one file of --units");
        return check::run(file, units, args.json.as_deref(), args.strict);
    }
    anyhow::ensure!(
        !args.strict.is_on,
        "a plan claims nothing that could be judged: --strict goes with --check"
    );
    let asked = args.checked(args.users.context("--users is missing")?)?;
    let choices = choice::all(args, &asked, &units)?;
    let rows: Vec<choice::Row> = choices.iter().map(Choice::row).collect();
    let chosen = choices.iter().find(|choice| choice.rule == args.policy).context("a policy")?;
    let plans = all.iter().map(|units| {
        let choice = choice::one(args, &asked, units)?;
        anyhow::Ok(WithUnits::of(units, &choice.forecast))
    });
    let plans = plans.collect::<anyhow::Result<Vec<_>>>()?;
    let advice = advice::advice(&choices, chosen, &units);
    print!("{}{}\n", told(args, chosen, (&rows, &advice), &units), choice::range(&plans));
    if let Some(file) = &args.json {
        let Choice { rule, asked, forecast } = chosen.clone();
        let outcome = Outcome {
            command: "plan",
            asked,
            units,
            policy: rule,
            policies: rows,
            with_units: plans,
            forecast,
        };
        report::write_json(file, &outcome)?;
    }
    Ok(End::Right)
}

/// All that is printed: first the policies, then all of one.
fn told(args: &PlanArgs, chosen: &Choice, (rows, advice): (&[choice::Row], &str), units: &Units) -> String {
    let name = chosen.rule.name();
    let who = match args.pulled() {
        Some(_) => format!("Whom `{name}` pulls is as you told."),
        None => format!("`{name}`: {}.", chosen.rule.told(units)),
    };
    format!(
        "{}\n{advice}\nWhom each policy pulls comes from a model: {}. {who} If you know better: --pulled-authors, --pulled-per-reader, \
         --pulled-posts.\n\nIn detail, `{name}` (another one: --policy):\n{}\n{}\n",
        choice::table(rows),
        Network::told(&chosen.asked),
        detail(&chosen.forecast),
        units.told()
    )
}

/// Each figure with its formula.
fn detail(forecast: &Forecast) -> comfy_table::Table {
    let mut table = report::new_table();
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if table.width().is_none() {
        table.set_width(WIDTH);
    }
    table.set_header(["", "forecast", "from"]);
    for line in &forecast.lines {
        table.add_row([&line.name, &line.value, &line.formula]);
    }
    table
}
