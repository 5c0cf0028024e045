//! The store of a tenant's posts: where one lies, how it is asked for, how the answer is read.

use super::{MissingPost, Tenant, Untold};
use crate::cluster::{Answer, Command, Epoch, Request, TouchedServers};
use crate::error::Result;
use crate::ids::PostId;
use crate::post::PostRef;
use crate::post::layout::HEADER_LEN;
use crate::post::{Post, PostHeader};
use crate::stored::StoredPost;

/// A tenant's posts. Functions that compare or change one name its key themselves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posts<'t>(pub(super) &'t Tenant);

impl Posts<'_> {
    /// A request for a post, for a batch of other things too; [`StoredPost::read`] reads the answer.
    pub(crate) fn request(self, id: PostId) -> Request {
        self.read_of(id, "GET", &[])
    }

    /// A request for a post's header, which [`StoredPost::read_head_as`] reads.
    pub(crate) fn header_request(self, id: PostId) -> Request {
        self.read_of(id, "GETRANGE", &[0, HEADER_LEN - 1])
    }

    /// A request that asks whether anything stands for a post: 1 says so.
    pub(crate) fn exists_request(self, id: PostId) -> Request {
        self.read_of(id, "EXISTS", &[])
    }

    /// A request that stores a post, unless its id is taken: nil says that.
    pub(crate) fn new_request(self, id: PostId, post: &[u8]) -> Request {
        Request::write(self.slot(id), self.command(id, "SET").arg(post).arg("NX"))
    }

    /// A post.
    pub(crate) async fn get(self, id: PostId) -> Result<StoredPost> {
        self.get_as(id, Post::parse).await
    }

    /// A post, as `parse` takes it.
    pub(crate) async fn get_as<P>(
        self,
        id: PostId,
        parse: impl Fn(&[u8]) -> Result<P>,
    ) -> Result<StoredPost<P>> {
        let found = StoredPost::read_as(self.0.router().ask(self.request(id)).await?, &parse)?;
        self.or_archived(id, found, parse).await
    }

    /// A post that lies in memory: to change what is stored there of it.
    pub(crate) async fn in_memory(self, id: PostId) -> Result<StoredPost> {
        StoredPost::read(self.0.router().ask(self.request(id)).await?)
    }

    /// A post by its id alone, and who told it.
    pub(crate) async fn told(self, id: PostId) -> Result<(StoredPost, Epoch)> {
        let answer = self.0.router().ask(self.request(id)).await?;
        let epoch = answer.epoch.clone();
        Ok((self.or_archived(id, StoredPost::read(answer)?, Post::parse).await?, epoch))
    }

    /// A post of an author, for who has the word of its server fenced. H184: where memory can tell that it is gone, the
    /// archive isn't asked; where it can't, an archive that lacks something is no word.
    pub(crate) async fn get_touching(
        self,
        post: PostRef,
        touched: &mut TouchedServers,
    ) -> Result<StoredPost> {
        let answer = self.0.router().ask(self.request(post.id)).await?;
        touched.add(&answer);
        let mut found = [StoredPost::read(answer)?];
        self.or_all_archived(&mut found, Post::parse, |_| (post.id, Some(post.author))).await?;
        let [found] = found;
        Ok(found)
    }

    /// Posts, in the order of their ids here; one trip, and what has left memory two more.
    pub(crate) async fn get_many(self, ids: impl IntoIterator<Item = PostId>) -> Result<Vec<StoredPost>> {
        let ids: Vec<PostId> = ids.into_iter().collect();
        self.many(&ids, |n| (ids[n], None), &mut TouchedServers::new()).await
    }

    /// Posts, for who can do without some, and is told which only the archive could tell.
    pub(crate) async fn get_many_as_told(self, ids: &[PostId]) -> Result<(Vec<StoredPost>, Untold)> {
        self.many_as_told(ids, |n| (ids[n], None), &mut TouchedServers::new()).await
    }

    /// Posts of these authors, for who has the word of their servers fenced, as [`get_touching`](Self::get_touching).
    pub(crate) async fn get_many_touching(
        self,
        posts: &[PostRef],
        touched: &mut TouchedServers,
    ) -> Result<Vec<StoredPost>> {
        let ids: Vec<PostId> = posts.iter().map(|post| post.id).collect();
        self.many(&ids, |n| (posts[n].id, Some(posts[n].author)), touched).await
    }

    async fn many(
        self,
        ids: &[PostId],
        which: impl Fn(usize) -> MissingPost,
        touched: &mut TouchedServers,
    ) -> Result<Vec<StoredPost>> {
        let (posts, untold) = self.many_as_told(ids, which, touched).await?;
        untold.refuse()?;
        Ok(posts)
    }

    async fn many_as_told(
        self,
        ids: &[PostId],
        which: impl Fn(usize) -> MissingPost,
        touched: &mut TouchedServers,
    ) -> Result<(Vec<StoredPost>, Untold)> {
        let answers = self.answers(ids.iter().copied(), Self::request).await?;
        answers.iter().for_each(|answer| touched.add(answer));
        let mut posts: Vec<StoredPost> = answers.into_iter().map(StoredPost::read).collect::<Result<_>>()?;
        let untold = self.or_archived_as_told(&mut posts, Post::parse, which).await?;
        Ok((posts, untold))
    }

    /// A post's header.
    pub(crate) async fn header(self, id: PostId) -> Result<StoredPost<PostHeader>> {
        self.header_as(id, PostHeader::parse).await
    }

    /// A post's header, as `parse` takes it.
    pub(crate) async fn header_as<P>(
        self,
        id: PostId,
        parse: impl Fn(&[u8]) -> Result<P>,
    ) -> Result<StoredPost<P>> {
        let answer = self.0.router().ask(self.header_request(id)).await?;
        self.or_archived(id, StoredPost::read_head_as(answer, &parse)?, parse).await
    }

    /// Memory's word on a post, or what the archive has of it.
    async fn or_archived<P>(
        self,
        id: PostId,
        found: StoredPost<P>,
        parse: impl Fn(&[u8]) -> Result<P>,
    ) -> Result<StoredPost<P>> {
        let mut posts = [found];
        self.or_all_archived(&mut posts, parse, |_| (id, None)).await?;
        let [post] = posts;
        Ok(post)
    }

    /// Puts what the archive has in the place of those that memory says are gone. `which`: the post at a place here.
    async fn or_all_archived<P>(
        self,
        posts: &mut [StoredPost<P>],
        parse: impl Fn(&[u8]) -> Result<P>,
        which: impl Fn(usize) -> MissingPost,
    ) -> Result<()> {
        self.or_archived_as_told(posts, parse, which).await?.refuse()
    }

    /// Adds what the archive has, for who can do without some, and is told which those are.
    pub(crate) async fn or_archived_as_told<P>(
        self,
        posts: &mut [StoredPost<P>],
        parse: impl Fn(&[u8]) -> Result<P>,
        which: impl Fn(usize) -> MissingPost,
    ) -> Result<Untold> {
        let gone: Vec<usize> = (0..posts.len()).filter(|n| matches!(posts[*n], StoredPost::Gone)).collect();
        if gone.is_empty() || self.0.archive()?.is_none() {
            return Ok(Untold::default());
        }
        let missing: Vec<MissingPost> = gone.iter().map(|n| which(*n)).collect();
        let (found, mut untold) = self.archived(&missing).await?;
        untold.posts.iter_mut().for_each(|n| *n = gone[*n]);
        for (n, stored) in gone.into_iter().zip(found) {
            if let Some(stored) = stored {
                posts[n] = StoredPost::of_bytes(&stored, &parse);
            }
        }
        Ok(untold)
    }

    /// Whether anything stands for a post, which may be one that can't be read.
    pub(crate) async fn exists(self, id: PostId) -> Result<bool> {
        Ok(self.0.router().call(self.exists_request(id)).await?.int()? == 1)
    }

    async fn answers(
        self,
        ids: impl IntoIterator<Item = PostId>,
        request: impl Fn(Self, PostId) -> Request,
    ) -> Result<Vec<Answer>> {
        self.0.run_all(ids.into_iter().map(|id| request(self, id)).collect()).await
    }

    fn read_of(self, id: PostId, command: &str, arguments: &[usize]) -> Request {
        Request::read(self.slot(id), self.command(id, command).args(arguments.iter().copied()))
    }

    fn command(self, id: PostId, command: &str) -> Command {
        Command::new(command).arg(&self.0.keys().post(id))
    }

    fn slot(self, id: PostId) -> u16 {
        let buckets = self.0.keys().buckets();
        buckets.slot(id.bucket(buckets))
    }
}
