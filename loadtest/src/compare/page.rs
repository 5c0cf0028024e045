//! The result of a comparison as a page with charts.

use super::outcome::{Outcome, Row};
use crate::page::{Bar, bars, page, paragraph, section, table};
use crate::report::count;

/// The page.
pub(crate) fn of(outcome: &Outcome) -> String {
    let Outcome { accounts, follows, largest, seed, .. } = outcome;
    let about = format!(
        "{accounts} accounts, {follows} follows, the largest has {largest} followers; {} rounds of each system; seed {seed}.",
        outcome.rows[0].rounds
    );
    let mut parts = vec![paragraph(&about), all_figures(outcome)];
    parts.extend(outcome.remarks().iter().map(|remark| paragraph(remark)));
    parts.extend(charts(&outcome.rows));
    let scenario = toml::to_string(&outcome.scenario).unwrap_or_default();
    let lines: Vec<Vec<String>> = scenario.lines().map(|line| vec![line.to_owned()]).collect();
    parts.push(section(
        "The scenario",
        "As it was run, with what was typed beside it.",
        &table(&["".to_owned()], &lines),
    ));
    page(&format!("Push or pull: {}", outcome.scenario.name), &parts)
}

fn all_figures(outcome: &Outcome) -> String {
    let header: Vec<String> = Outcome::header(outcome.against).into_iter().collect();
    let rows: Vec<Vec<String>> = outcome.rows.iter().map(|row| row.cells().into_iter().collect()).collect();
    let note =
        "Medians over all rounds; in brackets the interval that holds the median with 95 % confidence.";
    section("All figures", note, &table(&header, &rows))
}

/// The chart of CPU time.
pub(crate) fn cpu_chart(rows: &[Row]) -> String {
    chart(rows, &["servers", "client"], "us", &|row| {
        [row.server_cpu_us_per_operation, row.client_cpu_us_per_operation]
            .map(Option::unwrap_or_default)
            .into()
    })
}

fn chart(rows: &[Row], series: &[&str], unit: &str, values: &dyn Fn(&Row) -> Vec<f64>) -> String {
    let bar = |row: &Row| Bar { name: row.system.name().to_owned(), values: values(row) };
    bars(series, &rows.iter().map(bar).collect::<Vec<_>>(), unit)
}

fn charts(rows: &[Row]) -> Vec<String> {
    let one = |unit: &str, value: &dyn Fn(&Row) -> f64| chart(rows, &[""], unit, &|row| vec![value(row)]);
    let parts = [
        (
            "CPU time of an operation",
            "Of all servers and of this program, which is the client. Less is better.",
            cpu_chart(rows),
        ),
        (
            "Operations in a second of CPU time",
            "More is better.",
            one("", &|row| row.operations_per_cpu_second.unwrap_or_default()),
        ),
        (
            "Operations a second",
            "On this machine, which servers and client share.",
            one("", &|r| r.operations_per_second),
        ),
        ("A page, half of all", "How long readers wait.", one("ms", &|row| count(row.read_p50_us) / 1e3)),
        ("A page, 99 of 100", "", one("ms", &|row| count(row.read_p99_us) / 1e3)),
        (
            "Until a post has reached everybody, 99 of 100",
            "What is pulled needs to reach nobody: it counts until it is acknowledged, and shows on pages up to a second later.",
            one("ms", &|row| row.fanout_lag_p99_ms),
        ),
        (
            "Memory",
            "Of all keys of the network at the servers, at the end.",
            one("MB", &|row| row.memory_mb().unwrap_or_default()),
        ),
    ];
    parts.into_iter().map(|(heading, note, chart)| section(heading, note, &chart)).collect()
}
