//! Claims: whose a name is, wherever the account lies, and whatever fails half-way.
//!
//! An account names its claims, and a claim names its account; only both together mean something. Whoever finds a claim
//! taken looks at the account that it names: does that one say so too? An account that was to be registered and never
//! was says so for a while only.

mod decide;

use std::time::Duration;

use self::decide::{HolderFacts, HolderStep};
use crate::cluster::{Command, Request, TouchedServers};
use crate::error::{Error, ErrorKind, Result};
use crate::fields::CredentialField;
use crate::functions::{self, Holder};
use crate::ids::{AccountId, Claim};
use crate::meters;
use crate::nonce::Nonce;
use crate::tenant::Tenant;

/// For so long nobody else ends an attempt: longer than any of its steps takes, failovers included.
const PATIENCE: Duration = Duration::from_secs(60);
/// Tries of taking a claim between others that take it.
const TRIES_MAX: usize = 16;

/// Milliseconds for which nobody else ends an attempt.
pub(crate) fn patience_ms() -> u64 {
    u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX)
}

/// Whether an attempt of that age is left alone.
pub(crate) fn is_young(age_ms: u64) -> bool {
    age_ms < patience_ms()
}

/// The outcome of taking a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimOutcome {
    /// It is ours.
    Ours,
    /// That account has it.
    Held(AccountId),
    /// That account may get it within a minute, or lose it.
    Wanted(AccountId),
}

fn request(tenant: &Tenant, claim: &Claim, command: Command) -> Request {
    Request::write(tenant.keys().buckets().slot(tenant.keys().bucket_of_claim(claim)), command)
}

/// Asks whose a claim is said to be, and what exactly stands there.
pub(crate) fn look_request(tenant: &Tenant, claim: &Claim) -> Request {
    let slot = tenant.keys().buckets().slot(tenant.keys().bucket_of_claim(claim));
    Request::read(slot, Command::new("GET").arg(&tenant.keys().claim(claim)))
}

/// Whether that account says so too.
pub(crate) fn holder_request(tenant: &Tenant, account: AccountId, claim: &Claim) -> Request {
    let keys = [tenant.keys().account(account), tenant.keys().credentials(account)];
    Request::read(tenant.slot(account), functions::claim_holder(&keys, claim, tenant.router().now_ms()))
}

/// Takes a claim, unless somebody else has it, or is about to. `touched`: who was told so, and whose word that was.
pub(crate) async fn take(
    tenant: &Tenant,
    claim: &Claim,
    (account, attempt): (AccountId, &Nonce),
    touched: &mut TouchedServers,
) -> Result<ClaimOutcome> {
    let key = tenant.keys().claim(claim);
    let value = functions::claim_value(account, attempt);
    let mut seen = Vec::new();
    for _ in 0..TRIES_MAX {
        // As it was seen, or not at all: of two that take it at once one is told of the other.
        let command = functions::claim_take(key.clone(), &seen, &value);
        let answer = tenant.router().ask(request(tenant, claim, command)).await?;
        touched.add(&answer);
        let Some(now) = functions::parse_taken(answer.ok()?)? else {
            if !seen.is_empty() {
                meters::claim_taken_over();
            }
            return Ok(ClaimOutcome::Ours);
        };
        if now.is_empty() {
            // Given up since.
            seen = now;
            continue;
        }
        let holder = AccountId::from_bytes(now.get(..8).unwrap_or(&now))?;
        let is_own = holder == account;
        let standing = match is_own {
            true => ask(tenant, holder, claim, Some(attempt), touched).await?,
            false => ask(tenant, holder, claim, None, &mut TouchedServers::new()).await?,
        };
        match standing {
            // Taken as it was seen: whoever has taken it meanwhile is looked at in turn.
            Standing::Free => seen = now,
            Standing::Held if is_own => return Ok(ClaimOutcome::Ours),
            Standing::Held => return Ok(ClaimOutcome::Held(holder)),
            Standing::Wanted => return Ok(ClaimOutcome::Wanted(holder)),
        }
    }
    let text = "the name is being taken and given up by others at this moment; try again";
    Err(Error::new(ErrorKind::Conflict, text))
}

/// The relation of an account to a claim that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It has nothing to do with it, and that lasts.
    Free,
    Held,
    Wanted,
}

