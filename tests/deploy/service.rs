//! deploy/tideline.service, read as text, and what the Debian package has of it. systemd itself and dpkg are asked by
//! scripts/test-package.sh.

use std::fs;

use crate::{deployed, repository};

/// What a setting of the unit says, each time that it stands there.
fn said(name: &str) -> Vec<String> {
    let unit = fs::read_to_string(deployed("tideline.service")).unwrap();
    let lines = unit.lines().filter_map(|line| line.split_once('='));
    lines.filter(|(setting, _)| *setting == name).map(|(_, value)| value.to_owned()).collect()
}

/// The seconds that a server's requests get at its end, and the engine's tasks.
pub(super) fn time_to_end_s() -> u64 {
    let example = fs::read_to_string(deployed("tideline.toml")).unwrap();
    let drain = example.lines().find_map(|line| line.strip_prefix("#drain_time_s = ")).unwrap();
    let serve = fs::read_to_string(repository().join("program/src/cli/serve.rs")).unwrap();
    let (_, engine) = serve.split_once("const ENGINE_SHUTDOWN: Duration = Duration::from_secs(").unwrap();
    let (engine, _) = engine.split_once(')').unwrap();
    drain.parse::<u64>().unwrap() + engine.parse::<u64>().unwrap()
}

#[test]
fn the_service_has_time_to_end() {
    let stop: u64 = said("TimeoutStopSec")[0].parse().unwrap();
    assert!(stop > time_to_end_s(), "{stop} s, and it may take {}", time_to_end_s());
    assert_eq!(said("KillSignal"), ["SIGTERM"], "what the server takes for the end");
}

#[test]
fn what_the_service_names_the_package_brings() {
    let dist = fs::read_to_string(repository().join("scripts/dist.sh")).unwrap();
    let command = &said("ExecStart")[0];
    let mut words = command.split(' ');
    let (program, config) = (words.next().unwrap(), words.next_back().unwrap());
    let variables = said("EnvironmentFile")[0].trim_start_matches('-').to_owned();
    for path in [program, config, &variables] {
        assert!(dist.contains(&format!("\"$staging{path}\"")), "{path}");
    }
    let kept = fs::read_to_string(deployed("debian/conffiles")).unwrap();
    assert_eq!(kept.lines().collect::<Vec<_>>(), [config, &variables]);
    let user = &said("User")[0];
    let postinst = fs::read_to_string(deployed("debian/postinst")).unwrap();
    assert!(postinst.contains(&format!("nologin {user}\n")), "{user}");
    assert!(postinst.contains(&format!("/var/lib/{}", said("StateDirectory")[0])));
    let told: Vec<&str> =
        postinst.lines().filter(|line| line.contains("systemctl ")).map(str::trim).collect();
    let is_harmless = |line: &&str| {
        let is_said = line.starts_with("echo ");
        is_said || *line == "systemctl daemon-reload" || line.contains("systemctl try-restart ")
    };
    assert!(told.len() > 2 && told.iter().all(is_harmless), "a new service has no cluster yet: {told:?}");
}

#[test]
fn a_server_that_runs_has_as_many_files_as_it_takes_connections() {
    let example = fs::read_to_string(deployed("tideline.toml")).unwrap();
    let connections = example.lines().find_map(|line| line.strip_prefix("#connections_max = ")).unwrap();
    let files: u64 = said("LimitNOFILE")[0].parse().unwrap();
    assert!(files > 2 * connections.parse::<u64>().unwrap(), "{files}");
}
