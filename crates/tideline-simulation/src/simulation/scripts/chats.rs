//! Chats: who leaves, opens one, reads on, is deleted, while something of it is on its way.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{Stage, close};
use crate::engine::Engine;
use crate::ids::{AccountId, PostId};
use crate::post::Draft;
use crate::simulation::gates::At;
use crate::simulation::world::world;
use crate::{ChatQuery, Query};

/// Two accounts in buckets of their own, and their chat.
async fn with_two() -> (Stage, [AccountId; 2], AccountId) {
    let (stage, [ada, ben]) = Stage::with([1, 3]).await;
    let chat = stage.engines[0].open_chat(ada, &[ben], None).await.expect("a chat").value;
    (stage, [ada, ben], chat)
}

async fn said(engine: &Engine, by: AccountId, chat: AccountId) -> crate::Result<PostId> {
    engine.publish(by, &Draft::text("x").chat(chat)).await.map(|published| published.id)
}

/// How many messages somebody hasn't read, of all its chats.
async fn unread(engine: &Engine, reader: AccountId) -> usize {
    let list = engine.as_reader(reader).chats(&ChatQuery::default()).await.expect("a list");
    list.chats.iter().map(|chat| chat.unread).sum()
}

/// H247: an instance remembers that nobody is out of a chat; a member leaves on another one, and that is acknowledged.
pub(in crate::simulation) fn left_where_others_remember() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [ada, ben]) = Stage::cached([1, 3]).await;
        let chat = stage.engines[0].open_chat(ada, &[ben], None).await.expect("a chat").value;
        let message = said(&stage.engines[0], ada, chat).await.expect("a message");
        stage.settled().await;
        let reader = stage.engines[1].as_reader(ben);
        let before = reader.posts(&[message]).await.expect("an answer");
        if before.posts.len() != 1 {
            world(|w| w.violated("a member doesn't see what was said"));
        }
        stage.engines[0].leave_chat(chat, ben).await.expect("it leaves");
        let page = reader.read(&Query::chat(chat)).await;
        let after = reader.posts(&[message]).await.expect("an answer");
        if !after.posts.is_empty() || page.is_ok() {
            world(|w| w.violated("who has left a chat reads it"));
        }
    }
    .boxed_local()
}

/// H248: a member's instance has seen that it is in and is frozen; it leaves elsewhere, and that is acknowledged.
pub(in crate::simulation) fn leaves_before_it_writes() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [_, ben], chat) = with_two().await;
        let writing = close(0, At::Before, "post_publish");
        let engine = stage.engines[0].clone();
        let written = tokio::spawn(async move { said(&engine, ben, chat).await });
        writing.reached().await;
        stage.engines[1].leave_chat(chat, ben).await.expect("it leaves");
        writing.open();
        if written.await.expect("no panic").is_ok() {
            world(|w| w.violated("who has left a chat writes to it"));
        }
    }
    .boxed_local()
}

/// H249: a marker is on its way while a later one is set elsewhere.
pub(in crate::simulation) fn a_mark_comes_late() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [ada, ben], chat) = with_two().await;
        let first = said(&stage.engines[2], ada, chat).await.expect("a message");
        said(&stage.engines[2], ada, chat).await.expect("a message");
        stage.settled().await;
        let marking = close(0, At::Before, "set_add");
        let engine = stage.engines[0].clone();
        let marked = tokio::spawn(async move { engine.read_chat(chat, ben, Some(first)).await });
        marking.reached().await;
        stage.engines[1].read_chat(chat, ben, None).await.expect("it is read");
        marking.open();
        marked.await.expect("no panic").expect("it is read");
        if unread(&stage.engines[2], ben).await != 0 {
            world(|w| w.violated("what was read is unread again"));
        }
    }
    .boxed_local()
}

/// H253: two open a chat with each other at once.
pub(in crate::simulation) fn opened_at_once() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [ada, ben]) = Stage::with([1, 3]).await;
        let opening = close(0, At::Before, "account_create");
        let engine = stage.engines[0].clone();
        let opened = tokio::spawn(async move { engine.open_chat(ada, &[ben], None).await });
        opening.reached().await;
        let others = stage.engines[1].open_chat(ben, &[ada], None).await.expect("a chat").value;
        opening.open();
        if opened.await.expect("no panic").expect("a chat").value != others {
            world(|w| w.violated("two have two chats with each other"));
        }
    }
    .boxed_local()
}

/// H257: a member leaves, and has blocked the chat; it opens it again elsewhere before the chat blocks it.
pub(in crate::simulation) fn opened_while_it_leaves() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [ada, ben], chat) = with_two().await;
        let leaving = close(0, At::After, "change");
        let engine = stage.engines[0].clone();
        let left = tokio::spawn(async move { engine.leave_chat(chat, ben).await });
        leaving.reached().await;
        stage.engines[1].open_chat(ben, &[ada], None).await.expect("it is back");
        leaving.open();
        left.await.expect("no panic").expect("it has left");
        let tenant = stage.engines[2].tenant();
        let by_chat = tenant.is_blocked(chat, ben).await.expect("an answer");
        let by_leaver = tenant.is_blocked(ben, chat).await.expect("an answer");
        if by_chat != by_leaver {
            world(|w| w.violated("a member is half out of a chat"));
        }
    }
    .boxed_local()
}
