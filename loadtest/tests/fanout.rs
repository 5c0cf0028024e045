//! The program as people run it.

mod documented;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tideline_local_cluster::{ClusterSpec, LocalCluster};

const BASELINES: [&str; 2] = ["books_per_node", "list"];
const SMALL: [&str; 9] = [
    "fanout",
    "--followers",
    "300",
    "--background-homes",
    "500",
    "--passes",
    "1",
    "--round-deliveries",
    "3000",
];

fn loadtest(json: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_loadtest"))
        .args(SMALL)
        .args(["--seed", "7", "--json"])
        .arg(json)
        .args(more)
        .env_remove("TIDELINE_CLUSTER")
        .output()
        .expect("the program starts")
}

#[test]
fn a_small_run_ends_well_and_its_json_has_every_field() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("fanout.json");
    let output = loadtest(&file, &["--rounds", "2"]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.contains("books_per_node, replicas"), "{told}");

    let json: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    documented::check(&json);
    assert_eq!(
        [&json["followers"], &json["homes"], &json["posts_per_round"], &json["seed"]],
        [300, 800, 10, 7]
    );
    let mut rows: Vec<&Value> = BASELINES.iter().map(|name| &json["baselines"][name]).collect();
    rows.extend([&json["tideline"], &json["with_replicas"]["tideline"]]);
    rows.push(&json["with_replicas"]["books_per_node"]);
    for row in rows {
        check_row(row);
    }
    assert_eq!(json["baselines"]["books_per_node"]["entries_per_home"], 112);
    assert_eq!(json["baselines"]["list"]["entries_per_home"], 400);
}

fn check_row(row: &Value) {
    let figure = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("{name}: {row:#}"));
    assert_eq!(row["samples"], 2);
    let mut before = 0.0;
    for field in ["first_seconds", "half_seconds", "percent_99_seconds", "last_seconds", "wall_seconds"] {
        assert!(figure(field) > 0.0 && figure(field) >= before, "{field}: {row:#}");
        before = figure(field);
    }
    assert!(figure("deliveries_per_second") > 0.0);
    assert!((10.0..60.0).contains(&figure("bytes_per_entry")), "{row:#}");
    assert_eq!(row["rounds_cpu_us_per_delivery"].as_array().map(Vec::len), Some(2));
    assert_eq!((figure("homes_looked_at"), figure("homes_wrong")), (200.0, 0.0));
    if cfg!(target_os = "linux") {
        for cost in ["server_cpu_us_per_delivery", "client_cpu_us_per_delivery", "cpu_us_per_delivery"] {
            let spread = |end: &str| row["spread"][cost][end].as_f64().expect("a number");
            assert!(figure(cost) > 0.0, "{cost}");
            assert!(spread("lowest") <= figure(cost) && figure(cost) <= spread("highest"), "{row:#}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_another_cluster_what_was_there_stays_and_nothing_else_does() {
    let cluster = LocalCluster::up(ClusterSpec::ephemeral().primaries(3)).await.unwrap();
    let urls = cluster.urls();
    let client = redis::cluster::ClusterClient::new(urls.clone()).unwrap();
    let mut connection = client.get_async_connection().await.unwrap();
    redis::cmd("SET").arg("loadtest-of-others").arg("kept").exec_async(&mut connection).await.unwrap();

    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("fanout.json");
    let seeds = urls.join(",");
    let more = ["--cluster", &seeds, "--rounds", "1"];
    let output = tokio::task::block_in_place(|| loadtest(&file, &more));
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));

    let json: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    for name in BASELINES {
        // Its primaries tell it themselves.
        assert!(json["baselines"][name]["server_cpu_us_per_delivery"].as_f64().unwrap() > 0.0);
        assert_eq!(json["baselines"][name]["homes_wrong"], 0);
    }
    assert!(json["with_replicas"]["books_per_node"].is_null());

    let mut fairness = Command::new(env!("CARGO_BIN_EXE_loadtest"));
    fairness.args(["fairness", "--cluster", &seeds]);
    let line = "--followers 2000 --background-homes 0 --small-accounts 5 --small-followers 20 --rounds 1 --seconds 1 \
                --seed 7";
    let output = tokio::task::block_in_place(|| fairness.args(line.split(' ')).output().unwrap());
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("Starting a cluster"), "{told}");

    let kept: String =
        redis::cmd("GET").arg("loadtest-of-others").query_async(&mut connection).await.unwrap();
    assert_eq!(kept, "kept");
    let keys: u64 = redis::cmd("DBSIZE").query_async(&mut connection).await.unwrap();
    assert_eq!(keys, 1);
    cluster.down().await.unwrap();
}

#[test]
fn a_run_that_does_not_fit_into_memory_is_refused_with_what_to_do() {
    let output = Command::new(env!("CARGO_BIN_EXE_loadtest"))
        .args(["fanout", "--followers", "5000000", "--background-homes", "5000000", "--books-cap", "2000"])
        .env_remove("TIDELINE_CLUSTER")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    if cfg!(target_os = "linux") {
        assert!(told.contains("choose fewer --followers"), "{told}");
    }
}
