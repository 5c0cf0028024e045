//! Accounts, as people name them.

use anyhow::bail;
use clap::Args;
use tideline::registration::{Name, Registration};
use tideline::{Account, AccountId, AccountState, Engine};

use super::target::{Target, with_registration};

/// An account that somebody names.
#[derive(Debug, Args)]
pub(crate) struct NamedAccount {
    /// The account: its id, its login (`@42` is a login), or its e-mail address.
    #[arg(value_name = "ACCOUNT")]
    account: String,
}

/// An account that there is.
#[derive(Debug)]
pub(crate) struct FoundAccount {
    pub(crate) account: Account,
    /// What it is called in a sentence.
    pub(crate) described: String,
}

impl FoundAccount {
    pub(crate) fn id(&self) -> AccountId {
        self.account.id
    }
}

impl NamedAccount {
    pub(crate) async fn find(&self, registration: &Registration) -> anyhow::Result<FoundAccount> {
        let account = find(&self.account, registration).await?;
        let id = account.id;
        let described = match &account.login {
            Some(login) => format!("account {id}, @{login}"),
            None => format!("account {id}"),
        };
        Ok(FoundAccount { account, described })
    }
}

/// The account that somebody names so.
pub(crate) async fn find(text: &str, registration: &Registration) -> anyhow::Result<Account> {
    let found = registration.find(&[name(text)?]).await?.pop().flatten();
    let Some(account) = found.filter(|account| account.state != AccountState::Deleted) else {
        bail!("there is no account {text:?}: name its id, its login or its e-mail address");
    };
    Ok(account)
}

/// The id of the account that somebody names so. An id is taken as it is: its account may be gone.
pub(crate) async fn id_of(text: &str, target: &Target) -> anyhow::Result<AccountId> {
    if let Name::Id(id) = name(text)? {
        return Ok(id);
    }
    let found = async |_: &Engine, registration: &Registration| id_by(text, registration).await;
    with_registration(target, found).await
}

/// Finds an account for who looks accounts up already.
pub(crate) async fn id_by(text: &str, registration: &Registration) -> anyhow::Result<AccountId> {
    match name(text)? {
        Name::Id(id) => Ok(id),
        _ => Ok(find(text, registration).await?.id),
    }
}

fn name(text: &str) -> anyhow::Result<Name> {
    if let Some(login) = text.strip_prefix('@') {
        return Ok(Name::Login(login.into()));
    }
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(Name::Id(AccountId::new(text.parse()?)?));
    }
    Ok(if text.contains('@') { Name::Email(text.into()) } else { Name::Login(text.into()) })
}
