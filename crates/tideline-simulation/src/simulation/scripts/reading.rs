//! Reader states, stamps, and homes that are read beside them.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use tokio::time::timeout;

use super::{Stage, close, pause};
use crate::Mode;
use crate::ids::AccountId;
use crate::simulation::gates::{At, Gate};
use crate::simulation::shape::Shape;
use crate::simulation::world::world;

/// R has a home; X has posted before R follows it: only its mark, or what a completion brings, shows that post. Of
/// instance 0 every fence waits, so what it completes is on no replica.
async fn before_a_completion() -> (Stage, AccountId, AccountId, Gate) {
    let (stage, [reader, author, _]) = Stage::with([1, 3, 0]).await;
    stage.publish(0, author).await;
    stage.home_of(reader).await;
    let settle = close(0, At::Before, "settle");
    stage.follow(0, reader, author).await;
    settle.reached().await;
    stage.sync(reader);
    (stage, reader, author, settle)
}

fn home_key(reader: AccountId) -> Vec<u8> {
    world(|w| w.keys.home(reader))
}

/// A completion that no replica has takes the mark; a reader's state without it is remembered; a failover brings the
/// mark back, and takes what the completion brought.
pub(in crate::simulation) fn completion_is_lost() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, reader, _, settle) = before_a_completion().await;
        let fence = close(0, At::Fence, "");
        settle.open();
        fence.reached().await;
        stage.read(1, reader, 3).await;
        stage.fail_over(reader);
        stage.read(1, reader, 3).await;
        fence.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// Whom a reader follows changes before each look at its home.
pub(in crate::simulation) fn changed_all_the_time() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author, other]) = Stage::with([1, 3, 0]).await;
        stage.follow(0, reader, author).await;
        stage.home_of(reader).await;
        stage.publish(0, author).await;
        stage.settled().await;
        let record = world(|w| w.keys.account(reader));
        let stamps = || Gate::close(1, At::Before, "HMGET", &record);
        let mut looks = stamps();
        let reading = stage.read_beside(1, reader, 3);
        for round in 0..8 {
            if timeout(Duration::from_secs(1), looks.reached()).await.is_err() {
                break;
            }
            match round % 2 {
                0 => stage.follow(0, reader, other).await,
                _ => stage.unfollow(0, reader, other).await,
            }
            // It loads what has changed, and there everything rests.
            let loads = close(1, At::Before, "HGETALL");
            looks.open();
            loads.reached().await;
            let ends = stamps();
            loads.open();
            ends.reached().await;
            looks = stamps();
            ends.open();
        }
        looks.open();
        reading.await.expect("a page");
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H30: the state is read while a completion runs; a failover brings the stamps back under which reading it began.
pub(in crate::simulation) fn state_of_two_times() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, reader, _, settle) = before_a_completion().await;
        let fence = close(0, At::Fence, "");
        let marks = close(1, At::Before, "HGETALL");
        let reading = stage.read_beside(1, reader, 3);
        marks.reached().await;
        settle.open();
        fence.reached().await;
        let again = Gate::close(1, At::Before, "LRANGE", &home_key(reader));
        marks.open();
        pause(5).await;
        stage.fail_over(reader);
        again.open();
        reading.await.expect("a page");
        stage.read(1, reader, 3).await;
        fence.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H30: between stamps and home R's server fails over, and the completion that the stamps speak of is lost.
pub(in crate::simulation) fn two_lives_in_a_trip() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, reader, _, settle) = before_a_completion().await;
        let fence = close(0, At::Fence, "");
        settle.open();
        fence.reached().await;
        stage.read(1, reader, 3).await;
        let home = Gate::close(1, At::Before, "LRANGE", &home_key(reader));
        let reading = stage.read_beside(1, reader, 3);
        home.reached().await;
        stage.fail_over(reader);
        home.open();
        reading.await.expect("a page");
        fence.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H29: a page has used its window up. Before it looks at the home again R's server fails over.
