//! Who uses a whole engine, and fsck: which rights that takes.

use std::collections::BTreeSet;
use std::time::Duration;

use metrics_util::debugging::DebuggingRecorder;
use tideline::cluster::{Command, Request, RouterSettings};
use tideline::post::{Draft, Edit, PostRef};
use tideline::profile::ProfileUpdate;
use tideline::registration::{AttemptStep, Name, Registration, RegistrationSettings, SignUp, TicketKind};
use tideline::sharded::{Order, SetSettings};
use tideline::{
    AccountId, AccountUpdate, DeliveryWay, Engine, EngineSettings, Error, ErrorKind, FindingKind,
    FsckOptions, ImportedEdge, ImportedPost, Importer, ListQuery, Moderation, NewAccount, NewReport,
    NotificationQuery, PostId, Query, ReportCategory, ReportQuery, StoreOptions,
};
use tideline_local_cluster::{ClusterSpec, LocalCluster};

use super::{RIGHTS, set_user, urls_as};
use crate::engine::{at_bucket_key, small};
use crate::harness::{PATIENCE, account, answer, options, order, own, patient_at_first};
use crate::router::counted;

/// What an engine needs on top; docs/router.md has both lists.
const ENGINE_RIGHTS: &str = "+append +exists +hdel +hget +hincrby +hkeys +hlen +hrandfield +hscan +hset +lindex +llen \
                             +lpos +lpush +lrange +lrem +lset +ltrim +mset +rpush +rpushx +zmscore";

/// Uses a whole engine: import, publish, fan-out to local and spread followers, reads down to the end, fills, edges,
/// requests, edits, deletions, inspection, sweep, shutdown.
pub(crate) async fn use_engine(options: StoreOptions) -> Result<(), Error> {
    use_engine_within(options, async |_| (), &|| false).await
}

/// The same; `limit(true)`: from now on its user has fewer rights. At start all are asked for. `is_stuck`: whether a
/// task has failed since, for good.
async fn use_engine_within(
    options: StoreOptions,
    limit: impl AsyncFn(bool),
    is_stuck: &dyn Fn() -> bool,
) -> Result<(), Error> {
    let sets = SetSettings { piece_limit: Some(16), spread_at: Some(20), ..SetSettings::default() };
    let options = StoreOptions { sets, ..options };
    let settings =
        EngineSettings { journal_max: 100, keeps_notifications: true, public_posts: 16, ..small() };
    let builder = || Engine::builder().store(options.clone()).settings(settings.clone());
    // Who begins a tenant decides that public posts are kept; one that an import begins has decided nothing.
    builder().start().await?.shutdown(PATIENCE).await?;
    let importer = builder().import().await?;
    limit(true).await;
    use_importer(importer).await?;
    limit(false).await;
    let engine = builder().start().await?;
    limit(true).await;
    let drained = async || drained(&engine, is_stuck).await;
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
    like_while_its_journal_is_half_full(&engine, reader, posts[0].id).await?;
    engine.bookmark(reader, posts[1].id).await?;
    engine.as_reader(reader).read(&Query::profile(star).with_ties().with_likers(3).with_replies(3)).await?;
    engine.unlike(reader, posts[0].id).await?;
    engine.edit(star, reply, &Edit { text: Some("oh well".into()), ..Edit::default() }).await?;
    engine.delete(star, reply).await?;
    engine.fanout(posts[0].id).await?;

    use_inbox(&engine, star).await?;
    use_home(&engine).await?;
    use_modes(&engine, &people, is_stuck).await?;
    use_edges(&engine, &people, is_stuck).await?;
    use_names(&engine).await?;
    use_moderation(&engine, reader, posts[3]).await?;
    if engine.inspect(reader).await?.home.entries == 0 {
        // A fill that can't write ends without one.
        return Err(Error::new(ErrorKind::Misconfigured, "there is no home"));
    }
    engine.inspect_post(posts[1].id).await?;
    engine.health().await?;
    engine.delete_account(star).await?;
    drained().await?;
    engine.sweep(0).await?;
    engine.shutdown(PATIENCE).await.map(drop)
}

