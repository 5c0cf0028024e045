//! A tenant's handle, which all parts of an engine share: the store, the settings, who we are, and where everything of
//! an account is.

use std::fmt::Display;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use super::known::KnownDecision;
use super::limits::ReachedLimits;
use super::posts::Posts;
use crate::account::Account;
use crate::archive::Archive;
use crate::bucket::Bucket;
use crate::charter::{Decision, TenantSettings};
use crate::cluster::{Answer, Batch, Command, Epoch, FenceOutcome, Request, Router, TouchedServers};
use crate::error::{Error, ErrorCode, ErrorKind, Result};
use crate::functions::{self, Grounds, HomeFit};
use crate::ids::{AccountId, PostId};
use crate::keys::Keyspace;
use crate::nonce::{Nonce, draw};
use crate::post::{Post, PostRef, TagKey};
use crate::settings::{Acknowledge, EngineSettings};
use crate::sharded::{Sets, SortedSet};
use crate::store::Store;

/// A tenant as the parts of an engine share it: nothing here changes after the start but the clock, what the tenant
/// decides, and whom this instance has refused something of late.
#[derive(Debug)]
pub(crate) struct Tenant {
    pub(crate) store: Store,
    pub(crate) settings: EngineSettings,
    /// What the tenant has decided, whatever the settings say of it.
    pub(crate) known: KnownDecision,
    /// This instance, drawn at its start: one that restarts is another one, so what it left is taken over.
    pub(crate) instance: Nonce,
    /// What moderators are to hear.
    pub(crate) reached_limits: ReachedLimits,
    /// What holds the posts that have left memory, if the tenant has decided that any may.
    archive: Option<Arc<dyn Archive>>,
}

impl Tenant {
    pub(crate) fn new(
        store: Store,
        settings: EngineSettings,
        known: KnownDecision,
        archive: Option<Arc<dyn Archive>>,
    ) -> Arc<Self> {
        let decision = known.decision();
        let decided = decision.settings;
        if decision.is_made() {
            store.router().learn_replicas(decided.replicas);
        }
        let (posts, size) = (decided.home_posts, store.router().limits().list_size);
        if !HomeFit::new(posts, size, Grounds::Own).is_one_node() {
            tracing::warn!(
                "homes of {posts} posts take several list nodes with `list-max-listpack-size {size}`: they cost more \
                 to read; 400 fit with -2, the servers' default"
            );
        }
        let reached_limits = ReachedLimits::default();
        Arc::new(Self { store, settings, known, instance: draw(), reached_limits, archive })
    }

    /// The tenant's archive, if it has one.
    ///
    /// [`Misconfigured`](crate::ErrorKind::Misconfigured): it has, and this instance doesn't. H185: one that was frozen
    /// while the archive was begun, and would take what has left since for gone.
    pub(crate) fn archive(&self) -> Result<Option<&dyn Archive>> {
        if self.archive.is_none() && self.known.decision().archive.is_some() {
            return Err(Error::misconfigured(
                "an archive was begun for this tenant since this instance has started: start it anew, with the archive",
            ));
        }
        Ok(self.archive.as_deref())
    }

    pub(crate) fn router(&self) -> &Router {
        self.store.router()
    }

    /// The lengths of homes, by what the servers keep in one list node now: that is read again with each change of the
    /// slot map.
    pub(crate) fn fit(&self) -> HomeFit {
        self.fit_of(self.known.decision())
    }

    /// The lengths of homes by that decision.
    pub(crate) fn fit_of(&self, Decision { number, settings, .. }: Decision) -> HomeFit {
        HomeFit::new(settings.home_posts, self.router().limits().list_size, self.known.grounds(number))
    }

    /// The settings that are the tenant's.
    pub(crate) fn decided(&self) -> TenantSettings {
        self.known.decision().settings
    }

    /// The list of public posts that a post stands on, if the tenant keeps any and the post may be one of them.
    pub(crate) fn public_list_of(&self, post: &Post) -> Option<Vec<u8>> {
        post.is_on_public_timeline().then(|| self.public_list(post.header().author))?
    }

