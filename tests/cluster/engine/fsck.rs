//! Looking for what is out of step, and putting it right: each kind of deviation is made on purpose, found as that
//! kind, and healed; and what a load leaves on its way is never taken for one.

mod archived;
mod archived_content;
mod broken;
mod keys;
mod load;
mod program;
mod remarks;

use std::time::Duration;

use futures::future::join_all;
use tideline::cluster::{Command, Reply, Request};
use tideline::post::Draft;
use tideline::{AccountId, Engine, FindingKind, FsckOptions, FsckReport, PostId};

use super::{accounts, drained};

fn options(repair: bool) -> FsckOptions {
    FsckOptions { repair, pause: Duration::from_millis(100), ..FsckOptions::default() }
}

async fn fsck(engine: &Engine, repair: bool) -> FsckReport {
    engine.fsck(&options(repair), &|_| {}).await.unwrap()
}

async fn post(engine: &Engine, author: AccountId) -> PostId {
    engine.publish(author, &Draft::text("a post")).await.unwrap().id
}

fn kinds(report: &FsckReport) -> Vec<FindingKind> {
    report.findings.keys().copied().collect()
}

/// That these kinds are found, that a repair puts all of it right, and that it stays so.
async fn heals(engine: &Engine, wanted: &[FindingKind]) {
    let report = fsck(engine, false).await;
    assert_eq!(kinds(&report), wanted, "{report:#?}");
    let report = fsck(engine, true).await;
    for kind in wanted {
        assert_eq!(
            report.findings.get(kind).map(|f| (f.found > 0, f.left())),
            Some((true, 0)),
            "{report:#?}"
        );
    }
    drained(engine).await;
    let report = fsck(engine, false).await;
    assert!(report.findings.is_empty() && report.in_flight == 0, "{report:#?}");
}

fn bucket_of(engine: &Engine, account: AccountId) -> u16 {
    engine.store().keys().buckets().of_account(account.get()).index()
}

/// Says a command about the key with that letter and name in a bucket, behind the engine's back.
async fn raw(engine: &Engine, bucket: u16, key: (char, &[u8]), command: &str, arguments: &[&[u8]]) -> Reply {
    let keys = engine.store().keys();
    let bucket = keys.buckets().get(bucket).unwrap();
    let mut name = format!("{}{{{}}}{}", keys.prefix(), keys.buckets().tag(bucket), key.0).into_bytes();
    name.extend(key.1);
    let command = Command::new(command).arg(&name).args(arguments.iter().copied());
    engine.store().router().call(Request::write(keys.buckets().slot(bucket), command)).await.unwrap()
}

/// The same about one of an account's own keys.
async fn raw_of(
    engine: &Engine,
    account: AccountId,
    letter: char,
    command: &str,
    arguments: &[&[u8]],
) -> Reply {
    raw(engine, bucket_of(engine, account), (letter, &account.to_bytes()), command, arguments).await
}

fn set_name(what: &str, account: AccountId) -> Vec<u8> {
    [b"@", what.as_bytes(), b":", &account.to_bytes()].concat()
}

/// Readers with homes, who follow an author.
async fn followed(engine: &Engine, readers: usize) -> (AccountId, Vec<AccountId>) {
    let mut all = accounts(engine, readers + 1).await;
    let author = all.pop().unwrap();
    join_all(all.iter().map(|reader| engine.follow(*reader, author))).await;
    drained(engine).await;
    // Else the number of many followers is off for a while, and nobody's fault.
    engine.count_now().await;
    for reader in &all {
        engine.warm(*reader).await.unwrap();
    }
    (author, all)
}
