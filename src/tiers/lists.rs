//! Lists of posts that have left memory: who likes one, what answers, reposts, quotes it.

use std::cmp::Ordering;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};

use super::thaw::all_members;
use crate::archive::{ListKind, ListMember, MembersAsk, PAGE_MAX};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::PostId;
use crate::post::NamedList;
use crate::sharded::{Member, Order, SetPage, SortedSet};
use crate::tenant::{Tenant, archive_away, changed_always};

/// Lists asked after at the same time.
const LISTS_AT_ONCE: usize = 16;
/// Looks at one list while its post comes and goes.
const TRIES_MAX: usize = 8;

/// A list of a post, by its letter.
pub(crate) type ListOf = (PostId, u8);

/// A list that the archive may have too, or what of it lies beyond its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArchivedList {
    /// Of a post.
    OfPost(ListOf),
    /// What mentions somebody, or bears a hashtag.
    Named(NamedList),
}

/// A page of a list of a post, wherever that lies.
pub(crate) async fn list_page<M: Member>(
    tenant: &Tenant,
    of: ListOf,
    set: &SortedSet<M>,
    after: Option<&(M, f64)>,
    limit: usize,
    order: Order,
) -> Result<SetPage<M>> {
    let mut was_archived = false;
    for _ in 0..TRIES_MAX {
        let page = set.page(.., after, limit, order).await?;
        if !page.entries.is_empty() || tenant.archive()?.is_none() {
            return Ok(page);
        }
        match archived(tenant, of).await? {
            Some(members) => return page_of(members, after, limit, order),
            // In memory at a look after that at the list: there is nothing, unless it has just come back.
            None if was_archived => return Ok(page),
            None => was_archived = true,
        }
    }
    Err(changed_always(ErrorKind::Unavailable, format_args!("lists of post {}", of.0)))
}

/// The newest members of a list, as they are stored, of which memory has just said that it has none.
pub(crate) async fn newest_archived(tenant: &Tenant, of: ListOf, most: usize) -> Result<Vec<Vec<u8>>> {
    let members = archived(tenant, of).await?.unwrap_or_default();
    Ok(members.into_iter().rev().take(most).map(|member| member.bytes).collect())
}

/// A question whether a list has a member at that place in the archive.
#[derive(Debug, Clone)]
pub(crate) struct ListedAt {
    of: ListOf,
    member: ListMember,
}

impl ListedAt {
    pub(crate) fn new(of: ListOf, member: &[u8], score: f64) -> Self {
        Self { of, member: ListMember { score, bytes: member.to_vec() } }
    }
}

/// Answers such questions about posts that the archive has: each reads one member.
pub(crate) async fn are_listed(tenant: &Tenant, asks: Vec<ListedAt>) -> Result<Vec<bool>> {
    let Some(archive) = tenant.archive()? else { return Ok(vec![false; asks.len()]) };
    let look = |ListedAt { of: (post, kind), member }: ListedAt| async move {
        // Just above the place that is asked for.
        let below = ListMember { score: member.score, bytes: [&member.bytes[..], &[0]].concat() };
        let bucket = post.bucket(tenant.keys().buckets());
        let ask = MembersAsk { bucket, post, kind: ListKind(kind), below: Some(below), most: 1 };
        let found = archive.members(&ask).await.map_err(archive_away)?.members;
        Ok(found.first() == Some(&member))
    };
    stream::iter(asks).map(look).buffered(LISTS_AT_ONCE).try_collect().await
}

/// Where a list of a post that has left memory has a member. `None`: nowhere, or the post is in memory.
pub(crate) async fn archived_score(tenant: &Tenant, of: ListOf, member: &[u8]) -> Result<Option<f64>> {
    let members = archived(tenant, of).await?.unwrap_or_default();
    Ok(members.into_iter().find(|found| found.bytes == member).map(|found| found.score))
}

/// How many members a list of a post has that has left memory. `None`: the post is in memory, or there is none.
pub(crate) async fn archived_len(tenant: &Tenant, of: ListOf) -> Result<Option<u64>> {
    Ok(archived(tenant, of).await?.map(|members| members.len() as u64))
}

/// All members of a list of a post that the archive has, ascending, whatever memory says of it.
pub(crate) async fn stored_list(tenant: &Tenant, (post, kind): ListOf) -> Result<Vec<ListMember>> {
    let Some(archive) = tenant.archive()? else { return Ok(Vec::new()) };
    let bucket = post.bucket(tenant.keys().buckets());
    let ask = MembersAsk { bucket, post, kind: ListKind(kind), below: None, most: PAGE_MAX };
    let mut members = all_members(archive, ask).await.map_err(archive_away)?;
    members.reverse();
    Ok(members)
}

/// All members of a list of a post that has left memory, ascending. `None`: it is in memory, or there is none.
async fn archived(tenant: &Tenant, of: ListOf) -> Result<Option<Vec<ListMember>>> {
    if !tenant.posts().has_left(of.0).await? {
        return Ok(None);
    }
    stored_list(tenant, of).await.map(Some)
}

/// A page of members that are ascending.
fn page_of<M: Member>(
    members: Vec<ListMember>,
    after: Option<&(M, f64)>,
    limit: usize,
    order: Order,
) -> Result<SetPage<M>> {
    let after =
        after.map(|(member, score)| ListMember { score: *score, bytes: member.to_bytes().as_ref().to_vec() });
    let is_beyond = |member: &ListMember| match (&after, order) {
        (None, _) => true,
        (Some(after), Order::Ascending) => member.order(after) == Ordering::Greater,
        (Some(after), Order::Descending) => member.order(after) == Ordering::Less,
    };
    let mut beyond: Vec<ListMember> = members.into_iter().filter(is_beyond).collect();
    if order == Order::Descending {
        beyond.reverse();
    }
    beyond.truncate(limit);
    let decode = |member: &ListMember| Ok::<_, Error>((M::from_bytes(&member.bytes)?, member.score));
    let entries: Vec<(M, f64)> = beyond.iter().map(decode).collect::<Result<_>>()?;
    let next = entries.get(limit - 1).cloned();
    Ok(SetPage { entries, next })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::AccountId;

    #[test]
    fn pages_of_an_archived_list_are_those_of_a_set() {
        let account = |n: u64| AccountId::new(n).unwrap();
        let scores = [(1, 5.0), (2, 7.0), (3, 7.0), (4, 9.0)];
        let members = || {
            let member = |(n, score): (u64, f64)| ListMember { score, bytes: account(n).to_bytes().to_vec() };
            scores.into_iter().map(member).collect::<Vec<_>>()
        };
        let page = |after: Option<(u64, f64)>, limit, order| {
            let after = after.map(|(n, score)| (account(n), score));
            let page: SetPage<AccountId> = page_of(members(), after.as_ref(), limit, order).unwrap();
            let ids: Vec<u64> = page.entries.iter().map(|(account, _)| account.get()).collect();
            (ids, page.next.map(|(account, score)| (account.get(), score)))
        };
        assert_eq!(page(None, 2, Order::Descending), (vec![4, 3], Some((3, 7.0))));
        assert_eq!(page(Some((3, 7.0)), 2, Order::Descending), (vec![2, 1], Some((1, 5.0))));
        assert_eq!(page(Some((1, 5.0)), 2, Order::Descending), (vec![], None));
        assert_eq!(page(Some((2, 7.0)), 9, Order::Ascending), (vec![3, 4], None));
        // A place that nobody has.
        assert_eq!(page(Some((9, 6.0)), 1, Order::Ascending), (vec![2], Some((2, 7.0))));
    }
}
