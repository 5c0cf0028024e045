//! What a workload is put through: the engine with each of its policies, and the pull of the textbooks. Each keeps a
//! network of its own, all of them on the same servers.

mod books_pull;
mod tideline;
mod ways;

use ::tideline::{AccountId, Delivery, DeliveryWay};
use futures::future::{BoxFuture, FutureExt as _, ready};
use serde::{Deserialize, Serialize};

pub(crate) use books_pull::BooksPull;
pub(crate) use tideline::Tideline;
pub(crate) use ways::{Expected, ways};

use crate::members::account_id;

/// Posts on a page.
pub(crate) const PAGE: usize = 20;

/// Posts that a home guarantees, unless it is told otherwise.
pub(crate) fn home_posts() -> u32 {
    ::tideline::EngineSettings::default().home_posts
}

/// Timelines of a network, as users meet them. Accounts are those of the graph.
pub(crate) trait Timelines: Send + Sync {
    /// Publishes a post. What is returned tells when it has reached everybody; nothing: it needs to reach nobody.
    fn post<'a>(&'a self, author: u32, text: &'a str) -> BoxFuture<'a, ::tideline::Result<Option<Delivery>>>;

    /// The newest posts of a home above this one (0: whatever there is), with their authors, a page at most.
    fn page(&self, reader: u32, since: u64) -> BoxFuture<'_, ::tideline::Result<Shown>>;

    fn follow(&self, reader: u32, author: u32) -> BoxFuture<'_, ::tideline::Result<()>>;

    fn unfollow(&self, reader: u32, author: u32) -> BoxFuture<'_, ::tideline::Result<()>>;

    /// Makes a home ready, as one is that is in use.
    fn warm(&self, reader: u32) -> BoxFuture<'_, ::tideline::Result<()>>;

    /// Has an account pushed or pulled from now on, and waits until it is; where that makes no difference, at once.
    fn set_way(&self, _account: u32, _way: DeliveryWay) -> BoxFuture<'_, ::tideline::Result<()>> {
        ready(Ok(())).boxed()
    }

    /// Waits until nothing that was accepted is left to do, within bounds.
    fn settled(&self) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }

    /// Finishes what was accepted, within bounds, and is gone from the servers: the next one may be on the same
    /// addresses.
    fn stopped(&self) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }
}

/// What a page showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) posts: usize,
    /// The newest one; 0: none.
    pub(crate) newest: u64,
}

/// The systems, by name.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, clap::ValueEnum,
)]
#[value(rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub(crate) enum Contestant {
    /// Everybody is pushed.
    PushOnly,
    /// Everybody is pulled.
    PullOnly,
    /// Who has many followers is pulled.
    Threshold,
    /// Whatever costs less, account by account.
    CostModel,
    /// The textbooks' pull into stored timelines.
    BooksPull,
}

impl Contestant {
    /// All, in the order of the table.
    pub(crate) const ALL: [Self; 5] =
        [Self::PushOnly, Self::PullOnly, Self::Threshold, Self::CostModel, Self::BooksPull];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PushOnly => "push_only",
            Self::PullOnly => "pull_only",
            Self::Threshold => "threshold",
            Self::CostModel => "cost_model",
            Self::BooksPull => "books_pull",
        }
    }

    /// Whether some accounts may be pushed while others are pulled.
    pub(crate) fn is_hybrid(self) -> bool {
        matches!(self, Self::Threshold | Self::CostModel)
    }
}

/// The id of an account of the graph.
fn id_of(account: u32) -> ::tideline::Result<AccountId> {
    account_id(account.into())
}
