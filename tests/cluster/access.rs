//! Who may come in: passwords, users with few rights, TLS.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use tideline::cluster::{Command, Request, RouterSettings, TlsFiles};
use tideline::post::{Draft, Edit, PostRef};
use tideline::profile::ProfileUpdate;
use tideline::registration::{Name, Registration, RegistrationSettings, SignUp, Step};
use tideline::sharded::{Order, SetSettings, SortedSet};
use tideline::{
    AccountId, AccountUpdate, Engine, Error, ErrorKind, FindingKind, FsckOptions, ImportedEdge, ImportedPost,
    Importer, ListQuery, Moderation, NewAccount, NewReport, Query, ReportCategory, ReportQuery, Store,
    StoreOptions, Way,
};
use tideline_local_cluster::{ClusterSpec, LocalCluster, TlsServerFiles};

use super::engine::small;
use super::harness::{
    Model, account, findings_of_settings, impatient, members, options, order, own, pairs, try_own,
};

/// What a user of sets needs, nothing else.
const RIGHTS: &str = "+info +time +config|get +cluster|nodes +asking +wait +function|load +function|list +fcall \
                      +fcall_ro +get +set +expire +type +unlink +del +setrange +setbit +getrange +bitfield \
                      +bitfield_ro +zadd +zrem +zcard +zrange +zscore +zcount +zrangebyscore +zrevrangebyscore \
                      +hgetall +hsetnx +hmget";

/// What an engine needs on top; docs/router.md has both lists.
const ENGINE_RIGHTS: &str = "+exists +hdel +hget +hincrby +hkeys +hlen +hscan +hset +lindex +llen +lpos \
                             +lpush +lrange +lset +ltrim +mset +rpush +rpushx +zmscore";

/// Uses a whole engine: import, publish, fan-out to local and spread followers, reads down to the end, fills, edges,
/// requests, edits, deletions, inspection, sweep, shutdown.
pub(super) async fn use_engine(options: StoreOptions) -> Result<(), Error> {
    use_engine_within(options, async |_| ()).await
}

/// The same; `limit(true)`: from now on its user has fewer rights. At start all are asked for.
async fn use_engine_within(options: StoreOptions, limit: impl AsyncFn(bool)) -> Result<(), Error> {
    let sets = SetSettings { piece_limit: Some(16), spread_at: Some(20), ..SetSettings::default() };
    let options = StoreOptions { sets, ..options };
    let builder = || Engine::builder().store(options.clone()).settings(small());
    let importer = builder().import().await?;
    limit(true).await;
    use_importer(importer).await?;
    limit(false).await;
    let engine = builder().start().await?;
    limit(true).await;
    let drained = async || engine.drained(Duration::from_secs(5)).await;
    let mut people = vec![account(1), account(2)];
    for _ in 0..28 {
        people.push(engine.create_account(NewAccount::default()).await?.value);
    }
    let [star, local, reader] = people[2..5] else { unreachable!() };
    for follower in people.iter().filter(|id| **id != star) {
        engine.follow(*follower, star).await?;
    }
    engine.follow(reader, local).await?;
    for warmed in [reader, star, local] {
        engine.warm(warmed).await?;
    }
    drained().await?;
    let mut posts = Vec::new();
    for n in 0..45 {
        let author = if n % 3 == 0 { star } else { local };
        posts.push(PostRef {
            id: engine.publish(author, &Draft::text("post").token(format!("{n}"))).await?.id,
            author,
        });
    }
    engine.publish(local, &Draft::repost(posts[0])).await?;
    let reply = engine.publish(star, &Draft::text("well").reply_to(posts[1])).await?.id;
    drained().await?;
    let mut query = Query::home().limit(10).hydrated();
    let mut seen = 0;
    loop {
        let page = engine.as_reader(reader).read(&query).await?;
        seen += page.posts.len();
        let Some(next) = page.next else { break };
        query = query.after(next);
    }
    assert_eq!(seen, 47);
    engine.like(reader, posts[0].id).await?;
    engine.bookmark(reader, posts[1].id).await?;
    engine.as_reader(reader).read(&Query::profile(star).marked().with_likers(3).with_replies(3)).await?;
    engine.unlike(reader, posts[0].id).await?;
    engine.edit(star, reply, &Edit { text: Some("oh well".into()), ..Edit::default() }).await?;
    engine.delete(star, reply).await?;
    engine.fanout(posts[0].id).await?;

    use_home(&engine).await?;
    use_modes(&engine, &people).await?;
    use_edges(&engine, &people).await?;
    use_names(&engine).await?;
    use_moderation(&engine, reader, posts[3]).await?;
    if engine.inspect(reader).await?.home.records == 0 {
        // A fill that can't write ends without one.
        return Err(Error::new(ErrorKind::Misconfigured, "there is no home"));
    }
    engine.inspect_post(posts[1].id).await?;
    engine.health().await?;
    engine.delete_account(star).await?;
    drained().await?;
    engine.sweep(0).await?;
    engine.shutdown(Duration::from_secs(5)).await.map(drop)
}

