//! What `tideline fsck` says of what is stored, once all is drained: nothing may be out of step.

use std::sync::Arc;
use std::time::Duration;

use tideline::FsckOptions;

use super::check::Wrong;
use super::run::Run;
use super::setup::Setup;

/// Between two looks at the same thing: nobody else works, but a policy that goes on deciding.
const PAUSE: Duration = Duration::from_millis(400);
/// A whole look waits while the last of a storm's work ends; once nothing is in flight its word counts.
const LOOKS_MAX: usize = 4;

/// Looks through everything; what is wrong is a violation, and what does no harm is counted.
pub(crate) async fn look(run: &Arc<Run>, setup: &Setup) -> anyhow::Result<()> {
    let engine = setup.observer().await?;
    let options = FsckOptions { pause: PAUSE, ..FsckOptions::default() };
    let mut looks = 1;
    let mut report = engine.fsck(&options, |_| ()).await?;
    while report.in_flight > 0 && report.is_clean() && looks < LOOKS_MAX {
        report = engine.fsck(&options, |_| ()).await?;
        looks += 1;
    }
    run.count_event("keys looked at by fsck", report.keys);
    if report.in_flight > 0 {
        let text = format!("fsck: {} things are in flight, and nobody works on them", report.in_flight);
        run.wrong(Wrong::OutOfStep, 0, None, text);
    }
    for (kind, findings) in &report.findings {
        if findings.is_harmless {
            run.count_event("harmless findings of fsck", findings.found);
            continue;
        }
        for example in &findings.examples {
            run.wrong(Wrong::OutOfStep, 0, None, format!("fsck: {}: {example}", kind.label()));
        }
    }
    Ok(())
}
