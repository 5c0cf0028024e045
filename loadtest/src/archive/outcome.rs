//! The result: what the JSON holds, and the tables made of it.

use serde::Serialize;

use super::args::ArchiveArgs;
use super::backend::BackendKind;
use super::moving::Moved;
use super::open::OpenLoop;
use super::pages::{DEARER_MAX, PageCost, PageRatio, Pages};
use crate::common::Told;
use crate::judgement::{Judgement, too_few};
use crate::report::{Part, Report, count, figures, header, operations, row};
use crate::stats::Estimate;

/// Of many posts, those that stay take at most this share of the memory.
const MEMORY_MAX: f64 = 0.08;
/// A page of a profile that crosses, warm, at the median.
const PROFILE_P50_US: u64 = 5_000;
/// A page of a home of 200 that crosses, at the median: of PostgreSQL, and of this process.
const HOME_FOLLOWEES: u32 = 200;
const HOME_ARCHIVE_US: f64 = 3_000.0;
const HOME_CLIENT_US: f64 = 500.0;

/// Everything that a run tells; loadtest/README.md explains the fields. Parts that were left out are null.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Outcome {
    command: &'static str,
    settings: ArchiveArgs,
    seed: u64,
    pub(super) backlog: Option<Moved>,
    pub(super) open: Option<OpenLoop>,
    pub(super) memory: Option<Moved>,
    /// What share of the memory is left: of all that servers have allocated, and of posts and authors alone.
    memory_ratio: Option<f64>,
    memory_ratio_of_data: Option<f64>,
    pub(super) pages: Option<Pages>,
    unmet: Vec<String>,
}

impl Outcome {
    pub(super) fn new(args: &ArchiveArgs, seed: u64) -> Self {
        Self {
            command: "archive",
            settings: args.clone(),
            seed,
            backlog: None,
            open: None,
            memory: None,
            memory_ratio: None,
            memory_ratio_of_data: None,
            pages: None,
            unmet: Vec::new(),
        }
    }

    /// Holds what was measured against what is claimed.
    pub(super) fn judge(&mut self) {
        self.memory_ratio = self.memory.as_ref().map(Moved::ratio);
        self.memory_ratio_of_data = self.memory.as_ref().map(Moved::ratio_of_data);
        let mut unmet = Vec::new();
        if let Some(open) = self.open.as_ref().filter(|open| !open.keeps_up) {
            unmet.push(format!(
                "the archive doesn't keep up: {:.0} posts a second are published, and {:.0} more wait after each",
                open.published_per_second, open.growth_per_second
            ));
        }
        if let Some(ratio) = self.memory_ratio.filter(|ratio| *ratio > MEMORY_MAX) {
            unmet.push(format!(
                "{:.1} % of the memory are left: at most {:.0} %",
                ratio * 100.0,
                MEMORY_MAX * 100.0
            ));
        }
        if let Some(pages) = &self.pages {
            pages.costs.iter().for_each(|cost| unmet.extend(dear(cost)));
            pages.ratios.iter().for_each(|ratio| unmet.extend(dearer(ratio)));
        }
        self.unmet = unmet;
    }
}

/// What is claimed of a page, and isn't so.
fn dear(cost: &PageCost) -> Vec<String> {
    let mut unmet = Vec::new();
    let page = &cost.page;
    if page == "profile, crosses" && cost.p50_us >= PROFILE_P50_US {
        unmet.push(format!("{page}: {} us at the median: below {PROFILE_P50_US}", cost.p50_us));
    }
    if *page == format!("home of {HOME_FOLLOWEES}, crosses") {
        let above = |of: Option<Estimate>, most: f64| of.filter(|of| of.median > most);
        if let Some(us) = above(cost.archive_us, HOME_ARCHIVE_US) {
            unmet.push(format!("{page}: {} us of PostgreSQL: at most {HOME_ARCHIVE_US}", us.told(0)));
        }
        if let Some(us) = above(cost.client_us, HOME_CLIENT_US) {
            unmet.push(format!("{page}: {} us of this process: at most {HOME_CLIENT_US}", us.told(0)));
        }
    }
    unmet
}

fn dearer(ratio: &PageRatio) -> Option<String> {
    let PageRatio { page, ratio, judgement, rounds_ratio, .. } = ratio;
    match judgement {
        Judgement::Worse => Some(format!(
            "{page}: {} times what it costs without an archive: more than {DEARER_MAX}",
            ratio.told(3)
        )),
        Judgement::TooFewRounds => Some(too_few(page, rounds_ratio.len())),
        Judgement::NotWorse | Judgement::Open => None,
    }
}

const MB: f64 = 1e6;

/// What a server of the archive takes, where there is one.
fn of_server(backend: BackendKind, told: Option<String>) -> Option<String> {
    told.or_else(|| (backend == BackendKind::Sqlite).then(|| "-".to_owned()))
}

