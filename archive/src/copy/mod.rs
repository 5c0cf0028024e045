//! Copying all that an archive holds into an empty one, as for a tenant that grows from a file to PostgreSQL.
//!
//! The name comes last, once all was compared: without one no tenant takes a copy that broke off for its archive.
//! Search isn't copied. An archive doesn't tell which words a post has, and the engine can find them again
//! (`Engine::index_all`).

mod compare;
mod lists;
mod owners;

use std::time::Duration;

use tideline_model::archive::{Archive, ArchiveName};
use tideline_model::bucket::{Bucket, Buckets};
use tideline_model::error::{CallFuture, Error, ErrorKind, Result};
use tokio::time::sleep;

/// The most attempts at a call that fails for a reason that passes.
const ATTEMPTS_MAX: u32 = 10;
/// Between two of these.
const PAUSE: Duration = Duration::from_secs(2);
/// Advice for a copy that nothing can be made of.
const BEGIN_ANEW: &str = "remove that copy (its file, or its schema) and begin anew";

/// The size of what has been copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopiedCount {
    /// Accounts.
    pub owners: u64,
    /// Posts.
    pub posts: u64,
    /// Members of posts' lists: who likes them, what answers them.
    pub members: u64,
    /// Posts on lists of posts: mentions, hashtags.
    pub listed: u64,
}

/// A copy that holds all that the other archive does, and lacks its name: no tenant takes it for its archive yet.
#[derive(Debug)]
#[must_use = "without its name it is nobody's archive"]
pub struct ArchiveCopy<'a> {
    to: &'a dyn Archive,
    name: ArchiveName,
    count: CopiedCount,
}

impl ArchiveCopy<'_> {
    /// Gives the copy the archive's name, once nothing can have changed the original meanwhile. Tells how much was
    /// copied. From then on there are two archives of one name: the other one has to be put away.
    ///
    /// # Errors
    /// `Conflict` if somebody else gave it another one.
    pub async fn adopt(self) -> Result<CopiedCount> {
        let found = again(|| self.to.adopt(self.name)).await?;
        if found != self.name {
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("the copy has become the archive {found} meanwhile, another tenant's"),
            ));
        }
        Ok(self.count)
    }
}

/// Copies all that `from` holds of so many buckets into `to`, which is empty, and compares the two. Nobody may change
/// either of them meanwhile: the tenant's instances are stopped (`EngineBuilder::hold_stopped`). What fails for reasons
/// that pass is tried again for a while.
///
/// # Errors
/// `Misconfigured` if one has no name, or the other one has something: of a copy that broke off, say, which has to be
/// removed. `Conflict` if they differ in the end.
pub async fn copy<'a>(
    from: &dyn Archive,
    to: &'a dyn Archive,
    buckets: Buckets,
    progress: impl Fn(CopiedCount) + Send + Sync,
) -> Result<ArchiveCopy<'a>> {
    let name = again(|| from.name()).await?;
    let name =
        name.ok_or_else(|| Error::misconfigured("what is to be copied is no archive that was begun"))?;
    match again(|| to.name()).await? {
        None => {}
        Some(found) if found == name => {
            return Err(Error::misconfigured(format!(
                "the archive {name} stands there already: that copy is complete"
            )));
        }
        Some(found) => {
            let text = format!("another archive stands there, {found}: a copy needs a place of its own");
            return Err(Error::misconfigured(text));
        }
    }
    let mut count = CopiedCount::default();
    for bucket in buckets.all() {
        check_empty(to, bucket).await?;
        owners::copy(from, to, bucket, &mut count, &progress).await?;
        lists::copy(from, to, bucket, &mut count, &progress).await?;
    }
    // A server that takes over later than this lacks nothing of it.
    sleep(to.settles_within()).await;
    for bucket in buckets.all() {
        compare::bucket(from, to, bucket).await?;
    }
    Ok(ArchiveCopy { to, name, count })
}

/// A copy that broke off isn't gone on with: what has left the other one since would stay here.
async fn check_empty(to: &dyn Archive, bucket: Bucket) -> Result<()> {
    let owners = again(|| to.walk_owners(bucket, None, 1)).await?;
    let lists = again(|| to.walk_lists(bucket, None, 1)).await?;
    if owners.is_empty() && lists.is_empty() {
        return Ok(());
    }
    Err(Error::misconfigured(format!(
        "something stands there already, and without a name, as of a copy that broke off: {BEGIN_ANEW}"
    )))
}

/// Makes a call until it doesn't fail for a reason that passes. All calls of a copy can be made again as they were.
async fn again<'a, T>(mut call: impl FnMut() -> CallFuture<'a, T>) -> Result<T> {
    let mut attempts = 1;
    loop {
        match call().await {
            Err(e) if e.kind().is_retryable() && attempts < ATTEMPTS_MAX => {
                tracing::warn!("an archive that is copied, or its copy, is asked once more: {e}");
            }
            answer => return answer,
        }
        attempts += 1;
        sleep(PAUSE).await;
    }
}
