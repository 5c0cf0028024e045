//! What becomes of groups whose owner is deleted: where nobody else owns one, it passes to the moderator who has been a
//! member for longest. Nobody is asked, so nothing holds a deletion up.

use std::sync::Arc;

use futures::future::join_all;

use super::group::{GroupCell, GroupRole, GroupStaff, change};
use crate::cluster::{Command, Request, Touched};
use crate::error::{ErrorKind, Result};
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::keys::OwnKey;
use crate::tenant::{Answers, Tenant};

/// Accounts that are asked at once whether they are groups with somebody on their staff.
const ASKED_AT_ONCE: usize = 500;

/// Takes an account that is deleted off the staff of these, as far as they are groups, and passes on those that it
/// alone owns.
pub(super) async fn pass_groups_on(
    graph: &Arc<Graph>,
    gone: AccountId,
    followed: &[AccountId],
    touched: &mut Touched,
) -> Result<()> {
    for asked in followed.chunks(ASKED_AT_ONCE) {
        for group in with_a_role_for(graph, gone, asked).await? {
            match pass_on(graph, group, gone, touched).await {
                // The group is deleted, too, or has become an account like others: nobody's role counts there.
                Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => {}
                passed => passed?,
            }
        }
    }
    Ok(())
}

/// Those of these accounts that name somebody as one of their staff.
async fn with_a_role_for(
    tenant: &Tenant,
    holder: AccountId,
    accounts: &[AccountId],
) -> Result<Vec<AccountId>> {
    let role = |group: &AccountId| {
        let command = Command::new("HGET").arg(&tenant.keys().own(OwnKey::Roles, *group));
        Request::read(tenant.slot(*group), command.arg(&holder.to_bytes()))
    };
    let mut answers = Answers::of(tenant, accounts.iter().map(role).collect()).await?;
    let mut found = Vec::new();
    for account in accounts {
        if !answers.next()?.is_nil() {
            found.push(*account);
        }
    }
    Ok(found)
}

/// First the next owner, then the role of who goes: whoever dies between the two finds the group once more.
async fn pass_on(graph: &Arc<Graph>, group: AccountId, gone: AccountId, touched: &mut Touched) -> Result<()> {
    if GroupStaff::of(graph, group).await?.next_owner(graph, gone).await?.is_some() {
        let passed = change(graph, group, OwnKey::Roles, |staff| {
            Box::pin(async move {
                let next = staff.next_owner(graph, gone).await?;
                let becomes = Some(GroupRole::Owner.stored());
                Ok(next.map(|of| GroupCell { of, becomes, bound: None }))
            })
        });
        touched.add_epoch(&passed.await?);
    }
    let taken = change(graph, group, OwnKey::Roles, |staff| {
        Box::pin(async move { Ok(staff.roles.contains_key(&gone).then(|| GroupCell::gone(gone))) })
    });
    touched.add_epoch(&taken.await?);
    if GroupStaff::of(graph, group).await?.holders(graph, GroupRole::Owner).await?.is_empty() {
        tracing::warn!(
            "group {group} has no owner any more, account {gone} is deleted: `tideline moderate owner` gives it one"
        );
    }
    Ok(())
}

impl GroupStaff {
    /// Whom a group passes to whose owner is gone; `None`: somebody else owns it, or nobody else looks after it.
    async fn next_owner(&self, tenant: &Tenant, gone: AccountId) -> Result<Option<AccountId>> {
        let is_owned = !self.holders(tenant, GroupRole::Owner).await?.is_empty();
        if is_owned || self.roles.get(&gone) != Some(&GroupRole::Owner) {
            return Ok(None);
        }
        let moderators = self.holders(tenant, GroupRole::Moderator).await?;
        let since = moderators.iter().map(|account| async {
            let since = tenant.following(*account)?.score(&self.group).await?;
            Result::Ok(since.map(|since| (since, *account)))
        });
        let since: Vec<Option<(f64, AccountId)>> =
            join_all(since).await.into_iter().collect::<Result<_>>()?;
        let longest = since.into_iter().flatten().min_by(|one, other| one.0.total_cmp(&other.0));
        Ok(longest.map(|(_, account)| account))
    }
}
