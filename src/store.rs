//! A tenant's data on a cluster: the router, the keys, the clocks and the sets that belong together.

use crate::bucket::Buckets;
use crate::cluster::{Batch, Command, Request, Router, RouterSettings, Touched};
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{self, Clock};
use crate::keys::Keyspace;
use crate::sharded::{SetSettings, Sets};

/// Version of how data is stored. A store of another one is refused.
pub const FORMAT: u32 = 1;

/// How to open a [`Store`].
#[derive(Debug, Clone, Default)]
pub struct StoreOptions {
    /// Some nodes of the cluster: `redis://` or `rediss://`, `[user[:password]@]host[:port]`.
    pub seeds: Vec<String>,
    /// What all keys of this tenant begin with; may be empty.
    pub prefix: String,
    /// How many buckets the tenant has. `None`: what it was initialized with, or 1024 if it is new.
    pub buckets: Option<u16>,
    /// How to talk to the cluster.
    pub router: RouterSettings,
    /// How sharded sets behave.
    pub sets: SetSettings,
}

impl StoreOptions {
    /// The defaults, for the cluster of these seeds.
    pub fn new<S: Into<String>>(seeds: impl IntoIterator<Item = S>) -> Self {
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
}

impl Store {
    /// Connects, and initializes the tenant if it is new.
    ///
    /// Fails if the cluster cannot be reached or its settings would lose data ([`Router::connect`]), and if the
    /// tenant was initialized with another number of buckets or by a release with another format.
    pub async fn open(options: StoreOptions) -> Result<Self> {
        Self::open_or_initialize(options, true).await
    }

    /// Connects to a tenant that somebody has opened before; [`NotFound`](crate::ErrorKind::NotFound) if nobody has.
    pub async fn open_existing(options: StoreOptions) -> Result<Self> {
        Self::open_or_initialize(options, false).await
    }

    async fn open_or_initialize(options: StoreOptions, initializes: bool) -> Result<Self> {
        let wanted = options.buckets.map(Buckets::new).transpose()?;
        let library = Some(functions::library());
        let router = Router::connect(&options.seeds, &options.prefix, options.router, library).await?;
        let buckets = charter(&router, &options.prefix, wanted, initializes).await?;
        let keys = Keyspace::new(&options.prefix, buckets)?;
        let sets = Sets::new(router.clone(), keys.clone(), options.sets)?;
        let clock = Clock::new(router.clone(), keys.clone());
        Ok(Self { router, keys, sets, clock })
    }

    /// A store without servers: what it sends is answered by the simulation.
    #[cfg(test)]
    pub(crate) fn simulated(router: Router, keys: Keyspace, sets: SetSettings) -> Result<Self> {
        let sets = Sets::new(router.clone(), keys.clone(), sets)?;
        let clock = Clock::new(router.clone(), keys.clone());
        Ok(Self { router, keys, sets, clock })
    }

    /// The router.
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// The keys, and how many buckets there are.
    pub fn keys(&self) -> &Keyspace {
        &self.keys
    }

    /// Sharded sorted sets.
    pub fn sets(&self) -> &Sets {
        &self.sets
    }

    /// Ids and stamps.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }
}

/// Writes how the tenant is laid out if nobody has yet, if that is wanted, and reads how it is.
async fn charter(
    router: &Router,
    prefix: &str,
    wanted: Option<Buckets>,
    initializes: bool,
) -> Result<Buckets> {
    // Its key is the same for every number of buckets: bucket 0 always lies in slot 0.
    let keys = Keyspace::new(prefix, Buckets::default())?;
    let key = keys.charter();
    let slot = keys.buckets().slot(crate::bucket::Bucket(0));
    let set = |field: &str, value: u32| {
        Request::write(slot, Command::new("HSETNX").arg(&key).arg(field).arg(value))
    };
    let mut batch = Batch::new();
    let wanted_or_default = u32::from(wanted.unwrap_or_default().count());
    let get = Request::read(slot, Command::new("HMGET").arg(&key).arg("format").arg("buckets"));
    let sets = [set("format", FORMAT), set("buckets", wanted_or_default)];
    batch.push_ordered(sets.into_iter().filter(|_| initializes).chain([get]));
    let mut answers = router.run(batch).await;
    let charter = answers.pop().unwrap_or_else(|| Err(Error::internal("no charter")))?.ok()?.into_array()?;
    let (mut touched, mut is_new) = (Touched::new(), false);
    for answer in answers {
        let answer = answer?;
        touched.add(&answer);
        is_new |= answer.ok()?.int()? == 1;
    }
    if is_new {
        // What all data will hang on must not get lost in a failover.
        router.fence(&touched).await?;
    }
    let [format, buckets] = charter.as_slice() else {
        return Err(Error::internal("a charter has two fields"));
    };
    if format.is_nil() {
        let under = if prefix.is_empty() { "the empty prefix".into() } else { format!("prefix `{prefix}`") };
        let text = format!("there is no data under {under}: nobody has opened it yet");
        return Err(Error::new(ErrorKind::NotFound, text));
    }
    let (format, buckets) = (format.count()?, buckets.count()?);
    if format != u64::from(FORMAT) {
        return Err(Error::misconfigured(format!(
            "the data under prefix `{prefix}` has format {format}, this release reads and writes format {FORMAT}"
        )));
    }
    let found = Buckets::new(u16::try_from(buckets).unwrap_or(0))?;
    match wanted {
        Some(wanted) if wanted != found => Err(Error::misconfigured(format!(
            "the data under prefix `{prefix}` has {buckets} buckets, which is fixed for good; asked for {}",
            wanted.count()
        ))),
        _ => Ok(found),
    }
}
