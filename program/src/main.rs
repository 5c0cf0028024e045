//! The `tideline` program: arguments and log set up, the rest is the library's.

// In place of std's: whoever reads what a command prints may stop early (`| head`), and that is no error.
#[macro_use(eprintln, println)]
extern crate anstream;

mod cli;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use mimalloc::MiMalloc;
use tideline_server::SERVICE_LOG;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = cli::Cli::typed();
    // Standard output belongs to the commands.
    let log = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    tracing_subscriber::registry().with(log).with(logged(std::env::var("RUST_LOG").ok())).init();
    cli::run(cli).await.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

/// Filter of the log: what `RUST_LOG` says, by targets and levels. More (`EnvFilter`) would have a crate for regular
/// expressions built.
fn logged(said: Option<String>) -> Targets {
    let said = said.and_then(|targets| targets.parse::<Targets>().ok()).unwrap_or_default();
    // A level that is misspelt is read as a target: warnings stay unless a level for all says otherwise.
    let targets = match said.default_level() {
        Some(_) => said,
        None => said.with_default(LevelFilter::WARN),
    };
    // What services do for others is written down, whatever else is: unless somebody says otherwise of that itself.
    match targets.iter().any(|(target, _)| target == SERVICE_LOG) {
        true => targets,
        false => targets.with_target(SERVICE_LOG, LevelFilter::INFO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enables(logged: &Targets, target: &str) -> bool {
        logged.would_enable(target, &LevelFilter::INFO.into_level().unwrap())
    }

    /// With `RUST_LOG=warn` nothing said any more what services had done, and for whom.
    #[test]
    fn what_services_do_is_logged_unless_that_itself_is_silenced() {
        let of = |said: &str| {
            let logged = logged(Some(said.to_owned()));
            [SERVICE_LOG, "tideline::journal"].map(|target| enables(&logged, target))
        };
        for said in ["", "warn", "error", "off", "nonsense=="] {
            assert_eq!(of(said), [true, false], "{said}");
        }
        assert_eq!(of("info"), [true, true]);
        for (said, warns) in
            [("wran", true), ("tideline::journal=info", true), ("off", false), ("error", false)]
        {
            let logged = logged(Some(said.to_owned()));
            assert_eq!(
                logged.would_enable("tideline::store", &LevelFilter::WARN.into_level().unwrap()),
                warns,
                "{said}"
            );
        }
        assert_eq!(of("info,tideline_server::service=off"), [false, true]);
        assert!(enables(&logged(None), SERVICE_LOG));
    }
}
