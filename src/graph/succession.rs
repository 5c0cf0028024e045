//! The succession in groups whose owner is deleted: where nobody else owns a group, it passes to the moderator who has
//! been a member for longest. Nobody is asked, so nothing holds a deletion up.

use std::sync::Arc;

use futures::future::join_all;

use super::group::{GROUP_STAFF_MAX, GroupCell, GroupRole, GroupStaff, change};
use crate::cluster::TouchedServers;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::AccountId;
use crate::journal::Journal;
use crate::keys::OwnKey;
use crate::tenant::Tenant;

/// Accounts that are asked at once whether they are groups with somebody on their staff.
const ASKED_AT_ONCE: usize = 500;

/// Takes an account that is deleted off the staff of these, as far as they are groups, and passes on those that it
/// alone owns.
pub(super) async fn pass_groups_on(
    journal: &Arc<Journal>,
    gone: AccountId,
    followed: &[AccountId],
    touched: &mut TouchedServers,
) -> Result<()> {
    let mut is_any = false;
    for asked in followed.chunks(ASKED_AT_ONCE) {
        for group in GroupStaff::with_a_role_for(&journal.tenant, gone, asked).await? {
            is_any = true;
            match pass_on(journal, group, gone, touched).await {
                // The group is deleted, too, or has become an account like others: nobody's role counts there.
                Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => {}
                passed => passed?,
            }
        }
    }
    // H276: that must last before the follows end: a server that takes over without it leaves nobody who would know.
    if is_any {
        journal.tenant.router().fence(touched).await?;
    }
    Ok(())
}

/// First the next owner, then the role of who goes: whoever dies between the two finds the group once more. Who becomes
/// its owner is looked at again before that (H277).
async fn pass_on(
    journal: &Arc<Journal>,
    group: AccountId,
    gone: AccountId,
    touched: &mut TouchedServers,
) -> Result<()> {
    let tenant = &journal.tenant;
    // Each turn but the last makes one of the staff an owner.
    for _ in 0..=GROUP_STAFF_MAX {
        let changed = change(journal, group, OwnKey::Roles, |staff| {
            Box::pin(async move {
                if !staff.roles.contains_key(&gone) {
                    return Ok(None);
                }
                let becomes = Some(GroupRole::Owner.stored());
                let next = staff.next_owner(tenant, gone).await?;
                let passed = next.map(|of| GroupCell { of, becomes, bound: None });
                Ok(Some(passed.unwrap_or_else(|| GroupCell::gone(gone))))
            })
        });
        touched.add_epoch(&changed.await?);
        let staff = GroupStaff::of(tenant, group).await?;
        if staff.roles.contains_key(&gone) {
            continue;
        }
        if staff.holders(tenant, GroupRole::Owner).await?.is_empty() {
            tracing::warn!(
                "group {group} has no owner any more, account {gone} is deleted: `tideline moderate owner` gives it one"
            );
        }
        return Ok(());
    }
    Err(Error::unavailable(format!("the staff of group {group} changed too often while its owner went")))
}

impl GroupStaff {
    /// The next owner of a group whose owner is gone; `None`: somebody else owns it, or nobody else looks after it.
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
