//! The accounts that wait for approval: a list of logins, in so many tickets of which each has a bound.
//!
//! A login is listed before its account waits, and struck after it waits no more: nobody waits unseen, and no more wait
//! than there are places. What stands there for nobody (who listed it has died, or the account was deleted) goes when
//! its place is needed.

use ring::digest::{SHA256, digest};
use serde::Serialize;
use tideline::registration::{Name, Registration, TICKET_LASTS_MAX};
use tideline::{Account, AccountId, AccountState, CallFuture, Error, ErrorCode, Result};

use super::{AwaitedSteps, REASON};
use crate::http::Timestamp;
use crate::keep::tickets::{self, TicketList};

/// Tickets that the list lies in, by the logins' hashes.
const PARTS: u8 = 16;
/// Logins in each of them.
const PART_MAX: usize = 80;
/// Accounts that wait for approval at once, if their logins fall evenly.
pub const WAITING_MAX: usize = PARTS as usize * PART_MAX;
/// So long whoever has listed a login may take to sign up.
const SIGNS_UP_WITHIN_S: u64 = 600;

/// A login, and since when (seconds since 1970) it is listed.
type ListedLogin = (String, u64);

/// An account that waits for approval, for whoever runs the site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WaitingAccount {
    /// Its id.
    pub id: AccountId,
    /// Its login.
    pub login: String,
    /// Its e-mail address.
    pub email: Option<String>,
    /// Whether that is confirmed, if it has to be.
    pub is_confirmed: bool,
    /// What it says for itself.
    pub reason: String,
    /// When it signed up: milliseconds since 1970.
    pub since_ms: u64,
}

/// The name of the part of the list that a login stands on.
fn part_of(login: &str) -> String {
    let hash = digest(&SHA256, login.to_ascii_lowercase().as_bytes());
    part(hash.as_ref().first().copied().unwrap_or_default() % PARTS)
}

fn part(n: u8) -> String {
    format!("waiting accounts {n}")
}

fn list_of(name: &str) -> TicketList<'_> {
    TicketList { kind: tickets::kind('W'), name, lasts: TICKET_LASTS_MAX }
}

/// Lists a login whose account is about to wait.
pub(crate) async fn list(registration: &Registration, login: &str) -> Result<()> {
    let name = part_of(login);
    let part = list_of(&name);
    let now_s = Timestamp::now().0 / 1_000;
    let added = |listed: &mut Vec<ListedLogin>| {
        listed.retain(|(other, _)| !other.eq_ignore_ascii_case(login));
        if listed.len() >= PART_MAX {
            return Err(Error::new(ErrorCode::LimitReached, "so many wait to be let in that no more can"));
        }
        listed.push((login.to_owned(), now_s));
        Ok(())
    };
    match part.change(registration, added).await {
        Err(e) if e.code() == ErrorCode::LimitReached => {
            sweep(registration, part, now_s).await?;
            part.change(registration, added).await
        }
        listed => listed,
    }
}

/// Takes a login off the list.
pub(super) async fn strike(registration: &Registration, login: &str) -> Result<()> {
    let struck = |listed: &mut Vec<ListedLogin>| {
        listed.retain(|(other, _)| !other.eq_ignore_ascii_case(login));
        Ok(())
    };
    list_of(&part_of(login)).change(registration, struck).await
}

/// Takes off what stands there for nobody.
async fn sweep(registration: &Registration, part: TicketList<'_>, now_s: u64) -> Result<()> {
    let listed: Vec<ListedLogin> = part.read(registration).await?;
    let waiting = accounts(registration, &listed).await?.into_iter().filter_map(|account| account.login);
    let waiting: Vec<String> = waiting.collect();
    let needless = needless(listed, &waiting, now_s);
    part.change(registration, |listed: &mut Vec<ListedLogin>| {
        listed.retain(|one| !needless.contains(one));
        Ok(())
    })
    .await
}

/// Entries of a list that are for nobody who waits, or is about to.
fn needless(listed: Vec<ListedLogin>, waiting: &[String], now_s: u64) -> Vec<ListedLogin> {
    let waits = |login: &str| waiting.iter().any(|other| other.eq_ignore_ascii_case(login));
    let is_young = |since_s: u64| now_s.saturating_sub(since_s) < SIGNS_UP_WITHIN_S;
    listed.into_iter().filter(|(login, since_s)| !waits(login) && !is_young(*since_s)).collect()
}

/// The accounts with these logins that aren't in.
async fn accounts(registration: &Registration, listed: &[ListedLogin]) -> Result<Vec<Account>> {
    let names: Vec<Name> = listed.iter().map(|(login, _)| Name::Login(login.clone())).collect();
    let found = registration.find(&names).await?;
    Ok(found.into_iter().flatten().filter(|account| account.state == AccountState::Waiting).collect())
}

/// All accounts that wait for approval, who came first first.
pub fn waiting(registration: &Registration) -> CallFuture<'_, Vec<WaitingAccount>> {
    Box::pin(async move {
        let mut waiting = Vec::new();
        for n in 0..PARTS {
            let listed: Vec<ListedLogin> = list_of(&part(n)).read(registration).await?;
            for account in accounts(registration, &listed).await? {
                waiting.extend(of(registration, account).await?);
            }
        }
        waiting.sort_by_key(|account| (account.since_ms, account.id));
        Ok(waiting)
    })
}

async fn of(registration: &Registration, account: Account) -> Result<Option<WaitingAccount>> {
    let awaited = AwaitedSteps::of(registration, account.id).await?;
    let profile = registration.profile(account.id).await?;
    let said = |name: &str| profile.own_fields.iter().find(|(of, _)| of == name);
    if !awaited.approval {
        return Ok(None);
    }
    Ok(Some(WaitingAccount {
        id: account.id,
        email: registration.email(account.id).await?,
        is_confirmed: !awaited.confirmation,
        reason: said(REASON).map(|(_, reason)| reason.clone()).unwrap_or_default(),
        since_ms: account.registered_ms.unwrap_or_default(),
        login: account.login.unwrap_or_default(),
    }))
}

#[cfg(test)]
mod tests {
    use tideline::registration::{LOGIN_CHARS_MAX, TICKET_BYTES_MAX};

    use super::*;

    #[test]
    fn the_longest_part_fits_a_ticket_and_a_login_has_one_part_in_either_case() {
        let longest: Vec<ListedLogin> = vec![("n".repeat(LOGIN_CHARS_MAX), 9_999_999_999); PART_MAX];
        let json = serde_json::to_vec(&longest).unwrap();
        assert!(json.len() <= TICKET_BYTES_MAX, "{}", json.len());
        assert_eq!(part_of("Ada"), part_of("aDA"));
        assert_ne!(part_of("ada"), part_of("ben"));
    }

    #[test]
    fn what_stands_there_for_nobody_goes_unless_somebody_is_about_to_come() {
        let listed = |login: &str, since_s| (login.to_owned(), since_s);
        let all = vec![listed("ada", 0), listed("ben", 0), listed("eve", 500)];
        assert_eq!(needless(all, &["ADA".to_owned()], SIGNS_UP_WITHIN_S), [listed("ben", 0)]);
    }
}
