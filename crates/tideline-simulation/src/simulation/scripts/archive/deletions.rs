//! Posts that are deleted while they leave memory, or come back.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{BEGUN_FOR, Stage, WARM_FOR, with_a_post, with_an_archived_post};
use crate::charter::{Decision, TenantArchive, tell_buckets, write};
use crate::ids::{AccountId, PostId};
use crate::post::{Draft, PostRef};
use crate::simulation::gates::At;
use crate::simulation::lists_of_posts::check_lists;
use crate::simulation::scripts::{close, given_up_half_way, pause};
use crate::simulation::world::world;

impl Stage {
    async fn delete(&self, at: usize, author: AccountId, post: PostId) {
        self.engines[at].delete(author, post).await.expect("a deletion");
    }

    /// What was deleted shows nowhere.
    async fn is_gone(&self, reader: AccountId, author: AccountId, post: PostId, when: &str) {
        let is_on_it = self.profile(reader, author).await.is_ok_and(|shown| shown.contains(&post));
        if is_on_it || self.stored(post).await.is_some() {
            world(|w| w.violated(format!("{when}: {post} was deleted, and is there")));
        }
    }
}

/// H172: a mover has stored P; P is deleted above the floor, here alone. It goes on; a later move passes P.
pub(in crate::simulation) fn deleted_while_it_leaves() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _, author], post) = with_a_post().await;
        let leaving = close(0, At::Before, "archive_move");
        let moving = stage.move_beside(0);
        leaving.reached().await;
        stage.delete(1, author, post).await;
        leaving.open();
        moving.await.expect("a move");
        stage.is_gone(reader, author, post, "after the move").await;
        pause(BEGUN_FOR).await;
        stage.move_due(1).await;
        stage.is_gone(reader, author, post, "after the next one").await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H164: somebody has read P's row to bring it back; P is deleted, here and there; then it is written.
pub(in crate::simulation) fn deleted_while_it_is_brought_back() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _, author], post) = with_an_archived_post().await;
        let back = close(0, At::Before, "post_thaw");
        let liking = stage.like_beside(0, reader, post);
        back.reached().await;
        stage.delete(1, author, post).await;
        back.open();
        liking.await.expect("an answer");
        stage.settled().await;
        stage.is_gone(reader, author, post, "in the end").await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H164: or it was edited and moved again.
pub(in crate::simulation) fn edited_while_it_is_brought_back() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _, author], post) = with_an_archived_post().await;
        let back = close(0, At::Before, "post_thaw");
        let liking = stage.like_beside(0, reader, post);
        back.reached().await;
        stage.edit(1, author, post).await;
        pause(WARM_FOR).await;
        stage.move_due(1).await;
        back.open();
        liking.await.expect("an answer");
        stage.settled().await;
        stage.is_edited(post).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// Has an instance delete a post in the archive, which dies once the archive has forgotten it, and memory has not.
async fn deletion_breaks_off(stage: &Stage, at: usize, author: AccountId, post: PostId) {
    let begun = close(at, At::Before, "archive_begin");
    let engine = stage.engines[at].clone();
    drop(tokio::spawn(async move { engine.delete(author, post).await }));
    begun.reached().await;
    let forgotten = close(at, At::Before, "post_delete");
    begun.open();
    forgotten.reached().await;
    world(|w| w.kill(at));
}

/// H175: a deletion dies when the archive has forgotten the post and memory has not.
pub(in crate::simulation) fn broken_off() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _, author], post) = with_an_archived_post().await;
        deletion_breaks_off(&stage, 0, author, post).await;
        pause(11_000).await;
        stage.move_due(1).await;
        let shows = stage.profile(reader, author).await.is_ok_and(|shown| shown.contains(&post));
        if shows != stage.stored(post).await.is_some() {
            world(|w| w.violated(format!("{post} is there by its id, and its author's profile lacks it")));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H164: a reply is brought back to be deleted; its server fails over without that, and the archive is about to forget
/// it: then nobody would take it off its parent's list.
pub(in crate::simulation) fn cold_again_before_it_is_forgotten() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [parent, _, author], _) = with_a_post().await;
        let of = PostRef { id: stage.publish(1, parent).await, author: parent };
        let draft = Draft::text("so").reply_to(of);
        let reply = stage.engines[1].publish(author, &draft).await.expect("a reply").id;
        stage.publish(1, author).await;
        stage.settled().await;
        stage.move_due(1).await;
        stage.settled().await;
        let forgetting = close(0, At::Before, "archive_begin");
        let engine = stage.engines[0].clone();
        let deleting = tokio::spawn(async move { engine.delete(author, reply).await });
        forgetting.reached().await;
        stage.fail_over(author);
        forgetting.open();
        deleting.await.expect("no panic").expect("a deletion");
        stage.settled().await;
        stage.is_gone(parent, author, reply, "in the end").await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H170: a mover has looked at X's posts, and is frozen; X is deleted, and nothing was ever moved.
