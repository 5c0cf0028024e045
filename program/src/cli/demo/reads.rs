//! Reading homes: newest pages by many at once, and whole timelines to their end.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tideline::{Engine, PAGE_LEN_MAX, PostId, Query};

use super::figures::Times;
use super::graph::DemoGraph;
use crate::cli::progress::bar;

/// Readers at once.
pub(super) const AT_ONCE: usize = 64;
pub(super) const PAGE: usize = 20;
/// One read of so many is of an account that was away: it has no home yet.
const BACK_EVERY: usize = 50;

/// The outcome of reading.
#[derive(Debug)]
pub(super) struct Read {
    /// Pages of those who have a home.
    pub(super) active: Times,
    /// First pages of those who come back.
    pub(super) back: Times,
    /// Posts on all pages.
    pub(super) posts: u64,
    pub(super) took: Duration,
}

/// A timeline walked to its end.
#[derive(Debug)]
pub(super) struct WalkedTimeline {
    pub(super) ids: Vec<PostId>,
    pub(super) pages: usize,
    pub(super) took: Duration,
}

pub(super) async fn read(engine: &Engine, graph: &DemoGraph, reads: u32, seed: u64) -> anyhow::Result<Read> {
    let mut random = StdRng::seed_from_u64(seed);
    let (active, dormant) = (graph.active(), graph.dormant());
    let pick = |n: u32| match n as usize / BACK_EVERY {
        // Each of them once: from then on it has a home.
        back if (n as usize).is_multiple_of(BACK_EVERY) && back < dormant.len() => (dormant[back], true),
        _ => (active[random.random_range(0..active.len())], false),
    };
    let readers: Vec<(usize, bool)> = (0..reads).map(pick).collect();
    let bar = bar(readers.len(), "home pages read");
    let started = Instant::now();
    let page = |(reader, is_back): (usize, bool)| tokio::spawn(page(engine.clone(), reader, is_back));
    let mut under_way = stream::iter(readers).map(page).buffer_unordered(AT_ONCE);
    let (mut times, mut posts) = ([Vec::new(), Vec::new()], 0);
    while let Some(done) = under_way.try_next().await? {
        let (is_back, time, on_page) = done?;
        times[usize::from(is_back)].push(time);
        posts += on_page;
        bar.inc(1);
    }
    bar.finish_and_clear();
    let [active, back] = times.map(Times::new);
    Ok(Read { active, back, posts, took: started.elapsed() })
}

/// Reads a newest page; tells how long that took, and how many posts are on it.
async fn page(engine: Engine, reader: usize, is_back: bool) -> tideline::Result<(bool, Duration, u64)> {
    let started = Instant::now();
    let page = engine.as_reader(DemoGraph::id(reader)?).read(&Query::home().limit(PAGE).hydrated()).await?;
    Ok((is_back, started.elapsed(), page.posts.len() as u64))
}

/// Reads somebody's home to the very end.
pub(super) async fn walk(engine: &Engine, reader: usize) -> tideline::Result<WalkedTimeline> {
    let (started, reader) = (Instant::now(), DemoGraph::id(reader)?);
    let mut walk = WalkedTimeline { ids: Vec::new(), pages: 0, took: Duration::ZERO };
    let mut query = Query::home().limit(PAGE_LEN_MAX);
    loop {
        let page = engine.as_reader(reader).read(&query).await?;
        walk.pages += 1;
        walk.ids.extend(page.ids());
        let Some(cursor) = page.next else { break };
        query = query.after(cursor);
    }
    walk.took = started.elapsed();
    Ok(walk)
}
