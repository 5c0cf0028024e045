//! The eras of an account's log-ins: each ends when all its sessions are ended, and with it whatever a log-in has led
//! to that isn't listed among them: the session of a browser, a code, a link in a letter.

use rand::random;
use serde::{Deserialize, Serialize};
use tideline::registration::Registration;
use tideline::{AccountId, Error, ErrorKind, Result};

use crate::keep::documents;

/// The name of the document that says which one it is; without one it is the first.
const ERA: &str = "era";

/// An era of an account's log-ins: another one after each end, whatever that was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Era(Option<u64>);

impl Era {
    /// The one that it is now; the first of an account that there is not.
    pub(crate) async fn of(registration: &Registration, account: AccountId) -> Result<Self> {
        match documents::get(registration, account, ERA).await {
            Ok(era) => Ok(Self(era)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(e) => Err(e),
        }
    }

    /// Whether it is still that one.
    pub(crate) async fn goes_on(&self, registration: &Registration, account: AccountId) -> Result<bool> {
        Ok(Self::of(registration, account).await? == *self)
    }

    /// One that has never been.
    pub(crate) fn draw() -> Self {
        Self(Some(random()))
    }

    /// Ends the era of an account.
    pub(crate) async fn end(registration: &Registration, account: AccountId) -> Result<()> {
        Self::change(registration, account, |_| Self::draw()).await
    }

    /// Ends the era of an account: if it is that one, with another that is known beforehand, so that whoever does it
    /// again ends nothing that has begun since.
    pub(crate) async fn end_with(
        registration: &Registration,
        account: AccountId,
        ends: &Self,
        begins: &Self,
    ) -> Result<()> {
        // Where others have ended it meanwhile it ends once more: nobody knows whether that was early enough.
        let next = |now: Self| if [ends, begins].contains(&&now) { begins.clone() } else { Self::draw() };
        Self::change(registration, account, next).await
    }

    async fn change(
        registration: &Registration,
        account: AccountId,
        next: impl Fn(Self) -> Self + Sync,
    ) -> Result<()> {
        documents::change(registration, account, ERA, |now: Option<u64>| Ok::<_, Error>(next(Self(now)).0))
            .await
            .map(|_| ())
    }
}
