//! Imported posts that are still in memory: there may be more of them in all than there is room.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;

use tokio::time::sleep;

use super::super::archive::note_some;
use crate::error::{Error, ErrorCode, Result};
use crate::graph::move_due;
use crate::ids::AccountId;
use crate::journal::{self, Journal};

/// Posts that have come in since all that were old enough left memory for the archive last.
#[derive(Debug)]
pub(super) struct UnmovedPosts {
    count: usize,
    authors: BTreeSet<AccountId>,
    /// With so many it is time that they leave.
    at_once: usize,
    has_failed: bool,
}

impl UnmovedPosts {
    pub(super) fn new(at_once: usize) -> Self {
        Self { count: 0, authors: BTreeSet::new(), at_once, has_failed: false }
    }

    /// The most posts of a call: of a longer one some would be stored before there is no room for more, under ids that
    /// nobody is told.
    pub(super) fn at_once(&self) -> usize {
        self.at_once
    }

    /// Makes room for a call's posts before any of them is stored: of those that wait to leave, with these, there are
    /// at most twice as many as leave at once.
    pub(super) async fn make_room(&mut self, journal: &Arc<Journal>, posts: usize) -> Result<()> {
        if posts > self.at_once {
            let most = self.at_once;
            return Err(Error::invalid(format!("too many posts: {posts}; at most {most} a call")));
        }
        if self.count + posts <= 2 * self.at_once {
            return Ok(());
        }
        let waiting = self.count;
        self.leave(journal).await.map_err(|e| {
            let code = match e.code() {
                // Instances serve the tenant: this import is over.
                code @ (ErrorCode::Conflict | ErrorCode::ArchiveAway) => code,
                _ => ErrorCode::Overloaded,
            };
            let text = format!(
                "{waiting} imported posts wait to leave memory: nothing of this call was stored, make it again ({e})"
            );
            Error::new(code, text)
        })
    }

    /// Counts posts that were stored, by their authors, and has them leave once there are many. H254: whoever has
    /// brought them needs their ids, whatever becomes of that; they leave later, with the next ones.
    pub(super) async fn came_in(&mut self, journal: &Arc<Journal>, authors: &[AccountId]) {
        self.count += authors.len();
        self.authors.extend(authors);
        if self.count >= self.at_once
            && let Err(e) = self.leave(journal).await
        {
            let waiting = self.count;
            tracing::warn!(
                "{waiting} imported posts could not be moved to the archive, and wait in memory: {e}"
            );
        }
    }

    /// Has all posts leave memory that are old enough, where the tenant has an archive.
    pub(super) async fn leave(&mut self, journal: &Arc<Journal>) -> Result<()> {
        let left = self.try_to_leave(journal).await;
        self.has_failed = left.is_err();
        if left.is_ok() {
            self.count = 0;
            self.authors.clear();
        }
        left
    }

    async fn try_to_leave(&self, journal: &Arc<Journal>) -> Result<()> {
        let tenant = &journal.tenant;
        if self.has_failed {
            // H254: a move that has failed has put its authors off. A round that finds none of them due moves nothing,
            // and ends well.
            let authors: Vec<AccountId> = self.authors.iter().copied().collect();
            note_some(tenant, &authors).await?;
        }
        let mut moving = pin!(async {
            // H223: of an archive that needs time to settle a round waits for one step of each author, whatever else
            // that one has.
            loop {
                let moved = move_due(journal, tenant.router().now_ms()).await?;
                // H259: what lies on a server that is away has not moved, though nothing has failed.
                if moved.has_skipped {
                    return Err(Error::unavailable("posts lie on a server that is away"));
                }
                if moved.passed == 0 {
                    return Ok(());
                }
            }
        });
        loop {
            tokio::select! {
                moved = &mut moving => return moved,
                // That takes longer than a lease lasts.
                () = sleep(tenant.settings.lease_renewal) => journal::hold_for_import(journal).await?,
            }
        }
    }
}
