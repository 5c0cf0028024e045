//! The state that an account is in: suspending one, limiting it, and lifting that, by whoever looks after a site.

use tideline::registration::Registration;
use tideline::{Account, AccountState, AccountUpdate, CallFuture, Engine, Error};

use super::token::{EndedSessions, end_sessions};

/// Says that an account is active, limited or suspended from now on. Who is suspended is logged out everywhere: tells
/// how many sessions have ended, and why not all, once the rest is done. Done again it does what is left of that.
///
/// # Errors
///
/// [`Invalid`](tideline::ErrorKind::Invalid): it waits to be let in, which this would do; or it can't be in that state
/// by somebody's word.
pub fn set_state<'a>(
    engine: &'a Engine,
    registration: &'a Registration,
    account: &'a Account,
    state: AccountState,
) -> CallFuture<'a, EndedSessions> {
    Box::pin(async move {
        if matches!(account.state, AccountState::Waiting | AccountState::Unconfirmed) {
            let text = format!("account {} waits to be let in: approve or reject it", account.id);
            return Err(Error::invalid(text));
        }
        if !matches!(state, AccountState::Active | AccountState::Limited | AccountState::Suspended) {
            return Err(Error::invalid("state: active, limited or suspended"));
        }
        engine
            .update_account(account.id, &AccountUpdate { state: Some(state), ..AccountUpdate::default() })
            .await?;
        if state != AccountState::Suspended {
            return Ok(EndedSessions::default());
        }
        let ended = end_sessions(registration, account.id).await;
        Ok(ended.unwrap_or_else(|e| EndedSessions { because: Some(e), ..EndedSessions::default() }))
    })
}
