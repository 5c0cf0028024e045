//! What all commands' reports have in common: tables for terminals, JSON for programs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use serde::Serialize;

use crate::page;
use crate::stats::Estimate;
use crate::tally::Summary;

pub(crate) use crate::stats::count;

/// Columns of whatever is printed.
const COLUMNS: u16 = 100;

/// A row of a table: a name, and a figure of each system, or at each place. What is unknown is said.
pub(crate) fn figures(name: &str, digits: usize, values: impl Iterator<Item = Option<f64>>) -> Vec<String> {
    row(name, values.map(|value| Some(format!("{:.digits$}", value?))))
}

/// The same of estimates, with their intervals.
pub(crate) fn estimates(
    name: &str,
    digits: usize,
    values: impl Iterator<Item = Option<Estimate>>,
) -> Vec<String> {
    row(name, values.map(|value| Some(value?.told(digits))))
}

/// The same of figures that are written already.
pub(crate) fn row(name: &str, cells: impl Iterator<Item = Option<String>>) -> Vec<String> {
    let cells = cells.map(|cell| cell.unwrap_or_else(|| "unknown".to_owned()));
    std::iter::once(name.to_owned()).chain(cells).collect()
}

/// What stands above the columns of such rows.
pub(crate) fn header<'a>(first: &str, others: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    row(first, others.into_iter().map(|name| Some(name.to_owned())))
}

/// A part of a report.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    Text(String),
    /// A heading, what stands above the columns (the first one has names, the others figures; nothing: all are texts),
    /// and the rows.
    Table(String, Vec<String>, Vec<Vec<String>>),
    /// A heading, a note, and an SVG: on a page only.
    Chart(&'static str, &'static str, String),
}

/// What a command tells: as text for a terminal, and as a page with charts.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) title: String,
    pub(crate) parts: Vec<Part>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Text(text) => writeln!(f, "{text}"),
            Part::Table(heading, header, rows) => {
                let mut table = new_table();
                table.add_rows(rows);
                if !header.is_empty() {
                    table.set_header(header);
                    // Names in the first column, figures in all others.
                    table.column_iter_mut().skip(1).for_each(|column| {
                        column.set_cell_alignment(CellAlignment::Right);
                    });
                }
                writeln!(f, "{heading}\n{table}")
            }
            Part::Chart(..) => Ok(()),
        })
    }
}

impl Report {
    /// The page: needs nothing from elsewhere.
    pub(crate) fn page(&self) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => page::paragraph(text),
            Part::Table(heading, header, rows) => page::section(heading, "", &page::table(header, rows)),
            Part::Chart(heading, note, chart) => page::section(heading, note, chart),
        };
        page::page(&self.title, &self.parts.iter().map(part).collect::<Vec<_>>())
    }

    /// The first chart, as an image.
    pub(crate) fn image(&self) -> Option<String> {
        self.parts.iter().find_map(|part| match part {
            Part::Chart(_, _, chart) => Some(page::image(chart)),
            _ => None,
        })
    }
}

/// Where results go, beside the terminal.
#[derive(Debug, Clone, Args)]
pub(crate) struct Files {
    /// Also write the result to this file as JSON; loadtest/README.md explains the fields
    #[arg(long, value_parser = writable, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Also write the result to this file as one page with charts, for any browser
    // The last one counts: `make run` names one before whatever was typed.
    #[arg(long, value_parser = writable, value_name = "FILE", overrides_with = "html")]
    html: Option<PathBuf>,
    /// Also write the first chart, of CPU time, to this file as an image (SVG)
    #[arg(long, value_parser = writable, value_name = "FILE")]
    svg: Option<PathBuf>,
}

impl Files {
    /// Tells an outcome: on the terminal, and in the files that were named.
    pub(crate) fn tell(&self, outcome: &impl Serialize, report: &Report) -> anyhow::Result<()> {
        print(&report.to_string());
        if let Some(file) = &self.json {
            write_json(file, outcome)?;
        }
        if let Some(file) = &self.html {
            write_page(file, &report.page())?;
        }
        let image = self.svg.as_deref().zip(report.image());
        image.map_or(Ok(()), |(file, image)| write(file, &image))
    }
}

/// Prints a report, no wider than a terminal.
fn print(report: &str) {
    print!("{}", fitted(report));
}

