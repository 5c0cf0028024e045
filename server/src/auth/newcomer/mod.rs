//! Newcomers, who have signed up and are not let in yet: what they wait for, and how that comes.
//!
//! What a new account waits for is written with its sign-up, among the fields of its profile that nobody else sees;
//! what of it has come stands in a document of its own, which two who bring different things at once both write. Once
//! nothing is left the account is active. Until then its state keeps it from doing anything, and others from seeing
//! it, whatever is asked here. Whoever waits for approval is listed (`list`).

mod list;

use serde::{Deserialize, Serialize};
use tideline::profile::ProfileUpdate;
use tideline::registration::{Registration, folded_name};
use tideline::{
    Account, AccountId, AccountState, AccountUpdate, CallFuture, Engine, Error, ErrorKind, Profile, Result,
};

use super::secret::hash;
use crate::http::{Refusal, Timestamp};
use crate::keep::documents;
pub(crate) use list::list;
pub use list::{WAITING_MAX, WaitingAccount, waiting};

/// Letters of what somebody says who wants to be let in.
pub(crate) const REASON_CHARS_MAX: usize = 500;
/// So long somebody may take to confirm an address; then whoever wants these names gets them.
const CONFIRMS_WITHIN_MS: u64 = 2 * 86_400 * 1_000;

/// Own fields of its profile: that it waits for its address to be confirmed, and to be approved, and what it says for
/// itself.
const CONFIRMATION: &str = "awaits_confirmation";
const APPROVAL: &str = "awaits_approval";
const REASON: &str = "reason";

/// The name of the document that says what has come.
const COME: &str = "come";

/// Things that an account waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AwaitedSteps {
    /// That somebody follows the link in a letter.
    pub(crate) confirmation: bool,
    /// That whoever runs the site says yes.
    pub(crate) approval: bool,
}

/// The part of it that has come.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
struct ComeSoFar {
    confirmation: bool,
    approval: bool,
    /// The hash of the address that was confirmed: another one that the account has by now was not. `None`: whichever
    /// it has is taken for confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
}

impl ComeSoFar {
    async fn of(registration: &Registration, account: AccountId) -> Result<Self> {
        Ok(documents::get(registration, account, COME).await?.unwrap_or_default())
    }

    /// Whether that is the address that was confirmed.
    fn confirms(&self, email: &str) -> bool {
        self.address.as_ref().is_some_and(|of| *of == known_by(email))
    }

    /// Whether the address that an account has is confirmed.
    async fn is_confirmed(&self, registration: &Registration, account: AccountId) -> Result<bool> {
        match self.address {
            Some(_) => Ok(registration.email(account).await?.is_some_and(|email| self.confirms(&email))),
            None => Ok(self.confirmation),
        }
    }
}

/// By what an address is known where something is said of it.
fn known_by(email: &str) -> String {
    hash(&folded_name(email))
}

impl AwaitedSteps {
    pub(crate) fn is_nothing(self) -> bool {
        self == Self::default()
    }

    /// The profile of whoever signs up and has to wait for this.
    pub(crate) fn profile(self, reason: &str) -> Profile {
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut own_fields = Vec::new();
        own_fields.extend(self.confirmation.then(|| field(CONFIRMATION, "1")));
        own_fields.extend(self.approval.then(|| field(APPROVAL, "1")));
        own_fields.extend(self.approval.then(|| field(REASON, reason)));
        let mut profile = Profile::default();
        profile.own_fields = own_fields;
        profile
    }

    /// The steps that a `Waiting` account waits for.
    pub(crate) async fn of(registration: &Registration, account: AccountId) -> Result<Self> {
        // In this order: what has come is forgotten last, once nothing is left to wait for.
        let come = ComeSoFar::of(registration, account).await?;
        let profile = registration.profile(account).await?;
        let said = |name: &str| profile.own_fields.iter().any(|(of, _)| of == name);
        Ok(Self {
            confirmation: said(CONFIRMATION) && !come.is_confirmed(registration, account).await?,
            approval: said(APPROVAL) && !come.approval,
        })
    }

    /// The refusal for whoever comes too early, as Mastodon says it.
    pub(crate) fn refusal(self) -> Refusal {
        let text = match self.confirmation {
            true => "Your login is missing a confirmed e-mail address",
            false => "Your login is currently pending approval",
        };
        Refusal::new(axum::http::StatusCode::FORBIDDEN, text)
    }
}

/// The steps that an account waits for, if it isn't in: what was left half-way is brought to its end first.
pub(crate) async fn awaited(
    engine: &Engine,
    registration: &Registration,
    account: &Account,
) -> Result<AwaitedSteps> {
    if account.state != AccountState::Waiting {
        return Ok(AwaitedSteps::default());
    }
    let awaited = AwaitedSteps::of(registration, account.id).await?;
    if awaited.is_nothing() {
        let_in(engine, registration, account.id).await?;
    }
    Ok(awaited)
}

/// Says that an address of an account is confirmed; gives what that still waits for.
///
/// The account may be about to have another one: nobody is let in with an address that isn't its own. Whoever changes
/// it looks then whether the account was let in ([`takes_back`]), and whoever lets it in whether it has that address
/// still: one of the two sees the other.
pub(crate) async fn confirm(
    engine: &Engine,
    registration: &Registration,
    account: AccountId,
    email: &str,
) -> Result<AwaitedSteps> {
    let address = Some(known_by(email));
    let comes = |so_far| ComeSoFar { confirmation: true, address: address.clone(), ..so_far };
    let left = come(engine, registration, account, comes).await?;
    if left.is_nothing() && registration.email(account).await?.as_deref() != Some(email) {
        registration.set_email(account, Some(email)).await?;
    }
    Ok(left)
}

