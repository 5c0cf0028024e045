//! The `tideline` program: arguments and log set up, the rest is the library's.

// In place of std's: whoever reads what a command prints may stop early (`| head`), and that is no error.
#[macro_use(eprintln, println)]
extern crate anstream;

mod cli;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Parser as _;
use mimalloc::MiMalloc;
use tideline_server::SERVICE_LOG;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    // RUST_LOG sets what is logged, by targets and levels: more (`EnvFilter`) would have a crate for regular
    // expressions built. Standard output belongs to the commands.
    let logged = std::env::var("RUST_LOG").ok().and_then(|targets| targets.parse::<Targets>().ok());
    // What services do for others is written down, whatever else is.
    let usual = || Targets::new().with_default(LevelFilter::WARN).with_target(SERVICE_LOG, LevelFilter::INFO);
    let logged = logged.unwrap_or_else(usual);
    let log = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    tracing_subscriber::registry().with(log).with(logged).init();
    cli::run(cli).await.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
