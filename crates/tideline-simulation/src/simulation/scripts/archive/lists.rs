//! Lists of mentions that are too long: what leaves them is in the archive from then on.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use tokio::task::JoinHandle;

use super::copies::{SOON, copy, restore, settles_late};
use super::{Stage, with_archive};
use crate::error::{Error, Result};
use crate::ids::{AccountId, PostId};
use crate::post::{Draft, NamedList};
use crate::simulation::gates::At;
use crate::simulation::scripts::{close, pause};
use crate::simulation::world::world;
use crate::timeline::Query;

/// More than a list keeps.
const MENTIONS: usize = 14;

/// Somebody who is mentioned too often, by whom, and the posts, the newest first.
async fn with_mentions() -> (Stage, [AccountId; 2], Vec<PostId>) {
    let (stage, [reader, author]) = with_archive([0, 3]).await;
    let mut posts = Vec::new();
    for _ in 0..MENTIONS {
        let draft = Draft::text("x").mentions([reader]);
        posts.insert(0, stage.engines[1].publish(author, &draft).await.expect("a post").id);
    }
    stage.settled().await;
    (stage, [reader, author], posts)
}

impl Stage {
    async fn mentions(&self, reader: AccountId) -> Result<Vec<PostId>> {
        mentions(self.engines[2].clone(), reader).await
    }

    fn mentions_beside(&self, reader: AccountId) -> JoinHandle<Result<Vec<PostId>>> {
        tokio::spawn(mentions(self.engines[2].clone(), reader))
    }
}

async fn mentions(engine: crate::engine::Engine, reader: AccountId) -> Result<Vec<PostId>> {
    let (mut ids, mut query) = (Vec::new(), Query::mentions().limit(5));
    loop {
        let page = engine.as_reader(reader).read(&query).await?;
        if page.lacks_archive {
            return Err(Error::unavailable("the page says that it ends early"));
        }
        ids.extend(page.ids());
        let Some(next) = page.next else { return Ok(ids) };
        query = query.after(next);
    }
}

fn all_show(posts: &[PostId], shown: &Result<Vec<PostId>>, when: &str) {
    if !shown.as_ref().is_ok_and(|shown| shown == posts) {
        world(|w| w.violated(format!("{when}: mentions are {shown:?}, not {posts:?}")));
    }
}

/// H189: a page of mentions is being read; posts leave the list.
pub(in crate::simulation) fn left_while_it_is_read() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _], posts) = with_mentions().await;
        let page = close(2, At::Before, "ZREVRANGEBYSCORE");
        let reading = stage.mentions_beside(reader);
        page.reached().await;
        stage.move_due(1).await;
        page.open();
        all_show(&posts, &reading.await.expect("no panic"), "read while posts left");
        all_show(&posts, &stage.mentions(reader).await, "after that");
    }
    .boxed_local()
}

/// H189: a database fails over without what leaves.
pub(in crate::simulation) fn listing_forgotten() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _], posts) = with_mentions().await;
        settles_late();
        let before = copy();
        let moving = stage.move_beside(1);
        pause(SOON).await;
        restore(before);
        moving.await.expect("no panic");
        all_show(&posts, &stage.mentions(reader).await, "with a database that forgot them");
    }
    .boxed_local()
}

/// H169: an older copy takes the archive's place.
pub(in crate::simulation) fn list_of_an_older_copy() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _], posts) = with_mentions().await;
        let older = copy();
        stage.move_due(1).await;
        restore(older);
        let shown = stage.mentions(reader).await;
        if shown.is_ok() {
            all_show(&posts, &shown, "with an older copy");
        }
    }
    .boxed_local()
}

/// H189: what is deleted, or whose list it was, leaves nothing there.
pub(in crate::simulation) fn nothing_is_left_there() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author], posts) = with_mentions().await;
        stage.move_due(1).await;
        let list = NamedList::Mentions(reader).to_bytes();
        let there = || world(|w| w.archive.as_ref().map_or(0, |archive| archive.on_list(&list).len()));
        let oldest = posts.last().copied().expect("many");
        let before = there();
        stage.engines[1].delete(author, oldest).await.expect("a deletion");
        stage.settled().await;
        let after = there();
        if after + 1 != before {
            world(|w| w.violated(format!("{after} of {before} are there, one was deleted")));
        }
        stage.engines[1].delete_account(reader).await.expect("a deletion");
        stage.settled().await;
        let after = there();
        if after > 0 {
            world(|w| w.violated(format!("{after} mentions of somebody who was deleted")));
        }
    }
    .boxed_local()
}
