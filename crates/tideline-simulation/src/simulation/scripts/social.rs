//! Likes, and the lists of posts.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{Stage, close, given_up_half_way, lost_in_a_socket};
use crate::engine::Engine;
use crate::ids::{AccountId, PostId};
use crate::keys::{Place, set_of_account};
use crate::post::{Draft, PostRef};
use crate::reader::ReaderTies;
use crate::simulation::gates::{At, Gate};
use crate::simulation::world::world;

async fn ties(engine: &Engine, account: AccountId, post: PostRef) -> ReaderTies {
    engine.as_reader(account).ties(&[post]).await.expect("ties")[0]
}

async fn is_liked(engine: &Engine, account: AccountId, post: PostRef) -> bool {
    ties(engine, account, post).await.is_liked
}

async fn is_reposted(engine: &Engine, account: AccountId, post: PostRef) -> bool {
    ties(engine, account, post).await.repost.is_some()
}

async fn like(engine: &Engine, account: AccountId, post: PostId) {
    engine.like(account, post).await.expect("a like");
}

/// A like that instance 0 is about to put on its post's list: the reader, the post and its author.
pub(super) async fn like_to_be_listed() -> (Stage, AccountId, PostRef, Gate) {
    let (stage, [reader, author]) = Stage::with([0, 1]).await;
    let post = PostRef { id: stage.publish(0, author).await, author };
    stage.settled().await;
    let listing = close(0, At::Before, "list_set");
    like(&stage.engines[0], reader, post.id).await;
    (stage, reader, post, listing)
}

/// A reply that instance 0 is about to put on its parent's list: the parent's author, the reply and its own.
pub(super) async fn reply_to_be_listed() -> (Stage, AccountId, PostRef, Gate) {
    let (stage, [parent, author]) = Stage::with([0, 1]).await;
    let of = PostRef { id: stage.publish(0, parent).await, author: parent };
    stage.settled().await;
    let listing = close(0, At::Before, "list_set");
    let draft = Draft::text("so").reply_to(of);
    let id = stage.engines[0].publish(author, &draft).await.expect("a reply").id;
    (stage, parent, PostRef { id, author }, listing)
}

/// H53: R likes P; the executor has looked, and stalls; R takes it back, and that is settled; the executor adds R.
pub(in crate::simulation) fn taken_back_while_it_is_listed() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, reader, post, listing) = like_to_be_listed().await;
        listing.reached().await;
        stage.engines[1].unlike(reader, post.id).await.expect("no like");
        stage.turns().await;
        super::pause(100).await;
        listing.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H53: the same for a reply that is deleted.
pub(in crate::simulation) fn deleted_while_it_is_listed() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, _, reply, listing) = reply_to_be_listed().await;
        listing.reached().await;
        stage.engines[1].delete(reply.author, reply.id).await.expect("a deletion");
        super::pause(100).await;
        listing.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H126: a copy of what has put a reply on its parent's list comes when the reply is deleted, and all is settled.
pub(in crate::simulation) fn listed_after_all() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [parent, author]) = Stage::with([0, 1]).await;
        let of = PostRef { id: stage.publish(0, parent).await, author: parent };
        stage.settled().await;
        let copy = Gate::close(0, At::Copied, "list_set", b"");
        let draft = Draft::text("so").reply_to(of);
        let reply = stage.engines[0].publish(author, &draft).await.expect("a reply").id;
        stage.settled().await;
        copy.stop_no_more();
        stage.engines[1].delete(author, reply).await.expect("a deletion");
        stage.settled().await;
        copy.deliver();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H129: a reply is lost at its author's server, which gives its id to another post of the same author. Whoever was
/// about to put the reply on its parent's list finds a post of that id and author.
pub(in crate::simulation) fn an_id_comes_twice_to_an_author() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [parent, author]) = Stage::with([0, 1]).await;
        let of = PostRef { id: stage.publish(0, parent).await, author: parent };
        stage.settled().await;
        let removals = world(|w| w.keys.last_removal(w.keys.bucket_of(parent)));
        let listing = Gate::close(0, At::Before, "GET", &removals);
        let draft = Draft::text("so").reply_to(of);
        let lost = stage.engines[0].publish(author, &draft).await.expect("a reply").id;
        listing.reached().await;
        stage.fail_over(author);
        let given = stage.publish(1, author).await;
        assert_eq!(lost, given, "all within one millisecond");
        listing.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H21 for likes: a like lies in a frozen server's socket; R takes it back; the first copy runs.
