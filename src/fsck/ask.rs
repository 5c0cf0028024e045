//! Small questions that several relations ask, and the two ways in which a repair acts: a command on one key, and an
//! entry in a journal.

use std::sync::Arc;

use crate::bucket::Bucket;
use crate::cluster::{Command, Reply, Request};
use crate::error::Result;
use crate::fields::RecordField;
use crate::graph::Graph;
use crate::ids::AccountId;
use crate::journal::{self, Task};
use crate::keys::slot_of_key;
use crate::sharded::{LocalKey, Member, Scored};
use crate::tenant::{Answers, Tenant};

/// A question about one key.
pub(super) fn request(command: &str, key: &[u8], arguments: &[&[u8]]) -> Request {
    Request::read(slot_of_key(key), Command::new(command).arg(key).args(arguments.iter().copied()))
}

/// Asks one question about one key.
pub(super) async fn read(tenant: &Tenant, command: &str, key: &[u8], arguments: &[&[u8]]) -> Result<Reply> {
    tenant.router().call(request(command, key, arguments)).await
}

/// Elements of a list.
pub(super) async fn range(tenant: &Tenant, list: &[u8], from: usize, most: usize) -> Result<Vec<Reply>> {
    let (from, to) = (from.to_string(), (from + most - 1).to_string());
    read(tenant, "LRANGE", list, &[from.as_bytes(), to.as_bytes()]).await?.into_array()
}

/// Whether a key exists.
pub(super) async fn exists(tenant: &Tenant, key: &[u8]) -> Result<bool> {
    Ok(read(tenant, "EXISTS", key, &[]).await?.int()? == 1)
}

/// Sends a command that writes where a key lies.
pub(super) async fn write(tenant: &Tenant, key: &[u8], command: Command) -> Result<Reply> {
    tenant.router().call(Request::write(slot_of_key(key), command)).await
}

/// Leaves work to a bucket's journal, and has this instance begin with it.
pub(super) async fn leave(graph: &Arc<Graph>, bucket: Bucket, task: impl Into<Task>) -> Result<()> {
    journal::add(&graph.journal, bucket, task).await.map(drop)
}

/// Members of a set, read.
pub(super) fn members_of<M: Member>(members: &[&Scored]) -> Result<Vec<M>> {
    members.iter().map(|entry| M::from_bytes(&entry.member)).collect()
}

/// Whether an account is there: not deleted, nor one that never was.
pub(super) async fn is_there(tenant: &Tenant, account: AccountId) -> Result<bool> {
    Ok(are_there(tenant, &[account]).await? == [true])
}

/// The same of several accounts, in one trip.
pub(super) async fn are_there(tenant: &Tenant, accounts: &[AccountId]) -> Result<Vec<bool>> {
    let state = |account: &AccountId| {
        request("HGET", &tenant.keys().account(*account), &[RecordField::STATE.as_bytes()])
    };
    let mut states = Answers::of(tenant, accounts.iter().map(state).collect()).await?;
    let mut is_there = || {
        let state = states.next()?;
        Ok(!state.is_nil() && state.bytes()? != b"d")
    };
    accounts.iter().map(|_| is_there()).collect()
}

/// Drops a local set with all its pieces: a part that belongs to nothing.
pub(super) async fn drop_set(tenant: &Tenant, set: &LocalKey) -> Result<()> {
    let keys = tenant.sets().stored_keys(set).await?;
    let unlink = keys.iter().fold(Command::new("UNLINK"), |command, key| command.arg(key));
    write(tenant, &tenant.sets().key(set), unlink).await.map(drop)
}