/// The same text, in lines that fit: what is longer goes on in the next one. Tables fit by themselves.
pub(crate) fn fitted(text: &str) -> String {
    let mut fitted = String::with_capacity(text.len());
    for line in text.lines() {
        let mut used = 0;
        for (number, word) in line.split(' ').enumerate() {
            let length = word.chars().count();
            if number > 0 && used + 1 + length > COLUMNS.into() {
                fitted.push('\n');
                used = 0;
            } else if number > 0 {
                fitted.push(' ');
                used += 1;
            }
            fitted.push_str(word);
            used += length;
        }
        fitted.push('\n');
    }
    fitted
}

/// Writes a result to a file, readable for people too.
fn write_json(file: &Path, result: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(result)?;
    text.push('\n');
    write(file, &text)
}

/// A file that a result can be written to: told before anything is measured, not after.
pub(crate) fn writable(name: &str) -> Result<PathBuf, String> {
    let file = PathBuf::from(name);
    let is_there = file.exists();
    std::fs::OpenOptions::new().append(true).create(true).open(&file).map_err(|e| e.to_string())?;
    if !is_there {
        drop(std::fs::remove_file(&file));
    }
    Ok(file)
}

/// Writes a text to a file.
fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(file, text).with_context(|| format!("{} cannot be written", file.display()))
}

/// Writes a result as a page with charts, and tells where it can be opened.
fn write_page(file: &Path, page: &str) -> anyhow::Result<()> {
    write(file, page)?;
    let address = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    println!("With charts, to be opened in any browser: file://{}", address.display());
    Ok(())
}

/// A row for each kind of operation.
pub(crate) fn operations(heading: String, rows: &[(&str, &Summary)]) -> Part {
    let columns = ["succeeded", "failed", "not sent", "p50 ms", "p99 ms", "p99.9 ms", "max ms"];
    let cells = |(name, summary): &(&str, &Summary)| {
        let counts = &summary.counts;
        let counted = [counts.succeeded.to_string(), errors(&counts.errors), counts.dropped.to_string()];
        let times = [summary.p50_us, summary.p99_us, summary.p999_us, summary.max_us].map(ms);
        row(name, counted.into_iter().chain(times).map(Some))
    };
    Part::Table(heading, header("operation", columns), rows.iter().map(cells).collect())
}

/// So many of something, for people: `1 primary`, `3 primaries`.
pub(crate) fn many(number: impl Into<f64>, one: &str, more: &str) -> String {
    let number = number.into();
    format!("{number} {}", if (number - 1.0).abs() < f64::EPSILON { one } else { more })
}

/// A table that is no wider than a report may be: cells that are too long go on in the next line.
fn new_table() -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(COLUMNS);
    table
}

fn errors(errors: &BTreeMap<String, u64>) -> String {
    if errors.is_empty() {
        return "0".to_owned();
    }
    errors.iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>().join("\n")
}

fn ms(micros: u64) -> String {
    format!("{}.{:02}", micros / 1_000, micros % 1_000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Tally;
    use std::time::Duration;

    #[test]
    fn the_table_names_errors_by_kind_and_hides_nothing() {
        let tally = Tally::new();
        tally.ended(Duration::from_micros(1_230), None);
        tally.ended(Duration::from_micros(1_230), Some("unknown".into()));
        tally.dropped();
        let parts = vec![operations(String::new(), &[("follow", &tally.summary())])];
        let table = Report { title: String::new(), parts }.to_string();
        let row = table.lines().find(|line| line.contains("follow")).unwrap();
        let cells: Vec<&str> = row.split(['│', '┆']).map(str::trim).filter(|cell| !cell.is_empty()).collect();
        assert_eq!(cells, ["follow", "1", "1 unknown", "1", "1.23", "1.23", "1.23", "1.23"]);
    }

    #[test]
    fn a_report_fits_a_terminal_and_loses_no_word() {
        let long = "word ".repeat(50);
        let text = format!("short\n    indented: 1\n{}\n{}", long.trim_end(), "x".repeat(150));
        let fitted = fitted(&text);
        assert!(fitted.starts_with("short\n    indented: 1\nword"), "{fitted}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&fitted), words(&text));
        assert!(fitted.lines().all(|line| line.starts_with('x') || line.len() <= 100), "{fitted}");
        let mut table = new_table();
        table.add_row(["name", &long, &long]);
        let widest = table.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{table}");
    }

    #[test]
    fn one_of_something_is_not_many() {
        let primaries = |number: u16| many(number, "primary", "primaries");
        assert_eq!([0, 1, 3].map(primaries), ["0 primaries", "1 primary", "3 primaries"]);
    }
}
