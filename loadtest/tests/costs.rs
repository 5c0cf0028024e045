//! `fairness`, `scale` and `plan --check` as people run them, small.
#![cfg(target_os = "linux")] // CPU time can be read there.
#![expect(clippy::unwrap_used, reason = "a helper of a test stops the test where it stands")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

fn loadtest(line: &str, files: &[&Path]) -> Output {
    let mut files = files.iter();
    // Each `FILE` is the next of these.
    let words = line.split_whitespace().map(|word| match word {
        "FILE" => files.next().unwrap().as_os_str().to_owned(),
        word => word.into(),
    });
    Command::new(env!("CARGO_BIN_EXE_loadtest"))
        .args(words)
        .env_remove("TIDELINE_CLUSTER")
        .output()
        .expect("the program starts")
}

fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

fn read(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

#[test]
fn small_posts_are_counted_alone_and_beside_a_large_one() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("fairness.json");
    let line = "fairness --followers 8000 --background-homes 0 --small-accounts 10 --small-followers 20 --rate 200 \
                --seconds 1 --rounds 2 --seed 7 --json FILE";
    let output = loadtest(line, &[&file]);
    let told = told(&output);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("beside the large post") && told.contains("The large post took"), "{told}");
    let json = read(&file);
    assert_eq!(
        [&json["command"], &json["seed"], &json["settings"]["followers"]],
        [&json!("fairness"), &json!(7), &json!(8000)]
    );
    assert!(json["large_post_seconds"].as_f64().unwrap() > 0.0);
    for part in ["alone", "beside_large"] {
        let part = &json[part];
        assert_eq!([&part["errors"], &part["dropped"]], [&json!({}), &json!(0)], "{json:#}");
        assert!(part["p50_us"].as_u64() <= part["p99_us"].as_u64(), "{json:#}");
    }
    // Two seconds of 200 posts each: ten standard deviations.
    let alone = json["alone"]["succeeded"].as_u64().unwrap();
    assert!((200..=600).contains(&alone), "{json:#}");
    assert!(json["beside_large"]["succeeded"].as_u64().unwrap() > 0, "{json:#}");
    assert!(json["p50_ratio"].as_f64().unwrap() > 0.0 && json["p99_ratio"].as_f64().unwrap() > 0.0);
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_is_started() {
    for (line, why) in [
        ("fairness --followers 5000000 --background-homes 5000000", "MB are available"),
        ("fairness --rate 0", "--rate"),
        ("scale --parts speed", "possible values"),
        ("scale --primaries 0", "--primaries"),
    ] {
        let output = loadtest(line, &[]);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", told(&output));
        assert!(told(&output).contains(why), "{line}: {}", told(&output));
        assert!(!told(&output).contains("Starting"), "{line}: {}", told(&output));
    }
}

#[test]
fn a_small_run_tells_what_deliveries_and_pages_cost() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("scale.json");
    let line = "scale --parts primaries,followers --primaries 1,2 --followers 1000 --deliveries 1000 --accounts 200 --mean 10 \
                --at-once 16 --rounds 2 --round-seconds 1 --seed 7 --json FILE";
    let output = loadtest(line, &[&file]);
    let told = told(&output);
    assert!(output.status.success(), "{told}");
    assert!(
        told.contains("The same load per primary") && told.contains("Posts to so many followers"),
        "{told}"
    );
    let json = read(&file);
    assert_eq!([&json["command"], &json["seed"], &json["units"]], [&json!("scale"), &json!(7), &Value::Null]);
    let points = json["points"].as_array().unwrap();
    let primaries: Vec<_> = points.iter().map(|point| point["primaries"].as_u64().unwrap()).collect();
    assert_eq!(primaries, [1, 2]);
    for cost in points.iter().flat_map(|point| [&point["delivery"], &point["read"]]) {
        let both = &cost["both_us"];
        let figure = |of: &Value| of.as_f64().unwrap();
        assert!(figure(&cost["server_us"]) > 0.0 && figure(&cost["client_us"]) > 0.0, "{cost:#}");
        assert!(figure(&both["low"]) <= figure(&both["median"]), "{cost:#}");
        assert!(figure(&both["median"]) <= figure(&both["high"]), "{cost:#}");
    }
    let followers = &json["followers"][0];
    assert_eq!(followers["followers"], 1000);
    assert!(
        followers["server_us"].as_f64().unwrap() > 0.0 && followers["last_seconds"].as_f64().unwrap() > 0.0
    );
    assert!(json["followers"][1].is_null());

    // There are no units in it.
    let output = loadtest("plan --users 1M --units FILE", &[&file]);
    assert_eq!(output.status.code(), Some(2));
    assert!(self::told(&output).contains("has no units"), "{}", self::told(&output));
}

#[test]
fn measured_costs_are_what_a_plan_reckons_with_and_is_checked_with() {
    let dir = tempfile::tempdir().unwrap();
    let [scale, run, plan, check, scenario] =
        ["scale.json", "run.json", "plan.json", "check.json", "run.toml"].map(|name| dir.path().join(name));
    let line =
        "scale --parts units --accounts 200 --mean 10 --at-once 16 --rounds 2 --round-seconds 1 --json FILE";
    let output = loadtest(line, &[&scale]);
    assert!(output.status.success(), "{}", told(&output));
    let units = &read(&scale)["units"];
    for name in ["publish_us", "delivery_us", "skipped_us", "read_us", "pull_us", "follow_us"] {
        let sides: Vec<f64> = units[name].as_array().unwrap().iter().map(|us| us.as_f64().unwrap()).collect();
        assert!(sides.len() == 2 && sides.iter().all(|us| *us >= 0.0), "{name}: {units:#}");
    }
    let both = |name: &str| units[name][0].as_f64().unwrap() + units[name][1].as_f64().unwrap();
    assert!(both("publish_us") > 0.0 && both("read_us") > 0.0 && both("follow_us") > 0.0, "{units:#}");

    let output = loadtest("plan --users 1M --units FILE --json FILE", &[&scale, &plan]);
    assert!(output.status.success(), "{}", told(&output));
    assert!(told(&output).contains("loadtest scale"), "{}", told(&output));
    assert_eq!(read(&plan)["units"], *units);

    let text = "name = 'run'\n[graph]\npreset = 'uniform'\naccounts = 300\nmean = 10\n[mix]\npost = 1\nread = 5\n[drive]\n\
                at_once = 16\nrounds = 2\nround_seconds = 1\nwarm_up_seconds = 1\n";
    std::fs::write(&scenario, text).unwrap();
    let output = loadtest("compare --systems push_only --scenario FILE --json FILE", &[&scenario, &run]);
    assert!(output.status.success(), "{}", told(&output));
    let output = loadtest("plan --check FILE --units FILE --json FILE", &[&run, &scale, &check]);
    // Two seconds beside other tests: how far it is off is told, not judged.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", told(&output));
    let checked = read(&check);
    assert_eq!(checked["system"], "push_only");
    let figure = |name: &str| checked[name].as_f64().unwrap();
    let off = figure("forecast_us") / figure("measured_us") - 1.0;
    assert!((off - figure("off")).abs() < 1e-9, "{checked:#}");
    assert_eq!(output.status.success(), off.abs() <= 0.2, "{checked:#}");
}