async fn use_importer(mut importer: Importer) -> Result<(), Error> {
    let new = |id| NewAccount { id: Some(account(id)), ..NewAccount::default() };
    importer.accounts(&[new(1), new(2)]).await?;
    importer.edges(&[ImportedEdge { reader: account(1), author: account(2), since_ms: 1_000 }]).await?;
    let old = ImportedPost { author: account(2), created_ms: 2_000, draft: Draft::text("from before") };
    importer.posts(&[old]).await?;
    importer.finish().await
}

/// Signs up, changes all that can be changed, looks people up.
async fn use_names(engine: &Engine) -> Result<(), Error> {
    let settings = RegistrationSettings { memory_kib: 8, passes: 1, ..RegistrationSettings::default() };
    let registration = Registration::new(engine, settings).await?;
    let sign_up = SignUp::new("ada", "correct horse").email("ada@example.org").token("once");
    let ada = registration.sign_up(&sign_up).await?.id;
    assert!(registration.sign_up(&sign_up).await?.is_repeat);
    assert!(registration.sign_up(&SignUp::new("Ada", "correct horse")).await.is_err());
    registration
        .sign_up_until(&SignUp::new("bea", "correct horse"), &|at| at == Step::Fenced)
        .await
        .unwrap_err();
    registration.set_login(ada, "lovelace").await?;
    registration.set_email(ada, None).await?;
    registration.set_password(ada, "battery staple").await?;
    registration.update_profile(ada, &ProfileUpdate::default()).await?;
    assert!(registration.check("lovelace", "battery staple").await?.is_some());
    assert!(
        registration
            .find(&[Name::Login("lovelace".into()), Name::Id(ada)])
            .await?
            .iter()
            .all(Option::is_some)
    );
    engine.delete_account(ada).await.map(drop)
}

async fn use_moderation(engine: &Engine, reporter: AccountId, post: PostRef) -> Result<(), Error> {
    engine.moderate(post.id, Moderation { sensitive: Some(true), ..Moderation::default() }).await?;
    let report = NewReport {
        reporter,
        target: post.author,
        posts: vec![post.id],
        category: ReportCategory::Spam,
        comment: String::new(),
        token: Some("form".into()),
    };
    let report = engine.report(&report).await?.value;
    engine.resolve_report(report, reporter).await?;
    assert_eq!(
        engine.reports(&ReportQuery { resolved: true, ..ReportQuery::default() }).await?.reports.len(),
        1
    );
    engine.count_now().await;
    Ok(())
}

/// A home is cut. When deliveries have one cut depends on how they meet (`+ltrim` was once not asked for); of an
/// account that follows nobody and that nobody follows, one's own posts alone do, each in its turn: three groups of
/// 16 records.
async fn use_home(engine: &Engine) -> Result<(), Error> {
    let loner = engine.create_account(NewAccount::default()).await?.value;
    engine.warm(loner).await?;
    for n in 0..3 * 16 {
        engine.publish(loner, &Draft::text(format!("note {n}"))).await?;
    }
    Ok(())
}