async fn use_inbox(engine: &Engine, of: AccountId) -> Result<(), Error> {
    let told = engine.as_reader(of).notifications(&NotificationQuery::default()).await?;
    // One that isn't the last goes by another command.
    engine.dismiss_notification(of, told.notifications[1].id).await.map(drop)
}

/// Of a journal that is half full something is drawn.
async fn like_while_its_journal_is_half_full(
    engine: &Engine,
    reader: AccountId,
    post: PostId,
) -> Result<(), Error> {
    let entries: Vec<String> = (10..60).map(|n| format!("other-{n}")).collect();
    let whole: Vec<&str> = entries.iter().flat_map(|entry| [entry.as_str(), "nobody..?"]).collect();
    at_bucket_key(engine, 'j', reader, "HSET", &whole).await;
    let liked = engine.like(reader, post).await;
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    at_bucket_key(engine, 'j', reader, "HDEL", &entries).await;
    liked.map(drop)
}

/// Waits until all is done; ends with an error as soon as a task has failed in a way that doesn't mend itself.
async fn drained(engine: &Engine, is_stuck: &dyn Fn() -> bool) -> Result<(), Error> {
    let stuck = async {
        while !is_stuck() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        drained = engine.drained(PATIENCE) => drained,
        () = stuck => Err(Error::new(ErrorKind::Misconfigured, "a task is stuck")),
    }
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
        .sign_up_until(&SignUp::new("bea", "correct horse"), &|at| at == AttemptStep::Fenced)
        .await
        .unwrap_err();
    registration.set_login(ada, "lovelace").await?;
    registration.set_email(ada, None).await?;
    registration.set_password(ada, "battery staple").await?;
    registration.update_profile(ada, &ProfileUpdate::default()).await?;
    use_stores(&registration, ada).await?;
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

/// A document, a ticket whose secret is a password that people choose, and a counter.
async fn use_stores(registration: &Registration, ada: AccountId) -> Result<(), Error> {
    let version = registration.change_document(ada, "filters", None, Some(b"correct horse")).await?.value;
    assert!(!format!("{:?}", registration.documents(ada).await?).contains("correct horse"));
    registration.change_document(ada, "filters", version.as_ref(), None).await?;
    let (kind, secret) = (TicketKind::new('c').unwrap(), b"correct horse");
    let day = Duration::from_secs(86_400);
    registration.put_ticket(kind, secret, b"battery staple", day).await?;
    registration.replace_ticket(kind, secret, b"battery staple", b"battery", day).await?;
    registration.drop_ticket(kind, secret).await?;
    registration.put_ticket(kind, secret, b"battery staple", day).await?;
    registration.take_ticket(kind, secret).await?;
    registration.count_up(b"log-ins", 1, day).await?;
    registration.count_up(b"log-ins", 1, day).await.map(drop)
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
/// 16 entries.
async fn use_home(engine: &Engine) -> Result<(), Error> {
    let loner = engine.create_account(NewAccount::default()).await?.value;
    engine.warm(loner).await?;
    for n in 0..3 * 16 {
        engine.publish(loner, &Draft::text(format!("note {n}"))).await?;
    }
    Ok(())
}

/// A spread account crosses over and back, with a follower that follows more than a piece.
async fn use_modes(engine: &Engine, people: &[AccountId], is_stuck: &dyn Fn() -> bool) -> Result<(), Error> {
    let [star, _, reader] = people[2..5] else { unreachable!() };
    for followed in &people[5..] {
        engine.follow(reader, *followed).await?;
    }
    for way in [DeliveryWay::Pull, DeliveryWay::Push] {
        engine.set_way(star, Some(way)).await?;
        drained(engine, is_stuck).await?;
    }
    engine.as_reader(reader).read(&Query::home()).await?;
    engine.judge_now().await;
    engine.mode(star).await.map(drop)
}

/// Restrictions, requests and lists of who follows whom.
async fn use_edges(engine: &Engine, people: &[AccountId], is_stuck: &dyn Fn() -> bool) -> Result<(), Error> {
    let [star, local, reader, locked] = people[2..6] else { unreachable!() };
    let drained = async || drained(engine, is_stuck).await;
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

/// Commands that servers have refused since they were last asked: a function's error doesn't name the one.
async fn refused(cluster: &LocalCluster) -> BTreeSet<String> {
    let mut commands = BTreeSet::new();
    for node in cluster.nodes() {
        let told = answer(&node.addr(), "ACL LOG").await;
        let lines: Vec<&str> = told.lines().collect();
        // Behind the field's name comes the value's length.
        let of_field = |(at, _): (usize, &&str)| lines.get(at + 2).map(|value| (*value).to_owned());
        commands.extend(lines.iter().enumerate().filter(|(_, line)| **line == "object").filter_map(of_field));
        order(&node.addr(), "ACL LOG RESET").await;
    }
    commands
}

#[tokio::test]
async fn an_engine_needs_few_rights_and_every_one_of_them() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let is_stuck = || counted(snapshotter.snapshot(), "tideline_tasks_stuck_total", []) > 0;
    let cluster = own(ClusterSpec::ephemeral()).await;
    let used = async |right: &str| {
        // Who is refused is told so at once: none of this is to end because a server is slow.
        let router =
            RouterSettings { response_timeout: PATIENCE, deadline: PATIENCE * 2, ..patient_at_first() };
        let options = StoreOptions { router, ..options(urls_as(&cluster, "tideline:secret")) };
        set_user(&cluster, &format!("{RIGHTS} {ENGINE_RIGHTS}")).await;
        let limit = async |is_limited| {
            if is_limited {
                // What the one before has left may have been refused what that one lacked.
                drop(refused(&cluster).await);
                is_stuck();
            }
            let left = |r: &&str| !(is_limited && *r == right);
            let rest: Vec<_> = ENGINE_RIGHTS.split_whitespace().filter(left).collect();
            set_user(&cluster, &format!("{RIGHTS} {}", rest.join(" "))).await;
        };
        use_engine_within(options, limit, &is_stuck).await
    };
    used("").await.unwrap();
    // What it does without all the time.
    let optional = refused(&cluster).await;
    for right in ENGINE_RIGHTS.split_whitespace() {
        let ended = used(right).await;
        println!("without {right}: {ended:?}");
        let failed = ended.expect_err("a right is not needed");
        assert_eq!(failed.kind(), ErrorKind::Misconfigured, "{right}: {failed}");
        let command = right.trim_start_matches('+').to_owned();
        let refused: Vec<String> = refused(&cluster).await.difference(&optional).cloned().collect();
        assert_eq!(refused, [command]);
    }
}

/// An engine whose user lacked `+mset`, which only a function uses, started, and failed with each publish.
#[tokio::test]
async fn a_right_that_an_engine_lacks_at_one_server_is_named_at_start() {
    let cluster = own(ClusterSpec::ephemeral()).await;
    let store = StoreOptions { router: patient_at_first(), ..options(urls_as(&cluster, "tideline:secret")) };
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
        builder().start().await.unwrap().shutdown(PATIENCE).await.unwrap();
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
    let router = RouterSettings { response_timeout: PATIENCE, deadline: PATIENCE * 2, ..patient_at_first() };
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
        drop(refused(&cluster).await);
        let report = engine.fsck(&fsck, &|_| ()).await;
        println!("without {right:?}: {report:?}");
        let both = [FindingKind::TokenEndless, FindingKind::PostUnlisted];
        let has_healed =
            report.is_ok_and(|r| r.is_clean() && both.iter().all(|kind| r.findings.contains_key(kind)));
        assert_eq!(has_healed, right.is_empty(), "without {right:?}");
        let refused = refused(&cluster).await;
        let is_why = right.is_empty() || refused.contains(right.trim_start_matches('+'));
        assert!(is_why, "without {right:?}: {refused:?}");
    }
}
