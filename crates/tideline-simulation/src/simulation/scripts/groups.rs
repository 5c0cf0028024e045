//! Groups: who is turned out, leaves, is made an owner, is deleted, while something of it is on its way.

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use super::{Stage, close, pause};
use crate::graph::{FollowOutcome, GroupRole};
use crate::ids::{AccountId, PostId};
use crate::post::Draft;
use crate::simulation::gates::At;
use crate::simulation::operations::toggle;
use crate::simulation::world::{Toggle, world};
use crate::{AccountKind, AccountUpdate};

/// A group in a bucket of its own, with an owner and a member.
pub(super) async fn with_a_member() -> (Stage, [AccountId; 3]) {
    let (stage, all) = Stage::with([1, 3, 0]).await;
    let [group, owner, member] = all;
    let kind = AccountUpdate { kind: Some(AccountKind::Group), ..AccountUpdate::default() };
    stage.engines[0].update_account(group, &kind).await.expect("a group");
    for (account, role) in [(owner, Some(GroupRole::Owner)), (member, None)] {
        stage.follow(0, account, group).await;
        stage.engines[0].set_group_role(group, group, account, role).await.expect("a role");
    }
    stage.settled().await;
    (stage, all)
}

/// From now on somebody may be out of the group.
fn may_be_out(member: AccountId, group: AccountId) {
    world(|w| *w.open.entry((Toggle::Unfollow, member, group)).or_default() += 1);
}

pub(super) async fn publish_into(
    stage: &Stage,
    n: usize,
    by: AccountId,
    group: AccountId,
) -> crate::Result<PostId> {
    let draft = Draft::text("x").group(group);
    stage.engines[n].publish(by, &draft).await.map(|published| published.id)
}

/// H219: a member's instance has seen that it is one and is frozen; the member is turned out, and that is acknowledged.
pub(in crate::simulation) fn turned_out_before_it_posts() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [group, owner, member]) = with_a_member().await;
        let posting = close(0, At::Before, "post_publish");
        let engine = stage.engines[0].clone();
        let publishing =
            tokio::spawn(async move { engine.publish(member, &Draft::text("x").group(group)).await });
        posting.reached().await;
        may_be_out(member, group);
        stage.engines[1].turn_out(group, owner, member).await.expect("it is turned out");
        posting.open();
        if publishing.await.expect("no panic").is_ok() {
            world(|w| w.violated("who was turned out posts into the group"));
        }
    }
    .boxed_local()
}

/// H229: two owners leave at once; each has seen the other.
pub(in crate::simulation) fn both_owners_leave() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [group, owner, other]) = with_a_member().await;
        let role = Some(GroupRole::Owner);
        stage.engines[0].set_group_role(group, owner, other, role).await.expect("an owner");
        let leaving = close(0, At::Before, "account_set");
        let engine = stage.engines[0].clone();
        let left = tokio::spawn(async move { engine.leave_group(group, owner).await });
        leaving.reached().await;
        may_be_out(owner, group);
        may_be_out(other, group);
        let others = stage.engines[1].leave_group(group, other).await;
        leaving.open();
        if left.await.expect("no panic").is_ok() && others.is_ok() {
            world(|w| w.violated("both owners have left, and nobody owns the group"));
        }
    }
    .boxed_local()
}

/// H245: a member is made an owner while it leaves, and sees no role that it would have to give up.
pub(in crate::simulation) fn made_an_owner_while_it_leaves() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [group, owner, member]) = with_a_member().await;
        let giving = close(0, At::Before, "account_set");
        let engine = stage.engines[0].clone();
        let given =
            tokio::spawn(
                async move { engine.set_group_role(group, owner, member, Some(GroupRole::Owner)).await },
            );
        giving.reached().await;
        may_be_out(member, group);
        stage.engines[1].leave_group(group, member).await.expect("it leaves");
        giving.open();
        drop(given.await.expect("no panic"));
        stage.follow(2, member, group).await;
        stage.settled().await;
        let staff = stage.engines[2].stored().group_staff(group).await.expect("a staff");
        if staff != [(owner, GroupRole::Owner)] {
            world(|w| w.violated(format!("who has left, and come again, is on the staff: {staff:?}")));
        }
    }
    .boxed_local()
}

