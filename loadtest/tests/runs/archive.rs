//! `archive` as people run it.

use serde_json::Value;

use super::ran::{loadtest, result, told};

const SMALL: &str = "archive --backlog-authors 40 --backlog-posts 30 --open-authors 100 --rate 100 --seconds 2 \
                     --posts 2000 --posts-authors 50 --page-authors 60 --followees 30,60 --rounds 2 --pages 5 \
                     --seed 7 --json FILE";

#[test]
fn a_small_run_counts_every_post_and_its_json_has_every_field() {
    for backend in ["sqlite", "postgres"] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("archive.json");
        let output = loadtest(&format!("{SMALL} --backend {backend}"), &[&file]);
        let told = told(&output);
        assert!(output.status.success(), "{told}");
        let json = result(&file);
        check_moved(&json["backlog"], backend, (1_200, 1_000));
        check_moved(&json["memory"], backend, (2_000, 1_750));
        check_open(&json["open"], backend);
        check_pages(&json["pages"], backend);
        let share = |name: &str| json[name].as_f64().unwrap();
        assert!(share("memory_ratio") > 0.0, "{json:#}");
        // What is left of all that servers allocate is for a larger run; each bucket knows a line more of its tenant.
        assert!((0.1..0.9).contains(&share("memory_ratio_of_data")), "{json:#}");
        assert_eq!(json["settings"]["backend"], backend);
    }
}

fn figure(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("{name}: {value:#}"))
}

fn whole(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("{name}: {value:#}"))
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("{name}: {value:#}"))
}

/// Of each party, where it can be read: SQLite is a part of the program.
fn check_cpu(value: &Value, backend: &str, is_known: impl Fn(&Value) -> bool) {
    if cfg!(target_os = "linux") {
        assert!(is_known(&value["redis_us"]) && is_known(&value["client_us"]), "{value:#}");
        assert_eq!(value["archive_us"].is_null(), backend == "sqlite", "{value:#}");
    }
}

fn check_moved(moved: &Value, backend: &str, (posts, due): (u64, u64)) {
    assert_eq!([&moved["posts"], &moved["due"], &moved["left"], &moved["archived"]], [posts, due, due, due]);
    assert_eq!(moved["in_memory"], posts - due);
    check_cpu(moved, backend, |us| us.as_f64() > Some(0.0));
    for name in
        ["seconds", "posts_per_second", "empty_bytes", "before_bytes", "after_bytes", "keys_after_bytes"]
    {
        assert!(figure(moved, name) > 0.0, "{name}");
    }
    assert!(figure(moved, "keys_before_bytes") > figure(moved, "keys_after_bytes"), "{moved:#}");
    assert!(figure(moved, "disk_bytes_per_post") >= 200.0, "{moved:#}");
}

fn check_open(open: &Value, backend: &str) {
    // Of 31 authors the first has none beyond those that stay, the last thirty; and of seven more.
    assert_eq!(open["loaded"], 100 * 16 + 3 * 465 + 21);
    let succeeded = whole(&open["posts"], "succeeded");
    assert!(succeeded > 100, "{open:#}");
    assert_eq!(open["posts"]["dropped"], 0);
    assert_eq!(whole(open, "archived") + whole(open, "in_memory"), whole(open, "loaded") + succeeded);
    assert!(open["keeps_up"].is_boolean() && open["moments"].as_array().is_some_and(|all| all.len() > 1));
    if cfg!(target_os = "linux") {
        assert!(figure(open, "redis_us") > 0.0 && open["archive_us"].is_null() == (backend == "sqlite"));
    }
}

fn check_pages(pages: &Value, backend: &str) {
    assert_eq!(pages["wrong"], 0, "{pages:#}");
    let costs = list(pages, "costs");
    assert_eq!(costs.len(), 11);
    for cost in costs {
        assert!(figure(cost, "p50_us") <= figure(cost, "p99_us"));
        check_cpu(cost, backend, |us| us["median"].as_f64() > Some(0.0));
    }
    let ratios = list(pages, "ratios");
    let names: Vec<&Value> = ratios.iter().map(|ratio| &ratio["page"]).collect();
    if cfg!(target_os = "linux") {
        assert_eq!(
            names,
            ["profile, newest", "home of 30, newest", "home of 30, deep", "home of 60, newest"]
        );
    }
    for ratio in ratios {
        assert_eq!(ratio["rounds_ratio"].as_array().map(Vec::len), Some(2));
        assert_eq!(ratio["judgement"], "too_few_rounds");
    }
}

#[test]
fn what_is_not_reached_or_could_not_be_judged_is_told_and_counts_if_that_was_asked_for() {
    let output = loadtest(
        "archive --parts pages --page-authors 20 --followees 20 --rounds 1 --pages 1 --strict --backend sqlite",
        &[],
    );
    let told = told(&output);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("profile, newest could not be judged in 1 rounds"), "{told}");
}

#[test]
fn what_makes_no_sense_is_refused_with_what_to_do() {
    for (typed, says) in [
        ("--cluster redis://127.0.0.1:1", "leave --cluster (and TIDELINE_CLUSTER) away"),
        ("--posts 1001 --posts-authors 50", "the same number for each of --posts-authors 50"),
        ("--backlog-posts 5", "more than --hot-posts 5"),
        ("--page-authors 100", "--followees 200 are more than there are: --page-authors 100"),
    ] {
        let output = loadtest(&format!("archive {typed}"), &[]);
        let told = told(&output);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(says), "{told}");
    }
}
