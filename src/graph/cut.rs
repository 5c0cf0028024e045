//! Lists of mentions and hashtags have a bound: what leaves one that is full, and how that is told.
//!
//! Posts of the authors who have most on the list leave ([`fair`](super::fair)). Two kinds of *floors* say so: one of
//! the list, a member whose score is a millisecond, and one of an author, in a set beside the list, whose score is the
//! author's newest post that has left. What is missing at or below one of them has left; what is missing above both is
//! a fault. What stands below a floor is shown like anything else. Floors rise before posts go, and are on replicas by
//! then (H101); both only where the bucket knows the decision that the cut follows from.

use std::time::Duration;

use futures::future::try_join;
use tokio::time::Instant;

use super::fair::{LeavingEntries, leaving, leaving_by};
use super::named::{ListItem, ListNumber, list_score, most_on, post_list};
use crate::archive::LISTED_MAX;
use crate::charter::Decision;
use crate::cluster::TouchedServers;
use crate::error::{Error, Result};
use crate::ids::{AccountId, IdMap, PostId};
use crate::post::{NamedList, PostRef};
use crate::sharded::{Checkpoint, Order, PAGE_MAX, SortedSet};
use crate::tenant::Tenant;
use crate::tiers::{self, ListCut};

/// A list is cut once it is longer than it should be by this part of it, and by so many: a cut costs a few trips.
const SLACK: (u64, u64) = (8, 8);
/// The time for which one list is cut, until others have their turn.
const CUT_DOWN_FOR: Duration = Duration::from_secs(30);
/// Posts that leave, and floors that rise, by one call.
const AT_ONCE: usize = 5_000;
/// Posts whose writers are asked for at once.
const WRITERS_AT_ONCE: usize = 256;

/// The standing of a post on a list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ListStanding {
    /// Its score, if it is on it.
    pub(crate) score: Option<f64>,
    /// Whether it is one of those of which the list says that they have left, or may have.
    pub(crate) has_left: bool,
}

/// Looks where a post stands on a list.
pub(crate) async fn standing(tenant: &Tenant, list: NamedList, post: PostRef) -> Result<ListStanding> {
    let standing = standings(tenant, &[(list, post)]).await?.pop();
    standing.ok_or_else(|| Error::internal("a list has not answered"))
}

/// Looks where posts stand on lists.
pub(crate) async fn standings(tenant: &Tenant, asked: &[(NamedList, PostRef)]) -> Result<Vec<ListStanding>> {
    let (sets, mut places, mut of_authors) = (tenant.sets(), Vec::new(), Vec::new());
    for (list, post) in asked {
        let set = post_list(tenant, *list)?;
        places.extend([(set.clone(), ListItem::Post(*post)), (set, ListItem::Number(ListNumber::Floor))]);
        of_authors.push((floors(tenant, *list)?, post.author));
    }
    let scores = sets.scores_in(&places).await?;
    // After that: an author's floor rises before its posts go.
    let of_authors = sets.scores_in(&of_authors).await?;
    let mut standings = Vec::with_capacity(asked.len());
    for ((_, post), (scores, of_author)) in asked.iter().zip(scores.chunks(2).zip(of_authors)) {
        let (score, floor) = (scores.first().copied().flatten(), scores.get(1).copied().flatten());
        let has_left = floor.is_some_and(|floor| list_score(post.id) <= floor)
            || of_author.is_some_and(|floor| post.id.place(tenant.keys().buckets()) <= floor);
        standings.push(ListStanding { score, has_left });
    }
    Ok(standings)
}

/// The floors of authors on a list: each the place of a post among the ids of its author's bucket.
pub(crate) fn floors(tenant: &Tenant, list: NamedList) -> Result<SortedSet<AccountId>> {
    Ok(match list {
        NamedList::Mentions(account) => tenant.sets().of_account(account, "mentions-left")?.pinned(),
        NamedList::Tagged(number) => tenant.sets().left_of_tag(number).pinned(),
        NamedList::Written(account) => tenant.sets().of_account(account, "written-left")?.pinned(),
        NamedList::Chats(account) => tenant.sets().of_account(account, "chats-left")?.pinned(),
    })
}

/// Whether posts have left a list: whatever it says of itself.
pub(crate) async fn was_cut(tenant: &Tenant, list: NamedList) -> Result<bool> {
    let (set, floors) = (post_list(tenant, list)?, floors(tenant, list)?);
    let (of_list, of_authors) =
        try_join(set.score(&ListItem::Number(ListNumber::Floor)), floors.len()).await?;
    Ok(of_list.is_some() || of_authors > 0)
}

