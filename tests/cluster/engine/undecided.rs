//! Data of a tenant that has decided nothing yet: what an import or an earlier release has left. And decisions that
//! were lost.

use std::time::Duration;

use tideline::cluster::{Command, Request};
use tideline::post::Draft;
use tideline::sharded::{Member, SortedSet};
use tideline::{
    AccountId, Engine, EngineSettings, FsckOptions, ImportedEdge, ImportedPost, NewAccount, NotificationKind,
    Query, Store, StoreOptions,
};

use super::super::harness::{PATIENCE, eventually};
use super::decisions::{
    at_record, home_length, listed, little, much, of_tag, one_more, program, publish, told, walked,
};
use super::{accounts, at_bucket_key, drained, engine_with, notifications, small, tenant};

/// All settings as they are typed, but these.
fn all_but(other: &[&str]) -> Vec<String> {
    let all = [
        "outbox_posts=100000",
        "mentions_max=500",
        "tag_posts_max=500",
        "public_posts=0",
        "home_posts=100",
        "dormant_after_days=never",
        "replicas=preferred",
    ];
    let of = |assignment: &str| assignment.split('=').next().unwrap().to_owned();
    let kept = all.iter().filter(|known| !other.iter().any(|other| of(other) == of(known)));
    kept.chain(other).map(ToString::to_string).collect()
}

fn set(options: &StoreOptions, assignments: &[String], more: &[&str]) -> (bool, String) {
    let words = ["tenant", "set"].into_iter().chain(assignments.iter().map(String::as_str));
    program(options, &words.chain(more.iter().copied()).collect::<Vec<_>>())
}

fn account(id: u64) -> AccountId {
    AccountId::new(id).unwrap()
}

/// What an import leaves: an author with so many posts, of which the first `named` mention a reader and have a hashtag.
async fn imported(options: &StoreOptions, posts: u64, named: u64) -> [AccountId; 2] {
    let mut importer = Engine::builder().store(options.clone()).settings(little()).import().await.unwrap();
    let [author, reader] = [account(7), account(8)];
    let new = |id| NewAccount { id: Some(id), ..NewAccount::default() };
    importer.accounts(&[new(author), new(reader)]).await.unwrap();
    importer.edges(&[ImportedEdge { reader, author, since_ms: 1_000 }]).await.unwrap();
    let post = |n| {
        let draft = Draft::text("x");
        let draft = if n < named { draft.mentions([reader]).hashtags(["tide"]) } else { draft };
        ImportedPost { author, created_ms: 1_500_000_000_000 + n * 1_000, draft }
    };
    importer.posts(&(0..posts).map(post).collect::<Vec<_>>()).await.unwrap();
    importer.finish().await.unwrap();
    [author, reader]
}

/// A member of a list of posts, in stored form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Raw(Vec<u8>);

impl Member for Raw {
    type Bytes = Vec<u8>;

    fn to_bytes(&self) -> Vec<u8> {
        self.0.clone()
    }

    fn from_bytes(bytes: &[u8]) -> tideline::Result<Self> {
        Ok(Self(bytes.to_vec()))
    }

    fn bucket(&self, _: tideline::bucket::Buckets) -> tideline::bucket::Bucket {
        unreachable!("a list of posts is not spread")
    }
}

fn mentions_of(engine: &Engine, reader: AccountId) -> SortedSet<Raw> {
    engine.store().sets().of_account(reader, "mentions").unwrap().pinned()
}

/// Whether the list of its mentions says that anything has left it.
async fn says_less(engine: &Engine, reader: AccountId) -> bool {
    let of_list = mentions_of(engine, reader).score(&Raw(b"F".to_vec())).await.unwrap();
    let of_authors = engine.store().sets().of_account::<AccountId>(reader, "mentions-left").unwrap();
    of_list.is_some() || of_authors.len().await.unwrap() > 0
}

