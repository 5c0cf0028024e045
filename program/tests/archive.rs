//! `tideline archive`, as an operator types it.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tideline::post::Draft;
use tideline::{Engine, NewAccount};
use tideline_local_cluster::{ClusterSpec, LocalCluster};

/// What a command has told, and whether it worked.
fn tideline(cluster: &str, archive: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tideline"))
        .args(arguments)
        .env("TIDELINE_CLUSTER", cluster)
        .env("TIDELINE_ARCHIVE", format!("sqlite:{}", archive.display()))
        .output()
        .unwrap();
    let told = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&told).into_owned())
}

// The engine keeps its lease while commands run.
#[tokio::test(flavor = "multi_thread")]
async fn an_archive_is_begun_shown_and_filled_by_commands() {
    let cluster = LocalCluster::up(ClusterSpec::ephemeral()).await.unwrap();
    let urls = cluster.urls().join(",");
    let engine = Engine::builder().seeds(cluster.urls()).start().await.unwrap();
    let ada = engine.create_account(NewAccount::default()).await.unwrap().value;
    for n in 0..20 {
        engine.publish(ada, &Draft::text(format!("post {n}"))).await.unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("posts");
    let begin = ["archive", "begin", "--hot-posts", "5", "--hot-days", "0"];
    let (is_begun, told) = tideline(&urls, &archive, &begin);
    assert!(!is_begun && told.contains("stop them first"), "{told}");
    engine.shutdown(Duration::from_secs(60)).await.unwrap();

    let (is_begun, told) = tideline(&urls, &archive, &begin);
    assert!(is_begun && told.contains("the newest 5 posts stay in memory"), "{told}");
    let (is_shown, told) = tideline(&urls, &archive, &["archive", "status"]);
    assert!(is_shown && told.contains("about 0 posts"), "{told}");
    // Accounts that have posted before are looked at, too.
    let (has_run, told) = tideline(&urls, &archive, &["archive", "run"]);
    assert!(has_run && told.contains("posts have left memory"), "{told}");
    let (has_run, told) = tideline(&urls, &archive, &["archive", "run", "--all"]);
    assert!(has_run && told.contains("0 posts have left memory"), "{told}");
    let (_, told) = tideline(&urls, &archive, &["archive", "status", "--json"]);
    assert!(told.contains("\"posts\": 15"), "{told}");
    let id = ada.to_string();
    for command in [&["inspect", &id][..], &["fsck"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_tideline"))
            .args(command)
            .env("TIDELINE_CLUSTER", &urls)
            .env_remove("TIDELINE_ARCHIVE")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains("start with it"), "{told}");
    }
    let (is_clean, told) = tideline(&urls, &archive, &["fsck"]);
    assert!(is_clean && told.contains("The archive holds 15 posts of 1 accounts"), "{told}");
    let (is_shown, told) = tideline(&urls, &archive, &["inspect", &id]);
    assert!(is_shown, "{told}");
}
