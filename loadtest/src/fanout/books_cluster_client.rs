//! `books_cluster_client`: the books' algorithm through the redis crate's cluster client, one pipeline per follower,
//! because a pipeline of this client has to stay in one slot.

use std::time::Duration;

use futures::Stream;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;

use super::args::FanoutArgs;
use super::deliveries::Deliveries;
use super::system::{Look, System};
use super::world::post_id;
use super::{books, followers};
use tideline::cluster::Seed;

use crate::bench::Bench;

/// Pipelines under way at a time, of all posts together. With 64 a delivery cost 17 % more; with 1,024 and 4,096 the
/// same, and also with TCP_NODELAY.
const CALLERS: u64 = 256;
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct BooksClusterClient<'a> {
    bench: &'a Bench,
    connection: ClusterConnection,
    cap: u64,
    callers_per_post: usize,
    followers_max: usize,
}

impl<'a> BooksClusterClient<'a> {
    pub(crate) async fn open(bench: &'a Bench, args: &FanoutArgs) -> anyhow::Result<Self> {
        let client = ClusterClient::builder(bench.target.seeds().iter().map(Seed::url))
            .response_timeout(RESPONSE_TIMEOUT)
            .build()?;
        Ok(Self {
            bench,
            connection: client.get_async_connection().await?,
            cap: args.books_cap,
            callers_per_post: usize::try_from((CALLERS / args.posts_under_way()).max(1))?,
            followers_max: args.sample.map_or(Ok(usize::MAX), usize::try_from)?,
        })
    }

    /// The homes of an account's followers, a page at a time.
    fn homes(&self, author: u64) -> impl Stream<Item = anyhow::Result<Vec<String>>> + use<'_> {
        let key = followers::key(&self.bench.prefix, author);
        let start = Some(followers::FROM_THE_START.to_owned());
        let state = (self.connection.clone(), key, start);
        stream::try_unfold(state, move |(mut connection, key, next)| async move {
            let Some(from) = next else { return Ok(None) };
            let page: Vec<(String, String)> = redis::cmd("ZRANGEBYSCORE")
                .arg(&key)
                .arg(&followers::page_arguments(&from))
                .query_async(&mut connection)
                .await?;
            let next = page.last().filter(|_| followers::is_full(page.len()));
            let next = next.map(|(_, score)| followers::after(score));
            let home = |(owner, _): &(String, String)| followers::home_key(&self.bench.prefix, owner);
            anyhow::Ok(Some((page.iter().map(home).collect(), (connection, key, next))))
        })
    }
}

impl System for BooksClusterClient<'_> {
    fn fill(&self, homes: u64) -> BoxFuture<'_, anyhow::Result<()>> {
        books::fill(self.bench, homes, self.cap).boxed()
    }

    fn follow<'a>(&'a self, author: u64, followers: &'a [u64]) -> BoxFuture<'a, anyhow::Result<()>> {
        followers::follow(self.bench, author, followers).boxed()
    }

    fn post<'a>(
        &'a self,
        author: u64,
        number: u64,
        deliveries: &'a Deliveries,
    ) -> BoxFuture<'a, anyhow::Result<u64>> {
        let post = async move {
            let (ms, cap) = (self.bench.router.now_ms(), i64::try_from(self.cap)?);
            let id = post_id(ms, number);
            let deliver = |home: String| {
                let mut connection = self.connection.clone();
                async move {
                    let mut pipeline = redis::pipe();
                    pipeline.cmd("ZADD").arg(&home).arg(ms).arg(id).ignore();
                    pipeline.cmd("ZREMRANGEBYRANK").arg(&home).arg(0).arg(-cap - 1).ignore();
                    pipeline.query_async::<()>(&mut connection).await?;
                    deliveries.note(1);
                    anyhow::Ok(())
                }
            };
            self.homes(author)
                .map_ok(|page| stream::iter(page).map(anyhow::Ok))
                .try_flatten()
                .take(self.followers_max)
                .try_for_each_concurrent(self.callers_per_post, deliver)
                .await?;
            Ok(id)
        };
        post.boxed()
    }

    fn look(&self, home: u64, post_id: u64) -> BoxFuture<'_, anyhow::Result<Look>> {
        books::look(self.bench, home, post_id).boxed()
    }
}
