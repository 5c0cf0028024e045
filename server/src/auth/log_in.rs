//! Logging in with a name and a password.

use tideline::registration::Name;
use tideline::{Account, AccountId, AccountState};

use super::era::Era;
use crate::app::App;
use crate::http::Refusal;

/// Somebody who has just shown that an account is its own.
#[derive(Debug, Clone)]
pub(crate) struct LogIn {
    pub(crate) account: Account,
    /// From before its password was looked at: one that is changed meanwhile ends what comes of this.
    pub(crate) era: Era,
}

impl LogIn {
    /// Whoever has that name, if the password is right. That there is nobody takes as long, and as much, to find out.
    pub(crate) async fn with_password(
        app: &App,
        name: &str,
        password: &str,
    ) -> Result<Option<Self>, Refusal> {
        let by = if name.contains('@') { Name::Email(name.into()) } else { Name::Login(name.into()) };
        let found = app.registration.find(&[by]).await?.pop().flatten();
        // Somebody's is asked for in any case.
        let asked = found.map_or_else(|| AccountId::new(1), |account| Ok(account.id))?;
        let era = Era::of(&app.registration, asked).await?;
        let account = app.registration.check(name, password).await?.filter(may_log_in);
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
