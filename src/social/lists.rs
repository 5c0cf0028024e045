//! Lists by time, a page at a time, both ways: who likes and who reposts a post, what quotes it, what an account likes
//! and has bookmarked. What their reader may not see is left out; so a page may be short, and still have a next one.

use std::collections::{BTreeSet, HashSet};
use std::ops::Bound;
use std::sync::Arc;

use futures::future::try_join;

use super::ListCursor;
use super::cursor::ListedMember;
use crate::account::Account;
use crate::engine::{Reader, Viewer};
use crate::error::{CallFuture, Error, Result};
use crate::graph;
use crate::ids::{AccountId, PostId};
use crate::meters;
use crate::post::{PostRef, Reference};
use crate::reader::Tie;
use crate::settings::{PAGE_LEN_MAX, page_length};
use crate::sharded::{Order, SortedSet};
use crate::tiers::list_page;
use crate::timeline::{PagePost, UntoldPosts, View};

/// Entries on a page if the query doesn't say.
const PAGE_DEFAULT: usize = 20;
/// Entries that are looked at beyond those that are asked for, on a list that others see. So a page has as many as were
/// asked for where no more in a row are left out: by shorter ones, from places that are made up, somebody would find
/// out who these are.
const SPARE: usize = 20;
/// Reads for a page of a list that others see, where nothing shows.
pub(super) const READS_MAX: usize = 8;
/// Most posts that a page of likes or bookmarks forgets because they are gone: each takes two trips.
const FORGOTTEN_MAX: usize = 10;
/// The score in cursors of lists that know no times.
const UNTIMED: f64 = 0.0;

/// A question for a page of a list; the default is the newest one.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct ListQuery {
    /// Entries on the page: 1 to 100; `None`: 20.
    pub limit: Option<usize>,
    /// Only entries older than this place.
    pub older_than: Option<ListCursor>,
    /// Only entries newer than this place, and of these the ones next to it. Not together with another place.
    pub newer_than: Option<ListCursor>,
    /// Only entries newer than this place, the newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down_to: Option<ListCursor>,
}

impl ListQuery {
    /// Sets how many entries the page has.
    #[must_use]
    pub fn limit(self, entries: usize) -> Self {
        Self { limit: Some(entries), ..self }
    }

    /// Asks for what is older than this place.
    #[must_use]
    pub fn older_than(self, place: ListCursor) -> Self {
        Self { older_than: Some(place), ..self }
    }

    /// Asks for what is newer than this place, and of that for what is next to it.
    #[must_use]
    pub fn newer_than(self, place: ListCursor) -> Self {
        Self { newer_than: Some(place), ..self }
    }

    /// Asks only for what is newer than this place, the newest first.
    #[must_use]
    pub fn down_to(self, place: ListCursor) -> Self {
        Self { down_to: Some(place), ..self }
    }

    fn page<M: ListedMember>(&self) -> Result<ListWindow<M>> {
        let limit = page_length(self.limit.unwrap_or(PAGE_DEFAULT), PAGE_LEN_MAX)?;
        let (place, order) = match (&self.older_than, &self.newer_than) {
            (Some(_), Some(_)) => {
                return Err(Error::invalid(
                    "a page is asked for older_than and newer_than a place: only one of them is allowed",
                ));
            }
            (None, Some(_)) if self.down_to.is_some() => {
                return Err(Error::invalid(
                    "a page is asked for newer_than and down_to a place: only one of them is allowed",
                ));
            }
            (place, None) => (place, Order::Descending),
            (None, place) => (place, Order::Ascending),
        };
        // One of another list says nothing here.
        self.down_to.as_ref().map(ListCursor::place::<M>).transpose()?;
        Ok((limit, place.as_ref().map(ListCursor::place).transpose()?, order))
    }
}

/// A window of a list: so many entries, from where, in which order.
type ListWindow<M> = (usize, Option<(M, f64)>, Order);

