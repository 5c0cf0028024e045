//! The public timeline: the newest public posts of all buckets, merged. Each bucket keeps a list of its own, written
//! with the post itself; one look at all of them serves everybody who asked before it began.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::looks::{LookTurn, SharedLooks};
use super::merge::{Direction, PageEntry};
use crate::bucket::Bucket;
use crate::cluster::{Batch, Command, Request};
use crate::error::{Error, Result};
use crate::post::PostRef;
use crate::stored::{PUBLIC_ENTRY_LEN, public_entries};
use crate::tenant::{Answers, Tenant};

/// Posts of each bucket that a look asks for. Of many buckets few have more on one page.
pub(super) const NEWEST: usize = 8;
/// The factor by which more is asked for of a bucket that has more.
const DEEPER: usize = 4;
/// Posts asked beyond those that are missing: some will not show.
const MARGIN: usize = 8;
/// Buckets asked in one batch.
const BUCKETS_AT_ONCE: usize = 2_048;
/// The time for which the look that is under way is waited for: it may be held up by a server that comes back no more.
const PATIENCE: Duration = Duration::from_millis(50);
/// Looks of others that are waited for, of which nothing came.
const TRIES_MAX: usize = 4;

/// The end of a bucket's list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct PublicPart {
    /// In the order in which they came.
    posts: Vec<PostRef>,
    is_whole: bool,
}

/// The ends of all buckets' lists, in the order of the buckets.
pub(super) type PublicWindow = Arc<[PublicPart]>;

/// Looks at the ends of all lists. What one of them could not be told is told to all.
pub(super) type PublicLooks = SharedLooks<Result<PublicWindow>>;

impl PublicPart {
    /// Reads the end of a list of which so many posts were asked for.
    fn parse(bytes: &[u8], asked: usize) -> Self {
        let posts: Vec<PostRef> = public_entries(bytes).collect();
        Self { is_whole: bytes.len() < asked * PUBLIC_ENTRY_LEN, posts }
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = PageEntry> + '_ {
        self.posts.iter().map(|post| PageEntry { id: post.id.get(), author: post.author.get() })
    }

    /// Tells how far it is complete, as a source's bound, of a page that begins at `from`.
    pub(super) fn bound(&self, direction: Direction, from: u64) -> u64 {
        let first = self.posts.first().map_or(0, |post| post.id.get());
        match direction {
            Direction::Down if self.is_whole => 0,
            Direction::Down => first,
            // All that there is above.
            Direction::Up if self.is_whole || first <= from => u64::MAX,
            Direction::Up => from,
        }
    }
}

/// Tells whether the tenant keeps public posts.
pub(super) fn check_kept(tenant: &Tenant) -> Result<()> {
    if tenant.known.decision().public_posts().is_some() {
        return Ok(());
    }
    Err(Error::misconfigured(
        "the tenant keeps no public timeline: its public_posts is 0. `tideline tenant set public_posts=256` has it \
         kept from then on",
    ))
}

/// The ends of all lists, as a look found them that began after this call did.
pub(super) async fn newest(tenant: &Tenant, looks: &PublicLooks) -> Result<PublicWindow> {
    for _ in 0..TRIES_MAX {
        match looks.join() {
            LookTurn::Theirs(waiting) => {
                if let Some(found) = waiting.landed().await {
                    return found;
                }
            }
            LookTurn::Ours(look) => {
                let _turn = timeout(PATIENCE, looks.turn()).await;
                // H196: who comes from here on may have written what this look doesn't see.
                look.begin();
                let found = look_at_all(tenant).await;
                look.land(found.clone());
                return found;
            }
        }
    }
    look_at_all(tenant).await
}

async fn look_at_all(tenant: &Tenant) -> Result<PublicWindow> {
    let all: Vec<(Bucket, usize)> = tenant.keys().buckets().all().map(|bucket| (bucket, NEWEST)).collect();
    look(tenant, &all).await.map(Into::into)
}

/// The number of posts to ask a list for that was asked for so many last time.
pub(super) fn depth(before: usize, missing: usize) -> usize {
    (before * DEEPER).max(missing + MARGIN)
}

