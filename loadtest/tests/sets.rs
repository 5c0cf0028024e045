//! The program as people run it.

mod documented;

use std::process::Command;

use serde_json::Value;

#[test]
fn a_short_run_ends_well_and_its_json_has_every_field() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sets.json");
    let output = Command::new(env!("CARGO_BIN_EXE_loadtest"))
        .args([
            "sets",
            "--accounts",
            "20",
            "--followers",
            "600",
            "--buckets",
            "16",
            "--rate",
            "200",
            "--seconds",
            "2",
        ])
        .args(["--writers-percent", "50", "--seed", "7", "--json"])
        .arg(&file)
        .env_remove("TIDELINE_CLUSTER")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.contains("missing / extra / altered"), "{told}");

    let json: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    documented::check(&json);
    let count =
        |path: &str| json.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path}: {json:#}"));
    assert_eq!((count("/seed"), count("/settings/rate")), (7, 200));
    let mut accounted = 0;
    for operation in ["follow", "unfollow", "look_up", "page", "count"] {
        for field in ["p50_us", "p99_us", "p999_us", "max_us"] {
            assert!(count(&format!("/operations/{operation}/{field}")) > 0);
        }
        let of = |field| count(&format!("/operations/{operation}/{field}"));
        assert!(json["operations"][operation]["errors"].is_object());
        accounted += of("succeeded") + of("dropped") + of("overlapping");
    }
    assert_eq!(json["errors"], serde_json::json!({}));
    assert_eq!(count("/scheduled"), accounted);
    assert!((250..=550).contains(&accounted), "{accounted}");
    assert!(count("/spread_sets/after") >= count("/spread_sets/before").max(1));
    assert!(count("/comparison/compared") > 2_000);
    for wrong in ["/comparison/missing", "/comparison/extra", "/comparison/altered", "/wrong_answers"] {
        assert_eq!(count(wrong), 0);
    }
    if cfg!(target_os = "linux") {
        for cost in ["server_cpu_us_per_operation", "client_cpu_us_per_operation"] {
            assert!(json[cost].as_f64().unwrap() > 0.0, "{cost}");
        }
    }
}

#[test]
fn what_cannot_be_run_ends_with_its_own_code() {
    let run = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_loadtest")).arg("sets").args(args).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, told) = run(&["--accounts", "100000", "--followers", "1000000"]);
    assert_eq!(code, Some(2));
    assert!(told.contains("are possible"), "{told}");
    assert_eq!(run(&["--rate", "0"]).0, Some(2));
}
