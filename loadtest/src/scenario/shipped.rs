//! The scenarios of loadtest/scenarios, which are in the program: they are there by name, wherever it is started.

use std::path::Path;

/// By name.
const ALL: [(&str, &str); 7] = [
    ("bluesky", include_str!("../../scenarios/bluesky.toml")),
    ("higgs", include_str!("../../scenarios/higgs.toml")),
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
    use super::*;

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
