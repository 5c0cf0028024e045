//! The task of an account whose names may have changed.

use std::sync::Arc;

use super::LISTED_MAX;
use super::find::read_score;
use super::letters::{AccountWords, Beginning};
use super::list::{list_at, put_on, rank, rank_in};
use crate::account::Account;
use crate::cluster::{Command, Request, TouchedServers};
use crate::error::Result;
use crate::fields::CredentialField;
use crate::ids::AccountId;
use crate::journal::{ArgumentReader, Arguments, Job, Matter, Run, RunOutcome};
use crate::tenant::{Answers, Tenant};

/// An account may not be on the lists of how its names begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NameTask {
    pub(crate) account: AccountId,
}

impl Job for NameTask {
    type Service = Tenant;

    const LETTER: u8 = b'N';
    const LABEL: &'static str = "name";

    fn arguments(&self) -> Arguments {
        Arguments::default().account(self.account)
    }

    fn read(arguments: &mut ArgumentReader<'_>) -> Option<Self> {
        Some(Self { account: arguments.account()? })
    }

    fn actor(&self) -> AccountId {
        self.account
    }

    fn matters(&self) -> Vec<Matter> {
        vec![Matter::Names(self.account)]
    }

    fn describe(&self) -> String {
        format!("have account {} found by how its names begin", self.account)
    }

    async fn run(self, tenant: &Arc<Tenant>, run: &mut Run<'_>) -> Result<RunOutcome> {
        list(tenant, self.account, &mut run.touched).await?;
        Ok(RunOutcome::Done)
    }
}

/// Puts an account on the lists of its names. Those that it had before it leaves to whoever reads them.
async fn list(tenant: &Tenant, account: AccountId, touched: &mut TouchedServers) -> Result<()> {
    // Whoever is gone by now needs no list; what is put there nevertheless shows nowhere.
    let Some((account, words)) = named(tenant, account, touched).await? else { return Ok(()) };
    let mut beginnings = words.beginnings();
    // H262: a change that failed half-way is brought to its end by whoever comes by, and nobody looks after that.
    beginnings.extend(login_to_come(tenant, account.id, touched).await?.beginnings());
    put_on(tenant, beginnings, &account.id.to_bytes(), account.followers, touched).await
}

/// The login that an account is about to show.
async fn login_to_come(
    tenant: &Tenant,
    account: AccountId,
    touched: &mut TouchedServers,
) -> Result<AccountWords> {
    let field =
        Command::new("HGET").arg(&tenant.keys().credentials(account)).arg(CredentialField::LOGIN_TO_SHOW);
    let answer = tenant.router().ask(Request::read(tenant.slot(account), field)).await?;
    touched.add(&answer);
    let login = answer.ok()?;
    Ok(AccountWords::new(if login.is_nil() { "" } else { login.text()? }, ""))
}

/// An account that is there, and how it is called.
async fn named(
    tenant: &Tenant,
    id: AccountId,
    touched: &mut TouchedServers,
) -> Result<Option<(Account, AccountWords)>> {
    let asked = [tenant.account_request(id), tenant.profile_request(id)];
    let mut answers = Answers::of(tenant, asked.into_iter().collect()).await?;
    let record = answers.answer()?;
    touched.add(&record);
    let account = Account::parse(id, record.ok()?)?.filter(Account::is_there);
    let profile = answers.next()?;
    Ok(account.map(|account| {
        let account = account.with_profile(&profile);
        let words = words_of(&account);
        (account, words)
    }))
}

/// The words by which an account that was read with its profile is called.
pub(crate) fn words_of(account: &Account) -> AccountWords {
    let display_name = account.profile.as_ref().map_or("", |profile| profile.display_name.as_str());
    AccountWords::new(account.login.as_deref().unwrap_or_default(), display_name)
}

/// The standing of a list to an account that should be on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameStanding {
    /// With that rank.
    On(u64),
    /// Not, though there is room, or somebody with a lower rank.
    Missing,
    /// Not: all who are have as many followers, or more.
    Crowded,
}

/// Looks for an account on the lists of its names' longest beginnings.
async fn places(
    tenant: &Tenant,
    account: &Account,
    words: &AccountWords,
) -> Result<Vec<(Beginning, NameStanding)>> {
    let longest = words.longest();
    let asked = longest.iter().flat_map(|beginning| {
        let (key, slot) = list_at(tenant, beginning);
        let commands = [
            Command::new("ZSCORE").arg(&key).arg(&account.id.to_bytes()),
            Command::new("ZCARD").arg(&key),
            Command::new("ZRANGE").arg(&key).arg("0").arg("0").arg("WITHSCORES"),
        ];
        commands.map(|command| Request::read(slot, command))
    });
    let mut answers = Answers::of(tenant, asked.collect()).await?;
    let mut places = Vec::with_capacity(longest.len());
    for beginning in longest {
        let (own, many, lowest) = (answers.next()?, answers.next()?.count()?, answers.next()?.into_array()?);
        let place = match lowest.as_slice() {
            _ if !own.is_nil() => NameStanding::On(rank_in(read_score(own.text()?)?)),
            [_, lowest] if many >= LISTED_MAX as u64 => {
                let is_outdone = rank_in(read_score(lowest.text()?)?) >= rank(account.followers);
                if is_outdone { NameStanding::Crowded } else { NameStanding::Missing }
            }
            _ => NameStanding::Missing,
        };
        places.push((beginning, place));
    }
    Ok(places)
}

/// On which lists an account is missing that should be there. For fsck.
pub(crate) async fn missing_from(tenant: &Tenant, account: AccountId) -> Result<Vec<Beginning>> {
    let Some((account, words)) = named(tenant, account, &mut TouchedServers::new()).await? else {
        return Ok(Vec::new());
    };
    let places = places(tenant, &account, &words).await?;
    Ok(places.into_iter().filter_map(|(at, place)| (place == NameStanding::Missing).then_some(at)).collect())
}

/// Puts an account on its lists again if it has outgrown the rank that it has there.
pub(super) async fn rank_anew(tenant: &Tenant, account: AccountId) -> Result<()> {
    let touched = &mut TouchedServers::new();
    let Some((account, words)) = named(tenant, account, touched).await? else { return Ok(()) };
    let places = places(tenant, &account, &words).await?;
    let has_outgrown = |place: &NameStanding| match place {
        NameStanding::On(before) => *before != rank(account.followers),
        NameStanding::Missing => true,
        NameStanding::Crowded => false,
    };
    if places.iter().any(|(_, place)| has_outgrown(place)) {
        put_on(tenant, words.beginnings(), &account.id.to_bytes(), account.followers, touched).await?;
    }
    Ok(())
}
