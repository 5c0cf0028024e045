//! The archive: in memory as the cluster is, and one store for all instances. It takes its time, fails before or after
//! it has done something, and does what somebody asks who is dead by then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use super::data::Bytes;
use super::index::IndexData;
use super::world::world;
use crate::archive::{
    Archive, ArchiveName, ArchiveSize, ArchivedPost, ChangeOutcome, IndexChange, IndexKey, IndexVersion,
    ListKind, ListMember, ListedPost, MembersAnswer, MembersAsk, Owner, OwnerChange, OwnerPage, OwnerState,
    PageAsk, PageContent, PageOrder, PostAnswer, PostAsk, PostListAsk, PostListChange, PostListPage,
    SearchAsk, SearchPage, WalkedPost,
};
use crate::bucket::Bucket;
use crate::charter::TenantArchive;
use crate::error::{CallFuture, Error, ErrorKind, Result};
use crate::ids::{AccountId, PostId};
use crate::post::PostRef;

const NAME: ArchiveName = ArchiveName([7; 16]);
/// Calls that fail, of 1,000, and calls that take long: so long, in ms.
const FAILING: u32 = 40;
const SLOW: (u32, u64) = (60, 400);

/// What the archive holds.
#[derive(Debug, Clone, Default)]
pub(super) struct ArchiveData {
    owners: BTreeMap<Owner, OwnerState>,
    posts: BTreeMap<PostId, ArchivedPost>,
    members: BTreeMap<(PostId, u8), Vec<ListMember>>,
    /// Lists of posts, by their names: their numbers, and what is on them.
    listed: BTreeMap<Bytes, (u64, BTreeSet<ListedPost>)>,
    /// Whether calls fail, and take their time.
    pub(super) fails: bool,
    /// For how long what it has answered may be lost.
    pub(super) settles_within: Duration,
    /// Whether posts are found by their words.
    pub(super) searches: bool,
    /// Days for which posts stay in memory.
    pub(super) hot_days: u32,
    /// How often a post that was old enough stayed, since somebody had touched it.
    pub(super) warm: u64,
    pub(super) index: IndexData,
    pub(super) held: Option<HeldCall>,
}

/// A call that waits, after so many others like it.
#[derive(Debug, Clone)]
pub(super) struct HeldCall {
    pub(super) what: &'static str,
    pub(super) skipped: usize,
    pub(super) opened: Arc<Notify>,
}

impl ArchiveData {
    /// An empty one, in which posts are found by their words.
    pub(super) fn searched() -> Self {
        Self { searches: true, ..Self::default() }
    }

    pub(super) fn len(&self) -> u64 {
        self.posts.len() as u64
    }

    pub(super) fn post(&self, id: PostId) -> Option<&ArchivedPost> {
        self.posts.get(&id)
    }

    /// All posts, with their authors.
    pub(super) fn posts(&self) -> impl Iterator<Item = PostRef> {
        self.posts.values().map(|post| PostRef { id: post.id, author: post.owner })
    }

    /// The posts of an account.
    pub(super) fn of(&self, owner: AccountId) -> impl Iterator<Item = PostId> {
        self.posts.values().filter(move |post| post.owner == owner).map(|post| post.id)
    }

    /// Members of a list of a post, with their scores.
    pub(super) fn list(&self, post: PostId, kind: u8) -> BTreeMap<Bytes, f64> {
        let members = self.members.get(&(post, kind)).into_iter().flatten();
        members.map(|member| (member.bytes.clone(), member.score)).collect()
    }

    /// What such a call waits for before it does anything.
    fn hold(&mut self, what: &str) -> Option<Arc<Notify>> {
        let held = self.held.as_mut().filter(|held| held.what == what)?;
        if held.skipped > 0 {
            held.skipped -= 1;
            return None;
        }
        self.held.take().map(|held| held.opened)
    }

    fn change(&mut self, change: &OwnerChange) -> ChangeOutcome {
        let after = change.judge(self.owners.get(&change.owner))?;
        self.owners.insert(change.owner, after);
        for (post, lists) in &change.posts {
            let before = self.posts.get(&post.id).map(|post| post.parts.clone()).unwrap_or_default();
            self.posts.insert(post.id, ArchivedPost { parts: post.parts.over(&before), ..post.clone() });
            for list in lists {
                assert_eq!(list.first, 0, "whole lists only");
                self.members.insert((post.id, list.kind.0), list.members.clone());
            }
        }
        for id in &change.erased {
            if self.posts.get(id).is_some_and(|post| post.owner == change.owner.account) {
                self.posts.remove(id);
                self.members.retain(|(of, _), _| of != id);
            }
        }
        Ok(())
    }

    fn change_list(&mut self, change: &PostListChange) {
        let (stamp, posts) = self.listed.entry(change.list.name.clone()).or_default();
        *stamp = change.stamp.max(*stamp);
        posts.extend(&change.added);
        posts.retain(|post| !change.removed.contains(post));
    }

