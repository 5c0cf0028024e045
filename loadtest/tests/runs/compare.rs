//! `compare`, `sweep` and `plan` as people run them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use super::ran::{self, loadtest, result, told};

const SYSTEMS: [&str; 5] = ["push_only", "pull_only", "threshold", "cost_model", "books_pull"];
const SCENARIO: &str = "\
name = 'tiny'
[graph]
preset = 'twip'
accounts = 120
mean = 20
[activity]
history = 3
[mix]
post = 1
check = 10
read = 2
subscribe = 1
unsubscribe = 1
logout = 1
[drive]
at_once = 16
buckets = 64
warm_up_seconds = 1
round_seconds = 1
rounds = 2
[policies]
pull_from = 30
";

/// That scenario as a file, and files for what comes of it.
fn files<const N: usize>(names: [&str; N]) -> (tempfile::TempDir, PathBuf, [PathBuf; N]) {
    let dir = tempfile::tempdir().unwrap();
    let scenario = dir.path().join("tiny.toml");
    std::fs::write(&scenario, SCENARIO).unwrap();
    let files = names.map(|name| dir.path().join(name));
    (dir, scenario, files)
}

fn check_rows(rows: &Value) {
    let rows = rows.as_array().unwrap();
    let systems: Vec<&str> = rows.iter().map(|row| row["system"].as_str().unwrap()).collect();
    assert_eq!(systems, SYSTEMS);
    for row in rows {
        let figure = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("{name}: {row:#}"));
        assert_eq!([&row["failed"], &row["dropped"], &row["rounds"]], [0, 0, 2], "{row:#}");
        for name in
            ["operations_per_second", "read_p50_us", "read_p99_us", "fanout_lag_p99_ms", "memory_bytes"]
        {
            assert!(figure(name) > 0.0, "{name}: {row:#}");
        }
        assert!(figure("posts_per_page") > 0.0, "{row:#}");
        assert!(figure("reads_per_reader_second") > 0.0, "{row:#}");
        // Of the engine's pages with posts and authors; outboxes where somebody is pulled, or was just followed. The
        // books have no caches.
        let is_ours = row["system"] != "books_pull";
        for name in ["posts_cached", "authors_cached"] {
            assert_eq!(row[name].as_f64().is_some_and(|share| share > 0.0), is_ours, "{name}: {row:#}");
        }
        assert!(row["outboxes_cached"].is_f64() || row["accounts_pulled"] == 0 || !is_ours, "{row:#}");
        if cfg!(target_os = "linux") {
            assert!(figure("operations_per_cpu_second") > 0.0, "{row:#}");
            let estimate = |name: &str| row["cpu_ratio"][name].as_f64().unwrap();
            assert!(estimate("low") <= estimate("median") && estimate("median") <= estimate("high"));
        }
    }
    let pulled: Vec<u64> = rows.iter().map(|row| row["accounts_pulled"].as_u64().unwrap()).collect();
    assert_eq!(pulled[..2], [0, 120]);
    assert!(pulled[2] > 0 && pulled[2] < 120, "{pulled:?}");
    assert_eq!(pulled[4], 120, "books_pull");
}

#[test]
fn a_small_comparison_ends_well_in_its_table_json_and_page() {
    let (_dir, scenario, [file, page, other]) = files(["compare.json", "compare.html", "other.html"]);
    // As by `make run ARGS="--html FILE"`: the last one counts.
    let line = "compare --seed 7 --scenario FILE --html FILE --html FILE --json FILE";
    let output = loadtest(line, &[&scenario, &other, &page, &file]);
    let told = told(&output);
    assert!(output.status.success(), "{told}");
    // Two rounds can't say that pushing and pulling cost the same, nor that they don't.
    assert!(
        told.contains("books_pull") && told.contains("_only costs: 2 rounds are too few to judge"),
        "{told}"
    );
    assert!(told.contains("shows on pages up to 1 s later"), "{told}");
    assert!(told.contains("reads/reader-s") && told.contains("loop = \"open\""), "{told}");
    let json = result(&file);
    assert_eq!([&json["seed"], &json["accounts"]], [7, 120]);
    check_rows(&json["rows"]);
    assert_eq!(json["verdicts"].as_array().map(Vec::len), Some(2));
    assert!(told.contains(&format!("file://{}", page.display())), "{told}");
    assert!(!other.exists());
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("</svg>") && !page.contains("http"), "it needs nothing from elsewhere");
    assert!(page.contains("shows on pages up to 1 s later"), "as the table says");
}