pub(in crate::simulation) fn second_look_after_a_failover() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, reader, _, settle) = before_a_completion().await;
        let fence = close(0, At::Fence, "");
        settle.open();
        fence.reached().await;
        // So that the window doesn't hold what the completion has brought, and the page isn't full with it.
        for _ in 0..3 {
            stage.publish(0, reader).await;
        }
        stage.read(1, reader, 4).await;
        let first = Gate::close(1, At::After, "LRANGE", &home_key(reader));
        let reading = stage.read_beside(1, reader, 4);
        first.reached().await;
        let again = close(1, At::Before, "HMGET");
        first.open();
        pause(5).await;
        stage.fail_over(reader);
        again.open();
        reading.await.expect("a page");
        fence.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H29: a read has the home, but not the stamps yet. A completion runs; another read remembers the state after it.
pub(in crate::simulation) fn home_before_its_stamps() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, reader, _, settle) = before_a_completion().await;
        let home = Gate::close(1, At::After, "LRANGE", &home_key(reader));
        let reading = stage.read_beside(1, reader, 3);
        home.reached().await;
        home.stop_no_more();
        settle.open();
        pause(5).await;
        stage.read(1, reader, 3).await;
        home.open();
        reading.await.expect("a page");
        stage.ends_well().await;
    }
    .boxed_local()
}

/// An instance knows how a reader's set was split once; since then it was split again.
pub(in crate::simulation) fn pieces_were_split() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, a, b, c, d, e]) = Stage::with([1, 3, 0, 2, 3, 0]).await;
        for author in [a, b] {
            stage.follow(0, reader, author).await;
        }
        stage.settled().await;
        stage.read(1, reader, 3).await;
        for author in [c, d, e] {
            stage.follow(0, reader, author).await;
        }
        for author in [a, b, c, d, e] {
            stage.publish(0, author).await;
        }
        // Before anybody looks at these edges again, and meets the tree.
        super::pause(60).await;
        stage.read(1, reader, 20).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// L3: an instance has a post of R in its cache; R deletes it, by another one.
pub(in crate::simulation) fn own_post_deleted() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader]) = Stage::cached([1]).await;
        let post = stage.publish(0, reader).await;
        stage.home_of(reader).await;
        stage.read(1, reader, 3).await;
        stage.engines[0].delete(reader, post).await.expect("deleted");
        stage.read(1, reader, 3).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// L3: what others delete is gone when caches have had their time.
pub(in crate::simulation) fn cached_post_deleted() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::cached([1, 3]).await;
        stage.follow(0, reader, author).await;
        let post = stage.publish(0, author).await;
        stage.home_of(reader).await;
        stage.read(1, reader, 3).await;
        stage.engines[0].delete(author, post).await.expect("deleted");
        stage.caches_forget().await;
        stage.read(1, reader, 3).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// L3: a look at X's outbox is slow; X posts, and when caches have had their time another reader joins that look.
pub(in crate::simulation) fn joined_an_old_look() -> LocalBoxFuture<'static, ()> {
    async {
        world(|w| w.visible_within = Shape::CACHED.visible_within);
        let (stage, [first, second, author]) = Stage::of([1, 2, 3], Mode::Pull).await;
        for reader in [first, second] {
            stage.follow(0, reader, author).await;
            stage.home_of(reader).await;
            stage.read(1, reader, 3).await;
        }
        stage.caches_forget().await;
        let outbox = world(|w| w.keys.outbox(author));
        let look = Gate::close(1, At::After, "LRANGE", &outbox);
        let slow = stage.read_beside(1, first, 3);
        look.reached().await;
        stage.publish(0, author).await;
        stage.caches_forget().await;
        let joined = stage.read_beside(1, second, 3);
        stage.turns().await;
        look.open();
        slow.await.expect("a page");
        joined.await.expect("a page");
        stage.ends_well().await;
    }
    .boxed_local()
}