/// Whether a list of so many members is to be cut to `most`.
pub(super) fn is_due(list: NamedList, members: u64, most: u64) -> bool {
    members > most + slack(list, most)
}

fn slack(list: NamedList, most: u64) -> u64 {
    match list {
        // To cut one takes a look at each of its messages.
        NamedList::Chats(_) => most / 2,
        _ => (most / SLACK.0).max(SLACK.1),
    }
}

/// Cuts a list down to as many posts as was decided, if its bucket knows that decision. Several that cut at once let
/// nothing go that should stay: what goes was read before, and what the others have let go meanwhile would go anyway.
/// Tells how many posts went.
pub(crate) async fn cut(tenant: &Tenant, list: NamedList, decision: Decision) -> Result<u64> {
    let most = u64::from(most_on(decision.settings, list));
    let set = post_list(tenant, list)?;
    let (posts, mut stay) = (newest_first(&set).await?, usize::try_from(most).unwrap_or(usize::MAX));
    let is_archived = is_archived(tenant, list);
    if is_archived {
        // H235: what the archive is told at once it has or lacks as one.
        stay = stay.max(posts.len().saturating_sub(LISTED_MAX));
    }
    let leaving = match list {
        // Who is in many chats with somebody is one there all the same.
        NamedList::Chats(_) => {
            let writers = writers(tenant, &posts).await?;
            leaving_by(&posts, stay, |post| writers.get(&post.id).copied().unwrap_or(post.author))
        }
        _ => leaving(&posts, stay),
    };
    // H101: first the floors, on replicas too: they say what the list lacks from then on.
    let Some(told) = raise_floors(tenant, list, &leaving, decision.number).await? else { return Ok(0) };
    if is_archived && !tells_archive(tenant, list, &leaving, decision.number).await? {
        return Ok(0);
    }
    let leave: Vec<ListItem> = leaving.posts.into_iter().map(ListItem::Post).collect();
    let mut went = 0;
    // H144: of a list that was never cut more goes than one call takes. The floors stand for all of it already.
    for part in leave.chunks(AT_ONCE) {
        // H65: floors that have risen say less than they could; posts that are gone don't come back.
        went += set.remove_decided(part, decision.number).await?.members;
    }
    if told > most + slack(list, most) {
        forget_oldest(tenant, list, decision.number, told - most).await?;
    }
    Ok(went)
}

/// Cuts a list that goes on in the archive: as often as it takes within its turn, or once where that has to settle.
pub(crate) async fn cut_down(tenant: &Tenant, list: NamedList, decision: Decision) -> Result<ListCut> {
    let (set, most, begun) =
        (post_list(tenant, list)?, u64::from(most_on(decision.settings, list)), Instant::now());
    let turn = match tenant.archive()? {
        Some(archive) if !archive.settles_within().is_zero() => Duration::ZERO,
        _ => CUT_DOWN_FOR,
    };
    let mut was_cut = false;
    while is_due(list, set.len().await?, most) {
        if was_cut && begun.elapsed() >= turn {
            return Ok(ListCut::HasMore);
        }
        if cut(tenant, list, decision).await? == 0 {
            return Ok(ListCut::Kept);
        }
        was_cut = true;
    }
    Ok(ListCut::Done)
}

/// Says what leaves, for good, before it does. Gives how many authors have a floor, if any has risen, else 0. `None`:
/// the bucket knows another decision, so nothing may leave, and the list must not say that it has (H143).
async fn raise_floors(
    tenant: &Tenant,
    list: NamedList,
    leaving: &LeavingEntries,
    decision: u32,
) -> Result<Option<u64>> {
    let (mut risen, mut told) = (TouchedServers::new(), 0);
    if let Some(until) = leaving.until_ms {
        let floor = [(ListItem::Number(ListNumber::Floor), score_of(until))];
        let Some(added) = post_list(tenant, list)?.add_greater_decided(&floor, decision).await? else {
            return Ok(None);
        };
        risen.extend(&added.touched);
    }
    let (floors, buckets) = (floors(tenant, list)?, tenant.keys().buckets());
    for part in leaving.authors.chunks(AT_ONCE) {
        let places: Vec<_> = part.iter().map(|post| (post.author, post.id.place(buckets))).collect();
        let Some(added) = floors.add_greater_decided(&places, decision).await? else { return Ok(None) };
        told = told.max(added.len);
        risen.extend(&added.touched);
    }
    lasts(tenant, &risen).await?;
    Ok(Some(told))
}