fn moved_table(backend: BackendKind, moved: &[(&str, &Moved)]) -> Part {
    let us = |us: Option<f64>| us.map(|us| format!("{us:.1}"));
    let rows = vec![
        row("posts, of authors", texts(moved, |m| format!("{}, {}", m.posts, m.authors))),
        row("posts that left", texts(moved, |m| m.left.to_string())),
        row("seconds", texts(moved, |m| format!("{:.1}", m.seconds))),
        row("posts a second", texts(moved, |m| format!("{:.0}", m.posts_per_second))),
        figures("us of Redis a post", 1, moved.iter().map(|(_, m)| m.cpu.redis_us)),
        row("us of PostgreSQL a post", moved.iter().map(|(_, m)| of_server(backend, us(m.cpu.archive_us)))),
        figures("us of this process a post", 1, moved.iter().map(|(_, m)| m.cpu.client_us)),
        row("bytes on disk a post", texts(moved, |m| format!("{:.0}", m.disk_bytes_per_post))),
        row("MB in memory, empty", texts(moved, |m| mb(m.empty_bytes))),
        row("MB in memory, before", texts(moved, |m| mb(m.before_bytes))),
        row("MB in memory, afterwards", texts(moved, |m| mb(m.after_bytes))),
        row("% of the memory left", texts(moved, |m| format!("{:.1}", m.ratio() * 100.0))),
        row("% of what the keys take", texts(moved, |m| format!("{:.1}", m.ratio_of_data() * 100.0))),
    ];
    let columns = header("", moved.iter().map(|(name, _)| *name));
    Part::Table(format!("Posts that are all due, to {}", backend.name()), columns, rows)
}

fn texts<'a>(
    moved: &'a [(&str, &Moved)],
    text: impl Fn(&Moved) -> String + 'a,
) -> impl Iterator<Item = Option<String>> + 'a {
    moved.iter().map(move |(_, moved)| Some(text(moved)))
}

fn mb(bytes: u64) -> String {
    format!("{:.1}", count(bytes) / MB)
}

fn open_parts(backend: BackendKind, open: &OpenLoop) -> Vec<Part> {
    let heading = format!("Posts of {} authors in an open loop", open.authors);
    let us = |us: Option<f64>| us.map(|us| format!("{us:.0} us"));
    let [redis, archive, client] =
        [us(open.cpu.redis_us), of_server(backend, us(open.cpu.archive_us)), us(open.cpu.client_us)]
            .map(|us| us.unwrap_or_else(|| "unknown".to_owned()));
    let [first, second, last] = open.waiting;
    let keeps_up = if open.keeps_up { "keeps up" } else { "doesn't keep up" };
    let text = format!(
        "{:.0} posts a second were published ({} left late), and {:.0} a second left memory. In the first, second and \
         last third of the time {first}, {second} and {last} waited on average: {:.0} more each second, so the archive \
         {keeps_up}. For each post published: Redis {redis}, PostgreSQL {archive}, this process {client}. Afterwards \
         {} left within {:.1} s.",
        open.published_per_second,
        open.late,
        open.left_per_second,
        open.growth_per_second,
        open.rest,
        open.rest_seconds
    );
    vec![operations(heading, &[("post", &open.posts)]), Part::Text(text)]
}

fn pages_parts(backend: BackendKind, pages: &Pages) -> Vec<Part> {
    let cells = |cost: &PageCost| {
        let ms = |us: u64| Some(format!("{:.2}", count(us) / 1e3));
        let told = |of: Option<Estimate>| of.map(|of| of.told(0));
        let archive = of_server(backend, told(cost.archive_us));
        let us = [told(cost.redis_us), archive, told(cost.client_us)];
        row(&cost.page, [ms(cost.p50_us), ms(cost.p99_us)].into_iter().chain(us))
    };
    let columns = ["p50 ms", "p99 ms", "us of Redis", "us of PostgreSQL", "us of this process"];
    let heading = "Pages of 20 with posts and authors, one after the other".to_owned();
    let costs = Part::Table(heading, header("page", columns), pages.costs.iter().map(cells).collect());
    let ratio = |of: &PageRatio| {
        let [with, without] = [of.with_us, of.without_us].map(|us| us.told(1));
        row(&of.page, [Some(with), Some(without), Some(of.ratio.told(3))].into_iter())
    };
    let heading = "Pages that don't come to the archive: us of servers and this process".to_owned();
    let columns = header("page", ["with an archive", "without", "ratio"]);
    vec![costs, Part::Table(heading, columns, pages.ratios.iter().map(ratio).collect())]
}

impl Told for Outcome {
    fn report(&self) -> Report {
        let (mut parts, backend) = (Vec::new(), self.settings.backend);
        let moved = [("backlog", &self.backlog), ("memory", &self.memory)];
        let moved: Vec<_> = moved.into_iter().filter_map(|(name, of)| Some((name, of.as_ref()?))).collect();
        if !moved.is_empty() {
            parts.push(moved_table(backend, &moved));
        }
        parts.extend(self.open.iter().flat_map(|open| open_parts(backend, open)));
        parts.extend(self.pages.iter().flat_map(|pages| pages_parts(backend, pages)));
        if !self.unmet.is_empty() {
            parts.push(Part::Text(format!("Not reached:\n{}", self.unmet.join("\n"))));
        }
        if !self.is_right() {
            parts.push(Part::Text(
                "Something is not where it has to be: see the counts in the JSON.".to_owned(),
            ));
        }
        Report { title: "What an archive costs".to_owned(), parts }
    }

    fn is_right(&self) -> bool {
        let moved = [&self.backlog, &self.memory];
        moved.iter().all(|moved| moved.as_ref().is_none_or(Moved::is_right))
            && self.open.as_ref().is_none_or(OpenLoop::is_right)
            && self.pages.as_ref().is_none_or(|pages| pages.wrong == 0)
    }

    fn unmet(&self) -> Vec<String> {
        self.unmet.clone()
    }
}
