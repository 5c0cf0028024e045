//! The site's description of itself, in the two forms that clients ask for.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Account, Id};

/// The site: `/api/v2/instance`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Instance {
    /// Its name in the net, with a port that isn't the usual one.
    pub domain: String,
    /// What it is called.
    pub title: String,
    /// The version of Mastodon whose calls it knows, and its own.
    pub version: String,
    /// Where the program comes from.
    pub source_url: String,
    /// What it says of itself.
    pub description: String,
    /// How much it is used.
    pub usage: InstanceUsage,
    /// Its picture.
    pub thumbnail: InstanceThumbnail,
    /// Its picture in several sizes.
    pub icon: Vec<InstanceIcon>,
    /// Languages that are spoken there.
    pub languages: Vec<String>,
    /// Its limits.
    pub configuration: InstanceConfiguration,
    /// Who may come.
    pub registrations: InstanceRegistrations,
    /// Versions of what clients may ask for.
    pub api_versions: ApiVersions,
    /// The contact to whom one writes.
    pub contact: InstanceContact,
    /// What holds there.
    pub rules: Vec<InstanceRule>,
}

/// Versions of what clients may ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ApiVersions {
    /// Mastodon's.
    pub mastodon: u32,
}

/// Numbers of how much a site is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InstanceUsage {
    /// By whom.
    pub users: InstanceUsers,
}

/// By how many a site is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InstanceUsers {
    /// How many were there within four weeks.
    pub active_month: u64,
}

/// A site's picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InstanceThumbnail {
    /// Where it is; `""`: nowhere.
    pub url: String,
    /// What stands there while it is loaded.
    pub blurhash: Option<String>,
    /// Where other sizes are.
    pub versions: BTreeMap<String, String>,
    /// What it shows, in words.
    pub description: String,
}

/// A site's picture in one size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InstanceIcon {
    /// Where it is.
    pub src: String,
    /// `36x36`.
    pub size: String,
}

/// A site's limits.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InstanceConfiguration {
    /// Other addresses.
    pub urls: InstanceUrls,
    /// The key for pushed messages.
    pub vapid: InstanceVapid,
    /// Limits of accounts.
    pub accounts: InstanceAccounts,
    /// Limits of statuses.
    pub statuses: InstanceStatuses,
    /// Limits of pictures, films and sounds.
    pub media_attachments: InstanceMedia,
    /// Limits of questions.
    pub polls: InstancePolls,
    /// Whether texts are translated.
    pub translation: InstanceTranslation,
    /// Whether only some posts may be read without an account.
    pub limited_federation: bool,
}

/// Other addresses of a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InstanceUrls {
    /// Where streams are: `wss://...`.
    pub streaming: String,
    /// What happens there.
    pub status: Option<String>,
    /// Who runs it.
    pub about: Option<String>,
    /// What becomes of data.
    pub privacy_policy: Option<String>,
    /// What holds there.
    pub terms_of_service: Option<String>,
}

/// The key for pushed messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InstanceVapid {
    /// The public one; `""`: there is none.
    pub public_key: String,
}

/// Limits of accounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InstanceAccounts {
    /// Letters of the name that is shown.
    pub max_display_name_length: usize,
    /// Letters of what one says of oneself.
    pub max_note_length: usize,
    /// Letters of the pictures' descriptions.
    pub max_avatar_description_length: usize,
    /// The same for the picture above the page.
    pub max_header_description_length: usize,
    /// Hashtags on one's page.
    pub max_featured_tags: usize,
    /// Statuses above the others.
    pub max_pinned_statuses: usize,
    /// Rows of one's table.
    pub max_profile_fields: usize,
    /// Letters of what a row is about.
    pub profile_field_name_limit: usize,
    /// Letters of what it is.
    pub profile_field_value_limit: usize,
}

/// Limits of statuses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InstanceStatuses {
    /// Letters, the warning included.
    pub max_characters: usize,
    /// Pictures, films and sounds.
    pub max_media_attachments: usize,
    /// Letters that a URL counts.
    pub characters_reserved_per_url: usize,
}

/// Limits of pictures, films and sounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InstanceMedia {
    /// Kinds of files that are taken.
    pub supported_mime_types: Vec<String>,
    /// Letters of a description.
    pub description_limit: usize,
    /// Bytes of a picture.
    pub image_size_limit: u64,
    /// Points of a picture.
    pub image_matrix_limit: u64,
    /// Bytes of a film.
    pub video_size_limit: u64,
    /// Pictures of a film, in a second.
    pub video_frame_rate_limit: u64,
    /// Points of a film's picture.
    pub video_matrix_limit: u64,
}

