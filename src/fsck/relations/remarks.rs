//! What accounts remark on others: notes, hidden reposts, ends of mutes. It is the truth; what it is about may be gone.

use std::sync::Arc;

use super::loose::LooseKey;
use crate::error::Result;
use crate::fsck::ask::{is_there, read, write};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, Relation, Unit};
use crate::functions::field_drop;
use crate::graph::Graph;
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
    async fn look(&self, graph: &Arc<Graph>) -> Result<Observation> {
        let Self(by, own) = *self;
        let hash = graph.keys().own(own, by);
        if !is_there(graph, by).await? {
            return Ok(LooseKey::orphan(hash, by));
        }
        let (mut seen, mut scan) = (Observation::default(), Scan::new("HSCAN", &hash));
        while let Some(remarks) = scan.next(graph).await? {
            let others = remarks.iter().map(|(of, _)| AccountId::from_bytes(of));
            for of in others.collect::<Result<Vec<_>>>()? {
                seen = seen.and(Remark { by, own, of }.look(graph).await?);
            }
        }
        Ok(seen)
    }
}

impl Remark {
    /// Whether what it is about is there: the account, and the follow, request or mute.
    async fn is_of_something(self, tenant: &Tenant) -> Result<bool> {
        let Self { by, own, of } = self;
        if !is_there(tenant, of).await? {
            return Ok(false);
        }
        match own {
            OwnKey::MuteEnds => Ok(tenant.mutes(by)?.score(&of).await?.is_some()),
            OwnKey::HiddenReposts => {
                // First the request: an approval may turn it into a follow between these two looks, never back.
                let requested = tenant.keys().own(OwnKey::Requested, by);
                let is_asked = !read(tenant, "HGET", &requested, &[&of.to_bytes()]).await?.is_nil();
                Ok(is_asked || tenant.following(by)?.score(&of).await?.is_some())
            }
            _ => Ok(true),
        }
    }
}

impl Relation for Remark {
    async fn look(&self, graph: &Arc<Graph>) -> Result<Observation> {
        let Self { by, own, of } = *self;
        let hash = graph.keys().own(own, by);
        let is_left = !read(graph, "HGET", &hash, &[&of.to_bytes()]).await?.is_nil();
        if !is_left || self.is_of_something(graph).await? {
            return Ok(Observation::default());
        }
        let told = format!("{own:?} of account {by}, about account {of}");
        let excused_by = vec![Matter::Burial(by), Matter::Burial(of)];
        // Not what it says: a note is private.
        let (kind, detail) = (FindingKind::RemarkNeedless, Vec::new());
        Ok([Deviation { kind, at: Unit::of(*self), detail, told, excused_by }].into())
    }

    async fn repair(&self, graph: &Arc<Graph>, _: &Deviation) -> Result<Vec<Unit>> {
        let (Self { by, own, of }, hash) = (*self, graph.keys().own(self.own, self.by));
        // What it says first: what is said anew, of a follow or mute that is made meanwhile, is something else, or
        // finds it there.
        let says = read(graph, "HGET", &hash, &[&of.to_bytes()]).await?;
        if !says.is_nil() && !(Self { by, own, of }).is_of_something(graph).await? {
            write(graph, &hash, field_drop(hash.clone(), &of.to_bytes(), says.bytes()?)).await?;
        }
        Ok(Vec::new())
    }
}
