//! Loading what entries stand for: posts, their authors, what they repost; from the caches or, node by node, in a
//! pipeline. What the reader wrote itself never comes from a cache.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use futures::future::try_join;
use tokio::time::Instant;

use super::Timelines;
use super::caches::Caches;
use super::filter::{MetPost, MetWriter, SeenPost};
use super::meet::meet;
use super::merge;
use super::page::{PagePost, PassedOn};
use super::viewpoint::Viewpoint;
use crate::account::Account;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::GroupStaff;
use crate::ids::{AccountId, IdMap, PostId};
use crate::post::{Post, PostRef};
use crate::stored::StoredPost;
use crate::tenant::{Answers, Untold, as_away};

/// Posts and accounts of one page.
#[derive(Debug, Default)]
pub(super) struct LoadedPosts {
    posts: IdMap<PostId, Option<Arc<Post>>>,
    accounts: IdMap<AccountId, KnownAccount>,
    /// Posts that the archive has named: they were in memory no more, and are looked for there once, not twice.
    left: IdMap<PostId, ()>,
    /// Those that only the archive could tell, and why it doesn't, since somebody asked.
    untold: Option<UntoldPosts>,
    /// Nothing comes from the instance's caches: for who decides something.
    is_fresh: bool,
    /// Whether an account restricts the reader is asked along with it, not only once it says that it restricts anybody:
    /// two commands more for each account, and a trip less.
    asks_ahead: bool,
    /// Whether anybody was met who may restrict the reader, and isn't asked about yet: who asks for nothing else does.
    has_met_more: bool,
    /// Groups that the reader looks after, of those in which somebody writes who restricts it; and those of which that
    /// was asked.
    looked_after: Vec<AccountId>,
    asked_groups: Vec<AccountId>,
}

/// Posts of which nobody knows whether they are there: only the archive could tell.
#[derive(Debug)]
pub(crate) struct UntoldPosts {
    posts: Vec<PostId>,
    pub(crate) because: Error,
}

impl UntoldPosts {
    /// Of these posts those that the archive didn't tell, if there are any.
    pub(super) fn of(asked: &[PostId], untold: Untold) -> Option<Self> {
        let posts = untold.posts.iter().map(|n| asked[*n]).collect();
        let because = untold.refuse().map_err(as_away).err()?;
        Some(Self { posts, because })
    }

    /// Whether that one is among them.
    pub(crate) fn has(&self, post: PostId) -> bool {
        self.posts.contains(&post)
    }
}

/// An account that was met.
#[derive(Debug, Default)]
struct KnownAccount {
    /// `None`: there is no such account.
    account: Option<Arc<Account>>,
    /// Whether it blocks the reader, or hides from it; `None`: not looked at yet.
    is_restricted: Option<bool>,
}

impl LoadedPosts {
    pub(super) fn fresh() -> Self {
        Self { is_fresh: true, ..Self::default() }
    }

    /// The archive has named these posts.
    pub(super) fn have_left(&mut self, posts: impl IntoIterator<Item = PostId>) {
        self.left.extend(posts.into_iter().map(|id| (id, ())));
    }

    pub(super) fn ask_ahead(&mut self) {
        self.asks_ahead = true;
    }

    /// Loads what a reader needs to see of these posts, and other accounts in the same trip. What a post passes on
    /// needs another one, and what a repost's original quotes one more, unless they are remembered. Who restricts the
    /// reader is asked along with the next of them.
    pub(super) async fn posts(
        &mut self,
        by: Viewpoint<'_>,
        posts: &[PostRef],
        others: &[AccountId],
    ) -> Result<()> {
        self.load(by, posts, others).await?;
        let (mut passed_on, mut reposted) = (Vec::new(), Vec::new());
        for post in self.posts_of(posts) {
            let original = post.header().original;
            passed_on.extend(original);
            reposted.extend(original.filter(|_| post.is_plain_repost()));
        }
        self.load(by, &passed_on, &self.writers_of(posts)).await?;
        let quoted: Vec<_> = self.posts_of(&reposted).filter_map(|post| post.header().original).collect();
        self.load(by, &quoted, &self.writers_of(&passed_on)).await?;
        // Who was met first with what is quoted.
        self.load(by, &[], &self.writers_of(&quoted)).await?;
        self.load(by, &[], &[]).await?;
        if self.accounts.values().any(|known| known.is_restricted == Some(true)) {
            Box::pin(self.look_after(by, [posts, &passed_on, &quoted])).await?;
        }
        Ok(())
    }

