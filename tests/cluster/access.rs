//! Who may come in: passwords, users with few rights, TLS.

mod engine;

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use tideline::cluster::{RouterSettings, TlsFiles};
use tideline::sharded::{Order, SortedSet};
use tideline::{AccountId, Error, ErrorKind, Store, StoreOptions};
use tideline_local_cluster::{ClusterSpec, LocalCluster, TlsServerFiles};

pub(super) use engine::use_engine;

use super::harness::{
    Model, account, findings_of_settings, impatient, members, options, order, own, pairs, patient_at_first,
    try_own,
};

/// What a user of sets needs, nothing else.
const RIGHTS: &str = "+info +time +config|get +cluster|nodes +asking +wait +function|load +function|list +fcall \
                      +fcall_ro +get +set +expire +type +unlink +del +setrange +setbit +getrange +bitfield \
                      +bitfield_ro +zadd +zrem +zcard +zrange +zscore +zcount +zrangebyscore +zrevrangebyscore \
                      +hgetall +hsetnx +hmget";

/// Uses everything there is: sets local and spread, pages, walks, ids, ticks, fences.
async fn use_everything(store: &Store) -> Result<(), Error> {
    let set: SortedSet<AccountId> = store.sets().named("everything")?;
    let mut model = members(1..=150);
    let change = set.add(&pairs(&model)).await?;
    store.router().fence(&change.touched).await?;
    set.add_greater(&[(account(1), 1.0)]).await?;
    set.remove(&[account(2)]).await?;
    set.remove_below(&[(account(3), 100.0)]).await?;
    model.retain(|m, _| ![2, 3].contains(&m.get()));
    for _ in 0..2 {
        let met = set.walk(tideline::sharded::Checkpoint::START).await?;
        assert_eq!(met.entries.into_iter().collect::<Model>(), model);
        assert_eq!(set.len().await?, model.len() as u64);
        assert_eq!(set.count(..=10.0).await?, 8);
        assert_eq!(set.score(&account(5)).await?, Some(5.0));
        for order in [Order::Ascending, Order::Descending] {
            assert_eq!(set.page(.., None, 10, order).await?.entries.len(), 10);
        }
        set.spread().await?;
    }
    let bucket = store.keys().buckets().of_account(1);
    store.clock().post_ids(bucket, 1).await?;
    store.clock().ticks(bucket, 1).await?;
    Ok(())
}

/// URLs of the same servers with other credentials.
fn urls_as(cluster: &LocalCluster, credentials: &str) -> Vec<String> {
    cluster.nodes().iter().map(|node| format!("redis://{credentials}@{}", node.addr())).collect()
}

async fn set_user(cluster: &LocalCluster, rights: &str) {
    for node in cluster.nodes() {
        order(&node.addr(), &format!("ACL SETUSER tideline reset on >secret ~* {rights}")).await;
    }
}

async fn open_as(cluster: &LocalCluster, credentials: &str) -> Result<Store, Error> {
    Store::open(StoreOptions { router: patient_at_first(), ..options(urls_as(cluster, credentials)) }).await
}

async fn refusal(cluster: &LocalCluster, credentials: &str) -> String {
    let refused = open_as(cluster, credentials).await.unwrap_err();
    println!("{refused}");
    assert_eq!(refused.kind(), ErrorKind::Misconfigured, "{refused:?}");
    refused.to_string()
}

#[tokio::test]
async fn a_password_opens_and_a_wrong_one_or_none_is_named() {
    let cluster = own(ClusterSpec::ephemeral().password("s3cret/@:")).await;
    let store = Store::open(options(cluster.urls())).await.unwrap();
    use_everything(&store).await.unwrap();
    let wrong = refusal(&cluster, ":wrong-s3cret").await;
    assert!(wrong.contains("WRONGPASS") && wrong.contains("the password in the URL is wrong"), "{wrong}");
    assert!(!wrong.contains("wrong-s3cret"), "an error must not tell the password: {wrong}");
    let seeds = cluster.nodes().iter().map(|node| format!("redis://{}", node.addr())).collect();
    let none = Store::open(options(seeds)).await.unwrap_err();
    assert_eq!(none.kind(), ErrorKind::Misconfigured, "{none:?}");
    let none = none.to_string();
    for wanted in ["NOAUTH", "wants a password", "redis://:PASSWORD@HOST:PORT"] {
        assert!(none.contains(wanted) && !none.contains("the user needs"), "{wanted}: {none}");
    }
}

#[tokio::test]
async fn a_user_of_one_tenant_has_no_keys_of_one_whose_prefix_begins_alike() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    for node in cluster.nodes() {
        let user = format!("ACL SETUSER tideline reset on >secret ~my{{* {RIGHTS}");
        order(&node.addr(), &user).await;
    }
    let open = async |prefix: &str| {
        let options = options(urls_as(&cluster, "tideline:secret"));
        Store::open(StoreOptions { prefix: prefix.into(), router: patient_at_first(), ..options }).await
    };
    use_everything(&open("my").await.unwrap()).await.unwrap();
    open("myapp").await.unwrap_err();
}

