//! Posts, their ids, their deliveries.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{Stage, close, pause};
use crate::AccountId;
use crate::cluster::{Command, Request};
use crate::post::{Draft, Visibility};
use crate::simulation::gates::At;
use crate::simulation::lua;
use crate::simulation::moving::Moving;
use crate::simulation::world::world;

/// Two who follow the third, and have homes.
async fn followed_by_two(buckets: [u16; 3]) -> (Stage, [AccountId; 3]) {
    let (stage, [reader, other, author]) = Stage::with(buckets).await;
    for follower in [reader, other] {
        stage.follow(0, follower, author).await;
        stage.home_of(follower).await;
    }
    (stage, [reader, other, author])
}

async fn read_both(stage: &Stage, readers: [AccountId; 2]) {
    for reader in readers {
        stage.read(1, reader, 3).await;
    }
}

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
        let (stage, [reader, _, author]) = followed_by_two([0, 1, 3]).await;
        stage.spread_beside(0, author).await.expect("a spread set");
        stage.settled().await;
        let next = close(0, At::After, "journal_checkpoint");
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

/// H75: S's server is silent, so that P is left for it; R's server forgets the delivery that nobody looks at again.
pub(in crate::simulation) fn delivery_beside_what_is_left_is_lost() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, other, author]) = followed_by_two([1, 2, 3]).await;
        stage.settled().await;
        stage.silence(other, true);
        let left = close(0, At::After, "journal_checkpoint");
        stage.publish(0, author).await;
        left.reached().await;
        left.open();
        stage.fail_over(reader);
        stage.silence(other, false);
        stage.settled().await;
        read_both(&stage, [reader, other]).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H76: R's server forgets the delivery before the fence, S's keeps it: what is left is R's.
pub(in crate::simulation) fn delivery_is_lost_before_its_fence() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, other, author]) = followed_by_two([1, 2, 3]).await;
        stage.settled().await;
        let fence = close(0, At::Fence, "");
        stage.publish(0, author).await;
        fence.reached().await;
        stage.fail_over(reader);
        fence.open();
        stage.settled().await;
        read_both(&stage, [reader, other]).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H114: R's server can't be fenced when it gets P, and S's is silent. What is to be fenced waits in the journal, and
/// R's server fails over before it is.
pub(in crate::simulation) fn delivery_nobody_vouches_for_is_lost() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, other, author]) = followed_by_two([1, 2, 3]).await;
        stage.settled().await;
        stage.vouches(reader, false);
        stage.silence(other, true);
        let waits = close(0, At::After, "journal_checkpoint");
        stage.publish(0, author).await;
        waits.reached().await;
        waits.open();
        stage.fail_over(reader);
        stage.vouches(reader, true);
        stage.silence(other, false);
        stage.settled().await;
        read_both(&stage, [reader, other]).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// R gets P, and its server can't be fenced: that waits in the journal.
async fn delivery_that_nobody_vouches_for() -> (Stage, AccountId) {
    let (stage, [reader, author]) = Stage::with([1, 3]).await;
    stage.follow(0, reader, author).await;
    stage.home_of(reader).await;
    stage.vouches(reader, false);
    let waits = close(0, At::After, "journal_checkpoint");
    stage.publish(0, author).await;
    waits.reached().await;
    waits.open();
    (stage, reader)
}

/// H116: R's server can't be fenced when it gets P; that waits in the journal. It is deposed before anybody tries its
/// fence again.
pub(in crate::simulation) fn nobody_tries_a_deposed_server_again() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, reader) = delivery_that_nobody_vouches_for().await;
        stage.fail_over(reader);
        stage.vouches(reader, true);
        stage.settled().await;
        stage.read(1, reader, 20).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H114: nothing is lost, so R gets P once: the server that could not be fenced has it.
pub(in crate::simulation) fn delivery_is_vouched_for_later() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, reader) = delivery_that_nobody_vouches_for().await;
        stage.vouches(reader, true);
        stage.settled().await;
        let home = stage.engines[1].stored_home(reader).await.expect("a home");
        if home.len() != 1 {
            world(|w| w.violated("R gets P twice, though nothing was lost"));
        }
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

/// H43: the same, and nobody has delivered the post that is lost: whoever takes its delivery over finds the other one.
pub(in crate::simulation) fn an_id_comes_twice_to_another_instance() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, first, second]) = Stage::with([1, 3, 3]).await;
        stage.follow(0, reader, first).await;
        stage.home_of(reader).await;
        let (delivery, look) = (close(0, At::Before, "RPUSHX"), close(1, At::Before, "GET"));
        let lost = stage.publish(0, first).await;
        delivery.reached().await;
        world(|w| w.kill(0));
        // One of the others takes it over, and stands before the post.
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

/// H133: a publish fails when all but its author's home knows of the post, and is sent again.
pub(in crate::simulation) fn published_half_way() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author]) = Stage::with([1]).await;
        lua::fail_once("post_publish", "length = redis.call('RPUSHX', keys[4], id .. author)");
        let draft = Draft::text("token x").token("x");
        stage.engines[0].publish(author, &draft).await.expect("a post");
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H60: a post is for somebody who doesn't follow its author, and for somebody who does.
pub(in crate::simulation) fn sent_to_a_stranger() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author, stranger, follower]) = Stage::with([1, 3, 2]).await;
        stage.follow(0, follower, author).await;
        stage.home_of(stranger).await;
        stage.home_of(follower).await;
        let draft = Draft::text("x").visibility(Visibility::Direct).only_to([stranger, follower]);
        stage.engines[0].publish(author, &draft).await.expect("a post");
        stage.settled().await;
        for (reader, wanted) in [(stranger, 1), (follower, 2)] {
            let length = world(|w| {
                let command = Command::new("LLEN").arg(&w.keys.home(reader));
                let request = Request::read(w.keys.slot_of(reader), command);
                w.execute(9, &request).expect("an answer").reply.count()
            });
            if length.as_ref().ok() != Some(&wanted) {
                world(|w| w.violated(format!("{length:?} entries in the home of {reader}, not {wanted}")));
            }
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H120: X's primary is replaced, and answers on. R follows X, and X posts, both at the new one; who delivers that asks
/// the old one for X's followers.
pub(in crate::simulation) fn followed_at_the_new_primary() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.home_of(reader).await;
        stage.fail_over(author);
        world(|w| w.answers_on(3, &[1]));
        stage.follow(0, reader, author).await;
        pause(50).await;
        stage.publish(1, author).await;
        pause(100).await;
        world(|w| w.answers_no_more(3));
        stage.ends_well().await;
    }
    .boxed_local()
}

/// The same where followers are spread, R's primary is the one, and R's slot moves: then members are read key by key.
pub(in crate::simulation) fn followed_at_the_new_primary_of_a_moving_slot() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([1, 3]).await;
        stage.spread_beside(0, author).await.expect("a spread set");
        stage.home_of(reader).await;
        stage.fail_over(reader);
        world(|w| w.answers_on(1, &[1]));
        stage.follow(0, reader, author).await;
        pause(50).await;
        world(|w| w.nodes[1].moving = Some(Moving { salt: 1, share: 256 }));
        stage.publish(1, author).await;
        pause(100).await;
        world(|w| w.nodes[1].moving = None);
        world(|w| w.answers_no_more(1));
        stage.ends_well().await;
    }
    .boxed_local()
}
