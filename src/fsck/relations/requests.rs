//! Requests to follow: whoever asks waits on the other's list.

use std::sync::Arc;

use super::follows::FollowPair;
use super::ownerless::OwnerlessKey;
use crate::error::Result;
use crate::fsck::ask::{self, is_there, read, write};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, Relation, Unit};
use crate::functions::{field_drop, read_nonce};
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::keys::OwnKey;
use crate::nonce::Nonce;
use crate::tenant::{Answers, Tenant};

/// Requests of somebody: asked for, said yes to, or to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RequestsOf(pub(super) AccountId, pub(super) OwnKey);

/// One request, from both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct RequestListing(FollowPair);

/// Facts of what stands where about one request.
struct RequestSeen {
    waiting: Option<Nonce>,
    approved: Option<Nonce>,
    requested: Option<Nonce>,
}

impl Relation for RequestsOf {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self(account, own) = *self;
        let hash = tenant.keys().own(own, account);
        if !is_there(tenant, account).await? {
            return Ok(OwnerlessKey::orphan(hash, account));
        }
        let mut seen = Observation::default();
        for other in read(tenant, "HKEYS", &hash, &[]).await?.into_array()? {
            let other = AccountId::from_bytes(other.bytes()?)?;
            let is_asking = own == OwnKey::Requested;
            let (reader, author) = if is_asking { (account, other) } else { (other, account) };
            seen = seen.and(RequestListing(FollowPair { reader, author }).look(tenant).await?);
        }
        Ok(seen)
    }
}

impl RequestListing {
    async fn read(&self, tenant: &Tenant) -> Result<RequestSeen> {
        let (keys, FollowPair { reader, author }) = (tenant.keys(), self.0);
        let get = |hash: Vec<u8>, field: AccountId| ask::request("HGET", &hash, &[&field.to_bytes()]);
        let asked = [
            get(keys.waiting(author), reader),
            get(keys.approved(author), reader),
            get(keys.requested(reader), author),
        ];
        let mut answers = Answers::of(tenant, asked.into_iter().collect()).await?;
        let mut next = || -> Result<Option<Nonce>> {
            let value = answers.next()?;
            // One of another length reads as zeros.
            Ok((!value.is_nil()).then(|| read_nonce(&value).unwrap_or_default()))
        };
        Ok(RequestSeen { waiting: next()?, approved: next()?, requested: next()? })
    }
}

impl Relation for RequestListing {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let RequestSeen { waiting, approved, requested } = self.read(tenant).await?;
        // An approval is carried out at once, so none stays.
        if waiting == requested && approved.is_none() {
            return Ok(Observation::default());
        }
        let request = requested.or(waiting).or(approved).unwrap_or_default();
        let of_pair = self.0.found(FindingKind::RequestOutOfStep, request);
        Ok([Deviation { at: Unit::of(*self), ..of_pair }].into())
    }

    async fn repair(&self, graph: &Arc<Graph>, _: &Deviation) -> Result<Vec<Unit>> {
        let tenant = &graph.tenant;
        let RequestSeen { waiting, approved, requested } = self.read(tenant).await?;
        let (keys, FollowPair { reader, author }) = (tenant.keys(), self.0);
        if requested.is_some() {
            self.0.look_again(&graph.journal, true).await?;
            return Ok(Vec::new());
        }
        for (hash, value) in [(keys.waiting(author), waiting), (keys.approved(author), approved)] {
            if let Some(value) = value {
                write(tenant, &hash, field_drop(hash.clone(), &reader.to_bytes(), &value)).await?;
            }
        }
        Ok(Vec::new())
    }
}
