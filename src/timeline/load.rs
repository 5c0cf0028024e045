//! Loading what entries stand for: posts, their authors, what they repost; from the caches or, node by node, in a
//! pipeline. What the reader wrote itself never comes from a cache.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use futures::future::try_join;
use tokio::time::Instant;

use super::Timelines;
use super::filter::{Met, Seen};
use super::meet::meet;
use super::merge;
use super::page::{PagePost, PassedOn};
use crate::account::Account;
use crate::cluster::Answer;
use crate::error::Result;
use crate::ids::{AccountId, IdMap, PostId};
use crate::post::Post;
use crate::stored::stored_post;

/// Posts and accounts of one page.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    posts: IdMap<PostId, Option<Arc<Post>>>,
    accounts: IdMap<AccountId, Known>,
    /// Nothing comes from the instance's caches: for who decides something.
    is_fresh: bool,
    /// Whether an account restricts the reader is asked along with it, not only once it says that it restricts anybody: two
    /// commands more for each account, and a trip less.
    asks_ahead: bool,
}

/// An account that was met.
#[derive(Debug, Default)]
struct Known {
    /// `None`: there is no such account.
    account: Option<Arc<Account>>,
    /// Whether it blocks the reader, or hides from it; `None`: not looked at yet.
    is_restricted: Option<bool>,
}

impl Loaded {
    pub(super) fn fresh() -> Self {
        Self { is_fresh: true, ..Self::default() }
    }

    pub(super) fn ask_ahead(&mut self) {
        self.asks_ahead = true;
    }

    /// Loads what a reader needs to see of these entries.
    pub(super) async fn entries(
        &mut self,
        timelines: &Timelines,
        reader: AccountId,
        entries: &[(PostId, AccountId)],
    ) -> Result<()> {
        self.entries_and(timelines, reader, entries, &[]).await
    }

    /// The same, and other accounts in the same trip. What a post passes on needs another one, and what a repost's original
    /// quotes one more, unless they are remembered. Who restricts the reader is asked along with the next of them.
    pub(super) async fn entries_and(
        &mut self,
        timelines: &Timelines,
        reader: AccountId,
        entries: &[(PostId, AccountId)],
        others: &[AccountId],
    ) -> Result<()> {
        self.load(timelines, reader, entries, others).await?;
        let (mut passed_on, mut reposted) = (Vec::new(), Vec::new());
        for post in self.posts_of(entries) {
            let original = original_of(post);
            passed_on.extend(original);
            reposted.extend(original.filter(|_| post.is_plain_repost()));
        }
        self.load(timelines, reader, &passed_on, &[]).await?;
        let quoted: Vec<_> = self.posts_of(&reposted).filter_map(original_of).collect();
        self.load(timelines, reader, &quoted, &[]).await?;
        // Who was met first with what is quoted.
        self.load(timelines, reader, &[], &[]).await
    }

    fn posts_of(&self, posts: &[(PostId, AccountId)]) -> impl Iterator<Item = &Post> {
        posts.iter().filter_map(|(id, author)| self.post(*id, *author).map(Arc::as_ref))
    }

    /// Fills in the authors of entries that don't tell them; their posts do. Those of posts that are gone stay 0. Never from
    /// the cache: some may be the reader's own.
    pub(super) async fn find_authors(
        &mut self,
        timelines: &Timelines,
        entries: &mut [merge::Entry],
    ) -> Result<()> {
        let unknown = entries.iter().filter(|entry| entry.author == 0);
        let unknown = unknown.filter_map(|entry| PostId::from_u64(entry.id).ok());
        let open: Vec<PostId> = unknown.filter(|id| !self.posts.contains_key(id)).collect();
        let asked = Instant::now();
        let answers = timelines.run_all(open.iter().map(|id| timelines.post_request(*id)).collect()).await?;
        for (id, answer) in open.into_iter().zip(answers) {
            self.keep_post(timelines, id, asked, answer)?;
        }
        for entry in entries.iter_mut().filter(|entry| entry.author == 0) {
            let post = PostId::from_u64(entry.id).ok().and_then(|id| self.posts.get(&id)?.as_ref());
            entry.author = post.map_or(0, |post| post.header().author.get());
        }
        Ok(())
    }

    /// What can't be read shows as little as what is gone.
    fn keep_post(&mut self, timelines: &Timelines, id: PostId, asked: Instant, answer: Answer) -> Result<()> {
        let post = timelines.readers.left_out.shown(id, stored_post(answer)?).map(Arc::new);
        timelines.caches.posts.put(id, asked, post.clone());
        self.posts.insert(id, post);
        Ok(())
    }

