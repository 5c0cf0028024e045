//! Small questions that several relations ask, and the two ways in which a repair acts: a command on one key, and an
//! entry in a journal.

use std::sync::Arc;

use crate::bucket::Bucket;
use crate::cluster::{Answer, Batch, Command, Reply, Request};
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::ids::{AccountId, PostId};
use crate::journal::{self, Task};
use crate::keys::slot_of_key;
use crate::post::Header;
use crate::post::layout::HEADER_LEN;
use crate::sharded::{LocalKey, Member, Scored};
use crate::stored::{StoredPost, is_of_another_type, stored_post};
use crate::tenant::Tenant;

/// Elements of a hash or a sorted set that one step of a scan passes.
const SCAN_COUNT: u32 = 500;
/// Steps of one scan.
const STEPS_MAX: usize = 1_000_000;

/// A question about one key.
pub(super) fn request(command: &str, key: &[u8], arguments: &[&[u8]]) -> Request {
    let command = arguments.iter().fold(Command::new(command).arg(key), |command, a| command.arg(*a));
    Request::read(slot_of_key(key), command)
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

/// Answers in the order in which they were asked for.
pub(super) struct Answers(std::vec::IntoIter<Answer>);

impl Answers {
    pub(super) async fn of(tenant: &Tenant, batch: Batch) -> Result<Self> {
        Ok(Self(tenant.run_all(batch).await?.into_iter()))
    }

    /// Of questions that one server answers one after the other.
    pub(super) async fn ordered(
        tenant: &Tenant,
        requests: impl IntoIterator<Item = Request>,
    ) -> Result<Self> {
        let mut batch = Batch::new();
        batch.push_ordered(requests);
        Self::of(tenant, batch).await
    }

    pub(super) fn next(&mut self) -> Result<Reply> {
        self.0.next().ok_or_else(|| Error::internal("an answer is missing"))?.ok()
    }
}

/// A walk through a hash or a sorted set, a page at a time. What is there all the time is met, maybe twice.
pub(super) struct Scan<'k> {
    command: &'static str,
    key: &'k [u8],
    cursor: Option<String>,
    steps: usize,
}

impl<'k> Scan<'k> {
    /// `command`: HSCAN or ZSCAN.
    pub(super) fn new(command: &'static str, key: &'k [u8]) -> Self {
        Self { command, key, cursor: Some("0".to_owned()), steps: 0 }
    }

    /// The next fields and their values, or members and their scores; `None`: that was all.
    pub(super) async fn next(&mut self, tenant: &Tenant) -> Result<Option<Vec<(Vec<u8>, Vec<u8>)>>> {
        let Some(cursor) = self.cursor.take().filter(|_| self.steps < STEPS_MAX) else { return Ok(None) };
        let scan = Command::new(self.command).arg(self.key).arg(&*cursor).arg("COUNT").arg(SCAN_COUNT);
        let page = tenant.router().call(Request::read(slot_of_key(self.key), scan)).await?.into_array()?;
        let [next, pairs] =
            <[_; 2]>::try_from(page).map_err(|_| Error::internal("a scan gives two parts"))?;
        self.cursor = Some(next.text()?.to_owned()).filter(|next| next != "0");
        self.steps += 1;
        let pairs = pairs.into_array()?;
        let pairs =
            pairs.chunks_exact(2).map(|pair| Ok((pair[0].bytes()?.to_vec(), pair[1].bytes()?.to_vec())));
        pairs.collect::<Result<_>>().map(Some)
    }
}

/// Members of a set, read.
pub(super) fn members_of<M: Member>(members: &[&Scored]) -> Result<Vec<M>> {
    members.iter().map(|entry| M::from_bytes(&entry.member)).collect()
}

/// Whether an account is there: not deleted, nor one that never was.
pub(super) async fn is_there(tenant: &Tenant, account: AccountId) -> Result<bool> {
    let state = read(tenant, "HGET", &tenant.keys().account(account), &[b"s"]).await?;
    Ok(!state.is_nil() && state.bytes()? != b"d")
}

/// Whole posts: only its text tells a quote from a repost.
pub(super) async fn posts(tenant: &Tenant, posts: impl Iterator<Item = PostId>) -> Result<Vec<StoredPost>> {
    let answers = tenant.run_all(posts.map(|post| tenant.post_request(post)).collect()).await?;
    answers.into_iter().map(stored_post).collect()
}

/// One of them.
pub(super) async fn post(tenant: &Tenant, post: PostId) -> Result<StoredPost> {
    stored_post(tenant.router().ask(tenant.post_request(post)).await?)
}

pub(super) fn header_request(tenant: &Tenant, post: PostId) -> Request {
    request("GETRANGE", &tenant.keys().post(post), &[b"0", (HEADER_LEN - 1).to_string().as_bytes()])
}

/// A post's header; `None`: there is no such post.
pub(super) fn header_of(reply: &Reply) -> Result<Option<Header>> {
    let bytes = reply.bytes()?;
    if bytes.is_empty() { Ok(None) } else { Header::parse(bytes).map(Some) }
}

/// Whether a post is that author's, as far as can be told: of one that can't be read it is what its outbox says.
pub(super) fn author_is(answer: Answer, author: AccountId) -> Result<bool> {
    if is_of_another_type(&answer) {
        return Ok(true);
    }
    let header = answer.ok()?;
    let bytes = header.bytes()?;
    Ok(!bytes.is_empty() && Header::parse(bytes).map_or(true, |header| header.author == author))
}

/// Who wrote a post; `None`: it is not there, or can't be read.
pub(super) async fn author_of(tenant: &Tenant, post: PostId) -> Result<Option<AccountId>> {
    let header = tenant.router().ask(header_request(tenant, post)).await?;
    Ok(header_of(&header.reply).ok().flatten().map(|header| header.author))
}

/// Drops a local set with all its pieces: a part that belongs to nothing.
pub(super) async fn drop_set(tenant: &Tenant, set: &LocalKey) -> Result<()> {
    let keys = tenant.sets().stored_keys(set).await?;
    let unlink = keys.iter().fold(Command::new("UNLINK"), |command, key| command.arg(key));
    write(tenant, &tenant.sets().key(set), unlink).await.map(drop)
}
