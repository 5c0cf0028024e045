//! Tideline keeps home timelines on a Redis Cluster.
//!
//! [`Engine`] is what a service holds: accounts, follows, posts, pages. docs/api.md is a tour of it, docs/design.md
//! says how it works. It stands on a ground floor that can be used by itself: a router for batches of commands
//! ([`cluster`]), ids and buckets that spread data evenly over the slots ([`ids`], [`bucket`]), and sorted sets of any
//! size, sharded over the cluster ([`sharded`]). [`Store`] brings these together. The crate `tideline-local-cluster`
//! starts a Redis Cluster on this machine, `tideline-program` is the program.
//!
//! Imports between modules point one way, as docs/architecture.md shows; tests/layers.rs keeps it so.

pub mod account;
mod beginnings;
mod change;
mod charter;
mod claims;
#[cfg(feature = "config")]
#[doc(hidden)]
pub mod config;
mod delivery;
pub mod document;
mod engine;
mod fields;
mod fsck;
pub mod functions;
mod graph;
mod inbox;
mod journal;
pub mod keys;
mod limits;
mod member;
mod meters;
mod moderation;
mod modes;
mod nonce;
mod pending;
pub mod post;
pub mod profile;
#[cfg(test)]
mod public_types;
mod reader;
pub mod registration;
mod search;
mod serialized;
mod settings;
pub mod sharded;
mod social;
mod store;
mod stored;
mod tenant;
mod tiers;
mod timeline;
mod turns;

#[doc(inline)]
pub use tideline_model::{archive, bucket, error, ids};
#[doc(inline)]
pub use tideline_router as cluster;

pub use account::{Account, AccountKind, AccountState, AccountUpdate, Mode, NewAccount};
pub use charter::{Decision, FORMAT, TenantArchive, TenantChange, TenantSettings};
#[cfg(feature = "config")]
pub use config::Config;
pub use delivery::FanoutState;
pub use document::{Document, DocumentVersion, IdList, WantedLanguages};
pub use engine::{
    ArchiveStanding, ArchivedNow, ArchivedOwner, Engine, EngineBuilder, Health, HiddenPost, HomeCandidate,
    HomeVerdict, ImportedEdge, ImportedPost, Importer, IndexedNow, Inspection, ListLength, ListMembership,
    ListRemoval, ModeState, OpenTask, PostAck, PostInspection, PostListing, PostTier, PublishedPost,
    RankingInspection, Reader, RemovedData, RestoredPosts, SetSizes, StoppedTenant, StoredClaim, StoredData,
    StoredNames, Viewer,
};
pub use error::{CallFuture, Error, ErrorCode, ErrorKind, FrequencyBound, Result};
pub use fsck::{ArchivedCount, FindingKind, Findings, FsckOptions, FsckProgress, FsckReport};
pub use graph::{
    CHAT_MEMBERS_MAX, FollowOutcome, GROUP_INVITATIONS_MAX, GROUP_STAFF_MAX, GroupRole, Relationship,
};
pub use ids::{AccountId, PostId};
pub use inbox::{NotificationId, NotificationKind, NotificationQuery};
pub use journal::{Delivery, DeliveryProgress};
pub use limits::{AccountLimit, ActLimit, ActLimits, OwnLimits};
#[doc(hidden)]
pub use limits::{rate_in, span_text};
pub use moderation::{
    DraftFacts, DraftJudge, EXCERPT_CHARS_MAX, EXCERPTS_CHARS_MAX, Judgement, Moderation, NewReport,
    PostExcerpt, REPORT_COMMENT_CHARS_MAX, REPORT_POSTS_MAX, REPORTS_OPEN_MAX, REPORTS_OPEN_OF_ONE_MAX,
    Report, ReportCategory, ReportId, ReportList, ReportQuery, SpamJudge,
};
pub use modes::{AccountFacts, AsItIs, CostModel, DeliveryWay, Policy, PullOnly, PushOnly, Threshold};
pub use profile::Profile;
pub use reader::ReaderTies;
pub use settings::{ASKED_MAX, Acknowledge, EngineSettings, ModeSettings, PAGE_LEN_MAX, PolicyName, Receipt};
pub use social::{
    ANCESTORS_MAX, AccountList, ChatList, ChatQuery, Conversation, DESCENDANTS_MAX, ListCursor, ListQuery,
    Notification, NotificationPage, PostList, PostsById, ShownChat,
};
pub use store::{Store, StoreOptions};
pub use timeline::{
    AROUND_MAX, AROUND_PAGE_MAX, CHOSEN_MAX, ChosenAuthors, ChosenReplies, Cursor, FURTHER_TAGS_MAX,
    FilterFacts, FurtherTags, HiddenBecause, HomeStatus, Importance, OutboxPost, Page, PagePost, PassedOn,
    PostFilter, PostScorer, Query, RANKED_CURSOR_LEN_MAX, Range, RankedCursor, RankedFeed, RankedPage,
    RankedQuery, SCORE_TERMS_MAX, Score, ScoreFacts, ScoredPost, StoredHome, StoredHomeEntry, StoredOutbox,
    Timeline,
};
pub use timeline::{AccountCache, AgedValue, ObjectCache, PostCache};

/// The examples in the pages for users are compiled with the tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../README.md")]
    struct ReadmePage;
    #[doc = include_str!("../docs/api.md")]
    struct ApiPage;
    #[doc = include_str!("../docs/sets.md")]
    struct SetsPage;
    #[doc = include_str!("../docs/router.md")]
    struct RouterPage;
    #[doc = include_str!("../docs/local-cluster.md")]
    struct LocalClusterPage;
    #[doc = include_str!("../docs/archive.md")]
    struct ArchivePage;
    #[cfg(feature = "config")]
    #[doc = include_str!("../docs/configuration.md")]
    struct ConfigurationPage;
}
