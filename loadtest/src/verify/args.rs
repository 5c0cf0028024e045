//! What can be typed behind `loadtest verify`, with the bounds that keep a run finite.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use tideline::cluster::Seed;

use crate::report::Files;
use crate::typed::whole;

/// What goes wrong on purpose during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Chaos {
    /// Instances are killed (SIGKILL), others started.
    KillInstance,
    /// Instances are stopped and go on later (SIGSTOP, SIGCONT).
    FreezeInstance,
    /// Instances sleep for many leases (SIGSTOP), given up by all who called them; then they wake.
    SleepInstance,
    /// Primaries are killed or stopped until a replica takes over.
    Failover,
    /// The same, three times in a row: back and forth between a primary and its replica.
    FailoversInARow,
    /// Primaries are cut off from the other servers, or don't hear them, or aren't heard, while clients reach all of
    /// them.
    CutBus,
    /// Slots move, key by key.
    Reshard,
    /// A slot is left half-way, with keys on both sides.
    OpenSlots,
    /// Servers cut all connections of clients, again and again.
    CutClients,
    /// Servers forget the functions.
    FlushFunctions,
    /// Servers stand still for a moment, or are busy and refuse whoever comes.
    SlowServer,
    /// Servers let their clients wait, while they talk with each other: nobody takes over.
    SilentServer,
    /// Servers are out of memory.
    FullServer,
    /// The wall clock of a server, or of an instance, is set by an hour, and right again.
    SetClocks,
    /// The archive's server is killed (SIGKILL), and comes back.
    KillArchive,
    /// The archive's server stands still for longer than a page waits (SIGSTOP, SIGCONT).
    FreezeArchive,
    /// All that is said to the archive's server, and by it, is late.
    SlowArchive,
    /// The archive's server refuses whatever needs space.
    FullArchive,
    /// Another server takes over from the archive's that lacks what that has acknowledged last.
    ForgetArchive,
}

/// Who does what goes wrong: each one thing after another, all of them at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Actor {
    /// Strikes instances.
    Instances,
    /// Sends instances to sleep.
    Sleep,
    /// Changes which server has what.
    Roles,
    /// Strikes servers that stay what they are.
    Servers,
    /// Strikes the archive's server.
    Archive,
}

impl Actor {
    pub(crate) const ALL: [Self; 5] =
        [Self::Instances, Self::Sleep, Self::Roles, Self::Servers, Self::Archive];
}

/// Where old posts go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ArchiveKind {
    /// PostgreSQL, for any number of instances.
    Postgres,
    /// A file, for one process.
    Sqlite,
}

impl Chaos {
    pub(crate) fn actor(self) -> Actor {
        match self {
            Self::KillInstance | Self::FreezeInstance => Actor::Instances,
            Self::SleepInstance => Actor::Sleep,
            Self::Failover | Self::FailoversInARow | Self::CutBus | Self::Reshard | Self::OpenSlots => {
                Actor::Roles
            }
            Self::CutClients
            | Self::FlushFunctions
            | Self::SlowServer
            | Self::SilentServer
            | Self::FullServer
            | Self::SetClocks => Actor::Servers,
            Self::KillArchive
            | Self::FreezeArchive
            | Self::SlowArchive
            | Self::FullArchive
            | Self::ForgetArchive => Actor::Archive,
        }
    }

    /// How many portions of a round's work come with one such fault: some is there when somebody wakes, and when the
    /// second of two clocks is set.
    pub(crate) fn portions(self) -> usize {
        if matches!(self, Self::SleepInstance | Self::SetClocks) { 2 } else { 1 }
    }

    /// Whether it breaks servers.
    fn needs_own_cluster(self) -> bool {
        !matches!(self.actor(), Actor::Instances | Actor::Sleep)
    }

    /// Whether it strikes a process that has instances.
    fn needs_processes(self) -> bool {
        matches!(self.actor(), Actor::Instances | Actor::Sleep) || self == Self::SetClocks
    }

