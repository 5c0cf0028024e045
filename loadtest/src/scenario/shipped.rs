//! The scenarios of loadtest/scenarios, which are in the program: they are there by name, wherever it is started.

use std::path::Path;

/// By name.
const ALL: [(&str, &str); 8] = [
    ("bluesky", include_str!("../../scenarios/bluesky.toml")),
    ("higgs", include_str!("../../scenarios/higgs.toml")),
    ("reference", include_str!("../../scenarios/reference.toml")),
    ("seeds", include_str!("../../scenarios/seeds.toml")),
    ("small", include_str!("../../scenarios/small.toml")),
    ("twip", include_str!("../../scenarios/twip.toml")),
    ("twitter-2009", include_str!("../../scenarios/twitter-2009.toml")),
    ("uniform", include_str!("../../scenarios/uniform.toml")),
];

/// The one of this name, as `small` or `small.toml`. A path to some other place is none of them.
pub(super) fn by_name(typed: &Path) -> Option<&'static str> {
    let typed = typed.to_str()?;
    let name = typed.strip_suffix(".toml").unwrap_or(typed);
    ALL.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// All their names, for people.
pub(super) fn names() -> String {
    ALL.map(|(name, _)| name).join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::scenario::{Activity, Drive, Loop, Policies, Scenario};

    /// The names of all settings, by table: `drive.rate`. What stands above all tables is in "".
    fn names(tables: &toml::Table) -> BTreeSet<String> {
        let of = |(name, value): (&String, &toml::Value)| match value {
            toml::Value::Table(table) => table.keys().map(|key| format!("{name}.{key}")).collect(),
            _ => vec![name.clone()],
        };
        tables.iter().flat_map(of).collect()
    }

    /// It was said of a file in which half of them were missing.
    #[test]
    fn the_reference_names_every_setting_and_shows_its_default() {
        let text = by_name(Path::new("reference")).unwrap();
        let scenario = Scenario::parse(text).unwrap();
        assert_eq!((&scenario.activity, &scenario.drive), (&Activity::default(), &Drive::default()));
        assert_eq!(scenario.policies, Policies::default());
        let is_setting = |line: &str| line.split_once(" = ").is_some_and(|(name, _)| !name.contains(' '));
        let shown =
            |line: &str| line.strip_prefix("# ").filter(|rest| is_setting(rest)).unwrap_or(line).to_owned();
        let all = text.lines().map(shown).collect::<Vec<_>>().join("\n");
        // What is commented out is of the right kind too.
        let scenario: Scenario = toml::from_str(&all).unwrap();
        assert_eq!(scenario.drive, Drive::default());
        // A setting that can be left out stands here too: as null.
        let known = serde_json::to_value(&scenario).unwrap();
        let of = |(name, value): (&String, &serde_json::Value)| match value {
            serde_json::Value::Object(table) => table.keys().map(|key| format!("{name}.{key}")).collect(),
            _ => vec![name.clone()],
        };
        let known: BTreeSet<String> = known.as_object().unwrap().iter().flat_map(of).collect();
        assert_eq!(names(&all.parse().unwrap()), known);
    }

    #[test]
    fn the_scenario_of_your_own_numbers_in_the_readme_can_be_run() {
        let readme = include_str!("../../README.md");
        let (_, part) = readme.split_once("\n### Your own numbers\n").unwrap();
        let (text, _) = part.split_once("```toml\n").unwrap().1.split_once("```").unwrap();
        let scenario = Scenario::parse(text).unwrap();
        assert_eq!(scenario.drive.kind, Loop::Open);
        assert!((f64::from(scenario.drive.rate) - scenario.mix.sum()).abs() < 1e-9, "{scenario:?}");
    }

    #[test]
    fn every_file_is_there_by_its_name() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
        let files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).collect();
        assert_eq!(files.len(), ALL.len(), "{files:?}");
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            for name in [file.file_name(), file.file_stem()] {
                assert_eq!(by_name(Path::new(name.unwrap())), Some(text.as_str()), "{name:?}");
            }
            assert_eq!(by_name(&file), None);
        }
    }
}
