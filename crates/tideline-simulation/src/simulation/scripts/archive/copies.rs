//! Archives that have forgotten something: of a server that has taken over, or restored from an older copy.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{Stage, hold, with_a_post, with_an_archived_post};
use crate::ids::{AccountId, PostId};
use crate::simulation::archive::ArchiveData;
use crate::simulation::scripts::pause;
use crate::simulation::truth;
use crate::simulation::world::world;

const SETTLES_WITHIN: Duration = Duration::from_millis(100);
/// So long it takes until somebody looks at what was forgotten, ms.
const LOOKED_AT: u64 = 11_000;

/// After that time somebody looks whether a burial was made, ms.
const MADE_WITHIN: u64 = 5_010;

/// Within [`SETTLES_WITHIN`], ms.
pub(super) const SOON: u64 = 20;

pub(super) fn copy() -> ArchiveData {
    world(|w| w.archive.clone().expect("an archive"))
}

/// What the archive answers may be lost for a while.
pub(super) fn settles_late() {
    world(|w| w.archive.iter_mut().for_each(|archive| archive.settles_within = SETTLES_WITHIN));
}

/// What a copy has is all that there is from now on.
pub(super) fn restore(copy: ArchiveData) -> ArchiveData {
    world(|w| w.archive.replace(copy).expect("an archive"))
}

/// A post is in the archive, and a copy of that; another one is there too, then the copy takes its place. The reader,
/// the author, all that has been published, and what there was before the copy was taken for it.
async fn with_an_older_copy() -> (Stage, [AccountId; 2], Vec<PostId>, ArchiveData) {
    let (stage, [reader, _, author], first) = with_an_archived_post().await;
    let older = copy();
    let second = world(|w| truth::posts(w, author).live.last().copied());
    let second = PostId::from_u64(second.expect("two posts")).expect("an id");
    let third = stage.publish(1, author).await;
    stage.settled().await;
    stage.move_due(1).await;
    stage.settled().await;
    let whole = restore(older);
    (stage, [reader, author], vec![third, second, first], whole)
}

impl Stage {
    /// A profile that can be read is whole.
    async fn is_whole_or_away(&self, [reader, author]: [AccountId; 2], posts: &[PostId], when: &str) {
        match self.profile(reader, author).await {
            Ok(shown) if shown != posts => {
                world(|w| w.violated(format!("{when}: the profile of {author} is {shown:?}, not {posts:?}")));
            }
            _ => {}
        }
    }
}

/// H169: what has left memory since the copy was taken is not in it.
pub(in crate::simulation) fn restored() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, of, posts, whole) = with_an_older_copy().await;
        stage.is_whole_or_away(of, &posts, "with an older copy").await;
        restore(whole);
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H169: and the next move would make it look new again.
pub(in crate::simulation) fn moved_on_top() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, of, mut posts, _) = with_an_older_copy().await;
        posts.insert(0, stage.publish(1, of[1]).await);
        stage.settled().await;
        stage.move_due(1).await;
        stage.is_whole_or_away(of, &posts, "after the next move").await;
    }
    .boxed_local()
}

/// H169, H164: the copy is of a time before a post was deleted.
pub(in crate::simulation) fn restored_from_before_a_deletion() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _, author], post) = with_an_archived_post().await;
        let older = copy();
        stage.engines[1].delete(author, post).await.expect("a deletion");
        stage.settled().await;
        restore(older);
        if stage.profile(reader, author).await.is_ok_and(|shown| shown.contains(&post)) {
            world(|w| w.violated(format!("{post} was deleted, and is back with an older copy")));
        }
    }
    .boxed_local()
}

