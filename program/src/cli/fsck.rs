//! `tideline fsck`: looks for stored data that is out of step with what it is derived from.

use std::io::IsTerminal as _;
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use indicatif::ProgressBar;
use tideline::{ArchivedCount, Engine, FsckOptions, FsckReport};

use super::progress::bar;
use super::target::{Target, found};

/// The most time for the tasks of a repair to end once it is done.
pub(super) const GOODBYE: Duration = Duration::from_secs(10);
/// Nothing wrong is left; something is; nobody knows, because the look failed.
const CLEAN: u8 = 0;
const FINDINGS_LEFT: u8 = 1;
const NOT_LOOKED: u8 = 2;

/// The data to look at, and whether to put right what is found.
#[derive(Debug, Args)]
pub(crate) struct Fsck {
    /// Also delete posts that can't be read, for good. Not while a later release runs: it may have written them.
    #[arg(long, requires = "repair")]
    drop_unreadable: bool,
    #[command(flatten)]
    look: Look,
}

/// Arguments that a look at everything and one at the archive's side have in common.
#[derive(Debug, Args)]
pub(crate) struct Look {
    /// Put right what is found, beside whatever else goes on.
    #[arg(long)]
    repair: bool,
    /// With --repair: go by an archive that is older than memory, for good. What it lacks is lost: only where no newer
    /// copy of it is left.
    #[arg(long, requires = "repair")]
    accept_loss: bool,
    /// Look at these buckets only: `a-b`, or one.
    #[arg(long, value_name = "A-B", value_parser = buckets)]
    buckets: Option<RangeInclusive<u16>>,
    /// Milliseconds between two looks at the same thing.
    #[arg(long, value_name = "MS", default_value_t = 2_000)]
    pause: u64,
    #[command(flatten)]
    target: Target,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn buckets(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok(first..=last),
        _ => Err("`a-b`, the first and the last bucket".into()),
    }
}

pub(crate) async fn run(wanted: Fsck) -> ExitCode {
    let options = FsckOptions { drop_unreadable: wanted.drop_unreadable, ..wanted.look.options() };
    tell(wanted.look, options).await
}

/// Looks only at what the archive has to do with.
pub(super) async fn run_archive(wanted: Look) -> ExitCode {
    let options = FsckOptions { archive_only: true, ..wanted.options() };
    tell(wanted, options).await
}

impl Look {
    fn options(&self) -> FsckOptions {
        let pause = Duration::from_millis(self.pause);
        let (repair, accept_loss) = (self.repair, self.accept_loss);
        let buckets = self.buckets.clone();
        FsckOptions { repair, accept_loss, buckets, pause, ..FsckOptions::default() }
    }
}

async fn tell(wanted: Look, options: FsckOptions) -> ExitCode {
    let is_json = wanted.json;
    match look(wanted, options).await {
        Ok(report) => {
            print(&report, is_json);
            ExitCode::from(if report.is_clean() { CLEAN } else { FINDINGS_LEFT })
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(NOT_LOOKED)
        }
    }
}

async fn look(wanted: Look, options: FsckOptions) -> anyhow::Result<FsckReport> {
    let config = wanted.target.config()?;
    if !std::io::stderr().is_terminal() {
        eprintln!("{}", beginning(&config.store.prefix, &options));
    }
    let builder = wanted.target.builder().await?;
    if !wanted.repair {
        return watched(&found(builder.observe().await)?, &options).await;
    }
    let engine = found(builder.assist().await)?;
    let report = watched(&engine, &options).await;
    // Also after an error: whatever was begun is left to the service at once.
    engine.shutdown(GOODBYE).await?;
    report
}

/// The line that is printed in place of a bar.
fn beginning(prefix: &str, options: &FsckOptions) -> String {
    let mut what = match &options.buckets {
        None => "all keys".to_owned(),
        Some(buckets) => format!("the keys of buckets {} to {}", buckets.start(), buckets.end()),
    };
    if options.archive_only {
        what += ", for what the archive has to do with,";
    }
    let repair = if options.repair { ", and repairing what is found" } else { "" };
    format!("looking at {what} under prefix `{prefix}`{repair}; with many keys this takes minutes")
}

async fn watched(engine: &Engine, options: &FsckOptions) -> anyhow::Result<FsckReport> {
    let bar: ProgressBar = bar(0, "keys");
    let report = engine
        .fsck(options, &|progress| {
            bar.set_length(progress.of);
            bar.set_position(progress.keys);
            bar.set_message(format!("keys; {} suspected, {} found", progress.suspects, progress.found));
        })
        .await;
    bar.finish_and_clear();
    Ok(report?)
}

fn print(report: &FsckReport, is_json: bool) {
    if is_json {
        match serde_json::to_string_pretty(report) {
            Ok(text) => println!("{text}"),
            Err(error) => eprintln!("error: {error}"),
        }
        return;
    }
    println!("{} keys of {} accounts were looked at.", report.keys, report.accounts);
    if let Some(ArchivedCount { owners, posts, bytes }) = report.archived {
        println!("The archive holds {posts} posts of {owners} accounts, {bytes} bytes without their lists.");
    }
    for (kind, findings) in &report.findings {
        let harmless = if findings.is_harmless { " (harmless)" } else { "" };
        println!("{}{harmless}: {} found, {} repaired", kind.label(), findings.found, findings.repaired);
        for example in &findings.examples {
            println!("    {example}");
        }
    }
    if report.in_flight > 0 {
        println!("{} more were still being written throughout: run fsck again later.", report.in_flight);
    }
    if report.untold > 0 {
        println!(
            "{} looks were left without an answer by the archive: it is away, or lacks what it once had.",
            report.untold
        );
    }
    println!("{}", if report.is_clean() { "Clean." } else { "Not clean." });
}
