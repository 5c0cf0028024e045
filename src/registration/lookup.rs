//! Looking people up, by any of their names, many at once; and whether a password is theirs.

use std::collections::HashMap;
use std::fmt;

use futures::future::try_join;

use super::{Registration, names};
use crate::account::Account;
use crate::claims;
use crate::cluster::{Batch, Command, Reply, Request};
use crate::error::{CallFuture, Error, ErrorCode, Result};
use crate::fields::CredentialField;
use crate::functions;
use crate::ids::{AccountId, Claim};
use crate::meters;
use crate::tenant::Answers;

/// Names looked up in one call.
const NAMES_MAX: usize = 1_000;

/// A name that somebody is looked up by.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Name {
    /// An id.
    Id(AccountId),
    /// A login, in upper or lower case.
    Login(String),
    /// An e-mail address.
    Email(String),
}

/// Without e-mail addresses.
impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "Id({id})"),
            Self::Login(login) => write!(f, "Login({login:?})"),
            Self::Email(_) => f.write_str("Email(..)"),
        }
    }
}

/// An account, and by which of its claims it was found; without one: by its id.
type FoundBy = (AccountId, Option<Claim>);

impl Registration {
    /// Looks people up with their profiles, up to a thousand at once: one trip by ids, two by names. `None`: there is
    /// nobody of that name, or what was given is none.
    pub fn find<'a>(&'a self, names: &'a [Name]) -> CallFuture<'a, Vec<Option<Account>>> {
        Box::pin(async move {
            if names.len() > NAMES_MAX {
                return Err(Error::out_of_range(format!(
                    "too many names: {}; at most {NAMES_MAX} a call",
                    names.len()
                )));
            }
            let candidates = self.candidates(names).await?;
            let (tenant, graph) = (self.tenant(), self.graph());
            let mut batch = Batch::new();
            let mut known: HashMap<FoundBy, Option<Account>> = HashMap::new();
            let mut asked = Vec::new();
            for candidate in candidates.iter().flatten() {
                if known.insert(*candidate, None).is_some() {
                    continue;
                }
                let (id, claim) = *candidate;
                batch.push(tenant.account_request(id));
                batch.push(tenant.profile_request(id));
                if claim.is_some() {
                    let claims =
                        Command::new("HGET").arg(&tenant.keys().credentials(id)).arg(CredentialField::CLAIMS);
                    batch.push(Request::read(tenant.slot(id), claims));
                }
                asked.push(*candidate);
            }
            let mut answers = Answers::of(tenant, batch).await?;
            for (id, claim) in asked {
                let (account, profile) = (Account::parse(id, answers.next()?)?, answers.next()?);
                let is_its_own = has_claim(&mut answers, claim)?;
                let account = account.filter(|account| account.is_there() && is_its_own);
                let account = account.map(|account| account.with_profile(&profile));
                account.iter().for_each(|account| graph.uncounted.met(account, tenant.router().now_ms()));
                known.insert((id, claim), account);
            }
            let account = |candidate: Option<FoundBy>| known.get(&candidate?)?.clone();
            Ok(candidates.into_iter().map(account).collect())
        })
    }

    /// The accounts that these names may mean, by what the claims say. That an account says so too is looked at later.
    async fn candidates(&self, names: &[Name]) -> Result<Vec<Option<FoundBy>>> {
        let claim = |name: &Name| match name {
            Name::Id(_) => None,
            Name::Login(login) => names::login(login).ok().map(|(_, claim)| claim),
            Name::Email(email) => names::email(email).ok().map(|(_, claim)| claim),
        };
        let claims: Vec<Option<Claim>> = names.iter().map(claim).collect();
        let looks = claims.iter().flatten().map(|claim| claims::look_request(self.tenant(), claim)).collect();
        let mut answers = Answers::of(self.tenant(), looks).await?;
        let mut found = Vec::with_capacity(names.len());
        for (name, claim) in names.iter().zip(claims) {
            found.push(match (name, claim) {
                (Name::Id(id), _) => Some((*id, None)),
                (_, None) => None,
                (_, Some(claim)) => {
                    functions::parse_claim(&answers.next()?)?.map(|(id, _)| (id, Some(claim)))
                }
            });
        }
        Ok(found)
    }