    /// The list of the public posts of an author's bucket, if the tenant keeps any.
    pub(crate) fn public_list(&self, author: AccountId) -> Option<Vec<u8>> {
        self.known.decision().public_posts().map(|_| self.keys().public_posts(self.bucket(author)))
    }

    pub(crate) fn keys(&self) -> &Keyspace {
        self.store.keys()
    }

    /// The key that the numbers of hashtags are computed with.
    pub(crate) fn tags(&self) -> TagKey {
        self.store.tags()
    }

    pub(crate) fn sets(&self) -> &Sets {
        self.store.sets()
    }

    pub(crate) fn slot(&self, account: AccountId) -> u16 {
        self.keys().slot_of(account)
    }

    pub(crate) fn bucket(&self, account: AccountId) -> Bucket {
        self.keys().bucket_of(account)
    }

    /// The set of accounts that an account follows. It stays local.
    pub(crate) fn following(&self, account: AccountId) -> Result<SortedSet<AccountId>> {
        Ok(self.sets().of_account(account, "following")?.pinned())
    }

    /// The set of an account's followers. Spread once it is large.
    pub(crate) fn followers(&self, account: AccountId) -> Result<SortedSet<AccountId>> {
        Ok(self.imported_followers(account)?.noted_of(account))
    }

    /// The set of an account's followers, for who writes both sides of a follow and looks at neither again.
    pub(crate) fn imported_followers(&self, account: AccountId) -> Result<SortedSet<AccountId>> {
        Ok(self.sets().of_account(account, "followers")?.counted_at(self.keys().account(account)))
    }

    /// The accounts whose posts an account doesn't want to see.
    pub(crate) fn mutes(&self, account: AccountId) -> Result<SortedSet<AccountId>> {
        Ok(self.sets().of_account(account, "mutes")?.pinned())
    }

    /// The accounts that an account blocks: neither of the two follows the other, nor sees its posts.
    pub(crate) fn blocks(&self, account: AccountId) -> Result<SortedSet<AccountId>> {
        Ok(self.sets().of_account(account, "blocks")?.pinned())
    }

    /// From whom an account hides its posts.
    pub(crate) fn hides(&self, account: AccountId) -> Result<SortedSet<AccountId>> {
        Ok(self.sets().of_account(account, "hides")?.pinned())
    }

    /// The posts that an account likes.
    pub(crate) fn likes(&self, account: AccountId) -> Result<SortedSet<PostRef>> {
        Ok(self.sets().of_account(account, "likes")?.pinned())
    }

    /// The posts that an account has bookmarked.
    pub(crate) fn bookmarks(&self, account: AccountId) -> Result<SortedSet<PostRef>> {
        Ok(self.sets().of_account(account, "bookmarks")?.pinned())
    }

    /// The posts that an account has reposted, without a comment: originals, with the reposts' ids as scores.
    pub(crate) fn reposts(&self, account: AccountId) -> Result<SortedSet<PostRef>> {
        Ok(self.sets().of_account(account, "reposts")?.pinned())
    }

    /// An account's record, now.
    pub(crate) async fn account(&self, id: AccountId) -> Result<Option<Account>> {
        Account::parse(id, self.router().call(self.account_request(id)).await?)
    }

    /// An account that exists and isn't deleted.
    pub(crate) async fn existing(&self, id: AccountId) -> Result<Account> {
        let account = self.account(id).await?.filter(Account::is_there);
        account.ok_or_else(|| no_account(id))
    }

    /// An account that others may know of.
    pub(crate) async fn known_to_others(&self, id: AccountId) -> Result<Account> {
        let account = self.existing(id).await?;
        if account.is_known_to_others() { Ok(account) } else { Err(no_account(id)) }
    }

    pub(crate) fn account_request(&self, id: AccountId) -> Request {
        let command = Command::new("HMGET").arg(&self.keys().account(id));
        Request::read(self.slot(id), command.args(Account::FIELDS))
    }

