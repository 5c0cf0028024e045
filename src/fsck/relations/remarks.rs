//! Remarks of accounts on others: notes, hidden reposts, ends of mutes, a group's roles and invitations. They are the
//! truth; what they are about may be gone.

use std::sync::Arc;

use super::ownerless::OwnerlessKey;
use crate::error::Result;
use crate::fsck::ask::{are_there, is_there, read, write};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, Relation, Unit};
use crate::functions::field_drop;
use crate::graph::{self, Graph};
use crate::ids::AccountId;
use crate::journal::Matter;
use crate::keys::OwnKey;
use crate::tenant::{Scan, Tenant};

/// All remarks of one kind that an account makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RemarksOf(pub(super) AccountId, pub(super) OwnKey);

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Remark {
    by: AccountId,
    own: OwnKey,
    of: AccountId,
}

impl Relation for RemarksOf {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self(by, own) = *self;
        let hash = tenant.keys().own(own, by);
        if !is_there(tenant, by).await? {
            return Ok(OwnerlessKey::orphan(hash, by));
        }
        let (mut needless, mut scan) = (Vec::new(), Scan::new("HSCAN", &hash));
        while let Some(remarks) = scan.next(tenant).await? {
            let others = remarks.iter().map(|(of, _)| AccountId::from_bytes(of));
            let others = others.collect::<Result<Vec<_>>>()?;
            let are_needed = self.are_of_something(tenant, &others).await?;
            let found = others.into_iter().zip(are_needed).filter(|(_, is_needed)| !is_needed);
            needless.extend(found.map(|(of, _)| Remark { by, own, of }));
        }
        Ok(Observation::units(needless))
    }
}

impl RemarksOf {
    /// Whether what they are about is there: of a note or an invitation the account, of a role the member, of the
    /// others the mute, the follow or the request, whatever has become of the account. A mute whose end is gone lasts
    /// for good.
    async fn are_of_something(self, tenant: &Tenant, others: &[AccountId]) -> Result<Vec<bool>> {
        let Self(by, own) = self;
        match own {
            OwnKey::MuteEnds => {
                let mutes = tenant.mutes(by)?.scores(others).await?;
                Ok(mutes.into_iter().map(|since| since.is_some()).collect())
            }
            OwnKey::HiddenReposts => graph::follows_or_asks(tenant, by, others).await,
            OwnKey::Roles => graph::are_members(tenant, by, others).await,
            _ => are_there(tenant, others).await,
        }
    }
}

impl Remark {
    async fn is_of_something(self, tenant: &Tenant) -> Result<bool> {
        Ok(RemarksOf(self.by, self.own).are_of_something(tenant, &[self.of]).await? == [true])
    }
}

impl Relation for Remark {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self { by, own, of } = *self;
        let hash = tenant.keys().own(own, by);
        let is_left = !read(tenant, "HGET", &hash, &[&of.to_bytes()]).await?.is_nil();
        if !is_left || self.is_of_something(tenant).await? {
            return Ok(Observation::default());
        }
        let told = format!("{own:?} of account {by}, about account {of}");
        let excused_by = vec![Matter::Burial(by), Matter::Burial(of)];
        // Not what it says: a note is private.
        let (kind, detail) = (FindingKind::RemarkNeedless, Vec::new());
        Ok([Deviation { kind, at: Unit::of(*self), detail, told, excused_by }].into())
    }

    async fn repair(&self, graph: &Arc<Graph>, _: &Deviation) -> Result<Vec<Unit>> {
        let tenant = &graph.tenant;
        let (Self { of, .. }, hash) = (*self, tenant.keys().own(self.own, self.by));
        // What it says first: what is said anew, of a follow or mute that is made meanwhile, is something else, or
        // finds it there.
        let says = read(tenant, "HGET", &hash, &[&of.to_bytes()]).await?;
        if !says.is_nil() && !self.is_of_something(tenant).await? {
            write(tenant, &hash, field_drop(hash.clone(), &of.to_bytes(), says.bytes()?)).await?;
        }
        Ok(Vec::new())
    }
}
