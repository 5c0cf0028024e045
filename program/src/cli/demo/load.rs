//! Bringing the site in: accounts, follows and old posts by import, then the homes of those who read now and then.

use std::time::{Duration, Instant, SystemTime};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use indicatif::ProgressBar;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tideline::post::Draft;
use tideline::{Engine, ImportedEdge, ImportedPost, Importer, NewAccount, PostId, StoreOptions};

use super::graph::DemoGraph;
use crate::cli::progress::bar;

/// Calls under way at once.
const AT_ONCE: usize = 64;
/// Follows, posts written by one call of the importer: the bar moves so often.
const CHUNK: usize = 20_000;
/// Follows between two looks whether their completions keep up.
const FOLLOWS_AT_ONCE: usize = 4_000;
/// Old posts for each account, on average, and how far they go back.
const OLD_POSTS: usize = 1;
const HISTORY_MS: u64 = 30 * 24 * 60 * 60 * 1_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// All posts by author, ascending: what a plain pull would read.
#[derive(Debug)]
pub(super) struct Books(Vec<Vec<PostId>>);

impl Books {
    fn new(accounts: usize) -> Self {
        Self(vec![Vec::new(); accounts])
    }

    pub(super) fn add(&mut self, author: usize, id: PostId) {
        self.0[author].push(id);
    }

    pub(super) fn of(&self, author: usize) -> &[PostId] {
        &self.0[author]
    }
}

/// Counts of what was imported, and how long it took.
#[derive(Debug, Default)]
pub(super) struct Imported {
    pub(super) edges: usize,
    pub(super) posts: usize,
    pub(super) took: Duration,
}

/// Counts of what was brought in, and how long each part took.
#[derive(Debug, Default)]
pub(super) struct LoadCounts {
    pub(super) imported: Imported,
    /// Follows of those who are pulled.
    pub(super) followed: usize,
    pub(super) following_took: Duration,
    pub(super) warmed: usize,
    pub(super) warming_took: Duration,
}

/// Imports everything but the follows of those who are pulled, which are made like new ones.
pub(super) async fn import(options: &StoreOptions, graph: &DemoGraph) -> anyhow::Result<(Books, Imported)> {
    let started = Instant::now();
    let mut importer = Engine::builder().store(options.clone()).import().await?;
    decide(options).await?;
    let ids = (0..graph.len()).map(|n| Ok((DemoGraph::id(n)?, DemoGraph::mode(n))));
    let account = |(id, mode)| NewAccount { id: Some(id), mode, ..NewAccount::default() };
    let accounts = ids.map(|of| of.map(account)).collect::<tideline::Result<Vec<_>>>()?;
    importer.accounts(&accounts).await?;
    let since_ms = now_ms() - 2 * HISTORY_MS;
    let edge = |(reader, author): (usize, usize)| {
        Ok(ImportedEdge { reader: DemoGraph::id(reader)?, author: DemoGraph::id(author)?, since_ms })
    };
    let edges = graph.follows(false).map(edge).collect::<tideline::Result<Vec<_>>>()?;
    let bar = bar(edges.len(), "follows imported");
    for chunk in edges.chunks(CHUNK) {
        importer.edges(chunk).await?;
        bar.inc(chunk.len() as u64);
    }
    bar.finish_and_clear();
    let (books, posts) = import_posts(&mut importer, graph).await?;
    importer.finish().await?;
    Ok((books, Imported { edges: edges.len(), posts, took: started.elapsed() }))
}

/// A tenant that an import begins has decided nothing: whoever runs it does.
async fn decide(options: &StoreOptions) -> anyhow::Result<()> {
    let operator = Engine::builder().store(options.clone()).observe().await?;
    let none = operator.decision();
    operator.decide(&none.change().set_all(none.settings)?).await?;
    Ok(())
}

async fn import_posts(importer: &mut Importer, graph: &DemoGraph) -> anyhow::Result<(Books, usize)> {
    let mut random = StdRng::seed_from_u64(graph.edges() as u64);
    let count = graph.len() * OLD_POSTS;
    let (step, first) = (HISTORY_MS / count as u64, now_ms() - HISTORY_MS);
    let authors: Vec<usize> = (0..count).map(|_| graph.author(&mut random)).collect();
    let posts = authors.iter().zip(0..).map(|(author, n)| {
        let draft = Draft::text(format!("post {n} of the old site"));
        Ok(ImportedPost { author: DemoGraph::id(*author)?, created_ms: first + n * step, draft })
    });
    let posts = posts.collect::<tideline::Result<Vec<_>>>()?;
    let mut books = Books::new(graph.len());
    let bar = bar(count, "old posts imported");
    for (posts, authors) in posts.chunks(CHUNK).zip(authors.chunks(CHUNK)) {
        let ids = importer.posts(posts).await?;
        authors.iter().zip(ids).for_each(|(author, id)| books.add(*author, id));
        bar.inc(posts.len() as u64);
    }
    bar.finish_and_clear();
    Ok((books, count))
}

/// Lets accounts follow those who are pulled, and fills the homes of the active ones.
pub(super) async fn follow_and_warm(engine: &Engine, graph: &DemoGraph) -> anyhow::Result<LoadCounts> {
    // One by one, as on any day: each is a change of its own, with a pull mark and a look at whether that can go.
    let follows: Vec<(usize, usize)> = graph.follows(true).collect();
    let started = Instant::now();
    let shown = bar(follows.len(), "follows of pulled accounts");
    for chunk in follows.chunks(FOLLOWS_AT_ONCE) {
        follow(engine, chunk, &shown).await?;
        engine.drained(PATIENCE).await?;
    }
    shown.finish_and_clear();
    let following_took = started.elapsed();
    let started = Instant::now();
    let shown = bar(graph.active().len(), "homes filled");
    let warm = |reader: usize| {
        let engine = engine.clone();
        tokio::spawn(async move { engine.warm(DemoGraph::id(reader)?).await })
    };
    let mut filled = stream::iter(graph.active()).map(|reader| warm(*reader)).buffer_unordered(AT_ONCE);
    while let Some(done) = filled.try_next().await? {
        done?;
        shown.inc(1);
    }
    shown.finish_and_clear();
    Ok(LoadCounts {
        followed: follows.len(),
        following_took,
        warmed: graph.active().len(),
        warming_took: started.elapsed(),
        ..LoadCounts::default()
    })
}

async fn follow(engine: &Engine, follows: &[(usize, usize)], bar: &ProgressBar) -> anyhow::Result<()> {
    let follow = |(reader, author): (usize, usize)| {
        let engine = engine.clone();
        tokio::spawn(async move { engine.follow(DemoGraph::id(reader)?, DemoGraph::id(author)?).await })
    };
    let mut done = stream::iter(follows).map(|pair| follow(*pair)).buffer_unordered(AT_ONCE);
    while let Some(followed) = done.try_next().await? {
        followed?;
        bar.inc(1);
    }
    Ok(())
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
