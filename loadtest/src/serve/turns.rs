//! Turns: what one kind of page takes of CPU, while others write.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::RngExt as _;
use rand::rngs::StdRng;
use serde::Serialize;

use super::args::ServeArgs;
use super::bare::BareServer;
use super::pages::{BarePages, EnginePages, SitePages};
use crate::bench::Bench;
use crate::cpu;
use crate::drive::{self, Perform};
use crate::site::SiteServer;
use crate::stats::count;
use crate::tally::Tally;

/// Operations of a turn are planned for a machine that is far too fast.
const PLANNED_PER_SECOND: u64 = 100_000;

/// What all processes have used until now, as far as it can be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct CpuTimes {
    pub(super) site: Option<Duration>,
    pub(super) redis: Option<Duration>,
    pub(super) client: Option<Duration>,
    bare: Option<Duration>,
}

/// Seconds of CPU that something took, and how many seconds it took them.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct CpuTurn {
    pub(super) seconds: f64,
    /// Pages that were read, of whatever kind.
    pub(super) pages: u64,
    pub(super) site_s: Option<f64>,
    pub(super) redis_s: Option<f64>,
    pub(super) client_s: Option<f64>,
    pub(super) bare_s: Option<f64>,
}

impl CpuTurn {
    fn since(before: &CpuTimes, after: &CpuTimes, seconds: f64, pages: u64) -> Self {
        let took =
            |of: fn(&CpuTimes) -> Option<Duration>| Some(of(after)?.checked_sub(of(before)?)?.as_secs_f64());
        Self {
            seconds,
            pages,
            site_s: took(|times| times.site),
            redis_s: took(|times| times.redis),
            client_s: took(|times| times.client),
            bare_s: took(|times| times.bare),
        }
    }

    /// Microseconds of a page: what this turn took, without what `idle` took in as much time in which nobody read.
    pub(super) fn us_each(&self, of: fn(&Self) -> Option<f64>, idle: Option<&Self>) -> Option<f64> {
        let besides = match idle {
            Some(idle) => of(idle)? / idle.seconds * self.seconds,
            None => 0.0,
        };
        (self.pages > 0).then_some((of(self)? - besides) * 1e6 / count(self.pages))
    }
}

/// All processes of a run, and what they are asked.
#[derive(Debug)]
pub(super) struct Field<'a> {
    pub(super) args: &'a ServeArgs,
    pub(super) bench: &'a Bench,
    pub(super) server: &'a SiteServer,
    pub(super) bare: &'a BareServer,
    pub(super) site_pages: Arc<SitePages>,
    pub(super) engine_pages: Arc<EnginePages>,
    pub(super) bare_pages: Arc<BarePages>,
}

/// What one round has shown.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct CpuRound {
    /// Pages over HTTP.
    pub(super) site: CpuTurn,
    /// The engine's, in this process.
    pub(super) engine: CpuTurn,
    /// Bare answers.
    pub(super) bare: CpuTurn,
    /// Nobody reads.
    pub(super) writes: CpuTurn,
}

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnKind {
    Site,
    Engine,
    Bare,
    Writes,
}

impl Field<'_> {
    pub(super) async fn cpu_times(&self) -> anyhow::Result<CpuTimes> {
        let servers = self.bench.cpu_time().await?;
        Ok(CpuTimes {
            site: self.server.cpu_time(),
            redis: servers.server,
            client: cpu::of_all_threads(std::process::id()),
            bare: self.bare.cpu_time(),
        })
    }

    /// One turn of each kind: forwards, and in every second round backwards.
    pub(super) async fn round(&self, number: u32, random: &mut StdRng) -> anyhow::Result<CpuRound> {
        let mut order = [TurnKind::Site, TurnKind::Engine, TurnKind::Bare, TurnKind::Writes];
        if number % 2 == 1 {
            order.reverse();
        }
        let mut turns = Vec::with_capacity(order.len());
        for kind in order {
            let turn = match kind {
                TurnKind::Site => self.turn(&self.site_pages, |pages| &pages.tally, random).await?,
                TurnKind::Engine => self.turn(&self.engine_pages, |pages| &pages.tally, random).await?,
                TurnKind::Bare => self.turn(&self.bare_pages, |pages| &pages.tally, random).await?,
                TurnKind::Writes => {
                    let (before, began) = (self.cpu_times().await?, Instant::now());
                    tokio::time::sleep(self.args.turn()).await;
                    let seconds = began.elapsed().as_secs_f64();
                    CpuTurn::since(&before, &self.cpu_times().await?, seconds, 0)
                }
            };
            turns.push((kind, turn));
        }
        let of = |kind| turns.iter().find(|(other, _)| *other == kind).map(|(_, turn)| *turn);
        let all = (of(TurnKind::Site), of(TurnKind::Engine), of(TurnKind::Bare), of(TurnKind::Writes));
        let (Some(site), Some(engine), Some(bare), Some(writes)) = all else {
            unreachable!("each kind has had its turn")
        };
        Ok(CpuRound { site, engine, bare, writes })
    }

    async fn turn<P: Perform<u32>>(
        &self,
        pages: &Arc<P>,
        tally: fn(&P) -> &Tally,
        random: &mut StdRng,
    ) -> anyhow::Result<CpuTurn> {
        let readers = random_readers(self.args, self.args.turn(), random);
        let ended = || tally(pages).summary().counts.succeeded;
        let (before, pages_before, began) = (self.cpu_times().await?, ended(), Instant::now());
        drive::closed(pages, readers, self.args.connections as usize, self.args.turn()).await?;
        let seconds = began.elapsed().as_secs_f64();
        Ok(CpuTurn::since(&before, &self.cpu_times().await?, seconds, ended() - pages_before))
    }
}

/// Readers at random: more than so long a turn can have.
pub(super) fn random_readers(args: &ServeArgs, length: Duration, random: &mut StdRng) -> Vec<u32> {
    let many = (length.as_secs() + 1) * PLANNED_PER_SECOND;
    (0..many).map(|_| random.random_range(0..args.readers)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(of: Option<f64>, to: f64) -> bool {
        of.is_some_and(|of| (of - to).abs() < 1e-6)
    }

    #[test]
    fn a_page_costs_what_its_turn_took_without_what_others_did_meanwhile() {
        let turn = |seconds, pages, site_s| CpuTurn {
            seconds,
            pages,
            site_s,
            redis_s: Some(0.5),
            client_s: None,
            bare_s: None,
        };
        // 1 s for 1,000 pages in 2 s; 0.1 s a second go on without them.
        let (site, idle) = (turn(2.0, 1_000, Some(1.0)), turn(4.0, 0, Some(0.4)));
        assert!(close(site.us_each(|turn| turn.site_s, None), 1_000.0));
        assert!(close(site.us_each(|turn| turn.site_s, Some(&idle)), 800.0));
        assert!(close(site.us_each(|turn| turn.redis_s, Some(&idle)), 250.0));
        assert_eq!(site.us_each(|turn| turn.client_s, Some(&idle)), None);
        assert_eq!(idle.us_each(|turn| turn.site_s, None), None, "of no page");
    }
}
