//! The places where a decision stands: the tenant's record, and each bucket.

use super::decision::{Decision, Fields, TenantSettings};
use super::layout::FORMAT;
use super::lost::refuse_if_lost;
use crate::archive::ArchiveName;
use crate::bucket::Bucket;
use crate::cluster::{Batch, Command, Reply, Request, Router, TouchedServers};
use crate::error::{Error, Result};
use crate::functions::{decision_set, tenant_begin};
use crate::keys::Keyspace;
use crate::settings::EngineSettings;

/// The field of the record with the name that an archive gets which is about to begin.
const ARCHIVE_DRAWN: &str = "archive_drawn";

/// The field of the record that says that accounts of this tenant are told what others did.
const NOTIFICATIONS: &str = "notifications";

/// Says that this tenant's accounts are told what others did. A tool brings no settings, and may carry out what an
/// instance has left.
pub(crate) async fn note_notifications(router: &Router, keys: &Keyspace) -> Result<()> {
    // A full server takes no write, also none that changes nothing.
    if has_notifications(router, keys).await? {
        return Ok(());
    }
    drawn_for_good(router, keys, NOTIFICATIONS, b"kept").await.map(|_| ())
}

/// Whether this tenant's accounts are told what others did.
pub(crate) async fn has_notifications(router: &Router, keys: &Keyspace) -> Result<bool> {
    Ok(told(router, keys).await?.contains_key(NOTIFICATIONS.as_bytes()))
}

/// Reads the tenant's record.
pub(crate) async fn told(router: &Router, keys: &Keyspace) -> Result<Fields> {
    let get = Command::new("HGETALL").arg(&keys.charter());
    fields_of(router.call(Request::read(slot(keys), get)).await?)
}

fn slot(keys: &Keyspace) -> u16 {
    keys.buckets().slot(Bucket(0))
}

pub(super) fn fields_of(reply: Reply) -> Result<Fields> {
    let flat = reply.into_array()?;
    let (pairs, []) = flat.as_chunks::<2>() else {
        return Err(Error::internal("a record has a field without a value"));
    };
    pairs.iter().map(|[field, value]| Ok((field.bytes()?.to_vec(), value.bytes()?.to_vec()))).collect()
}

/// Reads what the tenant has decided; `None`: nothing yet. Only who begins a tenant decides by the way.
pub(crate) async fn found(router: &Router, keys: &Keyspace, own: TenantSettings) -> Result<Option<Decision>> {
    let decision = Decision::parse(&told(router, keys).await?, own)?;
    if decision.is_none() {
        // H67: a record may be there that somebody began anew, who did not look.
        refuse_if_lost(router, keys.prefix()).await?;
    }
    Ok(decision)
}

/// Writes the record of a new tenant, and what it decides, if anything: in one step, so nobody ever finds data of it
/// and nothing decided (H145). Where there is one it gets only what it lacks of its layout. It is not on replicas yet.
pub(crate) fn begin(record: Vec<u8>, slot: u16, buckets: u16, decided: Option<&Decision>) -> Request {
    let fields = decided.map(Decision::fields).unwrap_or_default();
    Request::write(slot, tenant_begin(record, FORMAT, buckets, &fields))
}

/// Has all buckets know how a new tenant is laid out, and what it has decided; whoever was the first to begin it.
pub(crate) async fn tell_what_stands(
    router: &Router,
    keys: &Keyspace,
    decided: Option<&Decision>,
) -> Result<()> {
    let defaults = || TenantSettings::of(&EngineSettings::default(), router.settings().replicas);
    let own = decided.map_or_else(defaults, |decision| decision.settings);
    let decision = found(router, keys, own).await?.unwrap_or(Decision::none(own));
    if let Err(e) = tell_buckets(router, keys, &decision).await {
        tracing::warn!(
            "not all buckets know yet what their tenant has decided; until they do, nothing is removed: {e}"
        );
    }
    Ok(())
}

/// The name that the archive gets which a tenant is about to begin: drawn once, and in its record before any archive
/// has it. It is on replicas.
pub(crate) async fn drawn_archive(router: &Router, keys: &Keyspace) -> Result<ArchiveName> {
    let drawn = ArchiveName(rand::random()).to_string();
    let name = drawn_for_good(router, keys, ARCHIVE_DRAWN, drawn.as_bytes()).await?;
    String::from_utf8_lossy(name.bytes()?).parse()
}