#[tokio::test]
async fn nothing_is_cut_and_no_floor_rises_while_nothing_is_decided() {
    // H140. The first import of a site read a hashtag's whole list again with each post beyond the bound of the tool
    // that imported, and raised its floors: nothing went, but the list says less for good. The first instance then made
    // its own file the tenant's, and cut.
    let options = tenant(40);
    let people = imported(&options, 700, 60).await;
    let [author, reader] = people;
    let service = engine_with(options.clone(), little()).await;
    for n in 1..=12 {
        one_more(&service, people).await;
        assert_eq!(walked(&service, reader, Query::mentions()).await, 60 + n);
    }
    assert_eq!(walked(&service, reader, of_tag()).await, 72);
    assert_eq!(listed(&service, author).await, 712);
    assert!(!says_less(&service, reader).await);
    // It says so, and what to type.
    assert_eq!(service.decision().number, 0);
    let text = told(&service).await;
    assert!(text.contains("nothing was decided yet"), "{text}");
    assert!(text.contains("tideline tenant set outbox_posts=100 mentions_max=20"), "{text}");
    assert!(service.health().await.unwrap().is_well);

    let lower = ["outbox_posts=100", "mentions_max=20", "tag_posts_max=30", "home_posts=16"];
    let all = all_but(&lower);
    let (is_good, said) = set(&options, &all, &["--dry-run"]);
    let says = "612 posts from profiles of 1 accounts, for good; 52 posts from mentions of 1 accounts, for good; 42 \
                posts from timelines of 1 hashtags, for good";
    assert!(is_good && said.contains(says), "{said}");
    let (is_good, said) = set(&options, &all, &["--yes"]);
    assert!(is_good && said.contains(&format!("Decided, number 1. It removed {says}")), "{said}");
    assert_eq!(listed(&service, author).await, 100);
    eventually("the service hears of it", async || service.decision().number == 1).await;
    let text = told(&service).await;
    assert!(!text.contains("nothing was decided"), "{text}");
}

#[tokio::test]
async fn of_those_who_begin_a_tenant_at_once_one_decides_or_nobody() {
    // H145. Layout and decision were written one after the other: an import might begin, and bring data, between the
    // two.
    for _ in 0..8 {
        let options = tenant(40);
        let begin = || engine_with(options.clone(), little());
        let (first, store, second) =
            futures::join!(begin(), Store::open(options.clone()), engine_with(options.clone(), much()));
        store.unwrap();
        assert_eq!(first.decision().number, second.decision().number);
        assert_eq!(
            at_record(&first, "HEXISTS", &["decision"]).await.count().unwrap(),
            u64::from(first.decision().number)
        );
        if first.decision().number == 1 {
            assert_eq!(first.decision(), second.decision());
        }
    }
}

#[tokio::test]
async fn homes_go_by_an_instances_own_bound_until_something_is_decided_and_by_no_tools() {
    // They are filled anew whenever they are needed: growing for ever would cost, and cutting costs nothing for good.
    let options = tenant(40);
    let [author, reader] = imported(&options, 1, 0).await;
    let service = engine_with(options.clone(), much()).await;
    service.warm(reader).await.unwrap();
    publish(&service, author, 300, &Draft::text("x")).await;
    assert!(home_length(&service, reader).await > 300);
    // A tool's bounds are nobody's.
    let tool = Engine::builder().store(options.clone()).settings(little()).assist().await.unwrap();
    publish(&tool, author, 100, &Draft::text("x")).await;
    let repair = FsckOptions { repair: true, pause: Duration::from_millis(50), ..FsckOptions::default() };
    assert!(tool.fsck(&repair, &|_| {}).await.unwrap().is_clean());
    assert!(home_length(&service, reader).await > 400);
    tool.shutdown(PATIENCE).await.unwrap();
    let short = engine_with(options, small()).await;
    publish(&short, author, 50, &Draft::text("x")).await;
    assert!(home_length(&service, reader).await < 60);
    assert_eq!(walked(&service, reader, Query::home()).await, 451);
}

/// H286. A tool brings no settings; what it did, or carried out for an instance that was killed, nobody was told.
#[tokio::test]
async fn a_tool_tells_what_others_did_where_the_service_does() {
    let options = tenant(40);
    let keeps = EngineSettings { keeps_notifications: true, ..small() };
    let service = engine_with(options.clone(), keeps).await;
    let [author, named] = accounts(&service, 2).await[..] else { unreachable!() };
    let tool = Engine::builder().store(options).settings(small()).assist().await.unwrap();
    let post = tool.publish(author, &Draft::text("x").mentions([named])).await.unwrap().id;
    drained(&tool).await;
    let told = notifications::told(&service, named).await;
    assert_eq!(told, [(NotificationKind::Mention, author, Some(post))]);
}

