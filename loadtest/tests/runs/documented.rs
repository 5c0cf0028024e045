//! Whether loadtest/README.md tells every field of a result: one rule for all commands.

use std::collections::BTreeSet;

use serde_json::Value;

/// Where a command's fields are told: its own section, and those that it names.
const SECTIONS: [(&str, &[&str]); 11] = [
    ("compare", &["compare", "fanout"]),
    ("sweep", &["sweep", "compare", "fanout"]),
    ("scale", &["scale"]),
    ("fairness", &["fairness", "compare"]),
    ("archive", &["archive", "compare"]),
    ("plan", &["plan", "scale"]),
    ("fanout", &["fanout"]),
    ("verify", &["verify"]),
    ("serve", &["serve", "compare"]),
    ("kills", &["kills"]),
    ("strange", &["strange"]),
];
/// What was typed, under the names of options and settings.
const TYPED: [&str; 3] = ["settings", "scenario", "asked"];
/// Maps: what stands in them is told, not by what names.
const MAPS: &str =
    "operations errors statuses keys fanout_errors events comparisons faults baselines with_replicas";

/// Fails with the fields of a result that its command's part of the README does not name.
pub(crate) fn check(result: &Value) {
    let command = result["command"].as_str().expect("every result says what it is of");
    let (_, sections) = SECTIONS.iter().find(|(name, _)| *name == command).expect("a command with a section");
    let all = include_str!("../../README.md");
    let told: String = sections.iter().map(|section| part(all, section)).collect();
    let mut fields = BTreeSet::new();
    collect(result, false, &mut fields);
    fields.retain(|field| !told.contains(&format!("`{field}`")));
    assert!(fields.is_empty(), "loadtest/README.md, {sections:?}, does not tell of {fields:?}");
}

fn part<'a>(all: &'a str, section: &str) -> &'a str {
    let begin = all.find(&format!("\n## {section}\n")).expect("a section of that name");
    let rest = &all[begin + 1..];
    &rest[..rest.find("\n## ").unwrap_or(rest.len())]
}

fn collect(value: &Value, is_map: bool, fields: &mut BTreeSet<String>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect(value, false, fields)),
        Value::Object(object) => {
            for (name, value) in object {
                if !is_map {
                    fields.insert(name.clone());
                }
                if !TYPED.contains(&name.as_str()) {
                    collect(value, MAPS.split(' ').any(|map| map == name), fields);
                }
            }
        }
        _ => {}
    }
}