/// Asks an account how it stands to a claim that names it, for `own`, an attempt of its own, or for somebody else.
/// `said`: whose word that is.
async fn ask(
    tenant: &Tenant,
    holder: AccountId,
    claim: &Claim,
    own: Option<&Nonce>,
    said: &mut TouchedServers,
) -> Result<Standing> {
    let mut facts = HolderFacts::default();
    loop {
        let step = match own {
            // H57: what a later attempt for the same account has taken an ended one leaves alone.
            Some(attempt) => facts.own_step(attempt),
            None => facts.step(),
        };
        match step {
            HolderStep::Ask => {
                let answer = tenant.router().ask(holder_request(tenant, holder, claim)).await?;
                said.add(&answer);
                (facts.holder, facts.asked) = (Some(Holder::parse(answer.ok()?)?), facts.asked + 1);
            }
            HolderStep::Void(attempt) => {
                void(tenant, holder, attempt, patience_ms(), said).await?;
                facts.holder = None;
            }
            HolderStep::Fence => {
                tenant.router().fence(said).await?;
                facts.lasts = true;
            }
            HolderStep::Free => return Ok(Standing::Free),
            HolderStep::Held => return Ok(Standing::Held),
            HolderStep::Wanted => return Ok(Standing::Wanted),
        }
    }
}

/// Ends an attempt that is so old, and the account with it if it was to be registered by that. False: it is settled,
/// ended, or not that old.
pub(crate) async fn void(
    tenant: &Tenant,
    account: AccountId,
    attempt: &[u8],
    patience_ms: u64,
    touched: &mut TouchedServers,
) -> Result<bool> {
    let keys = tenant.keys();
    let of = [keys.account(account), keys.credentials(account), keys.profile(account)];
    let command = functions::claims_void(&of, attempt, tenant.router().now_ms(), patience_ms);
    let answer = tenant.router().ask(Request::write(tenant.slot(account), command)).await?;
    touched.add(&answer);
    Ok(answer.ok()?.int()? == 1)
}

/// Gives a claim up, if it still is exactly that.
pub(crate) async fn give_up(tenant: &Tenant, claim: &Claim, value: &[u8]) -> Result<()> {
    let command = functions::string_drop(tenant.keys().claim(claim), value);
    tenant.router().call(request(tenant, claim, command)).await.map(drop)
}

/// Gives up those of the claims that name this account, and that it neither has nor is about to get, whichever attempt
/// took them. Looked at first, asked then: what is dropped is the word of an attempt that was over before the account
/// said so, and one that takes the claim anew meanwhile, for the same account, writes another one.
pub(crate) async fn give_up_all(tenant: &Tenant, account: AccountId, claims: &[Claim]) -> Result<()> {
    let looks = claims.iter().map(|claim| look_request(tenant, claim)).collect();
    let found = tenant.run_all(looks).await?;
    for (claim, answer) in claims.iter().zip(found) {
        if let Some((holder, value)) = functions::parse_claim(&answer.ok()?)?
            // Asked after the look: an attempt that takes it anew meanwhile writes another word, which stays.
            && holder == account
            && ask(tenant, account, claim, None, &mut TouchedServers::new()).await? == Standing::Free
        {
            give_up(tenant, claim, &value).await?;
        }
    }
    Ok(())
}

/// An account's claims, as its credentials tell them.
#[derive(Debug, Default)]
pub(crate) struct AccountClaims {
    /// Its own.
    pub(crate) held: Vec<Claim>,
    /// Those that an attempt is to give it.
    pub(crate) wanted: Vec<Claim>,
    /// That attempt, and when it began (ms, by the clock of whoever began it).
    pub(crate) attempt: Option<(Vec<u8>, u64)>,
}

/// Reads what an account's credentials say of its claims.
pub(crate) async fn of_account(
    tenant: &Tenant,
    account: AccountId,
    touched: &mut TouchedServers,
) -> Result<AccountClaims> {
    let fields = [
        CredentialField::CLAIMS,
        CredentialField::WANTED,
        CredentialField::ATTEMPT,
        CredentialField::BEGUN_AT,
    ];
    let fields = Command::new("HMGET").arg(&tenant.keys().credentials(account)).args(fields);
    let answer = tenant.router().ask(Request::read(tenant.slot(account), fields)).await?;
    touched.add(&answer);
    let [held, wanted, attempt, began] = answer.ok()?.into_values()?;
    let claims = |stored: &crate::cluster::Reply| match stored.is_nil() {
        true => Ok(Vec::new()),
        false => Claim::parse_all(stored.bytes()?),
    };
    let attempt = (!attempt.is_nil()).then(|| attempt.bytes().map(<[u8]>::to_vec)).transpose()?;
    let began = began.count().unwrap_or_default();
    Ok(AccountClaims {
        held: claims(&held)?,
        wanted: claims(&wanted)?,
        attempt: attempt.map(|attempt| (attempt, began)),
    })
}
