//! Promotion to pull, demotion to push, and what comes between.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{Stage, close, part_key, pause};
use crate::ids::AccountId;
use crate::modes::DeliveryWay;
use crate::simulation::gates::{At, Gate};
use crate::simulation::moving::Moving;
use crate::simulation::world::world;
use crate::simulation::{lua, truth};

/// R follows X, which is pushed; R has a home, and everything is on replicas.
async fn followed() -> (Stage, AccountId, AccountId) {
    let (stage, [reader, author]) = Stage::with([1, 3]).await;
    stage.follow(0, reader, author).await;
    stage.home_of(reader).await;
    (stage, reader, author)
}

/// H25: X is promoted, and posts.
pub(in crate::simulation) fn promoted() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, reader, author) = followed().await;
        stage.set_way(0, author, DeliveryWay::Pull).await;
        stage.settled().await;
        stage.publish(0, author).await;
        stage.read(1, reader, 3).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// R's server forgets that R is to pull X.
pub(in crate::simulation) fn marks_are_lost() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, reader, author) = followed().await;
        let marked = close(0, At::After, "marks_add");
        stage.set_way(0, author, DeliveryWay::Pull).await;
        marked.reached().await;
        stage.fail_over(reader);
        marked.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H25: a promotion has marked all, and stalls. A demotion takes the marks away; the promotion wakes.
pub(in crate::simulation) fn promotion_is_overtaken() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, _, author) = followed().await;
        let marked = close(0, At::After, "marks_add");
        stage.set_way(0, author, DeliveryWay::Pull).await;
        marked.reached().await;
        let pull = close(0, At::Before, "mode_set");
        marked.open();
        pull.reached().await;
        stage.set_way(1, author, DeliveryWay::Push).await;
        pause(50).await;
        pull.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H110: R's mark is written where nobody can fence it; that waits in the journal. The promotion goes on, the fence
/// fails once more, and X's server falls silent: R's mark is still not fenced, and is lost.
pub(in crate::simulation) fn promotion_fails_before_its_fence() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, reader, author) = followed().await;
        stage.vouches(reader, false);
        let waits = close(0, At::After, "journal_checkpoint");
        stage.set_way(0, author, DeliveryWay::Pull).await;
        waits.reached().await;
        let fence = close(0, At::Fence, "");
        waits.open();
        stage.vouches(reader, true);
        fence.reached().await;
        fence.stop_no_more();
        stage.vouches(reader, false);
        stage.silence(author, true);
        fence.open();
        pause(500).await;
        stage.fail_over(reader);
        stage.vouches(reader, true);
        stage.silence(author, false);
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H27: a demotion stalls before it takes R's mark away; a promotion marks everybody, and stops pushing.
pub(in crate::simulation) fn demotion_stalls() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, _, author) = followed().await;
        stage.set_way(0, author, DeliveryWay::Pull).await;
        stage.settled().await;
        let settle = close(0, At::Before, "settle");
        stage.set_way(0, author, DeliveryWay::Push).await;
        settle.reached().await;
        stage.set_way(1, author, DeliveryWay::Pull).await;
        pause(50).await;
        settle.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// R has unfollowed X, and its edge is there still when X is promoted.
pub(in crate::simulation) fn unfollowed_before_it_is_marked() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, reader, author) = followed().await;
        let removal = close(0, At::Before, "set_remove");
        stage.unfollow(0, reader, author).await;
        removal.reached().await;
        stage.set_way(1, author, DeliveryWay::Pull).await;
        pause(50).await;
        removal.open();
        stage.settled().await;
        if world(|w| truth::marked(w, reader).contains(&author)) {
            world(|w| w.violated("R is to pull X, whom it doesn't follow"));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// R's slot moves while X is promoted, so its mark and its stamp are written one by one; R reads between the two.
pub(in crate::simulation) fn marked_in_a_moving_slot() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, reader, author) = followed().await;
        stage.read(1, reader, 3).await;
        world(|w| w.nodes[1].moving = Some(Moving { salt: 1, share: 0 }));
        let marks = world(|w| w.keys.marks(reader));
        let mark = Gate::close(0, At::Before, "mark_renew", &marks);
        stage.set_way(0, author, DeliveryWay::Pull).await;
        mark.reached().await;
        stage.read(1, reader, 3).await;
        mark.open();
        pause(20).await;
        world(|w| w.nodes[1].moving = None);
        stage.settled().await;
        stage.publish(0, author).await;
        stage.read(1, reader, 3).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// A promotion has come half its way when its instance dies. X is demoted, and promoted again: whoever takes over the
/// first promotion begins in the middle, and must not believe that it is the second.
pub(in crate::simulation) fn promotion_of_another_time() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [early, late, author]) = Stage::with([0, 2, 3]).await;
        for reader in [early, late] {
            stage.follow(0, reader, author).await;
            stage.home_of(reader).await;
        }
        stage.spread_beside(0, author).await.expect("a spread set");
        stage.settled().await;
        let half = Gate::close(0, At::Before, "marks_piece", &part_key(late, author));
        stage.set_way(0, author, DeliveryWay::Pull).await;
        half.reached().await;
        world(|w| w.kill(0));
        let taking = [1, 2].map(|by| close(by, At::Before, "journal_take_over"));
        stage.set_way(1, author, DeliveryWay::Push).await;
        pause(60).await;
        // Where its round through the followers begins.
        let second = close(2, At::Before, "ZRANGE");
        stage.set_way(2, author, DeliveryWay::Pull).await;
        second.reached().await;
        taking[0].reached().await;
        taking[0].open();
        pause(60).await;
        stage.publish(1, author).await;
        pause(20).await;
        stage.read(1, early, 3).await;
        second.open();
        taking[1].open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H131: X is promoted; the function has written the entry when it fails, and is sent again. Before that arrives,
/// whoever searches the journal has found the entry and no promotion, and strikes it afterwards.
pub(in crate::simulation) fn promotion_comes_after_its_entry() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author]) = Stage::with([1]).await;
        let first = close(0, At::Before, "mode_set");
        let engine = stage.engines[0].clone();
        let promoting =
            tokio::spawn(async move { engine.set_way(author, Some(DeliveryWay::Pull)).await.map(drop) });
        first.reached().await;
        lua::fail_once("mode_set", "then redis.call('HSET', keys[1], RECORD.MODE, mode)");
        let [again, strike] = ["mode_set", "journal_strike"].map(|what| close(0, At::Before, what));
        first.open();
        again.reached().await;
        strike.reached().await;
        again.open();
        promoting.await.expect("no panic").expect("a way");
        strike.open();
        stage.ends_well().await;
    }
    .boxed_local()
}
