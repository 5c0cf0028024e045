//! A look at what is stored of an account's names: which claims it says are its own, and whether they say so too. Never
//! a name, an e-mail address or a hash.

use serde::Serialize;

use crate::claims;
use crate::cluster::TouchedServers;
use crate::error::Result;
use crate::functions;
use crate::ids::{AccountId, Claim};
use crate::tenant::Tenant;

/// An account's names, as its credentials tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredNames {
    /// Its own.
    pub held: Vec<StoredClaim>,
    /// Those that an attempt under way is to give it: signing up, or another login or address.
    pub wanted: Vec<StoredClaim>,
    /// When that attempt began, in milliseconds since 1970. A minute later others may end it.
    pub attempt_since_ms: Option<u64>,
}

/// A claim on a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StoredClaim {
    /// Whether it is a login; else an e-mail address.
    pub is_login: bool,
    /// The account that the claim itself names: the same one, or something is amiss, or not done yet.
    pub names: Option<AccountId>,
}

/// Reads what is stored of an account's names; `None`: nothing.
pub(super) async fn stored(tenant: &Tenant, account: AccountId) -> Result<Option<StoredNames>> {
    let said = claims::of_account(tenant, account, &mut TouchedServers::new()).await?;
    if said.held.is_empty() && said.attempt.is_none() {
        return Ok(None);
    }
    Ok(Some(StoredNames {
        held: looked_up(tenant, &said.held).await?,
        wanted: looked_up(tenant, &said.wanted).await?,
        attempt_since_ms: said.attempt.map(|(_, began)| began),
    }))
}

async fn looked_up(tenant: &Tenant, claims: &[Claim]) -> Result<Vec<StoredClaim>> {
    let looks = claims.iter().map(|claim| claims::look_request(tenant, claim)).collect();
    let found = tenant.run_all(looks).await?;
    let claim = |(claim, answer): (&Claim, crate::cluster::Answer)| {
        let names = functions::parse_claim(&answer.ok()?)?.map(|(account, _)| account);
        Ok(StoredClaim { is_login: claim.kind() == Claim::LOGIN, names })
    };
    claims.iter().zip(found).map(claim).collect()
}
