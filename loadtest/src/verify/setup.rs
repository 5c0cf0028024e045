//! How instances are set up: small homes, small pieces, few buckets, short leases, so that short histories meet every
//! rule.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tideline::archive::Archive;
use tideline::cluster::{Replicas, RouterSettings, Seed};
use tideline::registration::{Registration, RegistrationSettings};
use tideline::sharded::SetSettings;
use tideline::{
    Acknowledge, ActLimit, ActLimits, Engine, EngineBuilder, EngineSettings, ModeSettings, PolicyName, Store,
    StoreOptions,
};

use super::archived::ArchiveAddress;
use super::args::{Policy, Sabotage, VerifyArgs};
use super::chaos::skew::Clocks;
use super::founder::EveryFifth;

/// After so long servers take another one for dead; it is longer where a replica must be behind, and not dead, and
/// where slots stay open for minutes, in which nobody takes over.
pub(crate) fn node_timeout(args: &VerifyArgs) -> Duration {
    Duration::from_millis(if args.defaults || args.minutes { 5_000 } else { 1_500 })
}

/// Whoever is hasty waits no longer than this: for any first try that nothing stops.
pub(crate) const HASTE: Duration = Duration::from_millis(1_500);

/// Public posts that a bucket keeps: as many as may be.
const PUBLIC_POSTS: u32 = 2_000;

/// How all instances of a run are set up. Goes to other processes as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Setup {
    #[serde(with = "urls")]
    pub(crate) seeds: Vec<Seed>,
    pub(crate) prefix: String,
    pub(crate) buckets: u16,
    pub(crate) visible_within_ms: u64,
    pub(crate) home_posts: u32,
    pub(crate) spread_at: u64,
    pub(crate) policy: Policy,
    /// Whether writes wait for replicas.
    pub(crate) is_replicated: bool,
    /// Whether failovers happen all the same, and may lose what was acknowledged.
    #[serde(default)]
    pub(crate) may_lose: bool,
    /// What instances answer wrongly.
    pub(crate) sabotage: Option<Sabotage>,
    /// Where old posts go.
    #[serde(default)]
    pub(crate) archive: Option<ArchiveAddress>,
    /// How many posts of each account stay in memory then.
    #[serde(default)]
    pub(crate) hot_posts: u32,
    /// The token of a service, if calls go over HTTP.
    #[serde(default)]
    pub(crate) service: Option<String>,
    /// Whether accounts are told what others did. Not beside an older build, which leaves the inboxes of whom it
    /// deletes: operators begin with them once none of its instances is left.
    #[serde(default)]
    pub(crate) keeps_notifications: bool,
    /// Whether its settings say something else than the tenant's, which count all the same.
    pub(crate) is_at_odds: bool,
    /// Wall clocks that can be set, if they are to be.
    #[serde(skip)]
    pub(crate) clocks: Option<Arc<Clocks>>,
    /// Another build of this program, which every second instance is.
    #[serde(skip)]
    pub(crate) beside: Option<PathBuf>,
}

impl Setup {
    fn options(&self) -> StoreOptions {
        let sets =
            SetSettings { piece_limit: Some(16), spread_at: Some(self.spread_at), ..SetSettings::default() };
        let router = RouterSettings {
            response_timeout: Duration::from_millis(600),
            connect_timeout: Duration::from_millis(500),
            fence_timeout: Duration::from_millis(250),
            refresh_period: Duration::from_millis(500),
            replicas: match (self.is_replicated, self.may_lose) {
                _ if self.is_at_odds => Replicas::Absent,
                (true, _) => Replicas::Required,
                (false, true) => Replicas::Preferred,
                (false, false) => Replicas::Absent,
            },
            ..RouterSettings::default()
        };
        let router = match self.sabotage {
            // Before a second try a write is said to be done.
            Some(Sabotage::Hasty) => {
                let (pause, deadline) = (HASTE * 2, HASTE * 2 + Duration::from_millis(1));
                RouterSettings { backoff: (pause, pause), deadline, ..router }
            }
            _ => router,
        };
        let (prefix, buckets) = (self.prefix.clone(), Some(self.buckets));
        StoreOptions { prefix, buckets, router, sets, ..StoreOptions::new(self.seeds.clone()) }
    }

    /// Thresholds in the middle of what most accounts have, so that they cross over and back.
    fn modes(&self) -> ModeSettings {
        let policy = match self.policy {
            Policy::Push => PolicyName::Push,
            Policy::Pull => PolicyName::Pull,
            Policy::Threshold | Policy::Mixed => PolicyName::Threshold,
            Policy::Cost => PolicyName::Cost,
        };
        ModeSettings {
            policy,
            pull_from: 14,
            push_below: 12,
            delivery_ns: 5_000,
            skipped_ns: 1_000,
            pull_ns: 1_500,
            look_ns: 0,
            margin_percent: 1,
            decide_every: Duration::from_millis(300),
        }
    }

