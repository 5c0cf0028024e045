//! Names: whether claims and accounts say the same, and attempts that nobody brings to an end.

use std::sync::Arc;

use super::ownerless::OwnerlessKey;
use crate::beginnings::{self, NameTask};
use crate::claims::{self, ClaimOutcome, patience_ms};
use crate::cluster::TouchedServers;
use crate::error::Result;
use crate::fields::RecordField;
use crate::fsck::ask::{exists, leave, read};
use crate::fsck::kind::FindingKind;
use crate::fsck::seen::{Deviation, Observation, Relation, Unit, left_alone};
use crate::functions::{self, Holder};
use crate::graph::Graph;
use crate::ids::{AccountId, Claim};
use crate::journal::{Journal, Matter};
use crate::nonce::draw;
use crate::tenant::Tenant;

/// A claim, and the account that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ClaimHolder(pub(super) Claim);

/// An account's word on its names, and whether these say so too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct AccountNames(pub(super) AccountId);

/// Whether an account has a claim, and whose word that is.
async fn holder(
    tenant: &Tenant,
    account: AccountId,
    claim: &Claim,
    touched: &mut TouchedServers,
) -> Result<Holder> {
    let answer = tenant.router().ask(claims::holder_request(tenant, account, claim)).await?;
    touched.add(&answer);
    Holder::parse(answer.ok()?)
}

impl Relation for ClaimHolder {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let stored = tenant.router().call(claims::look_request(tenant, &self.0)).await?;
        let Some((owner, value)) = functions::parse_claim(&stored)? else {
            return Ok(Observation::default());
        };
        let mut seen = Observation::units([AccountNames(owner)]);
        if holder(tenant, owner, &self.0, &mut TouchedServers::new()).await? == Holder::Free {
            let told = format!("claim {} that names account {owner}", self.0.as_bytes().escape_ascii());
            let (kind, excused_by) = (FindingKind::ClaimNeedless, vec![Matter::Burial(owner)]);
            let detail = [owner.to_bytes().as_slice(), &value].concat();
            seen.deviations.push(Deviation { kind, at: Unit::of(*self), detail, told, excused_by });
        }
        Ok(seen)
    }

    /// Drops the claim, if its account still says that it isn't its own, and nobody has taken it since.
    async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        let tenant = &graph.tenant;
        let (owner, value) = found.detail.split_at(8);
        let mut said = TouchedServers::new();
        if holder(tenant, AccountId::from_bytes(owner)?, &self.0, &mut said).await? == Holder::Free {
            // That must last, as for whoever takes it.
            tenant.router().fence(&said).await?;
            claims::give_up(tenant, &self.0, value).await?;
        }
        Ok(Vec::new())
    }
}

impl Relation for AccountNames {
    async fn look(&self, tenant: &Tenant) -> Result<Observation> {
        let Self(account) = *self;
        let fields = read(
            tenant,
            "HMGET",
            &tenant.keys().account(account),
            &[RecordField::STATE, RecordField::LOGIN].map(str::as_bytes),
        )
        .await?;
        let [state, login] = fields.into_values()?;
        let said = claims::of_account(tenant, account, &mut TouchedServers::new()).await?;
        if state.is_nil() || state.bytes()? == b"d" {
            let key = tenant.keys().credentials(account);
            let is_left = exists(tenant, &key).await?;
            return Ok(if is_left { OwnerlessKey::orphan(key, account) } else { Observation::default() });
        }
        let mut found = Vec::new();
        let is_unconfirmed = state.bytes()? == b"u";
        if said.attempt.is_some() || is_unconfirmed {
            let (attempt, began) = said.attempt.unwrap_or_default();
            if tenant.router().now_ms().abs_diff(began) >= patience_ms() {
                found.push(self.found(FindingKind::AttemptLeft, &attempt));
            }
        }
        if is_unconfirmed {
            return Ok(found.into());
        }
        if !login.is_nil() && !said.held.iter().any(|claim| claim.kind() == Claim::LOGIN) {
            found.push(self.found(FindingKind::CredentialsMissing, b""));
        }
        for claim in &said.held {
            let stored = tenant.router().call(claims::look_request(tenant, claim)).await?;
            let kind = match functions::parse_claim(&stored)? {
                Some((owner, _)) if owner == account => continue,
                None => FindingKind::ClaimMissing,
                // Whoever it names may have nothing to do with it.
                Some((owner, _)) => match holder(tenant, owner, claim, &mut TouchedServers::new()).await? {
                    Holder::Free => FindingKind::ClaimMissing,
                    _ => FindingKind::ClaimOfOther,
                },
            };
            found.push(self.found(kind, claim.as_bytes()));
        }
        for beginning in beginnings::missing_from(tenant, account).await? {
            let unlisted = self.found(FindingKind::NameUnlisted, &beginning.to_bytes());
            let excused_by = vec![Matter::Burial(account), Matter::Names(account)];
            found.push(Deviation { excused_by, ..unlisted });
        }
        Ok(found.into())
    }

    async fn repair(&self, graph: &Arc<Graph>, found: &Deviation) -> Result<Vec<Unit>> {
        match found.kind {
            FindingKind::ClaimMissing => take(&graph.tenant, self.0, &found.detail).await,
            FindingKind::NameUnlisted => list(&graph.journal, self.0).await,
            FindingKind::AttemptLeft => end_attempt(&graph.tenant, self.0, &found.detail).await,
            // Who is right is for people to say.
            _ => Err(left_alone()),
        }
    }
}

impl AccountNames {
    /// `detail`: a claim, or an attempt.
    fn found(self, kind: FindingKind, detail: &[u8]) -> Deviation {
        let Self(account) = self;
        let told = format!("account {account} and its names ({})", detail.escape_ascii());
        let excused_by = vec![Matter::Burial(account)];
        Deviation { kind, at: Unit::of(self), detail: detail.into(), told, excused_by }
    }
}

/// Has an account put on the lists of its names.
async fn list(journal: &Arc<Journal>, account: AccountId) -> Result<Vec<Unit>> {
    leave(journal, journal.tenant.bucket(account), NameTask { account })
        .await
        .map(|()| vec![Unit::of(AccountNames(account))])
}

/// Takes a claim for an account that names it.
async fn take(tenant: &Tenant, account: AccountId, claim: &[u8]) -> Result<Vec<Unit>> {
    let Some(claim) = Claim::from_bytes(claim) else { return Ok(Vec::new()) };
    let mut touched = TouchedServers::new();
    if holder(tenant, account, &claim, &mut touched).await? != Holder::Held {
        return Ok(Vec::new());
    }
    // Given up meanwhile: then this claim is needless, and found as that.
    match claims::take(tenant, &claim, (account, &draw()), &mut touched).await? {
        ClaimOutcome::Ours => Ok(vec![Unit::of(ClaimHolder(claim))]),
        ClaimOutcome::Held(_) | ClaimOutcome::Wanted(_) => Ok(vec![Unit::of(AccountNames(account))]),
    }
}

/// Ends an attempt that nobody brings to its end; the claims that it took are found as needless then.
async fn end_attempt(tenant: &Tenant, account: AccountId, attempt: &[u8]) -> Result<Vec<Unit>> {
    let mut touched = TouchedServers::new();
    let said = claims::of_account(tenant, account, &mut touched).await?;
    claims::void(tenant, account, attempt, patience_ms(), &mut touched).await?;
    Ok(said.wanted.into_iter().map(|claim| Unit::of(ClaimHolder(claim))).collect())
}
