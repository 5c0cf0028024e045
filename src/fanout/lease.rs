//! Leases: which instances are alive. One hash in bucket 0, instance -> until when, by that server's clock.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::bucket::Bucket;
use crate::cluster::Request;
use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{self, Mark, mark};

/// Until when this instance's lease lasts by its own clock, as it was last renewed; `None`: it was given back. Renewing
/// and giving back take turns, so that no renewal comes after the end.
#[derive(Debug)]
pub(crate) struct Lease(Mutex<Option<Instant>>);

impl Default for Lease {
    fn default() -> Self {
        Self(Mutex::new(Some(Instant::now())))
    }
}

/// Renews this instance's lease until the engine is gone, or gives it back; also while it drains.
pub(crate) async fn keep_lease(context: Weak<Context>) {
    loop {
        let Some(context) = context.upgrade() else { return };
        match renew(&context).await {
            Ok(Renewed::Yes) => {}
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
        tokio::time::sleep(period).await;
    }
}

/// What became of a renewal.
enum Renewed {
    Yes,
    /// The lease was given back before.
    GivenBack,
    /// It is given back now: an import has the tenant.
    GaveWay,
}

/// Says that this instance lives.
async fn renew(context: &Context) -> Result<Renewed> {
    let mut lease = context.tasks.lease.0.lock().await;
    let Some(until) = *lease else { return Ok(Renewed::GivenBack) };
    let is_import = |living: &HashSet<Mark>| living.contains(IMPORT);
    // Whose lease is over looks before it writes: the import goes on, and needn't give way to us.
    let mut gives_way = Instant::now() >= until && is_import(&living(context).await?);
    if !gives_way {
        let began = Instant::now();
        gives_way = is_import(&ask(context, &context.instance, ttl_ms(context)).await?);
        *lease = Some(began + context.settings.lease_ttl);
    }
    if !gives_way {
        return Ok(Renewed::Yes);
    }
    *lease = None;
    ask(context, &context.instance, 0).await?;
    Ok(Renewed::GaveWay)
}

fn ttl_ms(context: &Context) -> u64 {
    u64::try_from(context.settings.lease_ttl.as_millis()).unwrap_or(u64::MAX)
}

/// Says that this instance has ended: what it left may be claimed at once.
pub(crate) async fn end(context: &Context) -> Result<()> {
    let mut lease = context.tasks.lease.0.lock().await;
    *lease = None;
    ask(context, &context.instance, 0).await.map(drop)
}

/// The instances that are alive.
pub(crate) async fn living(context: &Context) -> Result<HashSet<Mark>> {
    ask(context, &[], 1).await
}

async fn ask(context: &Context, name: &[u8], ttl_ms: u64) -> Result<HashSet<Mark>> {
    let command = functions::lease_renew(context.keys().living(), name, ttl_ms);
    let slot = context.keys().buckets().slot(Bucket(0));
    let names = context.router().call(Request::write(slot, command)).await?.into_array()?;
    // What is no name is nobody's: it must not keep everybody from starting.
    Ok(names.iter().filter_map(|name| mark(name).ok()).collect())
}

/// The name under which an import holds the tenant: engines don't start while it lives, nor it while they do.
pub(crate) const IMPORT: &[u8; 8] = b"(import)";

/// Holds the tenant for an import from now on. Refused while engines serve it.
pub(crate) async fn begin_import(context: &Arc<Context>) -> Result<()> {
    hold_for_import(context).await?;
    let held = Arc::downgrade(context);
    tokio::spawn(async move {
        loop {
            let Some(period) = held.upgrade().map(|context| context.settings.lease_renewal) else { return };
            tokio::time::sleep(period).await;
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

/// Renews the hold of an import. Refused for good once an engine was met.
pub(crate) async fn hold_for_import(context: &Context) -> Result<()> {
    let mut lease = context.tasks.lease.0.lock().await;
    let conflict = |text: String| Err(Error::new(ErrorKind::Conflict, text));
    if lease.is_none() {
        return conflict("this import was given up because instances serve its tenant, or is over".into());
    }
    let others =
        ask(context, IMPORT, ttl_ms(context)).await?.into_iter().filter(|name| name != IMPORT).count();
    if others == 0 {
        return Ok(());
    }
    *lease = None;
    ask(context, IMPORT, 0).await?;
    conflict(format!("{others} instances serve this tenant: an import needs it for itself; stop them first"))
}

/// The import is over.
pub(crate) async fn end_import(context: &Context) -> Result<()> {
    let mut lease = context.tasks.lease.0.lock().await;
    *lease = None;
    ask(context, IMPORT, 0).await.map(drop)
}

/// Starts keeping the lease; the first one stands before anything is accepted.
pub(crate) async fn begin(context: &Arc<Context>) -> Result<()> {
    if !matches!(renew(context).await?, Renewed::Yes) {
        return Err(Error::new(
            ErrorKind::Conflict,
            "an import is filling this tenant: start again when it has finished (a killed one ends by itself soon)",
        ));
    }
    tokio::spawn(keep_lease(Arc::downgrade(context)));
    Ok(())
}