    /// Asks whether the reader looks after groups in which these posts were written by who restricts it: nobody gets
    /// away from a group's staff by blocking it.
    async fn look_after(&mut self, by: Viewpoint<'_>, posts: [&[PostRef]; 3]) -> Result<()> {
        let restricts = |writer: AccountId| {
            self.accounts.get(&writer).is_some_and(|known| known.is_restricted == Some(true))
        };
        let posts = posts.into_iter().flat_map(|posts| self.posts_of(posts));
        let restricted = posts.filter(|post| restricts(post.writer())).filter_map(Post::group);
        let mut groups: Vec<AccountId> =
            restricted.filter(|group| !self.asked_groups.contains(group)).collect();
        groups.sort_unstable();
        groups.dedup();
        if groups.is_empty() || by.reader.is_nobody() {
            return Ok(());
        }
        match GroupStaff::groups_looked_after(&by.timelines.tenant, by.reader, &groups).await {
            // A page shows what it would to others. Whoever decides something can't go by that.
            Err(e) if e.kind() == ErrorKind::Unavailable && !self.is_fresh => {}
            found => self.looked_after.extend(found?),
        }
        self.asked_groups.extend(groups);
        Ok(())
    }

    /// The writers of those of these posts that went into groups.
    fn writers_of(&self, posts: &[PostRef]) -> Vec<AccountId> {
        self.posts_of(posts).filter(|post| post.is_by_member()).map(Post::writer).collect()
    }

    fn posts_of(&self, posts: &[PostRef]) -> impl Iterator<Item = &Post> {
        posts.iter().filter_map(|post| self.post(*post).map(Arc::as_ref))
    }

    /// Loads posts of which only the ids are known, without their authors' accounts, and gives those that are there.
    /// Never from the cache: some may be the reader's own. Those that only the archive could tell are
    /// [taken](Self::take_untold) next.
    pub(super) async fn find(&mut self, timelines: &Timelines, ids: &[PostId]) -> Result<Vec<PostRef>> {
        let asked = Instant::now();
        let (posts, untold) = timelines.tenant.posts().get_many_as_told(ids).await?;
        for (n, (id, post)) in ids.iter().zip(posts).enumerate() {
            if untold.posts.contains(&n) {
                continue;
            }
            // H184: found by nobody's name; an archive that is behind says the same.
            if matches!(post, StoredPost::Gone) && timelines.tenant.archive()?.is_some() {
                self.posts.insert(*id, None);
            } else {
                self.keep_post(timelines, *id, asked, post);
            }
        }
        self.keep_untold(ids, untold);
        let found = |id: &PostId| {
            let author = self.posts.get(id)?.as_ref()?.header().author;
            Some(PostRef { id: *id, author })
        };
        Ok(ids.iter().filter_map(found).collect())
    }

    /// Keeps a post that was read: what can't be read shows as little as what is gone.
    fn keep_post(&mut self, timelines: &Timelines, id: PostId, asked: Instant, post: StoredPost) {
        let post = timelines.graph.readers.left_out.shown(id, post);
        let post = timelines.caches.posts.put_again(id, asked, post);
        self.posts.insert(id, post);
    }

    /// Nothing is remembered of them: who asks once more asks the archive.
    fn keep_untold(&mut self, asked: &[PostId], untold: Untold) {
        let Some(UntoldPosts { posts, because }) = UntoldPosts::of(asked, untold) else { return };
        posts.iter().for_each(|id| drop(self.posts.remove(id)));
        self.untold.get_or_insert(UntoldPosts { posts: Vec::new(), because }).posts.extend(posts);
    }

    /// Takes the posts that only the archive could tell, of all that was loaded since this was asked last.
    pub(super) fn take_untold(&mut self) -> Option<UntoldPosts> {
        self.untold.take()
    }

    /// Whether something of what a post shows is among these: itself, what it passes on, what that quotes.
    pub(super) fn shows_untold(&self, post: PostRef, untold: &UntoldPosts) -> bool {
        let original = self.post(post).and_then(|post| post.header().original);
        let quoted = original.and_then(|post| self.post(post)?.header().original);
        let shown = [Some(post), original, quoted];
        shown.iter().flatten().any(|post| untold.has(post.id))
    }

