//! Accounts, as people name them.

use anyhow::bail;
use clap::Args;
use tideline::registration::{Name, Registration};
use tideline::{Account, AccountId, AccountState};

/// Which account.
#[derive(Debug, Args)]
pub(super) struct NamedAccount {
    /// The account: its id, its login (`@42` is a login), or its e-mail address.
    #[arg(value_name = "ACCOUNT")]
    account: String,
}

/// An account that there is.
#[derive(Debug)]
pub(super) struct FoundAccount {
    pub(super) account: Account,
    /// What it is called in a sentence.
    pub(super) described: String,
}

impl FoundAccount {
    pub(super) fn id(&self) -> AccountId {
        self.account.id
    }
}

impl NamedAccount {
    pub(super) async fn find(&self, registration: &Registration) -> anyhow::Result<FoundAccount> {
        let name = name(&self.account)?;
        let found = registration.find(&[name]).await?.pop().flatten();
        let Some(account) = found.filter(|account| account.state != AccountState::Deleted) else {
            bail!("there is no account {:?}: name its id, its login or its e-mail address", self.account);
        };
        let id = account.id;
        let described = match &account.login {
            Some(login) => format!("account {id}, @{login}"),
            None => format!("account {id}"),
        };
        Ok(FoundAccount { account, described })
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
