//! Posts that leave memory, and those that come back.

pub(in crate::simulation) mod copies;
pub(in crate::simulation) mod deletions;
pub(in crate::simulation) mod lists;
pub(in crate::simulation) mod rounds;
pub(in crate::simulation) mod searched;

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::{Stage, close, given_up_half_way, pause};
use crate::error::{Error, Result};
use crate::ids::{AccountId, PostId};
use crate::post::{Draft, Edit, Post, PostRef};
use crate::simulation::archive::{ArchiveData, HeldCall};
use crate::simulation::gates::At;
use crate::simulation::lua;
use crate::simulation::truth;
use crate::simulation::world::world;
use crate::timeline::{Query, Range};

/// So long nobody else begins a move that was begun and not ended, ms.
const BEGUN_FOR: u64 = 31_000;
/// So long a post stays at least that has come back, ms.
const WARM_FOR: u64 = 150;

/// One call of the archive waits until it may go on: the first of these that comes after `skipped` others.
fn hold(what: &'static str, skipped: usize) -> Arc<Notify> {
    let opened = Arc::new(Notify::new());
    let held = HeldCall { what, skipped, opened: opened.clone() };
    world(|w| w.archive.iter_mut().for_each(|archive| archive.held = Some(held.clone())));
    opened
}

/// The same as [`Stage::with`] where there is an archive: of each account all posts may leave but the newest.
async fn with_archive<const N: usize>(buckets: [u16; N]) -> (Stage, [AccountId; N]) {
    world(|w| w.archive = Some(ArchiveData::default()));
    Stage::with(buckets).await
}

/// Two readers, and an author of two posts, the older one of which may leave.
async fn with_a_post() -> (Stage, [AccountId; 3], PostId) {
    let (stage, accounts) = with_archive([0, 1, 3]).await;
    let post = stage.publish(1, accounts[2]).await;
    stage.publish(1, accounts[2]).await;
    stage.settled().await;
    (stage, accounts, post)
}

/// The same, and it has left.
async fn with_an_archived_post() -> (Stage, [AccountId; 3], PostId) {
    let (stage, accounts, post) = with_a_post().await;
    stage.move_due(1).await;
    stage.settled().await;
    (stage, accounts, post)
}

impl Stage {
    /// Has all posts leave that are due.
    async fn move_due(&self, at: usize) {
        self.engines[at].archive_due().await.expect("an archive that works");
    }

    fn move_beside(&self, at: usize) -> JoinHandle<()> {
        let engine = self.engines[at].clone();
        tokio::spawn(async move { drop(engine.archive_due().await) })
    }

    fn like_beside(&self, at: usize, reader: AccountId, post: PostId) -> JoinHandle<()> {
        let engine = self.engines[at].clone();
        tokio::spawn(async move { drop(engine.like(reader, post).await) })
    }

    async fn like(&self, at: usize, reader: AccountId, post: PostId) {
        self.engines[at].like(reader, post).await.expect("a like");
    }

    async fn edit(&self, at: usize, author: AccountId, post: PostId) {
        let edit = Edit { text: Some("anew".into()), ..Edit::default() };
        self.engines[at].edit(author, post, &edit).await.expect("an edit");
    }

    /// The newest posts of a profile.
    async fn profile(&self, reader: AccountId, author: AccountId) -> Result<Vec<PostId>> {
        let page = self.engines[2].as_reader(reader).read(&Query::profile(author).limit(20)).await?;
        if page.lacks_archive {
            Err(Error::unavailable("the page says that it ends early"))
        } else {
            Ok(page.ids())
        }
    }

    async fn stored(&self, post: PostId) -> Option<Post> {
        self.engines[2].stored().post(post).await.expect("an answer")
    }

    /// What an edit that was acknowledged has made of a post stands there.
    async fn is_edited(&self, post: PostId) {
        let text = self.stored(post).await.map(|post| post.content().text.clone());
        if text.as_deref() != Some("anew") {
            world(|w| w.violated(format!("{post} was edited, and says {text:?}")));
        }
    }
}

