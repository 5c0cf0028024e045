//! Bulk loading: accounts, edges and posts of a site that moves here, at many times the speed of single calls.
//!
//! Nobody serves the tenant meanwhile, so nothing needs to be delivered, no home exists (the first read of each
//! account fills it), and an edge is just written on both sides.

mod store;
mod unmoved;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use self::unmoved::UnmovedPosts;
use super::{Engine, EngineBuilder, archive as tenant_archive, rights};
use crate::account::{Account, Mode, NewAccount};
use crate::bucket::Bucket;
use crate::cluster::{Batch, Command, Request, Seed, TouchedServers};
use crate::error::{CallFuture, Error, ErrorKind, Result};
use crate::fields::RecordField;
use crate::functions::{BucketWrite, LeastState, WriteAnswer, account_create, followers_note, outbox_import};
use crate::graph::{Graph, count_followers, note_followers};
use crate::ids::{AccountId, PostId};
use crate::journal;
use crate::nonce::draw;
use crate::post::{Draft, PostRef};
use crate::store::Store;
use crate::tenant::{self, Tenant};
use crate::timeline;

/// Accounts, edges or posts written at once.
const CHUNK: usize = 20_000;
/// Posts that come in until those that are old leave memory, unless an import says another number.
const MOVED_AT_ONCE: usize = 500_000;
/// Ids appended to one outbox in one call.
const IDS_PER_CALL: usize = 2_000;
/// Sets that grow by so many at once are added to one by one.
const LARGE: usize = 2_000;

/// A follow that is imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ImportedEdge {
    /// The follower.
    pub reader: AccountId,
    /// The account that is followed.
    pub author: AccountId,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
}

/// A post that is imported.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct ImportedPost {
    /// Its author.
    pub author: AccountId,
    /// The time at which it was written, in milliseconds since 1970; its id is made of that.
    pub created_ms: u64,
    /// The post. Its token is ignored. Whoever locks its account has its posts' visibility said here: if nothing is
    /// said, they are public.
    pub draft: Draft,
}

/// Fills a tenant that nobody serves.
///
/// Takes accounts first, then edges and posts in any order; posts of one author from the oldest to the newest. What
/// failed half-way may be sent again, except posts: they then get other ids. A call of up to 20,000 posts that ends
/// with [`ArchiveAway`](crate::ErrorCode::ArchiveAway) or [`Overloaded`](ErrorKind::Overloaded) has stored nothing.
#[derive(Debug)]
pub struct Importer {
    tenant: Arc<Tenant>,
    graph: Arc<Graph>,
    /// Followers that were imported, by author: who has many is spread at the end.
    followers: HashMap<AccountId, u64>,
    unmoved: UnmovedPosts,
}

impl EngineBuilder {
    /// Connects for an import. [`ErrorKind::Conflict`]: an engine serves the tenant. Leases of engines that were killed
    /// are waited for, at most as long as they last (`lease_ttl`).
    ///
    /// A tenant that is new has decided nothing: what is imported may be more than any instance's settings would keep.
    /// Whoever runs it [decides](Engine::decide), before or after, with `tideline tenant set`; or has an instance begin
    /// it before.
    pub fn import(self) -> CallFuture<'static, Importer> {
        Box::pin(async move {
            let (store, mut settings, archive) = self.with_archive();
            // What is brought here has happened elsewhere.
            settings.keeps_notifications = false;
            settings.check()?;
            let store = Store::open(store).await?;
            rights::check(&store).await?;
            // What the tenant decides is the affair of who runs it: nothing leaves a list until then.
            let known = tenant::known_to_a_tool(&store, &settings).await?;
            tenant_archive::check(&known, archive.as_deref()).await?;
            let tenant = Tenant::new(store, settings, known, archive);
            let graph = Graph::new(&tenant);
            journal::begin_import(&graph.journal).await?;
            // A home vouches for holding what its reader follows; what is imported is delivered to none. The next read
            // of each account fills it anew.
            timeline::sweep(&tenant, u32::MAX, None).await?;
            let unmoved = UnmovedPosts::new(MOVED_AT_ONCE);
            Ok(Importer { tenant, graph, followers: HashMap::new(), unmoved })
        })
    }
}

