//! Rounds in which posts leave: each comes to an end.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::copies::{SOON, settles_late};
use super::{Stage, WARM_FOR, with_a_post, with_an_archived_post};
use crate::charter::{Decision, TenantSettings, tell_buckets, write};
use crate::cluster::{Command, Request};
use crate::ids::PostId;
use crate::post::PostRef;
use crate::simulation::gates::At;
use crate::simulation::scripts::{close, pause};
use crate::simulation::truth;
use crate::simulation::world::world;
use crate::stored::AgendaEntry;

/// Tokens that a round takes here, at most.
const TOKENS_MAX: usize = 8;

impl Stage {
    /// A round of one instance, the others are dead.
    async fn round_ends(&self, at: usize) {
        world(|w| (0..self.engines.len()).filter(|other| *other != at).for_each(|other| w.kill(other)));
        let mut token = close(at, At::Before, "archive_begin");
        let mut moving = self.move_beside(at);
        for _ in 0..TOKENS_MAX {
            tokio::select! {
                () = token.reached() => {}
                _ = &mut moving => return,
            }
            let next = close(at, At::Before, "archive_begin");
            token.open();
            token = next;
        }
        world(|w| {
            w.violated("a round in which posts leave memory comes to no end");
            w.kill(at);
        });
    }
}

/// H178: X's post has come back, and is to be looked at again; X is deleted.
pub(in crate::simulation) fn buried_with_what_came_back() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _, author], post) = with_an_archived_post().await;
        stage.like(1, reader, post).await;
        stage.settled().await;
        stage.engines[1].delete_account(author).await.expect("a deletion");
        stage.settled().await;
        pause(WARM_FOR).await;
        stage.round_ends(1).await;
    }
    .boxed_local()
}

/// H179: something else is decided, and an instance hasn't heard of it when it begins a round.
pub(in crate::simulation) fn of_an_older_decision() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, ..) = with_a_post().await;
        let (store, now) = (stage.engines[2].store(), stage.engines[2].decision());
        let settings = TenantSettings { tag_posts_max: 50, ..now.settings };
        let next = Decision { number: now.number + 1, settings, ..now };
        write(store.router(), store.keys(), &next).await.expect("written");
        tell_buckets(store.router(), store.keys(), &next).await.expect("told");
        stage.round_ends(1).await;
    }
    .boxed_local()
}

/// H241: a post that came back is due while a move of its author waits to be settled.
pub(in crate::simulation) fn due_while_another_settles() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _, author], post) = with_an_archived_post().await;
        settles_late();
        stage.publish(1, author).await;
        stage.settled().await;
        stage.like(1, reader, post).await;
        let engine = stage.engines[0].clone();
        let moving = tokio::spawn(async move { engine.archive_due().await });
        pause(SOON).await;
        // As fsck notes it, or an older look does.
        note(PostRef { id: post, author });
        stage.move_due(1).await;
        let moved = moving.await.expect("a round");
        if !moved.as_ref().is_ok_and(|moved| moved.left > 0) {
            world(|w| w.violated(format!("a move was voided by the next one: {moved:?}")));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H242: a post is to be looked at again that a failover has put above the floor.
pub(in crate::simulation) fn noted_above_the_floor() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, _, author], _) = with_an_archived_post().await;
        let newest = world(|w| truth::posts(w, author).live.last().copied()).expect("a post");
        let newest = PostId::from_u64(newest).expect("an id");
        note(PostRef { id: newest, author });
        stage.move_due(1).await;
        let shown = stage.profile(reader, author).await;
        if !shown.as_ref().is_ok_and(|shown| shown.contains(&newest)) {
            world(|w| w.violated(format!("{newest} left from above the floor: the profile shows {shown:?}")));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// Notes that a post is due, in its author's agenda.
fn note(post: PostRef) {
    world(|w| {
        let agenda = w.keys.agenda(w.keys.bucket_of(post.author));
        let note = Command::new("ZADD").arg(&agenda).arg("0");
        let note = note.arg(&AgendaEntry::Post(post).to_bytes());
        drop(w.execute(9, &Request::write(w.keys.slot_of(post.author), note)));
    });
}
