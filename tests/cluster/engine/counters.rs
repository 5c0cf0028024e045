//! Counters: what several instances count together, and that it ends.

use std::time::Duration;

use futures::future::join_all;
use tideline::cluster::{Command, Reply, Request};
use tideline::keys::slot_of_key;
use tideline::registration::{COUNTER_LASTS_MAX, COUNTER_NAME_BYTES_MAX};
use tideline::{Engine, ErrorKind, FindingKind, FsckOptions, StoreOptions};

use super::documents::registration_of;
use super::{all_keys, engine, engine_with, letter_and_name, small, tenant};
use crate::harness::eventually;

const HOUR: Duration = Duration::from_secs(3_600);
const NAME: &[u8] = b"log-ins 203.0.113.7 5692111";

async fn keys(engine: &Engine) -> Vec<Vec<u8>> {
    let all = all_keys(engine).await;
    all.into_iter().filter(|key| letter_and_name(key).0 == 'C').collect()
}

async fn say(engine: &Engine, key: &[u8], command: &str) -> Reply {
    let command = Command::new(command).arg(key);
    engine.store().router().call(Request::write(slot_of_key(key), command)).await.unwrap()
}

#[tokio::test]
async fn instances_count_together_and_what_is_counted_is_stored_nowhere() {
    let one = engine_with(tenant(40), small()).await;
    let options = StoreOptions { prefix: one.store().keys().prefix().to_owned(), ..tenant(40) };
    let other = engine_with(options, small()).await;
    let sites = [registration_of(&one).await, registration_of(&other).await];
    let counted = join_all((0..40).map(|n| sites[n % 2].count_up(NAME, 1 + u32::from(n == 7), HOUR))).await;
    let mut counted: Vec<u64> = counted.into_iter().map(Result::unwrap).collect();
    counted.sort_unstable();
    // Nobody is told what somebody else was told.
    assert!(counted.windows(2).all(|pair| pair[0] < pair[1]), "{counted:?}");
    assert_eq!(counted.last(), Some(&41));
    assert_eq!(sites[0].count_up(b"log-ins 203.0.113.8 5692111", 5, HOUR).await.unwrap(), 5);
    assert_eq!(sites[1].count_up(NAME, 0, HOUR).await.unwrap(), 41);
    let found = keys(&one).await;
    assert_eq!(found.len(), 2);
    for key in found {
        let value = say(&one, &key, "GET").await.bytes().unwrap().to_vec();
        for shown in [key, value] {
            assert!(!shown.windows(5).any(|part| NAME.windows(5).any(|of| of == part)), "{shown:?}");
        }
    }
}

#[tokio::test]
async fn a_counter_ends_when_it_should_however_often_it_is_counted_up() {
    let engine = engine().await;
    let registration = registration_of(&engine).await;
    assert_eq!(registration.count_up(NAME, 3, HOUR).await.unwrap(), 3);
    assert_eq!(registration.count_up(NAME, 1, COUNTER_LASTS_MAX).await.unwrap(), 4);
    let key = keys(&engine).await.remove(0);
    let left = say(&engine, &key, "PTTL").await.int().unwrap();
    assert!(left > 0 && u128::try_from(left).unwrap() <= HOUR.as_millis(), "{left}");
    registration.count_up(b"short", 1, Duration::from_millis(1)).await.unwrap();
    eventually("a counter is over", async || keys(&engine).await.len() == 1).await;
    // What stands there by mistake counts for nothing.
    let set = Command::new("SET").arg(&key).arg("many");
    engine.store().router().call(Request::write(slot_of_key(&key), set)).await.unwrap();
    assert_eq!(registration.count_up(NAME, 2, HOUR).await.unwrap(), 2);
    assert!(say(&engine, &key, "PTTL").await.int().unwrap() > 0);
}

#[tokio::test]
async fn counters_have_bounds_and_one_without_an_end_is_found_and_ends() {
    let engine = engine().await;
    let registration = registration_of(&engine).await;
    let long = [b'n'; COUNTER_NAME_BYTES_MAX + 1];
    for (name, lasts) in [(&long[..], HOUR), (b"", HOUR), (NAME, Duration::ZERO), (NAME, 1_000 * HOUR)] {
        let refused = registration.count_up(name, 1, lasts).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    }
    registration.count_up(&long[1..], u32::MAX, COUNTER_LASTS_MAX).await.unwrap();
    let fsck = async |repair| {
        let options = FsckOptions { repair, ..FsckOptions::default() };
        engine.fsck(&options, &|_| {}).await.unwrap()
    };
    assert!(fsck(false).await.findings.is_empty());
    let key = keys(&engine).await.remove(0);
    say(&engine, &key, "PERSIST").await;
    let found = fsck(true).await.findings;
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), [FindingKind::TokenEndless]);
    assert!(say(&engine, &key, "PTTL").await.int().unwrap() > 0);
    assert!(fsck(false).await.findings.is_empty());
}
