//! Deletions that memory has forgotten and the archive has not: memory was restored from an older copy.
//!
//! An archive has all posts up to where it says that it has got, but those that were deleted. So one that it lacks
//! there was deleted, though memory has it (H192), as long as no mover has stored it anew.

use super::archived::{OwnerStanding, standings};
use crate::archive::{ASKS_MAX, Owner, OwnerState, PostAnswer, PostAsk};
use crate::cluster::{Reply, Request};
use crate::error::Result;
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, Relation, Unit, left_alone};
use crate::fsck::{Deletions, ask};
use crate::functions;
use crate::ids::{AccountId, PostId};
use crate::journal::Matter;
use crate::post::PostRef;
use crate::stored::DELETED;
use crate::tenant::{Tenant, archive_away};

/// Elements of an outbox read in one go.
const POSTS_AT_ONCE: usize = 500;

/// An account of which the archive has got further than memory says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct OwnerAhead(pub(super) AccountId);

/// An account that the archive says was deleted, and that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct BuriedOwner(pub(super) AccountId);

/// A post in memory that the archive has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PassedPost(PostRef);

/// Asks what the archive says of an account.
async fn state_of(tenant: &Tenant, account: AccountId) -> Result<Option<OwnerState>> {
    let Some(archive) = tenant.archive()? else { return Ok(None) };
    let owner = Owner { bucket: tenant.bucket(account), account };
    Ok(archive.owners(&[owner]).await.map_err(archive_away)?.into_iter().next().flatten())
}

/// Finds how far the archive has got with an account that is not buried there, and where memory says that it begins.
async fn ends(tenant: &Tenant, account: AccountId) -> Result<Option<(PostId, PostId)>> {
    let state = state_of(tenant, account).await?;
    let (Some(state), Some(floor)) = (state, floor_of(tenant, account).await?) else { return Ok(None) };
    Ok((!state.is_buried).then_some((state.upto, floor)))
}

/// The place where memory says that the archive begins; none for an account that isn't there.
async fn floor_of(tenant: &Tenant, account: AccountId) -> Result<Option<PostId>> {
    Ok(match standings(tenant, &[account]).await?.first() {
        Some(OwnerStanding::There(Some(upto))) => Some(*upto),
        Some(OwnerStanding::There(None)) => Some(PostId::from_u64(0)?),
        _ => None,
    })
}

/// Posts that an outbox lists as there, above one of them and up to another one.
async fn listed(tenant: &Tenant, author: AccountId, (above, upto): (PostId, PostId)) -> Result<Vec<PostRef>> {
    let (mut listed, mut from) = (Vec::new(), above.get());
    let number = |element: &Reply| element.bytes().ok()?.try_into().ok().map(u64::from_be_bytes);
    loop {
        let page = functions::outbox_page(tenant.keys().outbox(author), false, from, POSTS_AT_ONCE);
        let page = tenant.router().call(Request::read(tenant.slot(author), page)).await?.into_array()?;
        let elements: Vec<u64> = page.iter().skip(1).filter_map(number).collect();
        let live = elements.iter().filter_map(|id| PostId::from_u64(*id).ok().filter(|_| id & DELETED == 0));
        listed.extend(live.filter(|id| *id <= upto).map(|id| PostRef { id, author }));
        match elements.last().map(|last| last & !DELETED) {
            Some(last) if last < upto.get() => from = last,
            _ => return Ok(listed),
        }
    }
}

/// Finds those of an author's posts that the archive has passed, and doesn't have.
async fn passed(tenant: &Tenant, posts: &[PostRef]) -> Result<Vec<PostRef>> {
    let (Some(archive), buckets) = (tenant.archive()?, tenant.keys().buckets()) else {
        return Ok(Vec::new());
    };
    let mut passed = Vec::new();
    for posts in posts.chunks(ASKS_MAX) {
        let ask = |of: &PostRef| PostAsk { bucket: of.id.bucket(buckets), id: of.id, owner: Some(of.author) };
        let asks: Vec<PostAsk> = posts.iter().map(ask).collect();
        let answers = archive.posts(&asks).await.map_err(archive_away)?;
        let has_passed = |(post, answer): &(&PostRef, PostAnswer)| {
            let by = |owner: OwnerState| !owner.is_buried && owner.upto >= post.id;
            answer.post.is_none() && answer.owner.is_some_and(by)
        };
        passed.extend(posts.iter().zip(answers).filter(has_passed).map(|(post, _)| *post));
    }
    Ok(passed)
}

impl Relation for OwnerAhead {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self(author) = *self;
        let Some((upto, floor)) = ends(tenant, author).await? else {
            return Ok(Observation::default());
        };
        let listed = listed(tenant, author, (floor, upto)).await?;
        Ok(Observation::units(passed(tenant, &listed).await?.into_iter().map(PassedPost)))
    }
}

impl Relation for PassedPost {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self(post) = *self;
        if passed(tenant, &[post]).await?.is_empty() {
            return Ok(Observation::default());
        }
        // After that: what leaves memory the archive has by then.
        let below = PostId::from_u64(post.id.get() - 1)?;
        let is_above = floor_of(tenant, post.author).await?.is_some_and(|floor| floor < post.id);
        let is_listed = listed(tenant, post.author, (below, post.id)).await? == [post];
        if !is_above || !is_listed || !ask::exists(tenant, &tenant.keys().post(post.id)).await? {
            return Ok(Observation::default());
        }
        let told = format!("post {} of account {}", post.id, post.author);
        let (kind, excused_by) = (FindingKind::DeletionUndone, vec![Matter::Burial(post.author)]);
        Ok([Deviation { kind, at: Unit::of(*self), detail: Vec::new(), told, excused_by }].into())
    }
}

impl Relation for BuriedOwner {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self(account) = *self;
        let state = state_of(tenant, account).await?;
        // After that: who is deleted stays so.
        let is_there = floor_of(tenant, account).await?.is_some();
        if !is_there || !state.is_some_and(|state| state.is_buried) {
            return Ok(Observation::default());
        }
        let told = format!("account {account}");
        let (kind, excused_by) = (FindingKind::BurialUndone, vec![Matter::Burial(account)]);
        Ok([Deviation { kind, at: Unit::of(*self), detail: Vec::new(), told, excused_by }].into())
    }
}

/// Deletes it once more, if it still is so.
pub(super) async fn delete_again(
    tenant: &Tenant,
    deletions: &dyn Deletions,
    unit: &Unit,
) -> Result<Vec<Unit>> {
    if unit.look(tenant).await?.deviations.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(PassedPost(post)) = unit.downcast() {
        deletions.delete_post(*post).await?;
    } else if let Some(BuriedOwner(account)) = unit.downcast() {
        deletions.delete_account(*account).await?;
    } else {
        return Err(left_alone());
    }
    Ok(Vec::new())
}
