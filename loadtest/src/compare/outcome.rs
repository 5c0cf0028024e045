//! The result of a comparison: what the JSON holds, and the report made of it.

use std::collections::BTreeMap;

use anyhow::Context as _;
use serde::Serialize;

use super::turns::{Measured, ratios};
use super::verdict::{Verdict, unmet, unsure, verdicts};
use crate::common::Told;
use crate::drive::OVERDUE;
use crate::graph::Graph;
use crate::page::{Bar, bars, table};
use crate::report::{self, Part, Report, estimates, figures, header};
use crate::scenario::{Drive, Loop, Scenario};
use crate::session::Counted;
use crate::stats::{Estimate, median};
use crate::systems::Contestant;

/// Everything that a run tells; loadtest/README.md explains the fields.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Outcome {
    pub(crate) command: &'static str,
    pub(crate) scenario: Scenario,
    pub(crate) seed: u64,
    pub(crate) own_cluster: bool,
    pub(crate) accounts: usize,
    pub(crate) follows: usize,
    pub(crate) largest: u32,
    /// What the ratios are to.
    pub(crate) against: Contestant,
    pub(crate) rows: Vec<Row>,
    pub(crate) verdicts: Vec<Verdict>,
}

/// What a system has shown, medians over all rounds.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    pub(crate) system: Contestant,
    pub(crate) rounds: usize,
    /// The same for all.
    pub(crate) warm_up_operations: u64,
    pub(crate) accounts_pulled: u64,
    pub(crate) operations_per_second: f64,
    pub(crate) server_cpu_us_per_operation: Option<f64>,
    pub(crate) client_cpu_us_per_operation: Option<f64>,
    pub(crate) cpu_us_per_operation: Option<Estimate>,
    pub(crate) operations_per_cpu_second: Option<f64>,
    pub(crate) wire_bytes_per_operation: Option<f64>,
    /// Of CPU time per operation, round by round.
    pub(crate) cpu_ratio: Option<Estimate>,
    pub(crate) read_p50_us: u64,
    pub(crate) read_p99_us: u64,
    pub(crate) read_p999_us: u64,
    pub(crate) fanout_lag_p50_ms: f64,
    pub(crate) fanout_lag_p99_ms: f64,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) posts_per_page: f64,
    /// How often a reader read in a second, on average, and what share of what its pages needed came from caches.
    pub(crate) reads_per_reader_second: f64,
    pub(crate) posts_cached: Option<f64>,
    pub(crate) authors_cached: Option<f64>,
    pub(crate) outboxes_cached: Option<f64>,
    pub(crate) failed: u64,
    /// Of fan-outs that failed, by kind: they are in `failed` too.
    pub(crate) fanout_errors: BTreeMap<String, u64>,
    pub(crate) dropped: u64,
    /// Of these: because this program was still behind when the round had been over for long.
    pub(crate) overdue: u64,
    /// In the open loop: operations that left late, because this program was behind.
    pub(crate) late: u64,
    pub(crate) operations: BTreeMap<&'static str, crate::tally::Summary>,
    /// In the order in which they were measured, so that a drift shows.
    pub(crate) rounds_cpu_us_per_operation: Vec<f64>,
}