pub(in crate::simulation) fn like_in_a_socket() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([0, 1]).await;
        let of = PostRef { id: stage.publish(0, author).await, author };
        stage.settled().await;
        let copy = Gate::close(0, At::Copied, "tie_set", b"");
        like(&stage.engines[0], reader, of.id).await;
        copy.stop_no_more();
        stage.engines[1].unlike(reader, of.id).await.expect("no like");
        // While the first one's entry stands in the journal a copy of it is refused for that (H131).
        stage.settled().await;
        copy.deliver();
        if is_liked(&stage.engines[1], reader, of).await {
            world(|w| w.violated("what was taken back is liked again"));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// A like finds itself made while a copy of its opposite lies in a socket: that must not run after it.
pub(in crate::simulation) fn unlike_in_a_socket() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([0, 1]).await;
        let of = PostRef { id: stage.publish(0, author).await, author };
        like(&stage.engines[0], reader, of.id).await;
        stage.settled().await;
        let engine = stage.engines[0].clone();
        let lost = lost_in_a_socket("tie_set", async move { engine.unlike(reader, of.id).await }).await;
        like(&stage.engines[1], reader, of.id).await;
        lost.deliver();
        if !is_liked(&stage.engines[1], reader, of).await {
            world(|w| w.violated("a like that was acknowledged is gone"));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H21 for reposts: the first sending of a repost lies in a frozen server's socket; its second is taken back.
pub(in crate::simulation) fn repost_in_a_socket() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([0, 1]).await;
        let of = PostRef { id: stage.publish(0, author).await, author };
        stage.settled().await;
        let copy = Gate::close(0, At::Copied, "post_publish", b"");
        stage.engines[0].repost(reader, of.id).await.expect("a repost");
        copy.stop_no_more();
        let undone = stage.engines[1].undo_repost(reader, of.id).await.expect("no repost");
        assert!(undone.is_some());
        copy.deliver();
        if is_reposted(&stage.engines[1], reader, of).await {
            world(|w| w.violated("what was taken back is reposted again"));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H54: a repost lies in a frozen server's socket, and who sent it is dead. There is nothing to take back.
pub(in crate::simulation) fn lost_repost_in_a_socket() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([0, 1]).await;
        let of = PostRef { id: stage.publish(0, author).await, author };
        stage.settled().await;
        let engine = stage.engines[0].clone();
        let lost = lost_in_a_socket("post_publish", async move { engine.repost(reader, of.id).await }).await;
        let undone = stage.engines[1].undo_repost(reader, of.id).await.expect("no repost");
        assert_eq!(undone.value, None);
        lost.deliver();
        if is_reposted(&stage.engines[1], reader, of).await {
            world(|w| w.violated("what was taken back is reposted"));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H54: what takes a repost back lies there. The repost finds itself made.
pub(in crate::simulation) fn undo_in_a_socket() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([0, 1]).await;
        let of = PostRef { id: stage.publish(0, author).await, author };
        stage.engines[0].repost(reader, of.id).await.expect("a repost");
        stage.settled().await;
        let engine = stage.engines[0].clone();
        let lost =
            lost_in_a_socket("post_delete", async move { engine.undo_repost(reader, of.id).await }).await;
        let again = stage.engines[1].repost(reader, of.id).await.expect("a repost");
        assert!(again.is_repeat);
        lost.deliver();
        if !is_reposted(&stage.engines[1], reader, of).await {
            world(|w| w.violated("a repost that was acknowledged is gone"));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H156: what takes a repost back fails where the repost goes; nobody sends it again. It is reposted, which it is
/// still, and taken back.
pub(in crate::simulation) fn undone_half_way() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, reader, of) = undone_as_far_as("redis.call('DEL', post)").await;
        if !stage.engines[1].repost(reader, of.id).await.expect("a repost").is_repeat {
            world(|w| w.violated("a second repost of one post"));
        }
        is_undone(&stage, reader, of).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

/// The same where its note goes.
pub(in crate::simulation) fn undone_but_for_its_note() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, reader, of) = undone_as_far_as("redis.call('ZREM', place, original)").await;
        is_undone(&stage, reader, of).await;
        stage.ends_well().await;
    }
    .boxed_local()
}

async fn undone_as_far_as(line: &str) -> (Stage, AccountId, PostRef) {
    let (stage, [reader, author]) = Stage::with([0, 1]).await;
    let of = PostRef { id: stage.publish(0, author).await, author };
    stage.engines[0].repost(reader, of.id).await.expect("a repost");
    stage.settled().await;
    let engine = stage.engines[0].clone();
    let undoing = async move { engine.undo_repost(reader, of.id).await };
    given_up_half_way("post_delete", line, undoing).await;
    (stage, reader, of)
}

/// Takes a repost back that was made.
async fn is_undone(stage: &Stage, reader: AccountId, of: PostRef) {
    let undone = stage.engines[1].undo_repost(reader, of.id).await.expect("no repost");
    if undone.value.is_none() || is_reposted(&stage.engines[2], reader, of).await {
        world(|w| w.violated("a repost that was taken back is there"));
    }
}

/// H125: a deleted post's lists are dropped; its server fails over without that, and its executor strikes.
pub(in crate::simulation) fn dropping_of_lists_is_lost() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([0, 1]).await;
        let post = stage.publish(0, author).await;
        like(&stage.engines[0], reader, post).await;
        stage.settled().await;
        let dropping = close(0, At::Before, "list_drop");
        stage.engines[0].delete(author, post).await.expect("a deletion");
        dropping.reached().await;
        let dropped = close(0, At::After, "list_drop");
        stage.sync(author);
        dropping.open();
        dropped.reached().await;
        stage.fail_over(author);
        dropped.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// A post is deleted with its lists while somebody is brought onto one: no list comes back.
pub(in crate::simulation) fn post_gone_while_it_is_liked() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [reader, author]) = Stage::with([0, 1]).await;
        let post = stage.publish(0, author).await;
        stage.settled().await;
        let listing = close(0, At::Before, "list_set");
        like(&stage.engines[0], reader, post).await;
        listing.reached().await;
        stage.engines[1].delete(author, post).await.expect("a deletion");
        super::pause(100).await;
        listing.open();
        stage.ends_well().await;
    }
    .boxed_local()
}