/// Limits of questions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InstancePolls {
    /// Answers.
    pub max_options: usize,
    /// Letters of an answer.
    pub max_characters_per_option: usize,
    /// Seconds, at least.
    pub min_expiration: u64,
    /// Seconds, at most.
    pub max_expiration: u64,
}

/// Whether a site translates texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InstanceTranslation {
    /// Whether it does.
    pub enabled: bool,
}

/// The terms on which people come to a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InstanceRegistrations {
    /// Whether anybody may.
    pub enabled: bool,
    /// Whether somebody has to say yes.
    pub approval_required: bool,
    /// Whether one has to say why.
    pub reason_required: Option<bool>,
    /// Why nobody may, in HTML.
    pub message: Option<String>,
    /// How old one has to be.
    pub min_age: Option<u32>,
    /// Where one may come in another way.
    pub url: Option<String>,
}

/// The contact to whom one writes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InstanceContact {
    /// An address; `""`: none.
    pub email: String,
    /// An account.
    pub account: Option<Account>,
}

/// Something that holds at a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InstanceRule {
    /// Its number.
    pub id: Id,
    /// What it says.
    pub text: String,
    /// What that means.
    pub hint: String,
    /// The same in other languages.
    pub translations: BTreeMap<String, BTreeMap<String, String>>,
}

/// The site in its older form: `/api/v1/instance`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InstanceV1 {
    /// Its name in the net, with a port that isn't the usual one.
    pub uri: String,
    /// What it is called.
    pub title: String,
    /// What it says of itself, in short.
    pub short_description: String,
    /// What it says of itself.
    pub description: String,
    /// The contact to whom one writes.
    pub email: String,
    /// As in [`Instance`].
    pub version: String,
    /// Other addresses.
    pub urls: InstanceV1Urls,
    /// How much there is.
    pub stats: InstanceV1Stats,
    /// Its picture.
    pub thumbnail: Option<String>,
    /// Languages that are spoken there.
    pub languages: Vec<String>,
    /// Whether anybody may come.
    pub registrations: bool,
    /// Whether somebody has to say yes.
    pub approval_required: bool,
    /// Whether who is there may invite others.
    pub invites_enabled: bool,
    /// Its limits.
    pub configuration: InstanceV1Configuration,
    /// The contact to whom one writes.
    pub contact_account: Option<Account>,
    /// What holds there.
    pub rules: Vec<InstanceRule>,
}

/// Other addresses of a site, in the older form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InstanceV1Urls {
    /// Where streams are: `wss://...`.
    pub streaming_api: String,
}

/// Numbers of what there is at a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InstanceV1Stats {
    /// Accounts.
    pub user_count: u64,
    /// Statuses.
    pub status_count: u64,
    /// Other sites that it knows.
    pub domain_count: u64,
}

/// A site's limits in the older form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InstanceV1Configuration {
    /// Limits of accounts.
    pub accounts: InstanceAccounts,
    /// Limits of statuses.
    pub statuses: InstanceStatuses,
    /// Limits of pictures, films and sounds.
    pub media_attachments: InstanceMedia,
    /// Limits of questions.
    pub polls: InstancePolls,
}

/// A description of the site's OAuth: `/.well-known/oauth-authorization-server`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OAuthMetadata {
    /// The site, with a slash behind it.
    pub issuer: String,
    /// A page that says more.
    pub service_documentation: String,
    /// Where people log in.
    pub authorization_endpoint: String,
    /// Where tokens are given out.
    pub token_endpoint: String,
    /// Where applications are made.
    pub app_registration_endpoint: String,
    /// Where tokens are taken back.
    pub revocation_endpoint: String,
    /// Where one is told who one is.
    pub userinfo_endpoint: String,
    /// What a token may allow.
    pub scopes_supported: Vec<String>,
    /// `code`.
    pub response_types_supported: Vec<String>,
    /// How the code comes back.
    pub response_modes_supported: Vec<String>,
    /// How one may get a token.
    pub grant_types_supported: Vec<String>,
    /// How an application may say its secret.
    pub token_endpoint_auth_methods_supported: Vec<String>,
    /// How a code is bound to who asked for it.
    pub code_challenge_methods_supported: Vec<String>,
}