impl Engine {
    /// Bulk loading: [`EngineBuilder::import`] with the defaults and these seeds.
    pub async fn import<S: Into<Seed>>(seeds: impl IntoIterator<Item = S>) -> Result<Importer> {
        Self::builder().seeds(seeds).import().await
    }
}

impl Importer {
    /// Creates accounts; each needs an id. Those that exist stay as they are. Tells how many are new.
    pub fn accounts<'a>(&'a mut self, accounts: &'a [NewAccount]) -> CallFuture<'a, u64> {
        Box::pin(async move {
            let (tenant, graph) = (&self.tenant, &self.graph);
            let mut created = 0;
            for chunk in accounts.chunks(CHUNK) {
                journal::hold_for_import(&graph.journal).await?;
                let mut batch = Batch::with_capacity(chunk.len());
                for account in chunk {
                    let id = account.id.ok_or_else(|| Error::invalid("an imported account needs an id"))?;
                    let command = account_create(tenant.keys().account(id), account.fields(draw()));
                    batch.push(Request::write(tenant.slot(id), command));
                }
                for answer in tenant.run_all(batch).await? {
                    created += answer.ok()?.count()?;
                }
            }
            Ok(created)
        })
    }

    /// Writes follows, on both sides. The accounts must exist.
    pub fn edges<'a>(&'a mut self, edges: &'a [ImportedEdge]) -> CallFuture<'a, ()> {
        Box::pin(async move {
            let now = self.tenant.router().now_ms();
            for chunk in edges.chunks(CHUNK) {
                if let Some(edge) = chunk.iter().find(|e| e.reader == e.author || e.since_ms > now) {
                    return Err(Error::invalid(format!(
                        "{edge:?}: an account cannot follow itself, or since a time in the future (now is {now})"
                    )));
                }
                journal::hold_for_import(&self.graph.journal).await?;
                let (mut following, mut followers) = (BTreeMap::new(), BTreeMap::new());
                for edge in chunk {
                    #[expect(clippy::cast_precision_loss, reason = "milliseconds are below 2^53")]
                    let since = edge.since_ms as f64;
                    push(&self.tenant, &mut following, edge.reader, (edge.author, since));
                    push(&self.tenant, &mut followers, edge.author, (edge.reader, since));
                    *self.followers.entry(edge.author).or_default() += 1;
                }
                let pulled = self.pulled_authors(followers.keys().map(|(_, author)| *author)).await?;
                self.write_marks(&following, &pulled).await?;
                self.write_following(following).await?;
                self.write_followers(followers).await?;
            }
            Ok(())
        })
    }

    /// Finds which of these authors aren't pushed. All of them must exist.
    async fn pulled_authors(&self, authors: impl Iterator<Item = AccountId>) -> Result<HashSet<AccountId>> {
        let tenant = &self.tenant;
        let authors: Vec<AccountId> = authors.collect();
        let requests = authors.iter().map(|author| tenant.account_request(*author)).collect();
        let mut pulled = HashSet::new();
        for (author, answer) in authors.iter().zip(tenant.run_all(requests).await?) {
            match Account::parse(*author, answer.ok()?)? {
                Some(account) if account.mode != Mode::Push => drop(pulled.insert(*author)),
                Some(_) => {}
                None => {
                    let text = format!("account {author} is followed, but doesn't exist: import it first");
                    return Err(Error::new(ErrorKind::NotFound, text));
                }
            }
        }
        Ok(pulled)
    }

    /// Makes whoever follows an author that isn't pushed pull it: nothing else would show its posts.
    async fn write_marks(&self, following: &GroupedPairs, pulled: &HashSet<AccountId>) -> Result<()> {
        let tenant = &self.tenant;
        let mut batch = Batch::new();
        for ((_, reader), pairs) in following {
            let authors: Vec<AccountId> =
                pairs.iter().map(|(author, _)| *author).filter(|author| pulled.contains(author)).collect();
            if !authors.is_empty() {
                let set = Command::new("HSET").arg(&tenant.keys().marks(*reader));
                let set = authors.iter().fold(set, |set, a| set.arg(&a.to_bytes()).arg(&draw()));
                batch.push(Request::write(tenant.slot(*reader), set));
            }
        }
        for answer in tenant.run_all(batch).await? {
            answer.ok()?;
        }
        Ok(())
    }