#[tokio::test]
async fn a_user_needs_few_rights_and_each_that_is_missing_is_named() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    set_user(&cluster, RIGHTS).await;
    use_everything(&open_as(&cluster, "tideline:secret").await.unwrap()).await.unwrap();
    let without =
        |right: &str| RIGHTS.split_whitespace().filter(|r| *r != right).collect::<Vec<_>>().join(" ");
    // Without CONFIG it goes on with the defaults, and says so.
    set_user(&cluster, &without("+config|get")).await;
    let store = open_as(&cluster, "tideline:secret").await.unwrap();
    let findings = findings_of_settings(&store);
    assert!(findings.iter().all(|f| f.text.contains("CONFIG GET")), "{findings:?}");
    use_everything(&store).await.unwrap();
    for (missing, named) in
        [("+cluster|nodes", "+cluster|nodes"), ("+info", "info"), ("+function|list", "+function|list")]
    {
        set_user(&cluster, &without(missing)).await;
        let refused = refusal(&cluster, "tideline:secret").await;
        assert!(refused.contains(named) && refused.contains("NOPERM"), "without {missing}: {refused}");
    }
    // What only some requests need is told by those.
    for missing in ["+fcall", "+zadd", "+zrange"] {
        set_user(&cluster, &without(missing)).await;
        let refused = async {
            let store = open_as(&cluster, "tideline:secret").await?;
            let set: SortedSet<AccountId> = store.sets().named("rights")?;
            set.add(&pairs(&members(1..=3))).await?;
            set.walk(tideline::sharded::Checkpoint::START).await.map(drop)
        };
        let refused = refused.await.unwrap_err();
        println!("without {missing}: {refused:?}");
        assert_eq!(refused.kind(), ErrorKind::Misconfigured, "without {missing}: {refused:?}");
    }
    // Functions are there already, so only a server that lost them needs the right to load.
    for node in cluster.nodes() {
        order(&node.addr(), "FUNCTION FLUSH").await;
    }
    set_user(&cluster, &without("+function|load")).await;
    let refused = refusal(&cluster, "tideline:secret").await;
    assert!(refused.contains("+function|load"), "{refused}");
    set_user(&cluster, RIGHTS).await;
    let wrong = refusal(&cluster, "tideline:wrong").await;
    assert!(wrong.contains("WRONGPASS") || wrong.contains("assword"), "{wrong}");
}

#[tokio::test]
async fn every_right_on_the_list_is_needed() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    let spare = ["+asking", "+config|get", "+function|load", "+wait", "+time"];
    for right in RIGHTS.split_whitespace().filter(|r| !spare.contains(r)) {
        let rest: Vec<_> = RIGHTS.split_whitespace().filter(|r| *r != right).collect();
        set_user(&cluster, &rest.join(" ")).await;
        let router = RouterSettings { deadline: std::time::Duration::from_secs(2), ..impatient() };
        let used = async {
            let options = StoreOptions { router, ..options(urls_as(&cluster, "tideline:secret")) };
            use_everything(&Store::open(options).await?).await
        };
        let refused = used.await.err();
        println!("without {right}: {refused:?}");
        assert!(refused.is_some(), "{right} is not needed");
    }
}

/// An authority, and a certificate of it for 127.0.0.1, as PEM files.
fn certificates(dir: &Path, name: &str) -> TlsServerFiles {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    // Without names of their own both would bear the same one, and openssl takes the second for self-signed.
    params.distinguished_name.push(DnType::CommonName, format!("{name} authority"));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, key).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, format!("{name} server"));
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.signed_by(&key, &ca).unwrap();
    let write = |what: &str, text: String| -> PathBuf {
        let path = dir.join(format!("{name}-{what}.pem"));
        std::fs::write(&path, text).unwrap();
        path
    };
    TlsServerFiles {
        certificate: write("certificate", certificate.pem()),
        key: write("key", key.serialize_pem()),
        ca: write("ca", ca.pem()),
    }
}

#[tokio::test]
async fn a_cluster_that_speaks_tls_is_used_and_a_wrong_authority_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let files = certificates(dir.path(), "right");
    let cluster = match try_own(ClusterSpec::ephemeral().tls(files.clone()).password("secret")).await {
        Err(e) if e.to_string().contains("Failed finding TLS support") => {
            println!("NOT CHECKED: this server was built without TLS: {e}");
            return;
        }
        cluster => cluster.unwrap(),
    };
    let with = |tls: TlsFiles| StoreOptions {
        router: RouterSettings { tls, ..patient_at_first() },
        ..options(cluster.urls())
    };
    let tls = TlsFiles { ca: Some(files.ca.clone()), ..TlsFiles::default() };
    let store = Store::open(with(tls.clone())).await.unwrap();
    use_everything(&store).await.unwrap();
    let own_certificate = TlsFiles {
        certificate: Some(files.certificate.clone()),
        key: Some(files.key.clone()),
        ..tls.clone()
    };
    use_everything(&Store::open(with(own_certificate)).await.unwrap()).await.unwrap();

    let other = certificates(dir.path(), "other");
    for (tls, words) in [
        (TlsFiles { ca: Some(other.ca), ..TlsFiles::default() }, "certificate"),
        (TlsFiles::default(), "certificate"),
        (TlsFiles { ca: Some(dir.path().join("missing.pem")), ..TlsFiles::default() }, "missing.pem"),
    ] {
        let refused = Store::open(with(tls)).await.unwrap_err();
        println!("{refused:?}");
        assert_eq!(refused.kind(), ErrorKind::Misconfigured, "{refused:?}");
        assert!(refused.to_string().contains(words), "{refused}");
    }
    let half = TlsFiles { certificate: Some(files.certificate), ..tls };
    assert_eq!(Store::open(with(half)).await.unwrap_err().kind(), ErrorKind::Invalid);
    // Without TLS there is nobody to talk to.
    let plain = cluster.nodes().iter().map(|n| format!("redis://:secret@{}", n.addr())).collect();
    let refused = Store::open(StoreOptions { router: impatient(), ..options(plain) }).await.unwrap_err();
    println!("{refused:?}");
    assert!(matches!(refused.kind(), ErrorKind::Unavailable | ErrorKind::Misconfigured));
}
