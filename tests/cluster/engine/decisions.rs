//! What removes for good belongs to the tenant.

use std::future::poll_fn;
use std::pin::pin;
use std::process::Command as Program;
use std::task::Poll;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use tideline::cluster::{Command, Replicas, Reply, Request, RouterSettings};
use tideline::post::{Draft, Tag};
use tideline::registration::{Registration, RegistrationSettings, SignUp};
use tideline::{
    AccountId, Engine, EngineSettings, ErrorKind, FsckOptions, ListRemoval, NewAccount, Query, RemovedData,
    Store, StoreOptions,
};

use super::super::harness::{PATIENCE, eventually, impatient, options, own, replicated, shared};
use super::{accounts, at_key, drained, engine_with, slot_of, small, tenant};

/// Settings under which little is kept.
pub(super) fn little() -> EngineSettings {
    EngineSettings {
        outbox_posts: 100,
        mentions_max: 20,
        tag_posts_max: 20,
        home_posts: 16,
        dormant_after_days: Some(1),
        ..small()
    }
}

/// Settings under which all of these tests' posts are kept.
pub(super) fn much() -> EngineSettings {
    EngineSettings { dormant_after_days: None, home_posts: 1_000, ..small() }
}

pub(super) async fn publish(engine: &Engine, author: AccountId, posts: usize, draft: &Draft) {
    let each = stream::iter(0..posts).map(|_| async { engine.publish(author, draft).await.unwrap() });
    each.buffer_unordered(40).collect::<Vec<_>>().await;
    drained(engine).await;
}

pub(super) async fn listed(engine: &Engine, author: AccountId) -> u64 {
    // Its first element is the floor.
    at_key(engine, 'o', author, "LLEN", &[]).await.count().unwrap() - 1
}

pub(super) async fn home_length(engine: &Engine, reader: AccountId) -> u64 {
    at_key(engine, 'h', reader, "LLEN", &[]).await.count().unwrap()
}

pub(super) async fn walked(engine: &Engine, reader: AccountId, query: Query) -> u64 {
    let (mut posts, mut query) = (0, query.limit(100));
    loop {
        let page = engine.as_reader(reader).read(&query).await.unwrap();
        posts += page.posts.len() as u64;
        let Some(next) = page.next else { return posts };
        query = query.after(next);
    }
}

pub(super) fn of_tag() -> Query {
    Query::tag(Tag::new("tide").unwrap())
}

pub(super) async fn at_record(engine: &Engine, command: &str, arguments: &[&str]) -> Reply {
    let key = format!("{}{{06S}}i", engine.store().keys().prefix());
    let command = Command::new(command).arg(&key).args(arguments.iter().copied());
    engine.store().router().call(Request::write(0, command)).await.unwrap()
}

/// An author with posts beyond each of the bounds of [`little`], and who is mentioned in them.
async fn full(engine: &Engine) -> [AccountId; 2] {
    let [author, reader] = accounts(engine, 2).await[..] else { panic!("two were made") };
    engine.follow(reader, author).await.unwrap();
    engine.warm(reader).await.unwrap();
    publish(engine, author, 60, &Draft::text("x").mentions([reader]).hashtags(["tide"])).await;
    publish(engine, author, 640, &Draft::text("x")).await;
    [author, reader]
}

async fn holds_all(engine: &Engine, [author, reader]: [AccountId; 2], more: u64) {
    assert_eq!(listed(engine, author).await, 700 + more);
    assert_eq!(walked(engine, reader, Query::mentions()).await, 60 + more);
    assert_eq!(walked(engine, reader, of_tag()).await, 60 + more);
    assert!(home_length(engine, reader).await > 700);
}

/// One more of each.
pub(super) async fn one_more(engine: &Engine, [author, reader]: [AccountId; 2]) {
    publish(engine, author, 1, &Draft::text("x").mentions([reader]).hashtags(["tide"])).await;
}

pub(super) async fn told(engine: &Engine) -> String {
    let findings = engine.health().await.unwrap().findings;
    // Clocks are nobody's affair here.
    findings.into_iter().map(|f| f.text).filter(|text| text.contains("tenant")).collect()
}

