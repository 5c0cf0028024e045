//! `tideline token`: tokens of services, backends that act for any account of a site.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use tideline::Engine;
use tideline::registration::Registration;
use tideline_server::http::{Day, Timestamp};
use tideline_server::service;

use super::target::{Target, with_registration};

/// Commands for tokens of services.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Makes a token and prints its secret, which is shown this once.
    Create(NewTokenArguments),
    /// Shows all tokens: what each allows, when it was used last.
    List(ListTokensArguments),
    /// Ends a token.
    Revoke(RevokeTokenArguments),
}

#[derive(Debug, Args)]
pub(crate) struct NewTokenArguments {
    /// What the service is called: by the log, in each line of what it does, and by `revoke`.
    name: String,
    /// What it may do for accounts: Mastodon's scopes, with spaces between them. None of them is an admin's.
    #[arg(long, default_value = "read write follow", value_name = "SCOPES")]
    scopes: String,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct ListTokensArguments {
    #[command(flatten)]
    target: Target,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeTokenArguments {
    /// What the service is called.
    name: String,
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(command: TokenCommand) -> anyhow::Result<ExitCode> {
    match command {
        TokenCommand::Create(wanted) => {
            let made = async |_: &Engine, registration: &Registration| {
                service::create(registration, &wanted.name, &wanted.scopes).await.map_err(Into::into)
            };
            let secret = with_registration(&wanted.target, made).await?;
            eprintln!("The token of {}; it is shown this once:", wanted.name);
            println!("{secret}");
        }
        TokenCommand::List(wanted) => list(wanted).await?,
        TokenCommand::Revoke(wanted) => {
            let revoked = async |_: &Engine, registration: &Registration| {
                let revoked = service::revoke(registration, &wanted.name).await;
                revoked.context("`tideline token list` shows all")
            };
            with_registration(&wanted.target, revoked).await?;
            println!(
                "The token of {} has ended; servers that remember it ask again within a moment.",
                wanted.name
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(wanted: ListTokensArguments) -> anyhow::Result<()> {
    let listed =
        async |_: &Engine, registration: &Registration| service::list(registration).await.map_err(Into::into);
    let tokens = with_registration(&wanted.target, listed).await?;
    if wanted.json {
        println!("{}", serde_json::to_string_pretty(&tokens)?);
        return Ok(());
    }
    if tokens.is_empty() {
        println!("There are no tokens of services; `tideline token create NAME` makes one.");
        return Ok(());
    }
    let mut table = comfy_table::Table::new();
    table
        .load_style(comfy_table::presets::UTF8_FULL_CONDENSED)
        .set_header(["name", "made", "used", "allows"]);
    let day = |ms| Day(Timestamp(ms)).to_string();
    for token in tokens {
        let used = token.used_ms.map_or_else(|| "-".to_owned(), day);
        let scopes = token.scopes.unwrap_or_else(|| "nothing: it has ended".into());
        table.add_row([token.name, day(token.created_ms), used, scopes]);
    }
    println!("{table}");
    Ok(())
}
