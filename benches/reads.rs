//! Home pages against the books': a page of 20 ids beside a bare ZREVRANGE, a hydrated page beside ZREVRANGE and 20
//! HGETALL; and pages by importance beside those by time.
//! 64 readers at once on one instance, warm caches, rounds take turns.

#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "figures for people")]
#![allow(missing_docs, reason = "a benchmark")]

mod support;

use std::collections::BTreeMap;

use comfy_table::Table;
use comfy_table::presets::ASCII_MARKDOWN;
use futures::stream::{self, StreamExt as _};
use support::{account, cluster, measure, median, own_cpu, us_each};
use tideline::cluster::{Batch, Command, Replicas, Request, Router, RouterSettings};
use tideline::keys::slot_of_key;
use tideline::post::Draft;
use tideline::{
    AccountId, Engine, ImportedEdge, ImportedPost, Mode, NewAccount, PostId, Query, Range, RankedFeed,
    RankedQuery, StoreOptions,
};

const READERS: u64 = 4_000;
/// Authors whose posts are delivered; each reader follows some.
const PUSHED: u64 = 200;
const FOLLOWED: u64 = 60;
/// Authors that are pulled: so many of them each reader follows.
const PULLED: [u64; 3] = [0, 5, 20];
const POSTS_EACH: u64 = 20;
const ENTRIES: usize = 400;
const BOOKS_ENTRIES: u64 = 112;
const PAGE: usize = 20;
/// Later than everything that is stocked.
const NOW_MS: u64 = 1_800_000_000_000;
const AT_ONCE: usize = 64;
const READS: u64 = 20_000;
const ROUNDS: usize = 7;

/// The readers that follow so many pulled authors have numbers from here on.
fn reader(group: usize, n: u64) -> AccountId {
    account(1_000_000 * (group as u64 + 1) + n)
}

fn pushed(n: u64) -> AccountId {
    account(n)
}

fn pulled(n: u64) -> AccountId {
    account(500_000 + n)
}

#[tokio::main]
async fn main() {
    let cluster = cluster(3).await;
    let router = RouterSettings { replicas: Replicas::Absent, ..RouterSettings::default() };
    let options = StoreOptions { router, ..StoreOptions::new(cluster.urls()) };
    let engine = stock(&options).await;
    let router = engine.store().router().clone();
    stock_books(&router).await;

    let mut costs: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
    let names = [
        "ZREVRANGE of 20 (the books')",
        "20 ids, none pulled",
        "20 ids, 5 authors pulled",
        "20 ids, 20 authors pulled",
        "ZREVRANGE + 20 HGETALL (the books')",
        "hydrated, none pulled",
        "hydrated, 5 authors pulled",
        "stored timeline, 60 followees asked (the books' pull)",
        "a look that finds no news: ZREVRANGEBYSCORE (the books')",
        "a look that finds no news, none pulled",
        "by importance, none pulled",
        "by importance, 5 authors pulled",
    ];
    for round in 0..=ROUNDS {
        for number in 0..names.len() {
            let read = |n: u64| {
                let (engine, router) = (engine.clone(), router.clone());
                async move {
                    match number {
                        0 => drop(books_ids(&router, n % READERS).await),
                        4 => books_hydrated(&router, n % READERS).await,
                        7 => drop(books_pull(&router, n % READERS).await),
                        8 => books_look(&router, n % READERS).await,
                        9 => look(&engine, reader(0, n % READERS)).await,
                        10.. => read_ranked(&engine, reader(number - 10, n % READERS)).await,
                        1..=3 => read_page(&engine, reader(number - 1, n % READERS), false).await,
                        _ => read_page(&engine, reader(number - 5, n % READERS), true).await,
                    }
                }
            };
            let reading = stream::iter(0..READS).map(read).buffer_unordered(AT_ONCE).collect::<Vec<()>>();
            let (cost, _) = measure(&cluster, own_cpu, reading).await;
            // The first round warms up.
            if round > 0 {
                let each = |time| us_each(time, READS as usize);
                costs.entry(number).or_default().push((each(cost.server), each(cost.client)));
            }
        }
    }
    print(&names, &costs);
    cluster.down().await.expect("the cluster ends");
}

/// The table of what each kind of page costs, server and client, by their numbers.
fn print(names: &[&str], costs: &BTreeMap<usize, Vec<(f64, f64)>>) {
    let total = |number: usize| median(&costs[&number].iter().map(|(s, c)| s + c).collect::<Vec<_>>());
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header(["page", "server us", "client us", "CPU us (range)", "beside the books', or by time"]);
    for (number, name) in names.iter().enumerate() {
        let of =
            |side: fn(&(f64, f64)) -> f64| median(&costs[&number].iter().map(side).collect::<Vec<_>>()).0;
        let (all, low, high) = total(number);
        let books = total(match number {
            4..=6 => 4,
            8 | 9 => 8,
            // A page by importance beside the same one by time.
            10.. => number - 5,
            _ => 0,
        })
        .0;
        table.add_row([
            (*name).to_owned(),
            format!("{:.1}", of(|c| c.0)),
            format!("{:.1}", of(|c| c.1)),
            format!("{all:.1} ({low:.1}-{high:.1})"),
            format!("{:.2} x", all / books),
        ]);
    }
    println!("{READS} reads a round by {AT_ONCE} at once, medians of {ROUNDS} rounds\n{table}");
}

