//! Bounds how many posts an account may bring back: each takes room in memory, and goes on disk once more.

use std::time::Duration;

use super::begin::Tiers;
use super::thaw::thaw_of;
use crate::error::Result;
use crate::fields::RecordField;
use crate::functions::{TimeLimit, TimeLimits};
use crate::ids::AccountId;
use crate::post::PostRef;
use crate::tenant::Tenant;

const SPAN: Duration = Duration::from_secs(60 * 60);

/// Brings a post back that its author edits, if the author may. `is_counted`: whether an earlier try of the same edit
/// was.
pub(crate) async fn thaw_to_edit(tenant: &Tenant, own: PostRef, is_counted: &mut bool) -> Result<bool> {
    // H226: an account has as many old posts as it likes, and each that comes back stays for a while.
    if !*is_counted && tenant.posts().archive_has(own).await? {
        may_bring_back(tenant, own.author, own).await?;
        *is_counted = true;
    }
    thaw_of(tenant, own).await
}

/// Counts that an account is about to do something with a post, if that brings it back; refuses who has brought back as
/// many as it may. What somebody takes back is never refused, nor counted.
pub(crate) async fn may_bring_back(tenant: &Tenant, account: AccountId, post: PostRef) -> Result<()> {
    let Some(tiers) = Tiers::of(tenant)? else { return Ok(()) };
    // H239: none that is younger has ever left.
    if post.id.unix_ms() + tiers.left_after_ms > tenant.router().now_ms()
        || tenant.posts().exists(post.id).await?
    {
        return Ok(());
    }
    let most = u16::try_from(tenant.settings.brought_back_max).unwrap_or(u16::MAX);
    let limit = TimeLimit {
        field: RecordField::BROUGHT_BACK,
        span: SPAN,
        most,
        most_new: most,
        cost: 1,
        words: ("answered, liked, passed on or edited old posts", "brought_back_max"),
    };
    tenant.count_act(account, &TimeLimits { new_for: Duration::ZERO, limits: vec![limit] }).await
}
