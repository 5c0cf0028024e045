//! Somebody takes off lists of posts all the time, beside the post whose list is added to.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use tokio::time::timeout;

use super::lists::{lists_are_right, nobody_is_mentioned};
use super::social::{like_to_be_listed, reply_to_be_listed};
use super::{Stage, close, pause};
use crate::cluster::{Command, Request};
use crate::graph::COMPARED_TRIES;
use crate::ids::AccountId;
use crate::post::Draft;
use crate::simulation::gates::{At, Gate};
use crate::simulation::world::world;

/// Something else is taken off beside that account's posts.
fn take_off(of: AccountId) {
    world(|w| {
        let (key, slot) = (w.keys.last_removal(w.keys.bucket_of(of)), w.keys.slot_of(of));
        let now = w.commands;
        let _ = w.execute(9, &Request::write(slot, Command::new("SET").arg(&key).arg(now)));
    });
}

/// That happens whenever instance 0 is about to add to a list there, for as often as it compares. Gives where the next
/// addition stands, which is not compared.
async fn all_is_taken_off(of: AccountId, command: &'static str, mut listing: Gate) -> Gate {
    for _ in 0..COMPARED_TRIES {
        listing.reached().await;
        take_off(of);
        let next = close(0, At::Before, command);
        listing.open();
        listing = next;
    }
    listing.reached().await;
    listing
}

/// H126: somebody takes off all the time. That keeps a reply from its parent's list for so many tries, and no more.
pub(in crate::simulation) fn listed_while_all_is_taken_off() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, parent, _, listing) = reply_to_be_listed().await;
        let last = all_is_taken_off(parent, "list_set", listing).await;
        take_off(parent);
        let one_more = close(0, At::Before, "list_set");
        last.open();
        if timeout(Duration::from_millis(100), one_more.reached()).await.is_ok() {
            world(|w| w.violated("who takes off all the time keeps a reply from its list"));
        }
        one_more.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// The same, and the reply is deleted, and that settled, before the last addition, which is not compared.
pub(in crate::simulation) fn deleted_while_all_is_taken_off() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, parent, reply, listing) = reply_to_be_listed().await;
        let last = all_is_taken_off(parent, "list_set", listing).await;
        stage.engines[1].delete(reply.author, reply.id).await.expect("a deletion");
        pause(100).await;
        last.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// The same with a post that mentions somebody.
pub(in crate::simulation) fn deleted_while_all_is_taken_off_beside_mentions() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author, named]) = Stage::with([1, 3]).await;
        let listing = close(0, At::Before, "set_add");
        let draft = Draft::text("x").mentions([named]);
        let post = stage.engines[0].publish(author, &draft).await.expect("a post").id;
        let last = all_is_taken_off(named, "set_add", listing).await;
        stage.engines[1].delete(author, post).await.expect("a deletion");
        pause(100).await;
        last.open();
        lists_are_right(&stage).await;
    }
    .boxed_local()
}

/// The same, and the account is deleted that it mentions.
pub(in crate::simulation) fn buried_while_all_is_taken_off() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author, named]) = Stage::with([1, 3]).await;
        let listing = close(0, At::Before, "set_add");
        stage.engines[0].publish(author, &Draft::text("x").mentions([named])).await.expect("a post");
        let last = all_is_taken_off(named, "set_add", listing).await;
        stage.engines[1].delete_account(named).await.expect("deleted");
        pause(2_000).await;
        last.open();
        nobody_is_mentioned(&stage, named).await;
    }
    .boxed_local()
}

/// The same with a like that is taken back.
pub(in crate::simulation) fn unliked_while_all_is_taken_off() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, reader, post, listing) = like_to_be_listed().await;
        let last = all_is_taken_off(post.author, "list_set", listing).await;
        stage.engines[1].unlike(reader, post.id).await.expect("no like");
        pause(100).await;
        last.open();
        stage.ends_well().await;
    }
    .boxed_local()
}