#[tokio::test]
async fn who_decides_first_names_everything() {
    // H141. The service's file had mentions_max = 20000. The operator typed `tideline tenant set home_posts=300` before
    // its first instance of this release: all six of the tool's own values were decided, and only the home's was told.
    let options = tenant(40);
    let [_, reader] = imported(&options, 60, 60).await;
    let (is_good, text) = set(&options, &["home_posts=300".to_owned()], &["--yes"]);
    assert!(!is_good, "{text}");
    for wanted in
        ["nothing was decided yet", "missing: outbox_posts, mentions_max, tag_posts_max", "--as-configured"]
    {
        assert!(text.contains(wanted), "{text}");
    }
    let observer = Engine::builder().store(options.clone()).observe().await.unwrap();
    assert_eq!(observer.decision().number, 0);
    let change = observer.decision().change().set("home_posts", "300").unwrap();
    let refused = observer.decide(&change).await.unwrap_err();
    assert_eq!(refused.kind(), tideline::ErrorKind::Invalid, "{refused}");
    assert!(at_record(&observer, "HGET", &["decision"]).await.is_nil());
    assert_eq!(walked(&observer, reader, Query::mentions()).await, 60);

    // From the service's file, but for what is named.
    let file = std::env::temp_dir().join(format!("tideline-{}.toml", options.prefix.trim_end_matches(':')));
    std::fs::write(&file, "[engine]\nmentions_max = 20000\ntag_posts_max = 20\n").unwrap();
    let path = file.to_str().unwrap();
    let (is_good, text) = program(&options, &["tenant", "set", "--as-configured"]);
    assert!(!is_good && text.contains("--config"), "{text}");
    let configured = ["home_posts=300", "--as-configured", "--config", path];
    let dry = [&["tenant", "set", "--dry-run"], &configured[..]].concat();
    let (is_good, text) = program(&options, &dry);
    for wanted in
        ["mentions_max = 20000", "outbox_posts = 200000", "home_posts = 300", "40 posts from timelines"]
    {
        assert!(is_good && text.contains(wanted), "{text}");
    }
    let (is_good, text) = program(&options, &[&["tenant", "set", "--yes"], &configured[..]].concat());
    std::fs::remove_file(&file).unwrap();
    assert!(is_good && text.contains("Decided, number 1. It removed 40 posts from timelines"), "{text}");
    let service = engine_with(options, little()).await;
    assert_eq!(service.decision().settings.mentions_max, 20_000);
    assert_eq!(walked(&service, reader, Query::mentions()).await, 60);
}

#[tokio::test]
async fn who_decides_asks_the_buckets_before() {
    // H142. The tenant's record had lost decision 2, which buckets and instances knew. The next one got number 2 again,
    // with other bounds: instances went by the lost one, with a number that the buckets knew.
    let options = tenant(40);
    let service = engine_with(options.clone(), much()).await;
    let (is_good, text) = set(&options, &["outbox_posts=300".to_owned()], &["--yes"]);
    assert!(is_good && text.contains("Decided, number 2"), "{text}");
    eventually("the service hears of it", async || service.decision().number == 2).await;
    at_record(&service, "HSET", &["decision", "1", "outbox_posts", "200000"]).await;
    eventually("health says so", async || {
        let health = service.health().await.unwrap();
        !health.is_well && told(&service).await.contains("decision 1")
    })
    .await;
    assert_eq!(service.decision().settings.outbox_posts, 300);
    for more in ["--dry-run", "--yes"] {
        let (is_good, text) = set(&options, &["outbox_posts=100".to_owned()], &[more]);
        assert!(!is_good && text.contains("tideline tenant restore"), "{text}");
    }
    let (is_good, text) = program(&options, &["tenant", "restore"]);
    assert!(is_good && text.contains("decision 2: outbox_posts=300"), "{text}");
    eventually("all is well", async || service.health().await.unwrap().is_well).await;
    let (is_good, text) = set(&options, &["outbox_posts=400".to_owned()], &["--yes"]);
    assert!(is_good && text.contains("Decided, number 3"), "{text}");

    // The same of a record that was begun anew, and says that nothing was decided.
    at_record(&service, "HDEL", &["decision", "outbox_posts"]).await;
    let (is_good, text) = set(&options, &all_but(&[]), &["--yes"]);
    assert!(!is_good && text.contains("tideline tenant restore"), "{text}");
    assert!(program(&options, &["tenant", "restore"]).0);

    // Everybody has lost it but instances that run: they go by what the record says.
    at_record(&service, "HSET", &["outbox_posts", "150"]).await;
    eventually("the record counts", async || service.decision().settings.outbox_posts == 150).await;
}

