//! Pages that come to the archive; and pages that don't, with an archive begun and without one.

use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::Serialize;
use tideline::{Engine, PostId, Query, Range};

use super::args::ArchiveArgs;
use super::backend::{Backend, CpuEach};
use super::world::World;
use crate::bench::Bench;
use crate::judgement::Judgement;
use crate::members::account_id;
use crate::stats::Estimate;
use crate::systems::PAGE;
use crate::tally::Tally;

/// Posts of each author, and of these in memory: more than a page, so that the newest one doesn't cross.
const POSTS: u32 = 60;
const HOT: u32 = 30;
/// The first of them.
const BORDER: u32 = POSTS - HOT;
/// How long before the border ends what is in memory, and no home holds any more.
const DEEP: u32 = 2;
/// Posts of a page.
const SHOWN: u32 = 20;
const _: () = assert!(SHOWN as usize == PAGE);
/// Readers of each kind of home.
const READERS: u32 = 20;
/// Posts in memory on a page that crosses.
const ABOVE: u32 = 10;
/// Pages at the same time where tenants take turns.
const AT_ONCE: usize = 64;
/// Rounds that are not measured.
const WARM_UP: u32 = 2;
const STOPPING_MAX: Duration = Duration::from_secs(30);
/// So much dearer a page may be that doesn't come to the archive.
pub(super) const DEARER_MAX: f64 = 1.03;

/// One kind of page, measured one after the other.
#[derive(Debug, Clone, Serialize)]
pub(super) struct PageCost {
    pub(super) page: String,
    pub(super) p50_us: u64,
    pub(super) p99_us: u64,
    /// Medians over the rounds.
    pub(super) redis_us: Option<Estimate>,
    pub(super) archive_us: Option<Estimate>,
    pub(super) client_us: Option<Estimate>,
}

/// A page that doesn't come to the archive, in what it costs without one.
#[derive(Debug, Clone, Serialize)]
pub(super) struct PageRatio {
    pub(super) page: String,
    /// Redis and this process together: with an archive, and without.
    pub(super) with_us: Estimate,
    pub(super) without_us: Estimate,
    pub(super) ratio: Estimate,
    pub(super) judgement: Judgement,
    pub(super) rounds_ratio: Vec<f64>,
}

/// What was seen of pages.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Pages {
    pub(super) costs: Vec<PageCost>,
    pub(super) ratios: Vec<PageRatio>,
    /// Pages that didn't show what they had to: as many posts, and of each side of the border as many, as they are for.
    pub(super) wrong: u64,
}

/// A page to be read: by whom, and how many of its posts lie in memory.
struct Ask {
    reader: u32,
    query: Query,
    above: u32,
}

/// The authors, who follows which of them, and their posts' ids.
struct Network<'a> {
    args: &'a ArchiveArgs,
    follows: Vec<(u32, Vec<u32>)>,
    ids: Vec<PostId>,
}

impl<'a> Network<'a> {
    fn new(args: &'a ArchiveArgs) -> Self {
        let mut follows = Vec::new();
        for (kind, followees) in (0..).zip(&args.followees) {
            for nth in 0..READERS {
                let reader = args.page_authors + kind * READERS + nth;
                // Spread over all authors, each reader's others than the next one's.
                let step = args.page_authors / followees;
                let followed = (0..*followees).map(|of| of * step + nth % step);
                follows.push((reader, followed.collect()));
            }
        }
        Self { args, follows, ids: Vec::new() }
    }

    /// The author's `nth` post, the oldest first.
    fn post(&self, author: u32, nth: u32) -> PostId {
        self.ids[(author * POSTS + nth) as usize]
    }

