//! `tideline archive`, as an operator types it.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use tideline::post::{Draft, SearchWords};
use tideline::{AccountId, Engine, NewAccount, Query};
use tideline_archive::SqliteArchive;
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

/// Twenty posts are there: five in memory.
async fn searched(cluster: &LocalCluster, archive: &Path) {
    let urls = cluster.urls().join(",");
    let (is_done, told) = tideline(&urls, archive, &["archive", "index"]);
    assert!(!is_done && told.contains("tideline archive begin --search"), "{told}");
    let (_, told) = tideline(&urls, archive, &["archive", "status"]);
    assert!(told.contains("posts are not found by their words"), "{told}");
    let begin = ["archive", "begin", "--hot-posts", "5", "--hot-days", "0", "--search"];
    for _ in 0..2 {
        let (is_begun, told) = tideline(&urls, archive, &begin);
        assert!(is_begun && told.contains("once `tideline archive index` has run"), "{told}");
    }
    // Those in memory and those in the archive: what the index has by then is looked at, and not counted.
    for _ in 0..2 {
        let (is_done, told) = tideline(&urls, archive, &["archive", "index"]);
        assert!(is_done && told.contains("brought in line with 20 posts"), "{told}");
    }
    let opened = Arc::new(SqliteArchive::open(archive).await.unwrap());
    let engine = Engine::builder().seeds(cluster.urls()).archive(opened).observe().await.unwrap();
    let query = Query::search(SearchWords::new("POST").unwrap()).limit(100);
    assert_eq!(engine.as_nobody().read(&query).await.unwrap().posts.len(), 20);
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
    misspelled(&urls, &archive, folder.path());
    copied(&urls, &archive, folder.path());
    searched(&cluster, &archive).await;
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
    look_after(&urls, &archive, ada);
    // As if the archive had been restored from an older copy.
    let (store, at) = (engine.store(), ada.get().to_be_bytes());
    let (keys, bucket) = (store.keys(), store.keys().buckets().of_account(ada.get()));
    let outbox = [format!("{}{{{}}}o", keys.prefix(), keys.buckets().tag(bucket)).as_bytes(), &at].concat();
    let ahead = [b"A", &99u64.to_be_bytes()[..], &(1u64 << 62).to_be_bytes()].concat();
    let lie = tideline::cluster::Command::new("LSET").arg(&outbox).arg("0").arg(&ahead);
    let lie = tideline::cluster::Request::write(keys.buckets().slot(bucket), lie);
    store.router().call(lie).await.unwrap();
    for command in [&["archive", "check"][..], &["archive", "check", "--repair"]] {
        let (is_clean, told) = tideline(&urls, &archive, command);
        assert!(!is_clean && told.contains("archive_behind: 1 found, 0 repaired"), "{told}");
        assert!(told.contains("Not clean."), "{told}");
    }
    gone_by(&urls, &archive);
}

/// An archive that is older than memory, once somebody says so.
fn gone_by(urls: &str, archive: &Path) {
    let tideline = |arguments: &[&str]| tideline(urls, archive, arguments);
    let (is_done, told) = tideline(&["archive", "check", "--accept-loss"]);
    assert!(!is_done && told.contains("--repair"), "{told}");
    let (is_clean, told) = tideline(&["archive", "check", "--repair", "--accept-loss"]);
    assert!(is_clean && told.contains("archive_behind: 1 found, 1 repaired"), "{told}");
    for command in [&["archive", "check"][..], &["fsck"]] {
        let (is_clean, told) = tideline(command);
        assert!(is_clean && !told.contains("archive_behind"), "{told}");
    }
}

/// Places that are not the archive's: nothing is made there.
fn misspelled(urls: &str, archive: &Path, folder: &Path) {
    let other = folder.join("other");
    for command in ["status", "run", "check", "index"] {
        let (is_done, told) = tideline(urls, &other, &["archive", command]);
        assert!(!is_done && told.contains("other: there is no such file"), "{told}");
    }
    assert!(!other.exists());
    let address = format!("sqlite://{}", archive.display());
    let (is_done, told) = tideline(urls, archive, &["archive", "status", "--archive", &address]);
    assert!(!is_done && told.contains("without slashes before it"), "{told}");
    let itself = format!("sqlite:{}", archive.display());
    let (is_done, told) = tideline(urls, archive, &["archive", "copy", "--to", &itself]);
    assert!(!is_done && told.contains("--to names the archive itself"), "{told}");
}

/// The copy of an archive of 15 posts.
fn copied(urls: &str, archive: &Path, folder: &Path) {
    let copy = folder.join("copy");
    let to = format!("sqlite:{}", copy.display());
    let (is_done, told) = tideline(urls, archive, &["archive", "copy", "--to", "mysql://elsewhere"]);
    assert!(!is_done && told.contains("the place of --to"), "{told}");
    let (is_done, told) = tideline(urls, archive, &["archive", "copy", "--to", &to]);
    assert!(is_done && told.contains("15 posts of 1 accounts were copied"), "{told}");
    let (_, told) = tideline(urls, &copy, &["archive", "status", "--json"]);
    assert!(told.contains("\"posts\": 15"), "{told}");
    let (is_done, told) = tideline(urls, archive, &["archive", "copy", "--to", &to]);
    assert!(!is_done && told.contains("that copy is complete"), "{told}");
}

/// The commands for who looks after 20 posts, of which 15 are in the archive.
fn look_after(urls: &str, archive: &Path, ada: AccountId) {
    let id = ada.to_string();
    let tideline = |arguments: &[&str]| tideline(urls, archive, arguments);
    for command in [&["fsck"][..], &["archive", "check"], &["archive", "check", "--repair"]] {
        let (is_clean, told) = tideline(command);
        assert!(is_clean && told.contains("The archive holds 15 posts of 1 accounts"), "{told}");
        assert!(told.ends_with("Clean.\n") || told.contains("Clean.\nlooking"), "{told}");
    }
    let (_, json) = tideline(&["inspect", &id, "--json"]);
    // What else it has to say comes after that.
    let json =
        serde_json::Deserializer::from_str(&json).into_iter::<serde_json::Value>().next().unwrap().unwrap();
    let upto = json["archive"]["upto"].as_str().unwrap();
    assert_eq!(json["archive"]["owner"]["upto"], upto);
    let (is_shown, told) = tideline(&["inspect", &id]);
    assert!(is_shown && told.contains("has all up to") && told.contains("it says"), "{told}");
    let (is_shown, told) = tideline(&["inspect", "--post", upto]);
    assert!(is_shown && told.contains("lies in") && told.contains("the archive"), "{told}");

    let (has_restored, told) = tideline(&["archive", "restore", &id, "--most", "3"]);
    assert!(has_restored && told.contains("3 posts have come back into memory; 0 were there"), "{told}");
    let (has_restored, told) = tideline(&["archive", "restore", &id, upto, "1"]);
    assert!(!has_restored && told.contains("has no such posts: 1"), "{told}");
    let (is_refused, told) = tideline(&["archive", "restore", &id, "--most", "1001"]);
    assert!(!is_refused && told.contains("at most 1000 a call"), "{told}");
    let (is_refused, told) = tideline(&["archive", "restore", "77"]);
    assert!(!is_refused && told.contains("77"), "{told}");
}