/// H162: P is stored; a like arrives; P is to leave.
pub(in crate::simulation) fn liked_while_it_leaves() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _, _], post) = with_a_post().await;
        let leaving = close(0, At::Before, "archive_move");
        let moving = stage.move_beside(0);
        leaving.reached().await;
        stage.like(1, reader, post).await;
        stage.settled().await;
        leaving.open();
        moving.await.expect("a move");
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H162: the same with an edit.
pub(in crate::simulation) fn edited_while_it_leaves() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [_, _, author], post) = with_a_post().await;
        let leaving = close(0, At::Before, "archive_move");
        let moving = stage.move_beside(0);
        leaving.reached().await;
        stage.edit(1, author, post).await;
        leaving.open();
        moving.await.expect("a move");
        stage.is_edited(post).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H162: one like goes and another one comes: P says the same number.
pub(in crate::simulation) fn liked_by_another_while_it_leaves() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, other, _], post) = with_a_post().await;
        stage.like(1, reader, post).await;
        stage.settled().await;
        let leaving = close(0, At::Before, "archive_move");
        let moving = stage.move_beside(0);
        leaving.reached().await;
        stage.engines[1].unlike(reader, post).await.expect("no like");
        stage.like(1, other, post).await;
        stage.settled().await;
        leaving.open();
        moving.await.expect("a move");
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H163: a mover has stored P, and is frozen. P is liked, another mover stores it so, the like is taken back: P is
/// what the first one has seen, and the archive isn't.
pub(in crate::simulation) fn unliked_beside_two_movers() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _, _], post) = with_a_post().await;
        let others = close(2, At::Before, "ZRANGEBYSCORE");
        let leaving = close(0, At::Before, "archive_move");
        let moving = stage.move_beside(0);
        leaving.reached().await;
        stage.like(1, reader, post).await;
        stage.settled().await;
        let leaving_anew = close(1, At::Before, "archive_move");
        pause(BEGUN_FOR).await;
        let moving_anew = stage.move_beside(1);
        leaving_anew.reached().await;
        stage.engines[2].unlike(reader, post).await.expect("no like");
        stage.settled().await;
        leaving.open();
        moving.await.expect("a move");
        leaving_anew.open();
        moving_anew.await.expect("a move");
        others.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H163: a mover looks at a post of which no replica knows yet; its server fails over without it. Were it stored, a
/// later move would show what had never lasted.
pub(in crate::simulation) fn lost_after_it_was_stored() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _, author]) = with_archive([0, 1, 3]).await;
        stage.settled().await;
        stage.vouches(author, false);
        for _ in 0..2 {
            drop(stage.engines[1].publish(author, &Draft::text("x")).await);
        }
        let lost = world(|w| truth::posts(w, author).live);
        drop(stage.engines[0].archive_due().await);
        stage.fail_over(author);
        stage.vouches(author, true);
        stage.settled().await;
        for _ in 0..2 {
            stage.publish(1, author).await;
        }
        stage.settled().await;
        pause(BEGUN_FOR).await;
        stage.move_due(1).await;
        let shown = stage.profile(reader, author).await.expect("a page");
        if lost.is_empty() || shown.iter().any(|post| lost.contains(&post.get())) {
            world(|w| {
                w.violated(format!("of {lost:?}, which were lost, the profile of {author} shows {shown:?}"))
            });
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H165: a move fails before the floor, and who has sent it dies.
pub(in crate::simulation) fn moved_half_way() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [_, reader, author], post) = with_a_post().await;
        let engine = stage.engines[0].clone();
        let moving = async move { engine.archive_due().await };
        given_up_half_way("archive_move", "redis.call('LSET', outbox, passed, new_first)", moving).await;
        if stage.stored(post).await.is_none() {
            world(|w| w.violated(format!("{post} is gone, and nobody has deleted it")));
        }
        stage.follow(1, reader, author).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H166: a home is filled of an author most of whose posts are in the archive.
