//! The commands of the `tideline` program: what can be typed, and who does it.
//!
//! Here live arguments, output for people and exit codes. What a command does lives in the library.

mod account;
mod archive;
mod cluster;
mod cluster_status;
mod demo;
mod exporter;
mod fsck;
mod ids;
mod inspect;
mod inspect_post_text;
mod inspect_text;
mod mode;
mod moderate;
mod named;
mod neighbours;
mod progress;
mod serve;
mod target;
mod tenant;
mod token;

use std::process::ExitCode;

use clap::{Arg, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

/// Home timelines on Redis Cluster.
#[derive(Debug, Parser)]
#[command(name = "tideline", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: ProgramCommand,
}

#[derive(Debug, Subcommand)]
enum ProgramCommand {
    /// Makes, names, suspends, exports and deletes accounts of a site.
    #[command(subcommand)]
    Account(account::AccountCommand),
    /// Begins the tenant's archive, where old posts leave memory for a disk; shows it; moves what is due.
    #[command(subcommand)]
    Archive(archive::ArchiveCommand),
    /// Starts, shows and stops a Redis Cluster on this machine.
    #[command(subcommand)]
    Cluster(cluster::Action),
    /// Shows home timelines at work: imports a small site, publishes, reads, and checks what was read.
    Demo(demo::Demo),
    /// Looks for stored data that is out of step, and puts it right with --repair.
    Fsck(fsck::Fsck),
    /// Shows what is stored of an account, and why its newest page looks as it does; or what is stored of a post.
    Inspect(inspect::InspectArguments),
    /// Shows what waits for a moderator, reports and posts that were held back, and decides on it.
    #[command(subcommand)]
    Moderate(moderate::ModerateCommand),
    /// Shows or changes how an account's posts reach its followers: pushed into their homes, or pulled by them.
    Mode(mode::ModeCommand),
    /// Serves clients of Mastodon over HTTP: a site that people sign up at, post and read.
    Serve(serve::Serve),
    /// Shows or changes the settings that belong to the tenant: bounds beyond which data is removed, and the rule of
    /// replicas.
    #[command(subcommand)]
    Tenant(tenant::TenantCommand),
    /// Makes, shows and ends tokens of services: backends that act for any account of a site.
    #[command(subcommand)]
    Token(token::TokenCommand),
}

impl Cli {
    /// Reads what was typed; ends the program where that makes no sense.
    pub(crate) fn typed() -> Self {
        let matches = without_empty_variables(Self::command()).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|wrong| wrong.exit())
    }
}

/// Takes variables that are empty for none: so stands in a compose file what nobody has filled in.
fn without_empty_variables(command: Command) -> Command {
    let value = |arg: &Arg| std::env::var_os(arg.get_env()?);
    let without = |arg: Arg| match value(&arg) {
        Some(value) if value.is_empty() => arg.env(None::<&str>),
        _ => arg,
    };
    command.mut_args(without).mut_subcommands(without_empty_variables)
}

/// Does what was typed.
pub(crate) async fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        ProgramCommand::Account(command) => account::run(command).await,
        ProgramCommand::Archive(command) => archive::run(command).await,
        ProgramCommand::Cluster(action) => cluster::run(action).await,
        ProgramCommand::Demo(demo) => demo::run(demo).await,
        ProgramCommand::Fsck(fsck) => Ok(fsck::run(fsck).await),
        ProgramCommand::Inspect(inspect) => inspect::run(inspect).await,
        ProgramCommand::Moderate(command) => moderate::run(command).await,
        ProgramCommand::Mode(mode) => mode::run(mode).await,
        ProgramCommand::Serve(serve) => serve::run(serve).await,
        ProgramCommand::Tenant(command) => tenant::run(command).await,
        ProgramCommand::Token(command) => token::run(command).await,
    }
}

#[cfg(test)]
#[path = "../../../tests/support/help.rs"]
mod help;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_help_fits_100_columns() {
        help::fits_100_columns(Cli::command());
    }
}
