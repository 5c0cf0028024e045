//! Posts that are found by their words: who brings the index in line comes too late.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{Stage, hold};
use crate::ids::AccountId;
use crate::post::{Draft, SearchWords};
use crate::simulation::archive::ArchiveData;
use crate::simulation::index::check_index;
use crate::simulation::scripts::pause;
use crate::simulation::world::world;
use crate::timeline::Query;

async fn with_search<const N: usize>(buckets: [u16; N]) -> (Stage, [AccountId; N]) {
    world(|w| w.archive = Some(ArchiveData::searched()));
    let (stage, accounts) = Stage::with(buckets).await;
    stage.settled().await;
    (stage, accounts)
}

impl Stage {
    async fn index_is_right(&self, posts: u64) {
        self.settled().await;
        let found = check_index("in the end");
        if found != posts {
            world(|w| w.violated(format!("the index has {found} posts, not {posts}")));
        }
    }
}

/// H210: a post is read, then edited; the edit's task is faster.
pub(in crate::simulation) fn edited_while_it_is_indexed() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = with_search([0, 3]).await;
        let opened = hold("index_versions", 1);
        let post = stage.publish(1, author).await;
        pause(50).await;
        stage.edit(0, author, post).await;
        pause(50).await;
        opened.notify_one();
        stage.index_is_right(1).await;
        let query = Query::search(SearchWords::new("Anew").expect("a word"));
        let found = stage.engines[2].as_reader(reader).read(&query).await.expect("a page").ids();
        if found != [post] {
            world(|w| w.violated(format!("who searches finds {found:?}")));
        }
    }
    .boxed_local()
}

/// H211: a post is read of which no replica knows yet, and its server fails over without it.
pub(in crate::simulation) fn lost_while_it_is_indexed() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [_, author]) = with_search([0, 3]).await;
        stage.vouches(author, false);
        drop(stage.engines[1].publish(author, &Draft::text("x")).await);
        pause(50).await;
        stage.fail_over(author);
        stage.vouches(author, true);
        stage.index_is_right(0).await;
    }
    .boxed_local()
}

/// H212: a post of which the index has nothing yet is read, and deleted before that is written down.
pub(in crate::simulation) fn deleted_while_it_is_indexed() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [_, author]) = with_search([0, 3]).await;
        let opened = hold("index", 0);
        let post = stage.publish(1, author).await;
        pause(50).await;
        stage.engines[0].delete(author, post).await.expect("a deletion");
        pause(50).await;
        opened.notify_one();
        stage.index_is_right(0).await;
    }
    .boxed_local()
}

/// An account goes with all that the index has of it, wherever its posts lie.
pub(in crate::simulation) fn buried_with_its_words() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [_, author]) = with_search([0, 3]).await;
        for _ in 0..3 {
            stage.publish(1, author).await;
        }
        stage.settled().await;
        stage.move_due(1).await;
        stage.index_is_right(3).await;
        stage.engines[0].delete_account(author).await.expect("a deletion");
        stage.index_is_right(0).await;
    }
    .boxed_local()
}