/// A page of a list of accounts, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct AccountList {
    /// The accounts, as far as the reader may meet them.
    pub accounts: Vec<Arc<Account>>,
    /// What is older goes on there; `None`: that was all.
    pub older: Option<ListCursor>,
    /// What is newer goes on there; `None`: there was nothing to begin with.
    pub newer: Option<ListCursor>,
    /// Whether the archive was away: the page ends where only that could tell what follows. Its cursor stands there:
    /// go on from it, once the archive is back. Only of reposters.
    pub lacks_archive: bool,
}

/// A page of a list of posts, newest first by when they came onto the list.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct PostList {
    /// The posts, hydrated and with ties, as far as the reader may see them.
    pub posts: Vec<PagePost>,
    /// What is older goes on there; `None`: that was all.
    pub older: Option<ListCursor>,
    /// What is newer goes on there; `None`: there was nothing to begin with.
    pub newer: Option<ListCursor>,
    /// Whether the archive was away: the page ends where only that could tell what follows. Its cursor stands there:
    /// go on from it, once the archive is back.
    pub lacks_archive: bool,
}

/// Entries of a list, and where it goes on.
pub(super) struct ListedEntries<M> {
    /// With their scores, the newest first.
    entries: Vec<(M, f64)>,
    query: ListQuery,
    /// Most that are shown, and in which order they were looked at.
    limit: usize,
    order: Order,
    /// Whether where it goes on may name what doesn't show: it is for its account alone.
    names_all: bool,
    /// There are no more in that order.
    is_over: bool,
    /// Only the archive could tell the next one.
    lacks_archive: bool,
}

/// Reads a page of a list that is for its account alone.
pub(super) async fn read<M: ListedMember>(set: &SortedSet<M>, query: &ListQuery) -> Result<ListedEntries<M>> {
    Ok(ListedEntries { names_all: true, ..read_with(set, query, 0).await? })
}

/// Reads a page of a list that others see, too.
pub(super) async fn read_seen<M: ListedMember>(
    set: &SortedSet<M>,
    query: &ListQuery,
) -> Result<ListedEntries<M>> {
    read_with(set, query, SPARE).await
}

async fn read_with<M: ListedMember>(
    set: &SortedSet<M>,
    query: &ListQuery,
    spare: usize,
) -> Result<ListedEntries<M>> {
    let (limit, from, order) = query.page::<M>()?;
    let page = set.page(.., from.as_ref(), limit + spare, order).await?;
    Ok(ListedEntries::new(query, (limit, order), page.entries, page.next.is_none()))
}

/// Reads a page of accounts that no time is known of: by their ids, the highest first.
pub(super) fn read_ids(ids: &BTreeSet<AccountId>, query: &ListQuery) -> Result<ListedEntries<AccountId>> {
    let (limit, from, order) = query.page::<AccountId>()?;
    let from = from.map(|(id, _)| id);
    let (above, below) = match order {
        Order::Descending => (Bound::Unbounded, from.map_or(Bound::Unbounded, Bound::Excluded)),
        Order::Ascending => (from.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded),
    };
    let all = ids.range((above, below)).map(|id| (*id, UNTIMED));
    let mut entries: Vec<_> = match order {
        Order::Descending => all.rev().take(limit + 1).collect(),
        Order::Ascending => all.take(limit + 1).collect(),
    };
    let is_over = entries.len() <= limit;
    entries.truncate(limit);
    Ok(ListedEntries { names_all: true, ..ListedEntries::new(query, (limit, order), entries, is_over) })
}

impl<M: ListedMember> ListedEntries<M> {
    /// Of entries in this order; `is_over`: there are no more of them.
    fn new(
        query: &ListQuery,
        (limit, order): (usize, Order),
        mut entries: Vec<(M, f64)>,
        mut is_over: bool,
    ) -> Self {
        if order == Order::Ascending {
            entries.reverse();
        } else if let Some(end) = &query.down_to {
            let all = entries.len();
            entries.truncate(entries.partition_point(|(member, score)| end.is_below(member, *score)));
            is_over |= entries.len() < all;
        }
        Self { entries, query: query.clone(), limit, order, names_all: false, is_over, lacks_archive: false }
    }

    /// The listed members, the newest first.
    pub(super) fn members(&self) -> Vec<M> {
        self.entries.iter().map(|(member, _)| member.clone()).collect()
    }