pub(in crate::simulation) fn buried_while_they_leave() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [_, _, author], _) = with_a_post().await;
        let looked = close(0, At::Fence, "");
        let moving = stage.move_beside(0);
        looked.reached().await;
        stage.engines[1].delete_account(author).await.expect("a deletion");
        stage.settled().await;
        looked.open();
        moving.await.expect("a move");
        let left = world(|w| w.archive.as_ref().map_or(0, |archive| archive.of(author).count()));
        if left > 0 {
            world(|w| w.violated(format!("{author} is deleted, and the archive has {left} posts of it")));
        }
    }
    .boxed_local()
}

/// H188: and then the author is deleted.
pub(in crate::simulation) fn buried_after_a_deletion_that_broke_off() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [_, _, author], post) = with_an_archived_post().await;
        deletion_breaks_off(&stage, 0, author, post).await;
        stage.engines[1].delete_account(author).await.expect("a deletion");
        stage.settled().await;
        pause(11_000).await;
        stage.move_due(2).await;
        if stage.stored(post).await.is_some() {
            world(|w| w.violated(format!("{author} is deleted, and memory has {post}")));
        }
    }
    .boxed_local()
}

/// H177: a like finds P gone from memory, and stands before the archive. P is brought back to be deleted, the archive
/// forgets it, and whoever deletes it dies: P stays.
pub(in crate::simulation) fn liked_beside_a_deletion_that_breaks_off() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _, author], post) = with_an_archived_post().await;
        let listing = close(0, At::Before, "list_set");
        stage.like(0, reader, post).await;
        listing.reached().await;
        let looked = close(0, At::After, "LINDEX");
        listing.open();
        looked.reached().await;
        deletion_breaks_off(&stage, 1, author, post).await;
        looked.open();
        stage.settled().await;
        pause(11_000).await;
        stage.move_due(2).await;
        check_lists("in the end");
    }
    .boxed_local()
}

/// H243: P is stored; its deletion fails half-way, and P is gone, and listed still; P is to leave.
pub(in crate::simulation) fn half_deleted_while_it_leaves() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _, author], post) = with_a_post().await;
        let leaving = close(2, At::Before, "archive_move");
        let moving = stage.move_beside(2);
        leaving.reached().await;
        let engine = stage.engines[0].clone();
        let line = "redis.call('LSET', key, place, string.char(string.byte(id) + 128) .. string.sub(id, 2))";
        given_up_half_way("post_delete", line, async move { engine.delete(author, post).await }).await;
        leaving.open();
        moving.await.expect("a move");
        stage.settled().await;
        let shown = stage.profile(reader, author).await;
        if shown.as_ref().is_ok_and(|shown| shown.contains(&post)) {
            world(|w| w.violated(format!("{post} was half deleted, and is back in the archive: {shown:?}")));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H180: P is brought back to be deleted; its server fails over without that, and without P's move. The archive forgets
/// P, and whoever deletes it dies. More posts are to stay in memory by now, so the floor doesn't pass P.
pub(in crate::simulation) fn above_the_floor_again() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _, author], _) = with_an_archived_post().await;
        stage.publish(1, author).await;
        stage.settled().await;
        let post = stage.profile(reader, author).await.expect("a page")[1];
        stage.move_due(1).await;
        let begun = close(0, At::Before, "archive_begin");
        let engine = stage.engines[0].clone();
        drop(tokio::spawn(async move { engine.delete(author, post).await }));
        begun.reached().await;
        stage.fail_over(author);
        let forgotten = close(0, At::Before, "post_delete");
        begun.open();
        forgotten.reached().await;
        world(|w| w.kill(0));
        stays_longer(&stage).await;
        // What was begun before the failover counts for that long.
        pause(40_000).await;
        stage.move_due(2).await;
        if stage.stored(post).await.is_none() {
            world(|w| w.violated(format!("{post} is neither in memory nor below the floor")));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// Five posts of each account are to stay in memory.
async fn stays_longer(stage: &Stage) {
    let (store, now) = (stage.engines[2].store(), stage.engines[2].decision());
    let archive = now.archive.map(|archive| TenantArchive { hot_posts: 5, ..archive });
    let next = Decision { number: now.number + 1, archive, ..now };
    write(store.router(), store.keys(), &next).await.expect("written");
    tell_buckets(store.router(), store.keys(), &next).await.expect("told");
}
