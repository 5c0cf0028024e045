//! Tasks that cannot be carried out, and how many an instance takes.

use std::time::{Duration, Instant};

use tideline::EngineSettings;
use tideline::post::Draft;

use super::{accounts, at_key, drained, engine_with, small, tenant, walk_home};
use crate::harness::eventually;

#[tokio::test]
async fn what_cannot_be_carried_out_is_never_struck_and_never_claimed_beyond_the_places() {
    let options = tenant(40);
    let first = engine_with(options.clone(), small()).await;
    let people = accounts(&first, 2).await;
    let [author, reader] = people[..] else { unreachable!() };
    first.follow(reader, author).await.unwrap();
    drained(&first).await;
    // Somebody has damaged the reader's home: every delivery fails.
    at_key(&first, 'h', reader, "SET", &["damaged"]).await;
    let mut posts = Vec::new();
    for n in 0..12 {
        posts.insert(0, first.publish(author, &Draft::text(format!("post {n}"))).await.unwrap().id);
    }
    assert!(first.health().await.unwrap().tasks >= 12);
    let began = Instant::now();
    assert_eq!(first.shutdown(Duration::from_secs(60)).await.unwrap(), 0);
    assert!(began.elapsed() < Duration::from_secs(5), "a task that pauses holds nobody up");

    let settings = EngineSettings { tasks_max: 4, tasks_at_once: 2, ..small() };
    let second = engine_with(options, settings).await;
    eventually("the other instance takes over what it has places for", async || {
        second.health().await.unwrap().tasks == 4
    })
    .await;
    for _ in 0..20 {
        let health = second.health().await.unwrap();
        assert!(health.tasks <= 4, "{} tasks with four places", health.tasks);
        assert_eq!(health.journal_entries, 12);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    at_key(&second, 'h', reader, "DEL", &[]).await;
    drained(&second).await;
    assert_eq!(walk_home(&second, reader, 20).await, posts);
}
