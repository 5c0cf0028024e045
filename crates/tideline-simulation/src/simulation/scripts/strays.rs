//! Edges that outlive their follows.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use tokio::time::Instant;

use super::{Stage, close, pause};
use crate::ids::AccountId;
use crate::rules;
use crate::simulation::ends;
use crate::simulation::gates::At;
use crate::simulation::world::world;

/// H86: the edge is written by that function; then R's server fails over without the follow and its entry, and who was
/// at it dies.
async fn follow_is_lost(what: &'static str) {
    let (stage, [reader, author]) = Stage::with([1, 3]).await;
    stage.home_of(reader).await;
    stage.sync(reader);
    let edge = close(0, At::After, what);
    stage.follow(0, reader, author).await;
    edge.reached().await;
    stage.fail_over(reader);
    world(|w| w.kill(0));
    stage.ends_well().await;
}

pub(in crate::simulation) fn follow_is_lost_after_its_edge() -> LocalBoxFuture<'static, ()> {
    follow_is_lost("set_add").boxed_local()
}

pub(in crate::simulation) fn follow_is_lost_after_it_joined() -> LocalBoxFuture<'static, ()> {
    rules::short_cuts(true);
    follow_is_lost("join").boxed_local()
}

/// H103: the same, and another follower's server is silent, whose edge was noted before.
pub(in crate::simulation) fn follow_is_lost_beside_a_silent_server() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [other, beside, reader, author]) = Stage::with([2, 3, 1, 3]).await;
        stage.home_of(reader).await;
        stage.follow(0, other, beside).await;
        stage.settled_at_once().await;
        let edge = close(0, At::After, "set_add");
        stage.follow(0, reader, author).await;
        edge.reached().await;
        stage.silence(other, true);
        stage.fail_over(reader);
        world(|w| w.kill(0));
        pause(2_000).await;
        if stage.is_told_to_follow(reader, author).await {
            world(|w| w.violated("an edge whose follow is lost waits for somebody else's server"));
        }
        stage.silence(other, false);
        stage.ends_well().await;
    }
    .boxed_local()
}

/// A copy of what R's follow has written comes when something else was done after it, and nobody looks at the pair any
/// more.
async fn copy_comes_after_all(
    (stage, [reader, author]): (Stage, [AccountId; 2]),
    what: &'static str,
    then: impl AsyncFnOnce(&Stage, AccountId, AccountId),
) {
    let copy = close(0, At::Copied, what);
    stage.follow(0, reader, author).await;
    stage.settled().await;
    copy.open();
    then(&stage, reader, author).await;
    stage.settled().await;
    copy.deliver();
    stage.ends_well().await;
}

async fn it_unfollows(stage: &Stage, reader: AccountId, author: AccountId) {
    stage.unfollow(0, reader, author).await;
}

/// H87: R has unfollowed. What was noted before has been looked at.
pub(in crate::simulation) fn edge_comes_after_all() -> LocalBoxFuture<'static, ()> {
    async { copy_comes_after_all(Stage::with([1, 3]).await, "set_add", it_unfollows).await }.boxed_local()
}

/// H127: R has asked, and taken that back.
pub(in crate::simulation) fn listed_as_waiting_after_all() -> LocalBoxFuture<'static, ()> {
    async { copy_comes_after_all(Stage::locked().await, "waiting_set", it_unfollows).await }.boxed_local()
}

/// The same, and X has let R in: who follows waits no more.
pub(in crate::simulation) fn listed_as_waiting_though_it_follows() -> LocalBoxFuture<'static, ()> {
    async {
        let is_let_in = async |stage: &Stage, reader, author| {
            stage.engines[1].approve(author, reader).await.expect("approved");
        };
        copy_comes_after_all(Stage::locked().await, "waiting_set", is_let_in).await;
    }
    .boxed_local()
}

/// R has asked X. Who is to list that sleeps; others take over its entry and strike it; R asks anew. The sleeper wakes
/// up: nothing is at rest before it has come to an end, whatever the journals say (harsh seed 8065).
pub(in crate::simulation) fn a_sleeper_goes_on_without_its_entry() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::locked().await;
        let listing = close(0, At::Before, "waiting_set");
        stage.follow(0, reader, author).await;
        listing.reached().await;
        world(|w| w.instances[0].frozen_until = Instant::now() + Duration::from_secs(1));
        pause(900).await;
        stage.unfollow(1, reader, author).await;
        stage.follow(1, reader, author).await;
        pause(200).await;
        ends::run_dry().await;
        if ends::is_at_rest(stage.engines.iter()) {
            world(|w| w.violated("all is at rest, and somebody is about to list a request"));
        }
        listing.open();
        pause(5).await;
        while !ends::is_at_rest(stage.engines.iter()) {
            pause(10).await;
        }
        ends::check_follows(&stage.accounts, &stage.accounts, "at rest");
        stage.ends_well().await;
    }
    .boxed_local()
}

/// The copy comes while somebody looks at what was noted before.
pub(in crate::simulation) fn edge_comes_while_it_is_looked_at() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        let edge = close(0, At::Copied, "set_add");
        stage.follow(0, reader, author).await;
        pause(20).await;
        edge.open();
        stage.unfollow(0, reader, author).await;
        pause(20).await;
        let drops = [0, 1, 2].map(|at| close(at, At::Before, "notes_drop"));
        tokio::select! {
            () = drops[0].reached() => {}
            () = drops[1].reached() => {}
            () = drops[2].reached() => {}
        }
        edge.deliver();
        drops.iter().for_each(crate::simulation::gates::Gate::open);
        stage.ends_well().await;
    }
    .boxed_local()
}

/// A follow is seen there, and lost before that was on replicas. Its entry is lost too, and who was at it dies.
pub(in crate::simulation) fn follow_is_lost_after_the_look() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.home_of(reader).await;
        stage.sync(reader);
        let edge = close(0, At::After, "set_add");
        let drops = [1, 2].map(|at| close(at, At::Before, "notes_drop"));
        stage.follow(0, reader, author).await;
        edge.reached().await;
        tokio::select! {
            () = drops[0].reached() => {}
            () = drops[1].reached() => {}
        }
        world(|w| w.kill(0));
        stage.fail_over(reader);
        drops.iter().for_each(crate::simulation::gates::Gate::open);
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H88: a follow gets its tick by a time that is ahead; R's server loses it, and time is right again: ticks are
/// below the edge.
pub(in crate::simulation) fn clock_is_behind() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.home_of(reader).await;
        stage.sync(reader);
        let now = world(|w| w.now_ms());
        world(|w| w.set_clocks(now + 3_600_000));
        let edge = close(0, At::After, "set_add");
        stage.follow(0, reader, author).await;
        edge.reached().await;
        stage.fail_over(reader);
        world(|w| w.set_clocks(now));
        edge.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H120: X's followers are spread; R's primary is replaced, and answers on. R follows X at the new one. X is deleted;
/// who turns its followers away asks the old one.
pub(in crate::simulation) fn buried_by_the_old_primarys_word() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.spread_beside(0, author).await.expect("a spread set");
        stage.settled().await;
        stage.fail_over(reader);
        world(|w| w.answers_on(1, &[1]));
        stage.follow(0, reader, author).await;
        pause(50).await;
        world(|w| w.ends_all_follows(author));
        stage.engines[1].delete_account(author).await.expect("deleted");
        pause(200).await;
        world(|w| w.answers_no_more(1));
        ends::run_dry().await;
        ends::check_follows(&stage.accounts, &stage.accounts, "in the end");
    }
    .boxed_local()
}
