//! The open loop: pages that are asked for when they are due, and how long each takes from then on; in every second
//! turn while passwords are hashed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::RngExt as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde::Serialize;
use tokio::task::JoinSet;

use super::args::ServeArgs;
use super::pages::{PageRequests, SitePages};
use crate::arrivals::Arrivals;
use crate::drive;
use crate::http::Clients;
use crate::judgement::Judgement;
use crate::progress;
use crate::site::{Application, refused};
use crate::stats::{Estimate, count};
use crate::tally::Summary;

/// Requests under way at once: one more is dropped, which is told.
const AT_ONCE: u32 = 10_000;
/// Longest time of a page.
const PAGE_MAX: Duration = Duration::from_secs(45);
/// People who sign up or log in at once.
const HASHED_AT_ONCE: usize = 4;
/// Hashing passwords all the time may make the 99th percentile so many times as long.
pub(super) const SLOWER_MAX: f64 = 2.0;

/// Latencies of one kind of turns.
#[derive(Debug, Clone, Serialize)]
pub(super) struct OpenTurns {
    pub(super) turns: Vec<Summary>,
    /// Over the turns, in microseconds.
    pub(super) p50_us: Option<Estimate>,
    pub(super) p99_us: Option<Estimate>,
    pub(super) p999_us: Option<Estimate>,
    /// Requests that left more than 10 ms after they were due: this program was behind.
    pub(super) late: u64,
    /// Sign-ups and log-ins a second meanwhile.
    pub(super) hashed_per_second: f64,
}

/// What the open loop has shown.
#[derive(Debug, Clone, Serialize)]
pub(super) struct OpenPages {
    /// Pages a second that were due.
    pub(super) rate: u32,
    pub(super) plain: OpenTurns,
    /// While passwords are hashed.
    pub(super) passwords: Option<OpenTurns>,
    /// By how much that makes the 99th percentile longer, turn by turn.
    pub(super) p99_ratio: Option<Estimate>,
    pub(super) judgement: Option<Judgement>,
}

impl OpenTurns {
    fn new(turns: Vec<Summary>, late: u64, hashed: u64, seconds: u32) -> Self {
        let over = |of: fn(&Summary) -> u64| {
            Estimate::of(&turns.iter().map(|turn| count(of(turn))).collect::<Vec<_>>())
        };
        let (p50_us, p99_us, p999_us) =
            (over(|turn| turn.p50_us), over(|turn| turn.p99_us), over(|turn| turn.p999_us));
        let seconds = f64::from(seconds) * count(turns.len() as u64);
        Self { p50_us, p99_us, p999_us, late, hashed_per_second: count(hashed) / seconds.max(1.0), turns }
    }
}

/// People who sign up and log in, one after the other, until this is dropped.
struct Hashing {
    _people: JoinSet<()>,
    hashed: Arc<AtomicU64>,
}

impl Hashing {
    fn begin(clients: &Arc<Clients>, application: &Application) -> Self {
        let (mut people, hashed) = (JoinSet::new(), Arc::new(AtomicU64::new(0)));
        for _ in 0..HASHED_AT_ONCE {
            let (clients, application, hashed) = (clients.clone(), application.clone(), hashed.clone());
            people.spawn(async move {
                loop {
                    let login = format!("p{:016x}", rand::random::<u64>());
                    for ask in [application.sign_up(&login), application.log_in(&login)] {
                        match clients.ask(&ask).await {
                            Ok(answer) if answer.is_success() => {
                                hashed.fetch_add(1, Ordering::Relaxed);
                            }
                            Ok(answer) => eprintln!("{:#}", refused("a password", &answer)),
                            Err(error) => eprintln!("a password: {error}"),
                        }
                    }
                }
            });
        }
        Self { _people: people, hashed }
    }
}

/// What the open loop asks.
pub(super) struct OpenLoop<'a> {
    pub(super) args: &'a ServeArgs,
    pub(super) clients: Arc<Clients>,
    pub(super) requests: Arc<PageRequests>,
    pub(super) readers: u32,
}

impl OpenLoop<'_> {
    /// All turns, of both kinds in turn.
    pub(super) async fn run(&self, rate: u32, random: &mut StdRng) -> anyhow::Result<OpenPages> {
        let people = Arc::new(Clients::new(self.clients.address(), HASHED_AT_ONCE));
        let application = match self.args.passwords {
            true => Some(Application::register(&people).await?),
            false => None,
        };
        let kinds: &[bool] = if application.is_some() { &[false, true] } else { &[false] };
        let mut turns = [Vec::new(), Vec::new()];
        let (mut late, mut hashed) = ([0; 2], 0);
        let all = u64::from(self.args.open_rounds) * kinds.len() as u64;
        let bar = progress::bar(all, "open loop".to_owned());
        for round in 0..self.args.open_rounds {
            for nth in 0..kinds.len() {
                let hashes = kinds[if round % 2 == 1 { kinds.len() - 1 - nth } else { nth }];
                let hashing = application.as_ref().filter(|_| hashes);
                let hashing = hashing.map(|application| Hashing::begin(&people, application));
                let (summary, behind) = self.turn(rate, random.random()).await?;
                hashed += hashing.map_or(0, |hashing| hashing.hashed.load(Ordering::Relaxed));
                turns[usize::from(hashes)].push(summary);
                late[usize::from(hashes)] += behind;
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        let [plain, with] = turns;
        let p99 = |of: &[Summary]| of.iter().map(|turn| count(turn.p99_us)).collect::<Vec<_>>();
        let ratios: Vec<f64> =
            p99(&with).iter().zip(p99(&plain)).map(|(with, plain)| with / plain.max(1.0)).collect();
        let p99_ratio = Estimate::of(&ratios);
        let seconds = self.args.open_seconds;
        Ok(OpenPages {
            rate,
            plain: OpenTurns::new(plain, late[0], 0, seconds),
            passwords: application.map(|_| OpenTurns::new(with, late[1], hashed, seconds)),
            p99_ratio,
            judgement: p99_ratio.map(|ratio| Judgement::of(&ratio, SLOWER_MAX, ratios.len())),
        })
    }

    async fn turn(&self, rate: u32, seed: u64) -> anyhow::Result<(Summary, u64)> {
        let pages = Arc::new(SitePages::new(self.clients.clone(), self.requests.clone()));
        let (readers, mut random) = (self.readers, StdRng::seed_from_u64(seed));
        let due = Arrivals::new(rate, self.args.open_seconds, seed);
        let due = due.map(move |at| (at, random.random_range(0..readers)));
        let length = Duration::from_secs(self.args.open_seconds.into());
        let punctuality = drive::open(&pages, due, length, AT_ONCE, PAGE_MAX).await?;
        Ok((pages.tally.summary(), punctuality.late + punctuality.overdue))
    }
}
