//! The engine: what users of the library hold. Each call is a few lines that bring the parts together.

mod accounts;
mod archive;
mod builder;
mod byline;
mod chats;
mod decide;
mod edges;
mod groups;
mod import;
mod inspect;
pub(crate) mod jobs;
mod judging;
mod limits;
mod moderation;
mod modes;
mod posts;
mod publish;
mod rights;
mod search;
mod stock;
mod stored;
mod viewer;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

pub use archive::{ArchivedNow, RestoredPosts, StoppedTenant};
pub use builder::EngineBuilder;
pub use decide::{ListRemoval, RemovedData};
pub use import::{ImportedEdge, ImportedPost, Importer};
pub use inspect::{
    ArchiveStanding, ArchivedOwner, HiddenPost, HomeCandidate, HomeVerdict, Inspection, ListLength,
    ListMembership, OpenTask, PostInspection, PostListing, PostTier, RankingInspection, SetSizes,
    StoredClaim, StoredNames,
};
pub use modes::ModeState;
pub use publish::{PostAck, PublishedPost};
pub use search::IndexedNow;
pub use stored::StoredData;
pub use viewer::{Reader, Viewer};

use crate::archive::Archive;
use crate::beginnings::NameRanks;
use crate::charter::{self, Decision};
use crate::cluster::{Epoch, Finding, Severity, impatiently};
use crate::error::{CallFuture, Error, Result};
use crate::fsck::{self, FsckOptions, FsckProgress, FsckReport};
use crate::graph::{ArchiveMoves, FollowerSums, Graph, NotedEdgeLooks};
use crate::ids::AccountId;
use crate::journal::{self, AwayServerQuestions, Handlers, JournalScans, ParkedTaskLooks};
use crate::moderation::{DraftJudge, ReachedLimitNotes};
use crate::modes::{Modes, Policy, PulledAuthorLooks, Traffic};
use crate::settings::{Acknowledge, EngineSettings, Receipt};
use crate::store::Store;
use crate::tenant::{self, KnownDecision, RecordLooks, Tenant};
use crate::timeline::{self, HomeSweeps, Importance, OwnCaches, PostFilter, PostScorer, Timelines};
use crate::turns::Turns;

/// A home-timeline engine on a Redis Cluster. Copies are cheap and share everything.
///
/// Any number of instances, in any number of processes, may work on the same tenant at once. What one has accepted and
/// not finished when it dies, another one finishes.
///
/// ```no_run
/// # async fn example() -> tideline::Result<()> {
/// use tideline::post::Draft;
/// use tideline::{Engine, NewAccount, Query};
///
/// let engine = Engine::builder().seeds(["redis://127.0.0.1:7000"]).start().await?;
/// // They go to the log too, if there is a `tracing` subscriber.
/// for finding in engine.health().await?.findings {
///     println!("the servers' settings: {finding}");
/// }
/// let ada = engine.create_account(NewAccount::default()).await?.value;
/// let ben = engine.create_account(NewAccount::default()).await?.value;
/// engine.follow(ben, ada).await?;
/// engine.publish(ada, &Draft::text("Low tide at noon")).await?;
/// let page = engine.as_reader(ben).read(&Query::home().hydrated()).await?;
/// assert_eq!(page.posts.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Engine {
    tenant: Arc<Tenant>,
    graph: Arc<Graph>,
    timelines: Arc<Timelines>,
    modes: Arc<Modes>,
    /// Who carries tasks out: as long as this is there.
    _handlers: Arc<Handlers>,
    filter: Option<Arc<dyn PostFilter>>,
    scorer: Arc<dyn PostScorer>,
    judge: Option<Arc<dyn DraftJudge>>,
    /// Who deletes posts that the archive has, of each account.
    erasures: Arc<Turns<AccountId>>,
}

/// Parts that users bring along.
#[derive(Debug, Default)]
pub(crate) struct OwnParts {
    pub(crate) policy: Option<Arc<dyn Policy>>,
    pub(crate) filter: Option<Arc<dyn PostFilter>>,
    pub(crate) scorer: Option<Arc<dyn PostScorer>>,
    pub(crate) judge: Option<Arc<dyn DraftJudge>>,
    pub(crate) caches: OwnCaches,
    pub(crate) archive: Option<Arc<dyn Archive>>,
}

/// The condition of an engine.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Health {
    /// Whether it takes work, and nothing at the servers forbids that.
    pub is_well: bool,
    /// Faults found at the servers, with what to do about each.
    pub findings: Vec<Finding>,
    /// Fan-outs and other journal entries that wait or are under way in this instance.
    pub tasks: usize,
    /// Entries in all journals that could be asked, of all instances.
    pub journal_entries: u64,
    /// Journals that could not be in time: their server is not there to work, as the findings say.
    pub journals_unknown: usize,
}

