//! Reports: what was reported and resolved, held against the lists that moderators get.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::call::{Call, ReportSpec};
use super::check::Wrong;
use super::comparisons::Subject;
use super::facts::{Fact, Tri, Window};
use super::run::{Ended, Run};
use super::told::{Listed, Reply};

/// A report by its place in the plan.
pub(crate) type ReportNo = usize;

/// Reports on a page.
const PAGE: usize = 7;
/// Accounts of which the reports are listed.
const TARGETS_MAX: usize = 40;

/// What is known of a report. Each one's comment is another one.
#[derive(Debug, Clone)]
pub(crate) struct ReportFact {
    pub(crate) spec: ReportSpec,
    /// Once it was acknowledged.
    pub(crate) id: Option<u64>,
    /// Whether it may have been made, though nobody was told.
    pub(crate) is_unsure: bool,
    pub(crate) resolved: Fact<bool>,
}

/// Something wrong about somebody's report.
type Finding = (Wrong, u64, String);

/// Holds the lists of reports against what was reported. Nothing may be under way.
pub(crate) async fn compare(run: &Arc<Run>) {
    let reports = run.world().reports.clone();
    let (Some(open), Some(resolved)) = (list(run, false, None).await, list(run, true, None).await) else {
        return;
    };
    let now = run.now();
    let mut found = wrongs(&reports, [&open, &resolved], Window { from: now, to: now });
    let targets: BTreeSet<u64> = reports.values().map(|report| report.spec.target).collect();
    for target in targets.into_iter().take(TARGETS_MAX) {
        for (is_resolved, all) in [(false, &open), (true, &resolved)] {
            let wanted: Vec<&Listed> = all.iter().filter(|listed| listed.report.target == target).collect();
            let Some(listed) = list(run, is_resolved, Some(target)).await else { continue };
            if listed.iter().ne(wanted.iter().copied()) {
                let text = format!("reports of {target}: {listed:?}, of all reports these are {wanted:?}");
                found.push((Wrong::Miscounted, target, text));
            }
        }
    }
    for (wrong, account, text) in found {
        run.wrong(wrong, account, None, text);
    }
}

async fn list(run: &Arc<Run>, resolved: bool, target: Option<u64>) -> Option<Vec<Listed>> {
    match run.call(usize::from(resolved), Call::Reports { resolved, target, limit: PAGE }).await {
        Ended::Done(Reply::Reports(listed)) => Some(listed),
        other => {
            run.skipped(Subject::Reports, &other);
            None
        }
    }
}

/// What is wrong about the lists of those that are open, and of those that are resolved.
fn wrongs(
    reports: &BTreeMap<ReportNo, ReportFact>,
    [open, resolved]: [&[Listed]; 2],
    now: Window,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for list in [open, resolved] {
        for pair in list.windows(2).filter(|pair| pair[0].id <= pair[1].id) {
            let text = format!("report {} before {}", pair[0].id, pair[1].id);
            found.push((Wrong::Reordered, pair[1].report.reporter, text));
        }
    }
    for stray in
        open.iter().chain(resolved).filter(|listed| !reports.values().any(|r| r.spec == listed.report))
    {
        found.push((Wrong::Leaked, stray.report.reporter, format!("{stray:?} was never made")));
    }
    for fact in reports.values() {
        let of = |list: &[Listed]| -> Vec<u64> {
            list.iter().filter(|listed| listed.report == fact.spec).map(|listed| listed.id).collect()
        };
        let (in_open, in_resolved) = (of(open), of(resolved));
        let wrong = |wrong, text: &str| {
            let text = format!("{text}: open {in_open:?}, resolved {in_resolved:?}, {fact:?}");
            (wrong, fact.spec.reporter, text)
        };
        let all: Vec<u64> = in_open.iter().chain(&in_resolved).copied().collect();
        let is_in = |list: &[u64]| fact.id.is_some_and(|id| list.contains(&id));
        if all.len() > 1 {
            found.push(wrong(Wrong::Doubled, "a report is listed more than once"));
        }
        if !all.is_empty() && fact.id.is_none() && !fact.is_unsure {
            found.push(wrong(Wrong::Leaked, "a report was refused, and is listed"));
        }
        if fact.id.is_some() && !is_in(&all) {
            found.push(wrong(Wrong::Lost, "a report is not listed"));
            continue;
        }
        let is_resolved = fact.resolved.is(now, |is| is);
        // What nobody knows the id of nobody resolves.
        let is_misplaced = is_in(&in_open) && is_resolved == Tri::Yes
            || is_in(&in_resolved) && is_resolved == Tri::No
            || in_resolved.iter().any(|id| Some(*id) != fact.id);
        if is_misplaced {
            found.push(wrong(Wrong::Lost, "a report is on the wrong list"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(reporter: u64, id: Option<u64>, is_unsure: bool, resolved: bool) -> ReportFact {
        let spec = ReportSpec { reporter, target: 9, posts: vec![], comment: format!("by {reporter}") };
        ReportFact { spec, id, is_unsure, resolved: Fact::new(resolved) }
    }

    #[test]
    fn each_report_is_listed_once_where_it_belongs() {
        let facts = [
            fact(1, Some(10), false, false),
            fact(2, Some(20), false, true),
            fact(3, None, true, false),
            fact(4, None, false, false),
        ];
        let [one, two, three, four] = [0, 1, 2, 3].map(|n: usize| {
            let spec = facts[n].spec.clone();
            move |id| Listed { id, report: spec.clone() }
        });
        let reports: BTreeMap<ReportNo, ReportFact> = facts.iter().cloned().enumerate().collect();
        let now = Window { from: 5, to: 5 };
        let kinds = |open: &[Listed], resolved: &[Listed]| -> Vec<Wrong> {
            wrongs(&reports, [open, resolved], now).into_iter().map(|(wrong, ..)| wrong).collect()
        };
        assert!(kinds(&[one(10)], &[two(20)]).is_empty());
        // Refused in the end: an earlier sending may have made it.
        assert!(kinds(&[three(30), one(10)], &[two(20)]).is_empty());
        assert_eq!(kinds(&[four(30), one(10)], &[two(20)]), [Wrong::Leaked]);
        assert_eq!(kinds(&[two(19), one(10)], &[two(20)]), [Wrong::Doubled]);
        assert_eq!(kinds(&[], &[two(20)]), [Wrong::Lost]);
        assert_eq!(kinds(&[two(20), one(10)], &[]), [Wrong::Lost]);
        assert_eq!(kinds(&[one(11), one(10)], &[two(20)]), [Wrong::Doubled]);
        assert_eq!(kinds(&[three(9), one(10)], &[two(20)]), [Wrong::Reordered]);
        let mut stray = one(8);
        stray.report.target = 4;
        assert_eq!(kinds(&[one(10), stray], &[two(20)]), [Wrong::Leaked]);
    }
}