    /// The page of a profile that ends above the `nth` post of its author.
    fn profile(&self, author: u32, nth: Option<u32>) -> Ask {
        let max_id = nth.map(|nth| self.post(author, nth));
        let query = Query::profile(account(author)).range(Range { max_id, ..Range::default() });
        let above = nth.map_or(SHOWN, |nth| nth.saturating_sub(BORDER).min(SHOWN));
        Ask { reader: self.follows[0].0, query: query.limit(PAGE).hydrated(), above }
    }

    /// The page of a home below the post of that time by the followee with that number; nothing: the newest.
    fn home(&self, (reader, followed): &(u32, Vec<u32>), place: Option<(u32, u32)>) -> Ask {
        let max_id = place.map(|(time, nth)| self.post(followed[nth as usize], time));
        let query = Query::home().range(Range { max_id, ..Range::default() });
        let above = match place {
            Some((time, nth)) if time == BORDER => nth,
            _ => SHOWN,
        };
        Ask { reader: *reader, query: query.limit(PAGE).hydrated(), above }
    }

    /// Homes of readers who follow so many.
    fn homes(&self, followees: u32, place: Option<(u32, u32)>) -> Vec<Ask> {
        let of = self.follows.iter().filter(|(_, followed)| followed.len() == followees as usize);
        of.map(|follows| self.home(follows, place)).collect()
    }

    fn profiles(&self, nth: Option<u32>) -> Vec<Ask> {
        (0..self.args.page_authors.min(200)).map(|author| self.profile(author, nth)).collect()
    }
}

fn account(number: u32) -> tideline::AccountId {
    account_id(number.into()).expect("numbers of accounts are small")
}

/// Measures all kinds of pages.
pub(super) async fn run(args: &ArchiveArgs, bench: &Bench, backend: &Backend) -> anyhow::Result<Pages> {
    bench.empty().await?;
    let mut network = Network::new(args);
    eprintln!("Loading {POSTS} posts of each of {} authors, twice.", args.page_authors);
    let posts = vec![POSTS; args.page_authors as usize];
    let without = World::new(bench, "without").await?;
    without.fill(&posts, &network.follows).await?;
    let mut with = World::new(bench, "with").await?;
    network.ids = with.fill(&posts, &network.follows).await?;
    with.begin_archive(backend.archive("pages", args.settles_within()).await?, HOT).await?;
    with.mover().await?.archive_due().await?;
    let engines = [with.instance().await?, without.instance().await?];
    let pages = measure(args, (bench, backend), &network, &engines).await;
    for engine in engines {
        engine.shutdown(STOPPING_MAX).await?;
    }
    pages
}

async fn measure(
    args: &ArchiveArgs,
    servers: (&Bench, &Backend),
    network: &Network<'_>,
    engines: &[Engine; 2],
) -> anyhow::Result<Pages> {
    let (mut costs, mut ratios, mut wrong) = (Vec::new(), Vec::new(), 0);
    // How many pages of a turn: those that don't come to the archive.
    let (many, few) = (Some(args.pages * 10), Some(args.pages));
    let mut kinds = vec![
        ("profile, newest".to_owned(), network.profiles(None), many),
        ("profile, crosses".to_owned(), network.profiles(Some(BORDER + ABOVE)), None),
        ("profile, below".to_owned(), network.profiles(Some(BORDER)), None),
    ];
    for followees in &args.followees {
        let mut add = |what: &str, place: Option<(u32, u32)>, turn: Option<u32>| {
            let name = format!("home of {followees}, {what}");
            kinds.push((name, network.homes(*followees, place), turn));
        };
        add("newest", None, many);
        // A page takes tens of milliseconds where many are followed.
        add("deep", Some((BORDER + DEEP, ABOVE)), few.filter(|_| Some(followees) == args.followees.first()));
        add("crosses", Some((BORDER, ABOVE)), None);
        add("below", Some((BORDER, 0)), None);
    }
    for (page, asks, turn) in kinds {
        eprintln!("Pages: {page}.");
        let (cost, wrong_ones) = one_kind(args, servers, &engines[0], (page.clone(), &asks), network).await?;
        costs.push(cost);
        wrong += wrong_ones;
        if let Some(turn) = turn
            && let Some(ratio) = in_turns((args.rounds, turn), servers, engines, (page, &asks)).await?
        {
            ratios.push(ratio);
        }
    }
    Ok(Pages { costs, ratios, wrong })
}

