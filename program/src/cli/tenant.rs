//! `tideline tenant`: the settings that belong to the tenant, because what they remove is gone for all its instances.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use tideline::{Decision, Engine, RemovedData, Store, TenantChange};

use super::serve;
use super::target::{Target, found};

/// Commands for a tenant's settings.
#[derive(Debug, Subcommand)]
pub(crate) enum TenantCommand {
    /// Shows the settings that are the tenant's.
    Show(ShowArguments),
    /// Changes some of them for all instances, after saying what that removes.
    Set(SetArguments),
    /// Brings the tenant's record back, if its server has lost it, from what the buckets know.
    Restore(RestoreArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    #[command(flatten)]
    target: Target,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Args)]
pub(crate) struct SetArguments {
    /// Settings and their new values: outbox_posts, mentions_max, tag_posts_max, public_posts (0: no public
    /// timeline), home_posts, dormant_after_days (or `never`), replicas. A value that stands already finishes what was
    /// interrupted.
    #[arg(required_unless_present = "as_configured", value_name = "NAME=VALUE", value_parser = assignment)]
    settings: Vec<(String, String)>,
    /// Take all that is not named from the service's configuration: the file of --config, and the environment.
    #[arg(long)]
    as_configured: bool,
    /// Only say what would be removed.
    #[arg(long)]
    dry_run: bool,
    /// Remove it without asking.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    target: Target,
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("`NAME=VALUE`, as in `outbox_posts=200000`")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(crate) async fn run(command: TenantCommand) -> anyhow::Result<ExitCode> {
    match command {
        TenantCommand::Show(wanted) => show(wanted).await,
        TenantCommand::Set(wanted) => set(wanted).await,
        TenantCommand::Restore(wanted) => restore(wanted).await,
    }
}

async fn restore(wanted: RestoreArguments) -> anyhow::Result<ExitCode> {
    let store = wanted.target.config()?.store;
    let prefix = store.prefix.clone();
    let Decision { number, settings, .. } = found(Store::restore(store).await)?;
    println!("The record under prefix `{prefix}` is there, decision {number}: {settings}");
    println!("`tideline fsck` finds what else its server has lost.");
    Ok(ExitCode::SUCCESS)
}

async fn observer(target: &Target) -> anyhow::Result<Engine> {
    found(target.builder().await?.observe().await)
}

async fn show(wanted: ShowArguments) -> anyhow::Result<ExitCode> {
    let engine = observer(&wanted.target).await?;
    let Decision { number, settings, .. } = engine.decision();
    let prefix = engine.store().keys().prefix();
    if number == 0 {
        bail!(
            "nothing was decided yet under prefix `{prefix}`: decide with `tideline tenant set`, all settings named, \
             or taken from the service's file with --as-configured"
        );
    }
    if wanted.json {
        let mut all = serde_json::Map::from_iter([("decision".to_owned(), number.into())]);
        all.extend(settings.values().map(|(name, value)| {
            let as_number = value.parse::<u64>().map(Into::into);
            (name.to_owned(), as_number.unwrap_or_else(|_| value.into()))
        }));
        println!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(ExitCode::SUCCESS);
    }
    println!("under prefix `{prefix}`, decision {number}:");
    for (name, value) in settings.values() {
        println!("    {name} = {value}");
    }
    Ok(ExitCode::SUCCESS)
}

async fn set(wanted: SetArguments) -> anyhow::Result<ExitCode> {
    if wanted.as_configured && !wanted.target.has_file() {
        bail!(
            "--as-configured takes the service's settings: name its file with --config (or TIDELINE_CONFIG)"
        );
    }
    let engine = observer(&wanted.target).await?;
    let decision = engine.decision();
    let mut change = decision.change();
    if wanted.as_configured {
        change = change.set_all(serve::configured(&wanted.target)?)?;
    }
    for (name, value) in &wanted.settings {
        change = change.set(name, value)?;
    }
    let excess = looked_at(&engine, &change).await?;
    say_what_changes(decision, &change);
    println!("{}", described(&excess, "removes"));
    if wanted.dry_run {
        println!("Nothing was changed.");
        return Ok(ExitCode::SUCCESS);
    }
    if !excess.is_empty() && !wanted.yes && !is_confirmed()? {
        println!("Nothing was changed.");
        return Ok(ExitCode::FAILURE);
    }
    let removed = engine.decide(&change).await.context("run it again: it continues where it stopped")?;
    let number = engine.decision().number;
    println!("Decided, number {number}. {}", described(&removed, "removed"));
    Ok(ExitCode::SUCCESS)
}

fn say_what_changes(decision: Decision, change: &TenantChange) {
    if decision.number == 0 {
        println!("nothing was decided yet; from now on:");
        for (name, value) in change.to().values() {
            println!("    {name} = {value}");
        }
    } else {
        for (name, before, after) in decision.settings.differences(&change.to()) {
            println!("{name}: {before}, from now on {after}");
        }
    }
}

async fn looked_at(engine: &Engine, change: &TenantChange) -> anyhow::Result<RemovedData> {
    // Raising a bound removes nothing.
    if change.removes() {
        eprintln!("counting what exceeds the new bounds; with many keys this takes minutes");
    }
    Ok(engine.excess(change).await?)
}

fn described(excess: &RemovedData, verb: &str) -> String {
    let RemovedData { outboxes, mentions, hashtags, public, homes, dormant_homes } = excess;
    let mut parts = Vec::new();
    for (removal, what, of) in [
        (outboxes, "posts from profiles", "accounts"),
        (mentions, "posts from mentions", "accounts"),
        (hashtags, "posts from timelines", "hashtags"),
        (public, "posts from the public timeline", "buckets"),
    ] {
        if removal.entries > 0 {
            parts.push(format!("{} {what} of {} {of}, for good", removal.entries, removal.lists));
        }
    }
    if *homes > 0 {
        parts.push(format!("the oldest of {homes} homes, whose further pages come from the outboxes"));
    }
    if *dormant_homes > 0 {
        parts.push(format!(
            "{dormant_homes} homes of accounts that have not read for long, which their next read fills"
        ));
    }
    if parts.is_empty() { format!("It {verb} nothing.") } else { format!("It {verb} {}.", parts.join("; ")) }
}

fn is_confirmed() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("this removes data for good: confirm with --yes, or see first what it removes with --dry-run");
    }
    print!("Go on? [y/N] ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