    /// Leaves what shows, and no more than was asked for. Gives where the list goes on with what is older, and with
    /// what is newer.
    ///
    /// H294: a place is told to whoever reads the list, and names an entry: one that shows, or none.
    fn show(&mut self, shows: impl Fn(&M) -> bool) -> (Option<ListCursor>, Option<ListCursor>) {
        let reached = self.reached().cloned();
        self.entries.retain(|(member, _)| shows(member));
        if let Some(beyond) = self.entries.len().checked_sub(self.limit) {
            match self.order {
                Order::Descending => self.entries.truncate(self.limit),
                Order::Ascending => drop(self.entries.drain(..beyond)),
            }
            self.is_over &= beyond == 0;
            self.lacks_archive = false;
        }
        let cursor = |(member, score): &(M, f64)| ListCursor::at(member, *score);
        let (newest, oldest) = (self.entries.first().map(cursor), self.entries.last().map(cursor));
        // Where nothing shows.
        let on = || reached.filter(|_| !self.is_over).map(|entry| self.beside(&entry));
        let query = &self.query;
        match self.order {
            Order::Descending => {
                let nowhere = || query.older_than.clone().or_else(|| query.down_to.clone());
                (oldest.filter(|_| !self.is_over).or_else(on), newest.or_else(nowhere))
            }
            Order::Ascending => {
                let nowhere = || query.newer_than.clone();
                (oldest.or_else(nowhere), newest.or_else(on).or_else(nowhere))
            }
        }
    }

    /// The last entry that was looked at.
    fn reached(&self) -> Option<&(M, f64)> {
        match self.order {
            Order::Descending => self.entries.last(),
            Order::Ascending => self.entries.first(),
        }
    }

    /// The place where one goes on behind an entry that doesn't show, without its name: who has the same time is looked
    /// at once more. Where the page began at that time it goes on behind all who have it: it would come back for ever.
    fn beside(&self, (member, score): &(M, f64)) -> ListCursor {
        if self.names_all {
            return ListCursor::at(member, *score);
        }
        let (above, below) = (ListCursor::above::<M>(*score), ListCursor::below::<M>(*score));
        let began = |place: &Option<ListCursor>| place.as_ref().map(ListCursor::score);
        match self.order {
            Order::Descending if began(&self.query.older_than).is_none_or(|at| above.score() < at) => above,
            Order::Descending => below,
            Order::Ascending if began(&self.query.newer_than).is_none_or(|at| below.score() > at) => below,
            Order::Ascending => above,
        }
    }

    /// Reads on in a list of which nothing shows yet, some times. Imported follows may all have one time: between two
    /// times nobody could go on among these.
    pub(super) async fn read_on(
        &self,
        set: &SortedSet<M>,
        shows: impl Fn(&M) -> bool,
    ) -> Result<Option<Self>> {
        let (query, (member, score)) = match self.reached() {
            Some(entry) if !self.is_over => (self.query.clone(), entry),
            _ => return Ok(None),
        };
        if self.entries.iter().any(|(member, _)| shows(member)) {
            return Ok(None);
        }
        // That place is told to nobody: pages tell the one that was asked for.
        let place = ListCursor::at(member, *score);
        let on = match self.order {
            Order::Descending => query.clone().older_than(place),
            Order::Ascending => query.clone().newer_than(place),
        };
        Ok(Some(Self { query, ..read_seen(set, &on).await? }))
    }

    /// Ends before the first entry, in the order in which they were read, of which only the archive could tell, and
    /// goes on there. H250: without it what is untold would be left out as what is gone is.
    fn end_before(&mut self, is_untold: impl Fn(&M) -> bool) {
        let (all, is_untold) = (self.entries.len(), |(member, _): &(M, f64)| is_untold(member));
        let told = match self.order {
            Order::Descending => 0..self.entries.iter().position(is_untold).unwrap_or(all),
            Order::Ascending => self.entries.iter().rposition(is_untold).map_or(0, |last| last + 1)..all,
        };
        self.lacks_archive = told.len() < all;
        self.is_over &= !self.lacks_archive;
        self.entries = self.entries.drain(told).collect();
    }