impl Row {
    pub(super) fn new(measured: &Measured, against: &Measured) -> anyhow::Result<Self> {
        let cpu = measured.rounds(super::turns::Sample::cpu_us);
        let to = against.rounds(super::turns::Sample::cpu_us);
        let rates = measured.rounds(|sample| Some(sample.operations_per_second));
        let per_second: Vec<f64> = cpu.iter().map(|us| 1e6 / us).collect();
        let Counted { operations, pages, fanouts, shown } =
            measured.counted.clone().context("nothing was counted")?;
        let read = pages.counts.succeeded.max(1);
        let all = operations.iter().map(|(_, summary)| &summary.counts);
        let (failed, dropped) = all.fold((0, 0), |(f, d), counts| (f + counts.failed(), d + counts.dropped));
        let sent: u64 = operations.iter().map(|(_, of)| of.counts.succeeded + of.counts.failed()).sum();
        let operations_per_second = median(&rates).context("no round was measured")?;
        let reads_per_second =
            operations_per_second * report::count(pages.counts.succeeded) / report::count(sent.max(1));
        let [posts_cached, authors_cached, outboxes_cached] = measured.lookups.shares();
        Ok(Self {
            system: measured.contestant,
            rounds: measured.samples.len(),
            warm_up_operations: measured.warm_up_operations,
            accounts_pulled: measured.pulled,
            operations_per_second,
            server_cpu_us_per_operation: median(&measured.rounds(|sample| sample.server_us)),
            client_cpu_us_per_operation: median(&measured.rounds(|sample| sample.client_us)),
            cpu_us_per_operation: Estimate::of(&cpu),
            operations_per_cpu_second: median(&per_second),
            wire_bytes_per_operation: median(&measured.rounds(|sample| sample.wire_bytes)),
            cpu_ratio: Estimate::of(&ratios(&cpu, &to)),
            read_p50_us: pages.p50_us,
            read_p99_us: pages.p99_us,
            read_p999_us: pages.p999_us,
            fanout_lag_p50_ms: report::count(fanouts.p50_us) / 1e3,
            fanout_lag_p99_ms: report::count(fanouts.p99_us) / 1e3,
            memory_bytes: measured.memory,
            posts_per_page: report::count(shown) / report::count(read),
            reads_per_reader_second: reads_per_second / report::count(measured.readers.max(1)),
            posts_cached,
            authors_cached,
            outboxes_cached,
            failed: failed + fanouts.counts.failed(),
            fanout_errors: fanouts.counts.errors,
            dropped,
            overdue: measured.overdue,
            late: measured.late,
            operations: operations.into_iter().collect(),
            rounds_cpu_us_per_operation: cpu,
        })
    }

    /// Memory in MB.
    pub(crate) fn memory_mb(&self) -> Option<f64> {
        self.memory_bytes.map(|bytes| report::count(bytes) / 1e6)
    }

    /// Whether everything was carried out.
    pub(crate) fn is_right(&self) -> bool {
        self.failed == 0 && self.dropped == 0
    }

    /// What was not carried out, and why, and what did not leave in time; nothing, if all was and did.
    pub(crate) fn faults(&self) -> Vec<String> {
        let Self { failed, dropped, overdue, late, .. } = self;
        let name = self.system.name();
        let mut said = Vec::new();
        if !self.is_right() {
            let too_many = dropped.saturating_sub(*overdue);
            said.push(format!(
                "{name}: {failed} operations failed, {too_many} were not sent because too many were under way"
            ));
        }
        if *overdue > 0 {
            said.push(format!("{name}: {overdue} were not sent because {OVERDUE}"));
        }
        let operations = self.operations.iter().map(|(kind, summary)| (*kind, &summary.counts.errors));
        for (kind, errors) in operations.chain([("fan-out", &self.fanout_errors)]) {
            said.extend(errors.iter().map(|(error, count)| format!("{name}, {kind}: {count} {error}")));
        }
        if *late > 0 {
            said.push(format!("{name}: {late} operations left late, this program was behind"));
        }
        said
    }
}

/// Whether there was no time for all rounds.
pub(crate) fn cut(rows: &[Row], asked: usize) -> Option<String> {
    let rounds = rows.first()?.rounds;
    (rounds < asked).then(|| format!("the time was up after {rounds} of {asked} rounds."))
}

/// What has to be known of a closed loop.
pub(crate) fn caveat(drive: &Drive) -> Option<String> {
    (drive.kind == Loop::Closed).then(|| {
        format!(
            "In a closed loop p50 and p99 are waiting times at saturation, with {} operations under way all the time; \
             and readers come as fast as they are answered, where real ones come less often and find less in the \
             caches, so that a pull costs more. An open loop with your own rates tells both (loop = \"open\").",
            drive.at_once
        )
    })
}

/// What the fan-out lag of posts that are pulled leaves out, if there are any.
fn lag_of_pulled(rows: &[Row]) -> Option<String> {
    let pulls = |row: &Row| row.accounts_pulled > 0 && row.system != Contestant::BooksPull;
    let later = tideline::EngineSettings::default().visible_within.as_secs_f64();
    rows.iter().any(pulls).then(|| {
        format!(
            "* What is pushed counts until everybody has it. What is pulled counts until it is acknowledged, and shows \
             on pages up to {later} s later (of books_pull at once)."
        )
    })
}

/// A row for each system.
pub(crate) fn rows(measured: &[Measured]) -> anyhow::Result<Vec<Row>> {
    let first = measured.first().context("nothing was measured")?;
    measured.iter().map(|one| Row::new(one, first)).collect()
}

