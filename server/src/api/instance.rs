//! The site's description of itself.

use std::collections::BTreeMap;

use axum::extract::State;
use tideline::profile::{BIO_CHARS_MAX, DISPLAY_NAME_CHARS_MAX, PROFILE_FIELD_CHARS_MAX};

use super::accounts;
use super::credentials::FIELDS_MAX;
use crate::app::{App, Shared};
use crate::auth::caller::Caller;
use crate::config::Registrations;
use crate::entity::{
    Account, ApiVersions, Empty, Id, Instance, InstanceAccounts, InstanceConfiguration, InstanceContact,
    InstanceMedia, InstancePolls, InstanceRegistrations, InstanceRule, InstanceStatuses, InstanceThumbnail,
    InstanceTranslation, InstanceUrls, InstanceUsage, InstanceUsers, InstanceV1, InstanceV1Configuration,
    InstanceV1Stats, InstanceV1Urls, InstanceVapid, NodeInfo, NodeInfoMetadata, NodeInfoPlace,
    NodeInfoPlaces, NodeInfoServices, NodeInfoSoftware, NodeInfoUpstream, NodeInfoUsage,
};
use crate::http::{Json, Refusal};
use crate::keep::pins::PINS_MAX;
use crate::show;

/// Clients switch on what a Mastodon of this version has.
const VERSION: &str = concat!("4.2.0 (compatible; Tideline ", env!("CARGO_PKG_VERSION"), ")");
const SOURCE: &str = env!("CARGO_PKG_REPOSITORY");

fn of_accounts() -> InstanceAccounts {
    InstanceAccounts {
        max_display_name_length: DISPLAY_NAME_CHARS_MAX,
        max_note_length: BIO_CHARS_MAX,
        max_avatar_description_length: 0,
        max_header_description_length: 0,
        max_featured_tags: 0,
        max_pinned_statuses: PINS_MAX,
        max_profile_fields: FIELDS_MAX,
        profile_field_name_limit: PROFILE_FIELD_CHARS_MAX,
        profile_field_value_limit: PROFILE_FIELD_CHARS_MAX,
    }
}

fn of_statuses(app: &App) -> InstanceStatuses {
    InstanceStatuses {
        max_characters: app.settings.max_characters,
        max_media_attachments: 0,
        characters_reserved_per_url: show::URL_LETTERS,
    }
}

/// Nothing can be attached yet.
fn of_media() -> InstanceMedia {
    InstanceMedia {
        supported_mime_types: Vec::new(),
        description_limit: 0,
        image_size_limit: 0,
        image_matrix_limit: 0,
        video_size_limit: 0,
        video_frame_rate_limit: 0,
        video_matrix_limit: 0,
    }
}

/// Nothing can be asked yet.
fn of_polls() -> InstancePolls {
    InstancePolls { max_options: 0, max_characters_per_option: 0, min_expiration: 0, max_expiration: 0 }
}

fn rules_of(app: &App) -> Vec<InstanceRule> {
    let rule = |(n, text): (u64, &String)| InstanceRule {
        id: Id(n),
        text: text.clone(),
        hint: String::new(),
        translations: BTreeMap::new(),
    };
    (1..).zip(&app.settings.rules).map(rule).collect()
}

async fn contact(app: &App) -> Result<Option<Account>, Refusal> {
    let name = &app.settings.contact_account;
    let account = if name.is_empty() { None } else { accounts::named(app, name).await? };
    Ok(account.map(|account| show::account::account(app.site(), &account)))
}

/// Whether somebody may sign up whom nobody has invited.
fn takes_strangers(app: &App) -> bool {
    matches!(app.settings.registrations, Registrations::Open | Registrations::Approval)
}

fn streaming(app: &App) -> String {
    app.settings.public_url.replacen("http", "ws", 1)
}

