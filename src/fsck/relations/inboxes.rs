//! Notices to accounts of what others did: hints, so what they tell of may be gone.

use std::sync::Arc;

use super::ownerless::OwnerlessKey;
use crate::cluster::TouchedServers;
use crate::error::Result;
use crate::fsck::ask::{are_there, is_there, write};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, Relation, Unit};
use crate::functions;
use crate::graph::{self, Graph};
use crate::ids::AccountId;
use crate::inbox::InboxEntry;
use crate::journal::Matter;
use crate::post::PostRef;
use crate::stored::StoredPost;
use crate::tenant::Tenant;

/// All that an account is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct InboxOf(pub(super) AccountId);

/// One entry of its inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct EntryOfInbox {
    owner: AccountId,
    entry: InboxEntry,
}

impl Relation for InboxOf {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self(owner) = *self;
        if !is_there(tenant, owner).await? {
            return Ok(OwnerlessKey::orphan(tenant.keys().inbox(owner), owner));
        }
        let entries = graph::inbox(tenant, owner).await?;
        let are_of_nothing = are_of_nothing(tenant, owner, &entries).await?;
        let found = entries.into_iter().zip(are_of_nothing).filter(|(_, is_of_nothing)| *is_of_nothing);
        Ok(Observation::units(found.map(|(entry, _)| EntryOfInbox { owner, entry })))
    }
}

/// Of each entry whether it tells of an account or of a post that is gone.
async fn are_of_nothing(tenant: &Tenant, owner: AccountId, entries: &[InboxEntry]) -> Result<Vec<bool>> {
    let by: Vec<AccountId> = entries.iter().map(|entry| entry.told.by).collect();
    let mut are_of_nothing: Vec<bool> = are_there(tenant, &by).await?.into_iter().map(|is| !is).collect();
    let posts = entries.iter().enumerate();
    let posts = posts.filter_map(|(n, entry)| Some((n, entry.told.post(owner)?)));
    let (places, posts): (Vec<usize>, Vec<PostRef>) = posts.unzip();
    let stored = tenant.posts().get_many_touching(&posts, &mut TouchedServers::new()).await?;
    for (place, stored) in places.into_iter().zip(stored) {
        are_of_nothing[place] |= matches!(stored, StoredPost::Gone);
    }
    Ok(are_of_nothing)
}

impl Relation for EntryOfInbox {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self { owner, entry } = *self;
        let is_left = graph::inbox(tenant, owner).await?.contains(&entry);
        if !is_left || are_of_nothing(tenant, owner, &[entry]).await? != [true] {
            return Ok(Observation::default());
        }
        let told = format!("what account {owner} is told: {:?} by {}", entry.told.kind, entry.told.by);
        let excused_by = vec![Matter::Burial(owner), Matter::Burial(entry.told.by)];
        let (kind, detail) = (FindingKind::NotificationOfNothing, Vec::new());
        Ok([Deviation { kind, at: Unit::of(*self), detail, told, excused_by }].into())
    }

    async fn repair(&self, graph: &Arc<Graph>, _: &Deviation) -> Result<Vec<Unit>> {
        let tenant = &graph.tenant;
        let Self { owner, entry } = *self;
        let inbox = tenant.keys().inbox(owner);
        if are_of_nothing(tenant, owner, &[entry]).await? == [true] {
            // By its id, which no other one ever gets.
            write(tenant, &inbox, functions::inbox_drop(inbox.clone(), None, &[entry.id])).await?;
        }
        Ok(Vec::new())
    }
}