    /// Its posts.
    pub(crate) fn posts(&self) -> Posts<'_> {
        Posts(self)
    }

    pub(crate) fn profile_request(&self, id: AccountId) -> Request {
        Request::read(self.slot(id), Command::new("GET").arg(&self.keys().profile(id)))
    }

    /// The requests for an account that somebody is to see: its record and, if the settings say so, its profile.
    pub(crate) fn shown_requests(&self, id: AccountId) -> impl Iterator<Item = Request> {
        let profile = self.settings.shows_profiles.then(|| self.profile_request(id));
        iter::once(self.account_request(id)).chain(profile)
    }

    pub(crate) async fn is_blocked(&self, by: AccountId, whom: AccountId) -> Result<bool> {
        Ok(self.blocks(by)?.score(&whom).await?.is_some())
    }

    /// Sends a function whose random bytes must not be written twice; if no reply comes, the caller draws anew.
    pub(crate) async fn once(&self, slot: u16, command: Command) -> Result<Answer> {
        self.router().ask(Request::write(slot, command).once()).await
    }

    /// Runs requests and gives back all their answers, or the first error.
    pub(crate) async fn run_all(&self, batch: Batch) -> Result<Vec<Answer>> {
        self.router().run(batch).await.into_iter().collect()
    }

    /// Waits for the replicas if the caller wants that; tells what is true then.
    pub(crate) async fn acknowledge(&self, how: Acknowledge, epoch: &Epoch) -> Result<Acknowledge> {
        // The write is done; only whether it will last is open. Sending it again is safe.
        self.fenced(how, epoch).await.map_err(|e| not_known_to_last(&e))
    }

    /// Waits for the replicas for who does the write again where the fence fails: gives the fence's own error.
    pub(crate) async fn fenced(&self, how: Acknowledge, epoch: &Epoch) -> Result<Acknowledge> {
        if how == Acknowledge::Accepted {
            return Ok(how);
        }
        let mut touched = TouchedServers::new();
        touched.add_epoch(epoch);
        Ok(self.router().fence(&touched).await?.into())
    }

    /// Today, by the cluster's clocks: days since 1970.
    pub(crate) fn today(&self) -> u32 {
        u32::try_from(self.router().now_ms() / 86_400_000).unwrap_or(u32::MAX)
    }

    /// The age of a post, by the cluster's clocks.
    pub(crate) fn age(&self, posted_ms: u64) -> Duration {
        Duration::from_millis(self.router().now_ms().saturating_sub(posted_ms))
    }

    pub(crate) fn read_noted(&self, account: AccountId, day: u32) -> Request {
        let (record, days) = (self.keys().account(account), self.keys().days(self.bucket(account)));
        Request::write(self.slot(account), functions::account_read(record, days, account, day))
    }
}

impl From<FenceOutcome> for Acknowledge {
    fn from(outcome: FenceOutcome) -> Self {
        match outcome {
            FenceOutcome::Replicated => Self::Replicated,
            FenceOutcome::WithoutReplicas => Self::Accepted,
        }
    }
}

/// The error for what is written, and may not last.
pub(crate) fn not_known_to_last(fence: &Error) -> Error {
    Error::new(ErrorKind::Unknown, format!("written, but not known to be replicated: {fence}"))
}

/// The error for an account that somebody else changed between each look and each write.
pub(crate) fn account_changed_always(id: AccountId) -> Error {
    changed_always(ErrorKind::Conflict, format_args!("account {id}"))
}

/// The error for what somebody else changed between each look and each write: a `Conflict`, or `Unavailable` where
/// nothing was asked of it but an answer.
pub(crate) fn changed_always(kind: ErrorKind, what: impl Display) -> Error {
    Error::new(kind, format!("{what}: others change it at this moment; try again"))
}

/// The error for a post that isn't there, or that the caller has no right to: one text, that doesn't tell which, nor
/// whose it is.
pub(crate) fn no_post(id: PostId) -> Error {
    Error::new(ErrorCode::PostNotFound, format!("there is no post {id}"))
}

pub(crate) fn no_account(id: AccountId) -> Error {
    Error::new(ErrorCode::AccountNotFound, format!("account {id} does not exist"))
}
