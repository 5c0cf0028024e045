//! Posts, their ids, their deliveries.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{Stage, close, pause};
use crate::post::{Draft, Visibility};
use crate::simulation::gates::At;
use crate::simulation::moving::Moving;
use crate::simulation::world::world;

/// H42: a post is published again with its token.
pub(in crate::simulation) fn sent_twice() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author]) = Stage::with([1]).await;
        for engine in &stage.engines {
            let draft = Draft::text("token 1").token("1");
            engine.publish(author, &draft).await.expect("a post");
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H31: a post was delivered and struck; R's server forgets the delivery.
pub(in crate::simulation) fn delivery_is_lost() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.follow(0, reader, author).await;
        stage.home_of(reader).await;
        stage.publish(0, author).await;
        stage.settled_at_once().await;
        stage.fail_over(reader);
        stage.read(1, reader, 3).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H32: the checkpoint has passed bucket 0, the instance dies, bucket 0 forgets.
pub(in crate::simulation) fn delivery_behind_the_checkpoint_is_lost() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, other, author]) = Stage::with([0, 1, 3]).await;
        for follower in [reader, other] {
            stage.follow(0, follower, author).await;
            stage.home_of(follower).await;
        }
        stage.spread_beside(0, author).await.expect("a spread set");
        stage.settled().await;
        let next = close(0, At::After, "journal_mark");
        stage.publish(0, author).await;
        next.reached().await;
        world(|w| w.kill(0));
        stage.fail_over(reader);
        next.open();
        pause(1_000).await;
        stage.settled().await;
        stage.read(1, reader, 3).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H43: X's post reaches R and is lost at X's server, which gives its id to another author, whose post R may not see.
pub(in crate::simulation) fn an_id_comes_twice() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, first, second]) = Stage::with([1, 3, 3]).await;
        stage.follow(0, reader, first).await;
        stage.home_of(reader).await;
        let fence = close(0, At::Fence, "");
        let lost = stage.publish(0, first).await;
        fence.reached().await;
        stage.fail_over(first);
        let draft = Draft::text("x").visibility(Visibility::Followers);
        let given = stage.engines[1].publish(second, &draft).await.expect("a post").id;
        assert_eq!(lost, given, "all within one millisecond");
        stage.read(1, reader, 3).await;
        fence.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H43: the same, and nobody has delivered the post that is lost: whoever claims its delivery finds the other one.
pub(in crate::simulation) fn an_id_comes_twice_to_a_claimer() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, first, second]) = Stage::with([1, 3, 3]).await;
        stage.follow(0, reader, first).await;
        stage.home_of(reader).await;
        let (delivery, look) = (close(0, At::Before, "RPUSHX"), close(1, At::Before, "GET"));
        let lost = stage.publish(0, first).await;
        delivery.reached().await;
        world(|w| w.kill(0));
        // One of the others claims it, and stands before the post.
        let other = close(2, At::Before, "GET");
        tokio::select! {
            () = look.reached() => {}
            () = other.reached() => {}
        }
        stage.fail_over(first);
        world(|w| w.set_clocks(lost.unix_ms()));
        let given = stage.publish(2, second).await;
        assert_eq!(lost, given, "the clocks have gone back");
        look.open();
        other.open();
        stage.settled().await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H48: a post is published while its slot moves: its key is at the target.
pub(in crate::simulation) fn published_in_a_moving_slot() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author, fan]) = Stage::with([1, 0]).await;
        stage.follow(0, fan, author).await;
        stage.publish(0, author).await;
        stage.home_of(author).await;
        // All that is declared must be there, also an entry in the journal.
        let fence = close(1, At::Fence, "");
        stage.publish(1, author).await;
        fence.reached().await;
        // No key has moved yet; those that are not there count as if they had.
        world(|w| w.nodes[1].moving = Some(Moving { salt: 1, share: 0 }));
        let engine = stage.engines[0].clone();
        let publishing = tokio::spawn(async move { drop(engine.publish(author, &Draft::text("x")).await) });
        pause(50).await;
        world(|w| w.nodes[1].moving = None);
        publishing.await.expect("a post");
        fence.open();
        stage.ends_well().await;
    }
    .boxed_local()
}
