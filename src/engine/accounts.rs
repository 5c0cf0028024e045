//! Accounts: creating, changing, deleting them.

use super::Engine;
use crate::account::{Account, AccountState, AccountUpdate, NewAccount};
use crate::bucket::Bucket;
use crate::cluster::Request;
use crate::error::{Error, ErrorKind, Result};
use crate::functions::{Compared, account_create, account_delete, account_set, account_set_noted};
use crate::graph::{BuryTask, UnlockTask};
use crate::ids::AccountId;
use crate::journal;
use crate::nonce::draw;
use crate::settings::Receipt;
use crate::tenant::{changed_always, no_account};
use crate::{graph, rules};

/// Tries of one change between others of the same account.
const TRIES_MAX: usize = 16;

impl Engine {
    /// Creates an account, with the id given or a new one.
    ///
    /// [`ErrorKind::Conflict`]: there is one with that id.
    pub async fn create_account(&self, new: NewAccount) -> Result<Receipt<AccountId>> {
        let graph = &self.graph;
        let id = match new.id {
            Some(id) => id,
            None => self.new_account_id().await?,
        };
        let stamp = draw();
        let command = account_create(graph.keys().account(id), new.fields(stamp));
        let answer = graph.router().ask(Request::write(graph.slot(id), command)).await?;
        let epoch = answer.epoch.clone();
        if answer.ok()?.count()? == 0 && !self.has_stamp(id, &stamp).await? {
            return Err(Error::new(ErrorKind::Conflict, format!("there is an account {id} already")));
        }
        Ok(self.acknowledged(epoch).await?.with(id))
    }

    /// An id that no account has.
    pub(crate) async fn new_account_id(&self) -> Result<AccountId> {
        let graph = &self.graph;
        let bucket = rules::random::<u16>() % graph.keys().buckets().count();
        let ids = graph.store.clock().post_ids(Bucket(bucket), 1).await?;
        let id = ids.first().ok_or_else(|| Error::internal("the clock gave no id"))?;
        AccountId::new(id.get())
    }

    /// Whether an account is the one that we have just created, when its creation was sent twice.
    async fn has_stamp(&self, id: AccountId, graph: &[u8]) -> Result<bool> {
        let command = crate::cluster::Command::new("HGET").arg(&self.graph.keys().account(id)).arg("g");
        let found = self.graph.router().call(Request::read(self.graph.slot(id), command)).await?;
        Ok(found.bytes().is_ok_and(|stamp| stamp == graph))
    }

    /// An account's record, with its counts; [`ErrorKind::NotFound`] if it doesn't exist, or is deleted.
    ///
    /// How many follow it is exact while these are few (below `spread_at`), else at most a minute old.
    pub async fn account(&self, id: AccountId) -> Result<Account> {
        let graph = &self.graph;
        let account = self.shown(id).await?;
        if !graph::is_uncounted(&account, graph.router().now_ms()) {
            return Ok(account);
        }
        graph::count_followers(graph, id).await?;
        self.shown(id).await
    }

    async fn shown(&self, id: AccountId) -> Result<Account> {
        let answers = self.graph.run_all(self.graph.shown_requests(id).collect()).await?;
        let account = self.graph.readers.read_shown(id, &mut answers.into_iter())?.filter(Account::is_there);
        account.ok_or_else(|| no_account(id))
    }

    /// Sums the followers of all accounts up that wait for it in this instance, now. For tests.
    #[doc(hidden)]
    pub async fn count_now(&self) {
        graph::count_all_followers(&self.graph).await;
    }

