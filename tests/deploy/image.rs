//! Dockerfile, read as text: what it builds is there to be built, and what it names is what it has made.

use std::fs;

use crate::repository;

fn dockerfile() -> String {
    fs::read_to_string(repository().join("Dockerfile")).unwrap()
}

/// Instructions with their arguments, lines that go on joined, comments left out.
fn instructions(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let instruction = |line: &str| {
        let (name, arguments) = line.split_once(' ')?;
        Some((name.to_owned(), arguments.split_whitespace().collect::<Vec<_>>().join(" ")))
    };
    joined.lines().filter_map(instruction).collect()
}

fn arguments_of(name: &str) -> Vec<String> {
    let all = instructions(&dockerfile()).into_iter();
    all.filter(|(instruction, _)| instruction == name).map(|(_, arguments)| arguments).collect()
}

/// What a command says behind a word.
fn behind<'a>(text: &'a str, word: &str) -> &'a str {
    let (_, rest) = text.split_once(word).unwrap_or_else(|| panic!("{word} is not in {text:?}"));
    rest.split_whitespace().next().unwrap()
}

#[test]
fn the_program_that_is_built_is_the_one_that_is_copied_and_run() {
    let runs = arguments_of("RUN");
    let build = runs.iter().find(|run| run.contains("cargo build")).unwrap();
    let cargo = fs::read_to_string(repository().join("Cargo.toml")).unwrap();
    let profile = behind(build, "--profile ");
    assert!(cargo.contains(&format!("[profile.{profile}]")), "{profile}");
    let program = fs::read_to_string(repository().join("program/Cargo.toml")).unwrap();
    let name = behind(build, "--bin ");
    assert!(program.contains(&format!("[[bin]]\nname = \"{name}\"")), "{name}");
    assert!(build.contains("--locked"), "what was tested is built");
    assert!(build.ends_with(&format!("target/{profile}/{name}")), "{build}");
    let made = behind(build, "strip -o ");
    assert_eq!(arguments_of("COPY")[1], format!("--from=build {made} /usr/local/bin/{name}"));
    assert_eq!(arguments_of("ENTRYPOINT"), [format!("[\"{name}\"]")]);
}

#[test]
fn it_runs_as_nobody_else_and_serves_where_its_health_is_asked() {
    let runs = arguments_of("RUN").concat();
    let user = behind(&runs, "--uid ");
    assert_eq!(arguments_of("USER"), [format!("{user}:{user}")], "by number, of the user that is made");
    let port = &arguments_of("EXPOSE")[0];
    assert_eq!(arguments_of("CMD"), [format!("[\"serve\", \"--listen\", \"0.0.0.0:{port}\"]")]);
    let health = &arguments_of("HEALTHCHECK")[0];
    assert!(health.contains(&format!("/dev/tcp/127.0.0.1/{port} ")) && health.contains("GET /ready "));
    // scripts/test-package.sh runs it against a server.
    let (_, check) = health.split_once(" CMD ").unwrap();
    assert!(check.starts_with("[\"bash\", \"-c\", \"") && check.ends_with("\"]"), "{check}");
}

#[test]
fn nothing_is_kept_from_the_build_that_it_reads() {
    let ignored = fs::read_to_string(repository().join(".dockerignore")).unwrap();
    let ignored: Vec<&str> = ignored.lines().filter_map(|line| line.strip_prefix('/')).collect();
    let cargo = fs::read_to_string(repository().join("Cargo.toml")).unwrap();
    let (_, members) = cargo.split_once("members = [").unwrap();
    let (members, _) = members.split_once(']').unwrap();
    let members: Vec<&str> =
        members.split('"').filter(|word| word.chars().any(char::is_alphabetic)).collect();
    assert!(members.len() > 3, "{members:?}");
    // Cargo looks for the sources of all that Cargo.toml names; what only tests read the image does without.
    let named = ["Cargo.lock", "src", "benches", "examples", "tests"];
    for path in members.into_iter().chain(named) {
        let top = path.split('/').next().unwrap();
        assert!(repository().join(top).exists(), "{path}");
        assert!(!ignored.contains(&top), "{path} doesn't get to the builder");
    }
}