    /// Whether replicas take over.
    fn needs_replicas(self) -> bool {
        matches!(self, Self::Failover | Self::FailoversInARow | Self::CutBus)
    }

    /// As it is typed.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Who decides which accounts are pushed and which are pulled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Policy {
    /// All are pushed; those that are created otherwise are handed over.
    Push,
    /// All are pulled.
    Pull,
    /// By the number of followers, with thresholds that accounts cross again and again.
    Threshold,
    /// By what either way costs.
    Cost,
    /// The threshold, and besides accounts are told by hand, back and forth.
    Mixed,
}

/// What is broken behind the engine's back, so that this test must find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Sabotage {
    /// An entry disappears from a home.
    HomeEntry,
    /// A post disappears.
    Post,
    /// A follow that nobody has made.
    Follow,
    /// The model believes in a mute that nobody has asked for.
    Mute,
    /// Somebody's edge among an author's followers disappears.
    Edge,
    /// An account's credentials name none of its names any more.
    Name,
    /// All reports disappear.
    Reports,
    /// Instances say of locked accounts that they are followed at once.
    Lock,
    /// Instances refuse one follow in twenty for nothing.
    Refusal,
    /// Instances refuse to answer who waits for that.
    Answer,
    /// Instances leave the last post out of pages of all that is public.
    Public,
    /// Instances say of one mute, block, hide or unfollow in four that the other account isn't there.
    Absent,
    /// Instances list whom somebody follows the wrong way round.
    Order,
    /// Instances tell who likes what, and all other lists of people and posts, the wrong way round; and conversations.
    Lists,
    /// Instances leave the reader's own posts out of homes by importance.
    Ranked,
    /// Instances say of limits of an account's own that they hold, and set none.
    Unlimited,
    /// Instances keep nothing of what others did.
    Untold,
    /// Instances don't tell some accounts who waits for their answer.
    Unanswered,
    /// Instances publish what leaves that to the author's lock as unlisted.
    Visibility,
    /// Instances publish what is for some accounts for its author alone.
    OnlyTo,
    /// Instances edit posts, and leave it at whom they mention.
    Mentions,
    /// Instances write posts that have no token, and say that they have not.
    Undone,
    /// Instances write posts that have no token twice.
    Twice,
    /// Instances say of one author's posts that they are delivered only when everything is drained.
    Late,
    /// Instances say of posts that they are delivered as soon as they are accepted.
    Early,
    /// A home is filled from an outbox that lacks its newest posts.
    StaleFill,
    /// An instance dies that has work left, and its lease never ends.
    Leases,
    /// Instances try nothing again that a fault has stopped, and say of writes that they are done.
    Hasty,
    /// An instance that wakes makes all follows once more that it has made before.
    Awake,
    /// The build beside publishes what has no token twice.
    Beside,
    /// Instances that are at odds with their tenant bind it to their own bounds.
    AtOdds,
    /// Entries disappear from homes that are full, so that these holes are cut away with what follows.
    Hole,
    /// The model believes that failovers lose nothing that is acknowledged.
    Losses,
    /// Instances take their own clocks' word for when posts were published.
    Clocks,
    /// While things go wrong servers let nobody load functions.
    Unloaded,
    /// Instances say of a page that ends where the archive is away that nothing follows.
    ShortPage,
    /// Instances say of acts that the archive has not heard of that they are done.
    Unarchived,
    /// Posts leave memory as soon as the archive has them, whatever a server that takes over may lack.
    Unsettled,
    /// A post disappears from the archive.
    Row,
    /// A post that has left memory stands there once more, and nobody would ever look at it.
    Unnoted,
}

impl Sabotage {
    /// Whether something in memory, or the model, is broken in the end. Else instances do or answer something wrong
    /// from the beginning, or the archive is broken.
    pub(crate) fn is_in_memory(self) -> bool {
        use Sabotage::{Edge, Follow, HomeEntry, Leases, Mute, Name, Post, Reports, StaleFill};
        matches!(self, HomeEntry | Post | Follow | Mute | Edge | Name | Reports | StaleFill | Leases)
    }