    /// Changes an account. Once it isn't locked any more, whoever waits for its answer follows it; that goes on after the
    /// call has returned.
    pub async fn update_account(&self, id: AccountId, update: &AccountUpdate) -> Result<Receipt> {
        if update.state == Some(AccountState::Unconfirmed) {
            return Err(Error::invalid("an account that is there stays confirmed"));
        }
        if update.state == Some(AccountState::Deleted) {
            return Err(Error::invalid(
                "an account is deleted with `delete_account`, which takes its traces too",
            ));
        }
        self.graph.existing(id).await?;
        let mut fields = Vec::new();
        if let Some(kind) = update.kind {
            fields.push(("k", vec![kind.letter()]));
        }
        if let Some(state) = update.state {
            fields.push(("s", vec![state.letter()]));
        }
        if let Some(is_locked) = update.is_locked {
            fields.push(("l", vec![if is_locked { b'1' } else { b'0' }]));
        }
        self.set_fields(id, fields, update.is_locked == Some(false)).await
    }

    /// Deletes an account with all its traces. It is gone for everybody at once; its posts, edges and keys follow.
    pub async fn delete_account(&self, id: AccountId) -> Result<Receipt> {
        let graph = &self.graph;
        let keys = [graph.keys().account(id), graph.keys().journal(graph.bucket(id))];
        let mut may_be_done = false;
        for _ in 0..TRIES_MAX {
            let _place = journal::reserve(&graph.journal, 1)?;
            let (seen, epoch) = graph::graph_stamp(graph, id).await?;
            let entry = journal::Entry::new(graph.bucket(id), graph.instance, BuryTask { account: id });
            let stamps = (seen, draw());
            let most = graph.settings.journal_max;
            let command = account_delete(&keys, stamps, most, (&entry.id, &entry.stored()));
            let answer = match graph.once(graph.slot(id), command).await {
                Err(e) if e.kind() == ErrorKind::Unknown => {
                    may_be_done = true;
                    continue;
                }
                answer => answer?,
            };
            let deleted = answer.epoch.clone();
            match Compared::parse(answer.ok()?)? {
                Compared::Done => {
                    drop(journal::accept(&graph.journal, entry));
                    return self.acknowledged(deleted).await;
                }
                Compared::Changed => {}
                // Our own first sending, whose reply was lost.
                Compared::NoAccount if may_be_done => return self.acknowledged(epoch).await,
                Compared::NoAccount => return Err(no_account(id)),
                Compared::JournalFull => return Err(journal::journal_full(graph)),
            }
        }
        Err(changed_always(id))
    }

    /// Sets fields if nothing else changes the account meanwhile: a copy that comes late undoes nothing.
    /// `unlocks`: who waits for its answer needs none any more.
    async fn set_fields(
        &self,
        id: AccountId,
        fields: Vec<(&str, Vec<u8>)>,
        unlocks: bool,
    ) -> Result<Receipt> {
        let graph = &self.graph;
        let (bucket, most) = (graph.bucket(id), graph.settings.journal_max);
        let keys = [graph.keys().account(id), graph.keys().journal(bucket)];
        for _ in 0..TRIES_MAX {
            let (seen, epoch) = graph::graph_stamp(graph, id).await?;
            if fields.is_empty() {
                return self.acknowledged(epoch).await;
            }
            let _place = journal::reserve(&graph.journal, usize::from(unlocks))?;
            let entry = journal::Entry::new(bucket, graph.instance, UnlockTask { account: id });
            let command = if unlocks {
                account_set_noted(&keys, (seen, draw()), most, (&entry.id, &entry.stored()), fields.clone())
            } else {
                account_set(keys[0].clone(), Some((seen, draw())), fields.clone())
            };
            let answer = match graph.once(graph.slot(id), command).await {
                Err(e) if e.kind() == ErrorKind::Unknown => continue,
                answer => answer?,
            };
            let epoch = answer.epoch.clone();
            match Compared::parse(answer.ok()?)? {
                Compared::Done => {
                    if unlocks {
                        drop(journal::accept(&graph.journal, entry));
                    }
                    return self.acknowledged(epoch).await;
                }
                Compared::Changed => {}
                Compared::NoAccount => return Err(no_account(id)),
                Compared::JournalFull => return Err(journal::journal_full(graph)),
            }
        }
        Err(changed_always(id))
    }
}
