//! Rules that can be taken out: the tables in `rules/`. What changes the engine is built in (build.rs); what changes
//! the functions is put into their text here.

use std::sync::LazyLock;

use crate::table::{self, Kind, RuleEntry};

const TABLES: &[&str] = include!(concat!(env!("OUT_DIR"), "/tables.rs"));

static ENTRIES: LazyLock<Vec<RuleEntry<'static>>> =
    LazyLock::new(|| TABLES.iter().flat_map(|table| table::parse(table)).collect());

/// All rules.
fn rules() -> impl Iterator<Item = &'static RuleEntry<'static>> {
    ENTRIES.iter().filter(|entry| entry.kind == Kind::Rule)
}

/// Names of all rules that can be taken out.
pub(super) fn all() -> Vec<&'static str> {
    rules().map(|rule| rule.name).collect()
}

/// The functions' code with small bounds and without these rules.
pub(super) fn patched(code: &str, rules_out: &[&'static str]) -> String {
    let counts = |entry: &&RuleEntry<'_>| entry.kind == Kind::Always || rules_out.contains(&entry.name);
    ENTRIES.iter().filter(counts).fold(code.to_owned(), |code, entry| {
        let changes = entry.changes.iter().filter(|change| change.file.ends_with(".lua"));
        changes.fold(code, |code, change| {
            table::replaced(&code, &change.right, &change.wrong)
                .unwrap_or_else(|e| panic!("{}: {e}", entry.name))
        })
    })
}

/// Whether a word is a history's name: `H39b`.
fn is_history(word: &str) -> bool {
    word.strip_prefix('H').is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

#[test]
fn every_rule_names_a_history_or_says_why_it_has_none() {
    let told = include_str!("../../../../docs/design.md");
    let mut wrong = Vec::new();
    for rule in rules() {
        let words = rule.why.split([' ', ',', '\n']).filter(|word| is_history(word));
        let (known, unknown): (Vec<_>, Vec<_>) =
            words.partition(|word| told.contains(&format!("**{word}**")));
        let says_why =
            |line: &str| line.strip_prefix("no history: ").is_some_and(|why| why.split(' ').count() > 4);
        if !unknown.is_empty() || known.is_empty() && !rule.why.lines().any(says_why) {
            wrong.push((rule.name, &rule.why));
        }
    }
    assert!(
        wrong.is_empty(),
        "neither a history of docs/design.md nor a sentence why there is none: {wrong:#?}"
    );
}

/// The text of a file below the workspace's root.
fn product(file: &str) -> String {
    let package = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(package.join("../..").join(file)).expect("a file")
}

/// So that whoever reads a step finds near it what it guards against.
#[test]
fn every_rule_has_a_history_named_in_a_file_that_it_changes() {
    let is_told = |rule: &&RuleEntry<'_>| {
        let histories = rule.why.split([' ', ',', '\n']).filter(|word| is_history(word));
        let code: String = rule.changes.iter().map(|change| product(change.file)).collect();
        let words: Vec<&str> = code.split(|c: char| !c.is_alphanumeric()).collect();
        let (mut named, histories) = (histories.clone(), histories.count());
        histories == 0 || rule.changes.is_empty() || named.any(|history| words.contains(&history))
    };
    let untold: Vec<_> = rules().filter(|rule| !is_told(rule)).map(|rule| (rule.name, &rule.why)).collect();
    assert!(untold.is_empty(), "no file that these change names a history of theirs: {untold:#?}");
}

#[test]
fn every_change_of_a_function_stands_where_its_table_says() {
    for entry in ENTRIES.iter() {
        for change in entry.changes.iter().filter(|change| change.file.ends_with(".lua")) {
            let code = product(change.file);
            let at = table::replaced(&code, &change.right, &change.wrong);
            at.unwrap_or_else(|e| panic!("{} in {}: {e}", entry.name, change.file));
        }
        for file in &entry.asked_in {
            let code = product(&format!("crates/tideline-simulation/{file}"));
            assert!(code.contains(&format!("{:?}", entry.name)), "{file} doesn't ask for {}", entry.name);
        }
    }
}
