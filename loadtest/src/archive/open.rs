//! Posts of many authors in an open loop, while an instance has leave what is due: does it keep up?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::Serialize;
use tideline::post::Draft;
use tideline::{Engine, ErrorKind};

use super::args::ArchiveArgs;
use super::backend::{Backend, CpuEach};
use super::world::{World, keys_in_all, text};
use crate::arrivals::Arrivals;
use crate::bench::Bench;
use crate::drive::{self, Perform, Punctuality};
use crate::members::account_id;
use crate::session::kind;
use crate::stats::count;
use crate::tally::{Summary, Tally};

/// An author is noted, to be looked at, at each multiple of so many posts (of those that stay, if these are fewer),
/// once they are so many more than stay.
const NOTED_EVERY: u32 = 64;
const AT_ONCE: u32 = 10_000;
const WARM_AT_ONCE: usize = 32;
const REST: Duration = Duration::from_millis(20);
const POST_MAX: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_secs(1);
const STOPPING_MAX: Duration = Duration::from_secs(60);
/// Within which all leaves that should, once nobody posts: a few times as long as any archive takes to settle.
const REST_MAX: Duration = Duration::from_secs(300);
/// An archive keeps up if what waits doesn't grow by more than this share of what is published.
const GROWTH_MAX: f64 = 0.05;

/// What was in memory at some moment.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Moment {
    pub(super) second: f64,
    /// Posts beyond those that stay. Of each author half as many always wait as it is noted for.
    pub(super) waiting: u64,
}

/// What was seen of the open loop.
#[derive(Debug, Clone, Serialize)]
pub(super) struct OpenLoop {
    pub(super) authors: u32,
    pub(super) hot_posts: u32,
    /// Posts that were there at the beginning.
    pub(super) loaded: u64,
    pub(super) posts: Summary,
    /// Posts that were sent more than 10 ms after they were due: this program was behind.
    pub(super) late: u64,
    pub(super) seconds: f64,
    pub(super) published_per_second: f64,
    /// Posts that left memory in a second of the loop.
    pub(super) left_per_second: f64,
    pub(super) moments: Vec<Moment>,
    /// The mean of the first, second and last third of the loop. Not the least nor the most: between two rounds it
    /// rises by all that is published, and a round lasts as long as the archive takes to settle.
    pub(super) waiting: [u64; 3],
    /// By how much more wait after a second, from the second third to the last.
    pub(super) growth_per_second: f64,
    pub(super) keeps_up: bool,
    /// Of all that was done, for each post that was published; those that left included.
    #[serde(flatten)]
    pub(super) cpu: CpuEach,
    /// How long until nothing was due any more once nobody posted, and how many posts left meanwhile.
    pub(super) rest_seconds: f64,
    pub(super) rest: u64,
    /// Posts counted at last.
    pub(super) archived: u64,
    pub(super) in_memory: u64,
}

impl OpenLoop {
    /// Whether every post was accepted, and each is in one place.
    pub(super) fn is_right(&self) -> bool {
        let counts = &self.posts.counts;
        counts.failed() + counts.dropped == 0
            && self.archived + self.in_memory == self.loaded + counts.succeeded
    }
}

/// Authors who publish.
#[derive(Debug)]
struct Authors {
    engine: Engine,
    text: String,
    posts: Tally,
}

impl Perform<u32> for Authors {
    async fn perform(&self, author: u32, due: Instant) {
        let publish =
            async { self.engine.publish(account_id(author.into())?, &Draft::text(self.text.as_str())).await };
        let error = match tokio::time::timeout(POST_MAX, publish).await {
            Ok(Ok(_)) => None,
            Ok(Err(e)) => Some(kind(&e)),
            Err(_) => Some("given_up".to_owned()),
        };
        self.posts.ended(due.elapsed(), error);
    }

    fn dropped(&self, _: &u32) {
        self.posts.dropped();
    }
}