async fn read_page(engine: &Engine, reader: AccountId, hydrate: bool) {
    let query = Query { hydrate, ..Query::home().limit(PAGE) };
    let page = engine.as_reader(reader).read(&query).await.expect("a page");
    assert_eq!(page.posts.len(), PAGE);
}

async fn read_ranked(engine: &Engine, reader: AccountId) {
    let query = RankedQuery::of(RankedFeed::Home).limit(PAGE);
    let page = engine.as_reader(reader).read_ranked(&query).await.expect("a page");
    assert!(page.posts.len() == PAGE && page.next.is_some());
}

/// Looks for what is newer than everything.
async fn look(engine: &Engine, reader: AccountId) {
    let since_id = PostId::from_u64(NOW_MS << 16).ok();
    let query = Query::home().limit(PAGE).range(Range { since_id, ..Range::default() });
    assert!(engine.as_reader(reader).read(&query).await.expect("a page").posts.is_empty());
}

/// Accounts, edges, posts and full homes.
async fn stock(options: &StoreOptions) -> Engine {
    let mut importer = Engine::builder().store(options.clone()).import().await.expect("an import");
    let of = |id, mode| NewAccount { id: Some(id), mode, ..NewAccount::default() };
    let mut accounts: Vec<NewAccount> = (0..PUSHED).map(|n| of(pushed(n), Mode::Push)).collect();
    accounts.extend((0..20).map(|n| of(pulled(n), Mode::Pull)));
    let readers = || (0..PULLED.len()).flat_map(|group| (0..READERS).map(move |n| (group, n)));
    accounts.extend(readers().map(|(group, n)| of(reader(group, n), Mode::Push)));
    importer.accounts(&accounts).await.expect("accounts");
    let mut ids = BTreeMap::new();
    for n in 0..POSTS_EACH {
        let authors = (0..PUSHED).map(pushed).chain((0..20).map(pulled));
        let post = |(at, author)| ImportedPost {
            author,
            created_ms: 1_700_000_000_000 + n * 60_000 + at,
            draft: Draft::text(format!(
                "Post number {n}: {}",
                "a few words about the sea and the wind. ".repeat(5)
            )),
        };
        let posts: Vec<ImportedPost> = (0..).zip(authors).map(post).collect();
        for (id, post) in importer.posts(&posts).await.expect("posts").into_iter().zip(&posts) {
            ids.entry(post.author).or_insert_with(Vec::new).push(id.get());
        }
    }
    importer.finish().await.expect("the end of the import");

    let engine = Engine::builder().store(options.clone()).start().await.expect("an engine");
    let followed = |n: u64| (0..FOLLOWED).map(move |i| pushed((n * 7 + i * 3) % PUSHED));
    let edge = |reader, author| ImportedEdge { reader, author, since_ms: 1_600_000_000_000 };
    for (group, n) in readers() {
        let of = reader(group, n);
        let set = engine.store().sets().of_account::<AccountId>(of, "following").expect("a set");
        let authors = followed(n).chain((0..PULLED[group]).map(pulled));
        let pairs: Vec<_> = authors.map(|a| (edge(of, a).author, 1.6e12)).collect();
        set.pinned().add(&pairs).await.expect("what it follows");
    }
    let home = |(group, n): (usize, u64)| {
        let authors: Vec<AccountId> = followed(n).collect();
        let mut posts: Vec<(u64, u64)> =
            authors.iter().flat_map(|a| ids[a].iter().map(|id| (*id, a.get()))).collect();
        posts.sort_unstable();
        posts.drain(..posts.len() - ENTRIES);
        (reader(group, n), posts)
    };
    for chunk in readers().collect::<Vec<_>>().chunks(200) {
        let homes: Vec<_> = chunk.iter().map(|of| home(*of)).collect();
        engine.stock_homes(&homes).await.expect("homes");
    }
    for (group, n) in readers() {
        let marks: Vec<AccountId> = (0..PULLED[group]).map(pulled).collect();
        engine.stock_marks(reader(group, n), &marks).await.expect("marks");
    }
    engine
}

fn books_home(n: u64) -> String {
    format!("home:{}", reader(0, n))
}

fn books_post(n: u64) -> String {
    format!("status:{n}")
}

