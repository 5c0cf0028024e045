//! The counts of a profile: with the account itself, right after retries and crashes.

use tideline::{AccountId, Engine};

use super::{accounts, at_key, drained, engine, engine_with, small, tenant};
use crate::harness::PATIENCE;

async fn counts(engine: &Engine, account: AccountId) -> (u64, u64, u64) {
    let account = engine.stored().account(account).await.unwrap();
    (account.followers, account.following, account.posts)
}

#[tokio::test]
async fn the_counts_of_a_small_account_are_exact() {
    let engine = engine().await;
    let people = accounts(&engine, 30).await;
    let author = people[0];
    for (n, reader) in people[1..].iter().enumerate() {
        engine.follow(*reader, author).await.unwrap();
        // Once more: it counts once.
        engine.follow(*reader, author).await.unwrap();
        drained(&engine).await;
        assert_eq!(counts(&engine, author).await, (n as u64 + 1, 0, 0));
    }
    engine.follow(author, people[1]).await.unwrap();
    for reader in &people[1..11] {
        engine.unfollow(*reader, author).await.unwrap();
    }
    engine.block(author, people[11]).await.unwrap();
    engine.delete_account(people[12]).await.unwrap();
    drained(&engine).await;
    assert_eq!(counts(&engine, author).await, (17, 1, 0));
    assert_eq!(engine.stored().counts(author).await.unwrap(), (1, 17));
    // As it may be after a crash between the edge and the number: the entry is still there, and run again.
    at_key(&engine, 'a', author, "HSET", &["nr", "5"]).await;
    engine.follow(people[1], author).await.unwrap();
    drained(&engine).await;
    assert_eq!(counts(&engine, author).await.0, 18);
}

#[tokio::test]
async fn the_followers_of_a_large_account_are_summed_up_within_a_minute_by_whoever_is_there() {
    let options = tenant(20);
    let engine = engine_with(options.clone(), small()).await;
    let people = accounts(&engine, 61).await;
    let author = people[0];
    for reader in &people[1..50] {
        engine.follow(*reader, author).await.unwrap();
    }
    drained(&engine).await;
    engine.count_now().await;
    assert_eq!(counts(&engine, author).await.0, 49);
    // Each change is counted in the note, until the engine's own round, which may come at any time, has summed it up.
    let (mut noted, mut most) = (0, 0);
    for reader in &people[50..60] {
        engine.follow(*reader, author).await.unwrap();
        drained(&engine).await;
        let note = at_key(&engine, 'a', author, "HGET", &["nd"]).await;
        let changes = note.text().ok().and_then(|note| note.split_once(' ')?.1.parse().ok()).unwrap_or(0);
        assert!([0, 1, noted + 1].contains(&changes), "{changes} after {noted}: {note:?}");
        (noted, most) = (changes, most.max(changes));
    }
    assert!(most > 1, "the round comes every 25 s");
    engine.count_now().await;
    assert_eq!(counts(&engine, author).await.0, 59);
    // As it is where this instance goes before its round, with nobody left whose round could come between.
    engine.shutdown(PATIENCE).await.unwrap();
    let other = engine_with(options, small()).await;
    let soon = (other.store().router().now_ms() + 50_000).to_string();
    at_key(&other, 'a', author, "HSET", &["nr", "49", "nd", &format!("{soon} 10")]).await;
    other.count_now().await;
    assert_eq!(counts(&other, author).await.0, 49, "the other instance knew nothing of it");
    // A minute later whoever looks at the account sums up.
    at_key(&other, 'a', author, "HSET", &["nd", "1000 10"]).await;
    assert_eq!(counts(&other, author).await.0, 59);
    assert!(at_key(&other, 'a', author, "HGET", &["nd"]).await.is_nil());
    // Whoever still believes that it should finds nothing left to do.
    other.follow(people[60], author).await.unwrap();
    drained(&other).await;
    at_key(&other, 'a', author, "HDEL", &["nd"]).await;
    at_key(&other, 'a', author, "HSET", &["nr", "60"]).await;
    other.count_now().await;
    assert_eq!(counts(&other, author).await.0, 60);
}