/// Reads pages one after the other; how many were wrong.
async fn one_kind(
    args: &ArchiveArgs,
    (bench, backend): (&Bench, &Backend),
    engine: &Engine,
    (page, asks): (String, &[Ask]),
    network: &Network<'_>,
) -> anyhow::Result<(PageCost, u64)> {
    let (mut each, mut wrong, mut latency) = (Vec::<CpuEach>::new(), 0, Tally::new());
    // All of them are right, not only those that there is time for.
    for ask in asks {
        let page = engine.as_reader(account(ask.reader)).read(&ask.query).await?;
        let border = network.ids[BORDER as usize];
        let above = page.ids().iter().filter(|id| id.unix_ms() >= border.unix_ms()).count();
        wrong += u64::from((page.ids().len(), above) != (PAGE, ask.above as usize) || page.lacks_archive);
    }
    let mut asked = asks.iter().cycle();
    for round in 0..WARM_UP + args.rounds {
        if round == WARM_UP {
            (each, latency) = (Vec::new(), Tally::new());
        }
        let before = backend.used(bench).await?;
        for ask in asked.by_ref().take(args.pages as usize) {
            let began = Instant::now();
            engine.as_reader(account(ask.reader)).read(&ask.query).await?;
            latency.ended(began.elapsed(), None);
        }
        each.push(backend.used(bench).await?.each_since(&before, args.pages.into()));
    }
    let summary = latency.summary();
    let median =
        |of: fn(&CpuEach) -> Option<f64>| Estimate::of(&each.iter().map(of).collect::<Option<Vec<f64>>>()?);
    let cost = PageCost {
        page,
        p50_us: summary.p50_us,
        p99_us: summary.p99_us,
        redis_us: median(|each| each.redis_us),
        archive_us: median(|each| each.archive_us),
        client_us: median(|each| each.client_us),
    };
    Ok((cost, wrong))
}

/// Has both tenants take turns, forwards and backwards; nothing where CPU time can't be read.
async fn in_turns(
    (rounds, pages): (u32, u32),
    (bench, backend): (&Bench, &Backend),
    engines: &[Engine; 2],
    (page, asks): (String, &[Ask]),
) -> anyhow::Result<Option<PageRatio>> {
    let mut costs = [Vec::new(), Vec::new()];
    for round in 0..WARM_UP + rounds {
        for turn in 0..2 {
            let which = (round as usize + turn) % 2;
            let before = backend.used(bench).await?;
            stream::iter(asks.iter().cycle().take(pages as usize))
                .map(
                    |ask| async move { engines[which].as_reader(account(ask.reader)).read(&ask.query).await },
                )
                .buffer_unordered(AT_ONCE)
                .try_for_each(|_| async { Ok(()) })
                .await?;
            let each = backend.used(bench).await?.each_since(&before, pages.into());
            let Some((redis, client)) = each.redis_us.zip(each.client_us) else { return Ok(None) };
            if round >= WARM_UP {
                costs[which].push(redis + client);
            }
        }
    }
    let [with, without] = costs;
    let rounds_ratio: Vec<f64> = with.iter().zip(&without).map(|(with, without)| with / without).collect();
    let all = (Estimate::of(&with), Estimate::of(&without), Estimate::of(&rounds_ratio));
    let (Some(with_us), Some(without_us), Some(ratio)) = all else { return Ok(None) };
    let judgement = Judgement::of(&ratio, DEARER_MAX, rounds_ratio.len());
    Ok(Some(PageRatio { page, with_us, without_us, ratio, judgement, rounds_ratio }))
}
