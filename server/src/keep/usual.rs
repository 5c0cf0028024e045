//! The usual form of an account's posts, and what else it alone is told of itself.

use serde::{Deserialize, Serialize};
use tideline::AccountId;
use tideline::post::Visibility;

use super::documents;
use crate::app::App;
use crate::http::Refusal;

const USUAL: &str = "usual";

/// The usual form of an account's post, where it doesn't say otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct UsualForm {
    /// `None`: public, or to followers of an account that is locked.
    pub(crate) visibility: Option<Visibility>,
    pub(crate) sensitive: bool,
    pub(crate) language: Option<String>,
}

/// The usual form of an account's posts.
pub(crate) async fn of(app: &App, account: AccountId) -> Result<UsualForm, Refusal> {
    Ok(documents::get(&app.registration, account, USUAL).await?.unwrap_or_default())
}

/// Changes it.
pub(crate) async fn change(
    app: &App,
    account: AccountId,
    new: impl Fn(UsualForm) -> UsualForm + Sync,
) -> Result<UsualForm, Refusal> {
    let changed = |usual: Option<UsualForm>| Ok::<_, Refusal>(Some(new(usual.unwrap_or_default())));
    Ok(documents::change(&app.registration, account, USUAL, changed).await?.unwrap_or_default())
}
