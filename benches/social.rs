//! Pages with what stands around posts against the books' commands for the same: a page of 20 with what the reader
//! likes and has bookmarked, beside ZREVRANGE and 20 HGETALL; and one with 20 replies and 20 likers of each post, with
//! their authors. 64 readers at once on one instance, with caches and without, rounds take turns.

#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "figures for people")]
#![allow(missing_docs, reason = "a benchmark")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use futures::stream::{self, StreamExt as _};
use support::{account, cluster, measure, median, own_cpu, us_each};
use tideline::cluster::{Batch, Command, Replicas, Reply, Request, Router, RouterSettings};
use tideline::keys::slot_of_key;
use tideline::post::{Draft, PostRef};
use tideline::profile::ProfileUpdate;
use tideline::registration::{Registration, RegistrationSettings};
use tideline::{AccountId, Engine, EngineSettings, ImportedPost, NewAccount, Query, StoreOptions};

const READERS: u64 = 1_000;
const AUTHORS: u64 = 200;
/// Authors that each reader follows.
const FOLLOWED: u64 = 60;
/// Who answers and likes.
const OTHERS: u64 = 500;
const POSTS_EACH: u64 = 10;
const ENTRIES: usize = 400;
const PAGE: usize = 20;
const REPLIES: u64 = 20;
const LIKERS: u64 = 20;
/// Posts that each reader likes, and has bookmarked.
const LIKES: u64 = 100;
const BOOKMARKS: u64 = 20;
const AT_ONCE: usize = 64;
const ROUNDS: usize = 5;

/// Who reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeliveryWay {
    Books,
    /// An engine as it is by default.
    Cached,
    /// The same, with profiles and whom posts mention.
    Profiled,
    /// What readers have done is remembered nowhere: the first page of each in a while.
    Unremembered,
    /// Nor are posts and accounts.
    Uncached,
}

/// What is read: name, by whom, and whether with replies and likers. What stands above others is what they are compared
/// with.
const ROWS: [(&str, DeliveryWay, bool); 10] = [
    ("ZREVRANGE + 20 HGETALL (the books')", DeliveryWay::Books, false),
    ("hydrated, with the reader's ties", DeliveryWay::Cached, false),
    ("the same, with profiles and whom posts mention", DeliveryWay::Profiled, false),
    ("the same, ties not remembered", DeliveryWay::Unremembered, false),
    ("the same, nothing remembered", DeliveryWay::Uncached, false),
    ("the books' for 20 posts, 400 replies, 400 likes", DeliveryWay::Books, true),
    ("20 posts, 20 replies and likers each", DeliveryWay::Cached, true),
    ("the same, with profiles and whom posts mention", DeliveryWay::Profiled, true),
    ("the same, ties not remembered", DeliveryWay::Unremembered, true),
    ("the same, nothing remembered", DeliveryWay::Uncached, true),
];

fn author(n: u64) -> AccountId {
    account(n)
}

fn other(n: u64) -> AccountId {
    account(500_000 + n % OTHERS)
}

fn reader(n: u64) -> AccountId {
    account(1_000_000 + n % READERS)
}

fn followed(n: u64) -> impl Iterator<Item = u64> {
    (0..FOLLOWED).map(move |i| (n * 7 + i * 3) % AUTHORS)
}

/// Reads in a round: the large pages cost fifty times as much.
fn reads(full: bool) -> u64 {
    if full { 500 } else { 10_000 }
}

