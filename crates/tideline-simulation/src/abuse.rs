//! What accounts can do to others is written down for each function and each kind of task: docs/abuse.md.

use std::path::Path;

use crate::engine::jobs;
use crate::functions;

const TABLE: &str = include_str!("../../../docs/abuse.md");

/// What stands in backquotes in a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The rows of both tables, by their cells.
fn rows() -> Vec<Vec<&'static str>> {
    let rows = TABLE.lines().filter(|line| line.starts_with("| ") && !line.starts_with("|---"));
    let cells =
        |row: &'static str| row.strip_prefix('|')?.strip_suffix('|').map(|row| row.split('|').map(str::trim));
    rows.map(|row| cells(row).expect("a row begins and ends with a bar").collect()).collect()
}

#[test]
fn every_function_and_every_task_has_a_row() {
    let told: Vec<&str> = rows().iter().filter_map(|row| row.first()).flat_map(|cell| names(cell)).collect();
    let code = functions::code();
    let registered = code
        .match_indices("\nregister('")
        .map(|(at, begin)| code[at + begin.len()..].split('\'').next().unwrap_or_default());
    let functions: Vec<&str> = registered.collect();
    assert!(functions.len() > 60, "{functions:?}");
    let tasks: Vec<&str> = jobs::kinds().iter().map(|kind| kind.label()).collect();
    assert!(tasks.len() > 8, "{tasks:?}");
    let missing: Vec<_> = functions.iter().chain(&tasks).filter(|name| !told.contains(*name)).collect();
    assert!(missing.is_empty(), "docs/abuse.md says nothing of {missing:?}");
    let unknown = told.iter().filter(|name| !functions.contains(*name) && !tasks.contains(*name));
    assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&&str>::new(), "nothing is called so");
}

#[test]
fn every_task_is_told_of_wherever_tasks_are_listed() {
    let design = include_str!("../../../docs/design.md");
    let metrics = include_str!("../../../docs/metrics.md");
    for kind in jobs::kinds() {
        let (letter, label) = (char::from(kind.letter()), kind.label());
        assert!(
            design.contains(&format!("\n| `{letter}` {label}(")),
            "docs/design.md has no row for {letter} {label}"
        );
        assert!(metrics.contains(&format!("`{label}`")), "docs/metrics.md does not name {label}");
    }
}

#[test]
fn what_the_table_says_is_shown_is_shown() {
    let mut sources = String::new();
    for folder in ["../../src", "../../tests", "../../archive/tests", "../../server/tests", "src", "rules"] {
        read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut sources);
    }
    let shown: Vec<&str> =
        rows().iter().skip(1).filter_map(|row| row.last()).flat_map(|cell| names(cell)).collect();
    let is_there = |name: &&&str| {
        sources.contains(&format!("fn {name}(")) || sources.contains(&format!("rule {name}\n"))
    };
    let missing: Vec<_> = shown.iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "docs/abuse.md names tests and rules that aren't there: {missing:?}");
}

#[test]
fn what_somebody_can_do_to_others_and_what_reading_costs_is_shown() {
    let rows: Vec<_> = rows().into_iter().filter(|cells| *cells.last().unwrap() != "shown by").collect();
    assert!(rows.len() > 20, "{rows:?}");
    let does_nothing = |cells: &&Vec<&str>| cells[1].starts_with("none");
    let shows_nothing = |cells: &&Vec<&str>| names(cells.last().unwrap()).next().is_none();
    let missing = rows.iter().filter(|cells| !does_nothing(cells)).filter(shows_nothing);
    let missing: Vec<_> = missing.map(|cells| cells[0]).collect();
    assert!(missing.is_empty(), "docs/abuse.md names no test for {missing:?}");
}

fn read(folder: &Path, sources: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read(&path, sources);
        } else if path.extension().is_some_and(|kind| kind == "rs" || kind == "rules") {
            sources.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}
