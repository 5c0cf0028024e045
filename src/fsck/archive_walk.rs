//! Going through all that the archive has, a page at a time.

use std::collections::VecDeque;

use super::relations::{ContentInArchive, MetOwner, OwnersInArchive, PostsInArchive};
use super::report::ArchivedCount;
use super::seen::Unit;
use crate::archive::{OwnerState, PAGE_MAX};
use crate::bucket::Bucket;
use crate::error::Result;
use crate::ids::{AccountId, PostId};
use crate::post::PostRef;
use crate::tenant::{Tenant, archive_away};

/// Posts whose content is looked at in one go.
const POSTS_AT_ONCE: usize = 100;

/// A walk through some buckets of an archive: of each its owners, then their posts.
#[derive(Debug)]
pub(super) struct ArchiveWalk {
    open: VecDeque<Bucket>,
    at: Position,
    /// Whether what posts name is looked at, and what their lists hold: not only where they lie.
    with_content: bool,
}

#[derive(Debug, Clone, Copy)]
enum Position {
    Owners(Option<AccountId>),
    Posts(Option<(AccountId, PostId)>),
}

impl ArchiveWalk {
    pub(super) fn new(buckets: impl Iterator<Item = Bucket>, with_content: bool) -> Self {
        Self { open: buckets.collect(), at: Position::Owners(None), with_content }
    }

    /// The next page, and how much it holds; `None`: that was all.
    pub(super) async fn step(&mut self, tenant: &Tenant) -> Result<Option<(Vec<Unit>, ArchivedCount)>> {
        let (Some(archive), Some(bucket)) = (tenant.archive()?, self.open.front().copied()) else {
            return Ok(None);
        };
        let mut count = ArchivedCount::default();
        Ok(Some(match self.at {
            Position::Owners(after) => {
                let owners = archive.walk_owners(bucket, after, PAGE_MAX).await.map_err(archive_away)?;
                let last = owners.last().filter(|_| owners.len() == PAGE_MAX);
                self.at = last.map_or(Position::Posts(None), |(last, _)| Position::Owners(Some(*last)));
                count.owners = owners.len() as u64;
                let met = |(account, state): (AccountId, OwnerState)| MetOwner {
                    account,
                    is_buried: state.is_buried,
                    upto: state.upto,
                };
                let owners: Vec<MetOwner> = owners.into_iter().map(met).collect();
                (vec![Unit::of(OwnersInArchive(owners))], count)
            }
            Position::Posts(after) => {
                let posts = archive.walk_posts(bucket, after, PAGE_MAX).await.map_err(archive_away)?;
                match posts.last().filter(|_| posts.len() == PAGE_MAX) {
                    Some(last) => self.at = Position::Posts(Some((last.owner, last.id))),
                    None => {
                        self.open.pop_front();
                        self.at = Position::Owners(None);
                    }
                }
                count.posts = posts.len() as u64;
                count.bytes = posts.iter().map(|post| post.bytes).sum();
                let posts: Vec<PostRef> =
                    posts.into_iter().map(|post| PostRef { id: post.id, author: post.owner }).collect();
                let content = posts.chunks(POSTS_AT_ONCE).filter(|_| self.with_content);
                let mut units: Vec<Unit> =
                    content.map(|posts| Unit::of(ContentInArchive(posts.to_vec()))).collect();
                units.push(Unit::of(PostsInArchive(posts)));
                (units, count)
            }
        }))
    }
}