/// Takes back an address that an account was given while it waited, if it waits no more: the one of before comes back
/// if that was confirmed.
pub(crate) async fn takes_back(
    engine: &Engine,
    registration: &Registration,
    account: AccountId,
    before: Option<&str>,
) -> Result<bool> {
    let is_in = engine.stored().account(account).await?.state != AccountState::Waiting;
    if is_in {
        let come = ComeSoFar::of(registration, account).await?;
        let confirmed = before.filter(|before| come.confirms(before));
        registration.set_email(account, confirmed).await?;
    }
    Ok(is_in)
}

async fn come(
    engine: &Engine,
    registration: &Registration,
    account: AccountId,
    comes: impl Fn(ComeSoFar) -> ComeSoFar + Sync,
) -> Result<AwaitedSteps> {
    let becomes = |so_far: Option<ComeSoFar>| Ok::<_, Error>(Some(comes(so_far.unwrap_or_default())));
    documents::change(registration, account, COME, becomes).await?;
    // Of two who bring the last two things, at least one sees that nothing is left.
    let awaited = AwaitedSteps::of(registration, account).await?;
    if awaited.is_nothing() {
        let_in(engine, registration, account).await?;
    }
    Ok(awaited)
}

async fn let_in(engine: &Engine, registration: &Registration, account: AccountId) -> Result<()> {
    let come = ComeSoFar::of(registration, account).await?;
    let update = AccountUpdate { state: Some(AccountState::Active), ..AccountUpdate::default() };
    engine.update_account(account, &update).await?;
    // Behind that: whoever has given it another address meanwhile has seen that it waits.
    if come.address.is_some() && !come.is_confirmed(registration, account).await? {
        registration.set_email(account, None).await?;
    }
    // What it has waited for is nobody's affair any more; where that stays it does no harm.
    let nothing = ProfileUpdate { own_fields: Some(Vec::new()), ..ProfileUpdate::default() };
    let cleared = async {
        registration.update_profile(account, &nothing).await?;
        // Which address was confirmed whoever changes that at the same time has to know.
        match come.address {
            Some(_) => Ok(()),
            None => documents::remove(registration, account, COME).await.map(drop),
        }
    };
    if let Err(error) = cleared.await {
        tracing::debug!(%error, "what a new account has waited for stays written down");
    }
    Ok(())
}

/// Lets an account in that waits for that; true: it is in, false: it has to confirm its address first, unless that is
/// taken for confirmed (`is_confirmed`).
///
/// # Errors
///
/// [`Invalid`](ErrorKind::Invalid): it doesn't wait.
pub fn approve<'a>(
    engine: &'a Engine,
    registration: &'a Registration,
    account: &'a Account,
    is_confirmed: bool,
) -> CallFuture<'a, bool> {
    Box::pin(async move {
        check_waits(account)?;
        let comes = |so_far: ComeSoFar| ComeSoFar {
            approval: true,
            confirmation: so_far.confirmation || is_confirmed,
            address: so_far.address.filter(|_| !is_confirmed),
        };
        let left = come(engine, registration, account.id, comes).await?;
        strike(registration, account).await?;
        Ok(left.is_nothing())
    })
}

/// Turns an account away that waits: it is deleted, and its names are free.
///
/// # Errors
///
/// [`Invalid`](ErrorKind::Invalid): it doesn't wait.
pub fn reject<'a>(
    engine: &'a Engine,
    registration: &'a Registration,
    account: &'a Account,
) -> CallFuture<'a, ()> {
    Box::pin(async move {
        check_waits(account)?;
        remove(engine, registration, account.id).await?;
        strike(registration, account).await
    })
}

/// Removes an account that waits, with its sessions.
async fn remove(engine: &Engine, registration: &Registration, account: AccountId) -> Result<()> {
    // Before its documents go, which list them.
    if let Some(because) = super::token::end_sessions(registration, account).await?.because {
        return Err(because);
    }
    engine.delete_waiting(account).await.map(|_| ())
}

async fn strike(registration: &Registration, account: &Account) -> Result<()> {
    match &account.login {
        Some(login) => list::strike(registration, login).await,
        None => Ok(()),
    }
}

fn check_waits(account: &Account) -> Result<()> {
    match account.state {
        AccountState::Waiting => Ok(()),
        state => {
            let text = format!("account {} does not wait to be let in: it is {state}", account.id);
            Err(Error::invalid(text))
        }
    }
}

/// Removes an account whose address nobody has confirmed in time, so that its names are free; true: it is gone.
pub(crate) async fn remove_if_overdue(
    engine: &Engine,
    registration: &Registration,
    account: &Account,
) -> Result<bool> {
    let age_ms = Timestamp::now().0.saturating_sub(account.registered_ms.unwrap_or(u64::MAX));
    if account.state != AccountState::Waiting
        || age_ms <= CONFIRMS_WITHIN_MS
        || !AwaitedSteps::of(registration, account.id).await?.confirmation
    {
        return Ok(false);
    }
    match remove(engine, registration, account.id).await {
        // Somebody has just confirmed it, or let it in.
        Err(e) if e.kind() == ErrorKind::Invalid => Ok(false),
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        _ => Ok(true),
    }
}