/// With how many posts an author is noted of whom so many stay.
pub(super) fn noted_at(hot_posts: u32) -> u32 {
    let every = hot_posts.min(NOTED_EVERY);
    // Its outbox begins with a floor, which counts.
    ((hot_posts + every) / every + 1) * every - 1
}

/// Fills, posts, looks, and counts.
pub(super) async fn run(
    args: &ArchiveArgs,
    bench: &Bench,
    backend: &Backend,
    seed: u64,
) -> anyhow::Result<OpenLoop> {
    bench.empty().await?;
    let mut world = World::new(bench, "open").await?;
    world.begin_archive(backend.archive("open", args.settles_within()).await?, args.open_hot_posts).await?;
    let noted_at = noted_at(args.open_hot_posts);
    // As far as each has come at some moment of a service that has long been running: none is noted yet. An import
    // would note whoever has more than stay.
    let beyond = |of: u32| of % (noted_at - args.open_hot_posts);
    let more = (0..args.open_authors).map(beyond);
    let stays = args.open_authors * args.open_hot_posts;
    eprintln!("Loading {stays} posts of {} authors.", args.open_authors);
    world.fill(&vec![args.open_hot_posts; args.open_authors as usize], &[]).await?;
    let loaded = u64::from(stays) + more.clone().map(u64::from).sum::<u64>();
    eprintln!("Publishing {} more.", loaded - u64::from(stays));
    let engine = world.instance().await?;
    let published = warm_up(&engine, more).await;
    if let Err(e) = published {
        engine.shutdown(STOPPING_MAX).await?;
        return Err(e.into());
    }
    let authors = Arc::new(Authors { engine: engine.clone(), text: text(), posts: Tally::new() });
    let outcome = publish(args, bench, backend, (&world, &authors, loaded, seed)).await;
    // What was given up would write to servers that are somebody else's by then.
    let stopped = engine.shutdown(STOPPING_MAX).await;
    let outcome = outcome?;
    stopped?;
    Ok(outcome)
}

/// Has each author publish so many posts, as fast as that goes.
async fn warm_up(engine: &Engine, posts: impl Iterator<Item = u32>) -> tideline::Result<()> {
    let publish = async |(author, posts): (u32, u32)| {
        let (author, mut done) = (account_id(author.into())?, 0);
        while done < posts {
            match engine.publish(author, &Draft::text(text())).await {
                Ok(_) => done += 1,
                // Publishing is faster than what each post has left to do.
                Err(e) if e.kind() == ErrorKind::Overloaded => tokio::time::sleep(REST).await,
                Err(e) => return Err(e),
            }
        }
        tideline::Result::Ok(())
    };
    let authors = stream::iter((0..).zip(posts)).map(publish);
    authors.buffer_unordered(WARM_AT_ONCE).try_collect().await
}

