//! The result: what the JSON holds, and the table made of it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::args::KillsArgs;
use super::killing::Killed;
use super::notes::{Wrong, WrongKind};
use crate::common::Told;
use crate::report::{Part, Report};

/// Of each kind so many are shown.
const SHOWN: usize = 20;

/// Everything that a run tells; loadtest/README.md explains the fields.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Outcome {
    pub(super) command: &'static str,
    pub(super) settings: KillsArgs,
    pub(super) seed: u64,
    pub(super) seconds: f64,
    pub(super) killed: Killed,
    /// Requests that were answered, and that weren't, or with an error of the server.
    pub(super) answered: u64,
    pub(super) unanswered: u64,
    /// What was noted of it.
    pub(super) tokens: u64,
    pub(super) sign_ups: u64,
    pub(super) posts: u64,
    pub(super) refused_rightly: u64,
    /// What was looked at in the end.
    pub(super) looked_at: u64,
    pub(super) missing: u64,
    pub(super) doubled: u64,
    pub(super) leaked: u64,
    pub(super) miscounted: u64,
    pub(super) refused_wrongly: u64,
    /// What fsck finds, all its kinds.
    pub(super) out_of_step: u64,
    pub(super) panics: u64,
    #[serde(skip)]
    pub(super) wrong: Vec<Wrong>,
    #[serde(skip)]
    pub(super) findings: String,
}

impl Outcome {
    /// Counts what is wrong.
    pub(super) fn count(&mut self, wrong: Vec<Wrong>) {
        let mut counts: BTreeMap<WrongKind, u64> = BTreeMap::new();
        for one in &wrong {
            *counts.entry(one.kind).or_default() += 1;
        }
        let of = |kind| counts.get(&kind).copied().unwrap_or_default();
        self.missing = of(WrongKind::Missing);
        self.doubled = of(WrongKind::Doubled);
        self.leaked = of(WrongKind::Leaked);
        self.miscounted = of(WrongKind::Miscounted);
        self.refused_wrongly = of(WrongKind::Refused);
        self.wrong = wrong;
    }

    fn counts(&self) -> [(&'static str, u64); 7] {
        [
            ("missing", self.missing),
            ("doubled", self.doubled),
            ("leaked", self.leaked),
            ("miscounted", self.miscounted),
            ("refused without a reason", self.refused_wrongly),
            ("out of step", self.out_of_step),
            ("panics", self.panics),
        ]
    }
}

impl Told for Outcome {
    fn report(&self) -> Report {
        let Killed { one, both, primaries, under_way } = self.killed;
        let text = format!(
            "{} kills in {:.0} s: one server {one} times, both {both} times, a primary of Redis {primaries} times; \
             {under_way} requests were under way at servers that were killed. {} requests were answered, {} were not. \
             Noted: {} tokens, {} sign-ups, {} posts, {} refusals; {} things were looked at in the end.",
            self.killed.all(),
            self.seconds,
            self.answered,
            self.unanswered,
            self.tokens,
            self.sign_ups,
            self.posts,
            self.refused_rightly,
            self.looked_at
        );
        let counts = self.counts().map(|(name, count)| vec![name.to_owned(), count.to_string()]);
        let heading = "What is not as it was answered".to_owned();
        let header = vec![String::new(), "times".to_owned()];
        let mut parts = vec![Part::Text(text), Part::Table(heading, header, counts.into())];
        let wrong = self.wrong.iter().take(SHOWN).map(|wrong| format!("{:?}: {}", wrong.kind, wrong.what));
        parts.extend(wrong.map(Part::Text));
        if self.out_of_step > 0 {
            parts.push(Part::Text(self.findings.clone()));
        }
        Report { title: "Servers that are killed".to_owned(), parts }
    }

    fn is_right(&self) -> bool {
        self.counts().iter().all(|(_, count)| *count == 0)
    }
}
