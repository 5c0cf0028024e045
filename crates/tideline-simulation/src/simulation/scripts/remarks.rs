//! What an account remarks on another one: mutes that end, reposts that are left out.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{Stage, close, pause};
use crate::ids::AccountId;
use crate::simulation::gates::At;
use crate::simulation::world::world;

/// How long mutes last here, ms.
const SHORT: u64 = 50;

async fn mute_for_a_while(stage: &Stage, by: AccountId, whom: AccountId) {
    stage.engines[0].mute_for(by, whom, Duration::from_millis(SHORT)).await.expect("a mute");
}

/// A reader with a home in which a post is of whom it follows.
async fn with_a_post() -> (Stage, [AccountId; 3]) {
    let (stage, all) = Stage::with([1, 3, 0]).await;
    let [reader, author, _] = all;
    stage.follow(0, reader, author).await;
    stage.home_of(reader).await;
    stage.publish(0, author).await;
    stage.settled().await;
    (stage, all)
}

/// H147: what is muted for a while is muted for good, and stays muted when that while is over.
pub(in crate::simulation) fn muted_for_good() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author, _]) = with_a_post().await;
        mute_for_a_while(&stage, reader, author).await;
        stage.engines[1].mute(reader, author).await.expect("a mute");
        pause(2 * SHORT).await;
        let page = stage.engines[2].as_reader(reader).read(&crate::Query::home()).await.expect("a page");
        if !page.posts.is_empty() {
            world(|w| w.violated("who is muted for good shows when an earlier mute would have ended"));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H148: an instance remembers a state in which somebody is muted; the mute ends, and no stamp tells.
pub(in crate::simulation) fn mute_ends_beside_a_remembered_state() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author, _]) = with_a_post().await;
        mute_for_a_while(&stage, reader, author).await;
        stage.read(1, reader, 3).await;
        pause(2 * SHORT).await;
        stage.read(1, reader, 3).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H149: who leaves somebody's reposts out unfollows it, and follows it again.
pub(in crate::simulation) fn followed_again() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author, other]) = with_a_post().await;
        stage.engines[0].hide_reposts(reader, author).await.expect("reposts left out");
        stage.unfollow(0, reader, author).await;
        stage.follow(1, reader, author).await;
        let post = stage.publish(0, other).await;
        let repost = stage.engines[0].repost(author, post).await.expect("a repost").id;
        stage.settled().await;
        let page = stage.engines[2].as_reader(reader).read(&crate::Query::home()).await.expect("a page");
        if !page.ids().contains(&repost) {
            world(|w| w.violated("a new follow begins without reposts"));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H21: a mute that has ended is taken away by one who has looked before it was made anew, for good.
pub(in crate::simulation) fn tidied_late() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author, other]) = with_a_post().await;
        mute_for_a_while(&stage, reader, author).await;
        pause(2 * SHORT).await;
        let tidying = close(0, At::Before, "change");
        let engine = stage.engines[0].clone();
        let muting = tokio::spawn(async move { engine.mute(reader, other).await });
        tidying.reached().await;
        stage.engines[1].mute(reader, author).await.expect("a mute");
        tidying.open();
        muting.await.expect("no panic").expect("a mute");
        let page = stage.engines[2].as_reader(reader).read(&crate::Query::home()).await.expect("a page");
        if !page.posts.is_empty() {
            world(|w| w.violated("a mute that was made anew is taken away as one that has ended"));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}
