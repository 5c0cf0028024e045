//! Loading what entries stand for: posts, their authors, what they repost; from the caches or, node by node, in a
//! pipeline. What the reader wrote itself never comes from a cache.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use futures::future::try_join_all;
use tokio::time::Instant;

use super::filter::Met;
use super::merge;
use crate::account::Account;
use crate::cluster::{Command, Request};
use crate::context::Context;
use crate::error::Result;
use crate::ids::{AccountId, IdMap, PostId};
use crate::post::Post;
use crate::rules;

/// Posts and accounts of one page.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    posts: IdMap<PostId, Option<Arc<Post>>>,
    accounts: IdMap<AccountId, Known>,
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
    /// Loads what a reader needs to see of these entries.
    pub(super) async fn entries(
        &mut self,
        context: &Context,
        reader: AccountId,
        entries: &[(PostId, AccountId)],
    ) -> Result<()> {
        self.load(context, reader, entries).await?;
        let originals = entries.iter().filter_map(|(id, author)| self.post(*id, *author)?.header().original);
        let originals: Vec<(PostId, AccountId)> = originals.map(|o| (o.id, o.author)).collect();
        if !originals.is_empty() {
            self.load(context, reader, &originals).await?;
        }
        self.restrictions(context, reader).await
    }

    /// One trip: posts and their authors.
    async fn load(
        &mut self,
        context: &Context,
        reader: AccountId,
        wanted: &[(PostId, AccountId)],
    ) -> Result<()> {
        let caches = &context.caches;
        let asked = Instant::now();
        let (mut posts, mut accounts) = (Vec::new(), Vec::new());
        let mut hits = (0, 0);
        self.posts.reserve(wanted.len());
        self.accounts.reserve(wanted.len());
        for (id, author) in wanted {
            let is_others = *author != reader;
            if let Entry::Vacant(place) = self.posts.entry(*id) {
                let cached =
                    caches.posts.get(id, asked).filter(|_| is_others || !rules::holds("own_uncached"));
                match &cached {
                    Some(_) => hits.0 += 1,
                    None => posts.push(*id),
                }
                place.insert(cached.flatten());
            }
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
        if posts.is_empty() && accounts.is_empty() {
            return Ok(());
        }
        let buckets = context.keys().buckets();
        let get = |id: &PostId| {
            let command = Command::new("GET").arg(&context.keys().post(*id));
            Request::read(buckets.slot(id.bucket(buckets)), command)
        };
        let requests = posts.iter().map(get).chain(accounts.iter().map(|id| context.account_request(*id)));
        let mut answers = context.run_all(requests.collect()).await?.into_iter();
        for (id, answer) in posts.into_iter().zip(&mut answers) {
            let reply = answer.ok()?;
            let post = if reply.is_nil() { None } else { Some(Arc::new(Post::parse(reply.bytes()?)?)) };
            caches.posts.put(id, asked, post.clone());
            self.posts.insert(id, post);
        }
        for (id, answer) in accounts.into_iter().zip(&mut answers) {
            let account = Account::parse(id, answer.ok()?)?.map(Arc::new);
            account.iter().for_each(|account| context.uncounted.met(account, context.router().now_ms()));
            caches.accounts.put(id, asked, account.clone());
            self.accounts.insert(id, Known { account, is_restricted: None });
        }
        Ok(())
    }

    /// Whether the accounts met block the reader, or hide from it. Most block nobody, which their records tell.
    async fn restrictions(&mut self, context: &Context, reader: AccountId) -> Result<()> {
        let cache = &context.caches.restrictions;
        let mut open = Vec::new();
        let asked = Instant::now();
        for known in self.accounts.values_mut().filter(|known| known.is_restricted.is_none()) {
            let Some(account) = &known.account else { continue };
            let may_restrict = account.id != reader && account.blocks + account.hides > 0;
            known.is_restricted =
                if may_restrict { cache.get(&(account.id, reader), asked) } else { Some(false) };
            if known.is_restricted.is_none() {
                open.push(account.id);
            }
        }
        let found = try_join_all(open.iter().map(|id| context.restricts(*id, reader))).await?;
        for (id, is_restricted) in open.into_iter().zip(found) {
            cache.put((id, reader), asked, is_restricted);
            self.accounts.entry(id).or_default().is_restricted = Some(is_restricted);
        }
        Ok(())
    }

    /// The post with that id, if it is by that author: after an unsynced failover an id may come twice.
    pub(super) fn post(&self, id: PostId, author: AccountId) -> Option<&Arc<Post>> {
        self.posts
            .get(&id)?
            .as_ref()
            .filter(|post| post.header().author == author || !rules::holds("author_shown"))
    }

    pub(super) fn account(&self, id: AccountId) -> Option<&Arc<Account>> {
        self.accounts.get(&id)?.account.as_ref()
    }

    /// A post with its author, as the filter takes it; `None`: it is gone.
    pub(super) fn met(&self, id: PostId, author: AccountId) -> Option<Met<'_>> {
        let known = self.accounts.get(&author)?;
        let is_restricted = known.is_restricted.unwrap_or(false);
        Some(Met { post: self.post(id, author)?, author: known.account.as_ref()?, is_restricted })
    }
}

/// Entries as ids; what no allocation could have given is left out.
pub(super) fn named(entries: &[merge::Entry]) -> Vec<(PostId, AccountId)> {
    let named = |e: &merge::Entry| Some((PostId::from_u64(e.id).ok()?, AccountId::new(e.author).ok()?));
    entries.iter().filter_map(named).collect()
}
