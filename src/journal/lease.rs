//! Leases: which instances are alive. One hash in bucket 0, instance -> bytes that are others after each renewal; what
//! these say of the living is in `living`. An import and engines exclude each other: of the two the server writes
//! only the one that comes first.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as SyncMutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::Journal;
use super::living::SeenLeases;
use crate::bucket::Bucket;
use crate::cluster::Request;
use crate::error::{Error, ErrorKind, Result};
use crate::functions;
use crate::nonce::Nonce;
use crate::tenant::Tenant;

/// This instance's lease, and what it has seen of the others'.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    /// Whether it was given back. Renewing and giving back take turns, so that no renewal comes after the end.
    is_given_back: Mutex<bool>,
    seen: SyncMutex<SeenLeases>,
    /// Instances alive when that was last looked up; 0: it was not yet.
    instances: AtomicUsize,
}

impl Lease {
    pub(super) fn instances_are(&self, many: usize) {
        self.instances.store(many, Ordering::Relaxed);
    }

    pub(super) fn instances(&self) -> usize {
        self.instances.load(Ordering::Relaxed).max(1)
    }

    fn seen(&self) -> MutexGuard<'_, SeenLeases> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Renews this instance's lease until the engine is gone, or gives it back; also while it drains.
pub(crate) async fn keep_lease(journal: Weak<Journal>) {
    loop {
        let Some(journal) = journal.upgrade() else { return };
        match renew(&journal).await {
            Ok(RenewalOutcome::Yes) => {}
            Ok(RenewalOutcome::Undecided) => {
                tracing::warn!(
                    "this instance was silent for longer than its lease, and the lease of an import stands there: \
                     looking whether that import lives"
                );
            }
            Ok(RenewalOutcome::GivenBack) => return,
            Ok(RenewalOutcome::GaveWay) => {
                tracing::error!(
                    "an import has begun while this instance was silent for longer than its lease: it stops; start it \
                     again when the import has finished"
                );
                return journal.tasks.stop();
            }
            Err(e) => {
                tracing::warn!(
                    "the lease could not be renewed; others may take work over that is under way: {e}"
                );
            }
        }
        let period = journal.tenant.settings.lease_renewal;
        drop(journal);
        sleep(period).await;
    }
}

/// The outcome of a renewal.
enum RenewalOutcome {
    Yes,
    /// Not written: the lease of an import stands there, and nobody knows yet whether that one lives.
    Undecided,
    /// The lease was given back before.
    GivenBack,
    /// It is given back now: an import has the tenant.
    GaveWay,
}

/// Says that this instance lives, unless the lease of an import stands there.
async fn renew(journal: &Journal) -> Result<RenewalOutcome> {
    let tenant = &journal.tenant;
    let mut is_given_back = journal.tasks.lease.is_given_back.lock().await;
    if *is_given_back {
        return Ok(RenewalOutcome::GivenBack);
    }
    ask(journal, &tenant.instance, ttl_ms(tenant)).await?;
    let (is_there, is_alive) = {
        let seen = journal.tasks.lease.seen();
        (seen.has(IMPORT), seen.is_renewed(IMPORT))
    };
    match (is_there, is_alive) {
        (false, _) => Ok(RenewalOutcome::Yes),
        (true, false) => Ok(RenewalOutcome::Undecided),
        (true, true) => {
            // First, and also if the next step fails: a lease that nobody renews is over after its time.
            *is_given_back = true;
            ask(journal, &tenant.instance, 0).await?;
            Ok(RenewalOutcome::GaveWay)
        }
    }
}

fn ttl_ms(tenant: &Tenant) -> u64 {
    u64::try_from(tenant.settings.lease_ttl.as_millis()).unwrap_or(u64::MAX)
}

/// The time to wait for the next look at leases that nobody has seen renewed yet: several looks make one lease's time.
fn look_again(tenant: &Tenant) -> Duration {
    tenant.settings.lease_renewal / 4
}

/// Says that this instance has ended: what it left may be taken over at once.
pub(crate) async fn end(journal: &Journal) -> Result<()> {
    let mut is_given_back = journal.tasks.lease.is_given_back.lock().await;
    *is_given_back = true;
    ask(journal, &journal.tenant.instance, 0).await
}

/// The instances that are alive, as far as this one knows: of whom it has seen too little it believes it.
pub(crate) async fn living(journal: &Journal) -> Result<HashSet<Nonce>> {
    ask(journal, &[], 1).await?;
    Ok(journal.tasks.lease.seen().living())
}

/// The living instances as of the last look, if the leases' server is away; and whether it is.
pub(super) async fn living_or_before(journal: &Journal) -> (HashSet<Nonce>, bool) {
    let (mut living, is_old) = match living(journal).await {
        Ok(living) => (living, false),
        Err(e) => {
            tracing::debug!("who lives could not be asked, what was seen last counts: {e}");
            (journal.tasks.lease.seen().living(), true)
        }
    };
    // Whatever the leases say: what this instance runs nobody here takes over.
    living.insert(journal.tenant.instance);
    (living, is_old)
}

/// [`living`] once it is known of each lease whether it is renewed: that takes as long as one lasts, at most. For those
/// who have looked too seldom to know.
pub(crate) async fn surely_living(journal: &Journal) -> Result<HashSet<Nonce>> {
    loop {
        let living = living(journal).await?;
        if journal.tasks.lease.seen().is_decided(&journal.tenant.instance) {
            return Ok(living);
        }
        sleep(look_again(&journal.tenant)).await;
    }
}

/// Renews a lease (0: gives it back; no name: neither), takes away those that are over, and notes what all say.
async fn ask(journal: &Journal, name: &[u8], ttl_ms: u64) -> Result<()> {
    let tenant = &journal.tenant;
    let lease = &journal.tasks.lease;
    // With what stood there when they were seen to be over: one that is renewed meanwhile stays.
    let over = if name.is_empty() { Vec::new() } else { lease.seen().over() };
    let command = functions::lease_renew(tenant.keys().living(), name, ttl_ms, &over);
    let slot = tenant.keys().buckets().slot(Bucket(0));
    let now = Instant::now();
    let answer = tenant.router().ask(Request::write(slot, command)).await?;
    let said_by = answer.epoch.clone();
    lease.seen().see((now, said_by), functions::parse_leases(answer.ok()?)?, tenant.settings.lease_ttl);
    Ok(())
}

/// The name under which an import holds the tenant: engines don't start while it lives, nor it while they do.
pub(crate) const IMPORT: &[u8; 8] = b"(import)";

/// Holds the tenant for an import from now on. Refused while engines serve it; those that were killed are waited for as
/// long as their leases last.
pub(crate) async fn begin_import(journal: &Arc<Journal>) -> Result<()> {
    hold_alone(journal).await?;
    let held = Arc::downgrade(journal);
    // Not among what a stop ends (`Tasks::beside`): the hold lasts until it is given back, after all else.
    tokio::spawn(async move {
        loop {
            let Some(period) = held.upgrade().map(|journal| journal.tenant.settings.lease_renewal) else {
                return;
            };
            sleep(period).await;
            let Some(journal) = held.upgrade() else { return };
            match hold_for_import(&journal).await {
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
enum ImportHold {
    Ours,
    /// So many leases of engines stand there. `serve`: one of them was seen to be renewed.
    Others {
        count: usize,
        serve: bool,
    },
}

/// Takes the tenant for an import, or holds it for longer: unless leases of engines stand there.
async fn hold(journal: &Journal) -> Result<ImportHold> {
    let is_given_back = journal.tasks.lease.is_given_back.lock().await;
    if *is_given_back {
        let text = "this import was given up because instances serve its tenant, or is over";
        return Err(Error::new(ErrorKind::Conflict, text));
    }
    ask(journal, IMPORT, ttl_ms(&journal.tenant)).await?;
    Ok(match journal.tasks.lease.seen().engines() {
        (0, _) => ImportHold::Ours,
        (count, serve) => ImportHold::Others { count, serve },
    })
}

/// Takes or renews the hold once no lease of an engine stands there. Refused for good once one was seen to be renewed:
/// as [`hold_for_import`], and waits for the lease of which nobody knows yet whose it is (H256).
pub(crate) async fn hold_alone(journal: &Journal) -> Result<()> {
    loop {
        match hold(journal).await? {
            ImportHold::Ours => return Ok(()),
            ImportHold::Others { serve: false, .. } => sleep(look_again(&journal.tenant)).await,
            ImportHold::Others { count, serve: true } => return give_up(journal, count).await,
        }
    }
}

/// Renews the hold of an import. Refused for good once an engine was seen to live: it has begun after us. The lease of
/// one that has ended may have come back with a failover (H102): it is waited for, and the import goes on.
pub(crate) async fn hold_for_import(journal: &Journal) -> Result<()> {
    match hold(journal).await? {
        ImportHold::Ours | ImportHold::Others { serve: false, .. } => Ok(()),
        ImportHold::Others { count, serve: true } => give_up(journal, count).await,
    }
}

async fn give_up(journal: &Journal, others: usize) -> Result<()> {
    let mut is_given_back = journal.tasks.lease.is_given_back.lock().await;
    *is_given_back = true;
    ask(journal, IMPORT, 0).await?;
    let text = format!("{others} instances serve this tenant, and this needs it for itself: stop them first");
    Err(Error::new(ErrorKind::Conflict, text))
}

/// The import is over.
pub(crate) async fn end_import(journal: &Journal) -> Result<()> {
    let mut is_given_back = journal.tasks.lease.is_given_back.lock().await;
    *is_given_back = true;
    ask(journal, IMPORT, 0).await
}

/// Starts keeping the lease; the first one stands before anything is accepted. The lease of an import that was killed
/// is waited for as long as it lasts.
pub(crate) async fn begin(journal: &Arc<Journal>) -> Result<()> {
    loop {
        match renew(journal).await? {
            RenewalOutcome::Yes => break,
            RenewalOutcome::Undecided => sleep(look_again(&journal.tenant)).await,
            RenewalOutcome::GivenBack | RenewalOutcome::GaveWay => {
                let text = "an import is filling this tenant: start again when it has finished";
                return Err(Error::new(ErrorKind::Conflict, text));
            }
        }
    }
    // Not among what a stop ends (`Tasks::beside`): what still runs then is ours until the lease is given back.
    tokio::spawn(keep_lease(Arc::downgrade(journal)));
    Ok(())
}
