//! Follows of accounts that are locked meanwhile.

use futures::FutureExt as _;
use futures::future::{BoxFuture, LocalBoxFuture};
use tokio::task::JoinHandle;

use super::{Stage, close, pause};
use crate::engine::Engine;
use crate::error::Result;
use crate::graph::PairTask;
use crate::ids::AccountId;
use crate::journal;
use crate::modes::DeliveryWay;
use crate::simulation::gates::{At, Gate};
use crate::simulation::lua;
use crate::simulation::operations::toggle;
use crate::simulation::world::{Toggle, world};
use crate::{AccountUpdate, Mode, rules};

impl Stage {
    async fn lock(&self, at: usize, author: AccountId, is_locked: bool) {
        let update = AccountUpdate { is_locked: Some(is_locked), ..AccountUpdate::default() };
        self.engines[at].update_account(author, &update).await.expect("an update");
    }

    /// Instance 0 decides that the reader follows, and sleeps; meanwhile the author is locked, and posts. Then it wakes
    /// up.
    async fn follow_while_it_is_locked(&self, reader: AccountId, author: AccountId) {
        let change = close(0, At::Before, "change");
        let following = self.follow_beside(0, reader, author);
        change.reached().await;
        self.lock(1, author, true).await;
        pause(1_000).await;
        self.publish(1, author).await;
        change.open();
        following.await.expect("no panic").expect("a follow");
    }

    fn follow_beside(&self, at: usize, reader: AccountId, author: AccountId) -> JoinHandle<Result<()>> {
        tokio::spawn(toggle(Toggle::Follow, self.engines[at].clone(), reader, author))
    }

    /// The reader waits for the author's answer.
    async fn waits(&self, reader: AccountId, author: AccountId) {
        let waiting = self.engines[2].stored().follow_requests(author).await.expect("requests");
        if waiting != [reader] {
            world(|w| w.violated(format!("{reader} doesn't wait for {author}: {waiting:?} do")));
        }
    }
}

/// H85: R's follow was decided while X was open; X is locked; the follow is written.
pub(in crate::simulation) fn locked_while_it_follows() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.home_of(reader).await;
        stage.follow_while_it_is_locked(reader, author).await;
        stage.settled().await;
        stage.waits(reader, author).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// The same with the lock found by `join`.
pub(in crate::simulation) fn locked_before_it_joins() -> LocalBoxFuture<'static, ()> {
    rules::short_cuts(true);
    locked_while_it_follows()
}

/// H85: before anybody has asked X again, R reads.
pub(in crate::simulation) fn read_before_it_is_asked() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.home_of(reader).await;
        let asked = close(0, At::Before, "pair_look");
        stage.follow_while_it_is_locked(reader, author).await;
        asked.reached().await;
        stage.read(1, reader, 20).await;
        asked.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H85: R waits for X's answer; somebody has seen X open, and sleeps; X is locked again.
pub(in crate::simulation) fn open_for_a_moment() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::locked().await;
        stage.follow(2, reader, author).await;
        stage.settled().await;
        let change = Gate::close(0, At::Before, "change", &world(|w| w.keys.account(reader)));
        stage.lock(0, author, false).await;
        change.reached().await;
        stage.lock(1, author, true).await;
        pause(1_000).await;
        stage.publish(1, author).await;
        change.open();
        stage.settled().await;
        stage.waits(reader, author).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H153: R follows X, which is locked before it is asked. `doing`, of instance 1, has found no request; then the follow
/// becomes one, and no follow is found.
async fn becomes_a_request<T: Send + 'static>(
    doing: impl FnOnce(Engine, [AccountId; 2]) -> BoxFuture<'static, T>,
    looks_by: &'static str,
) -> (Stage, [AccountId; 2], T) {
    let (stage, [reader, author]) = Stage::with([1, 3]).await;
    let asked = close(0, At::Before, "pair_look");
    stage.follow_while_it_is_locked(reader, author).await;
    asked.reached().await;
    let look = close(1, At::Before, looks_by);
    let done = tokio::spawn(doing(stage.engines[1].clone(), [reader, author]));
    look.reached().await;
    asked.open();
    // Not until all is done: this instance may have edges to look at, too.
    pause(200).await;
    stage.waits(reader, author).await;
    look.open();
    (stage, [reader, author], done.await.expect("no panic"))
}

/// H153: how R stands to X is asked.
pub(in crate::simulation) fn asked_while_it_becomes_a_request() -> LocalBoxFuture<'static, ()> {
    how_they_stand(|[reader, author]| [reader, author]).boxed_local()
}

/// H153: how X stands to R is asked.
pub(in crate::simulation) fn asked_who_asks_while_it_becomes_a_request() -> LocalBoxFuture<'static, ()> {
    how_they_stand(|[reader, author]| [author, reader]).boxed_local()
}

async fn how_they_stand(whose: fn([AccountId; 2]) -> [AccountId; 2]) {
    let ask = move |engine: Engine, both| {
        let [account, other] = whose(both);
        async move { engine.as_reader(account).relationships(&[other]).await }.boxed()
    };
    let (stage, _, told) = becomes_a_request(ask, "ZMSCORE").await;
    let told = told.expect("an answer").remove(0).expect("it is there");
    if !(told.has_requested || told.is_requested) {
        world(|w| w.violated(format!("neither a follow nor a request: {told:?}")));
    }
    stage.ends_well().await;
}