/// A spread account crosses over and back, with a follower that follows more than a piece.
async fn use_modes(engine: &Engine, people: &[AccountId]) -> Result<(), Error> {
    let [star, _, reader] = people[2..5] else { unreachable!() };
    for followed in &people[5..] {
        engine.follow(reader, *followed).await?;
    }
    for way in [Way::Pull, Way::Push] {
        engine.set_way(star, Some(way)).await?;
        engine.drained(Duration::from_secs(5)).await?;
    }
    engine.as_reader(reader).read(&Query::home()).await?;
    engine.judge_now().await;
    engine.mode(star).await.map(drop)
}

/// Restrictions, requests and lists of who follows whom.
async fn use_edges(engine: &Engine, people: &[AccountId]) -> Result<(), Error> {
    let [star, local, reader, locked] = people[2..6] else { unreachable!() };
    let drained = async || engine.drained(Duration::from_secs(5)).await;
    engine.mute(reader, star).await?;
    engine.unmute(reader, star).await?;
    engine.hide_from(star, reader).await?;
    engine.block(local, reader).await?;
    engine.unblock(local, reader).await?;
    engine.unfollow(people[7], star).await?;
    let lock = AccountUpdate { is_locked: Some(true), ..AccountUpdate::default() };
    engine.update_account(locked, &lock).await?;
    for asking in [people[7], people[8]] {
        engine.follow(asking, locked).await?;
    }
    drained().await?;
    assert_eq!(engine.stored().follow_requests(locked).await?.len(), 2);
    engine.as_reader(reader).relationships(people).await?;
    engine.as_reader(locked).follow_requests(&ListQuery::default()).await?;
    engine.as_reader(reader).followers(star, &ListQuery::default()).await?;
    engine.approve(locked, people[7]).await?;
    engine.reject(locked, people[8]).await?;
    engine.follow(people[9], locked).await?;
    drained().await?;
    engine.update_account(locked, &AccountUpdate { is_locked: Some(false), ..lock }).await?;
    drained().await?;
    assert!(engine.stored().is_following(people[9], locked).await?);
    engine.stored().followers(star, None, 10, Order::Descending).await?;
    engine.stored().common_following(reader, people[7]).await.map(drop)
}

#[tokio::test]
async fn an_engine_needs_few_rights_and_every_one_of_them() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    let used = async |right: &str| {
        let router = RouterSettings { deadline: Duration::from_secs(2), ..impatient() };
        let options = StoreOptions { router, ..options(urls_as(&cluster, "tideline:secret")) };
        set_user(&cluster, &format!("{RIGHTS} {ENGINE_RIGHTS}")).await;
        use_engine_within(options, async |is_limited| {
            let left = |r: &&str| !(is_limited && *r == right);
            let rest: Vec<_> = ENGINE_RIGHTS.split_whitespace().filter(left).collect();
            set_user(&cluster, &format!("{RIGHTS} {}", rest.join(" "))).await;
        })
        .await
    };
    used("").await.unwrap();
    for right in ENGINE_RIGHTS.split_whitespace() {
        let refused = used(right).await.err();
        println!("without {right}: {refused:?}");
        assert!(refused.is_some(), "{right} is not needed");
    }
}

