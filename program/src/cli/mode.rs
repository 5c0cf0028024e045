//! `tideline mode`: how an account's posts reach its followers.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use tideline::{AccountId, DeliveryWay, Engine, ModeState};

use super::fsck::GOODBYE;
use super::named;
use super::target::{Target, found};

/// Time between two looks at a change under way.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// After so long whoever waits is told for what.
const TOLD_AFTER: Duration = Duration::from_secs(10);

/// The mode to show, or to change.
#[derive(Debug, Args)]
pub(crate) struct ModeCommand {
    /// The account: its id, its login (`@42` is a login), or its e-mail address.
    account: String,
    /// Have it pushed or pulled from now on, or leave that to the policy again. Left out: only show.
    way: Option<Wanted>,
    #[command(flatten)]
    target: Target,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Wanted {
    /// Its posts are delivered into its followers' homes.
    Push,
    /// Its followers pull its posts when they read.
    Pull,
    /// The policy decides.
    Auto,
}

impl Wanted {
    fn way(self) -> Option<DeliveryWay> {
        match self {
            Self::Push => Some(DeliveryWay::Push),
            Self::Pull => Some(DeliveryWay::Pull),
            Self::Auto => None,
        }
    }
}

pub(crate) async fn run(wanted: ModeCommand) -> anyhow::Result<ExitCode> {
    let account = named::id_of(&wanted.account, &wanted.target).await?;
    let config = wanted.target.config()?;
    let place = format!("under prefix `{}`", config.store.prefix);
    let builder = wanted.target.builder().await?;
    let state = match wanted.way {
        None => found(builder.observe().await)?.mode(account).await.context(place)?,
        Some(way) => {
            let engine = found(builder.assist().await)?;
            let changed = change(&engine, account, way).await.context(place);
            // Also after an error: whatever was begun is left to the service at once.
            engine.shutdown(GOODBYE).await?;
            changed?
        }
    };
    if wanted.json {
        println!("{}", serde_json::to_string_pretty(&state)?);
    } else {
        println!("account {account}: {}", described(&state));
        if matches!(wanted.way, Some(Wanted::Auto)) {
            println!(
                "The service's policy decides when the next post of the account was delivered, or within a minute of \
                 its being pulled."
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn change(engine: &Engine, account: AccountId, way: Wanted) -> anyhow::Result<ModeState> {
    let change = engine.set_way(account, way.way()).await?;
    // Whoever carries it out: another instance may be at it already.
    let begun = Instant::now();
    let mut is_told = false;
    loop {
        let state = engine.mode(account).await?;
        if state.progress.is_none() {
            let told = change.progress().delivered;
            if told > 0 {
                eprintln!("{told} followers were told.");
            }
            return Ok(state);
        }
        if begun.elapsed() >= TOLD_AFTER && !std::mem::replace(&mut is_told, true) {
            eprintln!(
                "Its followers are being told; a server may be away. It goes on without this command, too: ctrl-C ends \
                 that alone."
            );
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

fn described(state: &ModeState) -> String {
    let mode = match state.mode {
        tideline::Mode::Push => "pushed into its followers' homes",
        tideline::Mode::Promoting => "pushed; its followers are being told to pull",
        tideline::Mode::Pull => "pulled by its followers",
    };
    let who = if state.forced.is_some() { "told by hand" } else { "by policy" };
    match state.progress {
        Some(part) => format!("{mode}, {who}; {:.0} % of its followers know", part * 100.0),
        None => format!("{mode}, {who}"),
    }
}