    /// Finds who that is, if the password is right: by login or e-mail address. `None`: it is wrong, or there is nobody
    /// of that name, which takes as long and as many commands to find out.
    ///
    /// Whether an account that is suspended may log in is the caller's to decide, and how often somebody may try.
    /// [`ErrorKind::Overloaded`](crate::ErrorKind::Overloaded): too many passwords wait to be looked at.
    pub fn check<'a>(&'a self, name: &'a str, password: &'a str) -> CallFuture<'a, Option<Account>> {
        Box::pin(async move {
            let (tenant, graph) = (self.tenant(), self.graph());
            let by_email = name.contains('@');
            let claim = if by_email { names::email(name) } else { names::login(name) };
            let claim = claim.map_or_else(|_| nobodys(), |(_, claim)| claim);
            let found = tenant.router().call(claims::look_request(tenant, &claim)).await?;
            let id = functions::parse_claim(&found)?.map(|(id, _)| id);
            // Somebody is asked for in any case.
            let asked = id.map_or_else(|| AccountId::new(1 + (u64::from(claim.as_bytes()[1]) << 8)), Ok)?;
            let secrets = Command::new("HMGET")
                .arg(&tenant.keys().credentials(asked))
                .arg(CredentialField::PASSWORD_HASH)
                .arg(CredentialField::CLAIMS)
                .arg(CredentialField::LAST_ATTEMPT);
            let secrets = Request::read(tenant.slot(asked), secrets);
            let batch = tenant.shown_requests(asked).chain([secrets]).collect();
            let mut answers = Answers::of(tenant, batch).await?;
            let account = graph.readers.read_shown(asked, &mut answers)?.filter(Account::is_there);
            let [hash, held, last] = answers.next()?.into_values()?;
            let is_its_own = id.is_some() && account.is_some() && holds(&held, claim)?;
            let hash = if is_its_own { secret(&hash)? } else { None };
            let is_right = self.passwords.is_hash_of(hash.clone(), bounded(password)).await?;
            meters::password_checked(is_right);
            if is_right && hash.is_some_and(|hash| self.passwords.is_old(&hash)) {
                let last = last.bytes().unwrap_or_default().to_vec();
                let (registration, password) = (self.clone(), password.to_owned());
                // Beside: nobody waits for it, and it comes to nothing where too many passwords wait already.
                graph.journal.tasks.beside(async move {
                    drop(registration.renew_hash(asked, &password, &last).await);
                });
            }
            Ok(account.filter(|_| is_right))
        })
    }

    /// An account's e-mail address, if it has one. For itself and for moderators: no page shows it.
    pub fn email(&self, account: AccountId) -> CallFuture<'_, Option<String>> {
        Box::pin(async move {
            let tenant = self.tenant();
            let get =
                Command::new("HGET").arg(&tenant.keys().credentials(account)).arg(CredentialField::EMAIL);
            let get = tenant.router().call(Request::read(tenant.slot(account), get));
            let (_, email) = try_join(tenant.existing(account), get).await?;
            Ok(secret(&email)?.filter(|email| !email.is_empty()))
        })
    }

    /// Finds the id of whoever has this login; [`ErrorKind::NotFound`](crate::ErrorKind::NotFound): nobody has.
    pub fn id_of<'a>(&'a self, login: &'a str) -> CallFuture<'a, AccountId> {
        Box::pin(async move {
            let found = self.find(&[Name::Login(login.to_owned())]).await?.into_iter().flatten().next();
            let nobody =
                || Error::new(ErrorCode::AccountNotFound, format!("nobody has the login {:?}", short(login)));
            found.map(|account| account.id).ok_or_else(nobody)
        })
    }
}

/// A claim that nobody ever has.
fn nobodys() -> Claim {
    Claim::new(Claim::LOGIN, [0; 16])
}

/// As much of a password as may be one; what is longer is wrong anyway.
fn bounded(password: &str) -> String {
    if password.len() > super::PASSWORD_BYTES_MAX { String::new() } else { password.to_owned() }
}

/// A secret, as text; an error doesn't tell what it is instead.
fn secret(stored: &Reply) -> Result<Option<String>> {
    if stored.is_nil() {
        return Ok(None);
    }
    let text = stored
        .text()
        .map_err(|_| Error::internal("an account's credentials hold something else than text"))?;
    Ok(Some(text.to_owned()))
}

/// As much of a name as a message needs.
fn short(name: &str) -> String {
    name.chars().take(super::LOGIN_CHARS_MAX).collect()
}

fn holds(held: &Reply, claim: Claim) -> Result<bool> {
    // Changed since, the name may be claimed still, or not yet: it counts once both say so.
    if held.is_nil() { Ok(false) } else { Ok(Claim::parse_all(held.bytes()?)?.contains(&claim)) }
}

fn has_claim(answers: &mut Answers, claim: Option<Claim>) -> Result<bool> {
    match claim {
        None => Ok(true),
        Some(claim) => holds(&answers.next()?, claim),
    }
}
