//! What `tideline fsck` says of what is stored, once all is drained: nothing may be out of step.
//!
//! Somebody looks who has no part in the run; with an archive an instance does, since only its process may have a file
//! open.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tideline::{FindingKind, FsckOptions};

use super::call::Call;
use super::check::Wrong;
use super::groups;
use super::names::Left;
use super::run::{Ended, Run};
use super::setup::Setup;
use super::told::{FsckTold, Reply};
use super::world::{PostFact, World};

/// Between two looks at the same thing: nobody else works, but a policy that goes on deciding.
const PAUSE: Duration = Duration::from_millis(400);
/// A whole look waits while the last of a storm's work ends; once nothing is in flight its word counts.
const LOOKS_MAX: usize = 4;
/// Within which an archive tells all that is asked: what a server has forgotten that it was told to forget is asked for
/// again after half a minute, and once it had the time to settle.
const TOLD_WITHIN: Duration = Duration::from_secs(90);

/// How long an instance that has put things right may take to end.
const SHUTDOWN_MAX: Duration = Duration::from_secs(10);

/// Looks through everything; what is wrong is a violation, and what does no harm is counted. What attempts at names
/// have left, whose instance was killed, is neither: it is taken away, so that it isn't found again, nor hides what is.
pub(crate) async fn look(run: &Arc<Run>, setup: &Setup) -> anyhow::Result<()> {
    let may_be_left = run.world().names.may_be_left(run.now());
    let Some(report) = settled_report(run, setup).await? else { return Ok(()) };
    run.count_event("keys looked at by fsck", report.keys);
    run.count_event("posts in the archive looked at by fsck", report.archived);
    if report.in_flight > 0 {
        let text = format!("fsck: {} things are in flight, and nobody works on them", report.in_flight);
        run.wrong(Wrong::OutOfStep, 0, None, text);
    }
    if report.untold > 0 {
        let text = format!("fsck: {} looks were left without an answer by the archive", report.untold);
        run.wrong(Wrong::OutOfStep, 0, None, text);
    }
    let mut has_left = false;
    for findings in &report.findings {
        let is = |kind: FindingKind| findings.kind == kind.label();
        if findings.is_harmless {
            run.count_event("harmless findings of fsck", findings.found);
        } else if is(FindingKind::EdgeNeedless) && findings.found <= run.world().strays(run.now()) {
            run.count_event("edges of follows that are lost", findings.found);
        } else if is(FindingKind::ListingNeedless)
            && findings.found <= listed_by_the_older(&run.world(), setup)
        {
            run.count_event("mentions of whom a post doesn't admit, by the older build", findings.found);
            has_left = true;
        } else if findings.found <= u64::try_from(left_by_the_killed(&findings.kind, may_be_left))? {
            run.count_event("left of attempts at names", findings.found);
            has_left = true;
        } else {
            for example in &findings.examples {
                run.wrong(Wrong::OutOfStep, 0, None, format!("fsck: {}: {example}", findings.kind));
            }
        }
    }
    if has_left { mend(run, setup).await } else { Ok(()) }
}

/// What fsck says once nothing is under way any more, and an archive tells everything. `None`: nobody says anything.
async fn settled_report(run: &Arc<Run>, setup: &Setup) -> anyhow::Result<Option<FsckTold>> {
    let (since, mut looks) = (Instant::now(), 1);
    loop {
        let Some(report) = report(run, setup, false).await? else { return Ok(None) };
        let is_under_way = (report.in_flight > 0 || has_halted(&report)) && looks < LOOKS_MAX;
        let is_to_be_told = report.untold > 0 && since.elapsed() < TOLD_WITHIN;
        if !is_under_way && !is_to_be_told {
            return Ok(Some(report));
        }
        if has_halted(&report) {
            run.event("looks at fills that had come to a halt");
            read_all_homes(run).await;
        }
        if is_to_be_told {
            run.event("looks of fsck to which the archive said nothing");
            tokio::time::sleep(PAUSE).await;
        }
        looks += 1;
    }
}

/// One look.
async fn report(run: &Arc<Run>, setup: &Setup, repairs: bool) -> anyhow::Result<Option<FsckTold>> {
    if setup.archive.is_some() {
        return Ok(match run.call(0, Call::Fsck { repairs }).await {
            Ended::Done(Reply::Fsck(told)) => Some(told),
            Ended::Stuck => None,
            other => {
                run.wrong(Wrong::Stuck, 0, None, format!("fsck can't look: {other:?}"));
                None
            }
        });
    }
    if repairs {
        let engine = setup.unbroken().engine(None).await?;
        let report = engine.fsck(&options(true), &|_| ()).await;
        engine.shutdown(SHUTDOWN_MAX).await?;
        return Ok(Some(report?.into()));
    }
    Ok(Some(setup.observer().await?.fsck(&options(false), &|_| ()).await?.into()))
}

/// A fill that failed, for want of a fence as likely as not, is left to whoever reads next; nobody reads any more.
fn has_halted(report: &FsckTold) -> bool {
    report.findings.iter().any(|found| found.kind == FindingKind::FillHalted.label() && found.found > 0)
}

async fn read_all_homes(run: &Arc<Run>) {
    let mut accounts = run.world().accounts.clone();
    if run.world().groups.are_founded {
        accounts.extend(groups::readers());
        accounts.extend(&run.world().groups.rushers);
    }
    for (number, account) in accounts.into_iter().enumerate() {
        run.call(number, Call::Warm { account }).await;
    }
}

pub(super) fn options(repair: bool) -> FsckOptions {
    FsckOptions { repair, pause: PAUSE, ..FsckOptions::default() }
}

/// How many things of a kind may be left of attempts at names whose instance was killed.
fn left_by_the_killed(kind: &str, left: Left) -> usize {
    match kind {
        kind if kind == FindingKind::AttemptLeft.label() => left.attempts,
        kind if kind == FindingKind::ClaimNeedless.label() => left.claims,
        _ => 0,
    }
}

/// How many mentions an older build may have listed of whom the post doesn't admit: at most so many are found.
/// This build lists none, and its fsck takes them off.
fn listed_by_the_older(world: &World, setup: &Setup) -> u64 {
    if setup.beside.is_none() {
        return 0;
    }
    let of_post = |post: &PostFact| {
        let is_out = |other: &u64| {
            *other != post.author
                && (post.not_to.contains(other) || !post.only_to.is_empty() && !post.only_to.contains(other))
        };
        let ever = post.edits.iter().map(|edit| &edit.value).chain([&post.said]);
        ever.flat_map(|said| &said.mentions).filter(|other| is_out(other)).collect::<HashSet<_>>().len()
    };
    let all: usize = world.posts.iter().flatten().map(of_post).sum();
    u64::try_from(all).unwrap_or(u64::MAX)
}

/// Has fsck put right what it finds: nothing may be left.
async fn mend(run: &Arc<Run>, setup: &Setup) -> anyhow::Result<()> {
    let Some(FsckTold { findings, .. }) = report(run, setup, true).await? else { return Ok(()) };
    for findings in findings.iter().filter(|of| !of.is_harmless && of.left > 0) {
        for example in &findings.examples {
            run.wrong(Wrong::OutOfStep, 0, None, format!("fsck can't mend: {}: {example}", findings.kind));
        }
    }
    Ok(())
}
