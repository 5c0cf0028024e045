//! The engine on a real cluster.

mod abuse;
mod acknowledged;
mod archive;
mod archive_away;
mod archive_away_lists;
mod archive_bounds;
mod archive_copies;
mod archive_deletes;
mod archive_export;
mod archive_imports;
mod archive_lists;
mod archive_refuses;
mod archive_rounds;
mod archive_search;
mod archive_settles;
mod archive_tools;
mod away;
mod basics;
mod beginnings;
mod caches;
mod chat_lists;
mod chats;
mod chosen;
mod counters;
mod counts;
mod decisions;
mod deletion;
mod documents;
mod edges;
mod fixture;
mod fsck;
mod group_notices;
mod group_owners;
mod group_staff;
mod groups;
mod guest;
mod homes;
mod import;
mod inspect;
mod judged;
mod languages;
mod left_out;
mod limits;
mod mentions;
mod moderation;
mod modes;
mod notifications;
mod pages;
mod people;
mod profiles;
mod public;
mod ranked;
mod registration;
mod remarks;
mod reports;
mod restored;
mod settling;
mod shown;
mod social;
mod tagged;
mod tasks;
mod tickets;
mod told_again;
mod unanswered;
mod undecided;
mod unreadable;

use std::time::Duration;

use tideline::cluster::{Command, Reply, Request};
use tideline::sharded::SetSettings;
use tideline::{AccountId, Engine, EngineSettings, NewAccount, PostId, Query, StoreOptions};

use super::harness::{PATIENCE, eventually, options, shared};

/// Settings under which small histories meet every rule: small homes, no caches.
pub(crate) fn small() -> EngineSettings {
    EngineSettings {
        visible_within: Duration::ZERO,
        home_posts: 16,
        home_margin: 4,
        scan_period: Duration::from_millis(200),
        lease_ttl: Duration::from_millis(1_500),
        lease_renewal: Duration::from_millis(300),
        ..EngineSettings::default()
    }
}

/// Options of a tenant of its own whose follower sets are spread soon.
pub(crate) fn tenant(spread_at: u64) -> StoreOptions {
    let sets = SetSettings { piece_limit: Some(16), spread_at: Some(spread_at), ..SetSettings::default() };
    StoreOptions { sets, ..options(shared()) }
}

pub(crate) async fn engine_with(options: StoreOptions, settings: EngineSettings) -> Engine {
    Engine::builder().store(options).settings(settings).start().await.unwrap()
}

pub(crate) async fn engine() -> Engine {
    engine_with(tenant(40), small()).await
}

/// New accounts, by id: those of one millisecond may have been numbered in any order.
pub(crate) async fn accounts(engine: &Engine, count: usize) -> Vec<AccountId> {
    let mut ids = Vec::new();
    for _ in 0..count {
        ids.push(engine.create_account(NewAccount::default()).await.unwrap().value);
    }
    ids.sort_unstable();
    ids
}

/// All ids of a reader's home, page by page.
pub(crate) async fn walk_home(engine: &Engine, reader: AccountId, limit: usize) -> Vec<PostId> {
    let mut ids = Vec::new();
    let mut query = Query::home().limit(limit);
    for _ in 0..10_000 {
        let page = engine.as_reader(reader).read(&query).await.unwrap();
        ids.extend(page.ids());
        match page.next {
            Some(next) => query = query.after(next),
            None => return ids,
        }
    }
    panic!("the walk does not end; so far {ids:?}");
}

/// A post that never was, by the author of one that is. Not the next number: the next post may have that, whoever of
/// the bucket writes it.
pub(crate) fn never_was(beside: PostId) -> PostId {
    const HOUR_MS: u64 = 3_600_000;
    PostId::from_u64(beside.get() - PostId::lowest_of(HOUR_MS)).unwrap()
}

/// Every key of the tenant, on all servers.
pub(crate) async fn all_keys(engine: &Engine) -> Vec<Vec<u8>> {
    let every = Command::new("KEYS").arg(format!("{}*", engine.store().keys().prefix()));
    let mut found = Vec::new();
    for (_, keys) in engine.store().router().ask_primaries(&every).await {
        let keys = keys.unwrap().into_array().unwrap();
        found.extend(keys.iter().map(|key| key.bytes().unwrap().to_vec()));
    }
    found
}

/// The letter that says what kind of key one is, and its name.
pub(crate) fn letter_and_name(key: &[u8]) -> (char, &[u8]) {
    let letter = key.iter().position(|byte| *byte == b'}').unwrap() + 1;
    (key[letter] as char, &key[letter + 1..])
}

pub(crate) async fn drained(engine: &Engine) {
    engine.drained(PATIENCE).await.unwrap();
}

/// Waits until time has moved on for this engine: what several accounts do within one millisecond may stand in any
/// order, and time stands still where it is known better (H100).
pub(crate) async fn a_millisecond(engine: &Engine) {
    milliseconds(engine, 1).await;
}

/// Waits until so much of this engine's time has passed.
pub(crate) async fn milliseconds(engine: &Engine, many: u64) {
    let router = engine.store().router();
    let end = router.now_ms() + many;
    eventually("time moves on", async || router.now_ms() >= end).await;
}

/// The slot in which all that an account has of its own lies.
pub(crate) fn slot_of(engine: &Engine, account: AccountId) -> u16 {
    let buckets = engine.store().keys().buckets();
    buckets.slot(buckets.of_account(account.get()))
}

/// Says a command about one of an account's own keys, by the letter that docs/keys.md names.
pub(crate) async fn at_key(
    engine: &Engine,
    letter: char,
    account: AccountId,
    command: &str,
    arguments: &[&str],
) -> Reply {
    at_raw(engine, account, letter, &account.get().to_be_bytes(), command, arguments).await
}

/// The same with a key of the account's bucket.
pub(crate) async fn at_bucket_key(
    engine: &Engine,
    letter: char,
    account: AccountId,
    command: &str,
    arguments: &[&str],
) -> Reply {
    at_raw(engine, account, letter, b"", command, arguments).await
}

async fn at_raw(
    engine: &Engine,
    account: AccountId,
    letter: char,
    rest: &[u8],
    command: &str,
    arguments: &[&str],
) -> Reply {
    let keys = engine.store().keys();
    let bucket = keys.buckets().of_account(account.get());
    let mut key = format!("{}{{{}}}{letter}", keys.prefix(), keys.buckets().tag(bucket)).into_bytes();
    key.extend(rest);
    let command = Command::new(command).arg(&key).args(arguments.iter().copied());
    engine.store().router().call(Request::write(keys.buckets().slot(bucket), command)).await.unwrap()
}
