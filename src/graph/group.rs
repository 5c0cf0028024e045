//! Groups: who is on the staff of one, who may post into it, inviting members and turning them out.
//!
//! A group is an account. Its members are those who follow it; whom it blocks is banned; a locked group is a private
//! one. Its staff stands in a hash beside its record. All that decides whether somebody may post into it is compared
//! by the group's graph stamp when the post is written, so whatever takes a right away renews that.

mod rights;
mod staff;

use std::sync::Arc;

use futures::future::{BoxFuture, ready};

pub use rights::GroupRole;
use staff::not_allowed;
pub(crate) use staff::{GroupStaff, may_post};

use super::change::graph_stamp;
use super::membership::is_member;
use super::pair::settle_pair;
use super::request::{ApprovedBy, approve, reject};
use super::toggles::{FollowOutcome, Toggle, follow, requested, toggle, unfollow};
use crate::change::{BucketChange, SetBound, Tries};
use crate::cluster::{Command, Epoch, Request, TouchedServers};
use crate::error::{Error, ErrorCode, ErrorKind, Result};
use crate::fields::RecordField;
use crate::functions::{BucketWrite, ExpectedValue, LeastState, maybe_nonce};
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::journal::Journal;
use crate::keys::OwnKey;
use crate::nonce::{Nonce, draw};
use crate::tenant::Tenant;

/// Accounts on the staff of a group.
pub const GROUP_STAFF_MAX: u32 = 100;
/// Accounts that a group has invited and that have not come yet.
pub const GROUP_INVITATIONS_MAX: u32 = 1_000;

/// Refuses who is no owner of a group; tells under which stamp it is one.
pub(crate) async fn only_owner(tenant: &Tenant, group: AccountId, by: AccountId) -> Result<Nonce> {
    let staff = GroupStaff::of(tenant, group).await?;
    match staff.rank(tenant, by).await? {
        Some(GroupRole::Owner) => Ok(staff.stamp),
        _ => Err(not_allowed(format!("account {by} is no owner of group {group}"))),
    }
}

/// Refuses who isn't on the staff of a group.
pub(crate) async fn only_staff(tenant: &Tenant, group: AccountId, by: AccountId) -> Result<()> {
    GroupStaff::of(tenant, group).await?.only_staff(tenant, by).await.map(drop)
}

/// Changes what stands in a group's bucket, if it is still what `decide` has seen; whatever that is, who has looked
/// before looks again.
pub(super) async fn change<'a>(
    journal: &Arc<Journal>,
    group: AccountId,
    hash: OwnKey,
    decide: impl Fn(GroupStaff) -> BoxFuture<'a, Result<Option<GroupCell>>> + Send,
) -> Result<Epoch> {
    let (tries, keys) = (&mut Tries::of(group), journal.tenant.keys());
    loop {
        let once = async {
            let staff = GroupStaff::of(&journal.tenant, group).await?;
            let seen = staff.stamp;
            let cell = decide(staff).await?;
            let write = BucketWrite::new("account_set", &keys.account(group), LeastState::There)
                .compare([(RecordField::GRAPH_STAMP, ExpectedValue::Exactly(Some(seen)))])
                .set(RecordField::GRAPH_STAMP, &draw());
            let mut change = BucketChange::new(journal, group, write, "change its staff");
            if let Some(GroupCell { of, becomes, bound }) = &cell {
                let hash = keys.own(hash, group);
                let becomes = (ExpectedValue::Anything, becomes.as_deref());
                change = change.cell(&hash, &of.to_bytes(), becomes, *bound);
            }
            Ok(change.write(tries).await?.map(|made| made.epoch))
        };
        let once = once.await;
        if let Some(epoch) = tries.ended(once)? {
            return Ok(epoch);
        }
    }
}

/// The epoch of the server that vouches for a group where nothing is to change. A stamp that is renewed all the same
/// by whoever has no part in it would hold up all that is compared by that.
async fn nothing_to_change(tenant: &Tenant, group: AccountId) -> Result<Epoch> {
    Ok(graph_stamp(tenant, group).await?.1)
}

/// A cell of a group: what it is to say of an account.
pub(super) struct GroupCell {
    pub(super) of: AccountId,
    pub(super) becomes: Option<Vec<u8>>,
    /// How many there may be, if this adds one.
    pub(super) bound: Option<SetBound>,
}

impl GroupCell {
    pub(super) fn gone(of: AccountId) -> Self {
        Self { of, becomes: None, bound: None }
    }
}