/// An engine whose user lacked `+mset`, which only a function uses, started, and failed with each publish.
#[tokio::test]
async fn a_right_that_an_engine_lacks_at_one_server_is_named_at_start() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    let store = StoreOptions { router: impatient(), ..options(urls_as(&cluster, "tideline:secret")) };
    let builder = || Engine::builder().store(store.clone()).settings(small());
    let all = format!("{RIGHTS} {ENGINE_RIGHTS}");
    let last = cluster.nodes().last().unwrap().addr();
    for (missing, rights) in [
        ("lacks `+mset`", format!("{all} -mset")),
        ("lacks `+hincrby +zmscore`", format!("{all} -zmscore -hincrby")),
        // All of them: it has no keys there.
        ("lacks `+get +set ", format!("{all} resetkeys ~other{{*")),
    ] {
        // Those that are documented are enough, with no key of anybody else.
        set_user(&cluster, &format!("{all} resetkeys ~{}{{*", store.prefix)).await;
        builder().start().await.unwrap().shutdown(Duration::from_secs(5)).await.unwrap();
        order(&last, &format!("ACL SETUSER tideline reset on >secret ~* {rights}")).await;
        for refused in [builder().start().await.err(), builder().assist().await.err()] {
            let refused = refused.unwrap_or_else(|| panic!("it started without a right: {missing}"));
            println!("{refused}");
            assert_eq!(refused.kind(), ErrorKind::Misconfigured, "{refused:?}");
            let told = refused.to_string();
            assert!(told.contains(missing) && told.contains(&last.to_string()), "{missing}: {told}");
        }
    }
}

/// What fsck needs on top of an engine's, a repair included; docs/fsck.md lists it. Without `dbsize` only its progress
/// is a guess.
const FSCK_RIGHTS: &str = "+scan +zscan +pttl +pexpire +linsert";

#[tokio::test]
async fn fsck_needs_few_rights_on_top_and_every_one_of_them() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    set_user(&cluster, &format!("{RIGHTS} {ENGINE_RIGHTS} +persist +lrem +dbsize")).await;
    let router = RouterSettings { deadline: Duration::from_secs(2), ..impatient() };
    let store = StoreOptions { router, ..options(urls_as(&cluster, "tideline:secret")) };
    let engine = Engine::builder().store(store).settings(small()).start().await.unwrap();
    let author = engine.create_account(NewAccount::default()).await.unwrap().value;
    let unlisted = engine.publish(author, &Draft::text("earlier")).await.unwrap().id;
    engine.publish(author, &Draft::text("once").token("form")).await.unwrap();
    engine.warm(author).await.unwrap();
    let (keys, bucket) = (engine.store().keys(), engine.store().keys().buckets().of_account(author.get()));
    let key = |kind: &str, rest: &[u8]| {
        let head = format!("{}{{{}}}{kind}", keys.prefix(), keys.buckets().tag(bucket));
        [head.as_bytes(), &author.get().to_be_bytes(), rest].concat()
    };
    let write = |command| Request::write(keys.buckets().slot(bucket), command);
    let persist = write(Command::new("PERSIST").arg(&key("k", b"form")));
    let take_off = Command::new("LREM").arg(&key("o", b"")).arg("1").arg(&unlisted.get().to_be_bytes());
    let take_off = write(take_off);
    let fsck = FsckOptions { repair: true, pause: Duration::from_millis(50), ..FsckOptions::default() };
    for right in FSCK_RIGHTS.split_whitespace().chain([""]) {
        set_user(&cluster, &format!("{RIGHTS} {ENGINE_RIGHTS} +persist +lrem")).await;
        engine.store().router().call(persist.clone()).await.unwrap();
        engine.store().router().call(take_off.clone()).await.unwrap();
        let rest: Vec<_> = FSCK_RIGHTS.split_whitespace().filter(|r| *r != right).collect();
        set_user(&cluster, &format!("{RIGHTS} {ENGINE_RIGHTS} +persist {}", rest.join(" "))).await;
        let report = engine.fsck(&fsck, &|_| ()).await;
        println!("without {right:?}: {report:?}");
        let both = [FindingKind::TokenEndless, FindingKind::PostUnlisted];
        let has_healed =
            report.is_ok_and(|r| r.is_clean() && both.iter().all(|kind| r.findings.contains_key(kind)));
        assert_eq!(has_healed, right.is_empty(), "without {right:?}");
    }
}

/// Uses everything there is: sets local and spread, pages, walks, ids, stamps, fences.
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
    store.clock().stamps(bucket, 1).await?;
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
    Store::open(StoreOptions { router: impatient(), ..options(urls_as(cluster, credentials)) }).await
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
        Store::open(StoreOptions { prefix: prefix.into(), router: impatient(), ..options }).await
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
        router: RouterSettings { tls, ..impatient() },
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
