//! Leases: which instances are alive. One hash in bucket 0, instance -> bytes that are others after each renewal; what
//! these say of the living is in `living`. An import and engines exclude each other: of the two the server writes
//! only the one that comes first.

use std::collections::HashSet;
use std::sync::{Arc, Mutex as SyncMutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::living::Leases;
use crate::bucket::Bucket;
use crate::cluster::Request;
use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::functions;
use crate::nonce::Nonce;
use crate::tenant::Tenant;

/// This instance's lease, and what it has seen of the others'.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    /// Whether it was given back. Renewing and giving back take turns, so that no renewal comes after the end.
    is_given_back: Mutex<bool>,
    seen: SyncMutex<Leases>,
}

impl Lease {
    fn seen(&self) -> MutexGuard<'_, Leases> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Renews this instance's lease until the engine is gone, or gives it back; also while it drains.
pub(crate) async fn keep_lease(context: Weak<Context>) {
    loop {
        let Some(context) = context.upgrade() else { return };
        match renew(&context).await {
            Ok(Renewed::Yes) => {}
            Ok(Renewed::Undecided) => {
                tracing::warn!(
                    "this instance was silent for longer than its lease, and the lease of an import stands there: \
                     looking whether that import lives"
                );
            }
            Ok(Renewed::GivenBack) => return,
            Ok(Renewed::GaveWay) => {
                tracing::error!(
                    "an import has begun while this instance was silent for longer than its lease: it stops; start it \
                     again when the import has finished"
                );
                return context.tasks.stop();
            }
            Err(e) => {
                tracing::warn!(
                    "the lease could not be renewed; others may take work over that is under way: {e}"
                );
            }
        }
        let period = context.settings.lease_renewal;
        drop(context);
        sleep(period).await;
    }
}

/// What became of a renewal.
enum Renewed {
    Yes,
    /// Not written: the lease of an import stands there, and nobody knows yet whether that one lives.
    Undecided,
    /// The lease was given back before.
    GivenBack,
    /// It is given back now: an import has the tenant.
    GaveWay,
}

/// Says that this instance lives, unless the lease of an import stands there.
async fn renew(context: &Context) -> Result<Renewed> {
    let mut is_given_back = context.tasks.lease.is_given_back.lock().await;
    if *is_given_back {
        return Ok(Renewed::GivenBack);
    }
    ask(context, &context.instance, ttl_ms(context)).await?;
    let (is_there, is_alive) = {
        let seen = context.tasks.lease.seen();
        (seen.has(IMPORT), seen.is_renewed(IMPORT))
    };
    match (is_there, is_alive) {
        (false, _) => Ok(Renewed::Yes),
        (true, false) => Ok(Renewed::Undecided),
        (true, true) => {
            *is_given_back = true;
            ask(context, &context.instance, 0).await?;
            Ok(Renewed::GaveWay)
        }
    }
}

fn ttl_ms(tenant: &Tenant) -> u64 {
    u64::try_from(tenant.settings.lease_ttl.as_millis()).unwrap_or(u64::MAX)
}

/// How long to wait for the next look at leases that nobody has seen renewed yet: several looks make one lease's time.
fn look_again(tenant: &Tenant) -> Duration {
    tenant.settings.lease_renewal / 4
}

/// Says that this instance has ended: what it left may be claimed at once.
pub(crate) async fn end(context: &Context) -> Result<()> {
    let mut is_given_back = context.tasks.lease.is_given_back.lock().await;
    *is_given_back = true;
    ask(context, &context.instance, 0).await
}

/// The instances that are alive, as far as this one knows: of whom it has seen too little it believes it.
pub(crate) async fn living(context: &Context) -> Result<HashSet<Nonce>> {
    ask(context, &[], 1).await?;
    Ok(context.tasks.lease.seen().living())
}

/// The same as of the last look, if the leases' server is away; and whether it is.
pub(super) async fn living_or_before(context: &Context) -> (HashSet<Nonce>, bool) {
    let (mut living, is_old) = match living(context).await {
        Ok(living) => (living, false),
        Err(e) => {
            tracing::debug!("who lives could not be asked, what was seen last counts: {e}");
            (context.tasks.lease.seen().living(), true)
        }
    };
    living.insert(context.instance);
    (living, is_old)
}

/// [`living`] once it is known of each lease whether it is renewed: that takes as long as one lasts, at most. For those who have
/// looked too seldom to know.
pub(crate) async fn surely_living(context: &Context) -> Result<HashSet<Nonce>> {
    loop {
        let living = living(context).await?;
        if context.tasks.lease.seen().is_decided(&context.instance) {
            return Ok(living);
        }
        sleep(look_again(context)).await;
    }
}

/// Renews a lease (0: gives it back; no name: neither), takes away those that are over, and notes what all say.
async fn ask(context: &Context, name: &[u8], ttl_ms: u64) -> Result<()> {
    let lease = &context.tasks.lease;
    let over = if name.is_empty() { Vec::new() } else { lease.seen().over() };
    let command = functions::lease_renew(context.keys().living(), name, ttl_ms, &over);
    let slot = context.keys().buckets().slot(Bucket(0));
    let now = Instant::now();
    let answer = context.router().ask(Request::write(slot, command)).await?;
    let said_by = answer.epoch.clone();
    lease.seen().see((now, said_by), functions::parse_leases(answer.ok()?)?, context.settings.lease_ttl);
    Ok(())
}

/// The name under which an import holds the tenant: engines don't start while it lives, nor it while they do.
pub(crate) const IMPORT: &[u8; 8] = b"(import)";

/// Holds the tenant for an import from now on. Refused while engines serve it; those that were killed are waited for as long
/// as their leases last.
pub(crate) async fn begin_import(context: &Arc<Context>) -> Result<()> {
    loop {
        match hold(context).await? {
            Hold::Ours => break,
            Hold::Others { serve: false, .. } => sleep(look_again(context)).await,
            Hold::Others { count, serve: true } => return give_up(context, count).await,
        }
    }
    let held = Arc::downgrade(context);
    tokio::spawn(async move {
        loop {
            let Some(period) = held.upgrade().map(|context| context.settings.lease_renewal) else { return };
            sleep(period).await;
            let Some(context) = held.upgrade() else { return };
            match hold_for_import(&context).await {
                // Whoever imports is told by its next call.
                Err(e) if e.kind() == ErrorKind::Conflict => return,
                Err(e) => tracing::warn!("the hold of an import could not be renewed: {e}"),
                Ok(()) => {}
            }
        }
    });
    Ok(())
}

/// Whether an import holds its tenant.
enum Hold {
    Ours,
    /// So many leases of engines stand there. `serve`: one of them was seen to be renewed.
    Others {
        count: usize,
        serve: bool,
    },
}

/// Takes the tenant for an import, or holds it for longer: unless leases of engines stand there.
async fn hold(context: &Context) -> Result<Hold> {
    let is_given_back = context.tasks.lease.is_given_back.lock().await;
    if *is_given_back {
        let text = "this import was given up because instances serve its tenant, or is over";
        return Err(Error::new(ErrorKind::Conflict, text));
    }
    ask(context, IMPORT, ttl_ms(context)).await?;
    Ok(match context.tasks.lease.seen().engines() {
        (0, _) => Hold::Ours,
        (count, serve) => Hold::Others { count, serve },
    })
}

/// Renews the hold of an import. Refused for good once an engine was seen to live: it has begun after us. The lease of one
/// that has ended may have come back with a failover (H102): it is waited for, and the import goes on.
pub(crate) async fn hold_for_import(context: &Context) -> Result<()> {
    match hold(context).await? {
        Hold::Ours | Hold::Others { serve: false, .. } => Ok(()),
        Hold::Others { count, serve: true } => give_up(context, count).await,
    }
}

async fn give_up(context: &Context, others: usize) -> Result<()> {
    let mut is_given_back = context.tasks.lease.is_given_back.lock().await;
    *is_given_back = true;
    ask(context, IMPORT, 0).await?;
    let text =
        format!("{others} instances serve this tenant: an import needs it for itself; stop them first");
    Err(Error::new(ErrorKind::Conflict, text))
}

/// The import is over.
pub(crate) async fn end_import(context: &Context) -> Result<()> {
    let mut is_given_back = context.tasks.lease.is_given_back.lock().await;
    *is_given_back = true;
    ask(context, IMPORT, 0).await
}

/// Starts keeping the lease; the first one stands before anything is accepted. The lease of an import that was killed is
/// waited for as long as it lasts.
pub(crate) async fn begin(context: &Arc<Context>) -> Result<()> {
    loop {
        match renew(context).await? {
            Renewed::Yes => break,
            Renewed::Undecided => sleep(look_again(context)).await,
            Renewed::GivenBack | Renewed::GaveWay => {
                let text = "an import is filling this tenant: start again when it has finished";
                return Err(Error::new(ErrorKind::Conflict, text));
            }
        }
    }
    tokio::spawn(keep_lease(Arc::downgrade(context)));
    Ok(())
}