/// A reader, and a post; its likes, bookmarks and reposts are on replicas, and remembered by instance 1.
async fn remembered() -> (Stage, AccountId, PostRef) {
    let (stage, [reader, author]) = Stage::with([0, 1]).await;
    let of = PostRef { id: stage.publish(0, author).await, author };
    like(&stage.engines[0], reader, of.id).await;
    stage.engines[0].unlike(reader, of.id).await.expect("no like");
    stage.settled().await;
    if ties(&stage.engines[1], reader, of).await != ReaderTies::default() {
        world(|w| w.violated("a tie that nobody has made"));
    }
    (stage, reader, of)
}

/// An instance remembers what R likes; R likes something by another one.
pub(in crate::simulation) fn liked_elsewhere() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, reader, of) = remembered().await;
        like(&stage.engines[0], reader, of.id).await;
        if !is_liked(&stage.engines[1], reader, of).await {
            world(|w| w.violated("a like that was acknowledged doesn't show"));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// The same with a repost, which is deleted as well.
pub(in crate::simulation) fn reposted_elsewhere() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, reader, of) = remembered().await;
        let repost = stage.engines[0].repost(reader, of.id).await.expect("a repost").id;
        if !is_reposted(&stage.engines[1], reader, of).await {
            world(|w| w.violated("a repost that was acknowledged doesn't show"));
        }
        stage.engines[0].delete(reader, repost).await.expect("a deletion");
        if is_reposted(&stage.engines[1], reader, of).await {
            world(|w| w.violated("a repost that was deleted shows"));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// An instance remembers what R likes; R likes by another one, then bookmarks by the first.
pub(in crate::simulation) fn liked_between() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, reader, of) = remembered().await;
        like(&stage.engines[0], reader, of.id).await;
        stage.engines[1].bookmark(reader, of.id).await.expect("a bookmark");
        let seen = ties(&stage.engines[1], reader, of).await;
        if !(seen.is_liked && seen.is_bookmarked) {
            world(|w| w.violated("a like or a bookmark that was acknowledged doesn't show"));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// An instance has R's stamps, and looks at what R likes; meanwhile R likes something, which a failover then loses.
pub(in crate::simulation) fn like_is_lost() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, reader, of) = remembered().await;
        let key =
            world(|w| w.keys.set(Place::Whole, w.keys.bucket_of(reader), &set_of_account("likes", reader)));
        let look = Gate::close(2, At::Before, "ZREVRANGEBYSCORE", &key);
        let engine = stage.engines[2].clone();
        let looking = tokio::spawn(async move { ties(&engine, reader, of).await });
        look.reached().await;
        let fence = close(0, At::Fence, "");
        let engine = stage.engines[0].clone();
        let liked = tokio::spawn(async move { engine.like(reader, of.id).await });
        fence.reached().await;
        look.open();
        looking.await.expect("ties");
        stage.fail_over(reader);
        if is_liked(&stage.engines[2], reader, of).await != is_liked(&stage.engines[1], reader, of).await {
            world(|w| w.violated("what a failover lost is remembered"));
        }
        fence.open();
        drop(liked);
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H121: the primary of a post is replaced, and answers on. The post is answered, and deleted, both at the new one; who
/// drops its lists asks the old one which there are.
pub(in crate::simulation) fn answered_at_the_new_primary() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author, other]) = Stage::with([0, 1]).await;
        let of = PostRef { id: stage.publish(0, author).await, author };
        stage.settled().await;
        stage.fail_over(author);
        world(|w| w.answers_on(0, &[1]));
        let draft = Draft::text("so").reply_to(of);
        stage.engines[0].publish(other, &draft).await.expect("a reply");
        stage.settled().await;
        stage.engines[1].delete(author, of.id).await.expect("a deletion");
        super::pause(100).await;
        world(|w| w.answers_no_more(0));
        stage.ends_well().await;
    }
    .boxed_local()
}
