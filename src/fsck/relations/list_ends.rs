//! The places where lists of mentions and hashtags go on in the archive, and whether that knows all that has left
//! memory.

use crate::error::Result;
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, Relation, Unit, left_alone};
use crate::graph::{ListItem, ListNumber, post_list};
use crate::post::NamedList;
use crate::tenant::Tenant;
use crate::tiers::{accept_lagging_list, list_lags};

/// The end of a list, beyond which the archive has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ListEnd(pub(super) NamedList);

/// The number that the archive must know of a list, if it goes on there.
async fn stamp(tenant: &Tenant, list: NamedList) -> Result<Option<u64>> {
    let numbers = post_list(tenant, list)?.scores(&[ListItem::Number(ListNumber::Known)]).await?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number below 2^53")]
    Ok(numbers.first().copied().flatten().map(|stamp| stamp as u64))
}

impl Relation for ListEnd {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self(list) = *self;
        let Some(stamp) = stamp(tenant, list).await? else { return Ok(Observation::default()) };
        // After that: what the archive has got to it doesn't lose.
        let Some(known) = list_lags(tenant, list, stamp).await? else {
            return Ok(Observation::default());
        };
        let told = format!("of the list of {list} it knows number {known}, and once knew {stamp}");
        let (kind, at) = (FindingKind::ListBehind, Unit::of(*self));
        Ok([Deviation { kind, at, detail: Vec::new(), told, excused_by: Vec::new() }].into())
    }
}

/// Has a list go by what the archive has of it: posts that only that had are on it no more.
pub(super) async fn accept_loss(tenant: &Tenant, unit: &Unit) -> Result<Vec<Unit>> {
    let Some(ListEnd(list)) = unit.downcast() else { return Err(left_alone()) };
    if let Some(stamp) = stamp(tenant, *list).await? {
        accept_lagging_list(tenant, *list, stamp).await?;
    }
    Ok(Vec::new())
}
