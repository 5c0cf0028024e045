//! A tenant whose instances are stopped, for whoever copies its archive.

use std::sync::Arc;

use super::check;
use crate::bucket::Buckets;
use crate::charter::TenantArchive;
use crate::engine::EngineBuilder;
use crate::error::{CallFuture, Error};
use crate::journal::{self, Journal};

/// A hold on a tenant that nobody serves: no instance starts, and nothing leaves memory, as long as it lasts.
///
/// Dropped without [`release`](Self::release) it ends by itself, within `lease_ttl`.
#[derive(Debug)]
pub struct StoppedTenant {
    journal: Arc<Journal>,
    archive: TenantArchive,
}

impl EngineBuilder {
    /// Holds a tenant stopped while its archive is copied to another place, as with `tideline_archive::copy`. The
    /// tenant knows its archive by name only: instances are started with the copy afterwards, once that has the name.
    ///
    /// [`Conflict`](crate::ErrorKind::Conflict): instances serve the tenant; stop them first.
    /// [`Misconfigured`](crate::ErrorKind::Misconfigured): the tenant has another archive than was given, or none.
    /// [`Invalid`](crate::ErrorKind::Invalid): no archive was given.
    pub fn hold_stopped(self) -> CallFuture<'static, StoppedTenant> {
        Box::pin(async move {
            let (journal, archive) = self.alone().await?;
            let known = &journal.tenant.known;
            let held = match (check(known, Some(&*archive)).await, known.decision().archive) {
                (Ok(()), Some(archive)) => return Ok(StoppedTenant { journal, archive }),
                (Ok(()), None) => Err(Error::internal("a tenant without an archive has one")),
                (Err(e), _) => Err(e),
            };
            journal::end_import(&journal).await?;
            held
        })
    }
}

impl StoppedTenant {
    /// Tells which archive it has.
    pub fn archive(&self) -> TenantArchive {
        self.archive
    }

    /// Tells how many buckets it has.
    pub fn buckets(&self) -> Buckets {
        self.journal.tenant.keys().buckets()
    }

    /// Looks whether the hold has lasted: asked before a copy gets its name.
    ///
    /// [`Conflict`](crate::ErrorKind::Conflict): this process stood still for longer than its lease lasts, and
    /// instances have started. What was copied is out of date.
    pub fn still_held(&self) -> CallFuture<'_, ()> {
        Box::pin(journal::hold_alone(&self.journal))
    }

    /// Gives the tenant free.
    pub fn release(self) -> CallFuture<'static, ()> {
        Box::pin(async move { journal::end_import(&self.journal).await })
    }
}
