//! Logging in with a name and a password.

use tideline::registration::Name;
use tideline::{Account, AccountId, AccountState};

use super::era::Era;
use crate::app::App;
use crate::http::Refusal;
use crate::limits::log_in_as;

/// Somebody who has just shown that an account is its own.
#[derive(Debug, Clone)]
pub(crate) struct LogIn {
    pub(crate) account: Account,
    /// From before its password was looked at: one that is changed meanwhile ends what comes of this.
    pub(crate) era: Era,
}

impl LogIn {
    /// Finds whoever has that name, if the password is right. That there is nobody takes as many trips, and as long, to
    /// find out. `from`: the address that tries count for, if limits hold there. What is one too many for the account,
    /// by whichever of its names, is told as a wrong password: otherwise who tries two names would learn that they are
    /// one account's.
    pub(crate) async fn with_password(
        app: &App,
        name: &str,
        password: &str,
        from: Option<&str>,
    ) -> Result<Option<Self>, Refusal> {
        let by = if name.contains('@') { Name::Email(name.into()) } else { Name::Login(name.into()) };
        let found = app.registration.find(&[by]).await?.pop().flatten().map(|account| account.id);
        // Somebody is asked for in any case.
        let asked = found.map_or_else(|| AccountId::new(1), Ok)?;
        if found.is_none() {
            app.registration.find(&[Name::Id(asked)]).await?;
        }
        let is_counted = match from {
            Some(from) => {
                let acts = log_in_as(&app.settings.limits, from, found.map(AccountId::get), name);
                app.limits.take(&acts).await.is_ok()
            }
            None => true,
        };
        let era = Era::of(&app.registration, asked).await?;
        let account = app.registration.check(name, password).await?;
        let account = account.filter(|account| is_counted && may_log_in(account));
        Ok(account.map(|account| Self { account, era }))
    }
}

/// Whether an account may do anything here, be it only to wait until it is let in.
fn may_log_in(account: &Account) -> bool {
    is_in(account) || account.state == AccountState::Waiting
}

/// Whether an account was let in, and not thrown out since.
pub(crate) fn is_in(account: &Account) -> bool {
    matches!(account.state, AccountState::Active | AccountState::Limited)
}
