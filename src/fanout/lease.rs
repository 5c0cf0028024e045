//! Leases: which instances are alive. One hash in bucket 0, instance -> until when, by that server's clock.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use crate::bucket::Bucket;
use crate::cluster::Request;
use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{self, Mark, mark};

/// Renews this instance's lease until the engine is gone or stopped.
pub(crate) async fn keep_lease(context: Weak<Context>) {
    loop {
        let Some(context) = context.upgrade() else { return };
        if context.tasks.is_stopping() {
            return;
        }
        if let Err(e) = renew(&context).await {
            tracing::warn!(
                "the lease could not be renewed; others may take work over that is under way: {e}"
            );
        }
        let period = context.settings.lease_renewal;
        drop(context);
        tokio::time::sleep(period).await;
    }
}

/// Says that this instance lives.
pub(crate) async fn renew(context: &Context) -> Result<()> {
    let ttl = u64::try_from(context.settings.lease_ttl.as_millis()).unwrap_or(u64::MAX);
    ask(context, &context.instance, ttl).await.map(drop)
}

/// Says that this instance has ended: what it left may be claimed at once.
pub(crate) async fn end(context: &Context) -> Result<()> {
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
    names.iter().map(mark).collect()
}

/// The name under which an import holds the tenant: engines don't start while it lives, nor it while they do.
const IMPORT: &[u8; 8] = b"(import)";

/// Holds the tenant for an import, or renews that. Refused while engines serve it.
pub(crate) async fn hold_for_import(context: &Context) -> Result<()> {
    let ttl = u64::try_from(context.settings.lease_ttl.as_millis()).unwrap_or(u64::MAX);
    let others = ask(context, IMPORT, ttl).await?.into_iter().filter(|name| name != IMPORT).count();
    if others == 0 {
        return Ok(());
    }
    end_import(context).await?;
    Err(Error::new(
        ErrorKind::Conflict,
        format!("{others} instances serve this tenant: an import needs it for itself; stop them first"),
    ))
}

/// The import is over.
pub(crate) async fn end_import(context: &Context) -> Result<()> {
    ask(context, IMPORT, 0).await.map(drop)
}

/// Starts keeping the lease; the first one stands before anything is accepted.
pub(crate) async fn begin(context: &Arc<Context>) -> Result<()> {
    renew(context).await?;
    if living(context).await?.contains(IMPORT) {
        end(context).await?;
        return Err(Error::new(
            ErrorKind::Conflict,
            "an import is filling this tenant: start again when it has finished (a killed one ends by itself soon)",
        ));
    }
    tokio::spawn(keep_lease(Arc::downgrade(context)));
    Ok(())
}
