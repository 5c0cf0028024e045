//! deploy/redis.conf, read as text and read back from a server.

use std::collections::BTreeMap;
use std::fs;

use crate::deployed;
use crate::server::{Server, data_dir};

/// What Tideline cannot do without: a line that is deleted by mistake would go unnoticed where it is the default.
const NEEDED: [(&str, &str); 9] = [
    ("cluster-enabled", "yes"),
    ("cluster-require-full-coverage", "no"),
    ("maxmemory-policy", "noeviction"),
    ("list-max-listpack-size", "-2"),
    ("list-compress-depth", "0"),
    ("zset-max-listpack-entries", "128"),
    ("zset-max-listpack-value", "64"),
    ("appendonly", "yes"),
    ("appendfsync", "everysec"),
];

/// The settings as they are written.
pub(crate) fn written() -> BTreeMap<String, String> {
    let text = fs::read_to_string(deployed("redis.conf")).unwrap();
    let mut settings = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, value) =
            line.split_once(' ').unwrap_or_else(|| panic!("a setting without a value: {line}"));
        let value = if value == "\"\"" { "" } else { value };
        assert!(settings.insert(name.into(), value.into()).is_none(), "{name} is set twice");
    }
    settings
}

/// Sizes are written as 64mb and read as bytes.
pub(crate) fn bytes(value: &str) -> Option<u64> {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &value[digits.len()..] {
        "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok().map(|count| count * unit)
}

#[test]
fn a_server_takes_every_setting_as_it_is_written() {
    let dir = data_dir();
    let server = Server::start_anywhere(dir.path());
    for (name, value) in written() {
        // Where the server listens is the one thing that this test overrides.
        if name == "port" {
            continue;
        }
        let value = bytes(&value).map_or(value, |bytes| bytes.to_string());
        assert_eq!(server.ask(&["CONFIG", "GET", &name]), [name, value]);
    }
}

#[test]
fn what_tideline_needs_is_written_down() {
    let written = written();
    for (name, value) in NEEDED {
        assert_eq!(written.get(name).map(String::as_str), Some(value), "{name}");
    }
}

#[test]
fn every_setting_has_a_reason_above_it() {
    let text = fs::read_to_string(deployed("redis.conf")).unwrap();
    let mut has_reason = false;
    for line in text.lines() {
        // A reason may hold for several settings in a row; an empty line ends it. Ports explain themselves.
        match line {
            "" => has_reason = false,
            comment if comment.starts_with("# -") => {}
            comment if comment.starts_with('#') => has_reason = true,
            setting => {
                let plain = ["port ", "cluster-enabled ", "cluster-config-file ", "appendonly "];
                assert!(has_reason || plain.iter().any(|p| setting.starts_with(p)), "{setting}");
            }
        }
    }
}