    /// Whether something is broken in the end of what has left memory.
    pub(crate) fn is_in_archive(self) -> bool {
        matches!(self, Self::Row | Self::Unnoted)
    }

    /// Whether it is about an archive.
    fn is_about_archives(self) -> bool {
        self.is_in_archive() || matches!(self, Self::ShortPage | Self::Unarchived | Self::Unsettled)
    }
}

/// How clients reach instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Over {
    /// Over HTTP
    Http,
}

/// Random histories of everything that accounts do, by several clients on several instances; every page that anybody
/// gets is held against a naive model, and in the end everybody's whole timeline.
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct VerifyArgs {
    /// Nodes of a cluster to use, separated by commas: redis://HOST:PORT or rediss://. The run's keys have a prefix of
    /// their own, which it tells, and stay there until `loadtest clean` [default: start 3 primaries, and remove them at
    /// the end]
    // Not in the report: it may hold a password.
    #[arg(long, value_name = "URL", env = "TIDELINE_CLUSTER", hide_env_values = true, value_delimiter = ',')]
    #[serde(skip)]
    pub(crate) cluster: Vec<Seed>,
    /// Operations in all: writes, pages, walks
    #[arg(long, default_value_t = 10_000, value_parser = whole::<u32>(1..=10_000_000))]
    pub(crate) operations: u32,
    /// After so many operations everything is left to drain, and every timeline compared
    #[arg(long, default_value_t = 2_500, value_parser = whole::<u32>(1..=100_000))]
    pub(crate) round: u32,
    /// Accounts that act
    #[arg(long, default_value_t = 70, value_parser = whole::<u32>(10..=2_000))]
    pub(crate) accounts: u32,
    /// Clients at the same time; each acts for accounts of its own
    #[arg(long, default_value_t = 8, value_parser = whole::<u32>(1..=100))]
    pub(crate) clients: u32,
    /// Instances of the engine
    #[arg(long, default_value_t = 3, value_parser = whole::<u32>(1..=16))]
    pub(crate) instances: u32,
    /// The setting `visible_within`, in milliseconds [default: by the seed, 0 or 200]
    #[arg(long, value_name = "MS", value_parser = whole::<u64>(0..=5_000))]
    pub(crate) visible_within_ms: Option<u64>,
    /// Who is pushed and who is pulled; what a page shows does not depend on it
    #[arg(long, value_enum, default_value = "mixed")]
    pub(crate) policy: Policy,
    /// What goes wrong meanwhile; the instances are processes of their own then
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) chaos: Vec<Chaos>,
    /// Writes are acknowledged as by default, as soon as a primary has them: what a failover may lose by that is looked
    /// up, and nothing else may be lost
    #[arg(long)]
    pub(crate) defaults: bool,
    /// Instances sleep, and slots stay open, for minutes
    #[arg(long)]
    pub(crate) minutes: bool,
    /// Old posts leave memory for an archive, all but five of each account, as soon as they may: for a PostgreSQL that
    /// is started here, or a file, which one process may have
    #[arg(long, value_enum, value_name = "KIND", num_args = 0..=1, default_missing_value = "postgres")]
    pub(crate) archive: Option<ArchiveKind>,
    /// Every second instance is this program: `loadtest` of an older release. It comes first, so the data is of its
    /// format
    #[arg(long, value_name = "PROGRAM")]
    #[serde(skip)]
    pub(crate) beside: Option<PathBuf>,
    /// How clients reach instances: with `http` over the wire, for all that the API of clients offers; the rest stays
    /// with the engine [default: calls of the engine]
    #[arg(long, value_enum)]
    pub(crate) over: Option<Over>,
    /// The same seed plans the same operations [default: a new one each time, shown]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0..))]
    #[serde(skip)]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    #[serde(skip)]
    pub(crate) files: Files,
    /// Break something on purpose before the last comparison
    #[arg(long, value_enum, hide = true)]
    pub(crate) sabotage: Option<Sabotage>,
}