#[tokio::test]
async fn who_is_behind_raises_no_floor() {
    // H143. An instance that goes by an older decision raised the floors of a list by that one's bound, and only then
    // found that its bucket knows another: nothing went, but the list says less for good.
    let options = tenant(40);
    let service = engine_with(options, little()).await;
    let people = super::accounts(&service, 2).await;
    let [author, reader] = people[..] else { panic!("two were made") };
    at_bucket_key(&service, 'z', reader, "HSET", &["decision", "9"]).await;
    publish(&service, author, 40, &Draft::text("x").mentions([reader])).await;
    assert_eq!(walked(&service, reader, Query::mentions()).await, 40);
    assert!(!says_less(&service, reader).await);
    at_bucket_key(&service, 'z', reader, "HSET", &["decision", "1"]).await;
    publish(&service, author, 1, &Draft::text("x").mentions([reader])).await;
    assert_eq!(walked(&service, reader, Query::mentions()).await, 20);
    assert!(says_less(&service, reader).await);
}

#[tokio::test]
async fn a_list_that_is_longer_than_any_call_is_cut_all_the_same() {
    // H144. Beyond 100,000 posts that were to go, a cut was refused: each post that named the list left a task that
    // never ended.
    let options = tenant(40);
    let service = engine_with(options.clone(), little()).await;
    let people = super::accounts(&service, 2).await;
    let [author, reader] = people[..] else { panic!("two were made") };
    let post = |n: u64| {
        let ms = 1_500_000_000_000 + n;
        let member = [(ms << 16).to_be_bytes(), author.get().to_be_bytes()].concat();
        #[expect(clippy::cast_precision_loss, reason = "milliseconds are below 2^53")]
        (Raw(member), ms as f64)
    };
    let posts: Vec<_> = (0..101_000).map(post).collect();
    for part in posts.chunks(20_000) {
        mentions_of(&service, reader).add(part).await.unwrap();
    }
    service.publish(author, &Draft::text("x").mentions([reader])).await.unwrap();
    // One task cuts a hundred thousand entries: some seconds of a server's time, of which a busy machine has few.
    service.drained(PATIENCE * 4).await.unwrap();
    assert_eq!(mentions_of(&service, reader).len().await.unwrap(), 21);
    let floor = mentions_of(&service, reader).score(&Raw(b"F".to_vec())).await.unwrap();
    assert_eq!(floor, Some(posts[100_980].1));
}

#[tokio::test]
async fn a_record_that_is_lost_while_nothing_was_decided_is_told_and_comes_back() {
    // H137. No bucket knew of a tenant that had decided nothing. Slot 0 was lost, and whoever started next began it
    // anew: with another key of hashtags, 1,024 buckets, and its own settings as the decision, which nobody had named.
    let options = tenant(40);
    let [_, reader] = imported(&options, 30, 30).await;
    let store = Store::open_existing(options.clone()).await.unwrap();
    let command = |word: &str| Command::new(word).arg(format!("{}{{06S}}i", options.prefix));
    let record = async || {
        let fields = store.router().call(Request::read(0, command("HGETALL"))).await.unwrap();
        let fields = fields.into_array().unwrap();
        let mut fields: Vec<_> =
            fields.chunks(2).map(|pair| [0, 1].map(|n| pair[n].bytes().unwrap().to_vec())).collect();
        fields.sort();
        fields
    };
    let lose = async || drop(store.router().call(Request::write(0, command("DEL"))).await.unwrap());
    let before = record().await;
    assert_eq!(before.len(), 3, "{before:?}");
    lose().await;
    let forgetful = StoreOptions { buckets: None, ..options.clone() };
    for refused in [
        Engine::builder().store(forgetful.clone()).settings(little()).start().await.unwrap_err(),
        Store::open(forgetful).await.unwrap_err(),
    ] {
        assert!(refused.to_string().contains("tideline tenant restore"), "{refused}");
    }
    assert_eq!(Store::restore(options.clone()).await.unwrap().number, 0);
    assert_eq!(record().await, before);
    // Instances tell buckets that have lost it, and say so themselves.
    let buckets = store.keys().buckets();
    for bucket in buckets.all() {
        let known = format!("{}{{{}}}z", options.prefix, buckets.tag(bucket));
        let unlink = Command::new("UNLINK").arg(&known);
        store.router().call(Request::write(buckets.slot(bucket), unlink)).await.unwrap();
    }
    let service = engine_with(options.clone(), little()).await;
    assert_eq!(walked(&service, reader, Query::mentions()).await, 30);
    assert_eq!(walked(&service, reader, of_tag()).await, 30);
    eventually("buckets know it again", async || Store::restore(options.clone()).await.is_ok()).await;
    lose().await;
    eventually("health says so", async || told(&service).await.contains("tideline tenant restore")).await;
    eventually("all of them know it", async || Store::restore(options.clone()).await.is_ok()).await;
    assert_eq!(record().await, before);
}
