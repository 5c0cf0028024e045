//! The progress of an entry, as its journal says it; and whether what its run goes by is of the time of the entry.

use super::entry::JournalEntry;
use crate::cluster::{FenceOutcome, Request, TouchedServers};
use crate::error::Result;
use crate::functions;
use crate::tenant::Tenant;

/// Makes sure that what an entry's run goes by was told by servers that know of the entry: a primary that was replaced
/// answers on, and knows neither the post nor who has followed since (H120). In a life of the server in which the entry
/// was seen all that was there before it is there; of another life a fence tells.
pub(crate) async fn told_in_time(tenant: &Tenant, entry: &JournalEntry, said: &TouchedServers) -> Result<()> {
    let is_seen = |epoch| entry.seen_in.as_ref() == Some(epoch);
    if said.epochs().iter().all(is_seen) {
        return Ok(());
    }
    tenant.router().fence(said).await.map(drop)
}

/// Moves an entry's checkpoint once what was done so far is on replicas; whoever goes on begins behind it.
pub(crate) async fn move_checkpoint(
    tenant: &Tenant,
    entry: &mut JournalEntry,
    to: String,
    touched: &TouchedServers,
) -> Result<()> {
    // H32: what lies behind the checkpoint nobody looks at again.
    entry.lacks_replicas |= tenant.router().fence(touched).await? == FenceOutcome::WithoutReplicas;
    write_checkpoint(tenant, entry, &to).await
}

/// Writes a checkpoint into the journal: what it says is on replicas.
pub(crate) async fn write_checkpoint(tenant: &Tenant, entry: &mut JournalEntry, to: &str) -> Result<()> {
    let key = tenant.keys().journal(entry.bucket);
    let command = functions::journal_checkpoint(key, &entry.id, &entry.owner, entry.task.stored_len(), to);
    let slot = tenant.keys().buckets().slot(entry.bucket);
    // Struck or taken over by somebody else meanwhile: then our going on does no harm either.
    tenant.router().call(Request::write(slot, command)).await?;
    entry.checkpoint = to.to_owned();
    Ok(())
}
