//! What a page costs, beside what it can't do without.

use serde::Serialize;

use super::turns::{CpuRound, CpuTurn};
use crate::judgement::{Judgement, too_few};
use crate::stats::Estimate;
use crate::tally::{Summary, Tally};

/// A page over HTTP costs at most so many times what the engine's page and a bare answer cost together.
const RATIO_MAX: f64 = 1.6;

/// Microseconds of CPU that one page takes, over the rounds; what others wrote meanwhile is taken off, as it cost in
/// as much time in which nobody read. Unknown where this machine doesn't tell.
#[derive(Debug, Clone, Serialize)]
pub(super) struct PageCosts {
    rounds: Vec<CpuRound>,
    /// Of a page over HTTP: the server, Redis, both; and the client, which is not the site's.
    site_us: Option<Estimate>,
    redis_us: Option<Estimate>,
    page_us: Option<Estimate>,
    client_us: Option<Estimate>,
    /// Both of it again, and what others wrote meanwhile too.
    page_with_writes_us: Option<Estimate>,
    /// Of the engine's page in this process: this process, Redis, both.
    engine_process_us: Option<Estimate>,
    engine_redis_us: Option<Estimate>,
    engine_us: Option<Estimate>,
    /// Of a bare answer of as many bytes.
    bare_us: Option<Estimate>,
    /// A page over HTTP by the engine's and the bare answer together, round by round.
    ratio: Option<Estimate>,
    judgement: Option<Judgement>,
    /// Pages of all rounds.
    site: Summary,
    engine: Summary,
    bare: Summary,
}

/// A figure of a round.
type RoundFigure<'a> = &'a dyn Fn(&CpuRound) -> Option<f64>;

/// A figure of each round; nothing, if some round could not measure it.
fn over(rounds: &[CpuRound], figure: RoundFigure<'_>) -> Option<Estimate> {
    Estimate::of(&rounds.iter().map(figure).collect::<Option<Vec<f64>>>()?)
}

fn site_us(round: &CpuRound) -> Option<f64> {
    round.site.us_each(|turn| turn.site_s, Some(&round.writes))
}

fn redis_us(round: &CpuRound) -> Option<f64> {
    round.site.us_each(|turn| turn.redis_s, Some(&round.writes))
}

fn with_writes_us(round: &CpuRound) -> Option<f64> {
    let both = |turn: &CpuTurn| Some(turn.site_s? + turn.redis_s?);
    round.site.us_each(both, None)
}

fn engine_process_us(round: &CpuRound) -> Option<f64> {
    round.engine.us_each(|turn| turn.client_s, Some(&round.writes))
}

fn engine_redis_us(round: &CpuRound) -> Option<f64> {
    round.engine.us_each(|turn| turn.redis_s, Some(&round.writes))
}

fn bare_us(round: &CpuRound) -> Option<f64> {
    round.bare.us_each(|turn| turn.bare_s, None)
}

fn page_us(round: &CpuRound) -> Option<f64> {
    Some(site_us(round)? + redis_us(round)?)
}

fn engine_us(round: &CpuRound) -> Option<f64> {
    Some(engine_process_us(round)? + engine_redis_us(round)?)
}

fn ratio(round: &CpuRound) -> Option<f64> {
    Some(page_us(round)? / (engine_us(round)? + bare_us(round)?))
}

impl PageCosts {
    pub(super) fn new(rounds: Vec<CpuRound>, [site, engine, bare]: [&Tally; 3]) -> Self {
        let of = |figure: RoundFigure<'_>| over(&rounds, figure);
        let ratio = of(&ratio);
        Self {
            site_us: of(&site_us),
            redis_us: of(&redis_us),
            page_us: of(&page_us),
            client_us: of(&|round| round.site.us_each(|turn| turn.client_s, Some(&round.writes))),
            page_with_writes_us: of(&with_writes_us),
            engine_process_us: of(&engine_process_us),
            engine_redis_us: of(&engine_redis_us),
            engine_us: of(&engine_us),
            bare_us: of(&bare_us),
            ratio,
            judgement: ratio.map(|ratio| Judgement::of(&ratio, RATIO_MAX, rounds.len())),
            site: site.summary(),
            engine: engine.summary(),
            bare: bare.summary(),
            rounds,
        }
    }