pub(in crate::simulation) fn filled_of_the_archived() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [_, reader, author], _) = with_an_archived_post().await;
        stage.follow(1, reader, author).await;
        stage.drop_home(reader);
        stage.home_of(reader).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H167: R has a home, and follows an author most of whose posts are in the archive.
pub(in crate::simulation) fn followed_after_they_left() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [_, reader, author], _) = with_an_archived_post().await;
        stage.home_of(reader).await;
        stage.follow(1, reader, author).await;
        stage.settled().await;
        stage.read(1, reader, 3).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H171: a post is liked, and answered, that has left memory.
pub(in crate::simulation) fn liked_in_the_archive() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _, _], post) = with_an_archived_post().await;
        stage.like(0, reader, post).await;
        stage.settled().await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H173: X reposts what it has reposted; its repost is in the archive.
pub(in crate::simulation) fn reposted_in_the_archive() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _, _], post) = with_a_post().await;
        let repost = stage.engines[0].repost(reader, post).await.expect("a repost").id;
        stage.publish(0, reader).await;
        stage.settled().await;
        stage.move_due(1).await;
        let again = stage.engines[0].repost(reader, post).await.expect("a repost").id;
        if again != repost {
            world(|w| w.violated(format!("{post} is reposted twice, as {repost} and as {again}")));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H174: a post with likes is brought back, and that fails in the middle.
pub(in crate::simulation) fn brought_back_half_way() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, other, _], post) = with_a_post().await;
        stage.like(0, other, post).await;
        stage.settled().await;
        stage.move_due(1).await;
        lua::fail_once("post_thaw", "redis.call('ZADD', key, unpack(scored))");
        stage.like(0, reader, post).await;
        stage.settled().await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H176: who pages upwards has come to where the archive ended; then it ends higher.
pub(in crate::simulation) fn moved_while_it_is_paged_upwards() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _, author], first) = with_an_archived_post().await;
        let mut posts = Vec::new();
        for _ in 0..3 {
            posts.push(stage.publish(1, author).await);
        }
        stage.settled().await;
        let range = Range { min_id: Some(first), ..Range::default() };
        let query = Query { range, limit: Some(20), ..Query::profile(author) };
        let engine = stage.engines[0].clone();
        let above = close(0, At::Before, "outbox_page");
        let reading = tokio::spawn(async move { engine.as_reader(reader).read(&query).await });
        above.reached().await;
        stage.move_due(1).await;
        above.open();
        let page = reading.await.expect("no panic").expect("a page");
        let shown = page.ids();
        let lacks: Vec<_> = posts.iter().filter(|id| !shown.contains(id)).collect();
        if !lacks.is_empty() {
            world(|w| w.violated(format!("HOLE: a page above {first} lacks {lacks:?}; it shows {shown:?}")));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H168: a look finds P gone; a failover brings it back, and it leaves again between the second look's two questions.
pub(in crate::simulation) fn left_between_two_looks() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [_, _, author], post) = with_a_post().await;
        stage.move_due(1).await;
        let gone = close(0, At::After, "GET");
        let engine = stage.engines[0].clone();
        let looking = tokio::spawn(async move { engine.stored().post(post).await });
        gone.reached().await;
        stage.fail_over(author);
        let between = close(0, At::After, "LINDEX");
        gone.open();
        between.reached().await;
        pause(BEGUN_FOR).await;
        stage.move_due(1).await;
        between.open();
        if !looking.await.expect("no panic").is_ok_and(|found| found.is_some()) {
            world(|w| w.violated(format!("{post} is not found while it leaves memory")));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// What has come back leaves again, though nobody does anything with it any more.
pub(in crate::simulation) fn nobody_touches_it_again() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _, author], post) = with_an_archived_post().await;
        stage.like(1, reader, post).await;
        stage.settled().await;
        pause(WARM_FOR).await;
        stage.move_due(1).await;
        if world(|w| truth::is_hot(w, PostRef { id: post, author })) {
            world(|w| w.violated(format!("{post} has come back, and stays in memory")));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}
