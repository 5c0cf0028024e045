//! Accounts as clients get them. Pure.

use tideline::{AccountState, Profile};

use super::html::{field_html, html};
use super::site::{Site, login};
use crate::entity::{Account, AccountField, AccountSource, CredentialAccount, Id, Role};
use crate::http::Timestamp;

/// Names of what an account says of itself by yes or no: the names of these among the fields of its profile that
/// everybody gets, which are those of the API too.
pub const FLAGS: [&str; 4] = [BOT, DISCOVERABLE, INDEXABLE, HIDES_COLLECTIONS];
const BOT: &str = "bot";
const DISCOVERABLE: &str = "discoverable";
const INDEXABLE: &str = "indexable";
const HIDES_COLLECTIONS: &str = "hide_collections";

/// Tells what a profile says by yes or no; `None`: nothing.
fn says(profile: &Profile, name: &str) -> Option<bool> {
    profile.shown_fields.iter().find(|(of, _)| of == name).map(|(_, value)| value == "1")
}

/// Whether nobody else is shown whom an account follows, and who follows it.
pub fn hides_collections(account: &tideline::Account) -> bool {
    account.profile.as_deref().and_then(|profile| says(profile, HIDES_COLLECTIONS)).unwrap_or_default()
}

/// Makes an account as everybody gets it.
pub fn account(site: Site<'_>, account: &tideline::Account) -> Account {
    let login = login(account);
    let empty = Profile::default();
    // Of one that is suspended nobody is shown what it says of itself.
    let profile = account.profile.as_deref().filter(|_| account.state != AccountState::Suspended);
    let profile = profile.unwrap_or(&empty);
    let [avatar, header] = [(&profile.avatar, "avatars"), (&profile.header, "headers")]
        .map(|(url, kind)| site.picture(url, kind));
    let field = |(name, value): &(String, String)| AccountField {
        name: name.clone(),
        value: field_html(value, site.url),
        verified_at: None,
    };
    Account {
        id: Id::from(account.id),
        username: login.clone(),
        acct: login.clone(),
        display_name: profile.display_name.clone(),
        locked: account.is_locked,
        bot: says(profile, BOT).unwrap_or_default(),
        discoverable: says(profile, DISCOVERABLE),
        indexable: is_indexable(profile),
        group: account.kind.is_group(),
        created_at: Timestamp(account.registered_ms.unwrap_or_default()),
        note: html(&profile.bio, site.url, |_| None),
        url: site.account(account),
        uri: site.at(&format!("/users/{login}")),
        avatar_static: avatar.clone(),
        avatar,
        avatar_description: String::new(),
        header_static: header.clone(),
        header,
        header_description: String::new(),
        followers_count: account.followers,
        following_count: account.following,
        statuses_count: account.posts,
        last_status_at: None,
        hide_collections: says(profile, HIDES_COLLECTIONS),
        noindex: !is_indexable(profile),
        emojis: Vec::new(),
        roles: Vec::new(),
        fields: profile.fields.iter().map(field).collect(),
        moved: None,
        suspended: account.state == AccountState::Suspended,
        limited: account.state == AccountState::Limited,
    }
}

/// Whether others find an account's statuses by their words, and search engines its pages: unless it has said no.
pub(crate) fn is_indexable(profile: &Profile) -> bool {
    says(profile, INDEXABLE) != Some(false)
}

/// The usual settings of an account's posts, as its owner is told.
#[derive(Debug, Clone)]
pub struct UsualPost {
    /// The visibility, by the name that clients have for it.
    pub privacy: String,
    /// Whether pictures are hidden at first.
    pub sensitive: bool,
    /// The language.
    pub language: Option<String>,
}

/// Makes an account as its owner gets it; so many wait for its answer.
pub fn credentials(
    site: Site<'_>,
    of: &tideline::Account,
    usual: UsualPost,
    follow_requests_count: u64,
) -> CredentialAccount {
    let profile = of.profile.as_deref().cloned().unwrap_or_default();
    let [discoverable, hide_collections] = [DISCOVERABLE, HIDES_COLLECTIONS].map(|name| says(&profile, name));
    let indexable = is_indexable(&profile);
    let fields = profile.fields.into_iter();
    let source = AccountSource {
        privacy: usual.privacy,
        sensitive: usual.sensitive,
        language: usual.language,
        note: profile.bio,
        fields: fields.map(|(name, value)| AccountField { name, value, verified_at: None }).collect(),
        follow_requests_count,
        hide_collections,
        discoverable,
        indexable,
        attribution_domains: Vec::new(),
        quote_policy: "public".into(),
    };
    let role = Role {
        id: Id(0),
        name: String::new(),
        permissions: "0".into(),
        color: String::new(),
        highlighted: false,
    };
    CredentialAccount { account: account(site, of), source, role }
}
