//! The layout of a tenant: begun where the tenant is new, and read.

use super::decision::{Decision, FORMAT_WITH_SEARCH};
use super::lost::{is_known, record_is_gone};
use super::record::{begin, drawn_field};
use crate::bucket::{Bucket, Buckets};
use crate::cluster::{Batch, Command, Reply, Request, Router, TouchedServers};
use crate::error::{Error, ErrorKind, Result};
use crate::keys::Keyspace;
use crate::post::TagKey;

/// Version of how data is stored that is initialized now. A store of a later one is refused.
pub const FORMAT: u32 = 2;
/// The first version that this release reads and writes. Its hashtags' numbers have no key, for the release that wrote
/// it knows none; all else is the same.
const FORMAT_WITHOUT_TAG_KEY: u32 = 1;

/// A rule for opening a tenant that nobody has opened yet: it is refused, or begun.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NewTenantRule<'a> {
    Refused,
    /// It is begun, and decides that, if anything.
    Begun(Option<&'a Decision>),
}

/// Writes how the tenant is laid out if nobody has yet, if that is wanted, and reads how it is. `is_new`: something was
/// written.
pub(crate) async fn charter(
    router: &Router,
    prefix: &str,
    wanted: Option<Buckets>,
    if_new: NewTenantRule<'_>,
    is_new: &mut bool,
) -> Result<(Buckets, TagKey)> {
    let slot = matches!(if_new, NewTenantRule::Begun(_)).then(|| Buckets::default().slot(Bucket(0)));
    if let Err(refused) = router.expect_replicas(slot) {
        // Where somebody has opened it before nothing is to be written.
        return match charter_once(router, prefix, wanted, NewTenantRule::Refused, &mut false).await {
            Err(e) if e.kind() == ErrorKind::NotFound => Err(refused),
            charter => charter,
        };
    }
    let mut tries = router.fence_tries();
    loop {
        match charter_once(router, prefix, wanted, if_new, is_new).await {
            Err(e) => tries.after(e).await?,
            Ok(charter) => return Ok(charter),
        }
    }
}

/// One try. `is_new`: it was written here, now or by an earlier try.
async fn charter_once(
    router: &Router,
    prefix: &str,
    wanted: Option<Buckets>,
    if_new: NewTenantRule<'_>,
    is_new: &mut bool,
) -> Result<(Buckets, TagKey)> {
    // Its key is the same for every number of buckets: bucket 0 always lies in slot 0.
    let keys = Keyspace::new(prefix, Buckets::default())?;
    let key = keys.charter();
    let slot = keys.buckets().slot(Bucket(0));
    let get = Request::read(slot, Command::new("HMGET").arg(&key).arg("format").arg("buckets").arg("tags"));
    let mut charter: [Reply; 3] = router.call(get.clone()).await?.into_values()?;
    let is_missing = charter.iter().take(2).any(Reply::is_nil);
    if is_missing && !*is_new && is_known(router, prefix).await? {
        // Or somebody has begun it meanwhile: buckets hear of a tenant once its record stands.
        charter = router.call(get.clone()).await?.into_values()?;
        if charter.iter().take(2).any(Reply::is_nil) {
            return Err(record_is_gone(prefix));
        }
    }
    // A try before this one may have written it, and found no fence.
    if let NewTenantRule::Begun(decided) = if_new
        && (is_missing || *is_new)
    {
        *is_new = true;
        let begin = begin(key.clone(), slot, wanted.unwrap_or_default().count(), decided);
        charter = write_layout(router, begin, get).await?;
    }
    let [format, buckets, tags] = charter;
    if format.is_nil() {
        let under = if prefix.is_empty() { "the empty prefix".into() } else { format!("prefix `{prefix}`") };
        let text = format!(
            "there is no data under {under}: nobody has opened it yet, which the first instance of a service does"
        );
        return Err(Error::new(ErrorKind::NotFound, text));
    }
    let (format, buckets) = (format.count()?, buckets.count()?);
    if !(u64::from(FORMAT_WITHOUT_TAG_KEY)..=u64::from(FORMAT_WITH_SEARCH)).contains(&format) {
        return Err(Error::misconfigured(format!(
            "the data under prefix `{prefix}` has format {format}, this release reads and writes formats \
             {FORMAT_WITHOUT_TAG_KEY} to {FORMAT_WITH_SEARCH}"
        )));
    }
    let found = Buckets::new(u16::try_from(buckets).unwrap_or(0))?;
    match wanted {
        Some(wanted) if wanted != found => Err(Error::misconfigured(format!(
            "the data under prefix `{prefix}` has {buckets} buckets, which is fixed for good; asked for {}",
            wanted.count()
        ))),
        _ if format == u64::from(FORMAT_WITHOUT_TAG_KEY) => Ok((found, TagKey::NONE)),
        _ if tags.is_nil() && matches!(if_new, NewTenantRule::Begun(_)) => {
            Ok((found, draw_tag_key(router, slot, &key, is_new).await?))
        }
        _ => Ok((found, tag_key(&tags)?)),
    }
}

/// Writes what isn't there yet of the layout. Gives what stands there then, on replicas: what all data will hang on
/// must not get lost in a failover, whoever wrote it.
async fn write_layout(router: &Router, begin: Request, get: Request) -> Result<[Reply; 3]> {
    let mut batch = Batch::new();
    batch.push_ordered([begin, get]);
    let mut answers = router.run(batch).await;
    let stands = answers
        .pop()
        .unwrap_or_else(|| Err(Error::internal("the look at the charter has no answer")))?
        .ok()?
        .into_values()?;
    let mut touched = TouchedServers::new();
    for answer in answers {
        let answer = answer?;
        touched.add(&answer);
        answer.ok()?;
    }
    router.fence(&touched).await?;
    Ok(stands)
}

/// Draws the key of the hashtags' numbers, unless somebody else does: of data that is new, or was raised to this
/// format.
async fn draw_tag_key(router: &Router, slot: u16, charter: &[u8], is_new: &mut bool) -> Result<TagKey> {
    let drawn: [u8; TagKey::LEN] = rand::random();
    let (key, touched) = drawn_field(router, slot, charter, "tags", &drawn).await?;
    // Lists will be found by it; a try after a fence that failed finds it written.
    *is_new = true;
    router.fence(&touched).await?;
    tag_key(&key)
}

fn tag_key(stored: &Reply) -> Result<TagKey> {
    let key = if stored.is_nil() { &[] } else { stored.bytes()? };
    key.try_into().map(TagKey::new).map_err(|_| {
        let len = key.len();
        Error::misconfigured(format!(
            "the charter's field `tags`, which hashtags are found by, has {len} bytes, not {}: if it never had any, \
             start an instance, which draws it; if it was lost, `tideline tenant restore` brings it back from what the \
             buckets know",
            TagKey::LEN
        ))
    })
}