impl Outcome {
    pub(crate) fn new(
        scenario: Scenario,
        (seed, own_cluster): (u64, bool),
        graph: &Graph,
        measured: &[Measured],
    ) -> anyhow::Result<Self> {
        let rows = rows(measured)?;
        Ok(Self {
            command: "compare",
            scenario,
            seed,
            own_cluster,
            accounts: graph.accounts(),
            follows: graph.follows(),
            largest: graph.followers().iter().max().copied().unwrap_or(0),
            against: rows[0].system,
            rows,
            verdicts: verdicts(measured),
        })
    }

    /// What is to be said besides the table.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let verdicts =
            lag_of_pulled(&self.rows).into_iter().chain(self.verdicts.iter().map(ToString::to_string));
        let cut = cut(&self.rows, self.scenario.drive.rounds);
        let said = verdicts.chain(unsure(&self.rows).map(str::to_owned)).chain(cut);
        let said = said.chain(caveat(&self.scenario.drive));
        said.chain(self.rows.iter().flat_map(Row::faults)).collect()
    }

    /// What the table shows: a row for each figure, a column for each system.
    fn figures(&self) -> Vec<Vec<String>> {
        let ratio = format!("CPU to {}", self.against.name());
        let of = |name: &str, digits: usize, figure: &dyn Fn(&Row) -> Option<f64>| {
            figures(name, digits, self.rows.iter().map(figure))
        };
        let ms = |us: u64| Some(report::count(us) / 1e3);
        let percent = |share: Option<f64>| share.map(|share| share * 100.0);
        vec![
            estimates("CPU us", 1, self.rows.iter().map(|row| row.cpu_us_per_operation)),
            estimates(&ratio, 2, self.rows.iter().map(|row| row.cpu_ratio)),
            of("server us", 1, &|row| row.server_cpu_us_per_operation),
            of("client us", 1, &|row| row.client_cpu_us_per_operation),
            of("ops per CPU-s", 0, &|row| row.operations_per_cpu_second),
            of("ops/s", 0, &|row| Some(row.operations_per_second)),
            of("read p50 ms", 2, &|row| ms(row.read_p50_us)),
            of("read p99 ms", 2, &|row| ms(row.read_p99_us)),
            of("read p99.9 ms", 2, &|row| ms(row.read_p999_us)),
            of("fan-out* p99 ms", 1, &|row| Some(row.fanout_lag_p99_ms)),
            of("MB", 1, &Row::memory_mb),
            of("accounts pulled", 0, &|row| Some(report::count(row.accounts_pulled))),
            of("posts/page", 2, &|row| Some(row.posts_per_page)),
            of("reads/reader-s", 2, &|row| Some(row.reads_per_reader_second)),
            of("% posts cached", 0, &|row| percent(row.posts_cached)),
            of("% authors cached", 0, &|row| percent(row.authors_cached)),
            of("% outboxes cached", 0, &|row| percent(row.outboxes_cached)),
        ]
    }

    fn charts(&self) -> Vec<Part> {
        let chart =
            |heading, note, series: &[&str], unit: &str, values: &dyn Fn(&Row) -> Vec<Option<f64>>| {
                let bar = |row: &Row| Bar {
                    name: row.system.name().to_owned(),
                    values: values(row).into_iter().map(Option::unwrap_or_default).collect(),
                };
                Part::Chart(heading, note, bars(series, &self.rows.iter().map(bar).collect::<Vec<_>>(), unit))
            };
        vec![
            chart(
                "CPU time of an operation",
                "Of all servers and of this program, which is the client. Less is better.",
                &["servers", "client"],
                "us",
                &|row| vec![row.server_cpu_us_per_operation, row.client_cpu_us_per_operation],
            ),
            chart("A page, 99 of 100", "How long readers wait.", &[""], "ms", &|row| {
                vec![Some(report::count(row.read_p99_us) / 1e3)]
            }),
            chart(
                "Until a post has reached everybody, 99 of 100",
                "What is pulled needs to reach nobody: it counts until it is acknowledged, and shows on pages up to a \
                 second later.",
                &[""],
                "ms",
                &|row| vec![Some(row.fanout_lag_p99_ms)],
            ),
            chart("Memory", "Of all keys of the network at the servers, at the end.", &[""], "MB", &|row| {
                vec![row.memory_mb()]
            }),
        ]
    }
}

