//! Publishing: many authors at once, each waiting until its post is wherever it has to be.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tideline::post::Draft;
use tideline::{Engine, PostId};

use super::figures::{Times, grouped};
use super::graph::DemoGraph;
use crate::cli::progress::bar;

/// Posts under way at once. More would wait for each other, and the lag tell of that queue.
pub(super) const AT_ONCE: usize = 32;
const PATIENCE: Duration = Duration::from_secs(60);

/// The outcome of publishing.
#[derive(Debug)]
pub(super) struct PublishCounts {
    /// Author and id.
    pub(super) posts: Vec<(usize, PostId)>,
    /// From the call to the acknowledgement.
    pub(super) accepted: Times,
    /// From the call to the last delivery, of those that are pushed.
    pub(super) lag: Times,
    pub(super) took: Duration,
    /// Homes that got a post.
    pub(super) delivered: u64,
    /// Followers without a home.
    pub(super) dormant: u64,
    /// Followers that will pull instead.
    pub(super) pulled: u64,
}

/// One post, delivered.
struct Sent {
    author: usize,
    id: PostId,
    accepted: Duration,
    lag: Duration,
    delivered: u64,
    dormant: u64,
}

pub(super) async fn publish(
    engine: &Engine,
    graph: &DemoGraph,
    posts: u32,
    seed: u64,
) -> anyhow::Result<PublishCounts> {
    let mut random = StdRng::seed_from_u64(seed);
    let authors: Vec<usize> = (0..posts).map(|_| graph.author(&mut random)).collect();
    let bar = bar(authors.len(), "posts published");
    let started = Instant::now();
    let send = |(n, author): (usize, &usize)| tokio::spawn(send(engine.clone(), *author, n));
    let mut under_way = stream::iter(authors.iter().enumerate()).map(send).buffer_unordered(AT_ONCE);
    let (mut sent, mut delivered) = (Vec::with_capacity(authors.len()), 0);
    while let Some(done) = under_way.try_next().await? {
        let done = done?;
        delivered += done.delivered;
        bar.inc(1);
        bar.set_message(format!("posts published, {} deliveries", grouped(delivered)));
        sent.push(done);
    }
    engine.drained(PATIENCE).await?;
    bar.finish_and_clear();
    let pulled = authors.iter().filter(|author| DemoGraph::is_pulled(**author));
    Ok(PublishCounts {
        took: started.elapsed(),
        accepted: Times::new(sent.iter().map(|sent| sent.accepted)),
        lag: Times::new(sent.iter().filter(|sent| !DemoGraph::is_pulled(sent.author)).map(|sent| sent.lag)),
        delivered,
        dormant: sent.iter().map(|sent| sent.dormant).sum(),
        pulled: pulled.map(|author| graph.followers(*author) as u64).sum(),
        posts: sent.into_iter().map(|sent| (sent.author, sent.id)).collect(),
    })
}

async fn send(engine: Engine, author: usize, n: usize) -> tideline::Result<Sent> {
    let started = Instant::now();
    let draft = Draft::text(format!("post {n} of the demonstration"));
    let mut published = engine.publish(DemoGraph::id(author)?, &draft).await?;
    let accepted = started.elapsed();
    let progress = published.delivery.all().await?;
    Ok(Sent {
        author,
        id: published.id,
        accepted,
        lag: started.elapsed(),
        delivered: progress.delivered,
        dormant: progress.skipped,
    })
}
