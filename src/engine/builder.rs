//! Setting an engine up.

use std::sync::Arc;

use super::{Engine, OwnParts, rights};
use crate::archive::Archive;
use crate::charter::{Decision, TenantSettings};
use crate::cluster::{RouterSettings, Seed};
use crate::error::CallFuture;
use crate::moderation::DraftJudge;
use crate::modes::{AsItIs, Policy};
use crate::settings::EngineSettings;
use crate::sharded::SetSettings;
use crate::store::{Store, StoreOptions};
use crate::timeline::{AccountCache, PostCache, PostFilter, PostScorer};

/// A builder of an [`Engine`].
#[derive(Debug, Default)]
#[must_use]
pub struct EngineBuilder {
    store: StoreOptions,
    settings: EngineSettings,
    own: OwnParts,
}

impl EngineBuilder {
    /// Sets some nodes of the cluster to begin with: `redis://` or `rediss://`, `[user[:password]@]host[:port]`. One
    /// living is enough.
    pub fn seeds<S: Into<Seed>>(mut self, seeds: impl IntoIterator<Item = S>) -> Self {
        self.store.seeds = seeds.into_iter().map(Into::into).collect();
        self
    }

    /// Sets what all keys of this tenant begin with.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.store.prefix = prefix.into();
        self
    }

    /// Sets how many buckets a new tenant has; fixed for good when it is first opened.
    pub fn buckets(mut self, buckets: u16) -> Self {
        self.store.buckets = Some(buckets);
        self
    }

    /// Sets how the router talks to the cluster.
    pub fn router(mut self, settings: RouterSettings) -> Self {
        self.store.router = settings;
        self
    }

    /// Sets how sharded sets behave.
    pub fn sets(mut self, settings: SetSettings) -> Self {
        self.store.sets = settings;
        self
    }

    /// Sets everything about the store at once.
    pub fn store(mut self, options: StoreOptions) -> Self {
        self.store = options;
        self
    }

    /// Sets how the engine behaves.
    pub fn settings(mut self, settings: EngineSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Has a policy of your own decide who is pushed and who is pulled, instead of one that the settings name.
    pub fn policy(mut self, policy: impl Policy + 'static) -> Self {
        self.own.policy = Some(Arc::new(policy));
        self
    }

    /// Has a filter of your own asked about each post of each page.
    pub fn filter(mut self, filter: impl PostFilter + 'static) -> Self {
        self.own.filter = Some(Arc::new(filter));
        self
    }

    /// Has a judge asked before each post and edit: [`SpamJudge`](crate::SpamJudge), or one of your own. Whoever
    /// publishes through several instances gives each of them one.
    pub fn judge(mut self, judge: impl DraftJudge + 'static) -> Self {
        self.own.judge = Some(Arc::new(judge));
        self
    }

    /// Has a scorer of your own order timelines by importance, instead of [`Importance`](crate::Importance).
    pub fn scorer(mut self, scorer: impl PostScorer + 'static) -> Self {
        self.own.scorer = Some(Arc::new(scorer));
        self
    }

    /// Keeps posts that leave memory in this archive: the one that the tenant has [begun](Self::begin_archive).
    pub fn archive(mut self, archive: Arc<dyn Archive>) -> Self {
        self.own.archive = Some(archive);
        self
    }

    pub(super) fn with_archive(self) -> (StoreOptions, EngineSettings, Option<Arc<dyn Archive>>) {
        (self.store, self.settings, self.own.archive)
    }

    /// Keeps posts in a cache of your own.
    pub fn post_cache(mut self, cache: Arc<PostCache>) -> Self {
        self.own.caches.posts = Some(cache);
        self
    }

    /// Keeps accounts in a cache of your own.
    pub fn account_cache(mut self, cache: Arc<AccountCache>) -> Self {
        self.own.caches.accounts = Some(cache);
        self
    }

    /// Connects, and starts what runs beside: the lease, the search for work that others left, the sweep.
    ///
    /// What it finds about the servers' settings and can live with goes to the log: set up a `tracing` subscriber, or
    /// look at the findings of [`Engine::health`].
    ///
    /// A new tenant takes from these settings those that are [the tenant's](crate::TenantSettings). One that was filled
    /// by an import, or by an earlier release, has none until they were [decided](Engine::decide): until then no posts
    /// leave outboxes, mentions and hashtags, and the log and [`Engine::health`] say so.
    ///
    /// Fails as [`Store::open`] does, where its Redis user lacks a right, on settings that don't fit together, and
    /// beside an import ([`Conflict`](crate::ErrorKind::Conflict)); one that was killed is waited for, at most as long
    /// as its lease lasts. Must be called inside a tokio runtime.
    pub fn start(self) -> CallFuture<'static, Engine> {
        Box::pin(async move {
            self.settings.check()?;
            // Where there is data nobody decides by the way: an operator does, who is told first what that removes.
            let own = TenantSettings::of(&self.settings, self.store.router.replicas);
            let store = Store::open_deciding(self.store, &Decision::first(own)).await?;
            rights::check(&store).await?;
            Engine::start(store, self.settings, self.own).await
        })
    }

    /// Connects to a tenant that exists, to work on it as a tool beside a service: with the tenant's settings wherever
    /// they are the tenant's, and leaving every account's mode as it is, unless a policy was named. The rest is as
    /// [`start`](Self::start) says.
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound): nobody has opened that tenant yet.
    pub fn assist(self) -> CallFuture<'static, Engine> {
        Box::pin(async move {
            self.settings.check()?;
            let store = Store::open_existing(self.store).await?;
            rights::check(&store).await?;
            let policy = self.own.policy.or(Some(Arc::new(AsItIs)));
            Engine::assist(store, self.settings, OwnParts { policy, ..self.own }).await
        })
    }

    /// Connects to a tenant that exists, only to look: for tools beside a running service. Nothing runs beside, and
    /// writes whose work others might have to finish are refused as [`Unavailable`](crate::ErrorKind::Unavailable).
    ///
    /// Fails as [`start`](Self::start) does; [`NotFound`](crate::ErrorKind::NotFound): nobody has opened that tenant
    /// yet.
    pub fn observe(self) -> CallFuture<'static, Engine> {
        Box::pin(async move {
            self.settings.check()?;
            let store = Store::open_existing(self.store).await?;
            Engine::observe(store, self.settings, self.own).await
        })
    }
}
