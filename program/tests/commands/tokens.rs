//! `tideline token`, as an operator types it.

use tideline::Engine;
use tideline::registration::{Registration, RegistrationSettings};
use tideline_local_cluster::{ClusterSpec, LocalCluster};
use tideline_server::service;

use super::tideline;

// The engine keeps its lease while commands run.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_services_are_made_listed_and_revoked_by_commands() {
    let cluster = LocalCluster::up(ClusterSpec::ephemeral()).await.unwrap();
    let urls = cluster.urls().join(",");
    let (is_made, _, told) = tideline(&urls, &["token", "create", "shop"]);
    assert!(!is_made && told.contains("`--prefix` names the tenant"), "{told}");

    let engine = Engine::builder().seeds(cluster.urls()).start().await.unwrap();
    let (_, shown, _) = tideline(&urls, &["token", "list"]);
    assert!(shown.contains("There are no tokens of services"), "{shown}");
    let (is_made, secret, told) =
        tideline(&urls, &["token", "create", "shop", "--scopes", "read write:statuses"]);
    assert!(is_made && secret.starts_with("tds_") && secret.lines().count() == 1, "{secret} {told}");
    let (is_made, _, told) = tideline(&urls, &["token", "create", "shop"]);
    assert!(!is_made && told.contains("there is a token called \"shop\" already"), "{told}");
    for (name, scopes, why) in [
        ("a shop", "read", "is no name of a service"),
        ("news", "admin:read", "a service never gets"),
        ("news", "reed", "\"reed\" is no scope; there are read, "),
    ] {
        let (is_made, _, told) = tideline(&urls, &["token", "create", name, "--scopes", scopes]);
        assert!(!is_made && told.contains(why), "{told}");
    }
    let (_, shown, _) = tideline(&urls, &["token", "list"]);
    assert!(shown.contains("shop") && shown.contains("read write:statuses"), "{shown}");
    assert!(!shown.contains(secret.trim()), "{shown}");
    let (_, shown, _) = tideline(&urls, &["token", "list", "--json"]);
    assert!(shown.contains("\"name\": \"shop\""), "{shown}");

    let (is_revoked, told, _) = tideline(&urls, &["token", "revoke", "shop"]);
    assert!(is_revoked && told.contains("The token of shop has ended"), "{told}");
    let (is_revoked, _, told) = tideline(&urls, &["token", "revoke", "shop"]);
    assert!(!is_revoked && told.contains("tideline token list"), "{told}");
    let registration = Registration::new(&engine, RegistrationSettings::default()).await.unwrap();
    assert!(service::list(&registration).await.unwrap().is_empty());
    engine.shutdown(std::time::Duration::from_secs(10)).await.unwrap();
    cluster.down().await.unwrap();
}