/// Homes as sorted sets, posts as hashes of ten fields.
async fn stock_books(router: &Router) {
    let posts = PUSHED * POSTS_EACH;
    let mut batch = Batch::new();
    for post in 0..posts {
        let key = books_post(post);
        let mut set = Command::new("HSET").arg(&key);
        for field in ["id", "uid", "login", "posted", "likes", "reposts", "replies", "visibility", "language"]
        {
            set.push(field).push(post);
        }
        set.push("message").push("a few words about the sea and the wind. ".repeat(5));
        batch.push(Request::write(slot_of_key(key.as_bytes()), set));
    }
    for n in 0..READERS {
        let key = books_home(n);
        let mut add = Command::new("ZADD").arg(&key);
        for entry in 0..BOOKS_ENTRIES {
            add.push(1_700_000_000_000 + entry).push((n * 31 + entry * 17) % posts);
        }
        batch.push(Request::write(slot_of_key(key.as_bytes()), add));
    }
    for author in 0..PUSHED {
        let [last, outbox] = books_author(author);
        let set = Command::new("SET").arg(&last).arg(1_700_000_000_000u64);
        batch.push(Request::write(slot_of_key(last.as_bytes()), set));
        let add = Command::new("ZADD").arg(&outbox).arg(1_700_000_000_000u64).arg(author * POSTS_EACH);
        batch.push(Request::write(slot_of_key(outbox.as_bytes()), add));
    }
    for answer in router.run(batch).await {
        answer.expect("an answer").ok().expect("stocking");
    }
}

async fn books_ids(router: &Router, n: u64) -> Vec<u64> {
    let key = books_home(n);
    let range = Command::new("ZREVRANGE").arg(&key).arg("0").arg(PAGE - 1);
    let reply = router.call(Request::read(slot_of_key(key.as_bytes()), range)).await.expect("a page");
    let ids = reply.into_array().expect("ids");
    assert_eq!(ids.len(), PAGE);
    ids.iter().map(|id| id.count().expect("a number")).collect()
}

async fn books_look(router: &Router, n: u64) {
    let key = books_home(n);
    let range = Command::new("ZREVRANGEBYSCORE").arg(&key).arg("+inf").arg(NOW_MS);
    let range = range.arg("LIMIT").arg("0").arg(PAGE);
    let reply = router.call(Request::read(slot_of_key(key.as_bytes()), range)).await.expect("a page");
    assert!(reply.into_array().expect("ids").is_empty());
}

/// The time of an author's last post, and its posts.
fn books_author(author: u64) -> [String; 2] {
    [format!("last:{author}"), format!("outbox:{author}")]
}

/// Pull on read, as textbooks have it: whoever of the followees has posted since the newest entry of the stored
/// timeline is asked for what is new; that goes into the timeline, and the page comes out of it.
async fn books_pull(router: &Router, n: u64) -> Vec<u64> {
    let at = |key: &str, command: Command| Request::read(slot_of_key(key.as_bytes()), command);
    let home = books_home(n);
    let newest = Command::new("ZREVRANGE").arg(&home).arg("0").arg("0").arg("WITHSCORES");
    let followees: Vec<u64> = (0..FOLLOWED).map(|i| (n * 7 + i * 3) % PUSHED).collect();
    let mut batch = Batch::new();
    batch.push(at(&home, newest));
    for author in &followees {
        let [last, _] = books_author(*author);
        batch.push(at(&last, Command::new("GET").arg(&last)));
    }
    let mut answers = router.run(batch).await.into_iter().map(|answer| answer.expect("an answer").ok());
    let newest = answers.next().expect("an answer").expect("a timeline").into_array().expect("an entry");
    let newest = newest[1].count().expect("a time");
    let posted_since = followees
        .iter()
        .zip(answers)
        .filter(|(_, last)| last.as_ref().expect("a time").count().is_ok_and(|last| last > newest));
    let new: Batch = posted_since
        .map(|(author, _)| {
            let [_, outbox] = books_author(*author);
            let range = Command::new("ZRANGEBYSCORE").arg(&outbox).arg(format!("({newest}")).arg("+inf");
            at(&outbox, range.arg("WITHSCORES"))
        })
        .collect();
    let mut add = Command::new("ZADD").arg(&home);
    let mut is_new = false;
    for answer in router.run(new).await {
        for pair in answer.expect("an answer").ok().expect("posts").into_array().expect("posts").chunks(2) {
            add.push(pair[1].bytes().expect("a time")).push(pair[0].bytes().expect("a post"));
            is_new = true;
        }
    }
    let mut last = Batch::new();
    if is_new {
        last.push(Request::write(slot_of_key(home.as_bytes()), add));
        let cut = Command::new("ZREMRANGEBYRANK").arg(&home).arg("0").arg(-1 - BOOKS_ENTRIES.cast_signed());
        last.push(Request::write(slot_of_key(home.as_bytes()), cut));
    }
    last.push(at(&home, Command::new("ZREVRANGE").arg(&home).arg("0").arg(PAGE - 1)));
    let page = router.run(last).await.pop().expect("a page").expect("an answer").ok().expect("a page");
    let ids = page.into_array().expect("ids");
    assert_eq!(ids.len(), PAGE);
    ids.iter().map(|id| id.count().expect("a number")).collect()
}

async fn books_hydrated(router: &Router, n: u64) {
    let ids = books_ids(router, n).await;
    let get = |id: u64| {
        let key = books_post(id);
        Request::read(slot_of_key(key.as_bytes()), Command::new("HGETALL").arg(&key))
    };
    for answer in router.run(ids.into_iter().map(get).collect()).await {
        let fields = answer.expect("an answer").ok().expect("a post").into_array().expect("fields");
        assert_eq!(fields.len(), 20);
    }
}