    async fn write_following(&self, following: GroupedPairs) -> Result<()> {
        let tenant = &self.tenant;
        let readers: Vec<AccountId> = following.keys().map(|(_, reader)| *reader).collect();
        let mut adds = Vec::with_capacity(following.len());
        for ((_, reader), pairs) in following {
            adds.push((tenant.following(reader)?, pairs));
        }
        let refused = || Error::internal("what accounts follow was spread");
        tenant.sets().add_to_many(&adds).await?.ok_or_else(refused)?;
        let sets: Vec<_> = adds.into_iter().map(|(set, _)| set).collect();
        let lengths = tenant.sets().len_of_many(&sets).await?;
        let note = |(reader, length): (&AccountId, u64)| {
            let record = tenant.keys().account(*reader);
            let write = BucketWrite::new("account_set", &record, LeastState::There);
            let write = write.set(RecordField::FOLLOWING, length.to_string().as_bytes());
            Request::write(tenant.slot(*reader), write.alone())
        };
        let answers = tenant.run_all(readers.iter().zip(lengths).map(note).collect()).await?;
        for (reader, answer) in readers.iter().zip(answers) {
            if let WriteAnswer::Refused(_) = WriteAnswer::parse(answer.ok()?)? {
                return Err(Error::new(
                    ErrorKind::NotFound,
                    format!("account {reader} follows others, but doesn't exist: import it first"),
                ));
            }
        }
        Ok(())
    }

    async fn write_followers(&self, followers: GroupedPairs) -> Result<()> {
        let tenant = &self.tenant;
        let authors: Vec<AccountId> = followers.keys().map(|(_, author)| *author).collect();
        let mut small = Vec::with_capacity(followers.len());
        for ((_, author), pairs) in followers {
            let set = tenant.imported_followers(author)?;
            if pairs.len() >= LARGE || set.is_known_spread() {
                set.add(&pairs).await?;
            } else {
                small.push((set, pairs));
            }
        }
        if tenant.sets().add_to_many(&small).await?.is_none() {
            for (set, pairs) in small {
                set.add(&pairs).await?;
            }
        }
        let note = |author: &AccountId| {
            let followers = tenant.followers(*author)?.root_key();
            let now_ms = tenant.router().now_ms();
            let command = followers_note(tenant.keys().account(*author), followers, now_ms);
            Ok(Request::write(tenant.slot(*author), command))
        };
        for answer in tenant.run_all(authors.iter().map(note).collect::<Result<_>>()?).await? {
            answer.ok()?;
        }
        Ok(())
    }

    /// Sets after how many posts those that are old leave memory for the tenant's archive, and how many a call may
    /// bring at most, instead of 500,000. Fewer: less memory; more time, where the archive needs some to settle.
    #[must_use]
    pub fn moved_at_once(self, posts: usize) -> Self {
        Self { unmoved: UnmovedPosts::new(posts.max(1)), ..self }
    }

    /// Writes up to 500,000 posts; those of one author from the oldest to the newest. Gives their ids, in their order.
    ///
    /// Where the tenant has an archive, and moving old posts there fails, they wait in memory, and this goes on. Once
    /// twice as many wait as move at once it is refused, and has stored nothing:
    /// [`ArchiveAway`](crate::ErrorCode::ArchiveAway) or [`Overloaded`](ErrorKind::Overloaded), to be called again.
    pub fn posts<'a>(&'a mut self, posts: &'a [ImportedPost]) -> CallFuture<'a, Vec<PostId>> {
        Box::pin(async move {
            self.unmoved.make_room(&self.graph.journal, posts.len()).await?;
            let mut ids = Vec::with_capacity(posts.len());
            for chunk in posts.chunks(CHUNK.min(self.unmoved.at_once())) {
                journal::hold_for_import(&self.graph.journal).await?;
                ids.extend(self.write_posts(chunk).await?);
                let authors: Vec<AccountId> = chunk.iter().map(|post| post.author).collect();
                self.unmoved.came_in(&self.graph.journal, &authors).await;
            }
            Ok(ids)
        })
    }

