//! Posts that are deleted while they leave memory, or come back.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{BEGUN_FOR, Stage, WARM_FOR, with_a_post, with_an_archived_post};
use crate::ids::{AccountId, PostId};
use crate::simulation::gates::At;
use crate::simulation::lists_of_posts::check_lists;
use crate::simulation::scripts::{close, pause};
use crate::simulation::world::world;
use crate::timeline::Query;

impl Stage {
    async fn delete(&self, at: usize, author: AccountId, post: PostId) {
        self.engines[at].delete(author, post).await.expect("a deletion");
    }

    /// What was deleted shows nowhere.
    async fn is_gone(&self, reader: AccountId, author: AccountId, post: PostId, when: &str) {
        let page = self.engines[2].as_reader(reader).read(&Query::profile(author).limit(20)).await;
        let is_on_it = page.is_ok_and(|page| page.ids().contains(&post));
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

/// H177: a like finds P gone from memory, and stands before the archive. P is brought back to be deleted, the archive forgets it, and whoever
/// deletes it dies: P stays.
pub(in crate::simulation) fn liked_beside_a_deletion_that_breaks_off() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _, author], post) = with_an_archived_post().await;
        let listing = close(0, At::Before, "list_set");
        stage.like(0, reader, post).await;
        listing.reached().await;
        let looked = close(0, At::After, "HGET");
        listing.open();
        looked.reached().await;
        let begun = close(1, At::Before, "archive_begin");
        let engine = stage.engines[1].clone();
        drop(tokio::spawn(async move { engine.delete(author, post).await }));
        begun.reached().await;
        let forgotten = close(1, At::Before, "post_delete");
        begun.open();
        forgotten.reached().await;
        world(|w| w.kill(1));
        looked.open();
        stage.settled().await;
        pause(11_000).await;
        stage.move_due(2).await;
        check_lists("in the end");
    }
    .boxed_local()
}
