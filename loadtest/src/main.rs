//! Load tests for Tideline: what was typed, and who does it. loadtest/README.md documents commands and their JSON.

// In place of std's: whoever reads what a command prints may stop early (`| head`), and that is no error.
#[macro_use(eprintln, print, println)]
extern crate anstream;

#[cfg(feature = "archive")]
mod archive;
mod arrivals;
mod bench;
mod clean;
mod common;
mod compare;
mod cpu;
mod deadline;
mod drive;
mod fairness;
mod fanout;
mod gauges;
mod graph;
#[cfg(feature = "site")]
mod http;
mod interrupt;
mod judgement;
mod keys;
#[cfg(feature = "site")]
mod kills;
mod leftover;
mod lookups;
mod members;
mod memory;
mod page;
mod plan;
mod progress;
mod report;
mod scale;
mod scenario;
#[cfg(feature = "site")]
mod serve;
mod session;
#[cfg(feature = "site")]
mod site;
mod stats;
#[cfg(feature = "site")]
mod strange;
mod sweep;
mod systems;
mod tally;
mod target;
mod typed;
mod units;
#[cfg(feature = "verify")]
mod verify;
mod weighted;
mod workload;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use mimalloc::MiMalloc;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use common::End;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The test ran and found a difference.
const EXIT_DIFFERENT: u8 = 1;
/// The test could not be run, so it says nothing; also clap's code for arguments it refuses.
const EXIT_NOT_RUN: u8 = 2;
/// All was carried out, but a claim is not met: only with `--strict`.
const EXIT_UNMET: u8 = 3;
/// So long threads are waited for at the end that don't know of it: one that removes a cluster, say.
const THREADS_MAX: Duration = Duration::from_secs(20);

/// Load tests that check what they measure.
#[derive(Debug, Parser)]
#[command(name = "loadtest", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Posts to many followers, and what a delivery costs, beside other ways to do the same.
    Fanout(fanout::FanoutArgs),
    /// One workload through push, pull, both hybrids and the textbooks' pull.
    Compare(compare::CompareArgs),
    /// The comparison again and again, while the share of accounts that read grows.
    Sweep(sweep::SweepArgs),
    /// The same network and load on more and more primaries, and posts to more and more followers.
    Scale(scale::ScaleArgs),
    /// Small posts while one of a million deliveries runs, and while none does.
    Fairness(fairness::FairnessArgs),
    /// What it costs that old posts leave memory, and what it saves.
    #[cfg(feature = "archive")]
    Archive(Box<archive::ArchiveArgs>),
    /// Home pages over HTTP, as clients of Mastodon read them.
    #[cfg(feature = "site")]
    Serve(Box<serve::ServeArgs>),
    /// Servers of a site are killed while clients write; in the end all that was answered has to be there.
    #[cfg(feature = "site")]
    Kills(kills::KillsArgs),
    /// Requests that make no sense, to a server started for it.
    #[cfg(feature = "site")]
    Strange(strange::StrangeArgs),
    /// What a service of some size needs, from measured costs of one of each thing.
    Plan(Box<plan::PlanArgs>),
    /// Random histories of everything that accounts do; every page, and in the end every timeline, is held against a
    /// naive model.
    #[cfg(feature = "verify")]
    Verify(verify::VerifyArgs),
    /// Removes the keys that a run has left on a cluster of others.
    Clean(clean::CleanArgs),
    /// Bare answers for `serve` in a process of their own.
    #[cfg(feature = "site")]
    #[command(hide = true)]
    ServeBare(serve::BareArgs),
    /// An instance of `verify` in a process of its own.
    #[cfg(feature = "verify")]
    #[command(hide = true)]
    VerifyWorker,
}

/// What was typed. A figure below 0 is refused by the rule that it breaks, not as an option that nobody knows.
fn typed() -> Cli {
    let figures = |arg: Arg| match arg.get_action().takes_values() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    };
    let command = Cli::command().mut_subcommands(|command| command.mut_args(figures));
    Cli::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
}

fn main() -> ExitCode {
    let cli = typed();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(EXIT_NOT_RUN);
        }
    };
    let ended = runtime.block_on(async {
        tokio::select! {
            code = run(cli) => Ok(code),
            interrupt = interrupt::first() => Err(interrupt),
        }
    });
    runtime.shutdown_timeout(THREADS_MAX);
    // Only now nothing writes any more.
    let code = ended.unwrap_or_else(interrupt::leave);
    leftover::tell();
    code
}

/// Advice on servers' settings, where these are its own and go away with it.
fn unsaid() -> Option<(&'static str, LevelFilter)> {
    let names_servers = std::env::args().any(|arg| arg.starts_with("--cluster"));
    let is_own = !names_servers && std::env::var_os("TIDELINE_CLUSTER").is_none();
    is_own.then_some(("tideline_router::refresh", LevelFilter::ERROR))
}

async fn run(cli: Cli) -> ExitCode {
    // RUST_LOG sets what is logged, by targets and levels: more (`EnvFilter`) would have a crate for regular
    // expressions built. Standard output belongs to the tables.
    let said = std::env::var("RUST_LOG").ok().and_then(|targets| targets.parse::<Targets>().ok());
    let logged = match said {
        // A level that is misspelt is read as a target: warnings stay unless a level for all says otherwise.
        Some(said) if said.default_level().is_none() => said.with_default(LevelFilter::WARN),
        Some(said) => said,
        None => Targets::new().with_default(LevelFilter::WARN).with_targets(unsaid()),
    };
    let log = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    tracing_subscriber::registry().with(log).with(logged).init();
    let outcome = match cli.command {
        Command::Fanout(args) => fanout::run(args).await,
        Command::Compare(args) => Box::pin(compare::run(args)).await,
        Command::Sweep(args) => Box::pin(sweep::run(args)).await,
        Command::Scale(args) => Box::pin(scale::run(args)).await,
        Command::Fairness(args) => Box::pin(fairness::run(args)).await,
        #[cfg(feature = "archive")]
        Command::Archive(args) => Box::pin(archive::run(*args)).await,
        #[cfg(feature = "site")]
        Command::Serve(args) => Box::pin(serve::run(*args)).await,
        #[cfg(feature = "site")]
        Command::Kills(args) => Box::pin(kills::run(args)).await,
        #[cfg(feature = "site")]
        Command::Strange(args) => Box::pin(strange::run(args)).await,
        Command::Plan(args) => plan::run(&args).map(|()| End::Right),
        #[cfg(feature = "verify")]
        Command::Verify(args) => Box::pin(verify::run(args)).await.map(End::from),
        Command::Clean(args) => clean::run(args).await,
        #[cfg(feature = "site")]
        Command::ServeBare(args) => serve::serve_bare(args).await.map(|()| End::Right),
        #[cfg(feature = "verify")]
        Command::VerifyWorker => verify::serve().await.map(|()| End::Right),
    };
    match outcome {
        Ok(End::Right) => ExitCode::SUCCESS,
        Ok(End::Wrong) => ExitCode::from(EXIT_DIFFERENT),
        Ok(End::Unmet) => ExitCode::from(EXIT_UNMET),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(EXIT_NOT_RUN)
        }
    }
}

#[cfg(test)]
#[path = "../../tests/support/help.rs"]
mod help;

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn all_help_fits_100_columns() {
        help::fits_100_columns(Cli::command());
    }
}