impl Engine {
    /// Sets an engine up.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    async fn start(store: Store, settings: EngineSettings, own: OwnParts) -> Result<Self> {
        settings.check()?;
        let engine = Self::over(store, settings, own).await?;
        let (router, keys) = (engine.tenant.router(), engine.tenant.keys());
        if engine.tenant.settings.keeps_notifications
            && let Err(e) = charter::note_notifications(router, keys).await
        {
            tracing::warn!(
                "until an instance can note that accounts are told what others did, tools tell nobody: {e}"
            );
        }
        Ok(engine)
    }

    pub(crate) async fn over(store: Store, settings: EngineSettings, own: OwnParts) -> Result<Self> {
        let known = tenant::known_to_an_instance(&store, &settings).await?;
        let engine = Self::serve(store, settings, own, known).await?;
        engine.graph.journal.tasks.recur(&engine.graph.journal, ArchiveMoves::default());
        Ok(engine)
    }

    /// Works beside a service, and decides nothing. H193: nor lets posts leave memory: what a repair is to look at
    /// would be gone. H286: it tells accounts what others did where the service does, whose work it may carry out.
    async fn assist(store: Store, mut settings: EngineSettings, own: OwnParts) -> Result<Self> {
        settings.keeps_notifications |= charter::has_notifications(store.router(), store.keys()).await?;
        let known = tenant::known_to_a_tool(&store, &settings).await?;
        Self::serve(store, settings, own, known).await
    }

    async fn serve(
        store: Store,
        settings: EngineSettings,
        own: OwnParts,
        known: KnownDecision,
    ) -> Result<Self> {
        archive::check(&known, own.archive.as_deref()).await?;
        let engine = Self::assembled(store, settings, own, known);
        let Self { tenant, graph, modes, .. } = &engine;
        let journal = &graph.journal;
        // Before anything is accepted: without a lease others would take our work for left behind.
        journal::begin_lease(journal).await?;
        let tasks = &journal.tasks;
        tasks.recur(journal, JournalScans::default());
        tasks.recur(journal, ParkedTaskLooks::default());
        tasks.recur(journal, AwayServerQuestions);
        tasks.recur(tenant, HomeSweeps);
        tasks.recur(tenant, RecordLooks::default());
        tasks.recur(modes, PulledAuthorLooks);
        tasks.recur(graph, FollowerSums);
        tasks.recur(tenant, NameRanks(graph.grown.clone()));
        tasks.recur(journal, NotedEdgeLooks);
        tasks.recur(tenant, ReachedLimitNotes);
        Ok(engine)
    }

    /// Only looks: nothing runs beside, and without a lease nothing is accepted that others might have to finish.
    async fn observe(store: Store, settings: EngineSettings, own: OwnParts) -> Result<Self> {
        let known = tenant::known_to_a_tool(&store, &settings).await?;
        archive::check(&known, own.archive.as_deref()).await?;
        let engine = Self::assembled(store, settings, own, known);
        engine.graph.journal.tasks.stop();
        Ok(engine)
    }

    /// Each part gets those below it that it works with.
    fn assembled(store: Store, settings: EngineSettings, own: OwnParts, known: KnownDecision) -> Self {
        let OwnParts { policy, filter, scorer, judge, caches, archive } = own;
        let scorer = scorer.unwrap_or_else(|| Arc::new(Importance::default()));
        let policy = policy.unwrap_or_else(|| settings.modes.make());
        let tenant = Tenant::new(store, settings, known, archive);
        let graph = Graph::new(&tenant);
        let traffic = Arc::<Traffic>::default();
        let modes = Modes::new(graph.clone(), traffic.clone(), policy);
        let timelines = Timelines::new(graph.clone(), traffic, caches);
        let handlers = jobs::carry_out_tasks(&graph, &modes);
        let erasures = Arc::default();
        Self { tenant, graph, timelines, modes, _handlers: handlers, filter, scorer, judge, erasures }
    }

    /// The tenant that it works for, for modules beside this one.
    pub(crate) fn tenant(&self) -> &Arc<Tenant> {
        &self.tenant
    }

    /// The graph, for modules beside this one.
    pub(crate) fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The store that it works on.
    pub fn store(&self) -> &Store {
        &self.tenant.store
    }

    /// The engine's own settings. Those that are the tenant's count only where these are the same:
    /// [`decision`](Self::decision).
    pub fn settings(&self) -> &EngineSettings {
        &self.tenant.settings
    }

    /// Tells what the tenant has decided, as this instance knows it: it hears of another decision within seconds.
    pub fn decision(&self) -> Decision {
        self.tenant.known.decision()
    }

    /// Fills the home of an account that has none now, instead of at its next read.
    pub fn warm(&self, reader: AccountId) -> CallFuture<'_, bool> {
        Box::pin(timeline::fill(&self.timelines, reader))
    }

    /// Drops the homes of all who have not read for `days` days, and tells how many. It happens by itself, now and
    /// then, with the setting `dormant_after_days`.
    pub fn sweep(&self, days: u32) -> CallFuture<'_, u64> {
        Box::pin(timeline::sweep(&self.tenant, self.tenant.today().saturating_sub(days), None))
    }

    /// Tells the condition of the engine. Asks all journals: for a page that is looked at now and then, not for each
    /// request.
    ///
    /// It doesn't wait for servers that are away: whoever gives no answer within
    /// [`response_timeout`](crate::cluster::RouterSettings::response_timeout) is named among the findings, and the rest
    /// is told all the same. [`Unavailable`](crate::ErrorKind::Unavailable): nobody answers.
    pub fn health(&self) -> CallFuture<'_, Health> {
        Box::pin(async move {
            let router = self.tenant.router();
            // So that who is back is noticed.
            router.probe_silent();
            let depths = impatiently(journal::journal_depths(&self.tenant)).await;
            let unknown: Vec<&Error> = depths.iter().filter_map(|depth| depth.as_ref().err()).collect();
            let journals_unknown = unknown.len();
            if let Some(why) = unknown.first().filter(|_| journals_unknown == depths.len()) {
                return Err((*why).clone());
            }
            // Only now it is known who doesn't answer.
            let mut findings = router.findings();
            findings.extend(self.tenant.known.findings());
            findings.extend(self.modes.finding());
            findings.extend(archive::finding(&self.tenant).await);
            let is_stopping = self.graph.journal.tasks.is_stopping();
            Ok(Health {
                is_well: !is_stopping && findings.iter().all(|f| f.severity != Severity::Refusal),
                findings,
                tasks: self.graph.journal.tasks.len(),
                journal_entries: depths.iter().flatten().sum(),
                journals_unknown,
            })
        })
    }

    /// Looks through all that is stored for what is out of step, and puts it right if that is wanted: docs/fsck.md.
    ///
    /// It runs beside everything else, takes as long as there is data, and changes nothing unless it repairs. What is
    /// in flight is waited for, and never taken for a fault. `progress` is told now and then how far it is.
    ///
    /// [`Unavailable`](crate::ErrorKind::Unavailable): the cluster doesn't answer, or an observer was asked to repair.
    /// [`Conflict`](crate::ErrorKind::Conflict): an import is under way.
    pub fn fsck<'a>(
        &'a self,
        options: &'a FsckOptions,
        progress: &'a (dyn Fn(FsckProgress) + Sync),
    ) -> CallFuture<'a, FsckReport> {
        Box::pin(async move { fsck::run(&self.graph, options, self, progress).await })
    }

    /// Makes a call of this engine, then waits until what it has left elsewhere is done: lists of posts, the other side
    /// of a follow, counters; not for the fan-out of a post, the burial of an account, a change of mode.
    ///
    /// Whoever is answered then finds it there, as somebody who reads a list right after having joined it expects. It
    /// waits no longer than `within`: what is left goes on all the same. Of two calls in one future it is for both;
    /// what a task leaves that the call has spawned is not waited for.
    ///
    /// ```no_run
    /// # use tideline::AccountId;
    /// # async fn example(engine: tideline::Engine, ada: AccountId, ben: AccountId) -> tideline::Result<()> {
    /// use std::time::Duration;
    /// use tideline::ListQuery;
    ///
    /// engine.settled(Duration::from_millis(150), engine.follow(ben, ada)).await?;
    /// let followers = engine.as_reader(ada).followers(ada, &ListQuery::default()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn settled<T>(&self, within: Duration, call: impl Future<Output = T>) -> T {
        journal::settled(within, call).await
    }

    /// Waits until no journal holds an entry: every accepted write has reached everybody.
    pub async fn drained(&self, deadline: Duration) -> Result<()> {
        journal::drained(&self.graph.journal, deadline).await
    }

    /// Stops: takes nothing new, finishes what is under way, drops what it does beside its calls, and gives its lease
    /// back (until then it renews it), so that others take over at once what is left at the deadline. Tells how many
    /// tasks that are. Other copies of this engine stop too. If the server of the leases doesn't answer, others take
    /// over when the lease is over.
    pub async fn shutdown(&self, deadline: Duration) -> Result<usize> {
        let tasks = &self.graph.journal.tasks;
        tasks.stop();
        let ended = async {
            tasks.ended(&self.graph.journal).await;
            tasks.nothing_beside().await;
        };
        let _ = timeout(deadline, ended).await;
        // Apart: whoever renews it may wait for that server, too.
        let graph = self.graph.clone();
        let ended = tokio::spawn(async move { journal::end_lease(&graph.journal).await });
        let patience = self.tenant.router().settings().response_timeout;
        if !matches!(timeout(patience, ended).await, Ok(Ok(Ok(())))) {
            tracing::warn!(
                "the lease could not be given back within {patience:?}: what is left is taken over when it is over, in \
                 {:?}",
                self.tenant.settings.lease_ttl
            );
        }
        Ok(self.graph.journal.tasks.left())
    }

    /// Waits for the replicas if the settings say so.
    pub(crate) async fn acknowledged(&self, epoch: Epoch) -> Result<Receipt> {
        let reached = self.tenant.acknowledge(self.tenant.settings.acknowledge, &epoch).await?;
        Ok(Receipt { value: (), reached })
    }
}

impl From<Acknowledge> for PostAck {
    fn from(how: Acknowledge) -> Self {
        match how {
            Acknowledge::Accepted => Self::Accepted,
            Acknowledge::Replicated => Self::Replicated,
        }
    }
}