/// Writes a field of the record as [`drawn_field`] does; what stands there then is on replicas.
async fn drawn_for_good(router: &Router, keys: &Keyspace, field: &str, drawn: &[u8]) -> Result<Reply> {
    let charter = keys.charter();
    let mut tries = router.fence_tries();
    loop {
        let (stands, touched) = drawn_field(router, slot(keys), &charter, field, drawn).await?;
        match router.fence(&touched).await {
            Err(e) => tries.after(e).await?,
            Ok(_) => return Ok(stands),
        }
    }
}

/// Writes a field of the record that is drawn once, unless somebody has drawn it. Gives what stands there then, which
/// is not on replicas yet, and who said so. It asks HMGET, since a store's user has no right to HGET.
pub(super) async fn drawn_field(
    router: &Router,
    slot: u16,
    charter: &[u8],
    field: &str,
    drawn: &[u8],
) -> Result<(Reply, TouchedServers)> {
    let mut batch = Batch::new();
    batch.push_ordered([
        Request::write(slot, Command::new("HSETNX").arg(charter).arg(field).arg(drawn)),
        Request::read(slot, Command::new("HMGET").arg(charter).arg(field)),
    ]);
    let (mut touched, mut stands) = (TouchedServers::new(), None);
    for answer in router.run(batch).await {
        let answer = answer?;
        touched.add(&answer);
        stands = Some(answer.ok()?);
    }
    let missing = || Error::internal("the field of a record that is drawn once is missing");
    let fields = stands.ok_or_else(missing)?.into_array()?;
    Ok((fields.into_iter().next().ok_or_else(missing)?, touched))
}

/// Writes a decision into the tenant's record, unless one stands there that is as new; it is on replicas then. Gives
/// what stands there.
pub(crate) async fn write(router: &Router, keys: &Keyspace, decision: &Decision) -> Result<Fields> {
    write_fields(router, keys, decision.number, &decision.fields()).await
}

pub(super) async fn write_fields(
    router: &Router,
    keys: &Keyspace,
    number: u32,
    fields: &Fields,
) -> Result<Fields> {
    let command = decision_set(keys.charter(), number, fields);
    let mut tries = router.fence_tries();
    loop {
        let answer = router.ask(Request::write(keys.buckets().slot(Bucket(0)), command.clone())).await?;
        let mut touched = TouchedServers::new();
        touched.add(&answer);
        match router.fence(&touched).await {
            Err(e) => tries.after(e).await?,
            Ok(_) => return fields_of(answer.ok()?),
        }
    }
}

/// Brings the record to all buckets, if it still says this; they have it on replicas then. May be repeated.
pub(crate) async fn tell_buckets(router: &Router, keys: &Keyspace, decision: &Decision) -> Result<()> {
    let mut tries = router.fence_tries();
    loop {
        let (touched, told) = remind_buckets(router, keys, decision).await?;
        // Those that can be reached know it for good, whoever else doesn't.
        match router.fence(&touched).await {
            Err(e) => tries.after(e).await?,
            Ok(_) => return told,
        }
    }
}

/// Tells the buckets of a decision once; who forgets it in a failover forgets it, and nothing is removed there. Gives
/// who knows it, and whether all do.
pub(crate) async fn remind_buckets(
    router: &Router,
    keys: &Keyspace,
    decision: &Decision,
) -> Result<(TouchedServers, Result<()>)> {
    // With all that the record says: the buckets give it back when it is lost.
    let mut fields = told(router, keys).await?;
    if decision.is_made() {
        fields.extend(decision.fields());
    }
    let mut batch = Batch::with_capacity(usize::from(keys.buckets().count()));
    for bucket in keys.buckets().all() {
        let command = decision_set(keys.decision(bucket), decision.number, &fields);
        batch.push(Request::write(keys.buckets().slot(bucket), command));
    }
    let (mut touched, mut failure) = (TouchedServers::new(), None);
    for answer in router.run(batch).await {
        match answer {
            Ok(answer) => {
                touched.add(&answer);
                failure = failure.or(answer.ok().err());
            }
            Err(e) => failure = failure.or(Some(e)),
        }
    }
    Ok((touched, failure.map_or(Ok(()), Err)))
}