/// H246: a member is deleted while its post is on its way to the list of what it has written.
pub(in crate::simulation) fn deleted_before_its_post_is_listed() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [group, _, member]) = with_a_member().await;
        let listing = close(0, At::Before, "set_add");
        let post = publish_into(&stage, 0, member, group).await.expect("a post");
        listing.reached().await;
        may_be_out(member, group);
        stage.engines[1].delete_account(member).await.expect("deleted");
        // Long enough for all that is not held up here.
        pause(2_000).await;
        listing.open();
        stage.settled().await;
        if stage.engines[2].stored().post(post).await.expect("an answer").is_some() {
            world(|w| w.violated("a post of a deleted member is left in the group"));
        }
    }
    .boxed_local()
}

/// H276: the owner is deleted, and a moderator is left.
pub(in crate::simulation) fn its_owner_is_deleted() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [group, owner, member]) = with_a_member().await;
        let role = Some(GroupRole::Moderator);
        stage.engines[0].set_group_role(group, owner, member, role).await.expect("a moderator");
        may_be_out(owner, group);
        stage.engines[1].delete_account(owner).await.expect("deleted");
        stage.settled().await;
        let staff = stage.engines[2].stored().group_staff(group).await.expect("a staff");
        if staff != [(member, GroupRole::Owner)] {
            world(|w| {
                w.violated(format!("the owner is gone, and the group has passed to nobody: {staff:?}"))
            });
        }
    }
    .boxed_local()
}

/// H264: an invitation is taken back while whoever was invited comes by it.
pub(in crate::simulation) fn invitation_taken_back_while_it_is_used() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [group, owner, member]) = with_a_member().await;
        may_be_out(member, group);
        stage.engines[1].leave_group(group, member).await.expect("it leaves");
        let private = AccountUpdate { is_locked: Some(true), ..AccountUpdate::default() };
        stage.engines[1].update_account(group, &private).await.expect("a private group");
        stage.engines[1].invite_to_group(group, owner, member, true).await.expect("it is invited");
        let approving = close(0, At::Before, "approve");
        let engine = stage.engines[0].clone();
        let joining = tokio::spawn(async move { engine.join_group(group, member).await });
        approving.reached().await;
        stage.engines[1].invite_to_group(group, owner, member, false).await.expect("it is invited no longer");
        approving.open();
        let joined = joining.await.expect("no panic");
        if joined.is_ok_and(|joined| joined.value == FollowOutcome::Following) {
            world(|w| w.violated("an invitation that was taken back has let somebody in"));
        }
    }
    .boxed_local()
}

/// H269: an instance has seen a group that is open, and sleeps; the group becomes private; then it writes the follow.
pub(in crate::simulation) fn made_private_before_it_joins() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [group, owner, reader]) = Stage::with([1, 3, 0]).await;
        let kind = AccountUpdate { kind: Some(AccountKind::Group), ..AccountUpdate::default() };
        stage.engines[0].update_account(group, &kind).await.expect("a group");
        stage.follow(0, owner, group).await;
        stage.engines[0].set_group_role(group, group, owner, Some(GroupRole::Owner)).await.expect("a role");
        stage.settled().await;
        let asked = close(0, At::Before, "pair_look");
        let change = close(0, At::Before, "change");
        let following = tokio::spawn(toggle(Toggle::Follow, stage.engines[0].clone(), reader, group));
        change.reached().await;
        stage.engines[1].set_group_privacy(group, owner, true).await.expect("it is private");
        pause(1_000).await;
        change.open();
        following.await.expect("no panic").expect("a follow");
        asked.reached().await;
        if publish_into(&stage, 1, reader, group).await.is_ok() {
            world(|w| w.violated("who was never let in posts into a private group"));
        }
        asked.open();
        stage.settled().await;
    }
    .boxed_local()
}

/// H273: a private group's posts mention somebody who is in it, and is not any more.
pub(in crate::simulation) fn mentioned_from_a_private_group() -> LocalBoxFuture<'static, ()> {
    async {
        let (stage, [group, owner, named]) = with_a_member().await;
        stage.engines[1].set_group_privacy(group, owner, true).await.expect("it is private");
        let mentions = stage.engines[2].store().sets().of_account::<AccountId>(named, "mentions");
        let mentions = mentions.expect("a set");
        for leaves in [true, false] {
            let draft = Draft::text("x").group(group).mentions([named]);
            stage.engines[0].publish(owner, &draft).await.expect("a post");
            stage.settled().await;
            match mentions.len().await {
                Ok(1) => {}
                found => world(|w| w.violated(format!("one mention is of a member, not {found:?}"))),
            }
            if leaves {
                may_be_out(named, group);
                stage.engines[1].leave_group(group, named).await.expect("it leaves");
                stage.settled().await;
            }
        }
    }
    .boxed_local()
}
