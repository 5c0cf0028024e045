//! Accounts: creating, changing, deleting them.

use super::Engine;
use crate::account::{Account, AccountState, AccountUpdate, NewAccount};
use crate::bucket::Bucket;
use crate::cluster::Request;
use crate::context::{changed_always, draw, no_account};
use crate::error::{Error, ErrorKind, Result};
use crate::fanout::{self, Task};
use crate::functions::{Compared, account_create, account_delete, account_set};
use crate::graph;
use crate::ids::AccountId;

/// Tries of one change between others of the same account.
const TRIES_MAX: usize = 16;

impl Engine {
    /// Creates an account, with the id given or a new one.
    ///
    /// [`ErrorKind::Conflict`]: there is one with that id.
    pub async fn create_account(&self, new: NewAccount) -> Result<AccountId> {
        let context = &self.context;
        let id = match new.id {
            Some(id) => id,
            None => self.new_account_id().await?,
        };
        let graph = draw();
        let command = account_create(context.keys().account(id), new.fields(graph));
        let answer = context.router().ask(Request::write(context.slot(id), command)).await?;
        let epoch = answer.epoch.clone();
        if answer.ok()?.count()? == 0 && !self.has_stamp(id, &graph).await? {
            return Err(Error::new(ErrorKind::Conflict, format!("there is an account {id} already")));
        }
        self.acknowledged(epoch).await?;
        Ok(id)
    }

    /// An id that no account has.
    pub(crate) async fn new_account_id(&self) -> Result<AccountId> {
        let context = &self.context;
        let bucket = rand::random::<u16>() % context.keys().buckets().count();
        let ids = context.store.clock().post_ids(Bucket(bucket), 1).await?;
        let id = ids.first().ok_or_else(|| Error::internal("the clock gave no id"))?;
        AccountId::new(id.get())
    }

    /// Whether an account is the one that we have just created, when its creation was sent twice.
    async fn has_stamp(&self, id: AccountId, graph: &[u8]) -> Result<bool> {
        let command = crate::cluster::Command::new("HGET").arg(&self.context.keys().account(id)).arg("g");
        let found = self.context.router().call(Request::read(self.context.slot(id), command)).await?;
        Ok(found.bytes().is_ok_and(|stamp| stamp == graph))
    }

    /// An account's record; [`ErrorKind::NotFound`] if it doesn't exist, or is deleted.
    pub async fn account(&self, id: AccountId) -> Result<Account> {
        self.context.existing(id).await
    }

    /// Changes an account.
    pub async fn update_account(&self, id: AccountId, update: &AccountUpdate) -> Result<()> {
        if update.state == Some(AccountState::Unconfirmed) {
            return Err(Error::invalid("an account that is there stays confirmed"));
        }
        if update.state == Some(AccountState::Deleted) {
            return Err(Error::invalid(
                "an account is deleted with `delete_account`, which takes its traces too",
            ));
        }
        self.context.existing(id).await?;
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
        self.set_fields(id, fields).await
    }

    /// Deletes an account with all its traces. It is gone for everybody at once; its posts, edges and keys follow.
    pub async fn delete_account(&self, id: AccountId) -> Result<()> {
        let context = &self.context;
        let keys = [context.keys().account(id), context.keys().journal(context.bucket(id))];
        let mut may_be_done = false;
        for _ in 0..TRIES_MAX {
            let _place = fanout::reserve(context, 1)?;
            let (seen, epoch) = graph::graph_stamp(context, id).await?;
            let entry = fanout::Entry::new(context.bucket(id), context.instance, Task::Bury { account: id });
            let stamps = (seen, draw());
            let most = context.settings.journal_max;
            let command = account_delete(&keys, stamps, most, (&entry.id, &entry.stored()));
            let answer = match context.once(context.slot(id), command).await {
                Err(e) if e.kind() == ErrorKind::Unknown => {
                    may_be_done = true;
                    continue;
                }
                answer => answer?,
            };
            let deleted = answer.epoch.clone();
            match Compared::parse(answer.ok()?)? {
                Compared::Done => {
                    drop(fanout::accept(context, entry));
                    return self.acknowledged(deleted).await;
                }
                Compared::Changed => {}
                // Our own first sending, whose reply was lost.
                Compared::NoAccount if may_be_done => return self.acknowledged(epoch).await,
                Compared::NoAccount => return Err(no_account(id)),
                Compared::JournalFull => return Err(fanout::journal_full(context)),
            }
        }
        Err(changed_always(id))
    }

    /// Sets fields if nothing else changes the account meanwhile: a copy that comes late undoes nothing.
    async fn set_fields(&self, id: AccountId, fields: Vec<(&str, Vec<u8>)>) -> Result<()> {
        let context = &self.context;
        for _ in 0..TRIES_MAX {
            let (seen, epoch) = graph::graph_stamp(context, id).await?;
            if fields.is_empty() {
                return self.acknowledged(epoch).await;
            }
            let command = account_set(context.keys().account(id), Some((seen, draw())), fields.clone());
            let answer = match context.once(context.slot(id), command).await {
                Err(e) if e.kind() == ErrorKind::Unknown => continue,
                answer => answer?,
            };
            let epoch = answer.epoch.clone();
            match Compared::parse(answer.ok()?)? {
                Compared::Done => return self.acknowledged(epoch).await,
                Compared::Changed => {}
                Compared::NoAccount | Compared::JournalFull => return Err(no_account(id)),
            }
        }
        Err(changed_always(id))
    }
}
