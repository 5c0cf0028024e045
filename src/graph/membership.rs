//! Members of a group: accounts that follow it, and were let in.

use futures::future::{join_all, try_join};

use super::new_mark::is_unasked;
use crate::error::Result;
use crate::ids::AccountId;
use crate::tenant::Tenant;

/// Whether an account is a member of a group: it follows it, isn't banned, and was let in.
pub(crate) async fn is_member(tenant: &Tenant, group: AccountId, account: AccountId) -> Result<bool> {
    let following = tenant.following(account)?;
    let (follows, is_banned) = try_join(following.score(&group), tenant.is_blocked(group, account)).await?;
    if follows.is_none() || is_banned {
        return Ok(false);
    }
    // H269: it may have become private before the follow was written, and never have let this account in.
    let (is_unasked, of) = try_join(is_unasked(tenant, account, group), tenant.account(group)).await?;
    if !of.is_some_and(|group| group.is_locked) {
        return Ok(true);
    }
    // A follow that has become a request meanwhile has left no mark either.
    Ok(!is_unasked && following.score(&group).await?.is_some())
}

/// Tells of each of these accounts whether it is a member of a group.
pub(crate) async fn are_members(
    tenant: &Tenant,
    group: AccountId,
    accounts: &[AccountId],
) -> Result<Vec<bool>> {
    let asked = accounts.iter().map(|account| is_member(tenant, group, *account));
    join_all(asked).await.into_iter().collect()
}