    fn list_page(&self, ask: &PostListAsk, order: PageOrder) -> PostListPage {
        let (stamp, posts) = self.listed.get(&ask.list.name).cloned().unwrap_or_default();
        let mut posts: Vec<ListedPost> = match order {
            PageOrder::NewestFirst => posts.into_iter().rev().filter(|post| post.place < ask.edge).collect(),
            PageOrder::OldestFirst => posts.into_iter().filter(|post| post.place > ask.edge).collect(),
        };
        posts.truncate(ask.most);
        PostListPage { stamp, posts }
    }

    /// What is on a list of posts.
    pub(super) fn on_list(&self, name: &[u8]) -> BTreeSet<PostRef> {
        let posts = self.listed.get(name).into_iter().flat_map(|(_, posts)| posts);
        posts.map(|post| PostRef { id: post.place.post, author: post.author }).collect()
    }

    fn state(&self, bucket: Bucket, account: AccountId) -> Option<OwnerState> {
        self.owners.get(&Owner { bucket, account }).copied()
    }

    fn page(&self, ask: &PageAsk, order: PageOrder, content: PageContent) -> OwnerPage {
        let mut found: Vec<&ArchivedPost> = self
            .posts
            .values()
            .filter(|post| post.owner == ask.owner.account)
            .filter(|post| match order {
                PageOrder::NewestFirst => post.id < ask.edge,
                PageOrder::OldestFirst => post.id > ask.edge,
            })
            .collect();
        if order == PageOrder::NewestFirst {
            found.reverse();
        }
        found.truncate(ask.most);
        OwnerPage {
            owner: self.state(ask.owner.bucket, ask.owner.account),
            ids: found.iter().map(|post| post.id).collect(),
            posts: match content {
                PageContent::Ids => Vec::new(),
                PageContent::Posts => found.into_iter().cloned().collect(),
            },
        }
    }

    fn answer(&self, ask: &PostAsk) -> PostAnswer {
        let post = self.posts.get(&ask.id).filter(|post| ask.owner.is_none_or(|owner| post.owner == owner));
        let owner = ask.owner.or(post.map(|post| post.owner));
        PostAnswer { post: post.cloned(), owner: owner.and_then(|owner| self.state(ask.bucket, owner)) }
    }

    fn listed(&self, ask: &MembersAsk) -> MembersAnswer {
        let Some(post) = self.posts.get(&ask.post) else { return MembersAnswer::default() };
        let is_below = |member: &&ListMember| {
            ask.below.as_ref().is_none_or(|below| member.order(below) == std::cmp::Ordering::Less)
        };
        let members = self
            .members
            .get(&(ask.post, ask.kind.0))
            .into_iter()
            .flatten()
            .rev()
            .filter(is_below)
            .take(ask.most);
        MembersAnswer { owner: self.state(ask.bucket, post.owner), members: members.cloned().collect() }
    }
}

/// The archive of this thread's world, as instances hold it.
#[derive(Debug)]
struct SimulatedArchive;

pub(super) fn archive() -> Option<Arc<dyn Archive>> {
    world(|w| w.archive.is_some()).then(|| Arc::new(SimulatedArchive) as Arc<dyn Archive>)
}

/// What the tenant decides of it: few posts stay.
pub(super) fn decided_archive() -> Option<TenantArchive> {
    let (search, hot_days) = world(|w| w.archive.as_ref().map(|a| (a.searches, a.hot_days)))?;
    Some(TenantArchive { name: NAME, hot_posts: 1, hot_days, left_after_days: hot_days, search })
}

impl SimulatedArchive {
    async fn called<T>(what: &'static str, call: impl FnOnce(&mut ArchiveData) -> T) -> Result<T> {
        let (delay, fails) = world(|w| {
            let fails = w.archive.as_ref().is_some_and(|archive| archive.fails);
            let is_slow = fails && w.chance(SLOW.0);
            let most = if is_slow { SLOW.1 } else { 4 };
            let delay = if w.faults.has_delays { w.below(most) } else { 0 };
            (Duration::from_millis(delay), fails && w.chance(FAILING))
        });
        sleep(delay).await;
        let held = world(|w| w.archive.as_mut().and_then(|archive| archive.hold(what)));
        if let Some(opened) = held {
            opened.notified().await;
        }
        let is_done_first = fails && world(|w| w.chance(500));
        if fails && !is_done_first {
            world(|w| w.note(|| format!("archive: {what} FAILS")));
            return Err(Error::unavailable("the archive is away"));
        }
        let done = world(|w| {
            w.note(|| format!("archive: {what}"));
            w.archive.as_mut().map(call)
        });
        let done = done.ok_or_else(|| Error::internal("there is no archive"))?;
        match is_done_first {
            true => Err(Error::new(ErrorKind::Unknown, "the archive has not answered")),
            false => Ok(done),
        }
    }
}