#[tokio::main]
async fn main() {
    let cluster = cluster(3).await;
    let router = RouterSettings { replicas: Replicas::Absent, ..RouterSettings::default() };
    let options = StoreOptions { router, ..StoreOptions::new(cluster.urls()) };
    let cached = stock(&options).await;
    let with = async |settings: EngineSettings| {
        Engine::builder().store(options.clone()).settings(settings).start().await.expect("an engine")
    };
    let profiled = with(EngineSettings { shows_profiles: true, ..EngineSettings::default() }).await;
    let unremembered = with(EngineSettings { ties_cached: 1, ..EngineSettings::default() }).await;
    let nothing =
        EngineSettings { ties_cached: 1, visible_within: Duration::ZERO, ..EngineSettings::default() };
    let uncached = with(nothing).await;
    let router = cached.store().router().clone();
    stock_books(&router).await;

    let mut costs: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
    for round in 0..=ROUNDS {
        for (number, (_, way, full)) in ROWS.into_iter().enumerate() {
            let engine = match way {
                DeliveryWay::Books | DeliveryWay::Cached => &cached,
                DeliveryWay::Profiled => &profiled,
                DeliveryWay::Unremembered => &unremembered,
                DeliveryWay::Uncached => &uncached,
            };
            let read = |n: u64| {
                let (engine, router) = (engine.clone(), router.clone());
                async move {
                    match (way, full) {
                        (DeliveryWay::Books, false) => drop(books_page(&router, n % READERS).await),
                        (DeliveryWay::Books, true) => books_full(&router, n % READERS).await,
                        _ => read_page(&engine, n, full, way == DeliveryWay::Profiled).await,
                    }
                }
            };
            let many = reads(full);
            let reading = stream::iter(0..many).map(read).buffer_unordered(AT_ONCE).collect::<Vec<()>>();
            let (cost, _) = measure(&cluster, own_cpu, reading).await;
            // The first round warms up.
            if round > 0 {
                let each = |time| us_each(time, many as usize);
                costs.entry(number).or_default().push((each(cost.server), each(cost.client)));
            }
        }
    }
    print(&costs);
    cluster.down().await.expect("the cluster ends");
}

fn print(costs: &BTreeMap<usize, Vec<(f64, f64)>>) {
    let total = |number: usize| median(&costs[&number].iter().map(|(s, c)| s + c).collect::<Vec<_>>());
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header(["page", "server us", "client us", "CPU us (range)", "against the books'"]);
    let mut books = 0;
    for (number, (name, way, _)) in ROWS.iter().enumerate() {
        if *way == DeliveryWay::Books {
            books = number;
        }
        let of =
            |side: fn(&(f64, f64)) -> f64| median(&costs[&number].iter().map(side).collect::<Vec<_>>()).0;
        let (all, low, high) = total(number);
        table.add_row([
            (*name).to_owned(),
            format!("{:.1}", of(|c| c.0)),
            format!("{:.1}", of(|c| c.1)),
            format!("{all:.1} ({low:.1}-{high:.1})"),
            format!("{:.2} x", all / total(books).0),
        ]);
    }
    println!("reads by {AT_ONCE} at once, medians of {ROUNDS} rounds\n{table}");
}

async fn read_page(engine: &Engine, n: u64, full: bool, profiled: bool) {
    let query = Query::home().limit(PAGE).with_ties();
    let query = if full { query.with_replies(REPLIES as usize).with_likers(LIKERS as usize) } else { query };
    let page = engine.as_reader(reader(n)).read(&query).await.expect("a page");
    assert_eq!(page.posts.len(), PAGE);
    let marked = |post: &tideline::PagePost| post.ties.is_some();
    assert!(page.posts.iter().all(marked));
    let named = |post: &tideline::PagePost| {
        let is_named = |account: &std::sync::Arc<tideline::Account>| account.profile.is_some();
        post.account.as_ref().is_some_and(is_named)
            && post.mentioned.iter().filter(|a| is_named(a)).count() == 1
    };
    assert_eq!(page.posts.iter().all(named), profiled);
    if full {
        let around = |post: &tideline::PagePost| (post.replies.len() as u64, post.likers.len() as u64);
        assert!(
            page.posts.iter().all(|post| around(post) == (REPLIES, LIKERS)),
            "{:?}",
            around(&page.posts[0])
        );
    }
}