impl Told for Outcome {
    fn report(&self) -> Report {
        let Self { accounts, follows, largest, seed, .. } = self;
        let name = &self.scenario.name;
        let about = format!(
            "{name}: {accounts} accounts, {follows} follows, the largest has {largest} followers; seed {seed}"
        );
        let heading =
            "All systems: medians of all rounds, in brackets the intervals that hold them with 95 %.";
        let header = header("", self.rows.iter().map(|row| row.system.name()));
        let mut parts = vec![Part::Text(about), Part::Table(heading.to_owned(), header, self.figures())];
        parts.extend(self.remarks().into_iter().map(Part::Text));
        parts.extend(self.charts());
        let scenario = toml::to_string(&self.scenario).unwrap_or_default();
        let lines: Vec<Vec<String>> = scenario.lines().map(|line| vec![line.to_owned()]).collect();
        let lines = table(&[String::new()], &lines);
        parts.push(Part::Chart("The scenario", "As it was run, with what was typed beside it.", lines));
        Report { title: format!("Push or pull: {name}"), parts }
    }

    fn is_right(&self) -> bool {
        self.rows.iter().all(Row::is_right)
    }

    fn unmet(&self) -> Vec<String> {
        unmet(&self.rows, &self.verdicts)
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::tests::{counted, measured};
    use super::*;

    /// The lag of who pulls was shown beside that of who pushes, as if it were the same.
    #[test]
    fn where_something_is_pulled_it_is_told_that_it_shows_later() {
        let told = |contestant, pulled| {
            let measured = Measured { counted: Some(counted()), pulled, ..measured(contestant, 2, 1.0) };
            lag_of_pulled(&[Row::new(&measured, &measured).unwrap()])
        };
        assert!(told(Contestant::Threshold, 5).is_some_and(|note| note.contains("up to 1 s later")));
        assert_eq!(told(Contestant::Threshold, 0), None);
        assert_eq!(told(Contestant::BooksPull, 5), None);
    }

    /// "What the columns say" led to a table without their names.
    #[test]
    fn the_readme_tells_what_each_row_says() {
        let readme = include_str!("../../README.md");
        let (_, part) = readme.split_once("| field | in the table | |\n").unwrap();
        let rows = part.lines().take_while(|line| line.starts_with('|'));
        let told: Vec<&str> =
            rows.flat_map(|row| row.split(" | ").nth(1).unwrap_or("").split(", ")).collect();
        let scenario =
            Scenario::parse("name = 'x'\n[graph]\npreset = 'twip'\naccounts = 100\n[mix]\npost = 1\n")
                .unwrap();
        let graph = Graph::new(2, vec![(1, 0)]);
        let one = Measured { counted: Some(counted()), ..measured(Contestant::PushOnly, 2, 1.0) };
        let outcome = Outcome::new(scenario, (1, true), &graph, &[one]).unwrap();
        for row in outcome.figures() {
            let name = row[0].replace("push_only", "...");
            assert!(told.contains(&name.as_str()), "{name}: {told:?}");
        }
    }

    #[test]
    fn what_failed_was_not_sent_or_left_late_is_told_and_the_first_two_are_not_right() {
        let tally = crate::tally::Tally::new();
        tally.ended(std::time::Duration::ZERO, None);
        let fanouts = crate::tally::Tally::new();
        let row = || {
            let posts = ("post", tally.summary());
            let pages = crate::tally::Tally::new().summary();
            let fanouts = fanouts.summary();
            let counted = Counted { operations: vec![posts], pages, fanouts, shown: 0 };
            let measured =
                Measured { counted: Some(counted), late: 3, ..measured(Contestant::PushOnly, 2, 1.0) };
            Row::new(&measured, &measured).unwrap()
        };
        let late = "push_only: 3 operations left late, this program was behind";
        assert!(row().is_right());
        assert_eq!(row().faults(), [late]);
        tally.dropped();
        assert!(!row().is_right());
        tally.ended(std::time::Duration::ZERO, Some("unavailable".to_owned()));
        let wrong = "push_only: 1 operations failed, 1 were not sent because too many were under way";
        assert_eq!(row().faults(), [wrong, "push_only, post: 1 unavailable", late]);
        // Also what went wrong after a post was accepted, and what was not sent for another reason.
        fanouts.ended(std::time::Duration::ZERO, Some("given_up".to_owned()));
        let faults = Row { overdue: 1, ..row() }.faults();
        let wrong = "push_only: 2 operations failed, 0 were not sent because too many were under way";
        let overdue = format!("push_only: 1 were not sent because {OVERDUE}");
        let kinds = ["push_only, post: 1 unavailable", "push_only, fan-out: 1 given_up"];
        assert_eq!(faults, [wrong, &overdue, kinds[0], kinds[1], late]);
    }
}