impl VerifyArgs {
    /// Whether instances are processes of their own.
    pub(crate) fn has_processes(&self) -> bool {
        let has_faults =
            !self.chaos.is_empty() || self.beside.is_some() || self.sabotage == Some(Sabotage::Leases);
        // Only one process may have that file: with several instances it is this one.
        has_faults && (self.archive != Some(ArchiveKind::Sqlite) || self.instances == 1)
    }

    /// Whether the archive's server is struck.
    pub(crate) fn has_archive_faults(&self) -> bool {
        self.chaos.iter().any(|kind| kind.actor() == Actor::Archive)
    }

    pub(crate) fn has(&self, chaos: Chaos) -> bool {
        self.chaos.contains(&chaos)
    }

    /// Whether replicas take over from their primaries.
    pub(crate) fn has_failovers(&self) -> bool {
        self.chaos.iter().any(|kind| kind.needs_replicas())
    }

    /// Refuses what each value allows but all together do not.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let needs_own = self.chaos.iter().find(|kind| kind.needs_own_cluster());
        if let Some(kind) = needs_own.filter(|_| !self.cluster.is_empty()) {
            anyhow::bail!("{} needs a cluster of our own: leave --cluster out", kind.name());
        }
        anyhow::ensure!(
            !self.defaults || self.has_failovers(),
            "--defaults is about what failovers may lose: --chaos failover, failovers-in-a-row or cut-bus"
        );
        anyhow::ensure!(
            self.over.is_none() || self.archive.is_none() && self.beside.is_none(),
            "--over goes with no --archive or --beside: HTTP doesn't tell what an archive lacks, and an older build \
             has no server"
        );
        let (breaks, is_alone) = (self.sabotage, self.archive == Some(ArchiveKind::Sqlite));
        anyhow::ensure!(
            (breaks != Some(Sabotage::Beside) || self.beside.is_some())
                && (breaks != Some(Sabotage::AtOdds) || self.beside.is_none() && self.instances > 1)
                && (breaks != Some(Sabotage::Hole) || self.chaos.is_empty()),
            "what is broken needs another build (beside: --beside), a second instance of this one (at-odds), or that \
             nothing else goes wrong (hole)"
        );
        anyhow::ensure!(
            self.instances > 1 || is_alone || !self.has(Chaos::KillInstance),
            "somebody must finish the work of an instance that is killed: --instances 2 or more"
        );
        self.check_archive()
    }

    /// The same of what goes with an archive.
    fn check_archive(&self) -> anyhow::Result<()> {
        let about = self.sabotage.map(Sabotage::is_about_archives);
        anyhow::ensure!(
            self.archive.is_none()
                || self.beside.is_none() && about != Some(false) && self.cluster.is_empty(),
            "--archive needs a cluster of our own, and nothing beside that doesn't know archives"
        );
        anyhow::ensure!(
            self.archive.is_some() || about != Some(true),
            "what is broken is about an archive: --archive"
        );
        let needs_server = self.chaos.iter().find(|kind| kind.actor() == Actor::Archive);
        if let Some(kind) = needs_server.filter(|_| self.archive != Some(ArchiveKind::Postgres)) {
            anyhow::bail!("{} strikes the archive's server: --archive postgres", kind.name());
        }
        if self.archive != Some(ArchiveKind::Sqlite) {
            return Ok(());
        }
        anyhow::ensure!(
            !self.has(Chaos::SleepInstance),
            "sleep-instance goes with --archive postgres only: another instance comes while one sleeps, and one \
             process may have a file of SQLite"
        );
        let needs_process = self.chaos.iter().find(|kind| kind.needs_processes());
        if let Some(kind) = needs_process.filter(|_| self.instances > 1) {
            anyhow::bail!(
                "{} strikes a process, and with --archive sqlite several instances are in this one: --instances 1",
                kind.name()
            );
        }
        Ok(())
    }
}
