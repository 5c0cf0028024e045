//! What accounts are told of what others did.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use std::time::Duration;

use tokio::time::Instant;

use super::groups::{publish_into, with_a_member};
use super::{Stage, close, pause};
use crate::ids::{AccountId, PostId};
use crate::inbox::{NotificationId, NotificationQuery};
use crate::simulation::gates::{At, Gate};
use crate::simulation::lua;
use crate::simulation::world::world;

/// An author, its post, and two who are about to like it.
async fn stage() -> (Stage, [AccountId; 3], PostId) {
    world(|w| w.keeps_notifications = true);
    let (stage, people) = Stage::with([0, 1, 2]).await;
    let post = stage.publish(0, people[0]).await;
    stage.settled().await;
    (stage, people, post)
}

/// The same of a group: who is about to like it, the member who wrote it, and the post.
async fn stage_of_a_group() -> (Stage, [AccountId; 2], PostId) {
    world(|w| w.keeps_notifications = true);
    let (stage, [group, owner, member]) = with_a_member().await;
    let post = publish_into(&stage, 0, member, group).await.expect("a post");
    stage.settled().await;
    (stage, [owner, member], post)
}

impl Stage {
    async fn likes(&self, by: AccountId, post: PostId) {
        self.engines[0].like(by, post).await.expect("a like");
    }

    /// Who has done what an account is told of, the newest first.
    async fn told(&self, of: AccountId, query: NotificationQuery) -> Vec<(AccountId, NotificationId)> {
        let page = self.engines[1].as_reader(of).notifications(&query).await.expect("no faults");
        page.notifications.into_iter().map(|told| (told.account.id, told.id)).collect()
    }

    async fn is_told_of(&self, of: AccountId, by: &[AccountId]) {
        let told = self.told(of, NotificationQuery::default()).await;
        if told.iter().map(|(by, _)| *by).ne(by.iter().copied()) {
            world(|w| w.violated(format!("{of} is told of {told:?} and not of {by:?}")));
        }
        self.ends_well().await;
    }
}

/// H213: a like goes onto its post's list, and the function that writes it fails half-way.
pub(in crate::simulation) fn told_half_way() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author, liker, _], post) = stage().await;
        lua::fail_once("list_set", "local last = redis.call('LINDEX', key, -1)");
        stage.likes(liker, post).await;
        stage.settled().await;
        stage.is_told_of(author, &[liker]).await;
    }
    .boxed_local()
}

/// H216: what has put a like on its list comes once more, and its author has taken off what it was told.
pub(in crate::simulation) fn told_after_all() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author, liker, _], post) = stage().await;
        let copy = Gate::close(0, At::Copied, "list_set", b"");
        stage.likes(liker, post).await;
        stage.settled().await;
        copy.stop_no_more();
        stage.engines[1].clear_notifications(author).await.expect("no faults");
        copy.deliver();
        stage.is_told_of(author, &[]).await;
    }
    .boxed_local()
}

/// H216: the same of a follow, when its author has been told of something else since.
pub(in crate::simulation) fn follow_told_again() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author, reader, other], post) = stage().await;
        let copy = Gate::close(0, At::Copied, "inbox_add", b"");
        stage.follow(0, reader, author).await;
        stage.settled().await;
        copy.stop_no_more();
        stage.likes(other, post).await;
        stage.settled().await;
        let before = stage.told(author, NotificationQuery::default()).await;
        copy.deliver();
        let after = stage.told(author, NotificationQuery::default()).await;
        if before != after {
            world(|w| w.violated(format!("a follow was told again: {before:?}, {after:?}")));
        }
        stage.is_told_of(author, &[other, reader]).await;
    }
    .boxed_local()
}

