//! What somebody has written: checked as clients count it, with whom it mentions.

use tideline::AccountId;
use tideline::post::{Draft, Edit, MentionedName, Parsed};
use tideline::registration::Name;

use crate::app::App;
use crate::http::Refusal;
use crate::show;

/// Refuses a text that is too long, or empty where nothing else is said.
pub(super) fn check(app: &App, text: &str, warning: &str) -> Result<(), Refusal> {
    if text.trim().is_empty() && warning.trim().is_empty() {
        return Err(Refusal::validation("Text can't be blank"));
    }
    let (letters, most) = (show::letters(text) + show::letters(warning), app.settings.max_characters);
    if letters > most {
        return Err(Refusal::validation(format!("Text character limit of {most} exceeded")));
    }
    Ok(())
}

/// Who the names in a text are, in their order: of this site.
async fn accounts_of(app: &App, text: &str) -> tideline::Result<Vec<Option<AccountId>>> {
    let parsed = Parsed::of(text);
    let names: Vec<&MentionedName> = parsed.names().collect();
    let is_here = |name: &&MentionedName| name.host.as_deref().is_none_or(|host| app.site().is_host(host));
    let logins: Vec<Name> =
        names.iter().copied().filter(is_here).map(|name| Name::Login(name.name.clone())).collect();
    let mut found = app.registration.find(&logins).await?.into_iter();
    let of = |name: &&MentionedName| {
        if is_here(name) { found.next().flatten().map(|found| found.id) } else { None }
    };
    Ok(names.iter().map(of).collect())
}

/// A draft with this text.
pub(super) async fn draft(app: &App, text: &str) -> Result<Draft, Refusal> {
    let accounts = accounts_of(app, text).await?;
    Ok(Draft::parsed(text, async move |_| Ok(accounts)).await?)
}

/// An edit to this text.
pub(super) async fn edit(app: &App, text: &str) -> Result<Edit, Refusal> {
    let accounts = accounts_of(app, text).await?;
    Ok(Edit::parsed(text, async move |_| Ok(accounts)).await?)
}