    async fn write_posts(&mut self, posts: &[ImportedPost]) -> Result<Vec<PostId>> {
        let now = self.tenant.router().now_ms();
        for post in posts {
            if post.created_ms > now {
                return Err(Error::invalid(format!(
                    "a post of account {} is dated in the future: {} ms since 1970, where at most {now}, the \
                     time now, is allowed",
                    post.author, post.created_ms
                )));
            }
            post.draft.check(self.tenant.settings.text_chars)?;
            if let Some(place) = post.draft.group.or(post.draft.chat) {
                let text = format!(
                    "a post of account {} goes into account {place}, a group or a chat: none are imported",
                    post.author
                );
                return Err(Error::invalid(text));
            }
        }
        // The posts first: an id in an outbox without its post would show nothing.
        let tenant = &self.tenant;
        let ids = store::posts(tenant, posts).await?;
        let mut outboxes: BTreeMap<(Bucket, AccountId), Vec<u64>> = BTreeMap::new();
        for (id, post) in ids.iter().zip(posts) {
            outboxes.entry((tenant.bucket(post.author), post.author)).or_default().push(id.get());
        }
        for ((_, author), mut new) in outboxes {
            // Those of one millisecond have got their ids in any order.
            new.sort_unstable();
            for part in new.chunks(IDS_PER_CALL) {
                let (record, outbox) = (tenant.keys().account(author), tenant.keys().outbox(author));
                let request = Request::write(tenant.slot(author), outbox_import(record, outbox, part));
                match tenant.router().call(request).await?.int()? {
                    1 => {}
                    0 => {
                        let text = format!("account {author} has posts, but doesn't exist: import it first");
                        return Err(Error::new(ErrorKind::NotFound, text));
                    }
                    _ => {
                        return Err(Error::invalid(format!(
                            "posts of account {author} must come from the oldest to the newest, and after those it has"
                        )));
                    }
                }
            }
        }
        let authors: Vec<AccountId> = posts.iter().map(|post| post.author).collect();
        tenant_archive::note_some(tenant, &authors).await?;
        for (id, post) in ids.iter().zip(posts) {
            crate::graph::list_references(tenant, PostRef { id: *id, author: post.author }, &post.draft)
                .await?;
        }
        Ok(ids)
    }

    /// Spreads the follower sets that have become large, waits until all old posts have left memory, drops homes that
    /// came into being meanwhile, and gives the tenant free. After an error it is called again: until it has ended well
    /// no instance starts while this lives.
    pub fn finish(&mut self) -> CallFuture<'_, ()> {
        Box::pin(async move {
            let most = self.tenant.sets().spread_at();
            for (author, _) in self.followers.iter().filter(|(_, count)| **count >= most) {
                self.tenant.followers(*author)?.spread().await?;
                note_followers(&self.graph, *author, &mut TouchedServers::new()).await?;
                count_followers(&self.tenant, *author).await?;
                journal::hold_for_import(&self.graph.journal).await?;
            }
            self.unmoved.leave(&self.graph.journal).await?;
            // An engine that was frozen past its lease may have filled homes meanwhile, or tools that only look.
            journal::hold_alone(&self.graph.journal).await?;
            timeline::sweep(&self.tenant, u32::MAX, None).await?;
            journal::end_import(&self.graph.journal).await
        })
    }
}

/// Pairs by the account whose set they are added to, in the order of buckets.
type GroupedPairs = BTreeMap<(Bucket, AccountId), Vec<(AccountId, f64)>>;

fn push(tenant: &Tenant, grouped: &mut GroupedPairs, account: AccountId, pair: (AccountId, f64)) {
    grouped.entry((tenant.bucket(account), account)).or_default().push(pair);
}