#[test]
fn a_small_sweep_has_a_comparison_for_each_share() {
    let (_dir, scenario, [file, page, image]) = files(["sweep.json", "sweep.html", "sweep.svg"]);
    let line = "sweep --seed 7 --shares 10,100 --strict --scenario FILE --svg FILE --html FILE --json FILE";
    let output = loadtest(line, &[&scenario, &image, &page, &file]);
    // All was carried out, but of two rounds nobody can say that a hybrid is worse, or that it isn't.
    assert_eq!(output.status.code(), Some(3), "{}", told(&output));
    let unmet = "not met (--strict): 10 %: cost_model could not be judged in 2 rounds";
    assert!(told(&output).contains(unmet), "{}", told(&output));
    let json = result(&file);
    let points = json["points"].as_array().unwrap();
    assert_eq!(
        points.iter().map(|point| point["active_percent"].as_f64().unwrap()).collect::<Vec<_>>(),
        [10.0, 100.0]
    );
    points.iter().for_each(|point| check_rows(&point["rows"]));
    // Where its figures stand it says of how few rounds they are.
    let marked =
        |text: &str| ["10 (2", "100 (2"].iter().all(|sign| text.contains(sign)) && text.contains("only)");
    assert!(marked(&told(&output)), "{}", told(&output));
    assert!(marked(&std::fs::read_to_string(&page).unwrap()));
    // Whoever reads reads as often: ten times as many read ten times as much.
    let reads = |point: &Value| point["reads_per_post"].as_f64().unwrap();
    assert!((reads(&points[1]) / reads(&points[0]) - 10.0).abs() < 1e-6);
    assert!(std::fs::read_to_string(&page).unwrap().contains("<polyline"));
    let image = std::fs::read_to_string(&image).unwrap();
    assert!(image.starts_with("<svg xmlns") && image.contains("<polyline"), "{image}");
}

/// What comes of so many seconds; where these are too few for one round, and that is said, of ten times as many.
fn within(seconds: u32, line: &str, files: [&Path; 2]) -> Output {
    let run = |seconds: u32| loadtest(&format!("{line} --longest-seconds {seconds}"), &files);
    let output = run(seconds);
    if is_too_little(&output) { run(10 * seconds) } else { output }
}

/// Whether there was no time for one round, and that is said.
fn is_too_little(output: &Output) -> bool {
    let is_told = ran::told(output).contains("more --longest-seconds): it did not end in time");
    output.status.code() == Some(2) && is_told
}

#[test]
fn a_sweep_without_end_ends_when_its_time_is_up_and_says_what_is_missing() {
    let (_dir, scenario, [file]) = files(["sweep.json"]);
    // A thousand rounds of each share would take an hour.
    let line =
        "sweep --systems push_only,pull_only --shares 10,50,100 --rounds 1000 --scenario FILE --json FILE";
    let output = within(45, line, [&scenario, &file]);
    let told = told(&output);
    assert!(output.status.success(), "{told}");
    let json = result(&file);
    let points = json["points"].as_array().unwrap();
    let rounds: Vec<u64> = points.iter().map(|point| point["rows"][0]["rounds"].as_u64().unwrap()).collect();
    assert!(rounds.iter().all(|rounds| (1..1_000).contains(rounds)), "{told}");
    assert!(told.contains(&format!("10 %: the time was up after {} of 1000 rounds", rounds[0])), "{told}");
    // How many shares there is time for is up to the machine. None is forgotten: what wasn't measured is named.
    let left_out: Vec<f64> =
        json["left_out"].as_array().unwrap().iter().map(|share| share.as_f64().unwrap()).collect();
    assert_eq!(left_out, [10.0, 50.0, 100.0][rounds.len()..], "{told}");
    assert_eq!(told.contains("left out, the time was up"), !left_out.is_empty(), "{told}");

    // Too little even for its network.
    // Whatever takes longer than that on this machine.
    let output = loadtest(&format!("{line} --longest-seconds 1 --accounts 20000"), &[&scenario, &file]);
    assert!(is_too_little(&output), "{}", ran::told(&output));
}

