//! Accounts that have signed up where they have to be approved: listing them, letting them in, turning them away.

use clap::Args;
use tideline::Engine;
use tideline::registration::Registration;
use tideline_server::accounts::{WaitingAccount, approve, reject, waiting};
use tideline_server::http::{Day, Timestamp};

use crate::cli::named::NamedAccount;
use crate::cli::target::{Target, with_registration};

#[derive(Debug, Args)]
pub(crate) struct WaitingArguments {
    #[command(flatten)]
    target: Target,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArguments {
    #[command(flatten)]
    account: NamedAccount,
    /// Take its e-mail address for confirmed: where no letter comes through.
    #[arg(long)]
    confirmed: bool,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct AnswerArguments {
    #[command(flatten)]
    account: NamedAccount,
    #[command(flatten)]
    target: Target,
}

pub(super) async fn show(wanted: WaitingArguments) -> anyhow::Result<()> {
    let asked =
        async |_: &Engine, registration: &Registration| waiting(registration).await.map_err(Into::into);
    let accounts = with_registration(&wanted.target, asked).await?;
    if wanted.json {
        println!("{}", serde_json::to_string_pretty(&accounts)?);
        return Ok(());
    }
    if accounts.is_empty() {
        println!("Nobody waits.");
        return Ok(());
    }
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED).set_header([
        "login",
        "id",
        "since",
        "e-mail address",
        "says",
    ]);
    for WaitingAccount { id, login, email, is_confirmed, reason, since_ms } in accounts {
        let email = email.unwrap_or_default();
        let email = if is_confirmed { email } else { format!("{email} (not confirmed)") };
        // What a stranger has typed does nothing to a terminal.
        let reason: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        table.add_row([login, id.to_string(), Day(Timestamp(since_ms)).to_string(), email, reason]);
    }
    println!("{table}");
    Ok(())
}

pub(super) async fn let_in(wanted: ApproveArguments) -> anyhow::Result<()> {
    let answered = async |engine: &Engine, registration: &Registration| {
        let found = wanted.account.find(registration).await?;
        let is_in = approve(engine, registration, &found.account, wanted.confirmed).await?;
        println!(
            "{} {}",
            found.described,
            if is_in {
                "is let in"
            } else {
                "is approved; it has to confirm its e-mail address still, or --confirmed says so"
            }
        );
        Ok(())
    };
    with_registration(&wanted.target, answered).await
}

pub(super) async fn turn_away(wanted: AnswerArguments) -> anyhow::Result<()> {
    let answered = async |engine: &Engine, registration: &Registration| {
        let found = wanted.account.find(registration).await?;
        reject(engine, registration, &found.account).await?;
        println!("{} is turned away: it is deleted, and its names are free", found.described);
        Ok(())
    };
    with_registration(&wanted.target, answered).await
}
