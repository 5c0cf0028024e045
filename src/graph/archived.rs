//! Posts that leave memory: rounds of that, and what is left in the archive of accounts that were deleted.

use std::sync::Arc;
use std::time::Duration;

use super::bury::some_posts;
use super::cut::cut_down;
use crate::cluster::TouchedServers;
use crate::error::Result;
use crate::ids::{AccountId, PostId};
use crate::journal::{Journal, Recurring};
use crate::meters;
use crate::post::{NamedList, Post};
use crate::stored::StoredPost;
use crate::tiers::{self, AgendaWork, ListCut, MovedPosts};

/// The interval at which somebody looks what is due.
const PERIOD: Duration = Duration::from_secs(10);

/// Rounds in which posts that are due leave memory.
#[derive(Debug, Default)]
pub(crate) struct ArchiveMoves {
    /// Whether the last one has left some that were due.
    has_more: bool,
}

impl Recurring for ArchiveMoves {
    type Owner = Journal;

    /// Not all instances at once.
    fn pause(&mut self, journal: &Journal) -> Duration {
        if std::mem::take(&mut self.has_more) {
            return Duration::ZERO;
        }
        PERIOD.mul_f64(0.5 + f64::from(journal.tenant.instance[0]) / 255.0)
    }

    async fn round(&mut self, journal: &Arc<Journal>) {
        let tenant = &journal.tenant;
        match move_due(journal, tenant.router().now_ms()).await {
            Ok(moved) if tenant.known.decision().archive.is_some() => {
                self.has_more = moved.has_more || moved.has_long_lists;
                meters::archive_round(tenant.router().now_ms())
            }
            Ok(_) => {}
            Err(e) => tracing::warn!("posts that are due could not be moved to the archive: {e}"),
        }
    }
}

/// Moves posts to the archive that were due at that moment: of each account as many as have room in one move.
pub(crate) async fn move_due(journal: &Arc<Journal>, due_ms: u64) -> Result<MovedPosts> {
    tiers::move_all(&journal.tenant, journal, due_ms).await
}

impl AgendaWork for Arc<Journal> {
    async fn bury(&self, account: AccountId, posts: &[PostId]) -> Result<()> {
        let mut touched = TouchedServers::new();
        let stored = self.tenant.posts().get_many(posts.iter().copied()).await?;
        let in_memory = posts.iter().copied().zip(stored).collect();
        some_posts(self, account, in_memory, &mut touched).await?;
        archived(self, account, &mut touched).await?;
        self.tenant.router().fence(&touched).await.map(drop)
    }

    async fn cut(&self, list: NamedList) -> Result<ListCut> {
        cut_down(&self.tenant, list, self.tenant.known.decision()).await
    }
}

/// Deletes the posts of a deleted account that the archive has, and what is in memory of them.
pub(super) async fn archived(
    journal: &Arc<Journal>,
    account: AccountId,
    touched: &mut TouchedServers,
) -> Result<()> {
    let tenant = &journal.tenant;
    // H170: a mover that was frozen finds that it comes too late.
    tiers::forget_buried(tenant, account, &[], touched).await?;
    // H189: nobody reads it any more.
    tiers::drop_listed(tenant, NamedList::Mentions(account)).await?;
    loop {
        let archived = tiers::left_of_buried(tenant, account).await?;
        if archived.is_empty() {
            return Ok(());
        }
        let ids: Vec<PostId> = archived.iter().map(|post| post.id).collect();
        let in_memory = tenant.posts().get_many(ids.iter().copied()).await?;
        let stored = in_memory.into_iter().zip(&archived).map(|(stored, archived)| match stored {
            StoredPost::Gone => StoredPost::of_bytes(&archived.stored, Post::parse),
            stored => stored,
        });
        // What they leave elsewhere is in the journal before nobody knows of them any more.
        some_posts(journal, account, ids.iter().copied().zip(stored).collect(), touched).await?;
        tiers::forget_buried(tenant, account, &ids, touched).await?;
    }
}
