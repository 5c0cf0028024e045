//! Follower sets that are split, or spread over all buckets.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{Stage, close, part_key, pause};
use crate::ids::AccountId;
use crate::simulation::gates::{At, Gate};
use crate::simulation::world::world;

/// X with followers whose homes are whole; its set is a tree, which all instances know.
async fn followed() -> (Stage, [AccountId; 4], AccountId) {
    let (stage, [a, b, c, d, author]) = Stage::with([1, 0, 2, 1, 3]).await;
    for (at, reader) in [a, b, c].into_iter().enumerate() {
        stage.follow(at, reader, author).await;
        stage.settled().await;
    }
    for reader in [a, b, c, d] {
        stage.home_of(reader).await;
    }
    for at in 0..3 {
        stage.publish(at, author).await;
        stage.settled().await;
    }
    (stage, [a, b, c, d], author)
}

/// H49: edges are added by a tree that is old.
pub(in crate::simulation) fn added_by_an_old_tree() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [a, b, c, d, e, f, g, author]) = Stage::with([1, 0, 2, 1, 0, 2, 1, 3]).await;
        let all = [(0, a), (0, b), (1, c), (1, d), (0, e), (0, f), (0, g)];
        for (_, reader) in all {
            stage.home_of(reader).await;
        }
        for (at, reader) in all {
            stage.follow(at, reader, author).await;
            stage.settled().await;
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H38: an edge comes when all was copied, and nobody has said so yet.
pub(in crate::simulation) fn added_while_it_is_spread() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [.., reader], author) = followed().await;
        let close_guards = close(0, At::Before, "guard_close");
        let spread = stage.spread_beside(0, author);
        close_guards.reached().await;
        stage.follow(1, reader, author).await;
        pause(10).await;
        close_guards.open();
        spread.await.expect("a spread set");
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H36: a fan-out stalls before it reads the local set; the set is spread, and dropped.
pub(in crate::simulation) fn spread_before_it_is_walked() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, _, author) = followed().await;
        let walk = close(0, At::Before, "ZRANGE");
        stage.publish(0, author).await;
        walk.reached().await;
        let forget = close(1, At::Before, "spread_forget");
        let spread = stage.spread_beside(1, author);
        forget.reached().await;
        walk.open();
        pause(5).await;
        forget.open();
        spread.await.expect("a spread set");
        stage.ends_well().await;
    }
    .boxed_local()
}

/// A part forgets its copies when the record says that all is copied.
pub(in crate::simulation) fn copies_are_lost() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, ..], author) = followed().await;
        let copied = close(0, At::After, "spread_copied");
        let spread = stage.spread_beside(0, author);
        copied.reached().await;
        stage.fail_over(reader);
        copied.open();
        spread.await.expect("a spread set");
        stage.ends_well().await;
    }
    .boxed_local()
}

/// "Copied" is lost when changes go to the parts already: who copies again brings back what was removed there.
pub(in crate::simulation) fn copied_is_lost() -> LocalBoxFuture<'static, ()> {
    lost_after("spread_end").boxed_local()
}

/// "Spread" is lost when the local pieces are dropped already, and the parts have changed.
pub(in crate::simulation) fn ended_is_lost() -> LocalBoxFuture<'static, ()> {
    lost_after("spread_forget").boxed_local()
}

/// The record's server fails over after that step of a spreading, when somebody has left a part.
async fn lost_after(step: &'static str) {
    let (stage, [reader, ..], author) = followed().await;
    let stepped = close(0, At::After, step);
    let spread = stage.spread_beside(0, author);
    stepped.reached().await;
    let removed = Gate::close(1, At::After, "set_remove", &part_key(reader, author));
    stage.unfollow(1, reader, author).await;
    removed.reached().await;
    stage.fail_over(author);
    removed.open();
    stepped.open();
    spread.await.expect("a spread set");
    stage.settled().await;
    stage.has_no_strays(author).await;
    stage.ends_well().await;
}

/// The frozen set thaws: a failover has lost its freezing. What is removed then has been copied before.
pub(in crate::simulation) fn frozen_is_lost() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, ..], author) = followed().await;
        let copies = close(0, At::After, "set_add");
        let spread = stage.spread_beside(0, author);
        copies.reached().await;
        pause(5).await;
        stage.fail_over(author);
        stage.unfollow(1, reader, author).await;
        pause(50).await;
        copies.open();
        spread.await.expect("a spread set");
        stage.settled().await;
        stage.has_no_strays(author).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// A copier freezes with a page in its hands; another one finishes, and a member of that page is removed.
pub(in crate::simulation) fn frozen_copier() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, ..], author) = followed().await;
        let copies = close(0, At::Before, "set_add");
        let spread = stage.spread_beside(0, author);
        copies.reached().await;
        stage.spread_beside(1, author).await.expect("a spread set");
        stage.unfollow(1, reader, author).await;
        stage.settled().await;
        copies.open();
        spread.await.expect("a spread set");
        stage.settled().await;
        stage.has_no_strays(author).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H124: X's primary is replaced, and answers on. R follows X at the new one, where X's followers are frozen then; who
/// copies them reads them at the old one.
pub(in crate::simulation) fn copied_from_a_deposed_primary() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.home_of(reader).await;
        stage.fail_over(author);
        world(|w| w.answers_on(3, &[1]));
        stage.follow(0, reader, author).await;
        pause(50).await;
        stage.spread_beside(1, author).await.expect("no panic");
        world(|w| w.answers_no_more(3));
        stage.ends_well().await;
    }
    .boxed_local()
}
