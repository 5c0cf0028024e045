//! The result of a sweep as a page with charts.

use super::outcome::{Outcome, Point};
use crate::compare::Row;
use crate::page::{Line, lines, page, paragraph, section, table};
use crate::report::count;
use crate::systems::Contestant;

/// The page.
pub(crate) fn of(outcome: &Outcome) -> String {
    let Outcome { accounts, follows, seed, .. } = outcome;
    let about = format!(
        "{accounts} accounts, {follows} follows; seed {seed}. Everybody posts as before, while the share of accounts that \
         read grows, each of which reads as often."
    );
    let costs = table(&outcome.header(), &outcome.cells());
    let mut parts = vec![
        paragraph(&about),
        section(
            "CPU time of an operation",
            "us, servers and client together; less is better. The bars are intervals that hold the median with 95 % confidence.",
            &cpu_chart(outcome),
        ),
        section(
            "All figures",
            "us; in brackets the interval. Of fewer than six rounds, which the share says then, it is less sure than 95 %.",
            &costs,
        ),
    ];
    parts.extend(outcome.remarks().iter().map(|remark| paragraph(remark)));
    let alone = |value: f64| Some((value, value, value));
    parts.push(section(
        "A page, 99 of 100",
        "",
        &chart(outcome, "ms", &|row| alone(count(row.read_p99_us) / 1e3)),
    ));
    parts.push(section("Memory", "", &chart(outcome, "MB", &|row| alone(row.memory_mb()?))));
    page(&format!("Push or pull, by how many read: {}", outcome.scenario.name), &parts)
}

/// The chart of CPU time.
pub(crate) fn cpu_chart(outcome: &Outcome) -> String {
    chart(outcome, "us", &|row| row.cpu_us_per_operation.map(|cpu| (cpu.median, cpu.low, cpu.high)))
}

/// A figure, and its interval.
type Figure = (f64, f64, f64);

fn chart(outcome: &Outcome, unit: &str, value: &dyn Fn(&Row) -> Option<Figure>) -> String {
    let point = |system: Contestant, point: &Point| {
        let (value, low, high) = value(point.rows.iter().find(|row| row.system == system)?)?;
        Some((point.active_percent, value, low, high))
    };
    let line = |system: Contestant| Line {
        name: system.name().to_owned(),
        points: outcome.points.iter().filter_map(|at| point(system, at)).collect(),
    };
    let all: Vec<Line> = outcome.systems().into_iter().map(line).collect();
    lines(&all, "% of all accounts that read", unit)
}
