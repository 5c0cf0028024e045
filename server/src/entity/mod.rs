//! Objects that clients get, field by field: structs that are written as JSON. Pure, and nothing is decided here.
//!
//! Not here: how they are made of what the engine has (`show`), and the answer that says why there is none
//! ([`Refusal`](crate::http::Refusal)).
//!
//! Invariants: every key is always sent, as `null`, `[]` or `""` if there is nothing, but for those that say otherwise:
//! clients dereference them without asking. Ids are texts, moments have milliseconds and a `Z`. Texts named `content`
//! or `note` are HTML, and ready: who makes such a struct has escaped them.

mod account;
mod chat;
mod group;
mod id;
mod instance;
mod list;
mod media;
mod node_info;
mod notification;
mod oauth;
mod relationship;
mod report;
mod status;

pub use account::{Account, AccountField, AccountSource, CredentialAccount, CustomEmoji, MutedAccount, Role};
pub use chat::Conversation;
pub use group::GroupMember;
pub use id::Id;
pub use instance::{
    ApiVersions, Instance, InstanceAccounts, InstanceConfiguration, InstanceContact, InstanceIcon,
    InstanceMedia, InstancePolls, InstanceRegistrations, InstanceRule, InstanceStatuses, InstanceThumbnail,
    InstanceTranslation, InstanceUrls, InstanceUsage, InstanceUsers, InstanceV1, InstanceV1Configuration,
    InstanceV1Stats, InstanceV1Urls, InstanceVapid, OAuthMetadata,
};
pub use list::{Context, Empty, List, Marker, Markers, Preferences, Search, Tag, TagHistory};
pub use media::MediaAttachment;
pub use node_info::{
    NodeInfo, NodeInfoMetadata, NodeInfoPlace, NodeInfoPlaces, NodeInfoServices, NodeInfoSoftware,
    NodeInfoUpstream, NodeInfoUsage,
};
pub use notification::{Notification, UnreadCount};
pub use oauth::{Application, CredentialApplication, Session, SessionApplication, Token, UserInfo};
pub use relationship::{FamiliarFollowers, Relationship};
pub use report::{AccountLimits, FiledReport, LimitsOf, Report, ReportPage, ReportedStatus};
pub use status::{
    FilterResult, Mention, Poll, PollOption, Quote, Status, StatusApplication, StatusEdit, StatusSource,
    StatusTag,
};

pub use crate::http::refusal::{FieldMistake, FieldMistakes, RefusalBody as Error};