    /// Takes posts, their authors and other accounts from the caches; gives those that are still to be asked for.
    fn take_cached(
        &mut self,
        caches: &Caches,
        reader: AccountId,
        asked: Instant,
        (wanted, others): (&[PostRef], &[AccountId]),
    ) -> (Vec<PostId>, Vec<AccountId>) {
        let (mut posts, mut accounts) = (Vec::new(), Vec::new());
        let mut hits = (0, 0);
        self.posts.reserve(wanted.len());
        self.accounts.reserve(wanted.len() + others.len());
        for PostRef { id, author } in wanted {
            let is_others = *author != reader && !self.is_fresh;
            if let Entry::Vacant(place) = self.posts.entry(*id) {
                let is_own = |post: &Arc<Post>| post.is_by_member() && post.writer() == reader;
                let cached = caches.posts.get(id, asked).filter(|_| is_others);
                let cached = cached.filter(|post| !post.as_ref().is_some_and(is_own));
                match &cached {
                    Some(_) => hits.0 += 1,
                    None => posts.push(*id),
                }
                place.insert(cached.flatten());
            }
        }
        for author in wanted.iter().map(|post| &post.author).chain(others) {
            let is_others = *author != reader && !self.is_fresh;
            if let Entry::Vacant(place) = self.accounts.entry(*author) {
                let cached = caches.accounts.get(author, asked).filter(|_| is_others);
                match &cached {
                    Some(_) => hits.1 += 1,
                    None => accounts.push(*author),
                }
                place.insert(KnownAccount { account: cached.flatten(), is_restricted: None });
            }
        }
        caches.posts.count(hits.0, posts.len());
        caches.accounts.count(hits.1, accounts.len());
        (posts, accounts)
    }

    /// One trip: posts and their authors; and whether those who were met before restrict the reader.
    async fn load(
        &mut self,
        Viewpoint { timelines, reader, .. }: Viewpoint<'_>,
        wanted: &[PostRef],
        others: &[AccountId],
    ) -> Result<()> {
        if wanted.is_empty() && others.is_empty() && !self.has_met_more {
            return Ok(());
        }
        let caches = &timelines.caches;
        let asked = Instant::now();
        let (posts, mut accounts) = self.take_cached(caches, reader, asked, (wanted, others));
        let mut to_meet = self.may_restrict(timelines, reader, asked);
        if self.asks_ahead && !reader.is_nobody() {
            to_meet.append(&mut accounts);
        }
        if posts.is_empty() && accounts.is_empty() && to_meet.is_empty() {
            self.has_met_more = false;
            return Ok(());
        }
        let shown = accounts.iter().flat_map(|id| timelines.tenant.shown_requests(*id));
        let is_asked = |id: &PostId| !self.left.contains_key(id);
        let requests = posts.iter().copied().filter(is_asked).map(|id| timelines.tenant.posts().request(id));
        let requests = requests.chain(shown).collect();
        let answers = Answers::of(&timelines.tenant, requests);
        let (mut answers, met) = try_join(answers, meet(timelines, &to_meet, reader)).await?;
        let mut found = Vec::with_capacity(posts.len());
        for id in &posts {
            // H168: what has left is looked for in memory all the same, before the archive is asked.
            found.push(if is_asked(id) { StoredPost::read(answers.answer()?)? } else { StoredPost::Gone });
        }
        let author_of = |id: PostId| wanted.iter().find(|post| post.id == id).map(|post| post.author);
        let which = |n: usize| (posts[n], author_of(posts[n]));
        let untold = timelines.tenant.posts().or_archived_as_told(&mut found, Post::parse, which).await?;
        self.has_met_more = false;
        for (n, (id, post)) in posts.iter().zip(found).enumerate() {
            if !untold.posts.contains(&n) {
                self.keep_post(timelines, *id, asked, post);
            }
        }
        self.keep_untold(&posts, untold);
        for id in accounts {
            let account = timelines.graph.readers.read_shown(id, &mut answers)?;
            self.keep_account(timelines, id, asked, account, None);
        }
        for (id, (account, is_restricted)) in to_meet.into_iter().zip(met) {
            caches.restrictions.put((id, reader), asked, is_restricted);
            self.keep_account(timelines, id, asked, account, Some(is_restricted));
        }
        Ok(())
    }

    fn keep_account(
        &mut self,
        timelines: &Timelines,
        id: AccountId,
        asked: Instant,
        account: Option<Account>,
        is_restricted: Option<bool>,
    ) {
        let account = timelines.caches.accounts.put_again(id, asked, account);
        account
            .iter()
            .for_each(|account| timelines.graph.uncounted.met(account, timelines.tenant.router().now_ms()));
        self.has_met_more |= is_restricted.is_none();
        self.accounts.insert(id, KnownAccount { account, is_restricted });
    }