    /// The same for the instance with this number: every second one is at odds with its tenant, unless there is another
    /// build, whose settings may count.
    pub(crate) fn of_instance(&self, number: usize) -> Self {
        let is_at_odds = self.beside.is_none() && number % 2 == 1;
        let is_right = match self.sabotage {
            Some(Sabotage::Beside) => self.other_build(number).is_none(),
            Some(Sabotage::AtOdds) => !is_at_odds,
            _ => false,
        };
        Self { is_at_odds, sabotage: self.sabotage.filter(|_| !is_right), ..self.clone() }
    }

    /// The other build, if the instance with this number is one.
    pub(crate) fn other_build(&self, number: usize) -> Option<&Path> {
        self.beside.as_deref().filter(|_| number.is_multiple_of(2))
    }

    /// The same for whoever checks, or prepares a tenant: never hasty, as broken instances may be.
    pub(crate) fn unbroken(&self) -> Self {
        Self { sabotage: None, ..self.clone() }
    }

    /// A store alone, to look at what is stored.
    pub(crate) async fn store(&self) -> tideline::Result<Store> {
        Store::open(self.unbroken().options()).await
    }

    /// An instance, with its archive if it has one.
    pub(crate) async fn engine(&self, archive: Option<Arc<dyn Archive>>) -> tideline::Result<Engine> {
        match archive {
            Some(archive) => self.builder().archive(archive).start().await,
            None => self.builder().start().await,
        }
    }

    /// Somebody who only looks, where there is no archive.
    pub(crate) async fn observer(&self) -> tideline::Result<Engine> {
        self.unbroken().builder().observe().await
    }

    /// The archive, if old posts go there.
    pub(crate) async fn archive(&self) -> tideline::Result<Option<Arc<dyn Archive>>> {
        match &self.archive {
            Some(address) => address.open().await.map(Some),
            None => Ok(None),
        }
    }

    /// Begins the archive of a tenant that is new.
    pub(crate) async fn begin_archive(&self) -> tideline::Result<()> {
        let Some(archive) = self.archive().await? else { return Ok(()) };
        let builder = || self.unbroken().builder();
        let first = builder().start().await?;
        first.shutdown(Duration::from_secs(10)).await?;
        builder().archive(archive).begin_archive(self.hot_posts, 0).await.map(drop)
    }

    /// Makes the token of a service that acts for everybody, for a tenant that is new.
    pub(crate) async fn begin_service(&mut self) -> tideline::Result<()> {
        let first = self.unbroken().builder().start().await?;
        let registration = Registration::new(&first, RegistrationSettings::default()).await?;
        let token = tideline_server::service::create(&registration, "verify", "read write follow").await?;
        self.service = Some(token);
        first.shutdown(Duration::from_secs(10)).await.map(drop)
    }

    fn builder(&self) -> EngineBuilder {
        let settings = EngineSettings {
            visible_within: Duration::from_millis(self.visible_within_ms),
            home_posts: self.home_posts,
            home_margin: 4,
            scan_period: Duration::from_millis(200),
            lease_ttl: Duration::from_millis(1_500),
            lease_renewal: Duration::from_millis(300),
            acknowledge: if self.is_replicated { Acknowledge::Replicated } else { Acknowledge::Accepted },
            modes: self.modes(),
            limits: limits(),
            keeps_notifications: self.keeps_notifications,
            public_posts: PUBLIC_POSTS,
            ..EngineSettings::default()
        };
        let settings = if self.is_at_odds { with_little(settings) } else { settings };
        Engine::builder().store(self.options()).settings(settings).judge(EveryFifth)
    }
}

/// What is counted with each act, and nobody reaches: a refusal because of them is wrong.
fn limits() -> ActLimits {
    let most = Some(ActLimit::of(u16::MAX, Duration::from_secs(30 * 86_400)));
    ActLimits {
        posts: most,
        direct_posts: most,
        group_posts: most,
        mentions_of_strangers: most,
        follows: most,
        reports: most,
        ..ActLimits::default()
    }
}

/// Settings that would remove most of what a run writes.
fn with_little(settings: EngineSettings) -> EngineSettings {
    EngineSettings {
        home_posts: if settings.home_posts > 16 { 16 } else { 40 },
        outbox_posts: 100,
        mentions_max: 20,
        tag_posts_max: 20,
        public_posts: 20,
        dormant_after_days: Some(1),
        ..settings
    }
}

/// Seeds with their passwords: only for the pipe to another process.
mod urls {
    use serde::{Deserialize as _, Deserializer, Serializer};
    use tideline::cluster::Seed;

    pub(super) fn serialize<S: Serializer>(seeds: &[Seed], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(seeds.iter().map(Seed::url))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Seed>, D::Error> {
        Ok(Vec::<String>::deserialize(deserializer)?.into_iter().map(Seed::from).collect())
    }
}