#[tokio::test]
async fn an_instance_whose_settings_differ_says_so_and_goes_by_the_tenants() {
    // H65. A staging file's bounds, or the defaults of a tool, took 600 of 700 posts with the first post through that
    // instance, for good.
    let options = tenant(40);
    let first = engine_with(options.clone(), much()).await;
    let people = full(&first).await;
    let second = engine_with(options.clone(), little()).await;
    for (n, engine) in [&second, &first, &second].into_iter().enumerate() {
        one_more(engine, people).await;
        holds_all(&first, people, n as u64 + 1).await;
    }
    assert_eq!(told(&first).await, "");
    let text = told(&second).await;
    for wanted in
        ["outbox_posts is 100 here and 200000 with the tenant", "home_posts is 16 here", "tenant set"]
    {
        assert!(text.contains(wanted), "{text}");
    }
    assert_eq!(second.decision(), first.decision());

    // The other order: what little the first one keeps is the tenant's.
    let options = tenant(40);
    let first = engine_with(options.clone(), little()).await;
    let second = engine_with(options, much()).await;
    let [author, reader] = full(&second).await;
    assert!((100..=612).contains(&listed(&second, author).await));
    // As many as eight more, until the next one.
    assert!((20..=28).contains(&walked(&second, reader, Query::mentions()).await));
    assert!(told(&second).await.contains("outbox_posts is 200000 here and 100 with the tenant"));
    assert_eq!(told(&first).await, "");
}

#[tokio::test]
async fn two_that_open_a_new_tenant_at_once_agree() {
    for _ in 0..5 {
        let options = tenant(40);
        let each = [little(), much(), little(), much()].map(|own| engine_with(options.clone(), own));
        let engines = futures::future::join_all(each).await;
        let decision = engines[0].decision();
        assert!(engines.iter().all(|engine| engine.decision() == decision), "{engines:?}");
        assert_eq!(
            (decision.number, decision.settings.mentions_max == 20),
            (1, decision.settings.outbox_posts == 100)
        );
    }
}

#[tokio::test]
async fn tools_bring_no_settings_and_decide_nothing() {
    let options = tenant(40);
    let service = engine_with(options.clone(), much()).await;
    let people = full(&service).await;
    let fsck = FsckOptions { repair: true, pause: Duration::from_millis(50), ..FsckOptions::default() };
    let builder = || Engine::builder().store(options.clone()).settings(little());
    let tool = builder().assist().await.unwrap();
    assert!(tool.fsck(&fsck, &|_| {}).await.unwrap().is_clean());
    one_more(&tool, people).await;
    assert_eq!(told(&tool).await, "", "a tool's settings are nobody's");
    tool.shutdown(PATIENCE).await.unwrap();
    assert_eq!(builder().observe().await.unwrap().decision(), service.decision());
    let program = |arguments: &[&str]| program(&options, arguments);
    let account = people[0].to_string();
    for arguments in
        [&["fsck", "--repair", "--pause", "50"][..], &["inspect", &account], &["mode", &account, "auto"]]
    {
        let (is_good, text) = program(arguments);
        assert!(is_good, "{text}");
    }
    holds_all(&service, people, 1).await;

    // Of a tenant that nobody serves yet.
    let options = tenant(40);
    let builder = || Engine::builder().store(options.clone()).settings(little());
    let mut importer = builder().import().await.unwrap();
    importer
        .accounts(&[NewAccount { id: Some(AccountId::new(7).unwrap()), ..NewAccount::default() }])
        .await
        .unwrap();
    importer.finish().await.unwrap();
    let tool = builder().assist().await.unwrap();
    assert_eq!(tool.decision().number, 0);
    publish(&tool, AccountId::new(7).unwrap(), 700, &Draft::text("x")).await;
    assert_eq!(listed(&tool, AccountId::new(7).unwrap()).await, 700);
    let (is_good, text) = self::program(&options, &["tenant", "show"]);
    assert!(!is_good && text.contains("nothing was decided yet"), "{text}");
    let service = engine_with(options.clone(), much()).await;
    // Nor does an instance, where there is data.
    assert_eq!(service.decision().number, 0);
    let change = service.decision().change().set_all(service.decision().settings).unwrap();
    assert_eq!(service.decide(&change).await.unwrap(), RemovedData::default());
    assert_eq!((service.decision().number, service.decision().settings.outbox_posts), (1, 200_000));
    eventually("the tool hears of it", async || tool.decision() == service.decision()).await;
}