/// Gives a member a role on the staff, or takes it away.
pub(crate) async fn set_role(
    journal: &Arc<Journal>,
    group: AccountId,
    by: AccountId,
    (of, role): (AccountId, Option<GroupRole>),
) -> Result<Epoch> {
    let tenant = &journal.tenant;
    if by == of && role.is_none() && !GroupStaff::of(tenant, group).await?.roles.contains_key(&of) {
        return nothing_to_change(tenant, group).await;
    }
    let epoch = change(journal, group, OwnKey::Roles, |staff| {
        Box::pin(async move {
            staff.may_give(tenant, by, (of, role)).await?;
            if role.is_some() && !is_member(tenant, group, of).await? {
                let text = format!("account {of} is no member of group {group}: only these have roles");
                return Err(not_allowed(text));
            }
            // H229: under the stamp that is compared, so of two owners who leave at once one looks again.
            staff.keeps_an_owner(tenant, of, role).await?;
            let is_new = role.is_some() && !staff.roles.contains_key(&of);
            let bound = SetBound { most: GROUP_STAFF_MAX, verb: "has", noun: " accounts on its staff" };
            let becomes = role.map(GroupRole::stored);
            Ok(Some(GroupCell { of, becomes, bound: is_new.then_some(bound) }))
        })
    })
    .await?;
    // H245: it may have left meanwhile, and have seen no role that it gives up.
    if role.is_some() && !is_member(tenant, group, of).await? {
        drop_role(journal, group, of).await?;
        return Err(not_allowed(format!(
            "account {of} has left group {group} meanwhile: it has no role there"
        )));
    }
    Ok(epoch)
}

/// Takes the role of somebody away, unless it is a member (again).
async fn drop_role(journal: &Arc<Journal>, group: AccountId, of: AccountId) -> Result<Epoch> {
    change(journal, group, OwnKey::Roles, |staff| {
        Box::pin(async move {
            let is_left = staff.roles.contains_key(&of) && !is_member(&journal.tenant, group, of).await?;
            Ok(is_left.then(|| GroupCell::gone(of)))
        })
    })
    .await
}

/// Leaves a group, and gives one's role up: the last owner can't.
pub(crate) async fn leave(graph: &Arc<Graph>, group: AccountId, member: AccountId) -> Result<Epoch> {
    if GroupStaff::of(&graph.tenant, group).await?.roles.contains_key(&member) {
        set_role(&graph.journal, group, member, (member, None)).await?;
    }
    let epoch = unfollow(graph, member, group).await?;
    // H245: somebody may have given it one meanwhile.
    if GroupStaff::of(&graph.tenant, group).await?.roles.contains_key(&member) {
        drop_role(&graph.journal, group, member).await?;
    }
    Ok(epoch)
}

/// Turns a member out, who may come again. Tells who acknowledged it: the member's bucket and the group's.
pub(crate) async fn turn_out(
    graph: &Arc<Graph>,
    group: AccountId,
    by: AccountId,
    member: AccountId,
) -> Result<Vec<Epoch>> {
    take_role(&graph.journal, group, by, member).await?;
    end_membership(graph, group, member).await
}

/// Takes somebody's role away who is to be turned out, if it has one, and if that may be done.
async fn take_role(
    journal: &Arc<Journal>,
    group: AccountId,
    by: AccountId,
    member: AccountId,
) -> Result<Epoch> {
    change(journal, group, OwnKey::Roles, |staff| {
        Box::pin(async move {
            staff.may_turn_out(&journal.tenant, by, member).await?;
            staff.keeps_an_owner(&journal.tenant, member, None).await?;
            Ok(staff.roles.contains_key(&member).then(|| GroupCell::gone(member)))
        })
    })
    .await
}

async fn end_membership(graph: &Arc<Graph>, group: AccountId, member: AccountId) -> Result<Vec<Epoch>> {
    let left = unfollow(graph, member, group).await?;
    // H219: behind the follow. Whoever has looked before, and posts after this, finds another stamp; whoever looks
    // after this finds no member. An invitation would let it in again.
    let told = end_invitation(&graph.journal, group, member).await?;
    Ok(vec![left, told])
}

/// Bans an account: it is turned out, and can't come again before that is taken back.
pub(crate) async fn ban(
    graph: &Arc<Graph>,
    group: AccountId,
    by: AccountId,
    (account, on): (AccountId, bool),
) -> Result<Vec<Epoch>> {
    if !on {
        only_staff(&graph.tenant, group, by).await?;
        return Ok(vec![toggle(graph, group, account, Toggle::Block, false).await?]);
    }
    take_role(&graph.journal, group, by, account).await?;
    let banned = toggle(graph, group, account, Toggle::Block, true).await?;
    // Behind the ban: a join that has seen none looks again, and finds it.
    let ended = end_membership(graph, group, account).await?;
    Ok([vec![banned], ended].concat())
}