    /// One trip: posts and their authors; and whether those who were met before restrict the reader.
    async fn load(
        &mut self,
        timelines: &Timelines,
        reader: AccountId,
        wanted: &[(PostId, AccountId)],
        others: &[AccountId],
    ) -> Result<()> {
        let caches = &timelines.caches;
        let asked = Instant::now();
        let (mut posts, mut accounts) = (Vec::new(), Vec::new());
        let mut hits = (0, 0);
        self.posts.reserve(wanted.len());
        self.accounts.reserve(wanted.len() + others.len());
        for (id, author) in wanted {
            let is_others = *author != reader && !self.is_fresh;
            if let Entry::Vacant(place) = self.posts.entry(*id) {
                let cached = caches.posts.get(id, asked).filter(|_| is_others);
                match &cached {
                    Some(_) => hits.0 += 1,
                    None => posts.push(*id),
                }
                place.insert(cached.flatten());
            }
        }
        for author in wanted.iter().map(|(_, author)| author).chain(others) {
            let is_others = *author != reader && !self.is_fresh;
            if let Entry::Vacant(place) = self.accounts.entry(*author) {
                let cached = caches.accounts.get(author, asked).filter(|_| is_others);
                match &cached {
                    Some(_) => hits.1 += 1,
                    None => accounts.push(*author),
                }
                place.insert(Known { account: cached.flatten(), is_restricted: None });
            }
        }
        caches.posts.count(hits.0, posts.len());
        caches.accounts.count(hits.1, accounts.len());
        let mut to_meet = self.may_restrict(timelines, reader, asked);
        if self.asks_ahead && !reader.is_nobody() {
            to_meet.append(&mut accounts);
        }
        if posts.is_empty() && accounts.is_empty() && to_meet.is_empty() {
            return Ok(());
        }
        let shown = accounts.iter().flat_map(|id| timelines.shown_requests(*id));
        let requests = posts.iter().map(|id| timelines.post_request(*id)).chain(shown).collect();
        let (answers, met) = try_join(timelines.run_all(requests), meet(timelines, &to_meet, reader)).await?;
        let mut answers = answers.into_iter();
        for (id, answer) in posts.into_iter().zip(&mut answers) {
            self.keep_post(timelines, id, asked, answer)?;
        }
        for id in accounts {
            let account = timelines.readers.read_shown(id, &mut answers)?;
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
        let account = account.map(Arc::new);
        account.iter().for_each(|account| timelines.uncounted.met(account, timelines.router().now_ms()));
        timelines.caches.accounts.put(id, asked, account.clone());
        self.accounts.insert(id, Known { account, is_restricted });
    }

    /// Who of the accounts met may block the reader, or hide from it, and isn't known to do so or not. Most block nobody,
    /// which their records tell.
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
    pub(super) fn post(&self, id: PostId, author: AccountId) -> Option<&Arc<Post>> {
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
    pub(super) fn page_post(&self, id: PostId, author: AccountId) -> PagePost {
        let post = self.post(id, author).cloned();
        let original = post.as_ref().and_then(|post| self.passed_on(post)).map(Box::new);
        let account = self.account(author).cloned();
        PagePost { post, account, original, ..PagePost::bare(id, author) }
    }

    /// What a post passes on; of a plain repost also what that quotes.
    fn passed_on(&self, post: &Post) -> Option<PassedOn> {
        let (id, author) = original_of(post)?;
        let (original, account) = (self.post(id, author)?.clone(), self.account(author)?.clone());
        let quoted = if post.is_plain_repost() { self.passed_on(&original).map(Box::new) } else { None };
        Some(PassedOn { id, post: original, account, mentioned: Vec::new(), original: quoted })
    }

    /// A post as the filter takes it; `None`: it is gone.
    pub(super) fn seen(&self, id: PostId, author: AccountId) -> Option<Seen<'_>> {
        let met = self.met(id, author)?;
        let passed_on = |met: Met<'_>| original_of(met.post).and_then(|(id, author)| self.met(id, author));
        let original = passed_on(met);
        let quoted = original.filter(|_| met.post.is_plain_repost()).and_then(passed_on);
        Some(Seen { met, original, quoted })
    }

    fn met(&self, id: PostId, author: AccountId) -> Option<Met<'_>> {
        let known = self.accounts.get(&author)?;
        let is_restricted = known.is_restricted.unwrap_or(true);
        Some(Met { post: self.post(id, author)?, author: known.account.as_ref()?, is_restricted })
    }
}

/// What a post reposts or quotes, and whose that is.
fn original_of(post: &Post) -> Option<(PostId, AccountId)> {
    post.header().original.map(|original| (original.id, original.author))
}

/// Entries as ids; what no allocation could have given is left out.
pub(super) fn named(entries: &[merge::Entry]) -> Vec<(PostId, AccountId)> {
    let named = |e: &merge::Entry| Some((PostId::from_u64(e.id).ok()?, AccountId::new(e.author).ok()?));
    entries.iter().filter_map(named).collect()
}