/// What the program says, and whether it is content.
pub(super) fn program(options: &StoreOptions, arguments: &[&str]) -> (bool, String) {
    let mut program = Program::new(crate::harness::program());
    program.args(arguments).args(["--prefix", &options.prefix]).env("TIDELINE_CLUSTER", shared().join(","));
    let output = program.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

const LOWER: [(&str, &str); 4] =
    [("outbox_posts", "100"), ("mentions_max", "20"), ("tag_posts_max", "30"), ("home_posts", "16")];

fn removed() -> RemovedData {
    RemovedData {
        outboxes: ListRemoval { lists: 1, entries: 600 },
        mentions: ListRemoval { lists: 1, entries: 40 },
        hashtags: ListRemoval { lists: 1, entries: 30 },
        public: ListRemoval::default(),
        homes: 1,
        dormant_homes: 0,
    }
}

async fn holds_little(engine: &Engine, [author, reader]: [AccountId; 2]) {
    assert_eq!(listed(engine, author).await, 100);
    assert!(home_length(engine, reader).await < 40);
    let lists = engine.store().sets();
    let mentions = lists.of_account::<AccountId>(reader, "mentions").unwrap().len().await.unwrap();
    // And the list's floor, unless what left and what stays are of one millisecond: then its author's alone tells.
    assert!((20..=21).contains(&mentions), "{mentions}");
}

#[tokio::test]
async fn the_command_says_before_what_it_removes_and_removes_that() {
    let options = tenant(40);
    let service = engine_with(options.clone(), much()).await;
    let people = full(&service).await;
    let observer = Engine::builder().store(options.clone()).observe().await.unwrap();
    let mut change = observer.decision().change();
    for (name, value) in LOWER {
        change = change.set(name, value).unwrap();
    }
    assert_eq!(observer.excess(&change).await.unwrap(), removed());
    let assignments: Vec<String> = LOWER.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let set: Vec<&str> =
        ["tenant", "set"].into_iter().chain(assignments.iter().map(String::as_str)).collect();
    let (is_good, text) = program(&options, &[&set[..], &["--dry-run"]].concat());
    assert!(is_good && text.contains("600 posts from profiles of 1 accounts, for good"), "{text}");
    let (is_good, text) = program(&options, &set);
    assert!(!is_good && text.contains("--yes"), "{text}");
    holds_all(&service, people, 0).await;
    assert_eq!(service.decision().number, 1);

    let (is_good, text) = program(&options, &[&set[..], &["--yes"]].concat());
    let says = "600 posts from profiles of 1 accounts, for good; 40 posts from mentions of 1 accounts, for good; 30 \
                posts from timelines of 1 hashtags, for good; the oldest of 1 homes, whose further pages come from the \
                outboxes.";
    for verb in ["It removes", "Decided, number 2. It removed"] {
        assert!(is_good && text.contains(&format!("{verb} {says}")), "{text}");
    }
    holds_little(&service, people).await;
    let (_, text) = program(&options, &["tenant", "show"]);
    assert!(text.contains("decision 2:") && text.contains("outbox_posts = 100\n"), "{text}");
    eventually("the service hears of it", async || service.decision().number == 2).await;
    assert!(told(&service).await.contains("outbox_posts is 200000 here and 100 with the tenant"));
    // Who looked before that decides nothing any more.
    let refused = observer.decide(&change.clone().set("outbox_posts", "150").unwrap()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    // Raising needs no word.
    let (is_good, text) = program(&options, &["tenant", "set", "outbox_posts=5000", "replicas=absent"]);
    assert!(is_good && text.contains("Decided, number 3. It removed nothing."), "{text}");
    let (is_good, text) = program(&options, &["tenant", "set", "outbox_posts=9"]);
    assert!(!is_good && text.contains("outbox_posts must be 100 to 10,000,000"), "{text}");
    let (is_good, text) = program(&options, &["tenant", "set", "outbox=9"]);
    assert!(!is_good && text.contains("`outbox` is no setting of a tenant"), "{text}");
}

/// Gives up on something once it has gone on so many times; `None`: it isn't done by then.
async fn in_steps<T>(mut steps: usize, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if steps == 0 => Poll::Ready(None),
        Poll::Pending => {
            steps -= 1;
            Poll::Pending
        }
    })
    .await
}

#[tokio::test]
async fn a_change_that_is_interrupted_is_finished_when_it_is_repeated() {
    let options = tenant(40);
    let service = engine_with(options.clone(), much()).await;
    let people = full(&service).await;
    let observer = Engine::builder().store(options).observe().await.unwrap();
    let mut change = observer.decision().change();
    for (name, value) in LOWER {
        change = change.set(name, value).unwrap();
    }
    // Wherever it is, each time one step later: in the record, between buckets, between what it cuts.
    let mut half_way = 0;
    for steps in 0.. {
        if let Some(done) = in_steps(steps, observer.decide(&change)).await {
            done.unwrap();
            break;
        }
        let number = at_record(&service, "HGET", &["decision"]).await;
        let is_decided = number.text().is_ok_and(|number| number == "2");
        half_way +=
            usize::from(is_decided && observer.excess(&change).await.unwrap() != RemovedData::default());
    }
    assert!(half_way > 0, "it was never interrupted between the record and the last cut");
    holds_little(&service, people).await;
    assert_eq!(observer.decision().number, 2);
    assert_eq!(observer.excess(&change).await.unwrap(), RemovedData::default());
}

