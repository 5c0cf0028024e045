//! A tenant's data on a cluster: the router, the keys, the clocks and the sets that belong together.

use crate::bucket::Buckets;
use crate::charter::{self, Decision, NewTenantRule, charter};
use crate::cluster::{Router, RouterSettings, Seed};
use crate::error::{CallFuture, Result};
use crate::functions::{self, Clock};
use crate::keys::Keyspace;
use crate::post::TagKey;
use crate::sharded::{SetSettings, Sets};

/// Options to open a [`Store`] with.
#[derive(Debug, Clone, Default)]
pub struct StoreOptions {
    /// Some nodes of the cluster: `redis://` or `rediss://`, `[user[:password]@]host[:port]`.
    pub seeds: Vec<Seed>,
    /// The beginning of all keys of this tenant; may be empty.
    pub prefix: String,
    /// The number of the tenant's buckets. `None`: what it was initialized with, or 1024 if it is new.
    pub buckets: Option<u16>,
    /// Settings of the router.
    pub router: RouterSettings,
    /// Settings of sharded sets.
    pub sets: SetSettings,
}

impl StoreOptions {
    /// The defaults, for the cluster of these seeds.
    pub fn new<S: Into<Seed>>(seeds: impl IntoIterator<Item = S>) -> Self {
        Self { seeds: seeds.into_iter().map(Into::into).collect(), ..Self::default() }
    }
}

/// A tenant's data on a cluster. Copies are cheap and share connections.
///
/// ```no_run
/// # async fn example() -> tideline::Result<()> {
/// use tideline::{AccountId, Store, StoreOptions};
///
/// let store = Store::open(StoreOptions::new(["redis://127.0.0.1:7000"])).await?;
/// let followers = store.sets().of_account::<AccountId>(AccountId::new(7)?, "followers")?;
/// followers.add(&[(AccountId::new(8)?, 1_700_000_000_000.0)]).await?;
/// assert_eq!(followers.len().await?, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Store {
    router: Router,
    keys: Keyspace,
    sets: Sets,
    clock: Clock,
    tags: TagKey,
}

impl Store {
    /// Connects, and initializes the tenant if it is new.
    ///
    /// Fails if the cluster cannot be reached or its settings would lose data ([`Router::connect`]), and if the
    /// tenant was initialized with another number of buckets or by a release with another format.
    ///
    /// A tenant that is new has decided nothing then: it does where an [`Engine`](crate::Engine) begins it.
    pub fn open(options: StoreOptions) -> CallFuture<'static, Self> {
        Box::pin(Self::open_or(options, NewTenantRule::Begun(None)))
    }

    /// Opens a tenant, which decides this if it is new.
    pub(crate) async fn open_deciding(options: StoreOptions, decision: &Decision) -> Result<Self> {
        Self::open_or(options, NewTenantRule::Begun(Some(decision))).await
    }

    /// Connects to a tenant that somebody has opened before; [`NotFound`](crate::ErrorKind::NotFound) if nobody has.
    pub fn open_existing(options: StoreOptions) -> CallFuture<'static, Self> {
        Box::pin(Self::open_or(options, NewTenantRule::Refused))
    }

    async fn open_or(options: StoreOptions, if_new: NewTenantRule<'_>) -> Result<Self> {
        let wanted = options.buckets.map(Buckets::new).transpose()?;
        let library = Some(functions::library());
        let router = Router::connect(&options.seeds, &options.prefix, options.router, library).await?;
        let (mut is_new, prefix) = (false, &options.prefix);
        let (buckets, tags) = charter(&router, prefix, wanted, if_new, &mut is_new).await?;
        let keys = Keyspace::new(&options.prefix, buckets)?;
        let sets = Sets::new(router.clone(), keys.clone(), options.sets)?;
        let clock = Clock::new(router.clone(), keys.clone());
        let store = Self { router, keys, sets, clock, tags };
        if is_new && let NewTenantRule::Begun(decided) = if_new {
            charter::tell_what_stands(&store.router, &store.keys, decided).await?;
        }
        Ok(store)
    }

    /// Brings back a tenant's record that is gone, layout, key of hashtags and decision, from what its buckets know.
    /// Where it is there, only what it lacks. Tells what the tenant has decided.
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound): no bucket knows of a tenant under that prefix.
    pub fn restore(options: StoreOptions) -> CallFuture<'static, Decision> {
        Box::pin(async move {
            let library = Some(functions::library());
            let router = Router::connect(&options.seeds, &options.prefix, options.router, library).await?;
            charter::restore(&router, &options.prefix).await
        })
    }

    /// The router to the cluster.
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// The keys, and how many buckets there are.
    pub fn keys(&self) -> &Keyspace {
        &self.keys
    }

    /// The sharded sorted sets of the tenant.
    pub fn sets(&self) -> &Sets {
        &self.sets
    }

    /// The key that the numbers of hashtags are computed with.
    pub(crate) fn tags(&self) -> TagKey {
        self.tags
    }

    /// The clock that ids and ticks come from.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }
}
