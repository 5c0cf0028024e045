//! The `tideline` program: arguments and log set up, the rest is the library's.

// In place of std's: whoever reads what a command prints may stop early (`| head`), and that is no error.
#[macro_use(eprintln, println)]
extern crate anstream;

mod cli;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Parser as _;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    // RUST_LOG sets what is logged; standard output belongs to the commands.
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn")))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    cli::run(cli).await.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
