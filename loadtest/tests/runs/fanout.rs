//! `fanout` as people run it.

use serde_json::Value;
use tideline_local_cluster::{ClusterSpec, LocalCluster};

use super::ran::{loadtest, result, told};

const BASELINES: [&str; 2] = ["books_per_node", "list"];
const SMALL: &str =
    "fanout --followers 300 --background-homes 500 --passes 1 --round-deliveries 3000 --seed 7 --json FILE";

#[test]
fn a_small_run_ends_well_and_its_json_has_every_field() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("fanout.json");
    let output = loadtest(&format!("{SMALL} --rounds 2"), &[&file]);
    let told = told(&output);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("books_per_node, replicas"), "{told}");

    let json = result(&file);
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
    let line = format!("{SMALL} --cluster {seeds} --rounds 1");
    let output = tokio::task::block_in_place(|| loadtest(&line, &[&file]));
    assert!(output.status.success(), "{}", told(&output));

    let json = result(&file);
    for name in BASELINES {
        // Its primaries tell it themselves.
        assert!(json["baselines"][name]["server_cpu_us_per_delivery"].as_f64().unwrap() > 0.0);
        assert_eq!(json["baselines"][name]["homes_wrong"], 0);
    }
    assert!(json["with_replicas"]["books_per_node"].is_null());

    let line = "fairness --followers 2000 --background-homes 0 --small-accounts 5 --small-followers 20 --rounds 1 \
                --seconds 1 --seed 7";
    let output = tokio::task::block_in_place(|| loadtest(&format!("{line} --cluster {seeds}"), &[]));
    let told = told(&output);
    assert!(output.status.success() && !told.contains("Starting a cluster"), "{told}");

    let kept: String =
        redis::cmd("GET").arg("loadtest-of-others").query_async(&mut connection).await.unwrap();
    assert_eq!(kept, "kept");
    let keys: u64 = redis::cmd("DBSIZE").query_async(&mut connection).await.unwrap();
    assert_eq!(keys, 1);
    cluster.down().await.unwrap();
}

#[test]
fn a_run_that_does_not_fit_into_memory_is_refused_with_what_to_do() {
    let output = loadtest("fanout --followers 5000000 --background-homes 5000000 --books-cap 2000", &[]);
    let told = told(&output);
    assert_eq!(output.status.code(), Some(2), "{told}");
    if cfg!(target_os = "linux") {
        assert!(told.contains("choose fewer --followers"), "{told}");
    }
}