/// Has the archive list what leaves, before it does. False: it doesn't for good, and nothing may leave for now.
async fn tells_archive(
    tenant: &Tenant,
    list: NamedList,
    leaving: &LeavingEntries,
    decision: u32,
) -> Result<bool> {
    let Some(newest) = leaving.posts.first() else { return Ok(true) };
    let Some(stamp) = tiers::store_listed(tenant, list, &leaving.posts).await? else { return Ok(false) };
    let numbers = [(ListNumber::Archived, list_score(newest.id)), (ListNumber::Known, score_of(stamp))];
    let numbers = numbers.map(|(number, score)| (ListItem::Number(number), score));
    let Some(said) = post_list(tenant, list)?.add_greater_decided(&numbers, decision).await? else {
        return Ok(false);
    };
    // H189: before posts go, or whoever reads meanwhile finds them neither here nor there.
    lasts(tenant, &said.touched).await?;
    Ok(true)
}

/// Whether what leaves a list goes into the archive.
fn is_archived(tenant: &Tenant, list: NamedList) -> bool {
    list.is_archived() && tenant.known.decision().archive.is_some()
}

/// The writers of these posts, as far as the posts are there and can be read.
async fn writers(tenant: &Tenant, posts: &[PostRef]) -> Result<IdMap<PostId, AccountId>> {
    let mut writers = IdMap::default();
    for some in posts.chunks(WRITERS_AT_ONCE) {
        let ids: Vec<PostId> = some.iter().map(|post| post.id).collect();
        // Of what can't be told now its chat counts as who has written it.
        let (found, _) = tenant.posts().get_many_as_told(&ids).await?;
        for (id, post) in ids.iter().zip(found) {
            writers.extend(post.but_for_visibility().found().map(|post| (*id, post.writer())));
        }
    }
    Ok(writers)
}

/// All posts of a list. It may be much longer than its bound: of data for which nothing was decided for long.
pub(crate) async fn newest_first(set: &SortedSet<ListItem>) -> Result<Vec<PostRef>> {
    let (mut posts, mut next) = (Vec::new(), Some(Checkpoint::START));
    while let Some(from) = next {
        let walk = set.walk(from).await?;
        posts.extend(walk.entries.into_iter().filter_map(|(listed, _)| listed.post()));
        next = walk.next;
    }
    posts.sort_unstable_by(|one, other| other.cmp(one));
    // A walk may meet a post twice.
    posts.dedup();
    Ok(posts)
}

/// As many authors as a list may have posts have a floor there. Beyond that the lowest become the list's own floor,
/// which takes nothing off it: what it says is only less.
async fn forget_oldest(tenant: &Tenant, list: NamedList, decision: u32, many: u64) -> Result<()> {
    let (set, floors, keys) = (post_list(tenant, list)?, floors(tenant, list)?, tenant.keys());
    let mut left = usize::try_from(many).unwrap_or(usize::MAX);
    while left > 0 {
        let lowest = floors.page(.., None, left.min(PAGE_MAX), Order::Ascending).await?.entries;
        if lowest.is_empty() {
            return Ok(());
        }
        left -= lowest.len();
        let mut until_ms = 0;
        for (author, place) in &lowest {
            let post = PostId::at_place(keys.buckets(), keys.bucket_of(*author), *place)?;
            until_ms = until_ms.max(post.unix_ms());
        }
        let floor = [(ListItem::Number(ListNumber::Floor), score_of(until_ms))];
        let Some(risen) = set.add_greater_decided(&floor, decision).await? else { return Ok(()) };
        lasts(tenant, &risen.touched).await?;
        // One that has risen meanwhile stays.
        let lowest: Vec<_> = lowest.into_iter().map(|(author, place)| (author, place + 1.0)).collect();
        floors.remove_below(&lowest).await?;
    }
    Ok(())
}

/// Makes sure that what floors say lasts before anything goes by them: the server may fail over without them, and take
/// the removal as if they had risen (H101).
async fn lasts(tenant: &Tenant, risen: &TouchedServers) -> Result<()> {
    tenant.router().fence(risen).await?;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds are below 2^53")]
fn score_of(ms: u64) -> f64 {
    ms as f64
}
