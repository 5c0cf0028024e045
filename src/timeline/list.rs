//! Lists of posts as sources of a page: what mentions somebody, what bears a hashtag, what answers a post. A list says
//! which posts to look at; whether one belongs there (still) the post says itself.

use super::merge::{Direction, PageEntry};
use crate::archive::PageOrder;
use crate::error::{Error, ErrorCode, Result};
use crate::graph::{ListItem, ListNumber, list_score};
use crate::ids::PostId;
use crate::post::NamedList;
use crate::sharded::{Order, PAGE_MAX, SortedSet};
use crate::tenant::Tenant;
use crate::tiers::{ArchivedList, list_page, listed_beyond};

/// Posts read beyond those that are missing: some will not show, and the last one only tells how far the others go.
const MARGIN: usize = 8;

/// The part of a list that it has given, and how far that is all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListPart {
    /// Author 0: the list doesn't tell.
    pub(super) entries: Vec<PageEntry>,
    /// As a source's: down, complete for ids >= this; up, for ids <= this.
    pub(super) bound: u64,
}

/// The number of posts to ask a list for that was asked for so many last time.
pub(super) fn depth(before: usize, missing: usize) -> usize {
    (before * 2).max(missing + MARGIN).min(PAGE_MAX)
}

/// Asks a list for posts on one side of an id, wherever they lie. With a failure: what there is above that which only
/// the archive could tell.
pub(super) async fn read_page(
    tenant: &Tenant,
    (list, of): (&SortedSet<ListItem>, Option<ArchivedList>),
    (direction, from): (Direction, u64),
    most: usize,
) -> Result<(ListPart, Option<Error>)> {
    let place = PostId::from_u64(from).ok();
    let order = match (direction, place) {
        // Beyond all ids that there are.
        (Direction::Up, None) => return Ok((lay_out(&[], true, direction, from), None)),
        (Direction::Up, _) => Order::Ascending,
        (Direction::Down, _) => Order::Descending,
    };
    let after = place.map(|post| (ListItem::Id(post), list_score(post)));
    let page = match of {
        Some(ArchivedList::OfPost(of)) => list_page(tenant, of, list, after.as_ref(), most, order).await?,
        Some(ArchivedList::Named(_)) | None => list.page(.., after.as_ref(), most, order).await?,
    };
    let listed: Vec<ListItem> = page.entries.into_iter().map(|(listed, _)| listed).collect();
    let part = lay_out(&listed, page.next.is_none(), direction, from);
    match of {
        Some(ArchivedList::Named(named)) if tenant.archive()?.is_some() => {
            with_archived(tenant, (list, named), part, (direction, from), most).await
        }
        _ => Ok((part, None)),
    }
}

/// Completes a part of a list of mentions, or of a hashtag, with what the archive has of it.
async fn with_archived(
    tenant: &Tenant,
    (list, named): (&SortedSet<ListItem>, NamedList),
    part: ListPart,
    (direction, from): (Direction, u64),
    most: usize,
) -> Result<(ListPart, Option<Error>)> {
    // H189: after the page. What has left before it was read is told by then.
    let numbers = list.scores(&[ListNumber::Archived, ListNumber::Known].map(ListItem::Number)).await?;
    let [Some(upto), stamp] = numbers[..] else { return Ok((part, None)) };
    // The lowest id above all that the archive may have.
    let above = first_id_after(upto);
    let is_above = match direction {
        Direction::Down => part.bound >= above,
        Direction::Up => from >= above,
    };
    if is_above {
        return Ok((part, None));
    }
    let (edge, order) = match direction {
        Direction::Down => (PostId::from_u64(from).ok(), PageOrder::NewestFirst),
        // Its own id is met again, as it is in memory.
        Direction::Up => (PostId::from_u64(from.saturating_sub(1)).ok(), PageOrder::OldestFirst),
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number below 2^53")]
    let stamp = stamp.unwrap_or_default() as u64;
    match listed_beyond(tenant, (named, stamp), (edge, order), most).await {
        Ok(posts) => {
            let is_all = posts.len() < most;
            let listed: Vec<ListItem> = posts.into_iter().map(ListItem::Post).collect();
            Ok((part.joined(lay_out(&listed, is_all, direction, from), direction), None))
        }
        Err(failure) if failure.code() == ErrorCode::ArchiveAway => {
            let nothing = ListPart {
                entries: Vec::new(),
                bound: if direction == Direction::Up { from } else { above },
            };
            Ok((part.joined(nothing, direction), Some(failure)))
        }
        Err(failure) => Err(failure),
    }
}

/// The lowest id of a later millisecond.
fn first_id_after(score: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "milliseconds are below 2^53"
    )]
    let ms = score as u64;
    PostId::lowest_of(ms + 1)
}

