//! Ids and ticks only ever go up.

use std::collections::HashSet;

use super::harness::{options, shared, store};
use futures::future::join_all;
use tideline::Store;

#[tokio::test]
async fn ids_of_many_concurrent_callers_never_meet_and_each_sees_its_own_go_up() {
    let store = store().await;
    let buckets = store.keys().buckets();
    let bucket = buckets.of_account(1);
    let caller = async || {
        let mut seen = Vec::new();
        for n in 0..40u32 {
            seen.extend(store.clock().post_ids(bucket, n % 3 + 1).await.unwrap());
        }
        assert!(seen.is_sorted_by(|a, b| a < b));
        seen
    };
    let all = join_all((0..32).map(|_| caller())).await.concat();
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    assert!(all.iter().all(|id| id.bucket(buckets) == bucket));
    let age = i128::from(store.router().now_ms()) - i128::from(all[0].unix_ms());
    assert!((-5_000..120_000).contains(&age), "an id's time is the time: {age} ms old");
}

#[tokio::test]
async fn a_full_millisecond_goes_over_into_the_next() {
    // 16,384 buckets leave four ids a millisecond.
    let mut options = options(shared());
    options.buckets = Some(16_384);
    let store = Store::open(options).await.unwrap();
    let buckets = store.keys().buckets();
    let bucket = buckets.of_account(3);
    let ids = store.clock().post_ids(bucket, 1_000).await.unwrap();
    let more = store.clock().post_ids(bucket, 1_000).await.unwrap();
    let all = [ids, more].concat();
    assert!(all.is_sorted_by(|a, b| a < b));
    assert!(all.iter().all(|id| id.bucket(buckets) == bucket && id.sequence(buckets) < 4));
    assert!(store.clock().post_ids(bucket, 0).await.is_err());
}

#[tokio::test]
async fn ticks_go_up_and_leave_ids_alone() {
    let store = store().await;
    let bucket = store.keys().buckets().of_account(4);
    let mut last = 0;
    let mut last_id = None;
    for count in [1, 100, 1, 10_000, 1] {
        let ticks = store.clock().ticks(bucket, count).await.unwrap();
        assert!(ticks[0] > last && ticks.is_sorted_by(|a, b| a < b));
        last = ticks[ticks.len() - 1];
        assert!(last < 1 << 53);
        let id = store.clock().post_ids(bucket, 1).await.unwrap().pop();
        assert!(id > last_id);
        last_id = id;
    }
    let all: Vec<_> = store.keys().buckets().all().collect();
    assert_eq!(store.clock().tick_each(&all).await.unwrap().len(), 16);
}
