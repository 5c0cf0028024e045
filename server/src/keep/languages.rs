//! In which languages an account reads whom it follows: a document that pages of home go by. Whoever ends a follow
//! takes what was said of it off afterwards, so that the next one begins without.

use tideline::document::FOLLOW_LANGUAGES;
use tideline::{AccountId, WantedLanguages};

use crate::app::App;
use crate::http::Refusal;

/// The languages in which an account reads whom it follows, as it has said.
pub(crate) async fn of(app: &App, account: AccountId) -> tideline::Result<WantedLanguages> {
    let document = app.registration.document(account, FOLLOW_LANGUAGES).await?;
    Ok(document.and_then(|document| WantedLanguages::from_bytes(&document.bytes)).unwrap_or_default())
}

/// Has another one read in these languages only; of none in all.
pub(crate) async fn want(
    app: &App,
    account: AccountId,
    other: AccountId,
    languages: &[String],
) -> Result<(), Refusal> {
    app.registration.want_languages(account, other, languages).await?;
    Ok(())
}

/// Forgets what was said of somebody whom the account doesn't follow any more.
pub(crate) async fn forget(app: &App, account: AccountId, other: AccountId) -> Result<(), Refusal> {
    match of(app, account).await?.of(other) {
        Some(_) => want(app, account, other, &[]).await,
        None => Ok(()),
    }
}
