//! Loading what entries stand for: posts, their authors, what they repost; from the caches or, node by node, in a
//! pipeline. What the reader wrote itself never comes from a cache.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use futures::future::try_join_all;

use super::filter::Met;
use super::merge::Entry;
use crate::account::Account;
use crate::cluster::{Command, Request};
use crate::context::Context;
use crate::error::Result;
use crate::ids::{AccountId, PostId};
use crate::post::Post;
use crate::rules;

/// Posts and accounts of one page.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    posts: HashMap<PostId, Option<Arc<Post>>>,
    accounts: HashMap<AccountId, Option<Arc<Account>>>,
    restricted: HashMap<AccountId, bool>,
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
        let mut posts = Vec::new();
        let mut accounts = Vec::new();
        let mut hits = (0, 0);
        for (id, author) in wanted {
            if !self.posts.contains_key(id) {
                match caches.posts.get(id).filter(|_| *author != reader) {
                    Some(post) => {
                        hits.0 += 1;
                        self.posts.insert(*id, post);
                    }
                    None if posts.contains(id) => {}
                    None => posts.push(*id),
                }
            }
            if !self.accounts.contains_key(author) {
                match caches.accounts.get(author).filter(|_| *author != reader) {
                    Some(account) => {
                        hits.1 += 1;
                        self.accounts.insert(*author, account);
                    }
                    None if accounts.contains(author) => {}
                    None => accounts.push(*author),
                }
            }
        }
        caches.posts.count(hits.0, posts.len());
        caches.accounts.count(hits.1, accounts.len());
        if posts.is_empty() && accounts.is_empty() {
            return Ok(());
        }
        let asked = Instant::now();
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
            caches.accounts.put(id, asked, account.clone());
            self.accounts.insert(id, account);
        }
        Ok(())
    }

    /// Whether the accounts met block the reader, or hide from it. Most block nobody, which their records tell.
    async fn restrictions(&mut self, context: &Context, reader: AccountId) -> Result<()> {
        let caches = &context.caches;
        let mut open = Vec::new();
        for account in self.accounts.values().flatten() {
            let may_restrict = account.id != reader && account.blocks + account.hides > 0;
            if !may_restrict || self.restricted.contains_key(&account.id) {
                continue;
            }
            match caches.restrictions.get(&(account.id, reader)) {
                Some(is_restricted) => drop(self.restricted.insert(account.id, is_restricted)),
                None => open.push(account.id),
            }
        }
        let asked = Instant::now();
        let found = try_join_all(open.iter().map(|id| context.restricts(*id, reader))).await?;
        for (id, is_restricted) in open.into_iter().zip(found) {
            caches.restrictions.put((id, reader), asked, is_restricted);
            self.restricted.insert(id, is_restricted);
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
        self.accounts.get(&id)?.as_ref()
    }

    /// A post with its author, as the filter takes it; `None`: it is gone.
    pub(super) fn met(&self, id: PostId, author: AccountId) -> Option<Met<'_>> {
        Some(Met {
            post: self.post(id, author)?,
            author: self.account(author)?,
            is_restricted: self.restricted.get(&author).copied().unwrap_or(false),
        })
    }
}

/// Entries as ids; what no allocation could have given is left out.
pub(super) fn named(entries: &[Entry]) -> Vec<(PostId, AccountId)> {
    let named = |e: &Entry| Some((PostId::from_u64(e.id).ok()?, AccountId::new(e.author).ok()?));
    entries.iter().filter_map(named).collect()
}
