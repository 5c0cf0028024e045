//! Accounts: creating, changing, deleting them.

use super::Engine;
use crate::account::{AccountKind, AccountState, AccountUpdate, NewAccount};
use crate::bucket::Bucket;
use crate::change::{BucketChange, Tries};
use crate::cluster::{Epoch, Request};
use crate::error::{CallFuture, Error, ErrorCode, ErrorKind, Result};
use crate::fields::RecordField;
use crate::functions::{BucketWrite, ExpectedValue, LeastState, account_create};
use crate::graph::{self, BuryTask, UnlockTask};
use crate::ids::AccountId;
use crate::journal;
use crate::nonce::{Nonce, draw};
use crate::settings::Receipt;

impl Engine {
    /// Creates an account, with the id given or a new one.
    ///
    /// [`ErrorKind::Conflict`]: there is one with that id.
    pub fn create_account(&self, new: NewAccount) -> CallFuture<'_, Receipt<AccountId>> {
        Box::pin(async move {
            if new.kind == AccountKind::Chat {
                return Err(Error::invalid("kind: `open_chat` opens chats"));
            }
            let id = match new.id {
                Some(id) => id,
                None => self.new_account_id().await?,
            };
            let stamp = draw();
            let epoch = self.create_record(id, (new.fields(stamp), stamp)).await?;
            Ok(self.acknowledged(epoch).await?.with(id))
        })
    }

    /// Creates a record, with its first graph stamp. [`ErrorKind::Conflict`]: there is one.
    pub(super) async fn create_record(
        &self,
        id: AccountId,
        (fields, stamp): (Vec<(&'static str, Vec<u8>)>, Nonce),
    ) -> Result<Epoch> {
        let tenant = &self.tenant;
        let command = account_create(tenant.keys().account(id), fields);
        let answer = tenant.router().ask(Request::write(tenant.slot(id), command)).await?;
        let epoch = answer.epoch.clone();
        let is_new = answer.ok()?.count()? > 0;
        // Until that is read it may be our own first sending's.
        let unknown = |e| {
            let text = format!("account {id} exists, but whether this call created it is not known: {e}");
            Error::new(ErrorKind::Unknown, text)
        };
        if !is_new && !self.has_stamp(id, &stamp).await.map_err(unknown)? {
            return Err(Error::new(ErrorCode::IdTaken, format!("account {id} is there already")));
        }
        Ok(epoch)
    }

    /// An id that no account has.
    pub(crate) async fn new_account_id(&self) -> Result<AccountId> {
        let tenant = &self.tenant;
        let bucket = rand::random::<u16>() % tenant.keys().buckets().count();
        let ids = tenant.store.clock().post_ids(Bucket(bucket), 1).await?;
        let id = ids.first().ok_or_else(|| Error::internal("the clock gave no id"))?;
        AccountId::new(id.get())
    }

    /// Whether an account is the one that we have just created, when its creation was sent twice.
    async fn has_stamp(&self, id: AccountId, graph: &[u8]) -> Result<bool> {
        let command = crate::cluster::Command::new("HGET")
            .arg(&self.tenant.keys().account(id))
            .arg(RecordField::GRAPH_STAMP);
        let found = self.tenant.router().call(Request::read(self.tenant.slot(id), command)).await?;
        Ok(found.bytes().is_ok_and(|stamp| stamp == graph))
    }

    /// Sums the followers of all accounts up that wait for it in this instance, now. For tests.
    #[doc(hidden)]
    pub async fn count_now(&self) {
        graph::count_all_followers(&self.graph).await;
    }

    /// Changes an account. Once it isn't locked any more, whoever waits for its answer follows it; that goes on after
    /// the call has returned.
    pub fn update_account<'a>(&'a self, id: AccountId, update: &'a AccountUpdate) -> CallFuture<'a, Receipt> {
        Box::pin(async move {
            if update.state == Some(AccountState::Unconfirmed) {
                return Err(Error::invalid(
                    "state: an account that was confirmed cannot become unconfirmed again",
                ));
            }
            if update.state == Some(AccountState::Waiting) {
                return Err(Error::invalid("state: only a new account waits to be let in (`SignUp::waits`)"));
            }
            if update.state == Some(AccountState::Deleted) {
                return Err(Error::invalid(
                    "state: an update cannot delete an account. Call `delete_account`, which also removes \
                     what it leaves elsewhere",
                ));
            }
            let was = self.tenant.existing(id).await?.kind;
            let becomes_chat = |kind| (kind == AccountKind::Chat) != (was == AccountKind::Chat);
            if update.kind.is_some_and(becomes_chat) {
                return Err(Error::invalid("kind: a chat stays one, and nothing else becomes one"));
            }
            let mut fields = Vec::new();
            if let Some(kind) = update.kind {
                fields.push((RecordField::KIND, vec![kind.letter()]));
            }
            if let Some(state) = update.state {
                fields.push((RecordField::STATE, vec![state.letter()]));
            }
            if let Some(is_locked) = update.is_locked {
                fields.push(locked(is_locked));
            }
            self.set_fields((id, None), fields, update.is_locked == Some(false)).await
        })
    }

    /// Deletes an account with all its traces. It is gone for everybody at once; its posts, edges and keys follow. A
    /// group that it alone owns passes to the moderator who has been a member for longest; one without moderators has
    /// no owner then ([`inspect`](Self::inspect) tells), and [`set_group_role`](Self::set_group_role) gives it another.
    pub fn delete_account(&self, id: AccountId) -> CallFuture<'_, Receipt> {
        Box::pin(self.delete_as((id, None), false))
    }

    /// Deletes an account that waits to be let in.
    ///
    /// [`Invalid`](ErrorKind::Invalid): it doesn't wait, perhaps not any more.
    pub fn delete_waiting(&self, id: AccountId) -> CallFuture<'_, Receipt> {
        Box::pin(self.delete_as((id, None), true))
    }

    /// Deletes an account; `by`: of a group, the owner who wants that.
    pub(super) async fn delete_as(
        &self,
        (id, by): (AccountId, Option<AccountId>),
        only_waiting: bool,
    ) -> Result<Receipt> {
        let (tenant, graph) = (&self.tenant, &self.graph);
        let record = tenant.keys().account(id);
        let tries = &mut Tries::of(id);
        loop {
            let once = async {
                let _place = journal::reserve(&graph.journal, 1)?;
                let (seen, epoch) = graph::graph_stamp(tenant, id).await?;
                // H272: behind what is compared, which changes with the state.
                if only_waiting {
                    let state = tenant.existing(id).await?.state;
                    if state != AccountState::Waiting {
                        let text = format!("account {id} does not wait to be let in: it is {state}");
                        return Err(Error::invalid(text));
                    }
                }
                let deleted = async {
                    let seen = self.owned(id, by, seen).await?;
                    let write = BucketWrite::new("account_delete", &record, LeastState::There)
                        .compare([(RecordField::GRAPH_STAMP, ExpectedValue::Exactly(Some(seen)))])
                        .set(RecordField::STATE, &[AccountState::Deleted.letter()])
                        .set(RecordField::GRAPH_STAMP, &draw());
                    let change = BucketChange::new(&graph.journal, id, write, "be deleted");
                    change.task(BuryTask { account: id }).write(tries).await
                };
                match deleted.await {
                    // Our own first sending, whose reply was lost.
                    Err(e) if e.kind() == ErrorKind::NotFound && tries.may_be_made() => Ok(Some(epoch)),
                    made => Ok(made?.map(|made| made.epoch)),
                }
            };
            let once = once.await;
            if let Some(epoch) = tries.ended(once)? {
                return self.acknowledged(epoch).await;
            }
        }
    }

    /// The stamp under which an account may be changed: of a group, as its owners want, the one under which `by` is
    /// one.
    async fn owned(&self, id: AccountId, by: Option<AccountId>, seen: Nonce) -> Result<Nonce> {
        match by {
            // H229: an owner may lose its role between a look and the write.
            Some(by) => graph::only_owner(&self.tenant, id, by).await,
            None => Ok(seen),
        }
    }

    /// Sets fields if nothing else changes the account meanwhile: a copy that comes late undoes nothing.
    /// `by`: of a group, the owner who wants that. `unlocks`: who waits for its answer needs none any more.
    pub(super) async fn set_fields(
        &self,
        (id, by): (AccountId, Option<AccountId>),
        fields: Vec<(&str, Vec<u8>)>,
        unlocks: bool,
    ) -> Result<Receipt> {
        let graph = &self.graph;
        let tries = &mut Tries::of(id);
        loop {
            let once = async {
                let (seen, epoch) = graph::graph_stamp(&graph.tenant, id).await?;
                if fields.is_empty() {
                    return Ok(Some(epoch));
                }
                let seen = self.owned(id, by, seen).await?;
                let _place = journal::reserve_for(&graph.journal, id, usize::from(unlocks))?;
                let mut change = self.fields_change(id, seen, &fields);
                if unlocks {
                    change = change.task(UnlockTask { account: id });
                }
                Ok(change.write(tries).await?.map(|made| made.epoch))
            };
            let once = once.await;
            if let Some(epoch) = tries.ended(once)? {
                return self.acknowledged(epoch).await;
            }
        }
    }

    /// A change of fields of an account's record, if it has that graph stamp; with another one.
    pub(super) fn fields_change(
        &self,
        id: AccountId,
        seen: Nonce,
        fields: &[(&str, Vec<u8>)],
    ) -> BucketChange<'_> {
        let write = BucketWrite::new("account_set", &self.tenant.keys().account(id), LeastState::There)
            .compare([(RecordField::GRAPH_STAMP, ExpectedValue::Exactly(Some(seen)))])
            .set(RecordField::GRAPH_STAMP, &draw());
        let write = fields.iter().fold(write, |write, (field, value)| write.set(field, value));
        BucketChange::new(&self.graph.journal, id, write, "be changed")
    }
}

/// The field that says whether an account is locked.
pub(super) fn locked(is_locked: bool) -> (&'static str, Vec<u8>) {
    (RecordField::IS_LOCKED, vec![if is_locked { b'1' } else { b'0' }])
}
