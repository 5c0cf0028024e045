//! Lists of posts that have left memory: who likes one, what answers, reposts, quotes it.

use std::cmp::Ordering;

use super::thaw::all_members;
use crate::archive::{ListKind, ListMember, MembersAsk, Owner, PAGE_MAX};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{AccountId, PostId};
use crate::post::{NamedList, PostRef};
use crate::sharded::{Member, Order, SetPage, SortedSet};
use crate::tenant::{LeftPost, MissingPost, Tenant, Untold, archive_away, as_away, changed_always};

/// Lists in one call of the archive.
const LISTS_AT_ONCE: usize = 256;
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

/// A question for the newest members of a list of a post.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewestAsk {
    pub(crate) post: PostRef,
    pub(crate) kind: u8,
    pub(crate) most: usize,
}

/// The newest members of lists, as they are stored, of which memory has just said that it has none; and those that only
/// the archive could tell, while it doesn't.
pub(crate) async fn newest_archived(
    tenant: &Tenant,
    asks: &[NewestAsk],
) -> Result<(Vec<Vec<Vec<u8>>>, Untold)> {
    let page = |ask: &NewestAsk| {
        let ask_for = MembersAsk { most: ask.most.min(PAGE_MAX), ..all_of(tenant, (ask.post.id, ask.kind)) };
        (Some(ask.post.author), ask_for)
    };
    let (pages, untold) = pages(tenant, asks.iter().map(page).collect()).await?;
    let bytes = |members: Vec<ListMember>| members.into_iter().map(|member| member.bytes).collect();
    Ok((pages.into_iter().map(|page| page.map(bytes).unwrap_or_default()).collect(), untold))
}

/// A question whether a list has a member at that place in the archive.
#[derive(Debug, Clone)]
pub(crate) struct MembershipQuestion {
    of: ListOf,
    member: ListMember,
}

impl MembershipQuestion {
    pub(crate) fn new(of: ListOf, member: &[u8], score: f64) -> Self {
        Self { of, member: ListMember { score, bytes: member.to_vec() } }
    }
}

/// Answers such questions about posts that the archive has: each reads one member.
pub(crate) async fn are_listed(tenant: &Tenant, asks: Vec<MembershipQuestion>) -> Result<Vec<bool>> {
    let Some(archive) = tenant.archive()? else { return Ok(vec![false; asks.len()]) };
    let look = |MembershipQuestion { of, member }: &MembershipQuestion| {
        // Just above the place that is asked for.
        let below = ListMember { score: member.score, bytes: [&member.bytes[..], &[0]].concat() };
        MembersAsk { below: Some(below), most: 1, ..all_of(tenant, *of) }
    };
    let mut listed = Vec::with_capacity(asks.len());
    for some in asks.chunks(LISTS_AT_ONCE) {
        let looks: Vec<MembersAsk> = some.iter().map(look).collect();
        let found = archive.members(&looks).await.map_err(archive_away)?;
        listed.extend(some.iter().zip(found).map(|(ask, found)| found.members.first() == Some(&ask.member)));
    }
    Ok(listed)
}

/// The place where a list of a post that has left memory has a member. `None`: nowhere, or the post is in memory.
pub(crate) async fn archived_score(tenant: &Tenant, of: ListOf, member: &[u8]) -> Result<Option<f64>> {
    let members = archived(tenant, of).await?.unwrap_or_default();
    Ok(members.into_iter().find(|found| found.bytes == member).map(|found| found.score))
}

/// The number of members of a list of a post that has left memory. `None`: the post is in memory, or there is none.
pub(crate) async fn archived_len(tenant: &Tenant, of: ListOf) -> Result<Option<u64>> {
    Ok(archived(tenant, of).await?.map(|members| members.len() as u64))
}

/// All members of a list of a post that the archive has, ascending, whatever memory says of it.
pub(crate) async fn stored_list(tenant: &Tenant, of: ListOf) -> Result<Vec<ListMember>> {
    let Some(archive) = tenant.archive()? else { return Ok(Vec::new()) };
    let mut members = all_members(archive, all_of(tenant, of), |_| Ok(())).await?.unwrap_or_default();
    members.reverse();
    Ok(members)
}

/// All members of a list of a post that has left memory, ascending. `None`: it is in memory, or there is none.
async fn archived(tenant: &Tenant, of: ListOf) -> Result<Option<Vec<ListMember>>> {
    if tenant.archive()?.is_none() || tenant.posts().exists(of.0).await? {
        return Ok(None);
    }
    let (mut members, mut ask) = (Vec::new(), all_of(tenant, of));
    loop {
        let (mut found, untold) = pages(tenant, vec![(None, ask.clone())]).await?;
        untold.refuse().map_err(as_away)?;
        let Some(page) = found.pop().flatten() else { return Ok(None) };
        let is_last = page.len() < ask.most;
        ask.below = page.last().cloned();
        members.extend(page);
        if is_last {
            members.reverse();
            return Ok(Some(members));
        }
    }
}

/// A question for the newest of all members of a list.
fn all_of(tenant: &Tenant, (post, kind): ListOf) -> MembersAsk {
    let bucket = post.bucket(tenant.keys().buckets());
    MembersAsk { bucket, post, kind: ListKind(kind), below: None, most: PAGE_MAX }
}

/// Pages of lists of posts that have left memory, with those that only the archive could tell, while it doesn't. None:
/// the post is in memory, or there is none. With each question whose post it is, if that is known.
async fn pages(
    tenant: &Tenant,
    asks: Vec<(Option<AccountId>, MembersAsk)>,
) -> Result<(Vec<Option<Vec<ListMember>>>, Untold)> {
    let mut found = vec![None; asks.len()];
    let Some(archive) = tenant.archive()?.filter(|_| !asks.is_empty()) else {
        return Ok((found, Untold::default()));
    };
    let missing: Vec<MissingPost> = asks.iter().map(|(owner, ask)| (ask.post, *owner)).collect();
    let (left, mut untold) = tenant.posts().left(&missing).await?;
    let left: Vec<(usize, LeftPost)> =
        left.into_iter().enumerate().filter_map(|(n, post)| Some((n, post?))).collect();
    let wanted: Vec<MembersAsk> = left.iter().map(|(n, _)| asks[*n].1.clone()).collect();
    if left.is_empty() {
        return Ok((found, untold));
    }
    // H227: at once, so that whoever meets an archive that doesn't answer waits once.
    let told = async {
        let answers = archive.members(&wanted).await?;
        let mut owners = Vec::new();
        for ((_, (account, _)), answer) in left.iter().zip(&answers) {
            if answer.owner.is_none() {
                owners.push(Owner { bucket: tenant.bucket(*account), account: *account });
            }
        }
        // Such a post was deleted since memory was asked, or it is the archive that lacks it.
        let states = if owners.is_empty() { Vec::new() } else { archive.owners(&owners).await? };
        Ok((answers, states.into_iter()))
    };
    let (answers, mut states) = match told.await.map_err(archive_away) {
        Ok(told) => told,
        Err(failure) => {
            untold.add(left.iter().map(|(n, _)| *n), failure);
            return Ok((found, untold));
        }
    };
    for ((n, (owner, floor)), answer) in left.into_iter().zip(answers) {
        let is_there = answer.owner.is_some();
        let state = answer.owner.or_else(|| states.next().flatten());
        // H228: of a database that is older than what memory knows a list may lack anything.
        match floor.check(owner, state) {
            Ok(()) => found[n] = is_there.then_some(answer.members),
            Err(behind) => untold.add([n], behind),
        }
    }
    Ok((found, untold))
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
