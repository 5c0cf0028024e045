//! `tideline inspect`: what is stored of an account, and why its newest page looks as it does.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use tideline::{AccountId, Engine};

use super::inspect_text;
use super::target::Target;

/// What to show.
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// The account's id.
    account: u64,
    #[command(flatten)]
    target: Target,
    /// Print JSON: all that is known, ids as strings.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(wanted: Inspect) -> anyhow::Result<ExitCode> {
    let account = AccountId::new(wanted.account)?;
    let config = wanted.target.config()?;
    let prefix = config.store.prefix.clone();
    let engine = Engine::builder().config(config).observe().await?;
    let inspection = engine
        .inspect(account)
        .await
        .with_context(|| format!("account {account} of the tenant with prefix `{prefix}`"))?;
    if wanted.json {
        super::say(&serde_json::to_string_pretty(&inspection)?)?;
    } else {
        super::say(&inspect_text::render(&inspection, engine.store().router().now_ms()))?;
    }
    Ok(ExitCode::SUCCESS)
}