impl Archive for SimulatedArchive {
    fn name(&self) -> CallFuture<'_, Option<ArchiveName>> {
        Box::pin(async { Ok(Some(NAME)) })
    }

    fn adopt(&self, _: ArchiveName) -> CallFuture<'_, ArchiveName> {
        Box::pin(async { Ok(NAME) })
    }

    fn change<'a>(&'a self, changes: &'a [OwnerChange]) -> CallFuture<'a, Vec<ChangeOutcome>> {
        Box::pin(Self::called("change", |data| changes.iter().map(|change| data.change(change)).collect()))
    }

    fn owners<'a>(&'a self, owners: &'a [Owner]) -> CallFuture<'a, Vec<Option<OwnerState>>> {
        Box::pin(Self::called("owners", |data| {
            owners.iter().map(|owner| data.state(owner.bucket, owner.account)).collect()
        }))
    }

    fn pages<'a>(
        &'a self,
        asks: &'a [PageAsk],
        order: PageOrder,
        content: PageContent,
    ) -> CallFuture<'a, Vec<OwnerPage>> {
        Box::pin(Self::called("pages", move |data| {
            asks.iter().map(|ask| data.page(ask, order, content)).collect()
        }))
    }

    fn posts<'a>(&'a self, asks: &'a [PostAsk]) -> CallFuture<'a, Vec<PostAnswer>> {
        Box::pin(Self::called("posts", |data| asks.iter().map(|ask| data.answer(ask)).collect()))
    }

    fn members<'a>(&'a self, asks: &'a [MembersAsk]) -> CallFuture<'a, Vec<MembersAnswer>> {
        Box::pin(Self::called("members", |data| asks.iter().map(|ask| data.listed(ask)).collect()))
    }

    fn list_kinds<'a>(&'a self, _: &'a [PostAsk]) -> CallFuture<'a, Vec<Vec<ListKind>>> {
        Box::pin(async { Err(Error::internal("nobody copies here")) })
    }

    fn change_lists<'a>(&'a self, changes: &'a [PostListChange]) -> CallFuture<'a, ()> {
        Box::pin(Self::called("change_lists", |data| {
            changes.iter().for_each(|change| data.change_list(change));
        }))
    }

    fn list_pages<'a>(
        &'a self,
        asks: &'a [PostListAsk],
        order: PageOrder,
    ) -> CallFuture<'a, Vec<PostListPage>> {
        Box::pin(Self::called("list_pages", move |data| {
            asks.iter().map(|ask| data.list_page(ask, order)).collect()
        }))
    }

    fn index_versions<'a>(&'a self, posts: &'a [IndexKey]) -> CallFuture<'a, Vec<Option<IndexVersion>>> {
        Box::pin(Self::called("index_versions", |data| {
            posts.iter().map(|key| data.index.version(key.post)).collect()
        }))
    }

    fn index<'a>(&'a self, changes: &'a [IndexChange]) -> CallFuture<'a, Vec<bool>> {
        Box::pin(Self::called("index", |data| {
            changes.iter().map(|change| data.index.change(change)).collect()
        }))
    }

    fn search<'a>(&'a self, ask: &'a SearchAsk) -> CallFuture<'a, SearchPage> {
        Box::pin(Self::called("search", |data| data.index.find(ask)))
    }

    fn walk_index(&self, _: Bucket, _: Option<PostId>, _: usize) -> CallFuture<'_, Vec<(PostId, AccountId)>> {
        Box::pin(async { Err(Error::internal("nobody walks here")) })
    }

    fn walk_owners(
        &self,
        _: Bucket,
        _: Option<AccountId>,
        _: usize,
    ) -> CallFuture<'_, Vec<(AccountId, OwnerState)>> {
        Box::pin(async { Err(Error::internal("nobody walks here")) })
    }

    fn walk_posts(
        &self,
        _: Bucket,
        _: Option<(AccountId, PostId)>,
        _: usize,
    ) -> CallFuture<'_, Vec<WalkedPost>> {
        Box::pin(async { Err(Error::internal("nobody walks here")) })
    }

    fn walk_lists<'a>(&'a self, _: Bucket, _: Option<&'a [u8]>, _: usize) -> CallFuture<'a, Vec<Vec<u8>>> {
        Box::pin(async { Err(Error::internal("nobody walks here")) })
    }

    fn settles_within(&self) -> Duration {
        world(|w| w.archive.as_ref().map_or(Duration::ZERO, |archive| archive.settles_within))
    }

    fn size(&self) -> CallFuture<'_, ArchiveSize> {
        Box::pin(Self::called("size", |data| ArchiveSize { bytes: 0, posts: data.len() }))
    }
}
