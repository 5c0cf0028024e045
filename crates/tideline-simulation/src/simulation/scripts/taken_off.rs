//! Somebody takes off lists of posts all the time, beside the post whose list is added to.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use tokio::time::timeout;

use super::social::{like_to_be_listed, reply_to_be_listed};
use super::{close, pause};
use crate::cluster::{Command, Request};
use crate::graph::COMPARED_TRIES;
use crate::ids::AccountId;
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
async fn all_is_taken_off(of: AccountId, mut listing: Gate) -> Gate {
    for _ in 0..COMPARED_TRIES {
        listing.reached().await;
        take_off(of);
        let next = close(0, At::Before, "list_set");
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
        let last = all_is_taken_off(parent, listing).await;
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
        let last = all_is_taken_off(parent, listing).await;
        stage.engines[1].delete(reply.author, reply.id).await.expect("a deletion");
        pause(100).await;
        last.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// The same with a like that is taken back.
pub(in crate::simulation) fn unliked_while_all_is_taken_off() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, reader, post, listing) = like_to_be_listed().await;
        let last = all_is_taken_off(post.author, listing).await;
        stage.engines[1].unlike(reader, post.id).await.expect("no like");
        pause(100).await;
        last.open();
        stage.ends_well().await;
    }
    .boxed_local()
}
