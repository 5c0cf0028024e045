//! The result: what the JSON holds, and the tables made of it.

use serde::Serialize;

use super::args::ServeArgs;
use super::check::Compared;
use super::costs::PageCosts;
use super::open::{OpenPages, OpenTurns, SLOWER_MAX};
use super::published::PostCost;
use super::writes::Written;
use crate::common::Told;
use crate::judgement::{Judgement, too_few};
use crate::report::{Part, Report, estimates, header, operations, row};
use crate::stats::Estimate;
use crate::tally::Summary;

/// Everything that a run tells; loadtest/README.md explains the fields. What wasn't measured is null.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Outcome {
    command: &'static str,
    settings: ServeArgs,
    seed: u64,
    /// Of a page, on average.
    pub(super) page_bytes: f64,
    /// That the closed loop read.
    pub(super) pages_per_second: f64,
    /// The closed loop's, of a site that ran already.
    pub(super) pages: Option<Summary>,
    pub(super) costs: Option<PageCosts>,
    pub(super) open: Option<OpenPages>,
    pub(super) post: Option<PostCost>,
    pub(super) compared: Option<Compared>,
    pub(super) written: Option<Written>,
    /// Of servers, by their logs.
    pub(super) panics: u64,
    #[serde(skip)]
    is_own: bool,
}

impl Outcome {
    pub(super) fn new(args: &ServeArgs, seed: u64, is_own: bool) -> Self {
        Self {
            command: "serve",
            settings: args.clone(),
            seed,
            page_bytes: 0.0,
            pages_per_second: 0.0,
            pages: None,
            costs: None,
            open: None,
            post: None,
            compared: None,
            written: None,
            panics: 0,
            is_own,
        }
    }

    fn summaries(&self) -> Vec<(&'static str, &Summary)> {
        let mut all: Vec<_> = self.pages.iter().map(|pages| ("page over HTTP", pages)).collect();
        all.extend(self.costs.iter().flat_map(PageCosts::pages));
        all.extend(self.written.iter().flat_map(Written::all));
        all
    }
}

fn of_turns(turns: &OpenTurns) -> [Option<Estimate>; 3] {
    let ms = |us: Option<Estimate>| us.map(|us| us.by(1e3));
    [ms(turns.p50_us), ms(turns.p99_us), ms(turns.p999_us)]
}

fn open_parts(open: &OpenPages) -> Vec<Part> {
    let kinds = [("pages", Some(&open.plain)), ("while passwords are hashed", open.passwords.as_ref())];
    let told = |(name, turns): (&str, Option<&OpenTurns>)| {
        let turns = turns?;
        let failed: u64 = turns.turns.iter().map(|turn| turn.counts.failed() + turn.counts.dropped).sum();
        let cells = of_turns(turns).map(|of| of.map(|of| of.told(2)));
        let others = [failed.to_string(), turns.late.to_string(), format!("{:.1}", turns.hashed_per_second)];
        Some(row(name, cells.into_iter().chain(others.map(Some))))
    };
    let columns = ["p50 ms", "p99 ms", "p99.9 ms", "failed", "left late", "passwords a second"];
    let heading = format!("Open loop, {} pages a second; from when each was due", open.rate);
    let rows = kinds.into_iter().filter_map(told).collect();
    let mut parts = vec![Part::Table(heading, header("", columns), rows)];
    if let (Some(ratio), Some(judgement)) = (open.p99_ratio, open.judgement) {
        let verdict = match judgement {
            Judgement::Worse => "missed".to_owned(),
            Judgement::NotWorse => "met".to_owned(),
            other => other.unsure(open.plain.turns.len()),
        };
        parts.push(Part::Text(format!(
            "While passwords are hashed all the time p99 is {} times as long; at most {SLOWER_MAX}: {verdict}.",
            ratio.told(2)
        )));
    }
    parts
}

fn post_parts(post: &PostCost) -> Vec<Part> {
    let rows = vec![
        estimates("server", 0, [post.site_us].into_iter()),
        estimates("Redis", 0, [post.redis_us].into_iter()),
        estimates("both", 0, [post.post_us].into_iter()),
    ];
    let heading = format!("us of CPU of a post that goes to {} followers, all included", post.followers);
    vec![Part::Table(heading, header("", ["us"]), rows)]
}

impl Told for Outcome {
    fn report(&self) -> Report {
        let mut parts = vec![Part::Text(format!(
            "Home pages of {:.1} kB over {} connections: {:.0} a second.",
            self.page_bytes / 1e3,
            self.settings.connections,
            self.pages_per_second
        ))];
        parts.push(operations(
            "As fast as it goes, and what others did meanwhile".to_owned(),
            &self.summaries(),
        ));
        if let Some(costs) = &self.costs {
            let rows = costs.figures().into_iter().map(|(name, of)| estimates(name, 1, [of].into_iter()));
            let heading = "us of CPU of a page: the median of the rounds, and its interval".to_owned();
            parts.push(Part::Table(heading, header("", ["us"]), rows.collect()));
            parts.push(Part::Text(costs.verdict()));
            if cfg!(debug_assertions) {
                let text = "This program is built without optimizing, and the engine in it: what its page costs, \
                            and the ratio, say nothing.";
                parts.push(Part::Text(text.to_owned()));
            }
        }
        parts.extend(self.open.iter().flat_map(open_parts));
        parts.extend(self.post.iter().flat_map(post_parts));
        if let Some(compared) = &self.compared {
            parts.push(Part::Text(format!(
                "{} pages were compared byte for byte with those of a server that remembers nothing, while others \
                 were read: {} differ. {} others changed all the time, {} a server had no time for.{}",
                compared.pages,
                compared.different,
                compared.unsettled,
                compared.refused,
                compared.difference.as_ref().map(|where_| format!(" {where_}")).unwrap_or_default()
            )));
        }
        if !self.is_own && self.costs.is_some() {
            parts.push(Part::Text("Redis' CPU time is what its primaries tell of themselves.".to_owned()));
        }
        if self.panics > 0 {
            parts.push(Part::Text(format!("Servers have panicked: {}.", self.panics)));
        }
        Report { title: "Home pages over HTTP".to_owned(), parts }
    }

    fn is_right(&self) -> bool {
        let failed = |summary: &Summary| summary.counts.failed() + summary.counts.dropped;
        let open = self.open.iter().flat_map(|open| std::iter::once(&open.plain).chain(&open.passwords));
        let open: u64 = open.flat_map(|turns| &turns.turns).map(failed).sum();
        let others: u64 = self.summaries().into_iter().map(|(_, summary)| failed(summary)).sum();
        open + others + self.panics == 0 && self.compared.as_ref().is_none_or(Compared::is_right)
    }

    fn unmet(&self) -> Vec<String> {
        let mut unmet: Vec<String> = self.costs.iter().filter_map(PageCosts::unmet).collect();
        unmet.extend(self.post.iter().filter_map(PostCost::unmet));
        if let Some(open) = &self.open {
            match (open.p99_ratio, open.judgement) {
                (Some(ratio), Some(Judgement::Worse)) => unmet.push(format!(
                    "p99 is {} times as long while passwords are hashed: at most {SLOWER_MAX}",
                    ratio.told(2)
                )),
                (Some(_), Some(Judgement::TooFewRounds)) => {
                    unmet.push(too_few("p99 while passwords are hashed", open.plain.turns.len()));
                }
                _ => {}
            }
        }
        unmet
    }
}