    /// Finds the accounts met that may block the reader, or hide from it, and aren't known to do so or not. Most block
    /// nobody, which their records tell.
    fn may_restrict(&mut self, timelines: &Timelines, reader: AccountId, now: Instant) -> Vec<AccountId> {
        let cache = &timelines.caches.restrictions;
        let mut open = Vec::new();
        for known in self.accounts.values_mut().filter(|known| known.is_restricted.is_none()) {
            let Some(account) = &known.account else { continue };
            // A guest is nobody whom an account could block.
            let is_others = account.id != reader && !reader.is_nobody();
            let may_restrict = is_others && account.blocks + account.hides > 0;
            known.is_restricted = match may_restrict {
                true => cache.get(&(account.id, reader), now).filter(|_| !self.is_fresh),
                false => Some(false),
            };
            if known.is_restricted.is_none() {
                open.push(account.id);
            }
        }
        open
    }

    /// The post with that id, if it is by that author: after an unsynced failover an id may come twice.
    pub(super) fn post(&self, PostRef { id, author }: PostRef) -> Option<&Arc<Post>> {
        // H43: what shows is by the entry's author.
        self.posts.get(&id)?.as_ref().filter(|post| post.header().author == author)
    }

    pub(super) fn account(&self, id: AccountId) -> Option<&Arc<Account>> {
        self.accounts.get(&id)?.account.as_ref()
    }

    /// An account that the reader may meet: active, and neither blocking it nor hiding from it.
    pub(super) fn met_account(&self, id: AccountId) -> Option<&Arc<Account>> {
        let known = self.accounts.get(&id)?;
        known.account.as_ref().filter(|account| account.is_active() && known.is_restricted == Some(false))
    }

    /// A post with its author and what it passes on, as it stands on a page.
    pub(super) fn page_post(&self, post: PostRef) -> PagePost {
        let (bare, account) = (PagePost::bare(post), self.account(post.author).cloned());
        let post = self.post(post).cloned();
        let original = post.as_ref().and_then(|post| self.passed_on(post)).map(Box::new);
        let writer = post.as_ref().and_then(|post| self.member(post));
        PagePost { post, account, writer, original, ..bare }
    }

    /// The post that a post passes on; of a plain repost also what that quotes.
    fn passed_on(&self, post: &Post) -> Option<PassedOn> {
        let of = post.header().original?;
        let (original, account) = (self.post(of)?.clone(), self.account(of.author)?.clone());
        let quoted = if post.is_plain_repost() { self.passed_on(&original).map(Box::new) } else { None };
        let writer = self.member(&original);
        Some(PassedOn { id: of.id, post: original, account, writer, mentioned: Vec::new(), original: quoted })
    }

    /// Of a post into a group, who wrote it.
    fn member(&self, post: &Post) -> Option<Arc<Account>> {
        post.is_by_member().then(|| self.account(post.writer()).cloned()).flatten()
    }

    /// A post as the filter takes it; `None`: it is gone.
    pub(super) fn seen(&self, post: PostRef) -> Option<SeenPost<'_>> {
        let met = self.met(post)?;
        let passed_on = |met: MetPost<'_>| met.post.header().original.and_then(|original| self.met(original));
        let original = passed_on(met);
        let quoted = original.filter(|_| met.post.is_plain_repost()).and_then(passed_on);
        Some(SeenPost { met, original, quoted })
    }

    fn met(&self, post: PostRef) -> Option<MetPost<'_>> {
        let known = |id: AccountId| {
            let known = self.accounts.get(&id)?;
            Some((known.account.as_deref()?, known.is_restricted.unwrap_or(true)))
        };
        let (author, is_restricted) = known(post.author)?;
        let post = self.post(post)?;
        let writer = if post.is_by_member() { Some(known(post.writer())?) } else { None };
        let looks_after = post.group().is_some_and(|group| self.looked_after.contains(&group));
        let writer = writer.map(|(account, is_restricted)| MetWriter {
            account,
            is_restricted: is_restricted && !looks_after,
        });
        Some(MetPost { post, author, is_restricted, writer })
    }
}

/// Entries as ids; what no allocation could have given is left out.
pub(crate) fn named(entries: &[merge::PageEntry]) -> Vec<PostRef> {
    let named = |e: &merge::PageEntry| {
        Some(PostRef { id: PostId::from_u64(e.id).ok()?, author: AccountId::new(e.author).ok()? })
    };
    entries.iter().filter_map(named).collect()
}