    /// Refuses a page that ends for want of the archive, with nothing that shows before that.
    fn refuse_if_empty(&self, untold: Option<UntoldPosts>) -> Result<()> {
        if self.lacks_archive {
            meters::archive_away();
        }
        untold
            .filter(|_| self.lacks_archive && self.entries.is_empty())
            .map_or(Ok(()), |untold| Err(untold.because))
    }
}

impl ListedEntries<AccountId> {
    /// The list as its reader gets it: of its accounts those that are found.
    pub(super) fn accounts(mut self, found: impl Fn(AccountId) -> Option<Arc<Account>>) -> AccountList {
        let (older, newer) = self.show(|account| found(*account).is_some());
        let accounts = self.entries.into_iter().filter_map(|(account, _)| found(account)).collect();
        AccountList { accounts, older, newer, lacks_archive: false }
    }
}

impl ListedEntries<PostRef> {
    /// The list as its reader gets it, of its posts those that show. None of them is a plain repost: it is its original
    /// that is liked, bookmarked and quoted. Together with all that was looked at, shown or not.
    async fn posts(
        &mut self,
        view: &mut View<'_>,
        shows: impl Fn(&View<'_>, PostRef) -> bool,
    ) -> Result<(PostList, Vec<PostRef>)> {
        let listed = self.members();
        let (mut loaded, untold) = view.load_with_ties(&listed, &listed).await?;
        self.end_before(|post| view.is_untold(*post, untold.as_ref()));
        let looked_at = self.members();
        let (older, newer) = self.show(|post| shows(view, *post));
        self.refuse_if_empty(untold)?;
        let shown: HashSet<PostRef> = self.members().into_iter().collect();
        loaded.retain(|(post, _)| shown.contains(post));
        let posts = view.with_ties(loaded.into_iter()).await?;
        Ok((PostList { posts, older, newer, lacks_archive: self.lacks_archive }, looked_at))
    }
}

impl<'a> Viewer<'a> {
    /// Lists who likes a post, the latest first: of a plain repost its original's.
    ///
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound): there is no such post, or the viewer may not see it.
    pub fn likers(self, post: PostId, query: &'a ListQuery) -> CallFuture<'a, AccountList> {
        Box::pin(async move {
            let likers = |of| graph::likers(self.engine.tenant(), of);
            let (mut view, listed) = self.listed_of(post, graph::LIKES, likers, query).await?;
            meters::list("likers");
            view.load(&[], &listed.members()).await?;
            Ok(listed.accounts(|account| view.account(account)))
        })
    }

    /// Lists who has reposted a post without a comment, the latest first: by reposts that the viewer may see. Errors as
    /// for [`likers`](Self::likers).
    pub fn reposters(self, post: PostId, query: &'a ListQuery) -> CallFuture<'a, AccountList> {
        Box::pin(async move {
            let reposts = |of| graph::list(self.engine.tenant(), Reference::REPOST, of);
            let (mut view, mut listed) = self.listed_of(post, Reference::REPOST, reposts, query).await?;
            meters::list("reposters");
            let untold = view.load_as_told(&listed.members(), &[]).await?;
            listed.end_before(|repost| view.is_untold(*repost, untold.as_ref()));
            // A repost may be for fewer than what it passes on.
            let who = |repost: &PostRef| view.account(repost.author).filter(|_| view.shows(*repost));
            let (older, newer) = listed.show(|repost| who(repost).is_some());
            listed.refuse_if_empty(untold)?;
            let accounts = listed.members().iter().filter_map(who).collect();
            Ok(AccountList { accounts, older, newer, lacks_archive: listed.lacks_archive })
        })
    }

    /// Lists what quotes a post, the latest first. Errors as for [`likers`](Self::likers).
    pub fn quotes(self, post: PostId, query: &'a ListQuery) -> CallFuture<'a, PostList> {
        Box::pin(async move {
            let quotes = |of| graph::list(self.engine.tenant(), Reference::QUOTE, of);
            let (mut view, mut listed) = self.listed_of(post, Reference::QUOTE, quotes, query).await?;
            meters::list("quotes");
            Ok(listed.posts(&mut view, |view, post| view.shows(post)).await?.0)
        })
    }

    /// A page of a list that belongs to a post, if the reader may see that.
    async fn listed_of<M: ListedMember>(
        self,
        post: PostId,
        kind: u8,
        list: impl FnOnce(PostId) -> Result<SortedSet<M>>,
        query: &ListQuery,
    ) -> Result<(View<'a>, ListedEntries<M>)> {
        let (mut view, post) = self.view_of(post).await?;
        let meant = view.meant(post);
        let list = list(meant)?;
        let (limit, from, order) = query.page::<M>()?;
        let looked_at = limit + SPARE;
        let read = list_page(self.engine.tenant(), (meant, kind), &list, from.as_ref(), looked_at, order);
        let (page, _) = try_join(read, view.subject(post)).await?;
        let listed = ListedEntries::new(query, (limit, order), page.entries, page.next.is_none());
        Ok((view, listed))
    }
}

impl<'a> Reader<'a> {
    /// Lists what the account likes, the latest like first.
    pub fn likes(self, query: &'a ListQuery) -> CallFuture<'a, PostList> {
        Box::pin(self.tied(query, Tie::Like))
    }

    /// Lists what the account has bookmarked, the latest bookmark first.
    pub fn bookmarks(self, query: &'a ListQuery) -> CallFuture<'a, PostList> {
        Box::pin(self.tied(query, Tie::Bookmark))
    }

    async fn tied(self, query: &ListQuery, what: Tie) -> Result<PostList> {
        let (graph, account) = (self.engine.graph(), self.account);
        let set = what.set(&graph.tenant, account)?;
        let (mut listed, mut view) = try_join(read(&set, query), self.view()).await?;
        meters::list(if what == Tie::Like { "likes" } else { "bookmarks" });
        // Whom somebody mutes, it may still have liked.
        let (list, looked_at) = listed.posts(&mut view, |view, post| view.judge(post).is_ok()).await?;
        // What is gone counts for ever against the bound, and shows nowhere where it could be taken back.
        let gone = looked_at.into_iter().filter(|post| view.post(*post).is_none());
        let gone: Vec<PostRef> = gone.take(FORGOTTEN_MAX).collect();
        if !gone.is_empty()
            && let Err(e) = graph::untie_if_gone(graph, account, &gone, what).await
        {
            tracing::debug!(%account, "what is gone stays on a list until its next page: {e}");
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(query: &ListQuery) -> (Vec<u64>, Option<ListCursor>, Option<ListCursor>) {
        let all: BTreeSet<AccountId> = (1..=9).map(|id| AccountId::new(id).unwrap()).collect();
        let mut listed = read_ids(&all, query).unwrap();
        let (older, newer) = listed.show(|_| true);
        (listed.members().into_iter().map(AccountId::get).collect(), older, newer)
    }

    fn at(id: u64) -> ListCursor {
        ListCursor::at(&AccountId::new(id).unwrap(), UNTIMED)
    }

    #[test]
    fn what_is_newer_than_a_place_comes_from_above_or_from_below() {
        let query = ListQuery::default().limit(3);
        assert_eq!(ids(&query.clone().newer_than(at(4))).0, [7, 6, 5]);
        let (first, older, newer) = ids(&query.clone().down_to(at(4)));
        assert_eq!((first, newer), (vec![9, 8, 7], Some(at(9))));
        let (second, older, newer) = ids(&query.clone().down_to(at(4)).older_than(older.unwrap()));
        assert_eq!((second, older, newer), (vec![6, 5], None, Some(at(6))));
        // Also where nothing is left: there one goes on once there is.
        assert_eq!(ids(&query.clone().down_to(at(9))), (vec![], None, Some(at(9))));
        assert_eq!(ids(&query.clone().down_to(at(6))), (vec![9, 8, 7], Some(at(7)), Some(at(9))));
        let both = query.newer_than(at(4)).down_to(at(3));
        assert!(both.page::<AccountId>().is_err());
    }
}
