//! Accounts.

use serde::Serialize;

use super::Id;
use crate::http::{Day, Timestamp};

/// An account, as everybody gets it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Account {
    /// Its id.
    pub id: Id,
    /// Its login.
    pub username: String,
    /// Its login, with the site's name for one of another site: there are none.
    pub acct: String,
    /// The name that is shown; `""`: its login is.
    pub display_name: String,
    /// Whether it is asked before somebody follows it.
    pub locked: bool,
    /// Whether nobody sits behind it.
    pub bot: bool,
    /// Whether it may be suggested to others; `None`: nothing was said.
    pub discoverable: Option<bool>,
    /// Whether search engines may show its posts.
    pub indexable: bool,
    /// Whether it stands for many.
    pub group: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// What it says of itself, in HTML.
    pub note: String,
    /// Its page for people.
    pub url: String,
    /// Its name for machines.
    pub uri: String,
    /// Its picture.
    pub avatar: String,
    /// Its picture, standing still.
    pub avatar_static: String,
    /// What the picture shows, in words.
    pub avatar_description: String,
    /// The picture above its page.
    pub header: String,
    /// The same, standing still.
    pub header_static: String,
    /// What that shows, in words.
    pub header_description: String,
    /// How many follow it.
    pub followers_count: u64,
    /// How many it follows.
    pub following_count: u64,
    /// How many posts it has.
    pub statuses_count: u64,
    /// The day of its newest post.
    pub last_status_at: Option<Day>,
    /// Whether nobody is shown whom it follows and who follows it.
    pub hide_collections: Option<bool>,
    /// Whether search engines are asked to stay away.
    pub noindex: bool,
    /// Pictures in its texts.
    pub emojis: Vec<CustomEmoji>,
    /// What roles everybody sees.
    pub roles: Vec<Role>,
    /// Facts about it that it has put into a table.
    pub fields: Vec<AccountField>,
    /// The account to which it has moved.
    pub moved: Option<Box<Account>>,
    /// Whether it is suspended. Sent only if it is so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// Whether it is limited. Sent only if it is so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub limited: bool,
}

/// An account that somebody mutes, as that one gets it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MutedAccount {
    /// The account.
    #[serde(flatten)]
    pub account: Account,
    /// When that ends; `None`: when it is ended.
    pub mute_expires_at: Option<Timestamp>,
}

/// A fact about an account: a row of its table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountField {
    /// What it is about.
    pub name: String,
    /// What it is: HTML; in [`AccountSource`] the text as it was written.
    pub value: String,
    /// Since when it is known to be true.
    pub verified_at: Option<Timestamp>,
}

/// A picture that stands for a word between colons: there are none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CustomEmoji {
    /// The word.
    pub shortcode: String,
    /// The picture.
    pub url: String,
    /// The same, standing still.
    pub static_url: String,
    /// Whether it is offered.
    pub visible_in_picker: bool,
}

/// A role: rights of an account beside what all may.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Role {
    /// Its id.
    pub id: Id,
    /// Its name; `""`: everybody has it.
    pub name: String,
    /// What it allows: a number in decimal.
    pub permissions: String,
    /// Its colour; `""`: none.
    pub color: String,
    /// Whether it is shown to others.
    pub highlighted: bool,
}

/// An account as its owner gets it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CredentialAccount {
    /// What all get.
    #[serde(flatten)]
    pub account: Account,
    /// What nobody else gets.
    pub source: AccountSource,
    /// What it may do.
    pub role: Role,
}

/// The source of an account: what it has said of itself, as it was written, and how it posts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountSource {
    /// The visibility of its posts, if it doesn't say another one.
    pub privacy: String,
    /// Whether its pictures are hidden at first.
    pub sensitive: bool,
    /// The language of its posts; `""` or `None`: not known.
    pub language: Option<String>,
    /// What it says of itself: the text.
    pub note: String,
    /// Its table: the texts.
    pub fields: Vec<AccountField>,
    /// How many wait for its answer.
    pub follow_requests_count: u64,
    /// As in [`Account`].
    pub hide_collections: Option<bool>,
    /// As in [`Account`].
    pub discoverable: Option<bool>,
    /// As in [`Account`].
    pub indexable: bool,
    /// Sites that may name it as an author.
    pub attribution_domains: Vec<String>,
    /// Who may quote its posts, if they don't say otherwise: `public`, `followers`, `nobody`.
    pub quote_policy: String,
}