async fn publish(
    args: &ArchiveArgs,
    bench: &Bench,
    backend: &Backend,
    (world, authors, loaded, seed): (&World<'_>, &Arc<Authors>, u64, u64),
) -> anyhow::Result<OpenLoop> {
    eprintln!("{} posts a second for {} s.", args.rate, args.seconds);
    let stays = u64::from(args.open_authors) * u64::from(args.open_hot_posts);
    // Whatever else there is stays about the same: journals, records, outboxes.
    let others = keys_in_all(bench).await?.saturating_sub(world.posts_in_memory().await?) + stays;
    let (before, began) = (backend.used(bench).await?, Instant::now());
    let (driven, moments) = drive(args, bench, authors, (others, seed)).await?;
    let seconds = began.elapsed().as_secs_f64();
    let used = backend.used(bench).await?;
    let posts = authors.posts.summary();
    let waits = keys_in_all(bench).await?.saturating_sub(others);
    let succeeded = posts.counts.succeeded;
    let rest = leave_all(authors, world, loaded + succeeded).await?;
    let (first, published) = (moments.first().map_or(0, |m| m.waiting), count(succeeded) / seconds);
    let left = (first + succeeded).saturating_sub(waits);
    let waiting = thirds(&moments, seconds);
    let growth_per_second = (count(waiting[2]) - count(waiting[1])) / (seconds / 3.0);
    Ok(OpenLoop {
        authors: args.open_authors,
        hot_posts: args.open_hot_posts,
        loaded,
        late: driven.late,
        seconds,
        published_per_second: published,
        left_per_second: count(left) / seconds,
        waiting,
        growth_per_second,
        keeps_up: growth_per_second <= GROWTH_MAX * published,
        cpu: used.each_since(&before, succeeded),
        rest_seconds: rest.seconds,
        rest: rest.left,
        archived: rest.archived,
        in_memory: rest.in_memory,
        moments,
        posts,
    })
}

/// Publishes, and looks each second how much more there is than these keys.
async fn drive(
    args: &ArchiveArgs,
    bench: &Bench,
    authors: &Arc<Authors>,
    (others, seed): (u64, u64),
) -> anyhow::Result<(Punctuality, Vec<Moment>)> {
    let length = Duration::from_secs(args.seconds.into());
    let (mut random, all) = (StdRng::seed_from_u64(seed), args.open_authors);
    let due = Arrivals::new(args.rate, args.seconds, seed ^ 1);
    let planned = due.map(move |at| (at, random.random_range(0..all)));
    let (began, is_over) = (Instant::now(), AtomicBool::new(false));
    let driven = async {
        let driven = drive::open(authors, planned, length, AT_ONCE, POST_MAX).await;
        is_over.store(true, Ordering::Relaxed);
        driven
    };
    let looks = async {
        let mut moments = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            let waiting = keys_in_all(bench).await?.saturating_sub(others);
            moments.push(Moment { second: began.elapsed().as_secs_f64(), waiting });
            tokio::time::sleep(LOOK).await;
        }
        anyhow::Ok(moments)
    };
    let (driven, moments) = tokio::join!(driven, looks);
    Ok((driven?, moments?))
}

/// What became of posts once nobody posted any more.
struct Rest {
    left: u64,
    archived: u64,
    in_memory: u64,
    seconds: f64,
}

/// Has all leave that is due. The engine's own round is at some of it, too: what that has stored is in both places
/// until the archive has settled.
async fn leave_all(authors: &Authors, world: &World<'_>, posts: u64) -> anyhow::Result<Rest> {
    let (began, mut all) = (Instant::now(), 0);
    loop {
        let left = authors.engine.archive_due().await?.left;
        all += left;
        if left > 0 {
            continue;
        }
        // To count takes a while, and is no part of it.
        let rested = began.elapsed();
        let (archived, in_memory) = (world.archived(&authors.engine).await?, world.posts_in_memory().await?);
        if archived + in_memory == posts || rested > REST_MAX {
            return Ok(Rest { left: all, archived, in_memory, seconds: rested.as_secs_f64() });
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What waits in each third of the time, on average; 0 where nobody has looked.
fn thirds(moments: &[Moment], seconds: f64) -> [u64; 3] {
    [0.0, 1.0, 2.0].map(|third| {
        let part = seconds / 3.0 * third..seconds / 3.0 * (third + 1.0);
        let within = moments.iter().filter(|moment| part.contains(&moment.second));
        let (sum, looks) = within.fold((0, 0), |(sum, looks), moment| (sum + moment.waiting, looks + 1));
        sum / looks.max(1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_author_is_noted_at_a_multiple() {
        assert_eq!([1, 16, 64, 200].map(noted_at), [2, 47, 191, 319]);
    }

    #[test]
    fn each_third_of_the_time_has_its_mean() {
        let moments: Vec<Moment> = [7, 5, 6, 8, 9, 4]
            .into_iter()
            .zip(0_u32..)
            .map(|(waiting, at)| Moment { second: at.into(), waiting })
            .collect();
        assert_eq!(thirds(&moments, 6.0), [6, 7, 6]);
        assert_eq!(thirds(&moments[..2], 6.0), [6, 0, 0]);
    }
}
