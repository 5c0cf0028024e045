//! A record that is gone while its buckets hold data: told, and brought back from what the buckets know (H67).

use super::change::TenantChange;
use super::decision::{Decision, Fields, NUMBER, TenantSettings};
use super::layout::FORMAT;
use super::record::{fields_of, told, write_fields};
use crate::bucket::{BUCKETS_MIN, Buckets};
use crate::cluster::{Batch, Command, Reply, Request, Router};
use crate::error::{Error, ErrorKind, Result};
use crate::keys::Keyspace;
use crate::settings::EngineSettings;

/// The field of the number of buckets.
const BUCKETS: &str = "buckets";
/// The field of the key of hashtags' numbers.
const TAGS: &[u8] = b"tags";

/// Whether buckets know of a tenant under this prefix: of one that has decided nothing they know its layout (H137).
pub(crate) async fn is_known(router: &Router, prefix: &str) -> Result<bool> {
    Ok(!known_of(router, &fewest(prefix)?, BUCKETS).await?.is_empty())
}

/// Fails if buckets know of a decision under this prefix. For who finds a record that says of none.
pub(super) async fn refuse_if_lost(router: &Router, prefix: &str) -> Result<()> {
    if newest_known(router, &fewest(prefix)?).await? > 0 { Err(record_is_gone(prefix)) } else { Ok(()) }
}

/// The error for who finds no record where there was one.
pub(crate) fn record_is_gone(prefix: &str) -> Error {
    Error::misconfigured(format!(
        "the record of the tenant under prefix `{prefix}` is gone, and its buckets say that there was one: slot 0 has \
         lost data. Nothing is begun anew. {BRING_BACK}"
    ))
}

const BRING_BACK: &str =
    "Bring it back with `tideline tenant restore`, then look for what else is missing with `tideline fsck`";

/// The highest number of a decision that any bucket knows; 0: none knows one.
pub(super) async fn newest_known(router: &Router, keys: &Keyspace) -> Result<u32> {
    let mut newest = 0;
    for number in known_of(router, keys, NUMBER).await? {
        newest = newest.max(u32::try_from(number.count()?).unwrap_or(u32::MAX));
    }
    Ok(newest)
}

/// One field of what buckets know, of those that know it.
async fn known_of(router: &Router, keys: &Keyspace, field: &str) -> Result<Vec<Reply>> {
    let of = |bucket| Command::new("HMGET").arg(&keys.decision(bucket)).arg(field);
    let asked = keys.buckets().all().map(|bucket| Request::read(keys.buckets().slot(bucket), of(bucket)));
    let mut known = Vec::new();
    for answer in router.run(asked.collect::<Batch>()).await {
        known.extend(answer?.ok()?.into_array()?.into_iter().filter(|value| !value.is_nil()));
    }
    Ok(known)
}

/// Fails unless a change may follow what the tenant has decided by now.
///
/// [`Conflict`](ErrorKind::Conflict): somebody else has decided since. [`Misconfigured`](ErrorKind::Misconfigured): the
/// record has lost a decision that buckets know: the next one must not get its number (H142).
pub(crate) async fn check_change(router: &Router, keys: &Keyspace, change: &TenantChange) -> Result<()> {
    change.check()?;
    // Before the record: what somebody decides meanwhile it knows first.
    let known = newest_known(router, keys).await?;
    let stands = Decision::parse(&told(router, keys).await?, change.from().settings)?;
    let number = stands.map_or(0, |decision| decision.number);
    if known > number {
        return Err(Error::misconfigured(format!(
            "the tenant's record says decision {number}, and buckets know decision {known}: slot 0 has lost data. \
             Nothing is decided on top of that. {BRING_BACK}"
        )));
    }
    // Or it is this one already, and is repeated.
    if number != change.from().number && stands != Some(change.decision()) {
        return Err(other_decision(stands, change));
    }
    Ok(())
}

/// The error for who decides beside somebody else.
pub(crate) fn other_decision(stands: Option<Decision>, change: &TenantChange) -> Error {
    let asked = change.decision();
    let text = format!("the tenant has decided something else meanwhile: {stands:?}; asked for {asked:?}");
    Error::new(ErrorKind::Conflict, text)
}

/// Every tenant has a bucket in the slots of these, however many it has.
fn fewest(prefix: &str) -> Result<Keyspace> {
    Keyspace::new(prefix, Buckets::new(BUCKETS_MIN)?)
}

/// Asks the buckets what they know.
async fn known_to(router: &Router, keys: &Keyspace) -> Result<Vec<Fields>> {
    let get = |bucket| {
        let command = Command::new("HGETALL").arg(&keys.decision(bucket));
        Request::read(keys.buckets().slot(bucket), command)
    };
    let answers = router.run(keys.buckets().all().map(get).collect::<Batch>()).await;
    answers.into_iter().map(|answer| fields_of(answer?.ok()?)).collect()
}

fn number(fields: &Fields, name: &str) -> u32 {
    let text = fields.get(name.as_bytes()).map(|value| String::from_utf8_lossy(value));
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Writes the record as the buckets know it: where it is gone, or was begun anew by who did not know better. What
/// stands there and is as new stays as it is, but for what it lacks.
pub(crate) async fn restore(router: &Router, prefix: &str) -> Result<Decision> {
    let few = known_to(router, &fewest(prefix)?).await?;
    let Some(one) =
        few.iter().filter(|fields| !fields.is_empty()).max_by_key(|fields| number(fields, NUMBER))
    else {
        let text =
            format!("no bucket under prefix `{prefix}` knows of a tenant: there is nothing to restore");
        return Err(Error::new(ErrorKind::NotFound, text));
    };
    let buckets = Buckets::new(u16::try_from(number(one, BUCKETS)).unwrap_or_default())?;
    let keys = Keyspace::new(prefix, buckets)?;
    let all = known_to(router, &keys).await?;
    let newest = all.iter().max_by_key(|fields| number(fields, NUMBER)).unwrap_or(one);
    let mut fields = newest.clone();
    // They were told before data of an earlier format was raised, perhaps, or by some of those that did it.
    for other in all.iter().filter(|other| number(other, NUMBER) == number(newest, NUMBER)) {
        for (field, value) in other {
            fields.entry(field.clone()).or_insert_with(|| value.clone());
        }
    }
    if fields.contains_key(TAGS) && number(&fields, "format") < FORMAT {
        // Raised since the buckets were told: there are no hashtags' numbers with a key but in this format.
        fields.insert(b"format".to_vec(), FORMAT.to_string().into_bytes());
    }
    let stands = write_fields(router, &keys, number(&fields, NUMBER), &fields).await?;
    let own = TenantSettings::of(&EngineSettings::default(), router.settings().replicas);
    Ok(Decision::parse(&stands, own)?.unwrap_or(Decision::none(own)))
}