/// `GET /api/v1/instance`
pub(super) async fn v1(State(app): State<Shared>) -> Result<Json<InstanceV1>, Refusal> {
    let settings = &app.settings;
    Ok(Json(InstanceV1 {
        uri: settings.domain().to_owned(),
        title: settings.title.clone(),
        short_description: settings.description.clone(),
        description: settings.description.clone(),
        email: settings.contact_email.clone(),
        version: VERSION.into(),
        urls: InstanceV1Urls { streaming_api: streaming(&app) },
        stats: InstanceV1Stats { user_count: 0, status_count: 0, domain_count: 0 },
        thumbnail: None,
        languages: settings.languages.clone(),
        registrations: takes_strangers(&app),
        approval_required: settings.registrations == Registrations::Approval,
        invites_enabled: settings.registrations == Registrations::Invitation,
        configuration: InstanceV1Configuration {
            accounts: of_accounts(),
            statuses: of_statuses(&app),
            media_attachments: of_media(),
            polls: of_polls(),
        },
        contact_account: contact(&app).await?,
        rules: rules_of(&app),
    }))
}

/// `GET /api/v2/instance`
pub(super) async fn v2(State(app): State<Shared>) -> Result<Json<Instance>, Refusal> {
    let settings = &app.settings;
    let urls = InstanceUrls {
        streaming: streaming(&app),
        status: None,
        about: None,
        privacy_policy: None,
        terms_of_service: None,
    };
    let thumbnail = InstanceThumbnail {
        url: app.site().at("/thumbnail.png"),
        blurhash: None,
        versions: BTreeMap::new(),
        description: String::new(),
    };
    Ok(Json(Instance {
        domain: settings.domain().to_owned(),
        title: settings.title.clone(),
        version: VERSION.into(),
        source_url: SOURCE.into(),
        description: settings.description.clone(),
        usage: InstanceUsage { users: InstanceUsers { active_month: 0 } },
        thumbnail,
        icon: Vec::new(),
        languages: settings.languages.clone(),
        configuration: InstanceConfiguration {
            urls,
            vapid: InstanceVapid { public_key: String::new() },
            accounts: of_accounts(),
            statuses: of_statuses(&app),
            media_attachments: of_media(),
            polls: of_polls(),
            translation: InstanceTranslation { enabled: false },
            limited_federation: true,
        },
        registrations: InstanceRegistrations {
            enabled: takes_strangers(&app),
            approval_required: settings.registrations == Registrations::Approval,
            reason_required: None,
            message: (settings.registrations == Registrations::Invitation)
                .then(|| "Sign-ups are by invitation".into()),
            min_age: None,
            url: None,
        },
        api_versions: ApiVersions { mastodon: 1 },
        contact: InstanceContact { email: settings.contact_email.clone(), account: contact(&app).await? },
        rules: rules_of(&app),
    }))
}

/// `GET /api/v1/instance/rules`
pub(super) async fn rules(State(app): State<Shared>) -> Json<Vec<InstanceRule>> {
    Json(rules_of(&app))
}

/// An empty list of what there is none of here, and clients ask for all the same: other sites, pictures for words,
/// announcements.
pub(super) async fn nothing() -> Json<[(); 0]> {
    Json([])
}

/// Tells that there is nothing of somebody's own: other sites that one blocks.
pub(super) async fn nothing_of_ones_own(who: Caller) -> Result<Json<[(); 0]>, Refusal> {
    who.user("read:blocks")?;
    Ok(Json([]))
}

/// `GET /api/v1/instance/translation_languages`
pub(super) async fn no_languages() -> Json<Empty> {
    Json(Empty {})
}

/// `GET /.well-known/nodeinfo`
pub(super) async fn node_info_place(State(app): State<Shared>) -> Json<NodeInfoPlaces> {
    let rel = "http://nodeinfo.diaspora.software/ns/schema/2.0";
    Json(NodeInfoPlaces { links: vec![NodeInfoPlace { rel, href: app.site().at("/nodeinfo/2.0") }] })
}

/// `GET /nodeinfo/2.0`
pub(super) async fn node_info(State(app): State<Shared>) -> Json<NodeInfo> {
    Json(NodeInfo {
        version: "2.0",
        software: NodeInfoSoftware { name: "tideline", version: env!("CARGO_PKG_VERSION") },
        protocols: Vec::new(),
        services: NodeInfoServices { inbound: Vec::new(), outbound: Vec::new() },
        usage: NodeInfoUsage { users: BTreeMap::new() },
        open_registrations: takes_strangers(&app),
        metadata: NodeInfoMetadata {
            node_name: app.settings.title.clone(),
            upstream: NodeInfoUpstream { name: "mastodon" },
        },
    })
}