/// H169: a database fails over without what it has just said that it has.
pub(in crate::simulation) fn forgotten_before_it_settles() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _, author], post) = with_a_post().await;
        settles_late();
        let before = copy();
        let moving = stage.move_beside(0);
        pause(50).await;
        restore(before);
        moving.await.expect("a move");
        let shown = stage.profile(reader, author).await;
        if !shown.as_ref().is_ok_and(|shown| shown.contains(&post)) {
            world(|w| w.violated(format!("{post} is lost: the profile of {author} is {shown:?}")));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// The reader, the author, the post that is to be deleted, and what is left then.
struct Deletion([AccountId; 2], PostId, Vec<PostId>);

impl Stage {
    /// What was deleted stays so, and the rest is there.
    async fn is_read(&self, Deletion([reader, author], post, left): &Deletion, when: &str) {
        let shown = self.profile(*reader, *author).await;
        if !shown.as_ref().is_ok_and(|shown| shown == left) {
            world(|w| w.violated(format!("{when}: the profile of {author} is {shown:?}, not {left:?}")));
        }
        let stored = self.engines[2].stored().post(*post).await;
        if !matches!(stored, Ok(None)) {
            world(|w| w.violated(format!("{when}: {post} was deleted, and is {stored:?}")));
        }
    }
}

/// Two posts are in the archive; one of them is deleted, which the archive forgets.
async fn with_a_forgotten_deletion() -> (Stage, Deletion) {
    let (stage, [reader, _, author], post) = with_an_archived_post().await;
    stage.publish(1, author).await;
    stage.settled().await;
    stage.move_due(1).await;
    let left = stage.profile(reader, author).await.expect("a page");
    let left = left.into_iter().filter(|id| *id != post).collect();
    settles_late();
    let before = copy();
    stage.engines[1].delete(author, post).await.expect("a deletion");
    stage.settled().await;
    restore(before);
    (stage, Deletion([reader, author], post, left))
}

/// H186: a database fails over without a deletion that it has acknowledged.
pub(in crate::simulation) fn deletion_forgotten() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, deletion) = with_a_forgotten_deletion().await;
        pause(LOOKED_AT).await;
        stage.move_due(1).await;
        stage.is_read(&deletion, "once that has settled").await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H186: it forgets what it was told once more, too.
pub(in crate::simulation) fn deletion_forgotten_twice() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, deletion) = with_a_forgotten_deletion().await;
        let (before, Deletion(_, post, _)) = (copy(), &deletion);
        for _ in 0..2 * LOOKED_AT / SOON {
            if copy().post(*post).is_none() {
                break;
            }
            pause(SOON).await;
        }
        // By whichever round, and it has not settled yet.
        restore(before);
        pause(2 * LOOKED_AT).await;
        stage.move_due(1).await;
        stage.is_read(&deletion, "once that has settled").await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H187: a database fails over without the burial of an account.
pub(in crate::simulation) fn burial_forgotten() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [_, _, author], _) = with_an_archived_post().await;
        settles_late();
        let before = copy();
        stage.engines[1].delete_account(author).await.expect("a deletion");
        stage.settled().await;
        restore(before);
        pause(LOOKED_AT).await;
        stage.move_due(1).await;
        let left = world(|w| w.archive.as_ref().map_or(0, |archive| archive.of(author).count()));
        if left > 0 {
            world(|w| w.violated(format!("{author} is deleted, and the archive has {left} posts of it")));
        }
    }
    .boxed_local()
}

/// H240: a burial is made so late that whoever looks whether it was sees it at that moment; a database fails over
/// without it.
pub(in crate::simulation) fn burial_made_late() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [_, _, author], _) = with_an_archived_post().await;
        let settles_within = Duration::from_secs(2);
        world(|w| w.archive.iter_mut().for_each(|archive| archive.settles_within = settles_within));
        // That which takes its posts.
        let (before, opened) = (copy(), hold("change", 1));
        stage.engines[1].delete_account(author).await.expect("a deletion");
        pause(MADE_WITHIN).await;
        opened.notify_one();
        pause(4 * SOON).await;
        // Nobody else looks meanwhile.
        world(|w| [1, 2].into_iter().for_each(|other| w.kill(other)));
        let looking = stage.move_beside(0);
        pause(4 * SOON).await;
        restore(before);
        looking.await.expect("a round");
        pause(2 * LOOKED_AT).await;
        stage.move_due(0).await;
        let left = world(|w| w.archive.as_ref().map_or(0, |archive| archive.of(author).count()));
        if left > 0 {
            world(|w| w.violated(format!("{author} is deleted, and the archive has {left} posts of it")));
        }
    }
    .boxed_local()
}