/// Accounts, posts, full homes; and around the newest post of each author replies and likes.
async fn stock(options: &StoreOptions) -> Engine {
    let mut importer = Engine::builder().store(options.clone()).import().await.expect("an import");
    let all = (0..AUTHORS).map(author).chain((0..OTHERS).map(other)).chain((0..READERS).map(reader));
    let all: Vec<NewAccount> = all.map(|id| NewAccount { id: Some(id), ..NewAccount::default() }).collect();
    importer.accounts(&all).await.expect("accounts");
    let mut ids: Vec<Vec<PostRef>> = vec![Vec::new(); AUTHORS as usize];
    for n in 0..POSTS_EACH {
        let post = |at: u64| ImportedPost {
            author: author(at),
            created_ms: 1_700_000_000_000 + n * 60_000 + at,
            draft: Draft::text(format!("Post {n}: {}", "a few words about the sea and the wind. ".repeat(5)))
                .mentions([other(at)]),
        };
        let posts: Vec<ImportedPost> = (0..AUTHORS).map(post).collect();
        for (at, id) in importer.posts(&posts).await.expect("posts").into_iter().enumerate() {
            ids[at].push(PostRef { id, author: posts[at].author });
        }
    }
    importer.finish().await.expect("the end of the import");

    let engine = Engine::builder().store(options.clone()).start().await.expect("an engine");
    introduce(&engine).await;
    let sets = engine.store().sets();
    for n in 0..READERS {
        let follows: Vec<_> = followed(n).map(|a| (author(a), 1.6e12)).collect();
        let set = sets.of_account::<AccountId>(reader(n), "following").expect("a set");
        set.pinned().add(&follows).await.expect("what it follows");
        for (what, many) in [("likes", LIKES), ("bookmarks", BOOKMARKS)] {
            let mine = (0..many)
                .map(|i| ids[((n * 7 + i * 3) % AUTHORS) as usize][(POSTS_EACH - 1 - i % 3) as usize]);
            let mine: Vec<_> = mine.map(|post| (post, 1.7e12)).collect();
            sets.of_account::<PostRef>(reader(n), what)
                .expect("a set")
                .pinned()
                .add(&mine)
                .await
                .expect("ties");
        }
    }
    let home = |n: u64| {
        let of = followed(n).flat_map(|a| ids[a as usize].iter());
        let mut posts: Vec<(u64, u64)> = of.map(|post| (post.id.get(), post.author.get())).collect();
        posts.sort_unstable();
        posts.drain(..posts.len().saturating_sub(ENTRIES));
        (reader(n), posts)
    };
    let homes: Vec<_> = (0..READERS).map(home).collect();
    for chunk in homes.chunks(200) {
        engine.stock_homes(chunk).await.expect("homes");
    }
    let newest: Vec<PostRef> = ids.iter().map(|posts| posts[POSTS_EACH as usize - 1]).collect();
    let around = (0u64..).zip(&newest).flat_map(|(a, post)| (0..REPLIES).map(move |i| (a * 31 + i, *post)));
    let write = |(n, post): (u64, PostRef)| {
        let engine = engine.clone();
        async move {
            let draft = Draft::text("quite so, and more words about the sea and the wind").reply_to(post);
            engine.publish(other(n), &draft).await.expect("a reply");
            engine.like(other(n + 7), post.id).await.expect("a like");
        }
    };
    stream::iter(around).map(write).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    engine.drained(Duration::from_secs(60)).await.expect("all is listed");
    engine
}

/// Whoever writes gets a profile.
async fn introduce(engine: &Engine) {
    let registration = Registration::new(engine, RegistrationSettings::default()).await;
    let registration = registration.expect("a registration");
    for somebody in (0..AUTHORS).map(author).chain((0..OTHERS).map(other)) {
        let update = ProfileUpdate {
            display_name: Some(format!("Number {somebody}")),
            bio: Some("a short text about who they are, and where the sea is".into()),
            avatar: Some(format!("https://media.example/avatars/{somebody}.png")),
            ..ProfileUpdate::default()
        };
        registration.update_profile(somebody, &update).await.expect("a profile");
    }
}

fn at(key: &str, command: Command) -> Request {
    Request::read(slot_of_key(key.as_bytes()), command)
}

fn hash(key: &str, fields: &[&str], value: u64, text: &str) -> Request {
    let set = fields.iter().fold(Command::new("HSET").arg(key), |set, field| set.arg(*field).arg(value));
    Request::write(slot_of_key(key.as_bytes()), set.arg("message").arg(text))
}