#[test]
fn a_comparison_without_end_ends_when_its_time_is_up_and_names_what_did_not() {
    let (_dir, scenario, [file]) = files(["compare.json"]);
    // A thousand rounds would take half an hour.
    let line = "compare --systems push_only --rounds 1000 --seed 7 --scenario FILE --json FILE";
    let output = within(20, line, [&scenario, &file]);
    let told = told(&output);
    assert!(output.status.success(), "{told}");
    let rounds = result(&file)["rows"][0]["rounds"].as_u64().unwrap();
    assert!((1..1_000).contains(&rounds), "{told}");
    assert!(told.contains(&format!("the time was up after {rounds} of 1000 rounds")), "{told}");

    let output = loadtest(&format!("{line} --longest-seconds 1 --accounts 20000"), &[&scenario, &file]);
    assert!(is_too_little(&output), "{}", ran::told(&output));
}

#[test]
fn a_plan_tells_primaries_memory_and_bandwidth() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("plan.json");
    let line = "plan --users 500M --posts-per-second 5000 --mean-followers 400 --reads-per-second 300000 --active 0.2 \
                --json FILE";
    let output = loadtest(line, &[&file]);
    let told = told(&output);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("disk of a node") && told.contains("deliveries to homes"), "{told}");
    let json = result(&file);
    let policies = json["policies"].as_array().unwrap();
    let names: Vec<&str> = policies.iter().map(|policy| policy["policy"].as_str().unwrap()).collect();
    assert_eq!(names, ["push", "pull", "threshold", "cost"]);
    assert_eq!(json["policy"], policies[3]["policy"]);
    for policy in policies {
        let figure = |name: &str| policy[name].as_f64().unwrap();
        for name in ["memory_bytes", "disk_bytes_per_node", "bandwidth_bytes_per_second", "buckets"] {
            assert!(figure(name) > 0.0, "{name}: {policy:#}");
        }
        assert!((figure("nodes") - 2.0 * figure("primaries")).abs() < 1e-9, "one replica each");
    }
    // The same for years, with an archive.
    let line = "plan --users 1M --posts-per-second 100 --days-kept 3650 --hot-posts 200 --json FILE";
    assert!(loadtest(line, &[&file]).status.success());
    let cost = &result(&file)["policies"][3];
    assert!(cost["archive_bytes"].as_f64().unwrap() > 10e12, "{cost:#}");
    assert!(cost["memory_bytes"].as_f64().unwrap() < 1e12, "{cost:#}");
    for (wrong, why) in [
        ("--users lots", "is no number"),
        ("--active 20", "20 % is 0.2 or 20%"),
        ("--users 0", "must be above 0"),
    ] {
        let output = loadtest(&format!("plan {wrong}"), &[]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(ran::told(&output).contains(why), "{wrong}: {}", ran::told(&output));
    }
}

/// The default was a path from the root of the repository.
#[test]
fn scenarios_are_found_by_name_in_any_directory() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |scenario: &[&str]| {
        let mut run = Command::new(env!("CARGO_BIN_EXE_loadtest"));
        run.current_dir(&dir).env_remove("TIDELINE_CLUSTER").arg("compare").args(scenario);
        // Refused after the scenario was read, before anything is started.
        let output = run.args(["--accounts", "1"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", told(&output));
        told(&output)
    };
    for scenario in [&[][..], &["--scenario", "twip"], &["--scenario", "uniform.toml"]] {
        assert!(refused(scenario).contains("accounts must be 2"), "{scenario:?}: {}", refused(scenario));
    }
    let none = refused(&["--scenario", "twop"]);
    assert!(none.contains("twop cannot be read") && none.contains("small, twip, twitter-2009"), "{none}");
    // A file goes before a name.
    std::fs::write(dir.path().join("twip"), "name = 5\n").unwrap();
    assert!(refused(&["--scenario", "twip"]).contains("twip is no scenario"));
}

#[test]
fn a_scenario_that_nobody_understands_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = dir.path().join("wrong.toml");
    std::fs::write(&scenario, format!("{SCENARIO}speed = 5\n")).unwrap();
    let output = loadtest("compare --scenario FILE", &[&scenario]);
    assert_eq!(output.status.code(), Some(2));
    let told = told(&output);
    assert!(told.contains("wrong.toml is no scenario") && told.contains("speed"), "{told}");
}