impl ListPart {
    /// With another part of the same list: as far as both are complete.
    fn joined(mut self, other: Self, direction: Direction) -> Self {
        self.entries.extend(other.entries);
        self.entries.sort_unstable_by_key(|entry| (entry.id, entry.author));
        self.entries.dedup();
        match direction {
            Direction::Down => {
                self.bound = self.bound.max(other.bound);
                self.entries.retain(|entry| entry.id >= self.bound);
                self.entries.reverse();
            }
            Direction::Up => {
                self.bound = self.bound.min(other.bound);
                self.entries.retain(|entry| entry.id <= self.bound);
            }
        }
        self
    }
}

/// The part that a page of a list, in its order, tells; `is_all`: nothing follows.
fn lay_out(listed: &[ListItem], is_all: bool, direction: Direction, from: u64) -> ListPart {
    // These numbers say what may be missing.
    let entries: Vec<PageEntry> = listed
        .iter()
        .filter_map(|listed| match listed {
            ListItem::Number(_) => None,
            ListItem::Id(post) => Some(PageEntry { id: post.get(), author: 0 }),
            ListItem::Post(post) => Some(PageEntry { id: post.id.get(), author: post.author.get() }),
        })
        .collect();
    let last = entries.last().map_or(from, |last| last.id);
    // After a failover an id may have come twice, and the second of the two be on the next page only: the last one is
    // met again there. But each page goes on by one at least.
    let bound = match (direction, is_all) {
        (Direction::Down, true) => 0,
        (Direction::Up, true) => u64::MAX,
        (Direction::Down, false) => last.saturating_add(1).min(from.saturating_sub(1)),
        (Direction::Up, false) => last.saturating_sub(1).max(from.saturating_add(1)),
    };
    ListPart { entries, bound }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::AccountId;
    use crate::post::PostRef;
    use crate::timeline::merge::Merge;
    use proptest::prelude::*;

    /// Less than is ever asked for; more than the two last ids with two authors each.
    const SIZE: usize = 5;

    fn post(id: u64, author: u64) -> ListItem {
        ListItem::Post(PostRef { id: PostId::from_u64(id).unwrap(), author: AccountId::new(author).unwrap() })
    }

    /// A list in memory, asked as a set is.
    fn ask(list: &[ListItem], direction: Direction, from: u64) -> ListPart {
        let id = |listed: &ListItem| match listed {
            ListItem::Number(_) => None,
            ListItem::Id(post) | ListItem::Post(PostRef { id: post, .. }) => Some(post.get()),
        };
        let mut found: Vec<ListItem> = list.to_vec();
        match direction {
            Direction::Down => {
                found.retain(|e| id(e).is_none_or(|id| id < from));
                found.reverse();
            }
            // An entry of sixteen bytes stands behind the place of its own id.
            Direction::Up => found.retain(|e| id(e).is_some_and(|id| id >= from)),
        }
        let is_all = found.len() < SIZE;
        found.truncate(SIZE);
        lay_out(&found, is_all, direction, from)
    }

    proptest! {
        #[test]
        fn a_list_is_gone_through_completely(
            ids in proptest::collection::btree_set((1u64..40, 1u64..3), 0..30),
            has_floor: bool, is_up: bool, page in 1usize..5
        ) {
            let direction = if is_up { Direction::Up } else { Direction::Down };
            let mut list: Vec<ListItem> = ids.iter().map(|(id, by)| post(*id, *by)).collect();
            if has_floor {
                // Somewhere among them.
                list.insert(list.len() / 2, ListItem::Number(ListNumber::Floor));
            }
            let (from, until) = if is_up { (0, u64::MAX) } else { (u64::MAX, 0) };
            let mut merge = Merge::new(direction, from, until);
            let source = merge.open();
            let mut shown = Vec::new();
            for _ in 0..200 {
                shown.extend(merge.take(page));
                if merge.is_exhausted() {
                    break;
                }
                let part = ask(&list, direction, merge.bound_of(source));
                merge.feed(source, part.entries, part.bound);
            }
            let mut expected: Vec<(u64, u64)> = ids.into_iter().collect();
            if !is_up {
                expected.reverse();
            }
            prop_assert!(merge.is_exhausted());
            let shown: Vec<(u64, u64)> = shown.into_iter().map(|e| (e.id, e.author)).collect();
            prop_assert_eq!(shown, expected);
        }
    }

    #[test]
    fn asks_for_more_each_time_up_to_a_page() {
        assert_eq!((depth(0, 20), depth(28, 3), depth(900, 1)), (28, 56, PAGE_MAX));
    }
}
