//! Names: whether claims and accounts say the same, and attempts that nobody brings to an end.

use super::deviation::{Deviation, FindingKind};
use super::look::Seen;
use super::repair::left_alone;
use super::unit::Unit;
use crate::claims::{self, Taken, patience_ms};
use crate::cluster::{Command, Request, Touched};
use crate::error::{Error, Result};
use crate::functions::{self, Holder};
use crate::ids::{AccountId, Claim};
use crate::nonce::draw;
use crate::tenant::Tenant;

/// Whether an account has a claim, and whose word that is.
async fn holder(tenant: &Tenant, account: AccountId, claim: &Claim, touched: &mut Touched) -> Result<Holder> {
    let answer = tenant.router().ask(claims::holder_request(tenant, account, claim)).await?;
    touched.add(&answer);
    Holder::parse(answer.ok()?)
}

/// Looks at a claim: whether the account that it names says so too.
pub(super) async fn claim(tenant: &Tenant, claim: &Claim) -> Result<Seen> {
    let found = tenant.router().call(claims::look_request(tenant, claim)).await?;
    let Some((owner, value)) = functions::parse_claim(&found)? else { return Ok(Seen::default()) };
    let units = vec![Unit::Credentials(owner)];
    let deviations = match holder(tenant, owner, claim, &mut Touched::new()).await? {
        Holder::Free => vec![Deviation::Claim { claim: *claim, value, owner }],
        Holder::Held | Holder::Wanted { .. } => Vec::new(),
    };
    Ok(Seen { deviations, units })
}

/// Looks at what an account says of its names.
pub(super) async fn credentials(tenant: &Tenant, account: AccountId) -> Result<Seen> {
    let fields = Command::new("HMGET").arg(&tenant.keys().account(account)).arg("s").arg("un");
    let fields = tenant.router().call(Request::read(tenant.slot(account), fields)).await?.into_array()?;
    let [state, login] = fields.as_slice() else { return Err(Error::internal("two fields were asked for")) };
    let said = claims::of_account(tenant, account, &mut Touched::new()).await?;
    if state.is_nil() || state.bytes()? == b"d" {
        let key = tenant.keys().credentials(account);
        let exists = Command::new("EXISTS").arg(&key);
        let exists = tenant.router().call(Request::read(tenant.slot(account), exists)).await?.int()? == 1;
        return Ok(if exists { Seen::orphan(key, account) } else { Seen::default() });
    }
    let of = |kind, detail: &[u8]| Deviation::Names { kind, account, detail: detail.into() };
    let mut seen = Seen::default();
    let is_unconfirmed = state.bytes()? == b"u";
    if said.attempt.is_some() || is_unconfirmed {
        let (attempt, began) = said.attempt.unwrap_or_default();
        if tenant.router().now_ms().abs_diff(began) >= patience_ms() {
            seen.deviations.push(of(FindingKind::AttemptLeft, &attempt));
        }
    }
    if is_unconfirmed {
        return Ok(seen);
    }
    if !login.is_nil() && !said.held.iter().any(|claim| claim.kind() == Claim::LOGIN) {
        seen.deviations.push(of(FindingKind::CredentialsMissing, b""));
    }
    for claim in &said.held {
        let found = tenant.router().call(claims::look_request(tenant, claim)).await?;
        match functions::parse_claim(&found)? {
            Some((owner, _)) if owner == account => {}
            None => seen.deviations.push(of(FindingKind::ClaimMissing, claim.as_bytes())),
            Some((owner, _)) => {
                // Whoever it names may have nothing to do with it.
                let kind = match holder(tenant, owner, claim, &mut Touched::new()).await? {
                    Holder::Free => FindingKind::ClaimMissing,
                    _ => FindingKind::ClaimOfOther,
                };
                seen.deviations.push(of(kind, claim.as_bytes()));
            }
        }
    }
    Ok(seen)
}

/// What is out of step among these accounts and claims, after it was put right if that is wanted: for the simulation, whose
/// servers can't be walked.
#[cfg(test)]
pub(crate) async fn look_through(
    tenant: &Tenant,
    accounts: &[AccountId],
    claims: &[Claim],
    repairs: bool,
) -> Result<Vec<(FindingKind, String)>> {
    let mut found = Vec::new();
    for account in accounts {
        found.extend(credentials(tenant, *account).await?.deviations);
    }
    for named in claims {
        found.extend(claim(tenant, named).await?.deviations);
    }
    for deviation in found.iter().filter(|_| repairs) {
        // What is left alone is found again.
        drop(repair(tenant, deviation).await);
    }
    Ok(found.into_iter().map(|deviation| (deviation.kind(), format!("{deviation:?}"))).collect())
}

/// Puts one deviation of names right.
pub(super) async fn repair(tenant: &Tenant, deviation: &Deviation) -> Result<Vec<Unit>> {
    match deviation {
        Deviation::Claim { claim, value, owner } => drop_claim(tenant, claim, value, *owner).await,
        Deviation::Names { kind: FindingKind::ClaimMissing, account, detail } => {
            take(tenant, *account, detail).await
        }
        Deviation::Names { kind: FindingKind::AttemptLeft, account, detail } => {
            end_attempt(tenant, *account, detail).await
        }
        // Who is right is for people to say.
        _ => Err(left_alone()),
    }
}

/// Drops a claim, if its account still says that it isn't its own, and nobody has taken it since.
async fn drop_claim(tenant: &Tenant, claim: &Claim, value: &[u8], owner: AccountId) -> Result<Vec<Unit>> {
    let mut said = Touched::new();
    if holder(tenant, owner, claim, &mut said).await? == Holder::Free {
        // That must last, as for whoever takes it.
        tenant.router().fence(&said).await?;
        claims::give_up(tenant, claim, value).await?;
    }
    Ok(Vec::new())
}

/// Takes a claim for an account that names it.
async fn take(tenant: &Tenant, account: AccountId, claim: &[u8]) -> Result<Vec<Unit>> {
    let Some(claim) = Claim::from_bytes(claim) else { return Ok(Vec::new()) };
    let mut touched = Touched::new();
    if holder(tenant, account, &claim, &mut touched).await? != Holder::Held {
        return Ok(Vec::new());
    }
    // Given up meanwhile: then this claim is needless, and found as that.
    match claims::take(tenant, &claim, (account, &draw()), &mut touched).await? {
        Taken::Ours => Ok(vec![Unit::Claim(claim)]),
        Taken::Held(_) | Taken::Wanted(_) => Ok(vec![Unit::Credentials(account)]),
    }
}

/// Ends an attempt that nobody brings to its end; the claims that it took are found as needless then.
async fn end_attempt(tenant: &Tenant, account: AccountId, attempt: &[u8]) -> Result<Vec<Unit>> {
    let mut touched = Touched::new();
    let said = claims::of_account(tenant, account, &mut touched).await?;
    claims::void(tenant, account, attempt, patience_ms(), &mut touched).await?;
    Ok(said.wanted.into_iter().map(Unit::Claim).collect())
}