/// Answers who has asked to join.
pub(crate) async fn answer(
    graph: &Arc<Graph>,
    group: AccountId,
    by: AccountId,
    (requester, lets_in): (AccountId, bool),
) -> Result<Epoch> {
    only_staff(&graph.tenant, group, by).await?;
    if !lets_in {
        return reject(graph, group, requester).await;
    }
    let epoch = let_in(graph, group, requester, ApprovedBy::Staff).await?;
    // It may have lost its role between, and that be acknowledged.
    match only_staff(&graph.tenant, group, by).await {
        Err(e) if e.code() == ErrorCode::NotAllowed => {
            end_membership(graph, group, requester).await?;
            return Err(e);
        }
        // Nobody can tell just now; it had the role a moment ago.
        Err(e) => tracing::debug!("whether account {by} is still on the staff of group {group}: {e}"),
        Ok(()) => {}
    }
    // What it was invited with lets it in no second time.
    end_invitation(&graph.journal, group, requester).await?;
    Ok(epoch)
}

/// Invites an account: it joins a private group without waiting for an answer, at once if it has asked already.
pub(crate) async fn invite(
    graph: &Arc<Graph>,
    group: AccountId,
    by: AccountId,
    (account, on): (AccountId, bool),
) -> Result<Epoch> {
    let (journal, tenant) = (&graph.journal, &graph.tenant);
    // An invitation of somebody who is gone can be taken back all the same.
    if on {
        tenant.known_to_others(account).await?;
    }
    let invited = invitation(tenant, group, account).await?.is_some();
    if by == account && !on && !invited {
        return nothing_to_change(tenant, group).await;
    }
    let epoch = change(journal, group, OwnKey::Invited, |staff| {
        Box::pin(async move {
            // Whom it invites may say no.
            if by != account || on {
                staff.only_staff(tenant, by).await?;
            }
            if on && is_member(tenant, group, account).await? {
                return Ok(None);
            }
            let bound = SetBound { most: GROUP_INVITATIONS_MAX, verb: "has", noun: " invitations open" };
            let becomes = on.then(|| draw().to_vec());
            Ok(Some(GroupCell { of: account, becomes, bound: (on && !invited).then_some(bound) }))
        })
    })
    .await?;
    if !on || requested(tenant, account, group).await?.is_none() {
        return Ok(epoch);
    }
    match let_in(graph, group, account, ApprovedBy::Invitation).await {
        // It has taken its request back, or somebody has answered it.
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(epoch),
        approved => approved,
    }
}

/// The invitation of an account into a group, if it is open.
pub(super) async fn invitation(
    tenant: &Tenant,
    group: AccountId,
    account: AccountId,
) -> Result<Option<Nonce>> {
    let hash = tenant.keys().own(OwnKey::Invited, group);
    let command = Command::new("HGET").arg(&hash).arg(&account.to_bytes());
    maybe_nonce(&tenant.router().call(Request::read(tenant.slot(group), command)).await?)
}

async fn end_invitation(journal: &Arc<Journal>, group: AccountId, of: AccountId) -> Result<Epoch> {
    change(journal, group, OwnKey::Invited, |_| Box::pin(ready(Ok(Some(GroupCell::gone(of)))))).await
}

/// Approves who has asked to join, and has it a member before this returns.
pub(crate) async fn let_in(
    graph: &Arc<Graph>,
    group: AccountId,
    account: AccountId,
    by: ApprovedBy,
) -> Result<Epoch> {
    let epoch = approve(graph, group, account, by).await?;
    // What the approval has left does the same, if this can't.
    if let Err(e) = settle_pair(graph, account, group, true, &mut TouchedServers::new()).await {
        tracing::debug!("account {account}, let into group {group}, is a member of it a little later: {e}");
    }
    Ok(epoch)
}

/// Lets an account in, for who goes on as if it were a member by then.
pub(crate) async fn let_in_at_once(
    graph: &Arc<Graph>,
    group: AccountId,
    account: AccountId,
    by: ApprovedBy,
) -> Result<Epoch> {
    let epoch = let_in(graph, group, account, by).await?;
    // H280: the approval is written, and is carried out once its servers are there.
    if !is_member(&graph.tenant, group, account).await? {
        let text = format!("account {account} is let into group {group} a little later; try again");
        return Err(Error::unavailable(text));
    }
    Ok(epoch)
}

/// Joins a group, or asks to, if it is private and hasn't invited the account.
pub(crate) async fn join(
    graph: &Arc<Graph>,
    group: AccountId,
    account: AccountId,
) -> Result<(FollowOutcome, Epoch)> {
    GroupStaff::of(&graph.tenant, group).await?;
    let (followed, epoch) = follow(graph, account, group).await?;
    if invitation(&graph.tenant, group, account).await?.is_none() {
        return Ok((followed, epoch));
    }
    let epoch = match followed {
        FollowOutcome::Following => epoch,
        FollowOutcome::Requested => {
            match let_in_at_once(graph, group, account, ApprovedBy::Invitation).await {
                // It, or the invitation, was taken back or answered meanwhile.
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok((followed, epoch)),
                approved => approved?,
            }
        }
    };
    // Last: until then it can be tried again.
    end_invitation(&graph.journal, group, account).await?;
    Ok((FollowOutcome::Following, epoch))
}