    /// All kinds of pages.
    pub(super) fn pages(&self) -> [(&'static str, &Summary); 3] {
        [("page over HTTP", &self.site), ("the engine's page", &self.engine), ("bare answer", &self.bare)]
    }

    /// Names and figures, as a table has them.
    pub(super) fn figures(&self) -> [(&'static str, Option<Estimate>); 10] {
        [
            ("over HTTP: server", self.site_us),
            ("over HTTP: Redis", self.redis_us),
            ("over HTTP: both", self.page_us),
            ("over HTTP: both, and what others wrote", self.page_with_writes_us),
            ("the client, besides", self.client_us),
            ("the engine's page: its process", self.engine_process_us),
            ("the engine's page: Redis", self.engine_redis_us),
            ("the engine's page: both", self.engine_us),
            ("a bare answer", self.bare_us),
            ("what both of these don't explain", self.beside()),
        ]
    }

    /// What a page over HTTP costs more than both: medians.
    fn beside(&self) -> Option<Estimate> {
        over(&self.rounds, &|round| Some(page_us(round)? - engine_us(round)? - bare_us(round)?))
    }

    /// What is said of the ratio.
    pub(super) fn verdict(&self) -> String {
        let Some(ratio) = self.ratio else {
            return "CPU time is not told here, so nothing can be said of what a page costs.".to_owned();
        };
        let verdict = match self.judgement {
            Some(Judgement::Worse) => "missed".to_owned(),
            Some(Judgement::NotWorse) => "met".to_owned(),
            Some(other) => other.unsure(self.rounds.len()),
            None => "not judged".to_owned(),
        };
        format!(
            "A page over HTTP costs {} times the engine's page and a bare answer together; at most {RATIO_MAX}: \
             {verdict}.",
            ratio.told(2)
        )
    }

    /// What is claimed and isn't so.
    pub(super) fn unmet(&self) -> Option<String> {
        let ratio = self.ratio?;
        match self.judgement? {
            Judgement::Worse => {
                Some(format!("a page costs {} times both: at most {RATIO_MAX}", ratio.told(2)))
            }
            Judgement::TooFewRounds => Some(too_few("what a page costs", self.rounds.len())),
            Judgement::NotWorse | Judgement::Open => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_held_against_the_engines_and_a_bare_answer_round_by_round() {
        let turn = |pages, [site_s, redis_s, client_s, bare_s]: [f64; 4]| CpuTurn {
            seconds: 1.0,
            pages,
            site_s: Some(site_s),
            redis_s: Some(redis_s),
            client_s: Some(client_s),
            bare_s: Some(bare_s),
        };
        let round = CpuRound {
            site: turn(1_000, [0.099 + 0.02, 0.06 + 0.01, 0.05, 0.0]),
            engine: turn(1_000, [0.02, 0.05 + 0.01, 0.03, 0.0]),
            bare: turn(1_000, [0.02, 0.01, 0.05, 0.02]),
            writes: turn(0, [0.02, 0.01, 0.0, 0.0]),
        };
        let tally = Tally::new();
        let costs = PageCosts::new(vec![round; 6], [&tally; 3]);
        let is = |of: Option<Estimate>, to: f64| of.is_some_and(|of| (of.median - to).abs() < 1e-6);
        assert!(
            is(costs.page_us, 159.0) && is(costs.engine_us, 80.0) && is(costs.bare_us, 20.0),
            "{costs:?}"
        );
        assert!(is(costs.ratio, 1.59) && is(costs.page_with_writes_us, 189.0), "{costs:?}");
        assert_eq!(costs.judgement, Some(Judgement::NotWorse));
        let dearer = CpuRound { site: turn(1_000, [0.13, 0.07, 0.05, 0.0]), ..round };
        let costs = PageCosts::new(vec![dearer; 6], [&tally; 3]);
        assert_eq!(costs.unmet().as_deref(), Some("a page costs 1.70 (1.70-1.70) times both: at most 1.6"));
        assert!(costs.verdict().ends_with("at most 1.6: missed."), "{}", costs.verdict());
    }
}