/// Homes, replies and likes as sorted sets, posts and accounts as hashes of ten fields.
async fn stock_books(router: &Router) {
    let post = ["id", "uid", "login", "posted", "likes", "reposts", "replies", "visibility", "language"];
    let person = ["id", "login", "name", "followers", "following", "posts", "signup", "state", "locked"];
    let long = "a few words about the sea and the wind. ".repeat(5);
    let mut batch = Batch::new();
    for a in 0..AUTHORS {
        batch.push(hash(&format!("status:{a}"), &post, a, &long));
        let [replies, likers] = books_lists(a);
        for i in 0..REPLIES {
            let id = AUTHORS + a * REPLIES + i;
            let text = "quite so, and more words about the sea and the wind";
            let reply = hash(&format!("status:{id}"), &post, (a * 31 + i) % OTHERS, text);
            batch.push(reply);
            for (key, member) in [(&replies, id), (&likers, (a * 31 + i + 7) % OTHERS)] {
                let add = Command::new("ZADD").arg(key).arg(1_700_000_000_000 + i).arg(member);
                batch.push(Request::write(slot_of_key(key.as_bytes()), add));
            }
        }
    }
    for n in 0..OTHERS {
        batch.push(hash(&format!("user:{n}"), &person, n, "a short text about who they are"));
    }
    for n in 0..READERS {
        let key = format!("home:{n}");
        let mut add = Command::new("ZADD").arg(&key);
        for (i, a) in (0u64..).zip(followed(n)) {
            add.push(1_700_000_000_000 + i).push(a);
        }
        batch.push(Request::write(slot_of_key(key.as_bytes()), add));
    }
    for answer in router.run(batch).await {
        answer.expect("an answer").ok().expect("stocking");
    }
}

fn books_lists(post: u64) -> [String; 2] {
    [format!("replies:{post}"), format!("likers:{post}")]
}

async fn replies_to(router: &Router, batch: Batch) -> Vec<Reply> {
    let answers = router.run(batch).await.into_iter();
    answers.map(|answer| answer.expect("an answer").ok().expect("a reply")).collect()
}

fn numbers(reply: Reply) -> Vec<u64> {
    reply.into_array().expect("members").iter().map(|n| n.count().expect("a number")).collect()
}

fn all_of(kind: &str, ids: impl IntoIterator<Item = u64>) -> Batch {
    let get = |id: u64| {
        let key = format!("{kind}:{id}");
        at(&key, Command::new("HGETALL").arg(&key))
    };
    ids.into_iter().map(get).collect()
}

async fn books_page(router: &Router, n: u64) -> Vec<u64> {
    let key = format!("home:{n}");
    let range = Command::new("ZREVRANGE").arg(&key).arg("0").arg(PAGE - 1);
    let ids = numbers(router.call(at(&key, range)).await.expect("a page"));
    assert_eq!(ids.len(), PAGE);
    let posts = replies_to(router, all_of("status", ids.iter().copied())).await;
    assert!(posts.into_iter().all(|post| post.into_array().expect("fields").len() == 20));
    ids
}

/// The page, the lists of each post, each reply on them, and everybody who wrote one or likes something.
async fn books_full(router: &Router, n: u64) {
    let posts = books_page(router, n).await;
    let newest = |key: String, most: u64| {
        let range = Command::new("ZREVRANGE").arg(&key).arg("0").arg(most - 1);
        at(&key, range)
    };
    let lists = posts.iter().flat_map(|post| {
        let [replies, likers] = books_lists(*post);
        [newest(replies, REPLIES), newest(likers, LIKERS)]
    });
    let lists: Vec<Vec<u64>> = replies_to(router, lists.collect()).await.into_iter().map(numbers).collect();
    let replies = lists.iter().step_by(2).flatten().copied();
    let mut people: BTreeSet<u64> = lists.iter().skip(1).step_by(2).flatten().copied().collect();
    let replies = replies_to(router, all_of("status", replies)).await;
    assert_eq!(replies.len() as u64, PAGE as u64 * REPLIES);
    for reply in replies {
        let fields = reply.into_array().expect("fields");
        people.insert(fields[3].count().expect("who wrote it"));
    }
    let people = replies_to(router, all_of("user", people)).await;
    assert!(people.into_iter().all(|person| person.into_array().expect("fields").len() == 20));
}
