//! Rounds in which posts leave: each comes to an end.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{Stage, WARM_FOR, with_a_post, with_an_archived_post};
use crate::charter::{Decision, TenantSettings, tell_buckets, write};
use crate::simulation::gates::At;
use crate::simulation::scripts::{close, pause};
use crate::simulation::world::world;

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
