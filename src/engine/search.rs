//! Having all posts of a tenant found by their words: what was there before search was begun, or what an archive has
//! lost of its index.

use super::Engine;
use crate::archive::{Archive, PAGE_MAX};
use crate::bucket::Bucket;
use crate::cluster::{Command, Request};
use crate::error::{CallFuture, Error, Result};
use crate::fsck::{KeyForm, KeyWalk, form_of};
use crate::ids::{AccountId, PostId};
use crate::keys::OwnKey;
use crate::post::PostRef;
use crate::search;
use crate::stored::DELETED;

/// Posts that the index was brought in line with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct IndexedNow {
    /// How many were looked at: one that moved meanwhile, or that is in the index too, counts twice or thrice.
    pub posts: u64,
}

/// Elements of an outbox that are read at once.
const ELEMENTS_AT_ONCE: usize = 1_000;

impl Engine {
    /// Brings the index in line with all posts, in memory, in the archive, and with all that the index itself says that
    /// there are. To be called once after search was [begun](crate::EngineBuilder::begin_search), after an import, and
    /// after the archive was restored from a copy; any time else it changes nothing that anybody finds. Goes through
    /// all keys and tables, beside what the instances do.
    ///
    /// [`Misconfigured`](crate::ErrorKind::Misconfigured): no search was begun.
    /// [`Unavailable`](crate::ErrorKind::Unavailable): the archive is away; call it again, from the beginning.
    pub fn index_all(&self) -> CallFuture<'_, IndexedNow> {
        Box::pin(async move {
            let Some(archive) = self.tenant.archive()?.filter(|_| search::is_searched(&self.tenant)) else {
                return Err(Error::misconfigured(
                    "no search was begun for this tenant: `tideline archive begin --search`",
                ));
            };
            let mut indexed = IndexedNow::default();
            for bucket in self.tenant.keys().buckets().all() {
                self.index_found(archive, bucket).await?;
            }
            // Before the archive: what moves meanwhile is met there.
            self.index_memory(&mut indexed).await?;
            for bucket in self.tenant.keys().buckets().all() {
                self.index_archived(archive, bucket, &mut indexed).await?;
            }
            Ok(indexed)
        })
    }

    async fn index_memory(&self, indexed: &mut IndexedNow) -> Result<()> {
        let mut walk = KeyWalk::new(self.tenant.keys().buckets().all());
        while let Some(step) = walk.step(&self.tenant).await? {
            for key in &step {
                if let KeyForm::Own(OwnKey::Outbox, account) = form_of(self.tenant.keys(), key) {
                    self.index_outbox(account, indexed).await?;
                }
            }
        }
        Ok(())
    }

    /// From the newest to the oldest: what is published meanwhile has a task of its own, what is cut off is gone.
    async fn index_outbox(&self, author: AccountId, indexed: &mut IndexedNow) -> Result<()> {
        let (outbox, slot) = (self.tenant.keys().outbox(author), self.tenant.slot(author));
        let mut end = -1_i64;
        loop {
            let from = end - i64::try_from(ELEMENTS_AT_ONCE).unwrap_or(i64::MAX) + 1;
            let range = Command::new("LRANGE").arg(&outbox).arg(from).arg(end);
            let elements = self.tenant.router().call(Request::read(slot, range)).await?.into_array()?;
            let mut posts = Vec::new();
            for element in &elements {
                // The first one of all may be a floor, which is longer.
                let Ok(bytes) = <[u8; 8]>::try_from(element.bytes()?) else { continue };
                let id = u64::from_be_bytes(bytes);
                if id & DELETED == 0
                    && let Ok(id) = PostId::from_u64(id)
                {
                    posts.push(PostRef { id, author });
                }
            }
            self.index(&posts, indexed).await?;
            if elements.len() < ELEMENTS_AT_ONCE {
                return Ok(());
            }
            end = from - 1;
        }
    }

    async fn index_archived(
        &self,
        archive: &dyn Archive,
        bucket: Bucket,
        indexed: &mut IndexedNow,
    ) -> Result<()> {
        let mut after = None;
        loop {
            let page = archive.walk_posts(bucket, after, PAGE_MAX).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some((last.owner, last.id));
            let posts: Vec<PostRef> =
                page.iter().map(|post| PostRef { id: post.id, author: post.owner }).collect();
            self.index(&posts, indexed).await?;
        }
    }

    /// An older copy of the archive may still find what is there no more.
    async fn index_found(&self, archive: &dyn Archive, bucket: Bucket) -> Result<()> {
        let mut after = None;
        loop {
            let page = archive.walk_index(bucket, after, PAGE_MAX).await?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = Some(*last);
            let posts: Vec<PostRef> =
                page.iter().map(|(id, author)| PostRef { id: *id, author: *author }).collect();
            // Those that are there were counted before.
            self.index(&posts, &mut IndexedNow::default()).await?;
        }
    }

    async fn index(&self, posts: &[PostRef], indexed: &mut IndexedNow) -> Result<()> {
        for posts in posts.chunks(search::POSTS_AT_ONCE) {
            let mut tries = self.tenant.router().fence_tries();
            // Of those that can't be read what the index has stays.
            while let Err(e) = search::settle(&self.tenant, posts).await {
                tries.after(e).await?;
            }
            indexed.posts += posts.len() as u64;
        }
        Ok(())
    }
}