#[tokio::test]
async fn a_record_that_is_gone_is_told_and_comes_back_from_the_buckets() {
    // H67. Slot 0 was lost, and whoever started next founded the tenant anew: with another number of buckets nothing
    // was found any more, with another key no hashtag.
    let options = tenant(40);
    let service = engine_with(options.clone(), much()).await;
    let people = full(&service).await;
    let before = at_record(&service, "HGETALL", &[]).await;
    at_record(&service, "DEL", &[]).await;
    eventually("health says so", async || {
        let health = service.health().await.unwrap();
        !health.is_well && told(&service).await.contains("tideline tenant restore")
    })
    .await;
    let fewer = StoreOptions { buckets: Some(32), ..options.clone() };
    for refused in [
        Store::open(fewer.clone()).await.unwrap_err(),
        Store::open_existing(options.clone()).await.unwrap_err(),
        Engine::builder().store(options.clone()).start().await.unwrap_err(),
        Engine::builder().store(options.clone()).import().await.unwrap_err(),
    ] {
        assert_eq!(refused.kind(), ErrorKind::Misconfigured, "{refused}");
        assert!(refused.to_string().contains("tideline tenant restore"), "{refused}");
    }
    assert!(at_record(&service, "HGETALL", &[]).await.into_array().unwrap().is_empty(), "nobody began anew");
    // Even where somebody has.
    at_record(&service, "HSET", &["format", "2", "buckets", "32", "tags", "0123456789abcdef"]).await;
    let refused = Engine::builder().store(fewer).start().await.unwrap_err();
    assert!(refused.to_string().contains("tideline tenant restore"), "{refused}");
    let (is_good, text) = program(&options, &["tenant", "restore"]);
    assert!(is_good && text.contains("decision 1: outbox_posts=200000"), "{text}");
    let fields = |reply: Reply| {
        let flat = reply.into_array().unwrap();
        let mut pairs: Vec<_> = flat.chunks(2).map(|pair| pair[0].bytes().unwrap().to_vec()).collect();
        pairs.sort();
        let of = |name: &str| flat.chunks(2).find(|pair| pair[0].bytes().unwrap() == name.as_bytes());
        (
            pairs,
            ["format", "buckets", "tags", "decision"]
                .map(|name| of(name).unwrap()[1].bytes().unwrap().to_vec()),
        )
    };
    assert_eq!(fields(at_record(&service, "HGETALL", &[]).await), fields(before));
    let other = engine_with(options, much()).await;
    holds_all(&other, people, 0).await;
    eventually("all is well", async || service.health().await.unwrap().is_well).await;
    let nobodys = Store::restore(tenant(40)).await.unwrap_err();
    assert_eq!(nobodys.kind(), ErrorKind::NotFound, "{nobodys}");
}

#[tokio::test]
async fn fences_go_by_the_tenants_rule_of_replicas() {
    // H65. An instance with `absent` struck what others had promised to be on replicas, without any fence.
    let cluster = own(replicated()).await;
    let with = |replicas| {
        let router = RouterSettings { replicas, deadline: Duration::from_secs(3), ..impatient() };
        StoreOptions { router, prefix: "rule:".into(), ..options(cluster.urls()) }
    };
    let first = engine_with(with(Replicas::Required), small()).await;
    let second = engine_with(with(Replicas::Absent), small()).await;
    let server = cluster.nodes()[0].addr();
    let replica = cluster.replica_of(&server).await.unwrap();
    let is_here = |account: &AccountId| {
        second.store().router().owner(slot_of(&second, *account)) == Some(server.clone())
    };
    let author = accounts(&second, 30).await.into_iter().find(is_here);
    replica.freeze().unwrap();
    let post = tideline::PostAck::Replicated;
    let refused = second.publish_with(author.unwrap(), &Draft::text("x"), post).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unknown, "{refused}");
    replica.thaw().unwrap();
    assert!(told(&second).await.contains("replicas is absent here and required with the tenant"));
    // Nor does it begin what could not be fenced.
    let cheap = RegistrationSettings { memory_kib: 8, passes: 1, ..RegistrationSettings::default() };
    let registration = Registration::new(&second, cheap).await.unwrap();
    replica.kill().unwrap();
    let mut number = 0;
    eventually("a sign-up beside a server without a replica is refused", async || {
        number += 1;
        let signed_up = registration.sign_up(&SignUp::new(format!("ada{number}"), "correct horse")).await;
        signed_up.is_err_and(|e| e.to_string().contains("has no replica"))
    })
    .await;
    drop(first);
}
