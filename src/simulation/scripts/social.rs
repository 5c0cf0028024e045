//! Likes, and the lists of posts.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{Stage, close};
use crate::engine::Engine;
use crate::ids::{AccountId, PostId};
use crate::post::{Draft, PostRef};
use crate::simulation::gates::{At, Gate};
use crate::simulation::world::world;
use crate::social::Social;

async fn is_liked(engine: &Engine, account: AccountId, post: PostRef) -> bool {
    Social::new(engine).marks(account, &[post]).await.expect("marks")[0].is_liked
}

async fn like(engine: &Engine, account: AccountId, post: PostId) {
    Social::new(engine).like(account, post).await.expect("a like");
}

/// H54: R likes P; the executor has looked, and stalls; R takes it back, and that is settled; the executor adds R.
pub(in crate::simulation) fn taken_back_while_it_is_listed() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([0, 1]).await;
        let post = stage.publish(0, author).await;
        stage.settled().await;
        let listing = close(0, At::Before, "list_set");
        like(&stage.engines[0], reader, post).await;
        listing.reached().await;
        Social::new(&stage.engines[1]).unlike(reader, post).await.expect("no like");
        stage.turns().await;
        super::pause(100).await;
        listing.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H53: the same for a reply that is deleted.
pub(in crate::simulation) fn deleted_while_it_is_listed() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [parent, author]) = Stage::with([0, 1]).await;
        let of = PostRef { id: stage.publish(0, parent).await, author: parent };
        stage.settled().await;
        let listing = close(0, At::Before, "list_set");
        let draft = Draft::text("so").reply_to(of);
        let reply = stage.engines[0].publish(author, &draft).await.expect("a reply").id;
        listing.reached().await;
        stage.engines[1].delete(author, reply).await.expect("a deletion");
        super::pause(100).await;
        listing.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H21 for likes: a like lies in a frozen server's socket; R takes it back; the first copy runs.
pub(in crate::simulation) fn like_in_a_socket() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([0, 1]).await;
        let of = PostRef { id: stage.publish(0, author).await, author };
        stage.settled().await;
        let copy = Gate::close(0, At::Copied, "tie_set", b"");
        like(&stage.engines[0], reader, of.id).await;
        copy.stop_no_more();
        Social::new(&stage.engines[1]).unlike(reader, of.id).await.expect("no like");
        copy.deliver();
        if is_liked(&stage.engines[1], reader, of).await {
            world(|w| w.violated("what was taken back is liked again"));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// A like finds itself made while a copy of its opposite lies in a socket: that must not run after it.
pub(in crate::simulation) fn unlike_in_a_socket() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([0, 1]).await;
        let of = PostRef { id: stage.publish(0, author).await, author };
        like(&stage.engines[0], reader, of.id).await;
        stage.settled().await;
        let lost = Gate::close(0, At::Lost, "tie_set", b"");
        let engine = stage.engines[0].clone();
        let unliked = tokio::spawn(async move { Social::new(&engine).unlike(reader, of.id).await });
        super::pause(5).await;
        world(|w| w.kill(0));
        like(&stage.engines[1], reader, of.id).await;
        lost.deliver();
        if !is_liked(&stage.engines[1], reader, of).await {
            world(|w| w.violated("a like that was acknowledged is gone"));
        }
        drop(unliked);
        stage.ends_well().await;
    }
    .boxed_local()
}

/// A post is deleted with its lists while somebody is brought onto one: no list comes back.
pub(in crate::simulation) fn post_gone_while_it_is_liked() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([0, 1]).await;
        let post = stage.publish(0, author).await;
        stage.settled().await;
        let listing = close(0, At::Before, "list_set");
        like(&stage.engines[0], reader, post).await;
        listing.reached().await;
        stage.engines[1].delete(author, post).await.expect("a deletion");
        super::pause(100).await;
        listing.open();
        stage.ends_well().await;
    }
    .boxed_local()
}