/// The ends of these buckets' lists, so many posts of each.
pub(super) async fn look(tenant: &Tenant, asked: &[(Bucket, usize)]) -> Result<Vec<PublicPart>> {
    let keys = tenant.keys();
    let request = |(bucket, depth): &(Bucket, usize)| {
        let bytes = i64::try_from(depth * PUBLIC_ENTRY_LEN).unwrap_or(i64::MAX);
        let command = Command::new("GETRANGE").arg(&keys.public_posts(*bucket)).arg(-bytes).arg("-1");
        Request::read(keys.buckets().slot(*bucket), command)
    };
    let mut parts = Vec::with_capacity(asked.len());
    for chunk in asked.chunks(BUCKETS_AT_ONCE) {
        let mut answers = Answers::of(tenant, chunk.iter().map(request).collect::<Batch>()).await?;
        for (_, depth) in chunk {
            parts.push(PublicPart::parse(answers.next()?.bytes()?, *depth));
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{AccountId, PostId};
    use crate::member::Member as _;
    use crate::timeline::merge::Merge;
    use proptest::prelude::*;

    fn post(id: u64, author: u64) -> PostRef {
        PostRef { id: PostId::from_u64(id).unwrap(), author: AccountId::new(author).unwrap() }
    }

    fn stored(posts: &[PostRef]) -> Vec<u8> {
        posts.iter().flat_map(|post| post.to_bytes()).collect()
    }

    /// As a server answers a GETRANGE from the end.
    fn end_of(list: &[u8], depth: usize) -> &[u8] {
        &list[list.len().saturating_sub(depth * PUBLIC_ENTRY_LEN)..]
    }

    #[test]
    fn a_list_is_whole_if_it_has_less_than_was_asked_for() {
        let list = stored(&[post(3, 1), post(5, 2), post(9, 1)]);
        let part = |asked| PublicPart::parse(end_of(&list, asked), asked);
        assert_eq!(part(3).bound(Direction::Down, u64::MAX), 3);
        assert_eq!(part(4).bound(Direction::Down, u64::MAX), 0);
        assert_eq!((part(2).bound(Direction::Up, 4), part(2).bound(Direction::Up, 5)), (4, u64::MAX));
        assert_eq!(PublicPart::parse(b"", 8).bound(Direction::Up, 7), u64::MAX);
    }

    proptest! {
        /// Pages over all buckets' ends, asked deeper as the merge wants it, are what sorting everything gives.
        #[test]
        fn pages_are_what_all_lists_together_hold(
            lists in proptest::collection::vec(proptest::collection::btree_set(1u64..400, 0..60), 1..6),
            limit in 1usize..12, is_up: bool, from in 0u64..400,
        ) {
            // An id is one bucket's.
            let buckets = lists.len() as u64;
            let lists: Vec<Vec<PostRef>> = lists.iter().enumerate().map(|(bucket, ids)| {
                ids.iter().filter(|id| **id % buckets == bucket as u64).map(|id| post(*id, id % 5 + 1)).collect()
            }).collect();
            let direction = if is_up { Direction::Up } else { Direction::Down };
            let mut merge = Merge::new(direction, from, if is_up { u64::MAX } else { 0 });
            let mut depths = vec![NEWEST; lists.len()];
            let feed = |merge: &mut Merge, number: usize, depth: usize| {
                let bytes = stored(&lists[number]);
                let part = PublicPart::parse(end_of(&bytes, depth), depth);
                merge.feed(number, part.entries(), part.bound(direction, from));
            };
            for (number, depth) in depths.iter().enumerate() {
                merge.open();
                feed(&mut merge, number, *depth);
            }
            let mut shown: Vec<u64> = Vec::new();
            for _ in 0..8 {
                shown.extend(merge.take(limit - shown.len()).iter().map(|entry| entry.id));
                if shown.len() >= limit || merge.is_exhausted() {
                    break;
                }
                for number in merge.wanting_for(limit - shown.len()) {
                    depths[number] = depth(depths[number], limit - shown.len());
                    feed(&mut merge, number, depths[number]);
                }
            }
            let mut all: Vec<u64> = lists.iter().flatten().map(|post| post.id.get()).collect();
            all.retain(|id| if is_up { *id > from } else { *id < from });
            all.sort_unstable();
            if !is_up {
                all.reverse();
            }
            all.truncate(limit);
            prop_assert_eq!(shown, all);
        }
    }
}
