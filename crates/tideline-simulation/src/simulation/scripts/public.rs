//! The public timeline.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{Stage, close, given_up_half_way, pause};
use crate::ids::AccountId;
use crate::post::Draft;
use crate::simulation::gates::{At, Gate};
use crate::simulation::lua;
use crate::simulation::public::{check_public, must_show};
use crate::simulation::world::world;
use crate::timeline::Query;

/// Accounts of a tenant that keeps so many public posts a bucket.
async fn stage_with<const N: usize>(public_posts: u32, buckets: [u16; N]) -> (Stage, [AccountId; N]) {
    world(|w| w.public_posts = public_posts);
    Stage::with(buckets).await
}

async fn ends_well(stage: &Stage) {
    stage.settled().await;
    check_public(&stage.engines[1], "in the end").await;
    stage.ends_well().await;
}

/// H196: a look has found nothing in a bucket, and waits for others; somebody posts there, and reads.
pub(in crate::simulation) fn posted_beside_a_look() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author, other]) = stage_with(100, [1, 3]).await;
        let list = world(|w| w.keys.public_posts(w.keys.bucket_of(author)));
        let looked = Gate::close(0, At::After, "GETRANGE", &list);
        let engine = stage.engines[0].clone();
        let reading = tokio::spawn(async move { drop(engine.as_reader(other).read(&Query::public()).await) });
        looked.reached().await;
        let post = stage.publish(0, author).await;
        let engine = stage.engines[0].clone();
        let own =
            tokio::spawn(
                async move { must_show(&engine, author, post, "which its author has written").await },
            );
        stage.turns().await;
        looked.open();
        for task in [reading, own] {
            task.await.expect("a page");
        }
        ends_well(&stage).await;
    }
    .boxed_local()
}

/// H197: noting a post among the public ones fails, and it is sent again.
pub(in crate::simulation) fn published_half_way() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author]) = stage_with(100, [1]).await;
        lua::fail_once("post_publish", "local length = redis.call('APPEND', key, entry)");
        let draft = Draft::text("token x").token("x");
        let post = stage.engines[0].publish(author, &draft).await.expect("a post").id;
        must_show(&stage.engines[1], author, post, "which was sent twice").await;
        ends_well(&stage).await;
    }
    .boxed_local()
}

/// H198: somebody posts more than its bucket keeps.
pub(in crate::simulation) fn flooded() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [friend, flooder]) = stage_with(3, [1, 1]).await;
        let post = stage.publish(0, friend).await;
        let mut last = post;
        for _ in 0..9 {
            last = stage.publish(1, flooder).await;
        }
        must_show(&stage.engines[2], friend, post, "the only one of its author").await;
        must_show(&stage.engines[2], friend, last, "the last of the flood").await;
        stage.settled().await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H199: a deletion fails before the post has gone, and nobody makes it again.
pub(in crate::simulation) fn deleted_half_way() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author]) = stage_with(100, [1]).await;
        let post = stage.publish(0, author).await;
        stage.settled().await;
        let engine = stage.engines[0].clone();
        let line = "if not is_gone then redis.call('DEL', post) end";
        given_up_half_way("post_delete", line, async move { engine.delete(author, post).await }).await;
        pause(2_000).await;
        must_show(&stage.engines[1], author, post, "which is there").await;
        ends_well(&stage).await;
    }
    .boxed_local()
}

/// An account goes, and its posts are nobody's; a bucket's list is cut where its tenant decides so.
pub(in crate::simulation) fn buried() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author, other]) = stage_with(100, [1, 1]).await;
        let gone = stage.publish(0, author).await;
        let stays = stage.publish(0, other).await;
        stage.engines[1].delete_account(author).await.expect("deleted");
        let buried = close(1, At::After, "public_drop");
        buried.reached().await;
        buried.open();
        stage.settled().await;
        must_show(&stage.engines[2], other, stays, "whose author is there").await;
        let page = stage.engines[2].as_reader(other).read(&Query::public()).await.expect("a page");
        if page.ids().contains(&gone) {
            world(|w| w.violated(format!("the public timeline shows {gone} of an account that is gone")));
        }
        check_public(&stage.engines[1], "in the end").await;
    }
    .boxed_local()
}
