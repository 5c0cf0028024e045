//! Small questions that several relations ask, and the two ways in which a repair acts: a command on one key, and an
//! entry in a journal.

use std::sync::Arc;

use crate::bucket::Bucket;
use crate::cluster::{Answer, Command, Reply, Request, TouchedServers};
use crate::error::Result;
use crate::fields::RecordField;
use crate::ids::AccountId;
use crate::journal::{self, Journal, Task};
use crate::keys::slot_of_key;
use crate::post::{Post, PostHeader, PostRef};
use crate::sharded::{LocalKey, Member, ScoredMember};
use crate::stored::StoredPost;
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
pub(super) async fn leave(journal: &Arc<Journal>, bucket: Bucket, task: impl Into<Task>) -> Result<()> {
    journal::add(journal, bucket, task).await.map(drop)
}

/// Members of a set, read.
pub(super) fn members_of<M: Member>(members: &[&ScoredMember]) -> Result<Vec<M>> {
    members.iter().map(|entry| M::from_bytes(&entry.member)).collect()
}

/// Whether an account is there: not deleted, nor one that never was.
pub(super) async fn is_there(tenant: &Tenant, account: AccountId) -> Result<bool> {
    Ok(are_there(tenant, &[account]).await? == [true])
}

/// Looks whether several accounts are there, in one trip.
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

/// Posts of which somebody knows the authors, wherever they lie. H200: by their ids alone an archive that lacks what it
/// once had would be taken for one in which there is nothing.
#[derive(Debug)]
pub(super) struct ToldPosts<P> {
    /// In the order of the questions. `None`: only the archive could tell, and doesn't.
    pub(super) posts: Vec<Option<StoredPost<P>>>,
    /// How many these are.
    pub(super) untold: u64,
}

/// Reads posts.
pub(super) async fn posts(tenant: &Tenant, of: &[PostRef]) -> Result<ToldPosts<Post>> {
    let ask = of.iter().map(|post| tenant.posts().request(post.id)).collect();
    told(tenant, of, tenant.run_all(ask).await?, StoredPost::read, Post::parse).await
}

/// Reads posts' headers.
pub(super) async fn headers(tenant: &Tenant, of: &[PostRef]) -> Result<ToldPosts<PostHeader>> {
    let ask = of.iter().map(|post| tenant.posts().header_request(post.id)).collect();
    let read = |answer| StoredPost::read_head_as(answer, PostHeader::parse);
    told(tenant, of, tenant.run_all(ask).await?, read, PostHeader::parse).await
}

async fn told<P>(
    tenant: &Tenant,
    of: &[PostRef],
    answers: Vec<Answer>,
    read: impl Fn(Answer) -> Result<StoredPost<P>>,
    parse: impl Fn(&[u8]) -> Result<P>,
) -> Result<ToldPosts<P>> {
    let mut found = answers.into_iter().map(read).collect::<Result<Vec<_>>>()?;
    let which = |n: usize| (of[n].id, Some(of[n].author));
    let untold = tenant.posts().or_archived_as_told(&mut found, parse, which).await?.posts;
    let mut posts: Vec<Option<_>> = found.into_iter().map(Some).collect();
    untold.iter().for_each(|n| posts[*n] = None);
    Ok(ToldPosts { posts, untold: untold.len() as u64 })
}

/// Reads one post; the error [`ArchiveAway`](crate::error::ErrorCode::ArchiveAway), where only the archive could tell.
pub(super) async fn post(tenant: &Tenant, of: PostRef) -> Result<StoredPost> {
    tenant.posts().get_touching(of, &mut TouchedServers::new()).await
}

/// Whether a post may be there, by its header, with the same error.
pub(super) async fn is_post(tenant: &Tenant, of: PostRef) -> Result<bool> {
    let mut header = [StoredPost::read_head_as(
        tenant.router().ask(tenant.posts().header_request(of.id)).await?,
        PostHeader::parse,
    )?];
    let which = |_| (of.id, Some(of.author));
    tenant.posts().or_archived_as_told(&mut header, PostHeader::parse, which).await?.refuse()?;
    Ok(header[0].may_be_of(of.author))
}

/// Drops a local set with all its pieces: a part that belongs to nothing.
pub(super) async fn drop_set(tenant: &Tenant, set: &LocalKey) -> Result<()> {
    let keys = tenant.sets().stored_keys(set).await?;
    let unlink = keys.iter().fold(Command::new("UNLINK"), |command, key| command.arg(key));
    write(tenant, &tenant.sets().key(set), unlink).await.map(drop)
}