/// H153: R has X's reposts left out.
pub(in crate::simulation) fn remarked_while_it_becomes_a_request() -> LocalBoxFuture<'static, ()> {
    async {
        let hide = |engine: Engine, [reader, author]: [AccountId; 2]| {
            async move { engine.hide_reposts(reader, author).await.map(drop) }.boxed()
        };
        let (stage, _, hidden) = becomes_a_request(hide, "ZSCORE").await;
        if let Err(e) = hidden {
            world(|w| w.violated(format!("who asks has no reposts to leave out: {e}")));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H153: X lets R in.
pub(in crate::simulation) fn approved_while_it_becomes_a_request() -> LocalBoxFuture<'static, ()> {
    async {
        let approve = |engine: Engine, [reader, author]: [AccountId; 2]| {
            async move { engine.approve(author, reader).await.map(drop) }.boxed()
        };
        let (stage, [reader, author], approved) = becomes_a_request(approve, "ZSCORE").await;
        match approved {
            Ok(()) => world(|w| _ = w.open.insert((Toggle::Follow, reader, author), 1)),
            Err(e) => world(|w| w.violated(format!("who asks can't be let in: {e}"))),
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// X is pulled, and open when R follows; the mark stays. Then X is locked: R has not to ask.
pub(in crate::simulation) fn locked_after_a_follow() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::of([1, 3], Mode::Pull).await;
        stage.home_of(reader).await;
        stage.follow(0, reader, author).await;
        stage.settled().await;
        stage.lock(0, author, true).await;
        stage.publish(1, author).await;
        stage.read(1, reader, 20).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H157: X is pulled, and open when R follows; an instance reads R's marks before X is asked. Then the mark is made a
/// plain one, and that fails at the stamp. X is locked.
pub(in crate::simulation) fn locked_after_half_a_look() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::of([1, 3], Mode::Pull).await;
        stage.home_of(reader).await;
        let confirming = close(0, At::Before, "mark_renew");
        stage.follow(0, reader, author).await;
        confirming.reached().await;
        stage.read(1, reader, 20).await;
        lua::fail_once("mark_renew", "redis.call('HSET', record, RECORD.MARKS_STAMP, stamp)");
        confirming.open();
        stage.settled().await;
        stage.lock(0, author, true).await;
        stage.publish(1, author).await;
        stage.read(1, reader, 20).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// X is asked twice: by one who finds it open, and by one who finds it locked. The first is done when the second acts.
pub(in crate::simulation) fn asked_by_two() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.home_of(reader).await;
        let (settle, change) = (close(0, At::Before, "settle"), close(1, At::Before, "change"));
        stage.follow(0, reader, author).await;
        settle.reached().await;
        stage.lock(2, author, true).await;
        let graph = stage.engines[1].graph();
        let task = PairTask { reader, author, may_drop: true };
        drop(journal::add(&graph.journal, graph.tenant.bucket(reader), task).await.expect("an entry"));
        change.reached().await;
        settle.open();
        pause(5).await;
        change.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// R's edge is still there from an earlier follow, so that it is marked anew when X becomes pulled; its follow is new.
pub(in crate::simulation) fn promoted_before_it_is_asked() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.home_of(reader).await;
        stage.follow(2, reader, author).await;
        stage.settled().await;
        let removal = close(2, At::Before, "set_remove");
        stage.unfollow(2, reader, author).await;
        removal.reached().await;
        let asked = close(0, At::Before, "pair_look");
        stage.follow_while_it_is_locked(reader, author).await;
        asked.reached().await;
        stage.set_way(1, author, DeliveryWay::Pull).await;
        pause(50).await;
        stage.read(1, reader, 20).await;
        removal.open();
        asked.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H94: R asks X; before that is listed, R's primary is replaced, and answers on. R takes it back at the new one.
pub(in crate::simulation) fn taken_back_at_the_new_primary() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::locked().await;
        let listing = close(1, At::Before, "waiting_set");
        stage.follow(1, reader, author).await;
        listing.reached().await;
        stage.sync(reader);
        stage.fail_over(reader);
        world(|w| w.answers_on(1, &[1]));
        stage.unfollow(0, reader, author).await;
        pause(100).await;
        listing.open();
        pause(200).await;
        world(|w| w.answers_no_more(1));
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H122: R asks X, whose primary is replaced, and answers on. X says yes at the new one; who looks at that asks the old
/// one whether it has, and lists R once more.
pub(in crate::simulation) fn approved_at_the_new_primary() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::locked().await;
        stage.follow(2, reader, author).await;
        stage.settled().await;
        stage.fail_over(author);
        world(|w| w.answers_on(3, &[0]));
        let listing = close(0, At::Before, "waiting_set");
        world(|w| w.open.insert((Toggle::Follow, reader, author), 1));
        stage.engines[0].approve(author, reader).await.expect("approved");
        listing.reached().await;
        world(|w| w.answers_no_more(3));
        listing.open();
        stage.ends_well().await;
    }
    .boxed_local()
}
