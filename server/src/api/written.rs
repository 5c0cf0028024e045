//! Texts that somebody has written: checked as clients count them, with whom they mention.

use tideline::post::{Draft, Edit, LANGUAGE_LEN_MAX, MentionedName, TextNames};
use tideline::registration::Name;
use tideline::{Account, AccountId};

use super::accounts::{is_shown_as, is_somebody, name_shown_as};
use super::groups::is_group;
use crate::app::App;
use crate::http::Refusal;
use crate::show;

/// Bytes that one letter has at most, about: what counts fewer letters than it has bytes is a URL, or letters with many
/// accents.
const LONGEST_LETTER: usize = 32;

/// A language as it is stored: what is none that can be is left out, as in Mastodon, and a long name is cut.
pub(super) fn language(named: &str) -> Option<String> {
    let mut name = named.trim().replace('_', "-");
    while name.len() > LANGUAGE_LEN_MAX {
        let (shorter, _) = name.rsplit_once('-')?;
        name.truncate(shorter.len());
    }
    let is_one = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    is_one.then_some(name)
}

/// Refuses a text that is too long, or empty where nothing else is said.
pub(super) fn check(app: &App, text: &str, warning: &str) -> Result<(), Refusal> {
    if text.trim().is_empty() && warning.trim().is_empty() {
        return Err(Refusal::validation("Text can't be blank"));
    }
    // Before it is looked through: a text may be as long as a body.
    let most = app.settings.max_characters;
    if text.len() + warning.len() > LONGEST_LETTER * most {
        return Err(Refusal::validation(format!("Text character limit of {most} exceeded")));
    }
    let letters = show::letters(text) + show::letters(warning);
    if letters > most {
        return Err(Refusal::validation(format!("Text character limit of {most} exceeded")));
    }
    Ok(())
}

/// The accounts of this site that the names in a text mean, in their order.
async fn accounts_of(app: &App, text: &str) -> tideline::Result<Vec<Option<Account>>> {
    let parsed = TextNames::of(text);
    let names: Vec<&MentionedName> = parsed.names().collect();
    let is_here = |name: &&MentionedName| name.host.as_deref().is_none_or(|host| app.site().is_host(host));
    let logins: Vec<Name> =
        names.iter().copied().filter(is_here).map(|name| name_shown_as(&name.name)).collect();
    let mut found = app.registration.find(&logins).await?.into_iter();
    let of = |name: &&MentionedName| {
        let account = if is_here(name) { found.next().flatten() } else { None };
        account.filter(|account| is_shown_as(account, &name.name) && is_somebody(account))
    };
    Ok(names.iter().map(of).collect())
}

/// A draft with this text, and the groups that it mentions.
pub(super) async fn draft(app: &App, text: &str) -> Result<(Draft, Vec<AccountId>), Refusal> {
    let accounts = accounts_of(app, text).await?;
    let groups = accounts.iter().flatten().filter(|account| is_group(account)).map(|account| account.id);
    let (groups, accounts) = (groups.collect(), ids(accounts));
    Ok((Draft::parsed(text, async move |_| Ok(accounts)).await?, groups))
}

fn ids(accounts: Vec<Option<Account>>) -> Vec<Option<AccountId>> {
    accounts.into_iter().map(|account| account.map(|account| account.id)).collect()
}

/// The text of a status and its warning: a warning of nothing is what the status says.
pub(super) fn with_warning<'t>(text: &'t str, warning: &'t str) -> (&'t str, &'t str) {
    if text.trim().is_empty() { (warning, "") } else { (text, warning) }
}

/// An edit to this text.
pub(super) async fn edit(app: &App, text: &str) -> Result<Edit, Refusal> {
    let accounts = ids(accounts_of(app, text).await?);
    Ok(Edit::parsed(text, async move |_| Ok(accounts)).await?)
}

#[cfg(test)]
mod tests {
    use super::language;

    #[test]
    fn a_language_is_stored_as_it_can_be() {
        for (named, stored) in [
            ("de", Some("de")),
            (" zh_TW ", Some("zh-TW")),
            ("zh-Hant-TW", Some("zh-Hant")),
            ("", None),
            ("deutschland", None),
            ("d\u{e4}", None),
        ] {
            assert_eq!(language(named).as_deref(), stored, "{named:?}");
        }
    }
}