/// H214: a clear lies in a socket, and was sent again; somebody likes the post; the copy runs.
pub(in crate::simulation) fn clear_in_a_socket() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author, liker, other], post) = stage().await;
        stage.likes(liker, post).await;
        stage.settled().await;
        let copy = Gate::close(0, At::Copied, "inbox_drop", b"");
        stage.engines[0].clear_notifications(author).await.expect("no faults");
        copy.stop_no_more();
        stage.likes(other, post).await;
        stage.settled().await;
        copy.deliver();
        stage.is_told_of(author, &[other]).await;
    }
    .boxed_local()
}

/// H215: the newest is taken off within the millisecond in which the next one comes.
pub(in crate::simulation) fn taken_off_and_told() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author, liker, other], post) = stage().await;
        stage.likes(liker, post).await;
        stage.settled_at_once().await;
        let seen = stage.told(author, NotificationQuery::default()).await.first().map(|(_, id)| *id);
        stage.engines[0].unlike(liker, post).await.expect("it is taken back");
        stage.settled_at_once().await;
        stage.likes(other, post).await;
        stage.settled_at_once().await;
        let newer =
            stage.told(author, NotificationQuery { min_id: seen, ..NotificationQuery::default() }).await;
        if newer.first().map(|(by, _)| *by) != Some(other) {
            world(|w| w.violated(format!("behind {seen:?} there is {newer:?}")));
        }
        stage.ends_well().await;
    }
    .boxed_local()
}

/// H282: a repost is taken back, and made again; what takes the first one off the list of its original comes late.
pub(in crate::simulation) fn reposted_again() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [author, by, _], post) = stage().await;
        stage.engines[0].repost(by, post).await.expect("a repost");
        stage.settled().await;
        let removal = close(1, At::Before, "list_set");
        stage.engines[1].undo_repost(by, post).await.expect("it is taken back");
        removal.reached().await;
        stage.engines[0].repost(by, post).await.expect("a repost");
        pause(50).await;
        removal.open();
        stage.settled().await;
        stage.is_told_of(author, &[by]).await;
    }
    .boxed_local()
}

/// H278: a like of what a member wrote in a group is taken back; the call that told the member was sent twice, and the
/// copy runs.
pub(in crate::simulation) fn like_of_a_members_post_taken_back() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [liker, member], post) = stage_of_a_group().await;
        let copy = Gate::close(0, At::Copied, "inbox_add", b"");
        stage.likes(liker, post).await;
        stage.settled().await;
        copy.stop_no_more();
        stage.is_told_of(member, &[liker]).await;
        stage.engines[1].unlike(liker, post).await.expect("it is taken back");
        stage.settled().await;
        copy.deliver();
        stage.is_told_of(member, &[]).await;
    }
    .boxed_local()
}

/// H216: what has told a member runs again, as its entry was not struck; the member has taken off what it was told.
pub(in crate::simulation) fn member_told_after_all() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [liker, member], post) = stage_of_a_group().await;
        let strike = close(0, At::Before, "journal_strike");
        stage.likes(liker, post).await;
        strike.reached().await;
        let told = stage.told(member, NotificationQuery::default()).await;
        if told.len() != 1 {
            world(|w| w.violated(format!("the member was told {told:?}")));
        }
        stage.engines[1].clear_notifications(member).await.expect("no faults");
        // Until others go on with it.
        world(|w| w.instances[0].frozen_until = Instant::now() + Duration::from_secs(1));
        pause(1_200).await;
        strike.open();
        stage.settled().await;
        stage.is_told_of(member, &[]).await;
    }
    .boxed_local()
}

/// H281: a member was told; its server fails over without that, and what it was told of is on its way to the list.
pub(in crate::simulation) fn told_before_a_failover() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [liker, member], post) = stage_of_a_group().await;
        let told = close(0, At::After, "inbox_add");
        stage.likes(liker, post).await;
        told.reached().await;
        stage.fail_over(member);
        told.open();
        stage.settled().await;
        stage.is_told_of(member, &[liker]).await;
    }
    .boxed_local()
}
